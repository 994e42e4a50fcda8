"""Progress of a training: its step of all, the loss, and the answers to questions held out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from seeact_offline.files.markdown import percent
from seeact_offline.runs.watch import RankListener, Watch

FIGURES = {
    "loss": lambda value: f"loss {value:.3g}",
    "eval_loss": lambda value: f"held-out loss {value:.3g}",
    "eval_letter_accuracy": lambda value: f"held out: right option {percent(value)} %",
    "eval_answer_accuracy": lambda value: f"right answer {percent(value)} %",
}
"""Entries of the Trainer's log that are shown, and in which words."""


class TrainingProgress(ExitStack):
    """Tells a watch of each step of the optimizer; a context manager."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch
        self._listener: RankListener | None = None
        self._figures: dict[str, str] = {}

    def begin(self, total: int, done: int) -> None:
        """Starts to count. `done`: steps of an earlier training that is resumed."""
        self.close()
        self._listener = self.enter_context(self._watch.counting(total, "training", "optimizer steps"))
        for _ in range(done):
            self._listener.advance("", resumed=True)

    def advance(self) -> None:
        """Counts a step."""
        if self._listener is not None:
            self._listener.advance("  ".join(self._figures.values()))

    def log(self, logs: Mapping[str, Any]) -> None:
        """An entry of the Trainer's log."""
        self._figures |= {name: FIGURES[name](logs[name]) for name in FIGURES if name in logs}
