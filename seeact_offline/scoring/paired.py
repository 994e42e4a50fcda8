"""Runs against each other on the same steps: differences paired by step and clustered by task. Pure functions of step
scores.

The first run is the baseline; a difference is always the other minus the baseline. docs/statistics.md says what each
figure means.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

import msgspec
import numpy as np

from seeact_offline.records import OPERATIONS, InputError, Metric, StepKey
from seeact_offline.scoring import aggregate, inference
from seeact_offline.scoring.comparison import SIGNIFICANT, BreakdownRow, Comparison, PairedDifference, Repeats, Variance
from seeact_offline.scoring.inference import Gap
from seeact_offline.scoring.metrics import STEP_FIELDS
from seeact_offline.scoring.noise import DifferenceNoise, difference_noise, figure_noise
from seeact_offline.scoring.overlap import FEWEST_RUNS, overlap
from seeact_offline.scoring.results import StepRow

_COMMIT = re.compile("@([0-9a-f]{40})$")
"""Ends the name of a data set of the hub."""


class DataName(NamedTuple):
    """Tells the data of a run from others."""

    fingerprint: str
    """Of the rows; empty: not known."""
    commit: str
    """Of the hub; empty for other data."""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> DataName:
        """The data of a run with these settings."""
        commit = _COMMIT.search(str(settings.get("dataset") or ""))
        return cls(str(settings.get("dataset_fingerprint") or ""), commit[1] if commit else "")

    def __str__(self) -> str:
        return f"{self.fingerprint} at commit {self.commit[:12]}" if self.commit else self.fingerprint


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A finished run, as far as it is compared."""

    name: str
    protocol: str
    steps: Mapping[StepKey, StepRow]
    """Steps that its protocol counts, in data set order."""
    n_not_run: int = 0
    """The number of `steps` that were never answered and earn 0."""
    complete: bool = True
    headline: Mapping[str, float] | None = None
    """Its figures by metric, as its own results give them."""
    identity: str = ""
    """The settings that its predictions depend on, without seed and order: runs that share them are repeats. Empty: not
    known."""
    origin: str = ""
    """Tells the run from all others, its seeds and orders too; a copy has the same. Empty: not known."""
    data: DataName | None = None
    """None: not known."""
    seeds: Sequence[ScoredRun] = ()
    """The runs of which it is the mean; empty for a run."""

    @property
    def identities(self) -> set[str]:
        """The different identities of its seeds."""
        return {seed.identity for seed in self.seeds}

    @property
    def is_repeated(self) -> bool:
        """True for the mean of runs that repeat each other."""
        return len(self.seeds) > 1 and len(self.identities) == 1 and "" not in self.identities


def pooled(name: str, runs: Sequence[ScoredRun], intersect: bool = False) -> ScoredRun:
    """The mean of several runs, such as seeds of one method: the credit of a step is its mean over them.

    `intersect`: drop steps that one of them lacks. Raises InputError for other protocols or steps, and for a run and
    its copy.
    """
    _check_protocols(runs)
    for first, second in itertools.combinations(runs, 2):
        if first.origin and first.origin == second.origin:
            sentence = f"{first.name} and {second.name} are the same run; name each run of a group once"
            raise InputError("runs", sentence=sentence)
    steps = {}
    for key in _shared_keys(runs, intersect):
        rows = [run.steps[key] for run in runs]
        values = {field: [getattr(row, field) for row in rows] for field in STEP_FIELDS.values()}
        means = {field: None if None in column else fmean(column) for field, column in values.items()}
        steps[key] = msgspec.structs.replace(rows[0], **means)
    return ScoredRun(
        name=name,
        protocol=runs[0].protocol,
        steps=steps,
        n_not_run=sum(run.n_not_run for run in runs),
        complete=all(run.complete for run in runs),
        seeds=runs,
    )


# --- kinds of steps ---


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One way of sorting steps."""

    label: Callable[[StepRow], str]
    order: Sequence[str] = ()
    """Labels in the order shown; others come after them, by name."""


UNKNOWN = "not known"


def _bands(field: str, ends: Sequence[int], *, zero_is_known: bool = False) -> Breakdown:
    """Bands of whole numbers, each from the end of the one before to its own."""
    starts = [0 if zero_is_known else 1, *(end + 1 for end in ends)]
    labels = [str(low) if low == high else f"{low}-{high}" for low, high in zip(starts, ends, strict=False)]
    labels.append(f"above {ends[-1]}")

    def label(step: StepRow) -> str:
        value = int(getattr(step, field))
        return UNKNOWN if value < starts[0] else labels[sum(value > end for end in ends)]

    return Breakdown(label, labels)


BREAKDOWNS = {
    "website": Breakdown(lambda step: step.website or UNKNOWN),
    "domain": Breakdown(lambda step: step.domain or UNKNOWN),
    "operation": Breakdown(lambda step: step.target.op or UNKNOWN, OPERATIONS),
    "difficulty": _bands("n_actions", (4, 9, 18)),
    "history": _bands("n_before", (0, 2, 5, 10), zero_is_known=True),
    "candidates": _bands("n_candidates", (100, 250, 500, 1000)),
}
"""Difficulty is the number of actions that the task lists; history, the actions before the step; candidates, the
elements that the page lists."""


# --- comparing ---


def compare_runs(
    runs: Sequence[ScoredRun], *, by: Sequence[str] = (), intersect: bool = False, detect: float = 5.0, seed: int = 0
) -> Comparison:
    """Compares each other run with the first, the baseline. `by`: names of BREAKDOWNS. `intersect`: drop steps that a
    run lacks.

    `detect`: points. Raises InputError for fewer than two runs, other protocols, other steps, or no step in common.

    >>> from seeact_offline.scoring.results import TargetEntry
    >>> def run(name, successes):
    ...     rows = [
    ...         StepRow(f"task {n}", "step", "success", 1.0, TargetEntry("CLICK"), element=1.0, success=success)
    ...         for n, success in enumerate(successes)
    ...     ]
    ...     return ScoredRun(name, "seeact", {row.key: row for row in rows})
    >>> compared = compare_runs([run("old", [0.0] * 8), run("new", [1.0] * 7 + [0.0])])
    >>> pair = next(pair for pair in compared.pairs if pair.metric == "step_success_rate")
    >>> pair.gap.macro, pair.gap.p, pair.second_better
    (0.875, 0.015625, 7)
    """
    _check(runs, by, detect)
    keys = _shared_keys(runs, intersect)
    table = _Table.of(runs, keys)
    of_seeds = {run.name: _Table.of(run.seeds, keys) for run in runs if run.seeds}
    repeated = _repeated(runs, table, of_seeds)
    otherwise = {
        run.name
        for run in runs
        for metric, value in (run.headline or {}).items()
        if metric in table.metrics and abs(table.macro(metric, run.name) - value) > 1e-9
    }
    together = None
    if len(runs) >= FEWEST_RUNS and not of_seeds:
        metric = "step_success_rate" if "step_success_rate" in table.metrics else "operation_f1"
        causes = {run.name: [run.steps[key].person_cause or run.steps[key].outcome for key in keys] for run in runs}
        together = overlap(metric, keys, table.credits[metric], causes, seed)
    return Comparison(
        protocol=runs[0].protocol,
        runs=table.names,
        n_tasks=table.n_tasks,
        n_steps=len(keys),
        dropped={run.name: len(run.steps) - len(keys) for run in runs},
        not_run={run.name: run.n_not_run for run in runs if run.n_not_run},
        incomplete=tuple(run.name for run in runs if not run.complete),
        data=of_different_data((member.data, member.name) for run in runs for member in (run.seeds or [run])),
        averaged_otherwise=tuple(name for name in table.names if name in otherwise),
        figures={
            metric: {name: table.metric_of(credit) for name, credit in column.items()}
            for metric, column in table.credits.items()
        },
        best={metric: table.best(metric) for metric in table.metrics},
        tied={metric: _tied(table, metric, seed) for metric in table.metrics},
        pairs=tuple(pair for metric in table.metrics for pair in _pairs(table, metric, detect, seed)),
        always_click=table.metric_of(table.clicks),
        over_always_click=table.gaps(table.credits["operation_f1"], table.clicks, seed),
        repeats=tuple(repeat for of_names, names in repeated for repeat in _repeats(of_names, names)),
        mixed=tuple(run.name for run in runs if len(run.identities) > 1),
        groups={name: seeds.names for name, seeds in of_seeds.items()},
        sd={metric: {name: seeds.sd(metric) for name, seeds in of_seeds.items()} for metric in table.metrics},
        breakdowns={name: _breakdown(table, BREAKDOWNS[name], seed) for name in by},
        detect=detect,
        seed=seed,
        noise=tuple(
            figure_noise(metric, tuple(names), _task_means(of_names, metric, names), detect / 100)
            for of_names, names in repeated
            for metric in of_names.metrics
            if of_names.n_tasks > 1
        ),
        difference_noise=_difference_noise(runs, of_seeds, detect),
        overlap=together,
    )


def _check(runs: Sequence[ScoredRun], by: Sequence[str], detect: float) -> None:
    if len(runs) < 2:
        raise InputError("runs", sentence="name two or more runs")
    _check_protocols(runs)
    unknown = [name for name in by if name not in BREAKDOWNS]
    if unknown:
        raise InputError("by", f"any of {', '.join(BREAKDOWNS)}", unknown[0])
    if not 0 < detect <= 100:
        raise InputError("detect", "points above 0, at most 100", str(detect))


def _check_protocols(runs: Sequence[ScoredRun]) -> None:
    if len({run.protocol for run in runs}) > 1:
        named = ", ".join(f"{run.name} under {run.protocol}" for run in runs)
        sentence = f"the runs are scored under several protocols ({named}); score RUN --protocol NAME scores one again"
        raise InputError("runs", sentence=sentence)


def of_different_data(runs: Iterable[tuple[DataName | None, str]]) -> dict[str, tuple[str, ...]]:
    """Data in words -> the runs over them, from pairs of data and run; empty where all are over the same, as far as is
    known.

    A folder has no commit, and holds what the hub does where the fingerprints are equal.
    """
    runs_of: dict[DataName, tuple[str, ...]] = {}
    for data, name in runs:
        if data is not None and data.fingerprint:
            runs_of[data] = (*runs_of.get(data, ()), name)
    commits = {data.commit for data in runs_of if data.commit}
    are_same = len({data.fingerprint for data in runs_of}) < 2 and len(commits) < 2
    return {} if are_same else {str(data): names for data, names in runs_of.items()}


def _shared_keys(runs: Sequence[ScoredRun], intersect: bool) -> list[StepKey]:
    """The steps of every run, in the order of the first. Raises InputError."""
    first, of_all = runs[0], set(runs[0].steps).intersection(*(run.steps for run in runs))
    shared = [key for key in first.steps if key in of_all]
    lacking = [run for run in runs if len(run.steps) > len(shared)]
    if lacking and not intersect:
        run = lacking[0]
        key = next(key for key in run.steps if key not in of_all)
        lacks = f"{run.name} has {len(run.steps) - len(shared)} of {len(run.steps)} steps that another run lacks"
        raise InputError("runs", sentence=f"{lacks}, such as {key}; `intersect` compares those that all have")
    if not shared:
        raise InputError("runs", "runs with steps in common", f"none in {first.name} and the others")
    return shared


@dataclass(frozen=True)
class _Table:
    """Credit of all runs at the steps compared."""

    names: tuple[str, ...]
    steps: Sequence[StepRow]
    """The steps of the first run."""
    task_of: np.ndarray
    """Shape (n_steps,): each step's task, numbered by first appearance."""
    credits: Mapping[str, Mapping[str, np.ndarray]]
    """Metric -> run -> shape (n_steps,). Metrics that some run lacks are left out."""

    @classmethod
    def of(cls, runs: Sequence[ScoredRun], keys: Sequence[StepKey]) -> _Table:
        steps = {run.name: [run.steps[key] for key in keys] for run in runs}
        columns = {
            metric: {name: [getattr(step, field) for step in rows] for name, rows in steps.items()}
            for metric, field in STEP_FIELDS.items()
        }
        credits = {
            metric: {name: np.array([float(value or 0) for value in values]) for name, values in column.items()}
            for metric, column in columns.items()
            if all(any(value is not None for value in values) for values in column.values())
        }
        task_of = aggregate.task_numbers(keys)
        return cls(tuple(steps), steps[runs[0].name], task_of, credits)

    def only(self, places: Sequence[int]) -> _Table:
        """These steps alone."""
        _, task_of = np.unique(self.task_of[places], return_inverse=True)
        credits = {m: {name: credit[places] for name, credit in column.items()} for m, column in self.credits.items()}
        return _Table(self.names, [self.steps[i] for i in places], task_of, credits)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self.credits)

    @property
    def n_tasks(self) -> int:
        return int(self.task_of.max()) + 1

    @property
    def clicks(self) -> np.ndarray:
        """Operation F1 of CLICK at every step, shape (n_steps,)."""
        return np.array([float(step.target.op == "CLICK") for step in self.steps])

    def credit(self, metric: str, name: str) -> np.ndarray:
        return self.credits[metric][name]

    def means(self, credit: np.ndarray) -> np.ndarray:
        """Each task's mean, shape (n_tasks,)."""
        return np.bincount(self.task_of, weights=credit) / np.bincount(self.task_of)

    def metric_of(self, credit: np.ndarray) -> Metric:
        return aggregate.metric(aggregate.by_task(self.steps, credit.tolist()))

    def macro(self, metric: str, name: str) -> float:
        return float(self.means(self.credit(metric, name)).mean())

    def sd(self, metric: str) -> float | None:
        """Sample standard deviation of the runs' macro averages; None for one run."""
        return stdev(self.macro(metric, name) for name in self.names) if len(self.names) > 1 else None

    def best(self, metric: str) -> str:
        """The first of the highest."""
        return max(self.names, key=lambda name: self.macro(metric, name))

    def gaps(self, credits: Mapping[str, np.ndarray], base: np.ndarray, seed: int) -> dict[str, Gap]:
        """Each credit minus the base."""
        means = [self.means(credit - base) for credit in credits.values()]
        return dict(zip(credits, inference.gaps(means, seed), strict=True))

    def gaps_of(self, metric: str, seed: int) -> dict[str, Gap]:
        """Each other run minus the first."""
        base, *others = self.names
        credits = self.credits[metric]
        return self.gaps({name: credits[name] for name in others}, credits[base], seed)


def _tied(table: _Table, metric: str, seed: int) -> tuple[str, ...]:
    """Adjusted for all pairs, because which run is the best was not known before."""
    best, means = table.best(metric), {name: table.means(table.credit(metric, name)) for name in table.names}
    pairs = list(itertools.combinations(table.names, 2))
    adjusted = inference.holm([inference.sign_flip_p(means[a] - means[b], seed) for a, b in pairs])
    alike = {frozenset(pair) for pair, p in zip(pairs, adjusted, strict=True) if p >= SIGNIFICANT}
    return tuple(name for name in table.names if name != best and frozenset((name, best)) in alike)


def _pairs(table: _Table, metric: str, detect: float, seed: int) -> list[PairedDifference]:
    gaps = table.gaps_of(metric, seed)
    adjusted = inference.holm([gap.p for gap in gaps.values()])
    return [_paired(table, metric, *named, p, detect) for named, p in zip(gaps.items(), adjusted, strict=True)]


def _paired(table: _Table, metric: str, name: str, gap: Gap, p_holm: float, detect: float) -> PairedDifference:
    base = table.names[0]
    steps = table.credit(metric, name) - table.credit(metric, base)
    tasks = table.means(steps)
    sd = float(np.std(tasks, ddof=1)) if len(tasks) > 1 else 0.0
    n_differ = int((np.abs(tasks) > inference.SAME).sum())
    shows_spread = n_differ >= inference.FEWEST_TASKS
    return PairedDifference(
        metric=metric,
        first=base,
        second=name,
        gap=gap,
        p_holm=p_holm,
        first_better=int((steps < -inference.SAME).sum()),
        second_better=int((steps > inference.SAME).sum()),
        same=int((np.abs(steps) <= inference.SAME).sum()),
        n_tasks_that_differ=n_differ,
        detectable=inference.detectable(sd, len(tasks)) if shows_spread else None,
        tasks_needed=inference.tasks_to_detect(sd, detect / 100) if shows_spread and sd > inference.SAME else None,
    )


def _breakdown(table: _Table, breakdown: Breakdown, seed: int) -> tuple[BreakdownRow, ...]:
    places: dict[str, list[int]] = {}
    for i, step in enumerate(table.steps):
        places.setdefault(breakdown.label(step), []).append(i)
    labels = [*(label for label in breakdown.order if label in places), *sorted(places.keys() - set(breakdown.order))]
    rows = []
    for label in labels:
        part = table.only(places[label])
        macros = {metric: {name: part.macro(metric, name) for name in part.names} for metric in part.metrics}
        gaps = {metric: part.gaps_of(metric, seed) for metric in part.metrics}
        rows.append(BreakdownRow(label, part.n_tasks, len(part.steps), macros, gaps))
    return tuple(rows)


# --- repeats ---


def _repeated(
    runs: Sequence[ScoredRun], table: _Table, of_seeds: Mapping[str, _Table]
) -> list[tuple[_Table, tuple[str, ...]]]:
    """The runs that repeat each other, by name, with the table that they stand in."""
    alike: dict[str, list[str]] = {}
    for run in runs:
        if run.identity:
            alike.setdefault(run.identity, []).append(run.name)
    return [
        *((table, tuple(names)) for names in alike.values() if len(names) > 1),
        *((of_seeds[run.name], of_seeds[run.name].names) for run in runs if run.is_repeated),
    ]


def _repeats(table: _Table, names: Sequence[str]) -> list[Repeats]:
    credits = {m: np.stack([column[name] for name in names], axis=1) for m, column in table.credits.items()}
    return [Repeats(m, tuple(names), split_variance(credit, table.task_of)) for m, credit in credits.items()]


def _task_means(table: _Table, metric: str, names: Sequence[str]) -> np.ndarray:
    """Shape (n_tasks, n_runs)."""
    return np.stack([table.means(table.credit(metric, name)) for name in names], axis=1)


def _difference_noise(
    groups: Sequence[ScoredRun], of_seeds: Mapping[str, _Table], detect: float
) -> tuple[DifferenceNoise, ...]:
    """Splits the variance of differences between groups of one method each, with two seeds or more."""
    repeated = [group.name for group in groups if group.is_repeated]
    base = groups[0].name
    if base not in repeated or of_seeds[base].n_tasks < 2:
        return ()
    ours = of_seeds[base]
    return tuple(
        difference_noise(
            metric, base, name, _task_means(ours, metric, ours.names),
            _task_means(of_seeds[name], metric, of_seeds[name].names), detect / 100,
        )
        for name in repeated[1:]
        for metric in ours.metrics
        if metric in of_seeds[name].metrics
    )  # fmt: skip


def split_variance(credit: np.ndarray, task_of: np.ndarray) -> Variance:
    """A nested analysis of variance: repeats in steps, steps in tasks.

    `credit`: shape (n_steps, n_repeats), two or more repeats; `task_of`: shape (n_steps,), numbers from 0. Each mean
    square less what the level below adds to it, at least 0. Source: Searle, Casella and McCulloch, Variance Components
    (1992), ch. 3.
    """
    n_steps, n_repeats = credit.shape
    sizes = np.bincount(task_of).astype(float)
    step_means = credit.mean(axis=1)
    task_means = np.bincount(task_of, weights=step_means) / sizes
    of_repeats = float(credit.var(axis=1, ddof=1).mean())
    within = float(((step_means - task_means[task_of]) ** 2).sum() / max(n_steps - len(sizes), 1))
    between = float((sizes * (task_means - step_means.mean()) ** 2).sum() / max(len(sizes) - 1, 1))
    # the size that tasks would have if they were all as long
    typical = (n_steps - float((sizes**2).sum()) / n_steps) / max(len(sizes) - 1, 1)
    of_tasks = (between - within) / typical if typical > 0 else 0.0
    return Variance(max(0.0, of_tasks), max(0.0, within - of_repeats / n_repeats), of_repeats)
