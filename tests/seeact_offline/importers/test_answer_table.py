"""A plain table of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError
from tests.seeact_offline.importers.files import problems, read_as, said, write_lines


def csv_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "answers.csv"
    path.write_bytes(text.encode())
    return path


def row(**more: Any) -> dict[str, Any]:
    return {"annotation_id": "t", "action_uid": "a", "op": "CLICK", **more}


def test_csv_is_read(tmp_path: Path) -> None:
    path = csv_file(tmp_path, 'annotation_id,action_uid,element_id,op,value\nt,a,7,TYPE,"new, york"\nt,b,,CLICK,\n')
    found = read_as("table", run=path)
    first, second = said(found, "t_a"), said(found, "t_b")
    assert (first.element_id, first.op, first.value) == ("7", "TYPE", "new, york")
    assert (second.element_id, second.op, second.value) == (None, "CLICK", "")
    assert found.problems == []


def test_json_lines_are_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [row(element_id=7, value=None), row(action_uid="b", op="TYPE", value=5)])
    found = read_as("table", run=path)
    assert (said(found, "t_a").element_id, said(found, "t_a").value) == ("7", "")
    assert said(found, "t_b").value == "5"


def test_windows_files_are_read(tmp_path: Path) -> None:
    found = read_as("table", run=csv_file(tmp_path, "\ufeffannotation_id,action_uid,op,value\r\nt,a,TYPE,x\r\n"))
    assert said(found, "t_a").value == "x"


@pytest.mark.parametrize(
    ("place", "point"),
    [
        *((one, (30, 40)) for one in (
            {"point": "30,40"}, {"point": "(30, 40)"}, {"point": [30, 40]}, {"x": 30, "y": "40"}, {"box": "20,30,20,20"},
            {"box": [20, 30, 20, 20]},
        )),
        *((one, None) for one in (
            {"point": "nan,1"}, {"point": "1"}, {"point": "1,2,3"}, {"point": {"x": 1}}, {"x": 1, "y": "?"}, {"x": 1},
            {"box": "1,2,3"}, {"box": [1, 2, 3, float("inf")]},
        )),
    ],
)  # fmt: skip
def test_places_are_points_of_the_page_and_unreadable_ones_are_counted(
    tmp_path: Path, place: dict[str, Any], point: tuple[int, int] | None
) -> None:
    prediction = said(read_as("table", run=write_lines(tmp_path / "a.jsonl", [row(**place)])), "t_a")
    assert (prediction.point, dict(prediction.notes)) == (point, {} if point else {"bad_point": 1})


def test_without_elements_and_places_only_the_operation_is_scored(tmp_path: Path) -> None:
    assert not read_as("table", run=csv_file(tmp_path, "annotation_id,action_uid,op\nt,a,CLICK\n")).is_grounded
    assert read_as("table", run=csv_file(tmp_path, "annotation_id,action_uid,op,box\nt,a,CLICK,\n")).is_grounded


def test_unknown_columns_are_named_once(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "annotation_id,action_uid,op,mood\nt,a,CLICK,good\nt,b,CLICK,bad\n")
    assert [(one.name, one.where) for one in read_as("table", run=path).problems] == [("unknown_column", "mood")]


def test_odd_rows_are_named(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "annotation_id,action_uid,op\nt,a,CLICK\nt,a,TYPE\nt\n,b,CLICK\nt,c,CLICK,1\n\nt,d")
    found = read_as("table", run=path)
    assert problems(found) == ["bad_row", "bad_row", "bad_row", "duplicate_step", "torn_line"]
    assert said(found, "t_a").op == "CLICK"
    assert list(found.answers) == ["t_a"]


@pytest.mark.parametrize(
    ("op", "read"), [("click", "CLICK"), (" Type ", "TYPE"), ("SELECT", "SELECT"), ("hover", "hover")]
)
def test_operations_are_read_in_any_case(tmp_path: Path, op: str, read: str) -> None:
    assert said(read_as("table", run=csv_file(tmp_path, f"annotation_id,action_uid,op\nt,a,{op}\n")), "t_a").op == read


@pytest.mark.parametrize(
    "broken",
    ['t,x,TYPE,"no end', '"t,x,TYPE,no end', 't,x,TYPE,"a"b', 't,x,TYPE,"' + "a" * 9 + '""', 't,x,TYPE,","'],
)
@pytest.mark.parametrize(
    "after", ['t,b,TYPE,"x, y"\nt,c,CLICK,', 't,b,CLICK,\n"t","c","CLICK",""', "t,b,CLICK,\nt,c,CLICK,"]
)
def test_a_quote_that_does_not_close_costs_its_own_row(tmp_path: Path, broken: str, after: str) -> None:
    """It cost all rows below."""
    path = csv_file(tmp_path, f"annotation_id,action_uid,op,value\nt,a,CLICK,\n{broken}\n{after}\n")
    found = read_as("table", run=path)
    lost = [problem.where for problem in found.problems]
    assert sorted(found.answers) == (["t_a", "t_b", "t_c"] if lost else ["t_a", "t_b", "t_c", "t_x"])
    assert set(lost) <= {"line 3 of answers.csv"}


def test_a_cell_of_any_length_is_read(tmp_path: Path) -> None:
    """The limit was 131,072 characters, and cost the rows below too."""
    cells = (
        f'annotation_id,action_uid,op,value\nt,a,TYPE,{"x" * 140_000}\nt,b,TYPE,"{"y " * 140_000}\n z"\nt,c,CLICK,\n'
    )
    found = read_as("table", run=csv_file(tmp_path, cells))
    assert not found.problems
    assert [len(said(found, f"t_{uid}").value) for uid in "abc"] == [140_000, 280_003, 0]


def test_text_that_is_not_utf8_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("annotation_id,action_uid,op,value\nt,a,TYPE,café\nt,b,CLICK,\n".encode("latin-1"))
    found = read_as("table", run=path)
    assert [(one.name, one.where) for one in found.problems] == [("not_utf8", "line 2 of a.csv")]
    assert said(found, "t_a").value == "caf\ufffd"


def test_a_last_line_that_is_whole_needs_no_end(tmp_path: Path) -> None:
    assert list(read_as("table", run=csv_file(tmp_path, "annotation_id,action_uid,op\nt,a,CLICK")).answers) == ["t_a"]


@pytest.mark.parametrize("text", ["t,a,7,CLICK\n", "", "action_uid,op\na,CLICK\n", "annotation_id,action_uid\nt,a\n"])
def test_a_table_without_its_header_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="run: expected a table"):
        read_as("table", run=csv_file(tmp_path, text))


def test_bytes_that_are_no_text_are_refused_or_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(InputError, match="run: expected a table"):
        read_as("table", run=path)
