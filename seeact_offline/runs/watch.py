"""Progress of a run, as its caller hears it; nothing here prints."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from seeact_offline.records import Prediction, StepScore


class StepListener(Protocol):
    """Hears of each step of one pass over a split."""

    def add(self, prediction: Prediction, score: StepScore, resumed: bool = False) -> None:
        """`resumed`: an earlier run had done it."""


class RankListener(Protocol):
    """Hears of each step that is ranked, or of each piece of other work."""

    def advance(self, figures: str, resumed: bool = False, n: int = 1) -> None:
        """`figures`: how it has gone so far, in words. `n`: steps or pieces that are done at once."""


class Watch:
    """Hears nothing. Override what is of interest."""

    def begun(self, dataset: object) -> None:
        """Hears of the beginning: called when all is opened and checked, and the run's folder is claimed."""

    def note(self, text: str) -> None:
        """Hears a remark, a sentence."""

    def spent(self, usd: float | None) -> None:
        """Hears before each step of a pass what the run has spent so far, as its ledger has it;
        None where that is not known."""

    def steps(self, total: int, label: str) -> AbstractContextManager[StepListener]:
        """A pass over `total` steps begins; the result is entered for as long as it takes."""
        return nullcontext(_Silent())

    def ranking(self, total: int, label: str) -> AbstractContextManager[RankListener]:
        """A pass that ranks `total` steps begins; the result is entered for as long as it takes."""
        return nullcontext(_Silent())

    def counting(self, total: int, label: str, unit: str) -> AbstractContextManager[RankListener]:
        """A pass of other work, of `total` pieces, begins; the result is entered for as long as it takes.
        `unit`: its pieces, in the plural."""
        return nullcontext(_Silent())


class _Silent:
    def add(self, prediction: Prediction, score: StepScore, resumed: bool = False) -> None:
        pass

    def advance(self, figures: str, resumed: bool = False, n: int = 1) -> None:
        pass
