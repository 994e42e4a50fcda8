"""Nearly always the exact best k from rough scores: texts that the rough scores leave in doubt are scored exactly.

How far rough scores are off is measured on the query's own texts, near the cut. Only scoring all texts exactly could
promise the best k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

FIRST_LOOK = 12
"""Rows nearest the cut that are always scored exactly, to measure how far rough scores are off."""

CAUTION = 5.0
"""Standard deviations of the errors measured, beyond which a row is not expected to be off."""


@dataclass
class Cut:
    """One query's texts, and the line between its best k and the rest."""

    places: np.ndarray
    """The row of each text; equal texts share one."""
    rough: np.ndarray
    """Rough score of every row, of this query or another."""
    k: int
    exact: dict[int, float] = field(default_factory=dict)
    """Rows scored exactly for this query so far."""

    def doubtful(self) -> list[int]:
        """Rows that may be on either side of the cut, in ascending order: those within CAUTION standard deviations of
        it.

        The cut is the k-th best of `scores`. If no other row is off by more than its distance from the cut, each is on
        the side where its exact score puts it, so the best k are right.
        """
        if len(self.places) <= self.k:
            return []
        rows, errors = np.unique(self.places), self._errors()
        distance = np.abs(self.rough[rows] - errors.mean() - np.sort(self.scores())[-self.k])
        margin = (
            CAUTION * errors.std(ddof=min(1, len(errors) - 1)) if self.exact else np.sort(distance)[:FIRST_LOOK][-1]
        )
        return [row for row in rows[distance <= margin].tolist() if row not in self.exact]

    def scores(self) -> np.ndarray:
        """Scores of the texts: exact where they were asked for, elsewhere rough without the error that all have in
        common."""
        common = self._errors().mean()
        return np.array(
            [self.exact.get(row, self.rough[row] - common) for row in self.places.tolist()], dtype=np.float32
        )

    def _errors(self) -> np.ndarray:
        """Errors of the rows scored exactly, in ascending order; a zero if there are none."""
        return np.array([self.rough[row] - score for row, score in sorted(self.exact.items())] or [0.0])


def rescore_near_cut(
    rough: np.ndarray, places: Sequence[np.ndarray], k: int, score_rows: Callable[[list[int]], np.ndarray]
) -> list[np.ndarray]:
    """Scores of each query's texts; the k best are nearly always those of exact scores. `score_rows`: exact scores of
    some rows.

    Which texts are scored exactly depends only on the query's own texts, not on other queries.
    """
    cuts = [Cut(each, rough, k) for each in places]
    exact: dict[int, float] = {}
    while True:
        wanted = [cut.doubtful() for cut in cuts]
        new = sorted({row for rows in wanted for row in rows} - exact.keys())
        if new:
            exact.update(zip(new, score_rows(new).tolist(), strict=True))
        for cut, rows in zip(cuts, wanted, strict=True):
            cut.exact.update((row, exact[row]) for row in rows)
        if not any(wanted):
            return [cut.scores() for cut in cuts]
