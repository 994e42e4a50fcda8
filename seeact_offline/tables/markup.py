"""Table 5 of the paper: the markup ablation's `table.json`. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.scoring.comparison import gap_interval, points
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.report import METRICS
from seeact_offline.tables.drawing import (
    ORIGIN,
    Drawing,
    averages_in_words,
    best_cells,
    figure_cells,
    figure_columns,
    interval_of,
    provenance,
    provenance_columns,
)

COUNTS = ("replies_reused", "failed_steps")
PLACE = ("kind", "position", "turn 1")
SOURCE = "SeeAct, arXiv 2401.01614v2, Table 5"
TITLES = tuple(title for _, title in METRICS)


def draw(results: Mapping[str, Any], remark: str = "") -> Drawing:
    return Drawing(
        title=f"Ways of marking, on {results['split']}",
        remark=remark,
        lead=[_head(results)],
        tables=[_figures(results), *_differences(results), _costs(results)],
        figures=_for_a_paper(results, remark),
        values=_values(results),
        provenance=provenance(results),
    )


def _head(results: Mapping[str, Any]) -> str:
    what = f"{results['model']}, ranker {results['ranker']}, protocol {results['protocol']}"
    size = f"{results['n_steps']} steps of {results['n_tasks']} tasks in every row"
    rest = "" if results["complete"] else ", not all that were asked for"
    return f"{what}: {size}{rest}."


def _figures(results: Mapping[str, Any]) -> Table:
    notes = [_measure(results)]
    if results["n_tasks"] < 2:
        notes[0] += " One task says nothing of how tasks vary, so the intervals are everything."
    if len(results["rows"]) < 2:
        notes.append("One row only: there is nothing to compare.")
    stderr = results.get("stderr", False)
    titles = [text for title in TITLES for text in (title, *([f"{title}: SE"] if stderr else []))]
    return Table(
        header=(*PLACE, *titles, *(f"paper: {title}" for title in TITLES)),
        rows=[(*_place(row), *_own(results, row, "({} to {})"), *_paper(row)) for row in results["rows"]],
        notes=notes,
    )


def _own(results: Mapping[str, Any], row: Mapping[str, Any], interval: str = "") -> list[str]:
    quoted = [headline(results["protocol"], name, row[name]) for name, _ in METRICS]
    return [text for figure in quoted for text in figure_cells(figure, results.get("stderr", False), interval)]


def _measure(results: Mapping[str, Any]) -> str:
    quotes = [
        (title, headline(results["protocol"], name, results["rows"][0][name])["average"]) for name, title in METRICS
    ]
    ways = interval_of([row[name] for row in results["rows"] for name, _ in METRICS])
    return (
        f"Percent. {averages_in_words(quotes, [results['protocol']])} 95 % interval: {ways}."
        f" Paper: {SOURCE}, whose figures are those of its own model and steps."
    )


def _differences(results: Mapping[str, Any]) -> list[Table]:
    """Empty if there is only one row."""
    best = next(row for row in results["rows"] if row["folder"] == results["best"])
    rows = [
        (*_place(row), *(_signed(row["difference_to_best"][name]) for name, _ in METRICS))
        for row in results["rows"]
        if row["difference_to_best"] is not None
    ]
    note = (
        "Points of the macro averages, with the 95 % interval of a paired test that flips the signs of the tasks' differences. The best row was found by"
        " these very figures (Step SR, then Element Accuracy), so its lead is on the high side."
    )
    title = f"Difference to the best row: {best['kind']}, {best['position']}, {best['turn1']} turn 1"
    return [Table(title=title, header=(*PLACE, *TITLES), rows=rows, notes=[note])] if rows else []


def _costs(results: Mapping[str, Any]) -> Table:
    reused = sum(row["replies_reused"] for row in results["rows"])
    failed = sum(row["failed_steps"] for row in results["rows"])
    unreadable = sum(row.get("unreadable_replies", 0) for row in results["rows"])
    rows = [
        (
            *_place(row),
            *_cost(row["usage"], row["replies_reused"], row["failed_steps"]),
            _unreadable(row),
        )
        for row in results["rows"]
    ]
    rows.append(("all", "", "", *_cost(results["usage"], reused, failed), f"{unreadable:,}"))
    spent = ("calls", "replies reused", "prompt tokens", "completion tokens", "cost, USD", "failed steps")
    header = (*PLACE, *spent, "unreadable replies")
    note = (
        "Equal questions of a step are asked once: the row and group that came first paid, the others reused the reply."
    )
    return Table(title="Calls and cost", header=header, rows=rows, notes=[note])


def _unreadable(row: Mapping[str, Any]) -> str:
    """Those of a group count each; a table from before they were counted has none."""
    return f"{row['unreadable_replies']:,}" if "unreadable_replies" in row else "not known"


def _for_a_paper(results: Mapping[str, Any], remark: str) -> Table:
    """The figures beside the paper's."""
    failed = sum(row["failed_steps"] for row in results["rows"])
    counted = [_measure(results), f"{_head(results)} Failed to run: {failed}."] if "inputs" in results else []
    columns = [text for title in TITLES for text in (title, *figure_columns(results.get("stderr", False)))]
    rows = [(*_place(row), *_own(results, row), *_paper(row)) for row in results["rows"]]
    header = ("Kind", "Position", "Turn 1", *columns, *TITLES)
    return Table(
        above=[("", len(PLACE)), (results["model"], len(columns)), ("Paper", len(METRICS))],
        header=header,
        rows=rows,
        remarks=[f"{ORIGIN} {number}" for number, _ in enumerate(results["rows"], 1)],
        notes=[*([remark] if remark else []), *counted],
        n_labels=len(PLACE),
        numbers=[i for i, title in enumerate(header) if i >= len(PLACE) and title != "95 % interval"],
        best=best_cells(rows, [i for i, title in enumerate(header[: -len(METRICS)]) if title in TITLES]),
    )


def _values(results: Mapping[str, Any]) -> Table:
    """Every value under a name of its own, shares as fractions, empty if there is none."""
    lines = [_named_values(results["protocol"], row) for row in results["rows"]]
    if "inputs" in results:
        traced = zip(lines, results["runs"], strict=True)
        lines = [line | provenance_columns(results, [run]) for line, run in traced]
    return Table(header=list(lines[0]), rows=[list(line.values()) for line in lines])


def _named_values(protocol: str, row: Mapping[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {name: row[name] for name in ("kind", "position", "turn1", "folder")}
    for name, _ in METRICS:
        found = headline(protocol, name, row[name])
        line |= {name: found["value"], f"{name}_average": found["average"]}
        line |= dict(zip((f"{name}_low", f"{name}_high"), found["ci95"] or (None, None), strict=True))
        line[f"{name}_se"] = found["se"]
        line |= _named_difference(name, (row["difference_to_best"] or {}).get(name))
        line[f"{name}_paper"] = (row["paper"] or {}).get(name)
    usage = ("calls", "prompt_tokens", "completion_tokens", "cost_usd")
    return line | {name: row["usage"][name] for name in usage} | {name: row[name] for name in COUNTS}


def _named_difference(name: str, gap: Mapping[str, Any] | None) -> dict[str, Any]:
    low, high = (gap and gap["ci95"]) or (None, None)
    return {
        f"{name}_difference": gap and gap["macro"],
        f"{name}_difference_low": low,
        f"{name}_difference_high": high,
    }


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["kind"], row["position"], row["turn1"]


def _signed(gap: Mapping[str, Any]) -> str:
    return f"{points(gap['macro'])} ({gap_interval(gap['ci95'])})"


def _paper(row: Mapping[str, Any]) -> Sequence[str]:
    return [percent((row["paper"] or {}).get(name)) for name, _ in METRICS]


def _cost(usage: Mapping[str, Any], reused: int, failed: int) -> tuple[str, ...]:
    cost = "not known" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f}"
    counts = usage["calls"], reused, usage["prompt_tokens"], usage["completion_tokens"]
    return (*(f"{count:,}" for count in counts), cost, f"{failed:,}")
