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


def overlap_tables(found: Overlap) -> list[Table]:
    """Steps by the number of runs that solve them, by run, those that none solves, and the runs pair by pair."""
    return [_solved_by(found), _alone(found), *([_unsolved(found)] if found.unsolved else []), _pairs(found)]


def _solved_by(found: Overlap) -> Table:
    n_steps, n_runs = sum(one.steps for one in found.solved_by), len(found.solved)
    rows, so_far = [], 0
    for one in reversed(found.solved_by):
        so_far += one.steps
        rows.append((one.runs, one.steps, percent(one.steps / n_steps), so_far, percent(so_far / n_steps)))
    low, high = map(percent, found.union.ci95)
    notes = [
        f"Solved: {METRICS[found.metric]} of the step is 1. The union, the steps that some run solves, bounds every choice of a run for each"
        f" step (a perfect router): {percent(found.union.macro)} % macro, 95 % interval {low} to {high}, {percent(found.union.micro)} % micro."
    ]
    header = ("runs that solve the step", "steps", "% of steps", "by at least so many", "% of steps")
    return Table(title=f"Steps solved by k of {n_runs} runs", header=header, rows=rows, notes=notes)


def _alone(found: Overlap) -> Table:
    n_steps = sum(one.steps for one in found.solved_by)
    rows = [
        (name, found.solved[name], percent(found.solved[name] / n_steps), len(steps), percent(len(steps) / n_steps), _named(steps))
        for name, steps in found.alone.items()
    ]  # fmt: skip
    header = ("run", "steps solved", "% of steps", "by it alone", "% of steps", "such as")
    return Table(title="Steps solved by one run alone", header=header, rows=rows)


def _named(steps: Sequence[StepKey]) -> str:
    more = len(steps) - NAMED
    return ", ".join([*map(str, steps[:NAMED]), *([f"{more} more"] if more > 0 else [])]) or "-"


def _unsolved(found: Overlap) -> Table:
    names, n_steps = tuple(found.solved), sum(one.steps for one in found.solved_by)
    rows = [(one.cause.replace("_", " "), *(one.by_run[name] for name in names), one.shared) for one in found.causes]
    known = {**CAUSES, **BY_EYE}
    meanings = [f"{one.cause.replace('_', ' ')}: {known[one.cause]}" for one in found.causes if one.cause in known]
    share = percent(len(found.unsolved) / n_steps)
    notes = [
        f"{len(found.unsolved)} of {n_steps} steps ({share} %) are solved by no run, such as {_named([one.step for one in found.unsolved])}."
        " Each run loses each of them by one cause; the last column counts those that all lose by it."
    ]
    notes += [f"{'; '.join(meanings)}."] if meanings else []
    header = ("cause of loss", *names, "all runs")
    return Table(title="Steps solved by no run, by cause", header=header, rows=rows, notes=notes)


def _pairs(found: Overlap) -> Table:
    rows = [
        (f"{one.second} - {one.first}", *gap_cells(one.gap), f"{one.p_holm:.4f}", one.only_second, one.only_first, one.both, one.neither,
         kappa_text(one.kappa))
        for one in found.pairs
    ]  # fmt: skip
    notes = [
        f"{METRICS[found.metric]}, macro. p, Holm: adjusted for {len(found.pairs)} pairs. Kappa: Cohen's, of failing, with its 95 % interval over"
        f" tasks: 1 where two runs fail at the same steps, 0 where they do as by chance. Fleiss' kappa of all runs: {kappa_text(found.kappa)}."
    ]
    header = (
        "difference", "points", "95 % interval", "p", "p, Holm", "only the first named solves", "only the second", "both solve", "both fail",
        "kappa of failures",
    )  # fmt: skip
    return Table(title="All pairs of runs", header=header, rows=rows, notes=notes)


def kappa_text(kappa: Kappa) -> str:
    """A kappa with its interval as text."""
    if kappa.kappa is None:
        return "-"
    # + 0.0: no negative zero
    value, *ends = (f"{round(one, 2) + 0.0:.2f}" for one in (kappa.kappa, *(kappa.ci95 or ())))
    return f"{value} [{', '.join(ends)}]" if ends else value
