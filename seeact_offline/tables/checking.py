"""Checks that a table in a file is still what its runs give. Reads every format that `drawing` writes.

Compares the cells that people read, so it also finds a figure changed by hand and labels exchanged while copying. Rows
are matched by the runs that they come from and by their labels, columns by their titles; their order and emphasis such
as bold type do not matter.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import msgspec

from seeact_offline.files.formats import read_json, typed, unescape_html
from seeact_offline.records import InputError
from seeact_offline.tables.document import BLOCK, HASH, MADE_OF, ORIGIN, Form

Grid = list[list[str]]
"""Rows of cells as they are written, the header first."""
LARGEST = 1 << 20
"""Bytes of a file that is checked."""
MOST = 100
"""Tables in it."""
UNCOMPARED = frozenset({ORIGIN, HASH})
"""Columns by which rows are matched, or which say less than the figures."""


@dataclass(frozen=True, slots=True)
class TableText:
    """One table in a file."""

    form: Form
    table: str
    inputs: tuple[str, ...]
    dataset: str | None
    """The data set that Table 1 counted; None for runs, and for a file of `stats`."""
    by: str | None
    stderr: bool
    hashes: Mapping[str, str | None]
    """Run -> hash of its results when the table was made."""
    text: str
    """The text from the line that says what it was made of, to the next table or the end."""


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell whose text has changed."""

    place: str
    """The labels of its row, and its column."""
    was: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The differences between a table in a file and the one that its runs give."""

    moved: tuple[CellChange, ...] = ()
    missing: tuple[str, ...] = ()
    """Rows and columns that the file lacks."""
    unknown: tuple[str, ...] = ()
    """Rows and columns that the runs do not give."""
    n_cells: int = 0
    """Cells that were compared."""

    def __bool__(self) -> bool:
        return bool(self.moved or self.missing or self.unknown)


class _Run(msgspec.Struct):
    run: str
    results_sha256: str | None


class _Block(msgspec.Struct):
    table: int | str
    inputs: tuple[str, ...]
    dataset: str | None
    runs: tuple[_Run, ...]
    by: str | None = None
    stderr: bool = False


def written(text: str, name: str) -> list[TableText]:
    """The tables in a file of this name. Raises InputError for none that says what it was made of, and for more than
    MOST."""
    starts = [match.start() for match in re.finditer(rf"^(<!--|%) {re.escape(BLOCK)}\{{", text, re.MULTILINE)]
    if len(starts) > MOST:
        raise InputError("check", f"at most {MOST} tables", f"{len(starts):,} in {name}")
    try:
        if starts:
            ends = [*starts[1:], len(text)]
            return [_of_block(text[start:end]) for start, end in zip(starts, ends, strict=True)]
        return [_of_csv(text)]
    except (ValueError, KeyError, TypeError, StopIteration, csv.Error):
        raise InputError(
            "check", "a table that `tables` wrote, with the line that says what it was made of", name
        ) from None


def changes(old: str, new: str, form: Form) -> Changes:
    """Compares a table in a file with the same table made again, both in one format."""
    before, after = _GRIDS[form](old), _GRIDS[form](new)
    grids = _matched([_Line(grid[0]) for grid in before], [_Line(grid[0]) for grid in after])
    by_grid = [
        *(_changes(before[i], after[j]) for i, j in grids.both),
        *(Changes(missing=tuple(map(_named, _lines(after[j])))) for j in grids.missing),
        *(Changes(unknown=tuple(map(_named, _lines(before[i])))) for i in grids.unknown),
    ]
    return Changes(
        moved=tuple(cell for grid in by_grid for cell in grid.moved),
        missing=tuple(text for grid in by_grid for text in grid.missing),
        unknown=tuple(text for grid in by_grid for text in grid.unknown),
        n_cells=sum(grid.n_cells for grid in by_grid),
    )


class _Line(NamedTuple):
    """A row of a table, or one title."""

    cells: Sequence[str]
    origin: str = ""
    """The runs that it comes from; empty where it does not say so."""


def _changes(before: Grid, after: Grid) -> Changes:
    """The changes of one grid."""
    titles, header = before[0], after[0]
    columns = _matched([_Line([title]) for title in titles], [_Line([title]) for title in header])
    old, new = _lines(before), _lines(after)
    rows = _matched(old, new)
    compared = [(i, j) for i, j in columns.both if header[j] not in UNCOMPARED]
    cells = [
        CellChange(f"{_label(new[to])}, {header[j]}", "".join(old[of].cells[i : i + 1]), new[to].cells[j])
        for of, to in rows.both
        for i, j in compared
    ]
    missing = [header[j] for j in columns.missing if header[j] not in UNCOMPARED]
    return Changes(
        moved=tuple(cell for cell in cells if cell.was != cell.now),
        missing=(*(f"column {title}" for title in missing), *(_named(new[to]) for to in rows.missing)),
        unknown=(*(f"column {titles[i]}" for i in columns.unknown), *(_named(old[of]) for of in rows.unknown)),
        n_cells=len(cells),
    )


def _lines(grid: Grid) -> list[_Line]:
    """The rows below the header."""
    place = grid[0].index(ORIGIN) if ORIGIN in grid[0] else len(grid[0])
    return [_Line(row, "".join(row[place : place + 1])) for row in grid[1:]]


def _named(line: _Line) -> str:
    return f"row {_label(line)}"


def _label(line: _Line) -> str:
    """The cells before the first figure."""
    first, *others = line.cells or [""]
    return ", ".join([first, *takewhile(lambda cell: not re.match(r"[-+]?\d|-?$", cell), others)])


class _Pairing(NamedTuple):
    """Places in two lists of what belongs together."""

    both: list[tuple[int, int]]
    """Pairs of places, in the order of the second list."""
    missing: list[int]
    """Places in the second that nothing in the first belongs to."""
    unknown: list[int]
    """The reverse."""


def _matched(before: Sequence[_Line], after: Sequence[_Line]) -> _Pairing:
    """Pairs lines of one origin first, and first those that share the most cells from the left.

    The first cell may be rewritten where the origin or half of the line is the same.
    """
    width = max((len(line.cells) for line in after), default=0)
    left, wanted = dict(enumerate(before)), dict(enumerate(after))
    both: list[tuple[int, int]] = []
    for by_origin, start, least in ((True, 0, 1), (True, 1, 1), (False, 0, 1), (False, 1, width // 2 + 1)):
        for end in range(width, least - 1, -1):
            places: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
            for i, line in left.items():
                if line.origin or not by_origin:
                    places[(line.origin if by_origin else "", *line.cells[start:end])].append(i)
            for j, line in [*wanted.items()]:
                if partners := places.get((line.origin if by_origin else "", *line.cells[start:end])):
                    both.append((partners[0], j))
                    del left[partners.popleft()], wanted[j]
    return _Pairing(sorted(both, key=lambda pair: pair[1]), list(wanted), list(left))


def _of_block(text: str) -> TableText:
    line = text.partition("\n")[0]
    block = read_json(line[line.index("{") :].removesuffix("-->"))
    form: Form = "latex" if line.startswith("%") else "html" if "<table>" in text else "markdown"
    return _written(form, typed(block, _Block), text)


def _of_csv(text: str) -> TableText:
    lines = list(csv.DictReader(io.StringIO(text, newline=""), restval=""))
    first = next(iter(lines))
    pairs = [pair for line in lines for pair in zip(line["run"].split(";"), line[HASH].split(";"), strict=False)]
    runs = [{"run": run, "results_sha256": digest or None} for run, digest in pairs]
    block = {**read_json(first[MADE_OF]), "table": first["table"], "runs": runs}
    return _written("csv", typed(block, _Block), text)


def _written(form: Form, block: _Block, text: str) -> TableText:
    hashes = {run.run: run.results_sha256 for run in block.runs}
    table = str(block.table)
    dataset = block.dataset if table == "1" else None
    return TableText(form, table, block.inputs, dataset, block.by, block.stderr, hashes, text)


# --- cells as they are written, without emphasis ---

_MARKDOWN_EMPHASIS = re.compile(r"(?<!\\)\*+|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)")
_LATEX_EMPHASIS = re.compile(
    r"\\(?:text|math)(?:bf|it)(?![a-zA-Z])|\\(?:bfseries|boldmath|bf|emph|underline|ul)(?![a-zA-Z])|(?<!\\)[{}$]"
)
_LATEX_ROW = re.compile(r"^(.*?)\\\\(?:\[[^]\n]{0,99}\])?[ \t]*(?:%(.*))?$", re.MULTILINE)
_HTML_EMPHASIS = re.compile(r"</?(?:b|strong|i|em|u|span)(?:\s[^<>]*)?>", re.IGNORECASE)


def _markdown_grids(text: str) -> list[Grid]:
    grids: list[Grid] = []
    before = ""
    for line in text.splitlines():
        if line.startswith("|") and not re.match(r"\|\s*:?-+:?\s*\|", line):
            grids += [] if before.startswith("|") else [[]]
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            grids[-1].append([_MARKDOWN_EMPHASIS.sub("", cell).strip() for cell in cells])
        before = line
    return grids


def _latex_grids(text: str) -> list[Grid]:
    """The comment that ends a line is its last cell."""
    tables = [part.partition(r"\bottomrule")[0] for part in text.split(r"\toprule")[1:]]
    grids = [_joined([_latex_cells(*row) for row in _LATEX_ROW.findall(table)]) for table in tables]
    return [[[*grid[0][:-1], ORIGIN], *grid[1:]] for grid in grids if grid]


def _latex_cells(line: str, comment: str) -> list[str]:
    """A cell that spans columns stands once for each."""
    cells: list[str] = []
    for text in re.split(r"(?<!\\)&", line):
        spanning = re.fullmatch(r"\\multicolumn\{(\d{1,2})\}\{c\}\{(.*)\}", text.strip())
        plain = " ".join(_LATEX_EMPHASIS.sub("", spanning[2] if spanning else text).split())
        cells += [f"{plain}: "] * int(spanning[1]) if spanning else [plain]
    return [*cells, comment.strip()]


def _html_grids(text: str) -> list[Grid]:
    tables = [part.partition("</table>")[0] for part in text.split("<table>")[1:]]
    grids = [_joined([_html_cells(row.partition("</tr>")[0]) for row in table.split("<tr>")[1:]]) for table in tables]
    return [grid for grid in grids if grid]


def _html_cells(row: str) -> list[str]:
    cells: list[str] = []
    for cell in re.split(r"<t[hd]\b", row)[1:]:
        attributes, _, text = cell.partition(">")
        plain = unescape_html(_HTML_EMPHASIS.sub("", re.split("</t[hd]>", text)[0])).strip()
        columns = re.search(r'colspan="(\d{1,2})"', attributes)
        cells += [f"{plain}: " if plain else ""] * int(columns[1]) if columns else [plain]
    return cells


def _joined(rows: Grid) -> Grid:
    """A line above the header as part of it."""
    if len(rows) > 1 and any(cell.endswith(": ") for cell in rows[0]):
        return [[over + name for over, name in zip(rows[0], rows[1], strict=False)], *rows[2:]]
    return rows


_GRIDS: dict[Form, Callable[[str], list[Grid]]] = {
    "markdown": _markdown_grids,
    "latex": _latex_grids,
    "html": _html_grids,
    "csv": lambda text: [list(csv.reader(io.StringIO(text, newline="")))],
}
