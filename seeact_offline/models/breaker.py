"""Stops a run in which nothing gets through to the model, or too little.

A run that continued would spend hours to fill its results with zeros. It ends with an error in the server's words; what has been
answered until then stays, and the same command resumes from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seeact_offline.models.model_call import ENOUGH
from seeact_offline.records import ModelStopped

if TYPE_CHECKING:
    from seeact_offline.models.failures import Failure

FIRST_IN_A_ROW = 10
"""Failed calls, before any has got through, that stop a run."""
MOST_IN_A_ROW = 20
"""Failed calls one after the other that stop it later."""


class Breaker:
    """Counts finished calls. Once it has stopped the run, `check` raises ModelStopped too."""

    def __init__(self, server: str, most_failed: float | None = None) -> None:
        """`server`: as errors name it; `most_failed`: the share of failed calls beyond which the run stops, from 0 to 1."""
        self.n_answered = 0
        """Calls that got through."""
        self._server, self._most_failed = server, most_failed
        self._n_failed = self._in_a_row = 0
        self._stopped: ModelStopped | None = None

    def check(self) -> None:
        """Raises ModelStopped once the run is to stop."""
        if self._stopped is not None:
            raise ModelStopped(*self._stopped.args)

    def answered(self) -> None:
        """Counts a call that got through."""
        self.n_answered += 1
        self._in_a_row = 0

    def failed(self, failure: Failure) -> None:
        """Counts a call that failed for good. Raises ModelStopped where that is one too many."""
        self._n_failed += 1
        self._in_a_row += 1
        n, is_first = self.n_answered + self._n_failed, self.n_answered == 0
        expected = ""
        if failure.stops or (is_first and (failure.hopeless or failure.unreachable)):
            expected = f"an answer from {self._server}"
        elif self._in_a_row >= (FIRST_IN_A_ROW if is_first else MOST_IN_A_ROW):
            expected = f"answers from {self._server}, not {self._in_a_row} failed calls in a row"
        elif self._most_failed is not None and self._n_failed > self._most_failed * max(n, ENOUGH):
            expected = f"at most {self._most_failed:.0%} of calls to fail, not {self._n_failed} of {n}"
        if expected and self._stopped is None:
            self._stopped = ModelStopped("model", expected, f"{failure.name}: {failure.detail}")
        if expected:
            self.check()
