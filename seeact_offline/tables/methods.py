"""Tables 2, 3 and 4 of the paper: methods by split, as `runs.tabling` gathered them. Computes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seeact_offline.files.table import Table
from seeact_offline.scoring.report import METRICS
from seeact_offline.tables.drawing import (
    NO_FIGURE,
    ORIGIN,
    Drawing,
    averages_in_words,
    best_cells,
    figure_cells,
    figure_columns,
    interval_of,
    named_averages,
    numbers_of,
    provenance,
    provenance_columns,
)

TITLES = dict(METRICS) | {"offline0": "Offline 0", "offline1": "Offline 1", "online": "Online"}
SPLIT_TITLES = {
    "cross_task": "Cross-Task",
    "cross_website": "Cross-Website",
    "cross_domain": "Cross-Domain",
    "pooled": "All splits",
}
SEEDS = "Runs that differ in their seed alone are one row: their mean, sample standard deviation (sd) and number (n)."
WHAT = {2: "Methods by split", 3: "Groundings by split", 4: "Whole tasks, all splits pooled"}
SIZES = {"n_tasks": "tasks", "n_steps": "steps", "not_run": "not run", "left_out": "left out"}


def draw(results: Mapping[str, Any], remark: str = "") -> Drawing:
    return Drawing(
        title=_title(results),
        remark=remark,
        tables=[_page(results), *([_papers_rows(results)] if results["by"] is None else [])],
        figures=_for_a_paper(results, remark),
        values=_values(results),
        provenance=provenance(results),
    )


def _title(results: Mapping[str, Any]) -> str:
    return (
        f"Table {results['table']}: {WHAT[results['table']]}{'' if results['by'] is None else ' and ' + results['by']}"
    )


def _page(results: Mapping[str, Any]) -> Table:
    """A row a method and split, with the paper's figures of the same method and split beside ours."""
    named, stderr = _naming(results), results["stderr"]
    figures = ["ours", *(["SE"] if stderr else []), "paper"]
    rows = [
        (
            row["method"],
            _split(row, split),
            *([_average(results, [row["cells"][split]])] if named else []),
            *_beside(results, row, split),
            *(row["cells"][split][name] for name in SIZES),
            numbers_of(results, row["runs"][split]),
        )
        for row in results["rows"]
        for split in row["cells"]
    ]
    return Table(
        above=[
            ("", 2 + len(named)),
            *((TITLES[name], len(figures)) for name in results["metrics"]),
            ("", len(SIZES) + 1),
        ],
        header=("method", _place(results), *named, *(figures * len(results["metrics"])), *SIZES.values(), ORIGIN),
        rows=rows,
        notes=_notes(results, "beside ours only if grounding, model and split are the same beyond doubt"),
        n_labels=2 + len(named),
    )


def _place(results: Mapping[str, Any]) -> str:
    """What a cell is of, beside its method."""
    return "split" if results["by"] is None else f"split, {results['by']}"


def _naming(results: Mapping[str, Any]) -> list[str]:
    """The column that names the average of each row; none where a note says it of all."""
    return ["average"] if len({_average(results, row["cells"].values()) for row in results["rows"]}) > 1 else []


def _average(results: Mapping[str, Any], cells: Iterable[Mapping[str, Any]]) -> str:
    """The names of the averages in these cells, with their metrics if they differ."""
    return named_averages(_quotes(results, cells))


def _quotes(results: Mapping[str, Any], cells: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Each metric's name and the average that stands in these cells."""
    pairs = itertools.product(results["metrics"], cells)
    return [(TITLES[name], cell[name]["average"]) for name, cell in pairs if cell[name] is not None]


def _split(row: Mapping[str, Any], split: str) -> str:
    return ", ".join(row["splits"]) if split == "pooled" else split


def _beside(results: Mapping[str, Any], row: Mapping[str, Any], split: str) -> list[str]:
    texts = []
    for name in results["metrics"]:
        texts += figure_cells(row["cells"][split][name], results["stderr"], "({} to {})")
        texts.append(_text(_paper(results, row["paper"], split, name)))
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
    """The paper's layout: methods down, splits across; below ours the paper's own rows.

    By website or domain a row is a method and one of these, and the paper has none.
    """
    by, metrics, named = results["by"], results["metrics"], _naming(results)
    across = results["splits"] if by is None else [_place(results)]
    columns = [title for name in metrics for title in (TITLES[name], *figure_columns(results["stderr"]))]
    n_labels = 1 + len(named) + (by is not None)
    places = [
        (row, splits)
        for row in results["rows"]
        for splits in ([across] if by is None else [[key] for key in row["cells"]])
    ]
    ours = [_own_row(results, row, splits, named) for row, splits in places]
    papers = [] if by is not None else [_paper_row(results, row, named) for row in results["paper"]["rows"]]
    numbers = [n_labels + i for i, title in enumerate(columns * len(across)) if title != "95 % interval"]
    values = [n_labels + i for i, title in enumerate(columns * len(across)) if title in TITLES.values()]
    return Table(
        title=_title(results),
        above=[("", n_labels), *((SPLIT_TITLES.get(split, split), len(columns)) for split in across)]
        if by is None
        else [],
        header=(
            "Method",
            *([_place(results).capitalize()] if by else []),
            *map(str.capitalize, named),
            *(columns * len(across)),
        ),
        rows=[*ours, *papers],
        notes=[
            *([remark] if remark else []),
            *_notes(results, "its rows are of its own models and data"),
            *_sizes(results),
        ],
        parts=[len(ours)] if papers else [],
        n_labels=n_labels,
        numbers=numbers,
        best=best_cells(ours, values, [1] if by else []) if results["comparable"] else [],
        remarks=[
            f"{ORIGIN} {numbers_of(results, [path for split in splits for path in row['runs'].get(split, ())])}"
            for row, splits in places
        ],
    )


def _own_row(
    results: Mapping[str, Any], row: Mapping[str, Any], splits: Sequence[str], named: Sequence[str]
) -> list[str]:
    """`splits`: the keys of its cells, from left to right."""
    cells = [row["cells"].get(split) for split in splits]
    labels = [
        row["method"],
        *(splits if results["by"] else ()),
        *(_average(results, filter(None, cells)) for _ in named),
    ]
    pairs = itertools.product(cells, results["metrics"])
    return [*labels, *(text for cell, name in pairs for text in figure_cells(cell and cell[name], results["stderr"]))]


def _paper_row(results: Mapping[str, Any], row: Mapping[str, Any], named: Sequence[str]) -> list[str]:
    pairs = itertools.product(results["splits"], results["metrics"])
    figures = [
        (_text(_paper(results, row, split, name)), *("" for _ in figure_columns(results["stderr"])))
        for split, name in pairs
    ]
    return [f"Paper: {row['method']}", *("macro" for _ in named), *(text for cells in figures for text in cells)]


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
    figures = [cell[name] for cell in _cells(results) for name in results["metrics"] if cell[name] is not None]
    paper = results["paper"]
    return [
        f"Percent. {_averages(results)} 95 % interval: {interval_of(figures)}. Steps that did not run count as wrong; those"
        " that the protocol leaves out count nowhere.",
        *([f"Paper: {paper['source']}; {papers}. {paper.get('remark', '')}".strip()] if results["by"] is None else []),
        *([SEEDS] if any("sd" in figure for figure in figures) else []),
        *_settings(results),
        *results["notes"],
    ]


def _settings(results: Mapping[str, Any]) -> list[str]:
    said = [f"{name} {value}" for name, value in results["settings"].items()]
    return [f"Every run: {', '.join(said)}."] if said else []


def _averages(results: Mapping[str, Any]) -> str:
    if results["table"] == 4:
        return "Share of tasks."
    protocols = dict.fromkeys(run["protocol"] for run in results["runs"])
    return averages_in_words(_quotes(results, _cells(results)), [*protocols])


def _cells(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [cell for row in results["rows"] for cell in row["cells"].values()]


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
    figure = cell[name] or dict.fromkeys(("value", "average", "ci95", "se", "method"))
    low, high = figure["ci95"] or (None, None)
    paper = _paper(results, row["paper"], split, name)
    return {
        "method": row["method"],
        "split": _split(row, split),
        "metric": name,
        "average": figure["average"],
        "value": figure["value"],
        "low": low,
        "high": high,
        "se": figure["se"],
        "sd": figure.get("sd"),
        "n_runs": figure.get("n_runs", 1),
        "interval": figure["method"],
        "paper": None if paper is None else round(paper / 100, 4),
        **{size: cell[size] for size in SIZES},
        **provenance_columns(results, runs),
    }


def _paper(results: Mapping[str, Any], row: Mapping[str, Any] | None, split: str, name: str) -> float | None:
    """In percent."""
    figures = (row or {}).get("figures", {}).get(split)
    return None if figures is None else figures[results["paper"]["columns"].index(name)]


def _text(value: float | None) -> str:
    return NO_FIGURE if value is None else f"{value:.1f}"
