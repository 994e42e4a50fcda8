"""Steps that several runs solve, one alone solves, and none solves: pure functions of arrays.

A step is solved where it earns the whole credit. The union holds the steps that any run solves: no way of choosing a
run for each step beforehand (a router) solves more. docs/statistics.md says what each figure means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seeact_offline.records import Metric, StepKey
from seeact_offline.scoring import aggregate, inference
from seeact_offline.scoring.agreement import Kappa, fleiss_columns, fleiss_of_sums, pairwise_kappas, percentiles
from seeact_offline.scoring.inference import Gap

FEWEST_RUNS = 3
"""Runs from which on their overlap is counted: of two, the ties of `compare` say the same."""


@dataclass(frozen=True, slots=True)
class SolverCount:
    """Steps that a number of runs solve."""

    runs: int
    steps: int


@dataclass(frozen=True, slots=True)
class UnsolvedStep:
    """A step that no run solves."""

    step: StepKey
    causes: tuple[str, ...]
    """The cause of loss in each run, in the order of the runs; a person's counts instead of the computed one."""


@dataclass(frozen=True, slots=True)
class UnsolvedCause:
    """One cause of loss over the steps that no run solves."""

    cause: str
    by_run: Mapping[str, int]
    """Run -> such steps that it loses by this cause."""
    shared: int
    """Such steps that every run loses by this cause."""


@dataclass(frozen=True, slots=True)
class RunPair:
    """Two runs over the same steps."""

    first: str
    second: str
    gap: Gap
    """The second minus the first, in the metric of the overlap."""
    p_holm: float
    """Adjusted for all pairs of runs."""
    only_first: int
    """Steps that the first solves and the second does not."""
    only_second: int
    both: int
    neither: int
    kappa: Kappa
    """Cohen's, of failing: None where chance alone makes all outcomes the same."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """The steps that runs solve together, alone and not at all."""

    metric: str
    """The metric whose whole credit solves a step."""
    solved_by: tuple[SolverCount, ...]
    """From no run to all of them."""
    solved: Mapping[str, int]
    """Run -> steps that it solves."""
    alone: Mapping[str, tuple[StepKey, ...]]
    """Run -> steps that it solves and no other does."""
    unsolved: tuple[UnsolvedStep, ...]
    causes: tuple[UnsolvedCause, ...]
    """Causes of the unsolved steps, the most frequent first."""
    union: Metric
    """The share of steps that some run solves: the bound of a perfect router."""
    kappa: Kappa
    """Fleiss', of failing, over all runs."""
    pairs: tuple[RunPair, ...]


def overlap(
    metric: str,
    keys: Sequence[StepKey],
    credits: Mapping[str, np.ndarray],
    causes: Mapping[str, Sequence[str]],
    seed: int,
) -> Overlap:
    """`credits`: run -> shape (n_steps,), from 0 to 1. `causes`: run -> the cause of loss of each step. Steps are
    clustered by task."""
    names = tuple(credits)
    credit = np.stack([credits[name] for name in names], axis=1)
    solved = credit >= 1 - inference.SAME
    n_solvers = solved.sum(axis=1)
    counts = np.bincount(n_solvers, minlength=len(names) + 1)
    unsolved = [
        UnsolvedStep(keys[row], tuple(causes[name][row] for name in names))
        for row in np.flatnonzero(n_solvers == 0).tolist()
    ]
    task_of = aggregate.task_numbers(keys)
    votes = np.stack([n_solvers, len(names) - n_solvers], axis=1).astype(float)
    sums = _by_task(fleiss_columns(votes), task_of)
    whole = sums.sum(axis=0)[None]
    kappa = float(fleiss_of_sums(whole)[0])
    ci95 = percentiles(fleiss_of_sums(inference.resampled(sums, seed))) if len(sums) > 1 else None
    return Overlap(
        metric=metric,
        solved_by=tuple(SolverCount(k, int(steps)) for k, steps in enumerate(counts)),
        solved={name: int(solved[:, column].sum()) for column, name in enumerate(names)},
        alone={
            name: tuple(keys[row] for row in np.flatnonzero((n_solvers == 1) & solved[:, column]).tolist())
            for column, name in enumerate(names)
        },
        unsolved=tuple(unsolved),
        causes=_causes(names, unsolved),
        union=aggregate.metric(aggregate.by_task(keys, (n_solvers > 0).astype(float).tolist())),
        kappa=Kappa(float(whole[0, 1] / whole[0, 0]), None if np.isnan(kappa) else kappa, ci95),
        pairs=_pairs(names, credit, solved, task_of, seed),
    )


def _causes(names: Sequence[str], unsolved: Sequence[UnsolvedStep]) -> tuple[UnsolvedCause, ...]:
    of_runs = [Counter(of_run) for of_run in zip(*(step.causes for step in unsolved), strict=True)]
    of_all = Counter(step.causes[0] for step in unsolved if len({*step.causes}) == 1)
    counts = sum(of_runs, Counter[str]())
    return tuple(
        UnsolvedCause(cause, {name: of[cause] for name, of in zip(names, of_runs, strict=True)}, of_all[cause])
        for cause in sorted(counts, key=lambda cause: (-counts[cause], cause))
    )


def _by_task(columns: np.ndarray, task_of: np.ndarray) -> np.ndarray:
    """The rows of each task, summed: shape (n_tasks, columns)."""
    sums = np.zeros((int(task_of.max()) + 1, columns.shape[1]))
    np.add.at(sums, task_of, columns)
    return sums


def _pairs(
    names: Sequence[str], credit: np.ndarray, solved: np.ndarray, task_of: np.ndarray, seed: int
) -> tuple[RunPair, ...]:
    means = _by_task(credit, task_of) / np.bincount(task_of)[:, None]
    kappas = pairwise_kappas(~solved, task_of, seed)
    gaps = inference.gaps([means[:, b] - means[:, a] for a, b in kappas], seed)
    adjusted = inference.holm([gap.p for gap in gaps])
    pairs = []
    for ((a, b), kappa), gap, p_holm in zip(kappas.items(), gaps, adjusted, strict=True):
        first, second = solved[:, a], solved[:, b]
        both, neither = int((first & second).sum()), int((~first & ~second).sum())
        only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
        pairs.append(RunPair(names[a], names[b], gap, p_holm, only_first, only_second, both, neither, kappa))
    return tuple(pairs)
