"""Intervals and standard errors the long way, and tasks to try them on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def resampled_means(means: Sequence[float], resamples: int, seed: int) -> list[float]:
    """The same draws as the fast one makes, which are numpy's and not what is tested."""
    rng = np.random.default_rng(seed)
    n = len(means)
    return [math.fsum(means[int(i)] for i in rng.integers(0, n, n)) / n for _ in range(resamples)]


def clustered_standard_error(values: Sequence[Sequence[float]], *, micro: bool = False) -> float:
    """Miller's sum over pairs inside of each cluster, of a mean in which a step weighs 1 / (tasks x steps of its task), for the
    micro average 1 / steps; with the correction for few clusters."""
    n, n_steps = len(values), sum(len(steps) for steps in values)
    weighted = [[(x, 1 / n_steps if micro else 1 / (n * len(steps))) for x in steps] for steps in values]
    middle = math.fsum(x * w for steps in weighted for x, w in steps)
    pairs = [
        w * (x - middle) * other_w * (other - middle)
        for steps in weighted
        for x, w in steps
        for other, other_w in steps
    ]
    return math.sqrt(max(0.0, math.fsum(pairs)) * n / (n - 1))


def steps_of_tasks(
    rng: np.random.Generator, mean: float, n_tasks: int, alike: float = 0.15, tokens: int = 1
) -> list[list[float]]:
    """What the steps of tasks of 3 to 15 steps earn: the share of right ones among 1 to `tokens` tries, mostly 1.

    Each task has a rate of its own, from a beta distribution that makes two tries of a task correlate by `alike`.
    """
    strength = (1 - alike) / alike if alike else 0.0
    rates = rng.beta(mean * strength, (1 - mean) * strength, n_tasks) if alike else np.full(n_tasks, mean)
    lengths = rng.integers(3, 16, n_tasks)
    tries = np.where(rng.random(lengths.sum()) < 0.7, 1, rng.integers(1, tokens + 1, lengths.sum()))
    earned = rng.binomial(tries, np.repeat(rates, lengths)) / tries
    return [[float(x) for x in steps] for steps in np.split(earned, np.cumsum(lengths)[:-1])]


def independent_trials(values: list[list[float]]) -> float:
    """The trials, right or wrong, of which a share has the clustered standard error of the macro average; at least the
    variance of independent steps, and one trial a task where tasks do not vary."""
    means = [sum(steps) / len(steps) for steps in values]
    macro, error = sum(means) / len(means), clustered_standard_error(values)
    if error < 1e-7:
        return _of_equal_tasks(values, macro)
    squares = sum(sum((x - macro) ** 2 for x in steps) / len(steps) for steps in values) / len(values)
    return macro * (1 - macro) / max(error**2, squares / sum(map(len, values)))


def _of_equal_tasks(values: list[list[float]], macro: float) -> float:
    squares = sum(sum((x - macro) ** 2 for x in steps) / len(steps) for steps in values) / len(values)
    return len(values) * (macro * (1 - macro) / squares if squares > 1e-12 else 1.0)


def degrees_of_freedom(values: list[list[float]]) -> float:
    """Satterthwaite's, of the variance of the tasks' means, from its own estimated variance."""
    means = [sum(steps) / len(steps) for steps in values]
    n, middle = len(means), sum(means) / len(means)
    second, fourth = (sum((x - middle) ** power for x in means) / n for power in (2, 4))
    if second < 1e-24:
        return n - 1
    # var(s2) = mu4 / n - sigma4 (n - 3) / (n (n - 1)), and df = 2 sigma4 / var(s2)
    of_variance = fourth / n - second**2 * (n - 3) / (n * (n - 1))
    return min(max(2 * second**2 / of_variance, 1), n - 1)
