"""The values of the figures of finished runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seeact_offline.records import InputError
from seeact_offline.runs.config import OWN_WORDS
from seeact_offline.scoring.report import Extent, data_in_words
from seeact_offline.scoring.run_figures import (
    BANDS,
    cost_of_task,
    cost_unit,
    figures_by_difficulty,
    recall_curve,
    remaining_share,
)
from seeact_offline.tables.table_input import TableRun, find_runs, labels, one_of_each, read_run

ONE_RUN_EACH = (
    "each line is of one run, so that nothing connects them: give the runs of one line the same tag (eval --tags NAME)"
)


def difficulty(paths: Sequence[Path]) -> dict[str, Any]:
    """Step SR of each run by the number of actions of the task; bands without a task of any run are left out.

    Raises InputError for runs that do not say how many actions their tasks take.
    """
    runs = _read(paths)
    if not any(step.n_actions for run in runs for step in run.counted):
        raise InputError("runs", sentence=f"the steps.jsonl of {runs[0].name} does not say n_actions; score it again")
    made: list[dict[str, Any]] = []
    for run, label in zip(runs, _labels_with_split(runs), strict=True):
        made.append({"run": run.name, "label": label, "bands": figures_by_difficulty(run)})
    return {
        "about": data_of(runs),
        "bands": [band for band in BANDS if any(run["bands"][band]["n_tasks"] for run in made)],
        "runs": made,
    }


def waterfall(paths: Sequence[Path]) -> dict[str, Any]:
    """The causes by which one run loses its steps: shares of Step SR, in the average that its protocol quotes.

    Raises InputError for several runs, or for results without these shares.
    """
    runs = _read(paths)
    if len(runs) != 1:
        raise InputError("runs", sentence=f"name one run, whose losses are drawn, not {len(runs)}")
    run, causes, done = runs[0], runs[0].results.waterfall, runs[0].results.step_success_rate
    if not isinstance(causes, dict) or not all(isinstance(loss, dict) for loss in causes.values()):
        raise InputError("runs", sentence=f"the results of {run.name} do not say what each cause costs; score it again")
    average = run.average("step_success_rate")
    losses = [{"cause": cause, "share": loss[average], "steps": loss["steps"]} for cause, loss in causes.items()]
    return {
        "about": data_of(runs),
        "label": _labels_with_split(runs)[0],
        "losses": losses,
        "rest": remaining_share(run),
        "measure": "Step SR" if done else "right operations",
        "average": average,
    }


def recall(paths: Sequence[Path]) -> dict[str, Any]:
    """Share of the steps of each split whose right element is among the first k ranked, for every k of the run. Steps
    without a right element count as missed. Runs over the same ranking give one curve. Raises InputError where nothing
    was ranked.
    """
    curves: dict[tuple[str, tuple[float, ...]], dict[str, Any]] = {}
    runs = [run for run in _read_all(paths) if run.settings.get("top_k")]
    for run in runs:
        shares = recall_curve(run)
        label = f"{run.settings.get('ranker')}, {run.results.split}"
        curves.setdefault((label, tuple(shares)), {"label": label, "recall": shares})
    if not curves:
        raise InputError("runs", sentence="none of the runs ranks candidates; name one that does")
    return {"about": data_of(runs), "curves": list(curves.values())}


def cost(paths: Sequence[Path]) -> dict[str, Any]:
    """The cost of a task and Step SR. In calls where some run's price is not known, or none paid anything."""
    runs = [run for run in _read(paths) if run.results.step_success_rate]
    if not runs:
        raise InputError("runs", sentence="none of the runs asks for an element; name one that does")
    unit = cost_unit(runs)
    made = []
    for run, label in zip(runs, _labels_with_split(runs), strict=True):
        figure = run.figure("step_success_rate")
        figures = {"a_task": cost_of_task(run, unit), "step_success_rate": figure and asdict(figure)}
        made.append({"run": run.name, "label": label, **figures})
    return {"about": data_of(runs), "unit": unit, "runs": made}


def over_time(paths: Sequence[Path]) -> dict[str, Any]:
    """Step SR of runs by the day and hour on which they began: a line for each tag (`--tags`), or label or method of
    runs without one.

    Runs of other steps or averages are no points of one line. `changed` of a point: the settings, beside tags, metadata
    and label, in which it differs from the one before, where the line breaks. Raises InputError for runs without a
    date.
    """
    lines: dict[tuple[str, tuple[str, ...], frozenset[Any]], list[tuple[TableRun, dict[str, Any]]]] = {}
    runs = [run for run in _read_all(paths) if run.results.step_success_rate]
    for run in runs:
        if run.begun is None:
            raise InputError("runs", "runs whose manifest says when they began", f"{run.name}: {run.date!r}")
        figure = run.figure("step_success_rate")
        about = run.results.split, f"{len(run.counted)} steps", run.average("step_success_rate")
        tags = run.settings.get("tags")
        point = {"run": run.name, "label": run.label if tags else "", "date": run.begun}
        for tag in tags or [run.label or run.method]:
            line = lines.setdefault((str(tag), about, run.keys), [])
            line.append((run, {**point, **(asdict(figure) if figure else {})}))
    if not lines:
        raise InputError("runs", sentence="none of the runs asks for an element; name one that does")
    n_alike = Counter(tag for tag, *_ in lines)
    made: list[dict[str, Any]] = []
    for (tag, differing, _), points in lines.items():
        points.sort(key=lambda pair: pair[1]["date"])
        before = [None, *(run for run, _ in points)]
        changed = [
            [] if earlier is None else _changed(earlier, run) for earlier, (run, _) in zip(before, points, strict=False)
        ]
        drawn = [{**point, "changed": names} for (_, point), names in zip(points, changed, strict=True)]
        made.append({"label": tag if n_alike[tag] == 1 else ", ".join([tag, *differing]), "points": drawn})
    alone = len(runs) > 1 and all(len(line["points"]) == 1 for line in made)
    return {"about": data_of(runs), "lines": made, "hint": ONE_RUN_EACH if alone else ""}


def _changed(before: TableRun, after: TableRun) -> list[str]:
    """The settings in which two runs differ, with their new values where a table would name these."""
    ours, theirs = (
        {
            **dict.fromkeys(run.identity, ""),
            **{name: value for name, value in run.settings.items() if name not in OWN_WORDS},
        }
        for run in (after, before)
    )
    identities = after.identity, before.identity
    names = [
        name
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name) or identities[0].get(name) != identities[1].get(name)
    ]
    return [
        f"{name} {value}".strip() if isinstance(value := ours.get(name), str | int | float) else name for name in names
    ]


def data_of(runs: Sequence[TableRun]) -> str:
    """The data set, the splits and the steps that runs are of, in words."""
    return data_in_words(
        [
            Extent(run.settings.get("dataset"), run.results.split, run.results.n_steps, run.results.n_tasks)
            for run in runs
        ]
    )


def _read_all(paths: Sequence[Path]) -> list[TableRun]:
    return [read_run(path, Path.cwd()) for path in find_runs(paths)]


def _read(paths: Sequence[Path]) -> list[TableRun]:
    """Keeps the newest of runs that differ in their date alone."""
    return one_of_each(_read_all(paths))


def _labels_with_split(runs: Sequence[TableRun]) -> list[str]:
    """Labels with the split, and with the average that a run's protocol quotes, where these differ."""
    parts = [[run.results.split for run in runs], [run.average("step_success_rate") for run in runs]]
    parting = [words for words in parts if len(set(words)) > 1]
    return [", ".join(words) for words in zip(labels(runs), *parting, strict=True)]
