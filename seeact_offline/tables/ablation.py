"""Tables of runs over the same steps that differ in one thing: in their marks, Table 5 of the paper, in what a web
agent observes, or in the ranker of the candidates.

The runs are those of `ablate`, or any others. Where no paper has such figures, ceilings and costs stand beside them:
those of web agents are success rates of tasks on live or hosted sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from seeact_offline.files.formats import typed
from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.records import InputError
from seeact_offline.runs.costs import ledger_cost
from seeact_offline.runs.folder import RunFolder, read_manifest
from seeact_offline.runs.markings import Marking, paper_markings
from seeact_offline.scoring.comparison import gap_interval, points
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.results import Results, StepRow
from seeact_offline.scoring.run_figures import RECALL_AT, Figure, ablation_figures, ablation_usage, compared_figures
from seeact_offline.tables.document import (
    NO_FIGURE,
    ORIGIN,
    Provenance,
    TableDocument,
    averages_in_words,
    figure_cells,
    figure_columns,
    interval_of,
    values_table,
)
from seeact_offline.tables.table_input import (
    BESIDE,
    NO_SUCCESS_RATES,
    SAMPLE,
    TableInput,
    TableRun,
    read_run,
    read_typed,
    relative,
)

ABLATION = "table.json"
COUNTS = ("replies_reused", "failed_steps")
SOURCE = "SeeAct, arXiv 2401.01614v2, Table 5"
TITLES = tuple(METRICS.values())
SHARED = (
    "Tokens and USD are of the row that asked first: equal questions of other rows reused its replies and are not counted"
    " again."
)
SPENT = ("Prompt tokens a step", "USD")


@dataclass(frozen=True, slots=True)
class Layout:
    """A table of runs that differ in one thing."""

    title: str
    place: Mapping[str, str]
    """The entries of `table.json` that tell its rows apart, with the titles of their columns."""
    place_of: Callable[[Results], dict[str, Any] | None]
    """The values of these entries; None for a run that has no place in the table."""
    words: str
    """A row in words, with the entries as placeholders."""
    expected: str
    """The runs that have a place in it."""
    paper: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] | None = None
    """The paper's figures of a row, as fractions; None: no paper has any. Then ceilings and costs stand in their
    place."""
    beside: Mapping[str, str] = field(default_factory=lambda: BESIDE)
    """The figures that then stand there, with their titles."""
    remark: str = f"Ceiling: {METRICS['element_accuracy']} of a model that is given the answers. {NO_SUCCESS_RATES}"
    """A note on these."""


LAYOUTS: Mapping[str, Layout] = {
    "5": Layout(
        title="Ways of marking",
        place={"kind": "kind", "position": "position", "turn1": "turn 1"},
        place_of=lambda results: (
            None
            if results.marks is None
            else {
                "kind": results.marks,
                "position": results.mark_position,
                "turn1": "marked" if results.mark_turn1 else "plain",
            }
        ),
        words="{kind}, {position}, {turn1} turn 1",
        expected="runs by annotation, or a folder of ablate-markup",
        paper=lambda row: paper_markings().get(Marking(row["kind"], row["position"], row["turn1"] == "marked")),
    ),
    "observations": Layout(
        title="Observations of a web agent",
        place={"agent": "agent", "observation": "observation"},
        place_of=lambda results: (
            None if results.observation is None else {"agent": results.grounding, "observation": results.observation}
        ),
        words="{observation}",
        expected="runs of web agents, or a folder of ablate --over observation",
    ),
    "rankers": Layout(
        title="Rankers",
        place={"ranker": "ranker"},
        place_of=lambda results: None if results.ranker is None else {"ranker": results.ranker},
        words="{ranker}",
        expected="runs that rank candidates, or a folder of ablate --over ranker",
        beside={**{name: f"Recall@{k}" for name, k in RECALL_AT.items()}, "ceiling": BESIDE["ceiling"]},
        remark=(
            "Recall: steps with a right element among so many candidates. Ceiling: the same among all that are offered,"
            " which no model exceeds."
        ),
    ),
}
"""Layouts by the name of the table."""


def build(request: TableInput) -> TableDocument:
    """Raises InputError for runs that cannot be rows of one table."""
    if len(request.paths) == 1 and (request.paths[0] / ABLATION).is_file():
        folder = request.paths[0]
        made = read_typed(folder / ABLATION, _Ablation)
        runs = [read_run(folder / row.folder, request.base) for row in made.rows]
        table = ablation_table(request.table, folder, [row.folder for row in made.rows], made.complete)
        return _document(request, table, runs, [relative(folder, request.base)])
    runs = request.runs
    _check_alike(LAYOUTS[request.table], runs)
    table = _table(LAYOUTS[request.table], runs, runs[0].settings, [run.name for run in runs])
    return _document(request, table, runs, [run.name for run in runs])


class _AblationRow(msgspec.Struct):
    folder: str


class _Ablation(msgspec.Struct):
    """The entries of an ablation's `table.json` that the run folders beside it do not hold."""

    rows: tuple[_AblationRow, ...]
    complete: bool = True


# --- figures ---


def ablation_table(name: str, folder: Path, rows: Sequence[str], complete: bool) -> dict[str, Any]:
    """`table.json` of `ablate`: figures over the steps that all rows have. `rows`: the names of its run folders.

    `name`: one of LAYOUTS. `complete`: whether all steps were asked. Raises InputError.
    """
    # opens pages, which other tables do not need
    from seeact_offline.results.recompute import score_over

    runs = [read_run(folder / row, folder) for row in rows]
    _check_place(LAYOUTS[name], runs)
    shared = frozenset.intersection(*(frozenset(step.key for step in run.steps) for run in runs))
    for place, run in enumerate(runs):
        if len(run.steps) != len(shared):
            made = score_over(run.path, shared, run.results.protocol)
            runs[place] = replace(run, results=made.results, steps=[typed(row, StepRow) for row in made.rows])
    settings = read_manifest(folder).settings | {"protocol": runs[0].results.protocol}
    table = _table(LAYOUTS[name], runs, settings, rows) | {"complete": complete}
    calls = [call.record for run in runs for of_step in RunFolder(run.path).load_calls().values() for call in of_step]
    usage = table["usage"]
    return table | {"usage": {**usage, "cost_usd": ledger_cost(RunFolder(folder).ledger, calls, usage["cost_usd"])}}


def _check_place(layout: Layout, runs: Sequence[TableRun]) -> None:
    """Raises InputError for a run that has no place in the table."""
    for run in runs:
        if layout.place_of(run.results) is None:
            raise InputError("runs", layout.expected, f"{run.name}, by {run.results.grounding}")


def _check_alike(layout: Layout, runs: Sequence[TableRun]) -> None:
    """Raises InputError for runs that have no place in the table, or differ in model, split, protocol or steps."""
    _check_place(layout, runs)
    first = runs[0]
    for name in ("split", "model", "protocol"):
        for run in runs:
            ours, theirs = getattr(first.results, name), getattr(run.results, name)
            if ours != theirs:
                raise InputError("runs", f"runs of one {name}", f"{ours} in {first.name} and {theirs} in {run.name}")
    if len({run.keys for run in runs}) > 1:
        sizes = ", ".join(f"{run.name} ({run.results.n_steps})" for run in runs)
        raise InputError("runs", "runs over the same steps", sizes)


def _table(
    layout: Layout, runs: Sequence[TableRun], settings: Mapping[str, Any], folders: Sequence[str]
) -> dict[str, Any]:
    """All shares as fractions: each row's figures, their difference to the first row, the paper's."""
    first, rows = runs[0].results, []
    for run, folder in zip(runs, folders, strict=True):
        place = layout.place_of(run.results) or {}
        beside, entries = tuple(layout.beside), None
        if layout.paper is not None:
            paper = None if run.is_sample else layout.paper(place)
            beside, entries = (), {"paper": None if paper is None else dict(paper)}
        rows.append({**place, "folder": folder, **ablation_figures(run, runs[0], beside, entries)})
    return {
        "schema": 1,
        **settings,
        "n_tasks": first.n_tasks,
        "n_steps": first.n_steps,
        "complete": all(run.results.complete for run in runs),
        "baseline": folders[0],
        "rows": rows,
        "usage": ablation_usage(runs),
    }


# --- drawing ---


def _document(
    request: TableInput, table: dict[str, Any], runs: Sequence[TableRun], inputs: Sequence[str]
) -> TableDocument:
    layout = LAYOUTS[request.table]
    provenance = Provenance(
        table=request.table, inputs=inputs, stderr=request.stderr, runs=[run.source for run in runs]
    )
    return TableDocument(
        title=f"{layout.title}, on {table['split']}",
        lead=[_head(layout, table), *([] if (request.paths[0] / ABLATION).is_file() else request.choice)],
        tables=[_figures(layout, table, request.stderr), *_difference_table(layout, table), _costs(layout, table)],
        figures=_for_a_paper(layout, table, request.stderr),
        values=_values(layout, table, provenance),
        provenance=provenance,
    )


def _head(layout: Layout, table: Mapping[str, Any]) -> str:
    ranker = "" if "ranker" in layout.place or table["ranker"] is None else f", ranker {table['ranker']}"
    size = f"{table['n_steps']} steps of {table['n_tasks']} tasks in every row"
    complete = "" if table["complete"] else ", not all that were asked for"
    return f"{table['model']}{ranker}, protocol {table['protocol']}: {size}{complete}."


def _figures(layout: Layout, table: Mapping[str, Any], stderr: bool) -> Table:
    notes = [_measure(layout, table)]
    if table["n_tasks"] < 2:
        notes[0] += " One task says nothing of how tasks vary, so the intervals are everything."
    if len(table["rows"]) < 2:
        notes.append("One row only: there is nothing to compare.")
    titles = [text for title in TITLES for text in (title, *([f"{title}: SE"] if stderr else []))]
    beside = layout.beside.values() if layout.paper is None else [f"paper: {title}" for title in _papers(table)]
    rows = []
    for row in table["rows"]:
        others = _beside(layout, table, row, "({} to {})") if layout.paper is None else _paper(table, row)
        rows.append((*_place(layout, row), *_own(table, row, stderr, "({} to {})"), *others))
    return Table(header=(*layout.place.values(), *titles, *beside), rows=rows, notes=notes)


def _own(table: Mapping[str, Any], row: Mapping[str, Any], stderr: bool, interval: str = "") -> list[str]:
    return [text for figure in _row_figures(table, row) for text in figure_cells(figure, stderr, interval)]


def _beside(layout: Layout, table: Mapping[str, Any], row: Mapping[str, Any], interval: str = "") -> list[str]:
    """The figures beside METRICS, with their intervals where these have a form."""
    cells = [figure_cells(_figure(table, row, name), stderr=False, interval=interval) for name in layout.beside]
    return [texts[0] for texts in cells]


def _row_figures(table: Mapping[str, Any], row: Mapping[str, Any]) -> list[Figure]:
    """The figures of METRICS."""
    return [figure for name in METRICS if (figure := _figure(table, row, name)) is not None]


def _figure(table: Mapping[str, Any], row: Mapping[str, Any], name: str) -> Figure | None:
    """A figure of METRICS or beside them, whose averages are those of Element Accuracy; None where the run has none."""
    entry = row[name]
    if entry is None:
        return None
    quoted = headline(table["protocol"], name if name in METRICS else "element_accuracy", entry)
    return Figure(entry["macro"], entry["micro"], **quoted, method=entry["method"])


def _measure(layout: Layout, table: Mapping[str, Any]) -> str:
    figures = [_row_figures(table, row) for row in table["rows"]]
    quotes = [(title, figure.average) for title, figure in zip(TITLES, figures[0], strict=True)]
    methods = interval_of([figure for some in figures for figure in some])
    beside = f" Paper: {SOURCE}, whose figures are those of its own model and steps." if _papers(table) else ""
    if layout.paper is None:
        beside = f" {layout.remark}"
    return f"Percent. {averages_in_words(quotes, [table['protocol']])} 95 % interval: {methods}.{beside}"


def _difference_table(layout: Layout, table: Mapping[str, Any]) -> list[Table]:
    """Empty if there is only one row."""
    compared = {
        **METRICS,
        **{name: title for name, title in layout.beside.items() if name in compared_figures(tuple(layout.beside))},
    }
    rows = []
    for row in table["rows"]:
        if gaps := row["difference_to_baseline"]:
            cells = [f"{points(gaps[name]['macro'])} ({gap_interval(gaps[name]['ci95'])})" for name in compared]
            rows.append((*_place(layout, row), *cells))
    note = "Points of the macro averages, with the 95 % interval of a paired test that flips the signs of the tasks' differences."
    title = f"Differences: row minus the first, {layout.words.format(**table['rows'][0])}"
    header = (*layout.place.values(), *compared.values())
    return [Table(title=title, header=header, rows=rows, notes=[note])] if rows else []


def _costs(layout: Layout, table: Mapping[str, Any]) -> Table:
    counts = (*COUNTS, "unreadable_replies")
    totals = {name: sum(row[name] for row in table["rows"]) for name in counts}
    rows = [(*_place(layout, row), *_cost(row["usage"], row)) for row in table["rows"]]
    rows.append(("all", *("" for _ in [*layout.place][1:]), *_cost(table["usage"], totals)))
    spent = ("calls", "replies reused", "prompt tokens", "completion tokens", "cost, USD", "failed steps")
    header = (*layout.place.values(), *spent, "unreadable replies")
    note = (
        "Equal questions of a step are asked once: the row and group that came first paid, the others reused the reply."
    )
    return Table(title="Calls and cost", header=header, rows=rows, notes=[note])


def _cost(usage: Mapping[str, Any], counts: Mapping[str, Any]) -> tuple[str, ...]:
    cost = "not known" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f}"
    amounts = usage["calls"], counts["replies_reused"], usage["prompt_tokens"], usage["completion_tokens"]
    rest = counts["failed_steps"], counts["unreadable_replies"]
    return (*(f"{n:,}" for n in amounts), cost, *(f"{n:,}" for n in rest))


def _spent(table: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """The values of SPENT."""
    usage, n_steps = row["usage"], table["n_steps"]
    cost = usage["cost_usd"]
    tokens = f"{usage['prompt_tokens'] / n_steps:.0f}" if n_steps else NO_FIGURE
    return [tokens, NO_FIGURE if cost is None else f"{cost:.4f}"]


def _for_a_paper(layout: Layout, table: Mapping[str, Any], stderr: bool) -> Table:
    """The figures beside the paper's, or beside ceilings and costs."""
    failed = sum(row["failed_steps"] for row in table["rows"])
    columns = [text for title in TITLES for text in (title, *figure_columns(stderr))]
    n_labels = len(layout.place)
    beside = (*layout.beside.values(), *SPENT) if layout.paper is None else _papers(table)
    rows = []
    for row in table["rows"]:
        others = [*_beside(layout, table, row), *_spent(table, row)] if layout.paper is None else _paper(table, row)
        rows.append((*_place(layout, row), *_own(table, row, stderr), *others))
    header = (*(title.capitalize() for title in layout.place.values()), *columns, *beside)
    return Table(
        above=[
            ("", n_labels),
            (table["model"], len(columns)),
            *([("" if layout.paper is None else "Paper", len(beside))] if beside else []),
        ],
        header=header,
        rows=rows,
        remarks=[f"{ORIGIN} {number}" for number, _ in enumerate(table["rows"], 1)],
        notes=[
            _measure(layout, table),
            f"{_head(layout, table)} Failed to run: {failed}.",
            *([SHARED] if layout.paper is None and any(row["replies_reused"] for row in table["rows"]) else []),
        ],
        n_labels=n_labels,
        numbers=[i for i, title in enumerate(header) if i >= n_labels and title != "95 % interval"],
    )


def _values(layout: Layout, table: Mapping[str, Any], provenance: Provenance) -> Table:
    """Every value under a name of its own, shares as fractions, empty if there is none."""
    lines = []
    for row, source in zip(table["rows"], provenance.runs, strict=True):
        line: dict[str, Any] = {name: row[name] for name in (*layout.place, "folder")}
        for name, figure in zip(METRICS, _row_figures(table, row), strict=True):
            gap = (row["difference_to_baseline"] or {}).get(name) or {"macro": None, "ci95": None}
            low, high = figure.ci95 or (None, None)
            gap_low, gap_high = gap["ci95"] or (None, None)
            line |= {name: figure.value, f"{name}_average": figure.average, f"{name}_low": low, f"{name}_high": high}
            line |= {f"{name}_se": figure.se, f"{name}_difference": gap["macro"]}
            line |= {f"{name}_difference_low": gap_low, f"{name}_difference_high": gap_high}
            if layout.paper is not None and _papers(table):
                line[f"{name}_paper"] = (row["paper"] or {}).get(name)
        for name in layout.beside if layout.paper is None else ():
            beside = _figure(table, row, name)
            low, high = (beside and beside.ci95) or (None, None)
            line |= {name: beside and beside.value, f"{name}_low": low, f"{name}_high": high}
        line |= {name: row["usage"][name] for name in ("calls", "prompt_tokens", "completion_tokens", "cost_usd")}
        lines.append(line | {name: row[name] for name in COUNTS} | provenance.columns([source]))
    return values_table(lines)


def _place(layout: Layout, row: Mapping[str, Any]) -> list[str]:
    return [row[name] for name in layout.place]


def _papers(table: Mapping[str, Any]) -> Sequence[str]:
    """The titles of the paper's figures; none beside the bundled sample."""
    return () if table["dataset"] == SAMPLE else TITLES


def _paper(table: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    return [percent((row["paper"] or {}).get(name)) for name, _ in zip(METRICS, _papers(table), strict=False)]
