"""Averages and intervals over tasks: pure functions of step scores. Steps are always clustered by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TypeVar

import numpy as np

from seeact_offline.records import KeyedRow, Metric, Prediction, StepKey, StepScore, Summary, Usage
from seeact_offline.scoring import inference, metrics

RECALL_AT = (1, 3, 5, 10, 20, 50)
_NOTHING = Metric(0.0, 0.0, (0.0, 1.0))
"""A figure over no tasks."""
NONE_MISSING: Mapping[str, int] = {}
Average = Callable[[Sequence[float]], Metric]
"""Averages values, one a step in data set order, into one figure."""
T = TypeVar("T")


def summarise(
    scores: Sequence[StepScore],
    predictions: Sequence[Prediction],
    top_k: int | None,
    average: Average,
    missing: Mapping[str, int] = NONE_MISSING,
) -> Summary:
    """A run's results from its step scores and predictions, both in data set order. `top_k`: None if nothing is ranked.

    `missing`: as for `task_success`.
    """
    tasks = by_task([score.key for score in scores], scores)
    # some groundings rank no candidates; where no step ran, that is not known
    ran, ranked = any(p.ran for p in predictions), any(p.ranked for p in predictions)
    has_ranks = ranked or any(s.best_rank is not None for s in scores) or not ran
    notes: Counter[str] = Counter()
    for prediction in predictions:
        notes.update(prediction.notes)
    return Summary(
        n_tasks=len(tasks),
        n_steps=len(scores),
        element_accuracy=average_where_known([s.element for s in scores], average, empty=_NOTHING),
        operation_f1=average([s.operation_f1 or 0.0 for s in scores]),
        step_success_rate=average_where_known([s.success for s in scores], average, empty=_NOTHING),
        task_success_rate={f"offline{n}": task_success(tasks, n, missing) for n in (0, 1)},
        recall_at_k={
            str(k): metrics.recall_at_k([s.best_rank for s in scores], k) if has_ranks and k <= (top_k or 0) else None
            for k in RECALL_AT
        },
        waterfall=Counter(s.outcome for s in scores),
        usage=sum((p.usage for p in predictions), Usage()),
        failures=Counter(p.failure for p in predictions if p.failure),
        reply_failures=Counter(g.failure for p in predictions for g in p.groups if g.failure),
        ceiling=average_where_known([s.reachable for s in scores], average),
        notes=dict(notes),
        point_accuracy=average_where_known([s.point for s in scores], average),
    )


def average_where_known(values: Sequence[float | None], average: Average, empty: Metric | None = None) -> Metric | None:
    """A figure that not every run has: None if no step has it, else over all steps, where those without it count 0.

    `empty` is the answer if there are no steps at all.
    """
    if not values:
        return empty
    if all(value is None for value in values):
        return None
    return average([float(value or 0) for value in values])


def by_task(steps: Sequence[StepKey | KeyedRow], values: Sequence[T]) -> dict[str, list[T]]:
    """Values of steps by task (`annotation_id`), tasks by first appearance: the one definition of the clusters."""
    tasks: dict[str, list[T]] = {}
    for step, value in zip(steps, values, strict=True):
        tasks.setdefault(step.annotation_id, []).append(value)
    return tasks


def task_numbers(keys: Sequence[StepKey]) -> np.ndarray:
    """The task of each step, numbered by first appearance: shape (n_steps,)."""
    task_of = np.empty(len(keys), dtype=int)
    for number, places in enumerate(by_task(keys, range(len(keys))).values()):
        task_of[places] = number
    return task_of


def metric(values: Mapping[str, Sequence[float]]) -> Metric:
    """Macro and micro average of one figure, given as task -> values of its steps; the interval is that of the macro
    average.

    Without tasks everything is 0.

    >>> of_two_tasks = metric({"book a flight": [1, 1, 0, 0], "rent a car": [1]})
    >>> of_two_tasks.macro, of_two_tasks.micro
    (0.75, 0.6)
    >>> low, high = metric({f"task {n}": [n % 2, 1] for n in range(40)}).ci95
    >>> round(low, 2), round(high, 2)
    (0.64, 0.84)
    """
    if not values:
        return _NOTHING
    steps, task_of, sizes = _columns(values.values())
    sums = np.bincount(task_of, weights=steps)
    means, micro = sums / sizes, inference.total(sums.tolist()) / len(steps)
    macro = float(means.mean())
    spread = float((np.bincount(task_of, weights=(steps - macro) ** 2) / sizes).mean())
    return Metric(macro, micro, **asdict(inference.interval(macro, means, spread, len(steps))))


def micro_interval(values: Mapping[str, Sequence[float]]) -> inference.Interval:
    """The interval of the micro average, the mean over steps, clustered by task. `values`: task -> values of its
    steps."""
    if not values:
        return inference.Interval((0.0, 1.0))
    steps, task_of, sizes = _columns(values.values())
    micro = float(steps.mean())
    added = (np.bincount(task_of, weights=steps) - micro * sizes) / len(steps)
    spread = float(((steps - micro) ** 2).mean())
    return inference.interval(micro, inference.linearised(micro, added), spread, len(steps))


def task_means(tasks: Collection[Sequence[float]]) -> np.ndarray:
    """Each task's mean, shape (n_tasks,), from the values of its steps."""
    steps, task_of, sizes = _columns(tasks)
    means: np.ndarray = np.bincount(task_of, weights=steps) / sizes
    return means


def _columns(tasks: Collection[Sequence[float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of all steps, the task of each, numbered from 0, and the number of steps of each task."""
    sizes = np.array([len(steps) for steps in tasks], dtype=int)
    steps = np.fromiter(chain.from_iterable(tasks), dtype=float, count=int(sizes.sum()))
    return steps, np.repeat(np.arange(len(sizes)), sizes), sizes


def task_success(
    tasks: Mapping[str, Sequence[StepScore]], allowed_failures: int, missing: Mapping[str, int] = NONE_MISSING
) -> float | None:
    """Share of tasks with at most this many failing steps (SeeAct's Offline 0 and Offline 1).

    `missing`: task -> its actions without a row, where a protocol counts them as failures. None if steps have no
    success, as in runs that ask for no element.
    """
    if not tasks:
        return 0.0
    if all(s.success is None for steps in tasks.values() for s in steps):
        return None
    failures = [missing.get(task, 0) + sum(1 - (s.success or 0) for s in steps) for task, steps in tasks.items()]
    done = [n <= allowed_failures for n in failures]
    return sum(done) / len(done)
