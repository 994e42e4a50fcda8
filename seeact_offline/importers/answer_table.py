"""A plain table of answers, CSV with a header or JSON lines, for any other format.

Columns: `annotation_id`, `action_uid`, `op`, `value`, and any of `element_id`, `point` ("x,y", or two columns `x`
and `y`) and `box` ("x,y,w,h", which counts by its middle). Places are in pixels of the page, or in one of UNITS.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from seeact_offline.files.formats import FormatError, as_number, read_json
from seeact_offline.importers.importer import Answer, ImportedAnswers, Importer, Problem, Source, WrongFormat
from seeact_offline.importers.reading import (
    SourceRow,
    SourceRows,
    TextLine,
    box,
    is_finite,
    json_rows,
    lines,
    numbers,
    step_of,
    text,
)
from seeact_offline.records import OPERATIONS, Prediction, Truth

IDS = ("annotation_id", "action_uid")
PLACES = ("element_id", "point", "x", "y", "box")
REQUIRED = (*IDS, "op")
COLUMNS = (*REQUIRED, "value", *PLACES)
NOTES = {
    "bad_point": (
        "points that are not two numbers, boxes that are not four, and shares of a page of unknown size; left out"
    ),
    "likely_fractions": (
        "points that all lie within 1 x 1 of larger pages: if they are fractions, name --points fraction"
    ),
    "likely_per_mille": (
        "points that all lie within 1,000 x 1,000 of larger pages: if they are thousandths, name --points per-mille"
    ),
}
UNITS: Mapping[str, float | None] = {"pixels": None, "fraction": 1.0, "per-mille": 1000.0}
"""Unit of a place -> width and height of a page in it; None: those in pixels."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators of other tables."""
SHOWN_CHARS = 200
"""Characters of the columns in an error."""


def read(sources: Mapping[str, Source], points: str = "pixels") -> ImportedAnswers:
    """Reads a table of answers. `points`: one of UNITS."""
    source = sources["run"]
    table = table_rows(source, REQUIRED)
    names = {name: None for row in table.rows for name in row.values}
    _check_columns(source, list(names or _first_names(source)))
    first, problems = table.first_of_each()
    unknown = [Problem("unknown_column", name, of_step=False) for name in sorted(names.keys() - set(COLUMNS))]
    return ImportedAnswers(
        {key: _answer(row, UNITS[points]) for key, row in first.items()},
        [*problems, *unknown],
        is_grounded=any(name in names for name in PLACES),
    )


def table_rows(source: Source, required: Sequence[str]) -> SourceRows:
    """The rows of JSON lines or of a CSV table. Raises WrongFormat for a CSV table without the required columns."""
    is_json = next((line.text.lstrip()[:1] == "{" for line in lines(source)), False)
    return json_rows(source) if is_json else _csv_rows(source, required)


def _check_columns(source: Source, names: Sequence[str], required: Sequence[str] = REQUIRED) -> None:
    """Raises WrongFormat where a column is missing or there twice."""
    got = f"with the columns {_listed(names)}" if names else "without any"
    lacks = [name for name in required if name not in names]
    if lacks:
        raise WrongFormat(source, f"a table with the column{'s' * (len(lacks) > 1)} {' and '.join(lacks)}", got)
    if len(named := [name for name in names if name]) > len(set(named)):
        raise WrongFormat(source, "a table that names each column once", got)


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]} ..."


def _first_names(source: Source) -> Iterable[str]:
    """The names in the first line of a table whose rows cannot be read."""
    line = next((line.text for line in lines(source)), "")
    try:
        value = read_json(line)
        return value if isinstance(value, dict) else ()
    except FormatError:
        return _header(source, line)


def _csv_rows(source: Source, required: Sequence[str]) -> SourceRows:
    """A row whose cells are not as many as those of the header is a `bad_row`, the last one a `torn_line` if it has no
    end."""
    text_lines = list(lines(source))
    header = _header(source, text_lines[0].text if text_lines else "")
    _check_columns(source, header, required)
    name = source.path.name
    rows: list[SourceRow] = []
    problems = [Problem("not_utf8", f"line {line.number} of {name}") for line in text_lines if not line.is_utf8]
    for first, cells in _records(text_lines, len(header)):
        where = f"line {first.number} of {name}"
        values = dict(zip(header, cells, strict=False))
        if len(cells) != len(header) or not step_of(values):
            problems.append(Problem("torn_line" if first.is_torn else "bad_row", where))
        else:
            rows.append(SourceRow(step_of(values), where, values))
    return SourceRows(rows, problems)


def _header(source: Source, line: str) -> list[str]:
    """The names in the first line, in lower case. Raises WrongFormat where no commas separate them."""
    for sign, signs in SEPARATORS.items():
        names = [cell.strip().strip('"') for cell in line.split(sign)]
        if "," not in line and len(names) > 1 and not {name.lower() for name in names}.isdisjoint(IDS):
            raise WrongFormat(
                source, "columns separated by commas", f"with {signs} between the columns {_listed(names)}"
            )
    try:
        return [name.strip().lower() for name in next(csv.reader([line.strip()]), [])]
    except csv.Error:
        return []


def _records(text_lines: Sequence[TextLine], width: int) -> Iterator[tuple[TextLine, list[str]]]:
    """Each row below the header with its first line, in order; without cells where it cannot be read.

    A quote that does not close makes one row of the lines up to the next such quote. Such a row is given up, and the
    next line begins another, so that no line is read more than twice.
    """
    limit = csv.field_size_limit(2**31 - 1)
    try:
        at = 1
        while at < len(text_lines):
            begun, is_good = at, True
            reader = csv.reader((f"{text_lines[n].text}\n" for n in range(begun, len(text_lines))), strict=True)
            while is_good and at < len(text_lines):
                try:
                    cells = next(reader, [])
                except csv.Error:
                    cells = []
                end = begun + reader.line_num
                is_good = len(cells) == width or end == at + 1
                yield text_lines[at], cells if is_good else []
                at = end if is_good else at + 1
    finally:
        csv.field_size_limit(limit)


def _answer(row: SourceRow, unit: float | None) -> Answer:
    """The answer of a row. `unit`: one of the values of UNITS."""
    values = row.values
    point, is_bad = _point(values)
    element = text(values.get("element_id")).strip() or None
    op, value = text(values.get("op")).strip(), text(values.get("value"))
    op = op.upper() if op.upper() in OPERATIONS else op

    def answer(truth: Truth) -> Prediction:
        at, page = point, truth.picture_size
        if point is not None and unit is not None:
            at = None if page is None else (point[0] * page[0] / unit, point[1] * page[1] / unit)
        notes = {"bad_point": 1} if is_bad or (point and not at) else {}
        return Prediction(*truth.key, element, op, value, point=at, notes=notes)

    return answer


def doubt(predictions: Sequence[Prediction], truths: Sequence[Truth]) -> list[Problem]:
    """The points, taken for pixels, where they all look like shares of their pages; else none."""
    pairs = zip(predictions, truths, strict=True)
    places = [(p.point, truth.picture_size) for p, truth in pairs if p.point and truth.picture_size]
    for note, unit in (("likely_fractions", 1), ("likely_per_mille", 1000)):
        is_within = all(min(point) >= 0 and max(point) <= unit for point, _ in places)
        if is_within and any(max(page) > unit for _, page in places):
            return [Problem(note, f"{x:g},{y:g} of {w} x {h}") for (x, y), (w, h) in places]
    return []


def _point(values: Mapping[str, Any]) -> tuple[tuple[float, float] | None, bool]:
    """The place of an answer, and whether there is one that cannot be read."""
    for name in ("point", "box"):
        written = values.get(name)
        if written not in (None, "", []):
            area = box(written) if name == "box" else None
            middle = None if area is None else area.center
            place = numbers(written) if name == "point" else middle
            if place is None or len(place) != 2 or not is_finite(place):
                return None, True
            return (place[0], place[1]), False
    coordinates = [values.get("x"), values.get("y")]
    if all(coordinate in (None, "") for coordinate in coordinates):
        return None, False
    x, y = map(as_number, coordinates)
    if x is None or y is None or not is_finite((x, y)):
        return None, True
    return (x, y), False


def _looks(first: Any) -> bool:
    """True if a line of JSON names steps and answers, or a header at least steps, whatever separates its columns."""
    if isinstance(first, tuple):
        return any("annotation_id" in name.lower() for name in first)
    return isinstance(first, dict) and first.keys() >= set(IDS) and not first.keys().isdisjoint((*PLACES, "op"))


IMPORTER = Importer(
    name="table",
    what="a table of answers",
    protocol="seeact",
    read=read,
    looks=_looks,
    options=("points",),
    notes=NOTES,
)
