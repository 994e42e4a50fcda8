"""The differences between runs, and their report. Computes nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.records import Metric, StepKey
from seeact_offline.scoring.agreement import Kappa
from seeact_offline.scoring.inference import EXACT_UP_TO, FEWEST_TASKS, RESAMPLES, Gap
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.noise import DifferenceNoise, FigureNoise
from seeact_offline.scoring.overlap import Overlap
from seeact_offline.scoring.waterfall import BY_EYE, CAUSES

if TYPE_CHECKING:
    import pandas as pd

# an interval of a difference, at 95 %, leaves 0 out exactly where p is below this
SIGNIFICANT = 0.05
ALWAYS_CLICK = "always CLICK, no element"
NAMED = 3
"""Steps that a row names; JSON names all."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Two runs under one metric."""

    metric: str
    first: str
    second: str
    gap: Gap
    """The second minus the first, which is the baseline."""
    p_holm: float
    """Adjusted for the number of runs compared with the baseline under this metric."""
    first_better: int
    """Steps at which the first earns more."""
    second_better: int
    same: int
    """Steps at which both earn the same. They say nothing of which is better."""
    n_tasks_that_differ: int
    """Tasks whose means differ: p rests on these alone."""
    detectable: float | None
    """The smallest difference that this many tasks find with power 80 % at 5 %; None where fewer than FEWEST_TASKS
    differ."""
    tasks_needed: int | None
    """Tasks that would find `Comparison.detect` points with that power; None where fewer than FEWEST_TASKS differ, or
    all by the same."""


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of one step's credit, split by its source."""

    tasks: float
    """Variance between tasks."""
    steps: float
    """Variance between the steps of a task."""
    repeats: float
    """Variance between repeats of a step."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Runs that differ by seed or order alone."""

    metric: str
    runs: tuple[str, ...]
    variance: Variance


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """The steps of one kind."""

    label: str
    n_tasks: int
    n_steps: int
    figures: Mapping[str, Mapping[str, float]]
    """Metric -> run -> macro average over these steps."""
    gaps: Mapping[str, Mapping[str, Gap]]
    """Metric -> run -> that run minus the baseline."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two or more runs. All shares are fractions."""

    protocol: str
    runs: tuple[str, ...]
    """Names, the baseline first."""
    n_tasks: int
    n_steps: int
    """Steps that every run has."""
    dropped: Mapping[str, int]
    """Run -> its steps that another lacks, which are not compared."""
    not_run: Mapping[str, int]
    """Run -> its steps that were never answered, where there are any. They count as 0."""
    incomplete: tuple[str, ...]
    """Runs whose results say that they are not finished."""
    averaged_otherwise: tuple[str, ...]
    """Runs whose own results differ from `figures`: by their protocol's way of averaging, or by steps not compared."""
    figures: Mapping[str, Mapping[str, Metric]]
    """Metric -> run -> its average. Only metrics that every run has."""
    best: Mapping[str, str]
    """Metric -> the run with the highest macro average."""
    tied: Mapping[str, tuple[str, ...]]
    """Metric -> runs not told apart from the best: p, adjusted for all pairs of runs, is not below 0.05."""
    pairs: tuple[PairedDifference, ...]
    """Each other run against the baseline, metric by metric."""
    always_click: Metric
    """Operation F1 of CLICK at every step."""
    over_always_click: Mapping[str, Gap]
    """Run -> its Operation F1 minus that."""
    repeats: tuple[Repeats, ...]
    """Empty where no two runs differ by seed or order alone."""
    groups: Mapping[str, tuple[str, ...]]
    """Name of a group -> the runs of which it is the mean; empty where runs are compared one by one."""
    mixed: tuple[str, ...]
    """Groups whose runs differ in more than seed and order."""
    sd: Mapping[str, Mapping[str, float | None]]
    """Metric -> group -> sample standard deviation of its runs' macro averages; None for a group of one."""
    breakdowns: Mapping[str, tuple[BreakdownRow, ...]]
    """Name of a breakdown -> its rows."""
    detect: float
    """The difference, in points, for which `tasks_needed` is computed."""
    seed: int
    """The seed of resamples and signs."""
    data: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Data in words -> the runs over them; empty where all are over the same."""
    overlap: Overlap | None = None
    """The steps that runs solve together and alone; None for two runs and for groups."""
    noise: tuple[FigureNoise, ...] = ()
    """Of the runs of `repeats`; empty for fewer than two tasks."""
    difference_noise: tuple[DifferenceNoise, ...] = ()
    """Of each other group against the baseline, where both have two runs or more that differ by seed or order alone."""

    def to_dict(self) -> dict[str, object]:
        """The comparison as JSON."""
        entries = {"schema": 1, **asdict(self)}
        # what a comparison does not have stays out
        return {name: entry for name, entry in entries.items() if entry or name not in _OPTIONAL}

    def to_pandas(self) -> pd.DataFrame:
        """One row a metric, other run and kind of step: both averages and their difference, as fractions.

        `by` and `label` name the kind of step, and are empty over all steps; only there is `p_holm` known.
        """
        import pandas as pd

        rows: list[dict[str, object]] = []
        sizes: dict[str, object] = {"by": "", "label": "", "n_tasks": self.n_tasks, "n_steps": self.n_steps}
        for pair in self.pairs:
            macros = {name: figure.macro for name, figure in self.figures[pair.metric].items()}
            row = self._row(pair.metric, pair.second, macros, pair.gap)
            rows.append(row | sizes | {"p_holm": pair.p_holm})
        for by, breakdown in self.breakdowns.items():
            for cell in breakdown:
                sizes = {"by": by, "label": cell.label, "n_tasks": cell.n_tasks, "n_steps": cell.n_steps}
                for metric, gaps in cell.gaps.items():
                    rows += [self._row(metric, name, cell.figures[metric], gap) | sizes for name, gap in gaps.items()]
        return pd.DataFrame(rows)

    def _row(self, metric: str, second: str, macros: Mapping[str, float], gap: Gap) -> dict[str, object]:
        first = self.runs[0]
        low, high = gap.ci95 or (None, None)
        return {
            "metric": metric, "by": "", "label": "", "first": first, "second": second,
            "first_macro": macros[first], "second_macro": macros[second],
            "difference": gap.macro, "low": low, "high": high, "p": gap.p,
        }  # fmt: skip

    def differences(self) -> str:
        """The table of the differences alone, as Markdown."""
        return replace(_differences(self), title="", notes=[]).markdown()

    def tables(self) -> list[Table]:
        """The comparison as tables, one a question."""
        tables = [
            _figures(self),
            _differences(self),
            _ties(self),
            *(make(self.overlap) for make in (_solved_by, _alone, _unsolved, _pairs) if self.overlap),
            _over_always_click(self),
            _repeats(self),
            _noise(self),
            _difference_noise(self),
            *(_breakdown(self, name, rows) for name, rows in self.breakdowns.items()),
        ]
        return [table for table in tables if table is not None]

    def report(self) -> str:
        """The comparison as Markdown."""
        return "\n\n".join(table.markdown() for table in self.tables()) + "\n"


# --- as Markdown ---


def _figures(comparison: Comparison) -> Table:
    spread = ["sd", "runs"] if comparison.groups else []
    header = (
        "metric", "run", "macro", "95 % interval", "micro", "standard error", *spread, "effective n", "interval by", "",
    )  # fmt: skip
    rows: list[tuple[object, ...]] = []
    for metric, figures in comparison.figures.items():
        highest = percent(figures[comparison.best[metric]].macro)
        equal = [name for name, figure in figures.items() if percent(figure.macro) == highest]
        for name, figure in figures.items():
            place = "not told apart from the best" if name in comparison.tied[metric] else ""
            if name in equal:
                place = "best" if len(equal) == 1 else "tied"
            seeds = [percent(comparison.sd[metric][name]), len(comparison.groups[name])] if spread else []
            rows.append((METRICS[metric], name, *_figure(figure, seeds), place))
        if metric == "operation_f1":
            rows.append((METRICS[metric], ALWAYS_CLICK, *_figure(comparison.always_click, ["-" for _ in spread]), ""))
    title = f"{', '.join(comparison.runs[1:])} against {comparison.runs[0]}, the baseline"
    return Table(title=title, header=header, rows=rows, notes=_about(comparison), n_labels=2)


def _figure(metric: Metric, seeds: Sequence[object]) -> tuple[object, ...]:
    n = "-" if metric.n_effective is None else f"{metric.n_effective:.0f}"
    low, high = map(percent, metric.ci95)
    return (
        percent(metric.macro),
        f"{low} to {high}",
        percent(metric.micro),
        percent(metric.se),
        *seeds,
        n,
        metric.method,
    )


def _about(comparison: Comparison) -> list[str]:
    """The notes needed to read the figures."""
    notes = [
        f"Percent, over {comparison.n_steps} steps of {comparison.n_tasks} tasks, protocol {comparison.protocol}."
        " Macro: mean over tasks of the task's mean, to which interval, standard error and effective n belong. Tied:"
        f" the figures are equal as printed. Not told apart from the best: at {SIGNIFICANT * 100:g} %, all pairs of runs considered."
    ]
    if comparison.groups:
        notes.append(
            "A group is the mean of its runs: a step's credit is its mean over them, and intervals are over tasks. sd:"
            " sample standard deviation of the runs' own averages."
        )
    for name, runs in comparison.groups.items():
        more = ", which differ in more than their seed" if name in comparison.mixed else ""
        notes.append(f"{name}: {', '.join(runs)}{more}.")
    notes += [
        f"{name}: {n} steps that another run lacks are not compared." for name, n in comparison.dropped.items() if n
    ]
    notes += [f"{name}: {n} steps were never answered and count as 0." for name, n in comparison.not_run.items()]
    notes += [f"{name} is not finished." for name in comparison.incomplete]
    notes += different_data(comparison)
    if comparison.averaged_otherwise:
        notes.append(
            f"The own results of {', '.join(comparison.averaged_otherwise)} have other figures: their protocol"
            " averages in another way, or over steps that are not compared."
        )
    return notes


def different_data(comparison: Comparison) -> list[str]:
    """A note where runs are over different data; empty for the same."""
    parts = "; ".join(f"{data}: {', '.join(names)}" for data, names in comparison.data.items())
    return [f"Of different data: {parts}."] if parts else []


def _differences(comparison: Comparison) -> Table:
    several = len(comparison.runs) > 2
    shows_power = any(pair.detectable is not None for pair in comparison.pairs)
    rows = [
        (
            METRICS[pair.metric],
            f"{pair.second} - {pair.first}",
            *gap_cells(pair.gap),
            *([f"{pair.p_holm:.4f}"] if several else []),
            *(
                [percent(pair.detectable), "-" if pair.tasks_needed is None else f"about {pair.tasks_needed}"]
                if shows_power
                else []
            ),
        )
        for pair in comparison.pairs
    ]
    header = ("metric", "difference", "points", "95 % interval", "p", *(["p, Holm"] if several else []))
    power = ("detectable", f"tasks for {comparison.detect:g} points") if shows_power else ()
    note = (
        "Of the macro averages, the other run minus the baseline, paired by step, clustered by task. p: how often the"
        " tasks' differences average as far from 0 with other signs, of"
        + (
            " all patterns of signs."
            if comparison.n_tasks <= EXACT_UP_TO
            else f" {RESAMPLES:,} random patterns of signs."
        )
    )
    if comparison.n_tasks >= FEWEST_TASKS:
        note += " Interval: the differences that the same test does not reject at 5 %."
    if shows_power:
        note += (
            " Detectable: the smallest difference that these tasks find in four of five such comparisons (5 %,"
            f" two-sided); not known where fewer than {FEWEST_TASKS} tasks differ."
        )
    if several:
        note += f" Holm: p adjusted for {len(comparison.runs) - 1} comparisons under each metric."
    title = f"Differences: other run minus {comparison.runs[0]}"
    return Table(title=title, header=(*header, *power), rows=rows, notes=[note], n_labels=2)


def _ties(comparison: Comparison) -> Table:
    rows = [
        (
            METRICS[pair.metric],
            f"{pair.second} against {pair.first}",
            pair.same,
            pair.first_better,
            pair.second_better,
            f"{pair.n_tasks_that_differ} of {comparison.n_tasks}",
        )
        for pair in comparison.pairs
    ]
    note = "Steps of the same credit say nothing of which run is better: p rests on the tasks that differ alone."
    header = ("metric", "runs", "same credit", "baseline better", "other better", "tasks that differ")
    return Table(title="Ties, in steps", header=header, rows=rows, notes=[note], n_labels=2)


def _over_always_click(comparison: Comparison) -> Table:
    rows = [(name, *gap_cells(gap)) for name, gap in comparison.over_always_click.items()]
    note = (
        f"CLICK at every step, without a look, has {percent(comparison.always_click.macro)} % Operation F1, macro (and"
        " Element Accuracy and Step SR 0): only what a run has beyond that is its own."
    )
    header = ("run", "points", "95 % interval", "p")
    return Table(
        title="Operation F1 beyond a constant answer: run minus always CLICK", header=header, rows=rows, notes=[note]
    )


def _repeats(comparison: Comparison) -> Table | None:
    if not comparison.repeats:
        return None
    rows = []
    for repeats in comparison.repeats:
        parts = [repeats.variance.tasks, repeats.variance.steps, repeats.variance.repeats]
        shares = [percent(part / sum(parts) if sum(parts) else None) for part in parts]
        rows.append((METRICS[repeats.metric], ", ".join(repeats.runs), *shares))
    note = "Percent of the variance of one step's credit; these runs differ by seed or order alone."
    header = ("metric", "repeats", "between tasks", "between steps of a task", "between repeats of a step")
    return Table(title="Where the variance is", header=header, rows=rows, notes=[note], n_labels=2)


def _noise(comparison: Comparison) -> Table | None:
    if not comparison.noise:
        return None
    rows = [
        (METRICS[noise.metric], ", ".join(noise.runs), *_shares(noise), _needed(noise.seeds_needed))
        for noise in comparison.noise
    ]
    note = (
        "Of the macro average of one run. Between tasks: other tasks would give another figure. Between seeds: a seed"
        " moves all tasks alike. The rest: tasks answer to the seed in their own ways. Seeds: how many each of two"
        f" methods needs on these {comparison.n_tasks} tasks, so that a difference of {comparison.detect:g} points is"
        " found in four of five comparisons (5 %, two-sided), if both vary as these runs do and part alike at every"
        f" task; as they never do, it is a lower bound.{_CUT}"
    )
    header = ("metric", "repeats", *_SOURCES, f"seeds for {comparison.detect:g} points")
    return Table(title="Order and noise: the variance of a figure", header=header, rows=rows, notes=[note], n_labels=2)


def _difference_noise(comparison: Comparison) -> Table | None:
    if not comparison.difference_noise:
        return None
    rows = [
        (METRICS[noise.metric], f"{noise.second} - {noise.first}", *_shares(noise),
         _needed(noise.tasks_needed), _needed(noise.seeds_needed))
        for noise in comparison.difference_noise
    ]  # fmt: skip
    note = (
        f"Of the difference of macro averages as it stands. Tasks, seeds: how many would find {comparison.detect:g}"
        " points in four of five comparisons (5 %, two-sided), tasks with the seeds that there are, seeds of each group"
        " on as many tasks as there are. None: no number does, since what the other adds is too much alone."
        f"{_CUT}"
    )
    needed = [f"{what} for {comparison.detect:g} points" for what in ("tasks", "seeds")]
    return Table(
        title="Order and noise: the variance of a difference",
        header=("metric", "difference", *_SOURCES, *needed), rows=rows, notes=[note], n_labels=2,
    )  # fmt: skip


_OPTIONAL = ("data", "overlap", "noise", "difference_noise")
_CUT = (
    " A part that comes out below 0 stands as 0, so on average parts are too high. sd: interval of that between seeds,"
    " in points."
)
_SOURCES = ("standard deviation", "between tasks, %", "between seeds, %", "rest, %")


def _shares(noise: FigureNoise | DifferenceNoise) -> list[str]:
    """The standard deviation in points, and the sources' shares of the variance."""
    parts = [noise.tasks, noise.seeds, noise.rest]
    of_all = [percent(part / sum(parts) if sum(parts) else None) for part in parts]
    of_all[1] += f" (sd {' to '.join(percent(math.sqrt(bound)) for bound in noise.seeds_ci95)})"
    return [percent(math.sqrt(sum(parts))), *of_all]


def _needed(number: int | None) -> str:
    return "none" if number is None else f"about {number}"


def _breakdown(comparison: Comparison, name: str, breakdown: Sequence[BreakdownRow]) -> Table:
    base, others = comparison.runs[0], comparison.runs[1:]
    metric = "step_success_rate" if "step_success_rate" in comparison.figures else "operation_f1"
    differences = [text for other in others for text in (f"{other} - {base}", "95 % interval")]
    rows = []
    for cell in breakdown:
        macros = [percent(cell.figures[metric][run]) for run in comparison.runs]
        gaps = [text for other in others for text in gap_cells(cell.gaps[metric][other])[:2]]
        rows.append((cell.label, cell.n_tasks, cell.n_steps, *macros, *gaps))
    header = (name, "tasks", "steps", *comparison.runs, *differences)
    note = f"{METRICS[metric]}, macro over the tasks that have such steps; p is not given, because cells are many."
    return Table(title=f"By {name}", header=header, rows=rows, notes=[note])


# --- overlap ---


def _solved_by(overlap: Overlap) -> Table:
    n_steps, n_runs = sum(count.steps for count in overlap.solved_by), len(overlap.solved)
    rows, so_far = [], 0
    for count in reversed(overlap.solved_by):
        so_far += count.steps
        rows.append((count.runs, count.steps, percent(count.steps / n_steps), so_far, percent(so_far / n_steps)))
    low, high = map(percent, overlap.union.ci95)
    notes = [
        f"Solved: {METRICS[overlap.metric]} of the step is 1. The union, the steps that some run solves, bounds every"
        f" choice of a run for each step (a perfect router): {percent(overlap.union.macro)} % macro, 95 % interval {low} to {high},"
        f" {percent(overlap.union.micro)} % micro."
    ]
    header = ("runs that solve the step", "steps", "% of steps", "by at least so many", "% of steps")
    return Table(title=f"Steps solved by k of {n_runs} runs", header=header, rows=rows, notes=notes)


def _alone(overlap: Overlap) -> Table:
    n_steps = sum(count.steps for count in overlap.solved_by)
    rows = [
        (name, overlap.solved[name], percent(overlap.solved[name] / n_steps),
         len(steps), percent(len(steps) / n_steps), _named(steps))
        for name, steps in overlap.alone.items()
    ]  # fmt: skip
    header = ("run", "steps solved", "% of steps", "by it alone", "% of steps", "such as")
    return Table(title="Steps solved by one run alone", header=header, rows=rows)


def _named(steps: Sequence[StepKey]) -> str:
    more = len(steps) - NAMED
    return ", ".join([*map(str, steps[:NAMED]), *([f"{more} more"] if more > 0 else [])]) or "-"


def _unsolved(overlap: Overlap) -> Table | None:
    if not overlap.unsolved:
        return None
    names, n_steps = tuple(overlap.solved), sum(count.steps for count in overlap.solved_by)
    rows = [(row.cause.replace("_", " "), *(row.by_run[name] for name in names), row.shared) for row in overlap.causes]
    meanings_of = {**CAUSES, **BY_EYE}
    meanings = [
        f"{row.cause.replace('_', ' ')}: {meanings_of[row.cause]}" for row in overlap.causes if row.cause in meanings_of
    ]
    share = percent(len(overlap.unsolved) / n_steps)
    notes = [
        f"{len(overlap.unsolved)} of {n_steps} steps ({share} %) are solved by no run, such as"
        f" {_named([unsolved.step for unsolved in overlap.unsolved])}."
        " Each run loses each of them by one cause; the last column counts those that all lose by it."
    ]
    notes += [f"{'; '.join(meanings)}."] if meanings else []
    header = ("cause of loss", *names, "all runs")
    return Table(title="Steps solved by no run, by cause", header=header, rows=rows, notes=notes)


def _pairs(overlap: Overlap) -> Table:
    rows = [
        (f"{pair.second} - {pair.first}", *gap_cells(pair.gap), f"{pair.p_holm:.4f}",
         pair.only_second, pair.only_first, pair.both, pair.neither, kappa_text(pair.kappa))
        for pair in overlap.pairs
    ]  # fmt: skip
    notes = [
        f"{METRICS[overlap.metric]}, macro. p, Holm: adjusted for {len(overlap.pairs)} pairs. Kappa: Cohen's, of"
        " failing, with its 95 % interval over tasks: 1 where two runs fail at the same steps, 0 where they do as by chance. Fleiss' kappa of all runs:"
        f" {kappa_text(overlap.kappa)}."
    ]
    header = (
        "difference", "points", "95 % interval", "p", "p, Holm", "only the first named solves", "only the second",
        "both solve", "both fail", "kappa of failures",
    )  # fmt: skip
    return Table(title="All pairs of runs", header=header, rows=rows, notes=notes)


def kappa_text(kappa: Kappa) -> str:
    """A kappa with its interval as text."""
    if kappa.kappa is None:
        return "-"
    # + 0.0: no negative zero
    value, *ends = (f"{round(number, 2) + 0.0:.2f}" for number in (kappa.kappa, *(kappa.ci95 or ())))
    return f"{value} [{', '.join(ends)}]" if ends else value


# --- differences as text ---


def points(value: float) -> str:
    """A difference of fractions as text, in points."""
    # + 0.0: no negative zero
    return f"{float(percent(value)) + 0.0:+.1f}"


def gap_interval(ci95: Sequence[float] | None) -> str:
    """An interval of a difference as text, in points."""
    return f"-, fewer than {FEWEST_TASKS} tasks" if ci95 is None else f"{points(ci95[0])} to {points(ci95[1])}"


def gap_cells(gap: Gap) -> tuple[str, str, str]:
    """Points, interval and p of a difference."""
    return points(gap.macro), gap_interval(gap.ci95), f"{gap.p:.4f}"
