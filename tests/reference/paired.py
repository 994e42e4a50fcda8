"""A paired bootstrap the long way: two averages over the tasks drawn, subtracted, resample by resample."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def macro(tasks: Sequence[Sequence[float]]) -> float:
    return mean([mean(steps) for steps in tasks])


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def interval(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], resamples: int) -> tuple[float, float]:
    """The same draws as the fast one makes with seed 0, which are numpy's and not what is tested."""
    n = len(ours)
    rng = np.random.default_rng(0)
    our_means, their_means = [mean(steps) for steps in ours], [mean(steps) for steps in theirs]
    gaps = []
    for _ in range(resamples):
        drawn = [int(i) for i in rng.integers(0, n, n)]
        gaps.append(mean([our_means[i] for i in drawn]) - mean([their_means[i] for i in drawn]))
    return quantile(gaps, 0.025), quantile(gaps, 0.975)
