"""`index.json`: one row a step and one column a fact, of all the runs that are looked at. No page is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seeact_offline.records import InputError, StepKey
from seeact_offline.runs.finished import compare
from seeact_offline.scoring.comparison import Comparison
from seeact_offline.scoring.paired import METRICS
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.report import replies_in_words
from seeact_offline.scoring.waterfall import BY_EYE, CAUSES, LEFT_OUT, SUCCESS
from seeact_offline.viewer.runs import Row, ViewedRun

OUTCOMES = {
    SUCCESS: "the step succeeded",
    **CAUSES,
    **BY_EYE,
    LEFT_OUT: "the protocol leaves the step out",
}
"""What each outcome means."""
UNFINISHED = "Runs are compared once all of them are finished."


def step_name(key: StepKey) -> str:
    """What a step is called in names of files: 16 hexadecimal digits."""
    return hashlib.sha256(str(key).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Tasks:
    """What is known of tasks from the data and from scores."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """`annotation_id` -> what the person wanted."""
    n_steps: Sequence[int | None] = ()
    """Of each run, how many steps it is to have; None where that is not known."""
    problems: Sequence[Sequence[str]] = ()
    """Of each run, in sentences."""


def keys_of(runs: Sequence[ViewedRun]) -> list[StepKey]:
    """The steps of all runs: those of the first in its order, then what others have beside them."""
    return list(dict.fromkeys(key for run in runs for key in (*run.rows, *run.said)))


def index_json(
    runs: Sequence[ViewedRun],
    names: Sequence[str],
    tasks: Tasks,
    *,
    is_sample: bool,
    with_data: bool,
    comparison: Mapping[str, Any] | None,
    persons: Sequence[Mapping[StepKey, str]],
) -> dict[str, Any]:
    """`names`: what each run is called. `comparison`: as `compared` gives it. `persons`: of each run, causes of loss that a person
    gives, beside those of its rows."""
    keys = keys_of(runs)
    rows = [next((run.rows[key] for run in runs if key in run.rows), None) for key in keys]
    ids = list(dict.fromkeys(key.annotation_id for key in keys))
    place = {annotation_id: i for i, annotation_id in enumerate(ids)}
    return {
        "schema": 1,
        "title": " | ".join(names),
        "mode": "runs",
        "is_sample": is_sample,
        "with_data": with_data,
        "runs": [_run(*one, tasks, i) for i, one in enumerate(zip(runs, names, strict=True))],
        "n": len(keys),
        "keys": [step_name(key) for key in keys],
        "action_uids": [key.action_uid for key in keys],
        "tasks": {
            "annotation_ids": ids,
            "texts": [tasks.texts.get(one, "") for one in ids],
            "row": [place[key.annotation_id] for key in keys],
        },
        "coded": {
            "website": _coded((row.website or None) if row is not None else None for row in rows),
            "domain": _coded((row.domain or None) if row is not None else None for row in rows),
            "op": _coded((row.target.op or None) if row is not None else None for row in rows),
        },
        "numbers": {
            name: [0 if row is None else getattr(row, name) for row in rows]
            for name in ("n_actions", "n_before", "n_candidates")
        },
        "cells": [_cells(run, said, keys) for run, said in zip(runs, persons, strict=True)],
        "comparison": comparison,
        "outcomes": OUTCOMES,
        "failures": _failures(runs),
    }


def _run(run: ViewedRun, name: str, tasks: Tasks, place: int) -> dict[str, Any]:
    named = {**run.settings, **(run.results or {})}
    told = {key: named.get(key) for key in ("grounding", "model", "split", "protocol", "ranker")}
    return {
        "name": name,
        **told,
        "finished": run.results is not None,
        "results": run.results,
        "replies": None if (replies := run.manifest.get("replies")) is None else replies_in_words(replies),
        "headlines": {} if run.results is None else _headlines(run.results),
        "progress": _progress(run, tasks.n_steps[place] if tasks.n_steps else None),
        "problems": [*run.problems, *(tasks.problems[place] if tasks.problems else ())],
    }


def _headlines(results: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: results[name] for name in METRICS if results.get(name) is not None}
    return {name: headline(results.get("protocol", ""), name, figure) for name, figure in found.items()}


def _progress(run: ViewedRun, n_steps: int | None) -> dict[str, Any] | None:
    so_far = run.progress
    if so_far is None:
        return None
    return {
        "done": so_far.done,
        "of": n_steps,
        "failed": so_far.failed,
        **so_far.figures,
        "cost_usd": so_far.cost_usd,
        "failures": so_far.failures,
    }


def _cells(run: ViewedRun, said: Mapping[StepKey, str], keys: Sequence[StepKey]) -> dict[str, Any]:
    rows = [run.rows.get(key) for key in keys]
    return {
        "outcome": _coded(None if row is None else row.outcome for row in rows),
        "person_cause": _coded(said.get(key, row and row.person_cause) for key, row in zip(keys, rows, strict=True)),
        "failure": _coded(None if row is None else row.failure for row in rows),
        "element": [_of(row, lambda row: _whole(row.element)) for row in rows],
        "f1": [_of(row, lambda row: _rounded(row.operation_f1)) for row in rows],
        "success": [_of(row, lambda row: _whole(row.success)) for row in rows],
        "rank": [_of(row, lambda row: row.best_rank) for row in rows],
        "cost": [_cost(run.costs.get(key)) for key in keys],
    }


def _of(row: Row | None, read: Callable[[Row], Any]) -> Any:
    return None if row is None else read(row)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _cost(usd: float | None) -> float | None:
    # sums of prices have digits that mean nothing
    return None if usd is None else round(usd, 8)


def _coded(values: Iterable[Hashable | None]) -> dict[str, Any]:
    """Each value once, and for each row which it is; -1 for None."""
    places: dict[Hashable, int] = {}
    row = [-1 if value is None else places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "row": row}


def _failures(runs: Sequence[ViewedRun]) -> dict[str, str]:
    """The failures that occur; their names say what they mean."""
    found = {row.failure for run in runs for row in run.rows.values() if row.failure}
    return {name: name.replace("_", " ") for name in sorted(found)}


# --- runs against each other ---


def compared(runs: Sequence[ViewedRun]) -> dict[str, Any] | None:
    """The first run against each other, over the steps that all have; None for a single run."""
    places = [place for place, run in enumerate(runs) if run.is_readable]
    if len(places) < 2:
        return None
    if any(runs[place].results is None for place in places):
        return {"pairs": [], "problem": UNFINISHED}
    try:
        found = compare(*(runs[place].path for place in places), intersect=True)
    except InputError as error:
        return {"pairs": [], "problem": f"These runs cannot be compared: {error}."}
    return {"pairs": [_pair(found, places, b) for b in range(1, len(places))], "problem": None}


def _pair(found: Comparison, places: Sequence[int], b: int) -> dict[str, Any]:
    """`places`: of the compared runs among all; `b`: of the second among the compared."""
    metrics = {
        pair.metric: {
            "difference": pair.gap.macro,
            "ci95": None if pair.gap.ci95 is None else list(pair.gap.ci95),
            "p": pair.gap.p,
            "n_steps": found.n_steps,
            "n_tasks": found.n_tasks,
        }
        for pair in found.pairs
        if pair.second == found.runs[b]
    }
    return {"a": places[0], "b": places[b], "metrics": metrics}
