"""The mean of a model's weights over the steps of a training: what single steps learn by heart, it forgets.

(Izmailov et al., arXiv 1803.05407: stochastic weight averaging, at a learning rate that does not fall.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "average.safetensors"
COUNT = "steps"


@dataclass
class WeightAverage:
    """Running mean, in float32."""

    n: int = 0
    # steps in it
    _mean: dict[str, Any] = field(default_factory=dict)

    def add(self, model: Any) -> None:
        self.n += 1
        for name, value in model.named_parameters():
            now = value.detach().float()
            self._mean[name] = now.clone() if self.n == 1 else self._mean[name].lerp_(now, 1 / self.n)

    def into(self, model: Any) -> None:
        """The mean takes the place of the weights; nothing happens where there is none yet."""
        import torch

        with torch.no_grad():
            for name, value in model.named_parameters():
                if name in self._mean:
                    value.copy_(self._mean[name])

    @contextmanager
    def lent_to(self, model: Any) -> Iterator[None]:
        """The same for a while."""
        import torch

        kept = {name: value.detach().clone() for name, value in model.named_parameters()}
        self.into(model)
        try:
            yield
        finally:
            with torch.no_grad():
                for name, value in model.named_parameters():
                    value.copy_(kept[name])

    def save(self, folder: Path) -> None:
        from safetensors.torch import save_file

        if self.n:
            save_file(self._mean, folder / FILE, metadata={COUNT: str(self.n)})

    def load(self, folder: Path) -> None:
        """What `save` left there, if anything."""
        from safetensors import safe_open

        if not (folder / FILE).is_file():
            return
        with safe_open(folder / FILE, "pt") as file:
            self.n = int(file.metadata()[COUNT])
            self._mean = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
