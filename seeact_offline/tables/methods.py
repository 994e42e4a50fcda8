"""Tables 2, 3 and 4 of the paper: methods by split, as `runs.tabling` gathered them. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.scoring.report import METRICS
from seeact_offline.tables.drawing import ORIGIN, Drawing, interval_of, numbers_of, provenance, provenance_columns

TITLES = dict(METRICS) | {"offline0": "Offline 0", "offline1": "Offline 1", "online": "Online"}
SPLIT_TITLES = {
    "cross_task": "Cross-Task",
    "cross_website": "Cross-Website",
    "cross_domain": "Cross-Domain",
    "pooled": "All splits",
}
WHAT = {2: "Methods by split", 3: "Groundings by split", 4: "Whole tasks, all splits pooled"}
SIZES = {"n_tasks": "tasks", "n_steps": "steps", "not_run": "not run", "left_out": "left out"}
NO_FIGURE = "-"


def draw(results: Mapping[str, Any], remark: str = "") -> Drawing:
    return Drawing(
        title=f"Table {results['table']}: {WHAT[results['table']]}",
        remark=remark,
        tables=[_page(results), _papers_rows(results)],
        figures=_for_a_paper(results, remark),
        values=_values(results),
        provenance=provenance(results),
    )


def _page(results: Mapping[str, Any]) -> Table:
    """A row a method and split, with the paper's figures of the same method and split beside ours."""
    pairs = [(TITLES[name], 2) for name in results["metrics"]]
    rows = [
        (
            row["method"],
            _split(row, split),
            *_beside(results, row, split),
            *(row["cells"][split][name] for name in SIZES),
            numbers_of(results, row["runs"][split]),
        )
        for row in results["rows"]
        for split in row["cells"]
    ]
    return Table(
        above=[("", 2), *pairs, ("", len(SIZES) + 1)],
        header=("method", "split", *(["ours", "paper"] * len(pairs)), *SIZES.values(), ORIGIN),
        rows=rows,
        notes=_notes(results, "beside ours only if grounding, model and split are the same beyond doubt"),
        n_labels=2,
    )


def _split(row: Mapping[str, Any], split: str) -> str:
    return ", ".join(row["splits"]) if split == "pooled" else split


def _beside(results: Mapping[str, Any], row: Mapping[str, Any], split: str) -> list[str]:
    texts = []
    for name in results["metrics"]:
        texts += [_figure(row["cells"][split][name], "({} to {})"), _text(_paper(results, row["paper"], split, name))]
    return texts


def _papers_rows(results: Mapping[str, Any]) -> Table:
    paper = results["paper"]
    splits = list(dict.fromkeys(split for row in paper["rows"] for split in row["figures"]))
    rows = [
        (row["method"], *(_text(one) for split in splits for one in row["figures"][split])) for row in paper["rows"]
    ]
    return Table(
        title="The paper's own rows",
        above=[("", 1), *((SPLIT_TITLES[split], len(paper["columns"])) for split in splits)],
        header=("method", *([TITLES[name] for name in paper["columns"]] * len(splits))),
        rows=rows,
        notes=[f"Percent. {paper['source']}. {paper.get('remark', '')}".strip()],
    )


def _for_a_paper(results: Mapping[str, Any], remark: str) -> Table:
    """The paper's layout: methods down, splits across; below ours the paper's own rows."""
    splits, metrics = results["splits"], results["metrics"]
    ours = [
        (row["method"], *(_in_a_row(row["cells"].get(split), name) for split in splits for name in metrics))
        for row in results["rows"]
    ]
    papers = [
        (f"Paper: {row['method']}", *(_text(_paper(results, row, split, name)) for split in splits for name in metrics))
        for row in results["paper"]["rows"]
    ]
    return Table(
        title=f"Table {results['table']}: {WHAT[results['table']]}",
        above=[("", 1), *((SPLIT_TITLES.get(split, split), len(metrics)) for split in splits)],
        header=("Method", *([TITLES[name] for name in metrics] * len(splits))),
        rows=[*ours, *papers],
        notes=[
            *([remark] if remark else []),
            *_notes(results, "its rows are of its own models and data"),
            *_sizes(results),
        ],
        parts=[len(ours)],
        remarks=[
            f"{ORIGIN} {numbers_of(results, [path for split in row['cells'] for path in row['runs'][split]])}"
            for row in results["rows"]
        ],
    )


def _in_a_row(cell: Mapping[str, Any] | None, name: str) -> str:
    return NO_FIGURE if cell is None else _figure(cell[name], "[{}, {}]")


def _sizes(results: Mapping[str, Any]) -> list[str]:
    """What the narrow layout has no columns for, a sentence a method."""
    return [
        f"{row['method']}: "
        + "; ".join(
            f"{_split(row, split)} {cell['n_steps']} steps of {cell['n_tasks']} tasks, {cell['not_run']} not run, {cell['left_out']} left out"
            for split, cell in row["cells"].items()
        )
        + "."
        for row in results["rows"]
    ]


def _notes(results: Mapping[str, Any], papers: str) -> list[str]:
    """`papers`: where the paper's figures stand."""
    cells = [cell for row in results["rows"] for cell in row["cells"].values()]
    figures = [cell[name] for cell in cells for name in results["metrics"] if cell[name] is not None]
    what = "Share of tasks" if results["table"] == 4 else "Mean over tasks of the task's mean"
    paper = results["paper"]
    return [
        f"Percent. {what}, with its 95 % interval: {interval_of(figures)}. Steps that did not run count as wrong; those"
        " that the protocol leaves out count nowhere.",
        f"Paper: {paper['source']}; {papers}. {paper.get('remark', '')}".strip(),
        *results["notes"],
    ]


def _values(results: Mapping[str, Any]) -> Table:
    """A line a figure: shares as fractions, the paper's too, empty where there is none, and where it comes from."""
    runs = {run["run"]: run for run in results["runs"]}
    lines = [
        _line(results, row, split, name, [runs[path] for path in row["runs"][split]])
        for row in results["rows"]
        for split in row["cells"]
        for name in results["metrics"]
    ]
    return Table(header=list(lines[0]), rows=[list(line.values()) for line in lines])


def _line(
    results: Mapping[str, Any], row: Mapping[str, Any], split: str, name: str, runs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    cell = row["cells"][split]
    figure = cell[name] or {"macro": None, "ci95": (None, None), "method": None}
    paper = _paper(results, row["paper"], split, name)
    return {
        "method": row["method"],
        "split": _split(row, split),
        "metric": name,
        "value": figure["macro"],
        "low": figure["ci95"][0],
        "high": figure["ci95"][1],
        "interval": figure["method"],
        "paper": None if paper is None else round(paper / 100, 4),
        **{size: cell[size] for size in SIZES},
        **provenance_columns(results, runs),
    }


def _paper(results: Mapping[str, Any], row: Mapping[str, Any] | None, split: str, name: str) -> float | None:
    """In percent."""
    figures = (row or {}).get("figures", {}).get(split)
    return None if figures is None else figures[results["paper"]["columns"].index(name)]


def _figure(figure: Mapping[str, Any] | None, interval: str) -> str:
    if figure is None:
        return NO_FIGURE
    return f"{percent(figure['macro'])} {interval.format(*map(percent, figure['ci95']))}"


def _text(value: float | None) -> str:
    return NO_FIGURE if value is None else f"{value:.1f}"
