"""Figures of finished runs and of some of their steps, as tables and pictures draw them: pure functions of
`results.json` and `steps.jsonl`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from seeact_offline.records import InputError, Metric, StepKey, Usage
from seeact_offline.scoring import aggregate, inference
from seeact_offline.scoring.metrics import METRICS, STEP_FIELDS, recall_at_k
from seeact_offline.scoring.paired import UNKNOWN
from seeact_offline.scoring.protocols import PROTOCOLS, Protocol, headline
from seeact_offline.scoring.results import ELEMENT_RULES, Results, ResultsFigure, StepRow
from seeact_offline.scoring.waterfall import LEFT_OUT, NOT_RUN, is_unreadable

AVERAGED: Mapping[str, str] = {**STEP_FIELDS, "ceiling": "reachable"}
"""Figure -> the field of a step that it averages. The readings of the element have none."""
OFFLINE = ("offline0", "offline1")
"""Shares of whole tasks with no failing step, and with at most one: the place of each is the number of steps that may
fail."""
RECALL_AT: Mapping[str, int] = {"recall_at_10": 10, "recall_at_20": 20}
"""Figures of a ranking besides its ceiling, and their depths."""
# the first three are the bands of the paper's Figure 3
BANDS: Mapping[str, tuple[int, int | None]] = {"1-4": (1, 4), "5-9": (5, 9), "10-18": (10, 18), "above 18": (19, None)}
"""Bands of the difficulty of a task, the number of actions that it takes: from and to."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of one cell, as fractions."""

    macro: float
    micro: float
    average: str
    """The average that the protocol quotes, and of it:"""
    value: float
    ci95: tuple[float, float] | None
    se: float | None
    method: str
    """The method of the interval."""
    sd: float | None = None
    """Sample standard deviation over runs that differ in their seed; None for one run."""
    n_runs: int = 1


@dataclass(frozen=True)
class RunScores:
    """The scores of a finished run, and figures of all or some of its steps."""

    name: str
    """Its path as a table names it."""
    results: Results
    settings: Mapping[str, Any]
    """The settings of its manifest, with the protocol of its results."""
    steps: Sequence[StepRow]
    """All steps, also those that its protocol leaves out."""

    @cached_property
    def counted(self) -> list[StepRow]:
        """The steps that count."""
        return [step for step in self.steps if step.outcome != LEFT_OUT]

    @cached_property
    def keys(self) -> frozenset[StepKey]:
        """The keys of the steps that count."""
        return frozenset(step.key for step in self.counted)

    @cached_property
    def failing_steps(self) -> dict[str, float]:
        """Each task's steps that fail, with its actions that the protocol counts as failed without a row: none is
        Offline 0."""
        missing = self.protocol.averaging([step.truth for step in self.counted]).missing
        tasks = aggregate.by_task(self.counted, self.counted)
        return {task: missing[task] + sum(1 - (step.success or 0.0) for step in steps) for task, steps in tasks.items()}

    @property
    def protocol(self) -> Protocol:
        """The default one where it is not known."""
        return PROTOCOLS.get(self.results.protocol, PROTOCOLS["seeact"])

    @property
    def method(self) -> str:
        return f"{self.results.grounding}, {self.results.model}"

    def average(self, metric: str) -> str:
        """The average that its protocol quotes."""
        figure = getattr(self.results, metric)
        return (figure and figure.quoted) or self.protocol.average_of(metric)

    def figure(self, metric: str) -> Figure | None:
        """A metric of the run's results, its ceiling or one of ELEMENT_RULES; None where the run has none."""
        if metric in ELEMENT_RULES:
            return self._quoted("element_accuracy", self.results.element_by_rule.get(metric))
        return self._quoted(metric, getattr(self.results, metric))

    def figure_over(self, steps: Sequence[StepRow], metric: str) -> Figure | None:
        """The metric over those of these steps that count, averaged as the protocol does.

        Raises InputError for a protocol from outside the package, whose rules of averaging are not at hand.
        """
        figure = getattr(self.results, metric)
        if figure is None:
            return None
        if figure.quoted and self.results.protocol not in PROTOCOLS:
            expected = "runs scored by a protocol of this package, to average some of their steps"
            raise InputError("runs", expected, f"{self.name}, by {self.results.protocol}")
        counted = [step for step in steps if step.outcome != LEFT_OUT]
        return self.figure_of(counted, [getattr(step, AVERAGED[metric]) or 0.0 for step in counted], metric)

    def figure_of(self, steps: Sequence[StepRow], values: Sequence[float], metric: str) -> Figure | None:
        """The average of these values of steps, as the protocol, which is one of this package, averages the metric."""
        average = self.protocol.averaging_of_f1 if metric == "operation_f1" else self.protocol.averaging
        return self._quoted(metric, average([step.truth for step in steps]).metric(values))

    def _quoted(self, metric: str, averages: Metric | None) -> Figure | None:
        if averages is None:
            return None
        named = averages.named if isinstance(averages, ResultsFigure) else asdict(averages)
        quoted = headline(self.results.protocol, metric, named)
        return Figure(averages.macro, averages.micro, **quoted, method=averages.method)


# --- methods ---


@dataclass(frozen=True, slots=True)
class MethodFigures:
    """A method on a split, or on one website or domain of it, or on all splits together."""

    run_names: Sequence[str]
    """Several where they differ in their seed alone, and one a split where splits are pooled."""
    figures: Mapping[str, Figure | None]
    """Metric -> its figure; None where it is not known."""
    n_tasks: int
    n_steps: int
    not_run: int
    """Steps that were not run, over all its runs."""
    left_out: int

    @property
    def n_seeds(self) -> int:
        return max((figure.n_runs for figure in self.figures.values() if figure is not None), default=1)


def split_figures(runs: Sequence[RunScores], metrics: Sequence[str]) -> MethodFigures:
    """The figures of a method on a split, the mean of runs that differ in their seed alone."""
    figures = {name: _over_seeds([run.figure(name) for run in runs], _over_tasks(runs, name)) for name in metrics}
    return MethodFigures([run.name for run in runs], figures, **_sizes(runs[:1], runs))


def part_figures(runs: Sequence[RunScores], metrics: Sequence[str], by: str) -> dict[str, MethodFigures]:
    """`split_figures` of the steps of each website or domain, by its name. `by`: the field of a step that names it.

    Raises InputError as `RunScores.figure_over`.
    """
    by_part = {}
    for group in sorted({getattr(step, by) or UNKNOWN for step in runs[0].steps}):
        parts = [[step for step in run.steps if (getattr(step, by) or UNKNOWN) == group] for run in runs]
        figures = {
            name: _over_seeds(
                [run.figure_over(part, name) for run, part in zip(runs, parts, strict=True)],
                _over_tasks(runs, name, parts),
            )
            for name in metrics
        }
        counted = [step for step in parts[0] if step.outcome != LEFT_OUT]
        by_part[group] = MethodFigures(
            [run.name for run in runs],
            figures,
            n_tasks=len({step.annotation_id for step in counted}),
            n_steps=len(counted),
            not_run=sum(step.outcome in NOT_RUN for part in parts for step in part),
            left_out=len(parts[0]) - len(counted),
        )
    return by_part


def pooled_figures(runs: Sequence[RunScores]) -> MethodFigures:
    """Whole tasks of all splits together, each task counting the same. Raises InputError for splits of other seeds."""
    by_seed: dict[Any, list[RunScores]] = defaultdict(list)
    for run in runs:
        by_seed[run.settings.get("seed")].append(run)
    first, *others = by_seed.values()
    for other in others:
        if [run.results.split for run in other] != [run.results.split for run in first]:
            raise InputError(
                "runs", "runs of the same seeds on every split of a row", f"other seeds of {other[0].method}"
            )
    sizes = _sizes(first, runs)
    figures = {
        name: _over_seeds(
            [_share_done(of_seed, name, sizes["n_tasks"]) for of_seed in by_seed.values()], _tasks_done(runs, allowed)
        )
        for allowed, name in enumerate(OFFLINE)
    }
    return MethodFigures([run.name for run in runs], figures, **sizes)


def share_of_tasks(share: float, n_tasks: int) -> Figure:
    """A share of at least one task, with Wilson's interval.

    >>> half = share_of_tasks(0.5, 40)
    >>> half.method, [round(end, 3) for end in half.ci95]
    ('wilson', [0.352, 0.648])
    """
    se = (share * (1 - share) / n_tasks) ** 0.5
    return Figure(share, share, "share of tasks", share, inference.wilson(share, n_tasks), se, "wilson")


def _sizes(runs: Sequence[RunScores], of_all_seeds: Sequence[RunScores]) -> dict[str, int]:
    return {
        "n_tasks": sum(run.results.n_tasks for run in runs),
        "n_steps": sum(run.results.n_steps for run in runs),
        "not_run": sum(run.results.n_not_run for run in of_all_seeds),
        "left_out": sum(run.results.left_out for run in runs),
    }


def _over_seeds(figures: Sequence[Figure | None], of_means: Figure | Metric | None) -> Figure | None:
    """The mean, with the sample standard deviation and the number of runs, where there are several.

    `of_means`: the figure of the steps' or tasks' means over seeds, which has the interval; None where it is not known.
    """
    of_seeds = [figure for figure in figures if figure is not None]
    if len(of_seeds) < 2 or len(of_seeds) < len(figures):
        return figures[0] if len(figures) == 1 else None
    macro, micro, value = (fmean(getattr(figure, name) for figure in of_seeds) for name in ("macro", "micro", "value"))
    sd = stdev(figure.value for figure in of_seeds)
    means = replace(of_seeds[0], macro=macro, micro=micro, value=value, sd=sd, n_runs=len(of_seeds))
    if of_means is None:
        return replace(means, ci95=None, se=None)
    return replace(means, ci95=of_means.ci95, se=of_means.se, method=of_means.method)


def _over_tasks(
    runs: Sequence[RunScores], name: str, parts: Sequence[Sequence[StepRow]] | None = None
) -> Figure | None:
    """The figure of the means over seeds of each step of `parts`, of each run (all steps by default).

    None for one run, for a protocol whose rules of averaging are not at hand, and for a figure that steps do not have.
    """
    field = AVERAGED.get(name)
    if len(runs) < 2 or field is None or runs[0].results.protocol not in PROTOCOLS:
        return None
    counted = [step for part in parts or [run.steps for run in runs] for step in part if step.outcome != LEFT_OUT]
    if all(getattr(step, field) is None for step in counted):
        return None
    of_step: dict[StepKey, list[StepRow]] = defaultdict(list)
    for step in counted:
        of_step[step.key].append(step)
    means = [fmean(getattr(step, field) or 0.0 for step in seeds) for seeds in of_step.values()]
    return runs[0].figure_of([seeds[0] for seeds in of_step.values()], means, name)


def _tasks_done(runs: Sequence[RunScores], allowed: int) -> Metric | None:
    """The share of tasks with at most so many failing steps, of the runs of all seeds, with its interval over tasks.

    None for a protocol whose rules of averaging are not at hand.
    """
    done: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        if run.results.protocol not in PROTOCOLS:
            return None
        for task, failures in run.failing_steps.items():
            done[f"{run.results.split} {task}"].append(float(failures <= allowed))
    return aggregate.metric(done)


def _share_done(runs: Sequence[RunScores], name: str, n_tasks: int) -> Figure | None:
    """The share of tasks done; None where a run asks for no element, so that no task is done or not."""
    shares = [run.results.task_success_rate.get(name) for run in runs]
    if None in shares or not n_tasks:
        return None
    n_done = sum(round((share or 0.0) * run.results.n_tasks) for share, run in zip(shares, runs, strict=True))
    return share_of_tasks(n_done / n_tasks, n_tasks)


# --- runs of an ablation ---


def ablation_figures(
    run: RunScores, baseline: RunScores, beside: Sequence[str], paper: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The figures of a row of `table.json`, shares as fractions, and their difference to the first row.

    `beside`: figures beside METRICS: of RECALL_AT, the ceiling, and ELEMENT_RULES. `paper`: other entries of the row,
    which stand after the differences.
    """
    return {
        **{name: getattr(run.results, name).named for name in METRICS},
        "difference_to_baseline": None if run is baseline else differences(run, baseline, compared_figures(beside)),
        **{name: figure and figure.named for name in beside for figure in [_figure_beside(run, name)]},
        **(paper or {}),
        "usage": run.results.usage,
        "replies_reused": run.results.notes.get("reply_reused", 0),
        "failed_steps": run.results.n_not_run,
        "unreadable_replies": sum(n for failure, n in run.results.reply_failures.items() if is_unreadable(failure)),
    }


def ablation_usage(runs: Sequence[RunScores]) -> dict[str, Any]:
    """The calls, tokens and cost of all runs."""
    return dict(sum((Usage(**run.results.usage) for run in runs), Usage()).named)


def compared_figures(beside: Sequence[str]) -> list[str]:
    """The figures of which rows are compared, where these stand beside METRICS."""
    # a step's best rank tells the ceiling of a ranking alone
    return [*METRICS, *([*RECALL_AT, "ceiling"] if RECALL_AT.keys() <= {*beside} else [])]


def differences(run: RunScores, baseline: RunScores, names: Sequence[str]) -> dict[str, Any]:
    """Figure -> the run's macro average minus the baseline's, paired by step, clustered by task."""
    ours, theirs = ({step.key: step for step in scores.steps} for scores in (run, baseline))
    keys = [key for key in ours if key in theirs]
    differing = []
    for name in names:
        values = [[_step_value(steps[key], name) for key in keys] for steps in (ours, theirs)]
        means = [aggregate.task_means(aggregate.by_task(keys, column).values()) for column in values]
        differing.append(means[0] - means[1])
    gaps = inference.gaps(differing, run.settings.get("seed", 0))
    return {name: asdict(gap) for name, gap in zip(names, gaps, strict=True)}


def _step_value(step: StepRow, name: str) -> float:
    """A step's part in a figure: of METRICS, of RECALL_AT, or the ceiling of a ranking."""
    if name in STEP_FIELDS:
        return float(getattr(step, STEP_FIELDS[name]) or 0.0)
    if step.best_rank is None:
        return 0.0
    return float(name == "ceiling" or step.best_rank < RECALL_AT[name])


def _figure_beside(run: RunScores, name: str) -> ResultsFigure | None:
    if name in RECALL_AT:
        average = run.protocol.averaging([step.truth for step in run.counted])
        values = [_step_value(step, name) for step in run.counted]
        return ResultsFigure(**asdict(average.metric(values)))
    return run.results.ceiling if name == "ceiling" else run.results.element_by_rule.get(name)


# --- curves and bars ---


def figures_by_difficulty(run: RunScores) -> dict[str, dict[str, Any]]:
    """Band of BANDS -> the tasks in it, and Step SR over their steps. Raises InputError as `RunScores.figure_over`."""
    bands: dict[str, dict[str, Any]] = {}
    for band, (least, most) in BANDS.items():
        steps = [step for step in run.counted if least <= step.n_actions <= (most or step.n_actions)]
        figure = run.figure_over(steps, "step_success_rate")
        bands[band] = {"n_tasks": len({step.annotation_id for step in steps}), **(asdict(figure) if figure else {})}
    return bands


def recall_curve(run: RunScores) -> list[float]:
    """Share of the steps whose right element is among the first k ranked, for every k of the run."""
    ranks = [step.best_rank for step in run.counted]
    return [recall_at_k(ranks, k) for k in range(1, run.settings["top_k"] + 1)]


def cost_unit(runs: Sequence[RunScores]) -> str:
    """The unit of `usage` in which runs are compared: calls where some run's price is not known, or none paid
    anything."""
    prices = [run.results.usage.get("cost_usd") for run in runs]
    return "cost_usd" if None not in prices and any(prices) else "calls"


def cost_of_task(run: RunScores, unit: str) -> float:
    """The mean cost of a task in a unit of `usage`."""
    return float(run.results.usage[unit]) / max(1, run.results.n_tasks)


def remaining_share(run: RunScores) -> float:
    """The share that the causes of loss leave: Step SR in the average that the protocol quotes, or what they leave of
    1."""
    average = run.average("step_success_rate")
    done = run.results.step_success_rate
    if done is not None:
        return float(getattr(done, average))
    return 1.0 - sum(float(loss[average]) for loss in run.results.waterfall.values())
