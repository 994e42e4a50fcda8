"""Heavy packages that a test module names without importing them: each is imported when one of its names is first used.

Every process of the suite reads all test modules, and most run few of the tests that need these.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Lazy:
    """A module that is imported when one of its names is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "pytest" in name:
            raise AttributeError(name)  # pytest asks everything in a test module whether it is a fixture or a mock
        return getattr(import_module(self._name), name)


datasets: Any = Lazy("datasets")
huggingface_hub: Any = Lazy("huggingface_hub")
nbformat: Any = Lazy("nbformat")
pandas: Any = Lazy("pandas")
peft: Any = Lazy("peft")
safetensors_torch: Any = Lazy("safetensors.torch")
stats: Any = Lazy("scipy.stats")
torch: Any = Lazy("torch")
transformers: Any = Lazy("transformers")
