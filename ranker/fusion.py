"""Reciprocal rank fusion: several rankings of the same texts as one (Cormack, Clarke and Buettcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

CONSTANT = 60
"""As in the paper; not tuned."""


def fuse(rankings: Sequence[Sequence[int]]) -> np.ndarray:
    """Each text's score: the sum of 1 / (CONSTANT + rank) over the rankings, float32. `rankings`: every text's rank in
    each, from 0.

    Here the second of three texts wins, which is second in one ranking and best in the other:

    >>> fuse([[0, 1, 2], [2, 0, 1]]).argsort()[::-1].tolist()
    [1, 0, 2]
    """
    import numpy as np

    scores = (1 / (CONSTANT + 1 + np.array(rankings, dtype=np.float64))).sum(axis=0)
    return np.asarray(scores, dtype=np.float32)
