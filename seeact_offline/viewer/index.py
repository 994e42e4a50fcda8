"""`index.json`: one row per step and one column per fact, for all runs that are looked at. No page is opened."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seeact_offline.records import InputError, StepKey
from seeact_offline.scoring.report import replies_in_words
from seeact_offline.scoring.waterfall import BY_EYE, CAUSES, LEFT_OUT, SUCCESS
from seeact_offline.viewer.run_data import RunEntry, RunSnapshot
from seeact_offline.viewer.site_files import step_name

if TYPE_CHECKING:
    from seeact_offline.scoring.comparison import Comparison

OUTCOMES = {SUCCESS: "the step succeeded", **CAUSES, **BY_EYE, LEFT_OUT: "the protocol leaves the step out"}
"""Meaning of each outcome."""
FACTS = ("grounding", "model", "split", "protocol", "ranker")
"""Settings of a run that the list names."""


def keys_of(runs: Sequence[RunSnapshot]) -> dict[str, StepKey]:
    """The steps of all runs by name: those of the first in its order, then those that only others have."""
    return {step_name(key): key for key in dict.fromkeys(key for run in runs for key in (*run.rows, *run.costs))}


def index_json(
    entries: Sequence[RunEntry],
    steps: Mapping[str, StepKey],
    texts: Mapping[str, str],
    comparison: Mapping[str, Any] | None,
    persons: Sequence[Mapping[StepKey, str]],
) -> dict[str, Any]:
    """`steps`: by name. `texts`: the task of each `annotation_id`. `comparison`: as `compared` gives it. `persons`:
    causes of loss that a person gives in each run, besides those of its rows."""
    runs = [entry.run for entry in entries]
    keys = list(steps.values())
    rows = [next((run.rows[key] for run in runs if key in run.rows), None) for key in keys]
    failures = {row.failure for run in runs for row in run.rows.values() if row.failure}
    return {
        "schema": 1,
        "title": " | ".join(entry.name for entry in entries),
        "mode": "runs",
        "runs": [_run(entry) for entry in entries],
        "n": len(keys),
        "keys": list(steps),
        "action_uids": [key.action_uid for key in keys],
        "tasks": tasks_json(keys, texts),
        "coded": {
            "website": _coded(row and (row.website or None) for row in rows),
            "domain": _coded(row and (row.domain or None) for row in rows),
            "op": _coded(row and (row.target.op or None) for row in rows),
        },
        "numbers": {
            name: [0 if row is None else getattr(row, name) for row in rows]
            for name in ("n_actions", "n_before", "n_candidates")
        },
        "cells": [_cells(run, causes, keys) for run, causes in zip(runs, persons, strict=True)],
        "comparison": comparison,
        "outcomes": OUTCOMES,
        "failures": {name: name.replace("_", " ") for name in sorted(failures)},
    }


def tasks_json(keys: Iterable[StepKey], texts: Mapping[str, str]) -> dict[str, Any]:
    """Each task once, and for each step the place of its task. `texts`: the task of each `annotation_id`."""
    tasks = _coded(key.annotation_id for key in keys)
    ids = tasks["values"]
    return {
        "annotation_ids": ids,
        "texts": [texts.get(annotation_id, "") for annotation_id in ids],
        "row": tasks["row"],
    }


def _run(entry: RunEntry) -> dict[str, Any]:
    run, results = entry.run, entry.run.results
    named = {**run.settings, **({} if results is None else results.settings)}
    so_far = run.progress
    return {
        "name": entry.name,
        **{key: named.get(key) for key in FACTS},
        "finished": results is not None,
        "settings": dict(run.settings),
        "results": None if results is None else results.entries,
        "replies": None if (replies := run.manifest.get("replies")) is None else replies_in_words(replies),
        "headlines": {} if results is None else results.headlines,
        "progress": so_far
        and {
            "done": so_far.done,
            "of": None if entry.data is None else len(entry.data.selected(run.settings).keys),
            "failed": so_far.failed,
            **so_far.figures,
            "cost_usd": so_far.cost_usd,
            "failures": so_far.failures,
        },
        "problems": [*run.problems, *([entry.data_problem] if entry.data_problem else [])],
    }


def _cells(run: RunSnapshot, persons: Mapping[StepKey, str], keys: Sequence[StepKey]) -> dict[str, Any]:
    rows = [run.rows.get(key) for key in keys]
    costs = [run.costs.get(key) for key in keys]
    return {
        "outcome": _coded(row and row.outcome for row in rows),
        "person_cause": _coded(persons.get(key, row and row.person_cause) for key, row in zip(keys, rows, strict=True)),
        "failure": _coded(row and row.failure for row in rows),
        "element": [None if row is None or row.element is None else int(row.element) for row in rows],
        "f1": [None if row is None or row.operation_f1 is None else round(row.operation_f1, 3) for row in rows],
        "success": [None if row is None or row.success is None else int(row.success) for row in rows],
        "rank": [row and row.best_rank for row in rows],
        # sums of prices have digits without a meaning
        "cost": [None if usd is None else round(usd, 8) for usd in costs],
    }


def _coded(values: Iterable[Hashable | None]) -> dict[str, Any]:
    """Each value once, and for each row the place of its value; -1 for None."""
    places: dict[Hashable, int] = {}
    row = [-1 if value is None else places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "row": row}


def compared(runs: Sequence[RunSnapshot]) -> dict[str, Any] | None:
    """Each other run minus the first, over the steps that all have; None for a single run."""
    places = [place for place, run in enumerate(runs) if run.is_readable]
    if len(places) < 2:
        return None
    if any(runs[place].results is None for place in places):
        return {"pairs": [], "problem": "Runs are compared once all of them are finished."}
    from seeact_offline.results.comparing import compare

    try:
        comparison = compare(*(runs[place].path for place in places), intersect=True)
    except InputError as error:
        return {"pairs": [], "problem": f"These runs cannot be compared: {error}."}
    return {"pairs": [_pair(comparison, places, b) for b in range(1, len(places))], "problem": None}


def _pair(comparison: Comparison, places: Sequence[int], b: int) -> dict[str, Any]:
    """`places`: the compared runs among all; `b`: the second of the pair among the compared."""
    metrics = {
        pair.metric: {
            "difference": pair.gap.macro,
            "ci95": None if pair.gap.ci95 is None else list(pair.gap.ci95),
            "p": pair.gap.p,
            "n_steps": comparison.n_steps,
            "n_tasks": comparison.n_tasks,
        }
        for pair in comparison.pairs
        if pair.second == comparison.runs[b]
    }
    return {"a": places[0], "b": places[b], "metrics": metrics}
