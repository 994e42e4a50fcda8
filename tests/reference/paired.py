"""Paired comparisons the long way: every pattern of signs, and every difference that they might not reject."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def macro(tasks: Sequence[Sequence[float]]) -> float:
    return mean([mean(steps) for steps in tasks])


def sign_flip_p(differences: Sequence[float]) -> float:
    """Every pattern of signs, one by one, over all tasks."""
    found = abs(math.fsum(differences))
    patterns = list(itertools.product((-1, 1), repeat=len(differences)))
    as_far = [
        abs(math.fsum(s * d for s, d in zip(signs, differences, strict=True))) >= found - 1e-9 for signs in patterns
    ]
    return sum(as_far) / len(patterns)


def interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """The smallest and largest mean that is not rejected once it is taken off every task, of all at which p can change."""
    sets = itertools.chain.from_iterable(itertools.combinations(differences, n) for n in range(1, len(differences) + 1))
    held = [x for x in {mean(one) for one in sets} if sign_flip_p([d - x for d in differences]) >= 0.05]
    far = max(map(abs, differences)) + 1
    if sign_flip_p([d - far for d in differences]) >= 0.05:
        return None
    return min(held), max(held)


def holm(p_values: Sequence[float]) -> list[float]:
    """The smallest level at which Holm's steps reject each, found by walking down for every one anew."""
    return [
        min(1.0, max((sum(q >= other for q in p_values)) * other for other in p_values if other <= p)) for p in p_values
    ]


def crossed_parts(table: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Variances of tasks, seeds and the rest, from a table of a row a task and a column a seed, sum by sum."""
    n_tasks, n_seeds = len(table), len(table[0])
    grand = mean([x for row in table for x in row])
    columns = [[row[seed] for row in table] for seed in range(n_seeds)]
    ms_task = n_seeds * sum((mean(row) - grand) ** 2 for row in table) / (n_tasks - 1)
    ms_seed = n_tasks * sum((mean(column) - grand) ** 2 for column in columns) / (n_seeds - 1)
    total = sum((x - grand) ** 2 for row in table for x in row)
    ms_rest = (total - (n_tasks - 1) * ms_task - (n_seeds - 1) * ms_seed) / ((n_tasks - 1) * (n_seeds - 1))
    return max(0.0, (ms_task - ms_rest) / n_seeds), max(0.0, (ms_seed - ms_rest) / n_tasks), ms_rest


def variance_parts(tasks: Sequence[Sequence[Sequence[float]]]) -> tuple[float, float, float]:
    """Of tasks of equally many steps of equally many repeats, from the textbook's table of mean squares."""
    n_tasks, n_steps, n_repeats = len(tasks), len(tasks[0]), len(tasks[0][0])
    step_means = [[mean(step) for step in task] for task in tasks]
    task_means = [mean(task) for task in step_means]
    grand = mean(task_means)
    ms_task = n_steps * n_repeats * sum((m - grand) ** 2 for m in task_means) / (n_tasks - 1)
    ms_step = (
        n_repeats
        * sum((s - m) ** 2 for task, m in zip(step_means, task_means, strict=True) for s in task)
        / (n_tasks * (n_steps - 1))
    )
    ms_repeat = sum(
        (x - s) ** 2
        for task, means in zip(tasks, step_means, strict=True)
        for step, s in zip(task, means, strict=True)
        for x in step
    ) / (n_tasks * n_steps * (n_repeats - 1))
    return (
        max(0.0, (ms_task - ms_step) / (n_steps * n_repeats)),
        max(0.0, (ms_step - ms_repeat) / n_repeats),
        ms_repeat,
    )
