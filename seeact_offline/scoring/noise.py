"""The variance of a figure by its source, where runs have several seeds: pure functions of arrays.

A task's mean under a seed is taken as the sum of a mean, a part of the task, a part of the seed (which moves all tasks
alike) and a rest. Mean squares of the two-way table of tasks by seeds give the variances of the parts. Source: Searle,
Casella and McCulloch, Variance Components (1992), ch. 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from seeact_offline.scoring.inference import LEVEL, POWER, SAME, beta_quantile


@dataclass(frozen=True, slots=True)
class Parts:
    """Variances of the parts of one task's mean under one seed."""

    tasks: float
    seeds: float
    rest: float
    seeds_ci95: tuple[float, float] = (0.0, math.inf)
    """Interval of the part of the seeds."""

    def of_mean(self, n_tasks: int, n_seeds: int) -> float:
        """The variance of the mean over tasks and seeds."""
        return self.tasks / n_tasks + self.seeds / n_seeds + self.rest / (n_tasks * n_seeds)


@dataclass(frozen=True, slots=True)
class FigureNoise:
    """The variance of one run's macro average, split by its source."""

    metric: str
    runs: tuple[str, ...]
    """Runs that differ by seed or order alone."""
    tasks: float
    """Variance of the figure of one run by the tasks that were drawn."""
    seeds: float
    """By the seed, which moves all tasks alike."""
    seeds_ci95: tuple[float, float]
    """Interval of that part."""
    rest: float
    """By tasks that answer to the seed in their own ways."""
    seeds_needed: int
    """Seeds of each of two methods that would show `Comparison.detect` points on these tasks, if both vary as these
    runs and part alike at every task."""


@dataclass(frozen=True, slots=True)
class DifferenceNoise:
    """The variance of the difference of two groups' macro averages, split by its source."""

    metric: str
    first: str
    second: str
    tasks: float
    """Variance of the difference by the tasks that were drawn."""
    seeds: float
    seeds_ci95: tuple[float, float]
    """Interval of the part of the seeds."""
    rest: float
    tasks_needed: int | None
    """Tasks that would show `Comparison.detect` points with the seeds that there are; None where no number does."""
    seeds_needed: int | None
    """Seeds of each group that would show it on as many tasks as there are; None where no number does."""


def parts_of(means: np.ndarray) -> Parts:
    """`means`: shape (n_tasks, n_seeds), each task's mean under each seed; two or more of both. A variance that
    comes out below 0 is taken as 0, so on average they are too high.

    The interval is exact for the ratio of the seeds' part to the rest where both are normal (Searle, Casella and
    McCulloch, section 3.6).
    """
    n_tasks, n_seeds = means.shape
    by_task, by_seed, grand = means.mean(axis=1), means.mean(axis=0), means.mean()
    rest = means - by_task[:, None] - by_seed[None] + grand
    of_rest = float((rest**2).sum() / ((n_tasks - 1) * (n_seeds - 1)))
    of_tasks = float(n_seeds * ((by_task - grand) ** 2).sum() / (n_tasks - 1))
    of_seeds = float(n_tasks * ((by_seed - grand) ** 2).sum() / (n_seeds - 1))
    df = n_seeds - 1, (n_tasks - 1) * (n_seeds - 1)
    bounds = [of_seeds / f_quantile(p, *df) for p in ((1 + LEVEL) / 2, (1 - LEVEL) / 2)]
    tasks, seeds, low, high = (
        max(0.0, (square - of_rest) / n)
        for square, n in ((of_tasks, n_seeds), *((square, n_tasks) for square in (of_seeds, *bounds)))
    )
    return Parts(tasks, seeds, of_rest, (low, high))


def f_quantile(p: float, df: int, df_below: int) -> float:
    """The x at which the F distribution reaches p, from that of the beta distribution."""
    x = beta_quantile(p, df / 2, df_below / 2)
    return df_below * x / (df * (1 - x))


def figure_noise(metric: str, runs: tuple[str, ...], means: np.ndarray, difference: float) -> FigureNoise:
    """`means` as for `parts_of`; `difference`: a fraction."""
    parts, n_tasks = parts_of(means), len(means)
    of_two = Parts(0.0, 2 * parts.seeds, 2 * parts.rest)
    # without a part of the tasks there is always a number
    needed = seeds_needed(of_two, n_tasks, difference) or 1
    return FigureNoise(metric, runs, parts.tasks / n_tasks, parts.seeds, parts.seeds_ci95, parts.rest / n_tasks, needed)


def difference_noise(
    metric: str, first: str, second: str, ours: np.ndarray, theirs: np.ndarray, difference: float
) -> DifferenceNoise:
    """`ours`, `theirs`: as for `parts_of`, over the same tasks, each with seeds of its own."""
    first_parts, second_parts = parts_of(ours), parts_of(theirs)
    n_tasks, (n_ours, n_theirs) = len(ours), (ours.shape[1], theirs.shape[1])
    gaps = theirs.mean(axis=1) - ours.mean(axis=1)
    # what the rest adds to the tasks' differences is not of the tasks
    rest = first_parts.rest / n_ours + second_parts.rest / n_theirs
    tasks = max(0.0, float(gaps.var(ddof=1)) - rest)
    seeds = first_parts.seeds / n_ours + second_parts.seeds / n_theirs
    sides = (first_parts, n_ours), (second_parts, n_theirs)
    # each bound is as far from the sum as the sides' own bounds together, at right angles
    low, high = (math.hypot(*((part.seeds_ci95[end] - part.seeds) / n for part, n in sides)) for end in (0, 1))
    now = Parts(tasks, seeds, rest)
    of_one_seed = Parts(tasks, first_parts.seeds + second_parts.seeds, first_parts.rest + second_parts.rest)
    return DifferenceNoise(
        metric, first, second, tasks / n_tasks, seeds, (max(0.0, seeds - low), seeds + high), rest / n_tasks,
        tasks_needed=tasks_needed(now, difference), seeds_needed=seeds_needed(of_one_seed, n_tasks, difference),
    )  # fmt: skip


def _allowed(difference: float) -> float:
    """The variance of a difference that a two-sided test at 5 % finds with POWER, by the normal distribution."""
    normal = NormalDist()
    return (difference / (normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(POWER))) ** 2


def tasks_needed(parts: Parts, difference: float) -> int | None:
    """The least number of tasks, 2 or more, at which the variance is small enough with one unit of seeds; None where no
    number is."""
    left = _allowed(difference) - parts.seeds
    return None if left <= 0 else max(2, math.ceil((parts.tasks + parts.rest) / left - SAME))


def seeds_needed(parts: Parts, n_tasks: int, difference: float) -> int | None:
    """The least number of seeds at which the variance is small enough over so many tasks; None where no number is."""
    left = _allowed(difference) - parts.tasks / n_tasks
    return None if left <= 0 else max(1, math.ceil((parts.seeds + parts.rest / n_tasks) / left - SAME))
