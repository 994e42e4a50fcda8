"""Tables 2, 3 and 4 of the paper, methods by split, and Table 6, groundings and agents on the same steps.

Methods are matched with the paper's rows by grounding and model, where these are the same beyond doubt (`paper/`).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from seeact_offline.files.table import Table
from seeact_offline.records import InputError
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.paired import DataName, of_different_data
from seeact_offline.scoring.paper_tables import paper_table
from seeact_offline.scoring.run_figures import (
    OFFLINE,
    Figure,
    MethodFigures,
    part_figures,
    pooled_figures,
    split_figures,
)
from seeact_offline.tables.document import (
    NO_FIGURE,
    ORIGIN,
    Provenance,
    TableDocument,
    averages_in_words,
    best_of,
    error_columns,
    figure_cells,
    figure_columns,
    interval_of,
    named_averages,
    values_table,
)
from seeact_offline.tables.table_input import BESIDE, NO_SUCCESS_RATES, TableInput, TableRun, labels

SPLITS = {"cross_task": "Cross-Task", "cross_website": "Cross-Website", "cross_domain": "Cross-Domain"}
"""Splits in the paper's order, with their titles."""
POOLED = "pooled"
FIGURES = {
    "2": tuple(METRICS),
    "3": ("step_success_rate",),
    "4": OFFLINE,
    "6": ("element_accuracy", *BESIDE, "operation_f1", "step_success_rate"),
}
TITLES = {**METRICS, **BESIDE, "offline0": "Offline 0", "offline1": "Offline 1", "online": "Online"}
SPLIT_TITLES = SPLITS | {POOLED: "All splits"}
SUBJECTS = {
    "2": "Methods by split",
    "3": "Groundings by split",
    "4": "Whole tasks, all splits pooled",
    "6": "Groundings and agents on the same steps",
}
SIZES = {"n_tasks": "tasks", "n_steps": "steps", "not_run": "not run", "left_out": "left out"}
SEEDS = (
    "Runs that differ in their seed alone are one row: the mean over seeds with its interval over tasks, a step's"
    " value being its mean"
    " over the seeds. sd: sample standard deviation of the seeds' own figures."
)
INTERVAL = "95 % interval"
_CEILINGS = (
    f"Ceiling: {METRICS['element_accuracy']} of a model that is given the answers, with the same ranker and grounding"
    " or agent. Strict and"
    f" lenient: of web agents alone. {NO_SUCCESS_RATES}"
)
T = TypeVar("T")
_IN_ROW = frozenset({"split", "grounding", "model", "limit", "sample", "tasks"})
"""Settings that a row names, or that its sizes say."""


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method."""

    method: str
    splits: Sequence[str]
    cells: Mapping[str, MethodFigures]
    """The cells by split, by `SPLIT, WEBSITE`, or under POOLED."""
    paper: Mapping[str, Any] | None
    """The paper's row of the same method."""


@dataclass(frozen=True, slots=True)
class MethodTable:
    """A table's figures."""

    request: TableInput
    metrics: Sequence[str]
    splits: Sequence[str]
    rows: Sequence[MethodRow]
    differences: Sequence[str]
    """Sentences on what parts runs that stand in one table; where there are any, no row is the best."""

    @property
    def cells(self) -> list[MethodFigures]:
        return [cell for row in self.rows for cell in row.cells.values()]

    @property
    def places(self) -> list[tuple[MethodRow, str, MethodFigures]]:
        """Each row with the name of a cell, and the cell."""
        return [(row, place, cell) for row in self.rows for place, cell in row.cells.items()]

    @property
    def has_seeds(self) -> bool:
        """Tells whether some cell is a mean over seeds."""
        return any(cell.n_seeds > 1 for cell in self.cells)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that have one value in all runs, except those that a row names anyway."""
        first, *others = self.request.runs
        return {
            name: value
            for name, value in first.settings.items()
            if value is not None and name not in _IN_ROW and all(run.settings.get(name) == value for run in others)
        }

    @property
    def title(self) -> str:
        by = f" and {self.request.by}" if self.request.by else ""
        return f"Table {self.request.table}: {SUBJECTS[self.request.table]}{by}"

    @property
    def paper(self) -> Mapping[str, Any] | None:
        """The paper's table; None for Table 6, which no paper has, and beside the bundled sample."""
        is_sample = any(run.is_sample for run in self.request.runs)
        return None if self.request.table == "6" or is_sample else paper_table(int(self.request.table))

    @property
    def is_long(self) -> bool:
        """Tells whether a row of the layout for a paper is one place of a method, because splits do not fit side by
        side."""
        return self.request.by is not None or self.request.table == "6"

    @property
    def place(self) -> str:
        """The title of a cell's place."""
        return f"split, {self.request.by}" if self.request.by else "split"

    @property
    def average_column(self) -> list[str]:
        """The column that names each row's average; none where a note names one for all."""
        return ["average"] if len({self.averages(row.cells.values()) for row in self.rows}) > 1 else []

    def averages(self, cells: Iterable[MethodFigures]) -> str:
        """Names of the averages in these cells, with their metrics if they differ."""
        return named_averages(self.quotes(cells))

    def quotes(self, cells: Iterable[MethodFigures]) -> list[tuple[str, str]]:
        """Each metric's title and the average that stands in these cells."""
        figures = [(TITLES[name], cell.figures[name]) for name, cell in itertools.product(self.metrics, cells)]
        return [(title, figure.average) for title, figure in figures if figure is not None]

    def paper_figure(self, row: Mapping[str, Any] | None, split: str, metric: str) -> float | None:
        """Returns the paper's figure in percent; None where the paper has none."""
        figures = (row or {}).get("figures", {}).get(split)
        paper = self.paper
        return None if figures is None or paper is None else figures[paper["columns"].index(metric)]


def build(request: TableInput) -> TableDocument:
    """Raises InputError for runs that have no place in one table."""
    table = method_table(request)
    provenance = Provenance(
        table=request.table,
        inputs=[run.name for run in request.runs],
        by=request.by,
        stderr=request.stderr,
        runs=[run.source for run in request.runs],
        settings=table.settings,
    )
    return TableDocument(
        title=table.title,
        tables=[_page(table, provenance), *([paper_rows(table.paper)] if table.paper and not request.by else ())],
        figures=_for_a_paper(table, provenance),
        values=_values(table, provenance),
        screen=None if table.is_long else _for_a_screen(table),
        provenance=provenance,
    )


# --- figures ---


def method_table(request: TableInput) -> MethodTable:
    """The figures of Table 2, 3 or 4. Runs that differ in their seed alone are one row. Raises InputError."""
    runs, metrics = request.runs, FIGURES[request.table]
    if request.table == "6":
        _check_comparable(runs)
    methods: dict[str, dict[str, list[TableRun]]] = defaultdict(lambda: defaultdict(list))
    for run, label in zip(runs, labels(runs, pooled="seed"), strict=True):
        methods[label][run.results.split].append(run)
    named = {run.results.split for run in runs}
    splits = [*(split for split in SPLITS if split in named), *sorted(named - SPLITS.keys())]
    rows = []
    for label, by_split in methods.items():
        of_method = {split: by_split[split] for split in splits if split in by_split}
        for alike in of_method.values():
            _check_alike(alike, "runs of one cell over the same steps")
        together = [run for some in of_method.values() for run in some]
        cells: dict[str, MethodFigures] = {}
        if request.table == "4":
            cells = {POOLED: pooled_figures(together)}
        elif request.by is None:
            cells = {split: split_figures(alike, metrics) for split, alike in of_method.items()}
        else:
            for split, alike in of_method.items():
                parts = part_figures(alike, metrics, request.by)
                cells |= {f"{split}, {group}": cell for group, cell in parts.items()}
        rows.append(MethodRow(label, list(of_method), cells, _row_of_paper(request.table, together)))
    shown = [POOLED] if request.table == "4" else splits
    return MethodTable(request, metrics, shown, rows, _differences(request.table, runs))


def _check_comparable(runs: Sequence[TableRun]) -> None:
    """Raises InputError for runs of a split over other steps or data, and for runs scored by different protocols."""
    for split, beside in _grouped((run.results.split, run) for run in runs).items():
        _check_alike(beside, f"runs over the same steps of {split}")
    protocols = _grouped((run.results.protocol, run.name) for run in runs)
    if len(protocols) > 1:
        raise InputError("runs", "runs scored by one protocol (score RUN --protocol NAME)", _listed(protocols))


def _check_alike(runs: Sequence[TableRun], expected: str) -> None:
    """Raises InputError for runs that are over other steps or data than the first."""
    first = runs[0]
    for run in runs:
        of_same_data = run.settings.get("dataset_fingerprint") == first.settings.get("dataset_fingerprint")
        if run.keys != first.keys or not of_same_data:
            sizes = " and ".join(f"{either.name} ({either.results.n_steps})" for either in (first, run))
            raise InputError("runs", expected, sizes)


def _row_of_paper(table: str, runs: Sequence[TableRun]) -> dict[str, Any] | None:
    """The paper's row of the same method; None where there is none beyond doubt, on the bundled sample, or for another
    pool."""
    results, splits = runs[0].results, {run.results.split for run in runs}
    if results.no_image or any(run.is_sample for run in runs):
        return None
    if table == "6" or (table == "4" and splits != set(SPLITS)):
        return None
    model = results.model.rsplit("/", 1)[-1].casefold()
    rows = paper_table(int(table))["rows"]
    return next((row for row in rows if row["grounding"] == results.grounding and model in row["models"]), None)


def _differences(table: str, runs: Sequence[TableRun]) -> list[str]:
    """A sentence on each thing that parts runs of one table."""
    notes = []
    protocols = _grouped((run.results.protocol, run.name) for run in runs)
    if len(protocols) > 1:
        notes.append(f"Scored by different protocols, whose figures do not compare: {_listed(protocols)}.")
    for split in dict.fromkeys(run.results.split for run in runs):
        beside = [run for run in runs if run.results.split == split]
        data = of_different_data((DataName.of(run.settings), run.name) for run in beside)
        steps = _grouped((run.keys, f"{run.name} ({run.results.n_steps})") for run in beside)
        if data:
            notes.append(f"Of different data on {split}: {_listed(data)}.")
        elif len(steps) > 1:
            notes.append(f"Over different steps of {split}: {'; '.join(map(', '.join, steps.values()))}.")
    if table == "6" and len({run.results.model for run in runs}) > 1:
        models = _grouped((run.results.model, run.name) for run in runs)
        notes.append(f"By different models, so that a difference is not of the method alone: {_listed(models)}.")
    if table == "4":
        parts = _grouped((run.method, run.results.split) for run in runs)
        if len({tuple(sorted(set(splits))) for splits in parts.values()}) > 1:
            notes.append(f"Pooled over different splits: {_listed(parts)}.")
    cut = [run.name for run in runs if not run.results.complete]
    return [*notes, *([f"Not all steps that were asked for: {', '.join(cut)}."] if cut else [])]


def _grouped(pairs: Iterable[tuple[Any, T]]) -> dict[Any, list[T]]:
    groups: dict[Any, list[T]] = defaultdict(list)
    for group, member in pairs:
        groups[group].append(member)
    return groups


def _listed(groups: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{group}: {', '.join(members)}" for group, members in groups.items())


# --- drawing ---


def _page(table: MethodTable, provenance: Provenance) -> Table:
    """A row a method and split, with the paper's figures of the same method and split beside ours."""
    averages, stderr, sd = table.average_column, table.request.stderr, table.has_seeds
    papers = ["paper"] if table.paper else []
    columns = ["ours", *error_columns(stderr, sd), *papers]
    seeds = ["seeds"] if sd else []
    rows = []
    for row, place, cell in table.places:
        figures = [
            text
            for name in table.metrics
            for text in (
                *figure_cells(cell.figures[name], stderr, "({} to {})", sd),
                *(_text(table.paper_figure(row.paper, place, name)) for _ in papers),
            )
        ]
        labels_of_row = [row.method, _place(row, place), *(table.averages([cell]) for _ in averages)]
        sizes = [*(getattr(cell, name) for name in SIZES), *(cell.n_seeds for _ in seeds)]
        rows.append([*labels_of_row, *figures, *sizes, provenance.numbers(cell.run_names)])
    n_labels = 2 + len(averages)
    titles = [TITLES[name] for name in table.metrics]
    # one figure a metric needs no second line
    is_plain = len(columns) == 1
    return Table(
        above=[]
        if is_plain
        else [("", n_labels), *((title, len(columns)) for title in titles), ("", len(SIZES) + len(seeds) + 1)],
        header=(
            "method",
            table.place,
            *averages,
            *(titles if is_plain else columns * len(titles)),
            *SIZES.values(),
            *seeds,
            ORIGIN,
        ),
        rows=rows,
        notes=_notes(table, "beside ours only if grounding, model and split are the same beyond doubt"),
        n_labels=n_labels,
    )


def _place(row: MethodRow, place: str) -> str:
    return ", ".join(row.splits) if place == POOLED else place


def paper_rows(paper: Mapping[str, Any]) -> Table:
    """A paper's figures as it has them."""
    splits = list(dict.fromkeys(split for row in paper["rows"] for split in row["figures"]))
    return Table(
        title="The paper's own rows",
        above=[("", 1), *((SPLIT_TITLES[split], len(paper["columns"])) for split in splits)],
        header=("method", *([TITLES[name] for name in paper["columns"]] * len(splits))),
        rows=[
            (row["method"], *(_text(figure) for split in splits for figure in row["figures"][split]))
            for row in paper["rows"]
        ],
        notes=[f"Percent. {paper['source']}. {paper.get('remark', '')}".strip()],
    )


def _for_a_paper(table: MethodTable, provenance: Provenance) -> Table:
    """The paper's layout: methods down, splits across; below ours the paper's own rows.

    Where the table is long, a row is a method and one place, and the paper has none.
    """
    is_long, averages, stderr, sd = table.is_long, table.average_column, table.request.stderr, table.has_seeds
    across = [table.place] if is_long else table.splits
    columns = [title for name in table.metrics for title in (TITLES[name], *figure_columns(stderr, sd))]
    ours: list[list[str]] = []
    figures_of: list[list[Figure | None]] = []
    remarks = []
    for row in table.rows:
        for places in [[place] for place in row.cells] if is_long else [across]:
            cells = [row.cells.get(place) for place in places]
            filled = [cell for cell in cells if cell is not None]
            figures_of.append(
                [cell.figures[name] if cell else None for cell, name in itertools.product(cells, table.metrics)]
            )
            figures = [text for figure in figures_of[-1] for text in figure_cells(figure, stderr, sd=sd)]
            ours.append(
                [row.method, *(places if is_long else ()), *(table.averages(filled) for _ in averages), *figures]
            )
            remarks.append(f"{ORIGIN} {provenance.numbers([name for cell in filled for name in cell.run_names])}")
    papers = [] if is_long or table.paper is None else [_row_for_a_paper(table, row) for row in table.paper["rows"]]
    n_labels = 1 + len(averages) + is_long
    titles = list(enumerate(columns * len(across), n_labels))
    return Table(
        title=table.title,
        above=[]
        if is_long
        else [("", n_labels), *((SPLIT_TITLES.get(split, split), len(columns)) for split in across)],
        header=["Method", *([table.place.capitalize()] if is_long else []), *map(str.capitalize, averages)]
        + columns * len(across),
        rows=[*ours, *papers],
        notes=[*_notes(table, "its rows are of its own models and data"), *map(_sizes_in_words, table.rows)],
        parts=[len(ours)] if papers else [],
        n_labels=n_labels,
        numbers=[i for i, title in titles if title != INTERVAL],
        best=[] if table.differences else _best_cells(table, ours, figures_of, titles),
        remarks=remarks,
    )


def _best_cells(
    table: MethodTable,
    rows: Sequence[Sequence[str]],
    figures: Sequence[Sequence[Figure | None]],
    titles: Sequence[tuple[int, str]],
) -> list[tuple[int, int]]:
    """Row and column of the figures that are best among the rows of their place."""
    columns = [(i, title) for i, title in titles if title in TITLES.values()]
    # a ceiling is no result
    results = [
        (number, i)
        for number, (i, title) in enumerate(columns)
        if title not in {TITLES[name] for name in table.metrics if name in BESIDE}
    ]
    best = []
    for place in dict.fromkeys(row[1] if table.is_long else "" for row in rows):
        alike = [k for k, row in enumerate(rows) if not table.is_long or row[1] == place]
        for number, column in results:
            if (first := best_of([figures[k][number] for k in alike])) is not None:
                best.append((alike[first], column))
    return best


def _for_a_screen(table: MethodTable) -> Table:
    """Metrics and methods down, splits across; below ours the paper's figures of the same method."""
    rows: list[tuple[str, ...]] = []
    for name in table.metrics:
        by_method = {
            row.method: [row.cells[split].figures[name] if split in row.cells else None for split in table.splits]
            for row in table.rows
        }
        columns = zip(*by_method.values(), strict=True)
        best = [None if (k := best_of(column)) is None else column[k] for column in columns]
        for row in table.rows:
            texts = []
            for i, figure in enumerate(by_method[row.method]):
                value, *errors = figure_cells(figure, table.request.stderr, "({} to {})", table.has_seeds)
                named = zip(error_columns(table.request.stderr, table.has_seeds), errors, strict=True)
                spread = "".join(f", {title} {error}" for title, error in named)
                is_best = figure is not None and not table.differences and figure is best[i]
                place = " best" if is_best else ""
                texts.append(f"{value}{spread}{place}")
            rows.append((TITLES[name], row.method, *texts))
            if row.paper is not None:
                theirs = [_text(table.paper_figure(row.paper, split, name)) for split in table.splits]
                rows.append((TITLES[name], f"paper: {row.paper['method']}", *theirs))
    header = ("metric", "method", *(SPLIT_TITLES.get(split, split) for split in table.splits))
    notes = [*_notes(table, "its rows are of its own models and data"), *map(_sizes_in_words, table.rows)]
    return Table(header=header, rows=rows, notes=notes, n_labels=2)


def _row_for_a_paper(table: MethodTable, row: Mapping[str, Any]) -> list[str]:
    """A row of the paper, without intervals."""
    made = [f"Paper: {row['method']}", *("macro" for _ in table.average_column)]
    for split, name in itertools.product(table.splits, table.metrics):
        made += [
            _text(table.paper_figure(row, split, name)),
            *("" for _ in figure_columns(table.request.stderr, table.has_seeds)),
        ]
    return made


def _sizes_in_words(row: MethodRow) -> str:
    """The sizes of a method's cells, for which the narrow layout has no columns."""
    sizes = [
        f"{_place(row, place)} {cell.n_steps} steps of {cell.n_tasks} tasks, {cell.not_run} not run, {cell.left_out}"
        f" left out{f', {cell.n_seeds} seeds' if cell.n_seeds > 1 else ''}"
        for place, cell in row.cells.items()
    ]
    return f"{row.method}: {'; '.join(sizes)}."


def _notes(table: MethodTable, papers: str) -> list[str]:
    """`papers`: the place of the paper's figures."""
    request, paper = table.request, table.paper
    figures = [figure for cell in table.cells for figure in cell.figures.values() if figure is not None]
    protocols = dict.fromkeys(run.results.protocol for run in request.runs)
    averages = "Share of tasks."
    if request.table != "4":
        averages = averages_in_words(table.quotes(table.cells), [*protocols])
    settings = ", ".join(f"{name} {value}" for name, value in table.settings.items())
    unfinished = request.unfinished
    return [
        f"Percent. {averages} {INTERVAL}: {interval_of(figures)}. Steps that did not run count as wrong; those"
        " that the protocol leaves out count nowhere.",
        *([_CEILINGS] if request.table == "6" else []),
        *(
            [f"Paper: {paper['source']}; {papers}. {paper.get('remark', '')}".strip()]
            if paper and not request.by
            else []
        ),
        *([SEEDS] if any(figure.sd is not None for figure in figures) else []),
        *([f"Every run: {settings}."] if settings else []),
        *table.differences,
        *request.choice,
        *([f"Without results yet, and not in the table: {', '.join(unfinished)}."] if unfinished else []),
    ]


def _values(table: MethodTable, provenance: Provenance) -> Table:
    """A line a figure: shares as fractions, the paper's too, empty where there is none, and where it comes from."""
    lines = []
    sources = {run["run"]: run for run in provenance.runs}
    for (row, place, cell), name in itertools.product(table.places, table.metrics):
        figure, paper = cell.figures[name], table.paper_figure(row.paper, place, name)
        low, high = (figure and figure.ci95) or (None, None)
        lines.append(
            {
                "method": row.method,
                "split": _place(row, place),
                "metric": name,
                "average": figure and figure.average,
                "value": figure and figure.value,
                "low": low,
                "high": high,
                "se": figure and figure.se,
                "sd": figure and figure.sd,
                "n_runs": figure.n_runs if figure else 1,
                "interval": figure and figure.method,
                **({} if table.paper is None else {"paper": None if paper is None else round(paper / 100, 4)}),
                **{size: getattr(cell, size) for size in SIZES},
                **provenance.columns([sources[name] for name in cell.run_names]),
            }
        )
    return values_table(lines)


def _text(value: float | None) -> str:
    return NO_FIGURE if value is None else f"{value:.1f}"
