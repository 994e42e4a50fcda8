"""Averages by a protocol's rules: the mean of groups' means, over tasks or over operations, padded to a task's
length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from seeact_offline.records import Metric, Truth
from seeact_offline.scoring import aggregate, inference


class Averages(NamedTuple):
    """One figure without its interval."""

    macro: float
    """Mean of the groups' means; 0 without any."""
    micro: float
    """Mean over steps, or over their entries."""


class Averaging:
    """Averages figures of the same steps. Values are one a step, in the order of `truths`."""

    def __init__(
        self,
        truths: Sequence[Truth],
        group: Callable[[Truth], str | None],
        length: Callable[[Truth], int],
        n_entries: Callable[[Truth], int] | None = None,
    ) -> None:
        """`group`: in which a step is averaged, None for none. `length`: actions that a task has, from its last row;
        each one without a row counts 0 and belongs to the group of that row. `n_entries`: how often a step enters the
        averages; None: once."""
        names = [truth.annotation_id for truth in truths]
        lasts, sizes = dict(zip(names, truths, strict=True)), Counter(names)
        self.missing = {task: max(0, length(last) - sizes[task]) for task, last in lasts.items()}
        """Task -> its actions without a row, where `length` counts them."""
        self._n_entries = 1 if n_entries is None else np.array([n_entries(truth) for truth in truths], dtype=int)
        entries = np.repeat(np.array(truths, dtype=object), self._n_entries).tolist()
        padded = [*entries, *(last for task, last in lasts.items() for _ in range(self.missing[task]))]
        self._n_missing = len(padded) - len(entries)
        self._tasks, self._n_tasks = _numbered([truth.annotation_id for truth in padded])
        self._by_task = np.argsort(self._tasks, kind="stable")
        self._names = list(lasts)
        self._groups, self._n_groups = _numbered([group(truth) for truth in padded])
        self._sizes = _sums(self._groups, np.ones(len(padded)), self._n_groups)

    def points(self, values: Sequence[float] | np.ndarray) -> Averages:
        """The figure alone, which is linear in the values."""
        padded = self._with_missing(values)
        if not len(padded):
            return Averages(0.0, 0.0)
        means = self._means(padded)
        return Averages(float(means.mean()) if len(means) else 0.0, float(padded.sum() / len(padded)))

    def metric(self, values: Sequence[float] | np.ndarray) -> Metric:
        """The figure with the intervals of both its averages, clustered by task whatever the groups."""
        padded = self._with_missing(values)
        ordered = padded[self._by_task].tolist()
        ends = np.cumsum(np.bincount(self._tasks, minlength=self._n_tasks)).tolist()
        tasks = {name: ordered[begin:end] for name, begin, end in zip(self._names, [0, *ends], ends, strict=False)}
        of_micro = aggregate.micro_interval(tasks)
        if np.array_equal(self._groups, self._tasks):
            return replace(aggregate.metric(tasks), micro_ci95=of_micro.ci95, micro_se=of_micro.se)
        points = self.points(values)
        spread = float(self._means((padded - points.macro) ** 2).mean()) if self._n_groups else 0.0
        grouped = self._groups >= 0
        group = self._groups[grouped]
        gaps = (padded[grouped] - self._means(padded)[group]) / (self._sizes[group] * max(self._n_groups, 1))
        by_task = inference.linearised(points.macro, _sums(self._tasks[grouped], gaps, self._n_tasks))
        of_macro = inference.interval(points.macro, by_task, spread, len(padded))
        return Metric(*points, **asdict(of_macro), micro_ci95=of_micro.ci95, micro_se=of_micro.se)

    def _means(self, padded: np.ndarray) -> np.ndarray:
        """Each group's mean, shape (n_groups,)."""
        means: np.ndarray = _sums(self._groups, padded, self._n_groups) / self._sizes
        return means

    def _with_missing(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        entries = np.repeat(np.asarray(values, dtype=float), self._n_entries)
        return np.concatenate([entries, np.zeros(self._n_missing)])


def _numbered(names: Sequence[str | None]) -> tuple[np.ndarray, int]:
    """The number of each name, by first appearance (-1: None), and how many names there are."""
    numbers: dict[str, int] = {}
    codes = [-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names]
    return np.array(codes, dtype=int), len(numbers)


def _sums(numbers: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """The sum of the values of each number, shape (n,); those numbered -1 are in none."""
    return np.bincount(numbers + 1, weights=values, minlength=n + 1)[1:]
