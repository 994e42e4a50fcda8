"""The tables of an overlap of runs. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.records import StepKey
from seeact_offline.scoring.agreement import Kappa
from seeact_offline.scoring.gap_text import gap_cells
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.overlap import Overlap
from seeact_offline.scoring.waterfall import BY_EYE, CAUSES

NAMED = 3
"""Steps that a row names; JSON names all."""


def overlap_tables(overlap: Overlap) -> list[Table]:
    """Steps by the number of runs that solve them, by run, those that none solves, and the runs pair by pair."""
    return [_solved_by(overlap), _alone(overlap), *([_unsolved(overlap)] if overlap.unsolved else []), _pairs(overlap)]


def _solved_by(overlap: Overlap) -> Table:
    n_steps, n_runs = sum(count.steps for count in overlap.solved_by), len(overlap.solved)
    rows, so_far = [], 0
    for count in reversed(overlap.solved_by):
        so_far += count.steps
        rows.append((count.runs, count.steps, percent(count.steps / n_steps), so_far, percent(so_far / n_steps)))
    low, high = map(percent, overlap.union.ci95)
    notes = [
        f"Solved: {METRICS[overlap.metric]} of the step is 1. The union, the steps that some run solves, bounds every"
        " choice of a run for each"
        f" step (a perfect router): {percent(overlap.union.macro)} % macro, 95 % interval {low} to {high},"
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


def _unsolved(overlap: Overlap) -> Table:
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
        " failing, with its 95 % interval over"
        " tasks: 1 where two runs fail at the same steps, 0 where they do as by chance. Fleiss' kappa of all runs:"
        f" {kappa_text(overlap.kappa)}."
    ]
    header = (
        "difference", "points", "95 % interval", "p", "p, Holm", "only the first named solves", "only the second",
        "both solve", "both fail",
        "kappa of failures",
    )  # fmt: skip
    return Table(title="All pairs of runs", header=header, rows=rows, notes=notes)


def kappa_text(kappa: Kappa) -> str:
    """A kappa with its interval as text."""
    if kappa.kappa is None:
        return "-"
    # + 0.0: no negative zero
    value, *ends = (f"{round(number, 2) + 0.0:.2f}" for number in (kappa.kappa, *(kappa.ci95 or ())))
    return f"{value} [{', '.join(ends)}]" if ends else value
