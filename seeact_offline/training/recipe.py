"""The recipe of a baseline that answers multi-choice questions. The defaults are the published ones.

Source: Mind2Web (arXiv 2306.06070) and its released code, commit 1b7c323.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from seeact_offline.records import InputError

NEW_TOKENS = 50
"""Most tokens of an answer, in evaluation."""
HARD_SHARE = 0.8
"""Share of the draws with `hard_negatives` whose wrong elements are ranked under k. The others have the rest of the page."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides the weights besides the data, the model to start from and the machine."""

    epochs: int = 5
    draws: int = 10
    """Questions a step and epoch."""
    choices: int = 5
    """Elements a question."""
    none_share: float = 0.2
    """Share of the questions without the right element, whose answer is `A.`."""
    hard_negatives: int | None = None
    """Wrong elements are those ranked under so many, in HARD_SHARE of the draws. None: uniformly from the page, as published."""
    held_out: float = 0.0
    """Share of the tasks that are not trained on but asked about during training."""
    batch: int = 32
    """Questions a step of the optimizer, over all devices."""
    learning_rate: float = 5e-5
    """Falls linearly to 0."""
    warmup: float = 0.0
    """Share of the steps over which the learning rate rises first."""
    weight_decay: float = 0.0
    clip: float = 1.0
    """Largest norm of the gradients."""
    max_context: int = 512
    """Tokens of a page's markup; the end of longer ones is cut off."""
    max_question: int = 512
    """Tokens of the rest of a question, likewise."""
    lora: int | None = None
    """Rank of the matrices that are trained in place of the weights, which are then held in bfloat16 on a GPU; None: the weights."""
    quantised: bool | None = None
    """True: with LoRA, those weights are NF4 ones, by bitsandbytes (QLoRA: arXiv 2305.14314)."""
    optimizer: str | None = None
    """transformers' name of the optimizer, such as adafactor or adamw_bnb_8bit; None: AdamW."""
    group_by_length: bool | None = None
    """Questions of like length are put into one batch, which needs less padding."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises InputError."""
        for name in ("none_share", "held_out", "warmup"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(name, "a share from 0 to less than 1", str(getattr(self, name)))
        for name in ("epochs", "draws", "batch", "max_context"):
            if getattr(self, name) < 1:
                raise InputError(name, "a number of at least 1", str(getattr(self, name)))
        if self.quantised and self.lora is None:
            raise InputError(
                "quantised", sentence="`quantised` needs `lora`, as 4-bit weights are not trained themselves"
            )
        if self.max_question < 2:
            raise InputError("max_question", "a number of at least 2", str(self.max_question))
        if not 2 <= self.choices <= 5:
            raise InputError("choices", "2 to 5, as answers are read up to F", str(self.choices))


SMALL: dict[str, Any] = {"draws": 4, "batch": 8, "learning_rate": 1e-3}
"""Fields of a recipe for random weights, which need more and larger steps: 2,930 on the sample, in ten minutes on two cores."""


@dataclass(frozen=True, slots=True)
class Running:
    """Settings of the machine. In exact arithmetic, and without dropout, none of them would change the weights."""

    per_device: int | None = None
    """Questions at once on a device, whose gradients add up to a batch; None: as many as a GPU's share, or a few on a CPU."""
    bf16: bool | None = None
    """None: on a GPU that has it."""
    gradient_checkpointing: bool = False
    """Activations are computed twice, not kept."""
    save_every: int | None = None
    """Steps of the optimizer between checkpoints, and between evaluations; None: an epoch."""
    log_every: int = 10
    loader_workers: int | None = None
    """Processes that load batches; None: some beside a GPU, none on a CPU, where they would take the model's cores."""
    attention: str | None = None
    """An implementation by transformers' names, such as sdpa; None: the model's own."""
    threads: int | None = None
    """CPU threads of torch; None: torch's default."""
    report_to: tuple[str, ...] = ()
    """Services that the Trainer reports to, by transformers' names."""

    def workers_of(self, has_gpu: bool) -> int:
        """Processes that load batches."""
        if self.loader_workers is not None:
            return self.loader_workers
        return min(4, (os.cpu_count() or 1) // 2) if has_gpu else 0

    def each(self, batch: int, devices: int, most: int | None = None) -> int:
        """Questions at once on each of `devices`; unless it is given, at most `most`. Raises InputError."""
        if batch % devices:
            raise InputError("batch", f"a number that {devices} devices share evenly", str(batch))
        share = batch // devices
        found = self.per_device or next(n for n in range(min(share, most or share), 0, -1) if share % n == 0)
        if share % found:
            raise InputError("per_device", f"a number that divides the {share} of each device", str(found))
        return found

    def accumulate(self, batch: int, devices: int, most: int | None = None) -> int:
        """Batches of a device whose gradients add up to one step of the optimizer. Raises InputError."""
        return batch // (devices * self.each(batch, devices, most))
