"""The 95 % intervals hold the truth in 94 of 100 splits and more, near 0 and 1 too, and never contradict p."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.frame import SEED, Line, timed

TASKS, MEANS, CORRELATIONS = (5, 14, 32, 100, 177), (0.01, 0.02, 0.05, 0.1, 0.4, 0.9, 0.98), (0.0, 0.2, 0.5)
KINDS = {"share": 1, "share, micro": 1, "Operation F1": 3}
"""Each kind of figure, and the tries of a step of which it earns the share that is right:
with one it is right or wrong."""
COMPARISONS = 10_000
LONGEST_PAIRED = 60
# as many as the cross_task split has
TYPICAL_TASKS = 177


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of intervals in one cell that hold the truth."""

    kind: str
    n_tasks: int
    mean: float
    correlation: float
    share: float


def measure(options: argparse.Namespace) -> list[Line]:
    """Simulates `options.splits` splits a cell, of tasks of 3 to 15 steps, and prints the table
    that docs/statistics.md sums up."""
    cells = list(itertools.product(KINDS, TASKS, MEANS, CORRELATIONS))
    with ProcessPoolExecutor() as pool:
        coverages = list(pool.map(_coverage, *zip(*cells, strict=True), itertools.repeat(options.splits)))
    _print_table(coverages)
    lowest = {kind: min(100 * cell.share for cell in coverages if cell.kind == kind) for kind in KINDS}
    return [
        *(Line(f"lowest coverage, {kind}", share, "%", at_least=90.5) for kind, share in lowest.items()),
        Line("median coverage", 100 * median(cell.share for cell in coverages), "%"),
        Line(f"cells below 94 %, of {len(cells)}", sum(cell.share < 0.94 for cell in coverages), ""),
        *_paired(),
    ]


def _coverage(kind: str, n_tasks: int, mean: float, correlation: float, splits: int) -> Coverage:
    from seeact_offline.scoring import aggregate
    from tests.reference.statistics import steps_of_tasks

    rng, held = np.random.default_rng((SEED, n_tasks)), 0
    for _ in range(splits):
        steps = steps_of_tasks(rng, mean, n_tasks, correlation, KINDS[kind])
        values = {str(task): earned for task, earned in enumerate(steps)}
        figure = aggregate.micro_interval(values) if "micro" in kind else aggregate.metric(values)
        low, high = figure.ci95
        held += low <= mean <= high
    return Coverage(kind, n_tasks, mean, correlation, held / splits)


def _print_table(coverages: list[Coverage]) -> None:
    columns = list(itertools.product(MEANS, CORRELATIONS))
    print("| figure | tasks |", *(f"{100 * mean:g} %, {correlation:g} |" for mean, correlation in columns))
    print("|---" * (2 + len(columns)) + "|")
    for kind, n_tasks in itertools.product(KINDS, TASKS):
        cells = [
            f"{100 * coverage.share:.1f}"
            for coverage in coverages
            if (coverage.kind, coverage.n_tasks) == (kind, n_tasks)
        ]
        print(f"| {kind} | {n_tasks} | " + " | ".join(cells) + " |")


# --- intervals of differences ---


def _paired() -> list[Line]:
    from seeact_offline.scoring import inference

    held = contradictions = 0
    for shift, differences in _comparisons():
        gap = inference.gaps([differences], SEED)[0]
        assert gap.ci95 is not None
        low, high = gap.ci95
        contradictions += (gap.p < 0.05) != (low > 0 or high < 0)
        held += low <= shift <= high
    typical = np.random.default_rng(SEED).normal(0.1, 0.4, TYPICAL_TASKS)
    took = min(timed(lambda: inference.sign_flip_intervals([typical], SEED)[0]).wall_s for _ in range(10))
    return [
        Line(f"contradictions of p and interval in {COMPARISONS}", contradictions, "", at_most=1),
        Line(f"paired intervals that hold the truth, of {COMPARISONS}", 100 * held / COMPARISONS, "%", 92.5, 98.5),
        Line(f"the paired interval of {TYPICAL_TASKS} tasks, best of 10", 1000 * took, "ms", at_most=16),
    ]


def _comparisons() -> Iterator[tuple[float, np.ndarray]]:
    """The true difference, and the differences of 6 to LONGEST_PAIRED tasks."""
    from seeact_offline.scoring import aggregate
    from tests.reference.statistics import steps_of_tasks

    rng = np.random.default_rng(SEED)
    for _ in range(COMPARISONS):
        n_tasks = int(rng.integers(6, LONGEST_PAIRED + 1))
        first, second = rng.choice([0.2, 0.3, 0.4, 0.6], 2)
        ours, theirs = (
            aggregate.task_means(steps_of_tasks(rng, mean, n_tasks, 0.2, int(rng.choice([1, 3]))))
            for mean in (first, second)
        )
        yield float(first - second), ours - theirs
