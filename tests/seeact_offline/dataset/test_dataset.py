"""`seeact_offline.dataset`: real files and real `datasets` objects in, `Step`s out."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from seeact_offline.dataset import Split, canonical_split, load_steps, open_split
from seeact_offline.dataset import rows as rows_module
from seeact_offline.dataset.readers import JsonlFiles, in_order
from seeact_offline.dataset.rows import MAX_PIXEL, FaultLog, StoredScreenshot, _candidate, _plain_candidate, parse_box
from seeact_offline.files.digest import cached_digest
from seeact_offline.records import Box, Candidate, DatasetError, Operation, RowError, Step
from tests.examples import often
from tests.lazily import datasets
from tests.pages import hub_schema, synthetic_rows, write_jsonl, write_parquet

Row = dict[str, Any]


@pytest.fixture
def rows() -> list[Row]:
    """Three tasks of four steps."""
    return list(synthetic_rows(3, 4, 6, seed=1, raw_html_size=100))


@pytest.fixture
def folder(tmp_path: Path, rows: list[Row]) -> Path:
    write_parquet(rows, tmp_path / "data" / "test_domain-00000-of-00001.parquet")
    return tmp_path


def keys(steps: Iterator[Step]) -> list[tuple[str, str]]:
    return [(step.annotation_id, step.action_uid) for step in steps]


def row_keys(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row["annotation_id"], row["action_uid"]) for row in rows]


def one_step(tmp_path: Path, **changes: Any) -> Step:
    """The third step of a task, read back from JSONL after some of its fields were changed."""
    row = list(synthetic_rows(1, 4, 6, seed=1))[2] | changes
    return next(load_steps(write_jsonl([row], tmp_path / "rows.jsonl"), "train"))


def step_of(row: Row, tmp_path: Path) -> Step:
    """The row read back from JSONL."""
    return next(load_steps(write_jsonl([row], tmp_path / "rows.jsonl"), "train"))


def fault_names(step: Step) -> list[str]:
    return [fault.name for fault in step.faults]


def candidate(node_id: str, rect: object = "1,2,3,4", tag: str = "div") -> str:
    return json.dumps({"tag": tag, "backend_node_id": node_id, "attributes": json.dumps({"bounding_box_rect": rect})})


def spoil_column(path: Path, name: str) -> None:
    """Overwrites every byte of a column on disk."""
    group = pq.read_metadata(path).row_group(0)
    chunk = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == name)
    start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * chunk.total_compressed_size)


# --- splits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "canonical"),
    [("train", "train"), ("test_task", "cross_task"), ("cross_website", "cross_website"), ("all", "all")],
)
def test_canonical_split_takes_both_spellings(name: str, canonical: str) -> None:
    assert canonical_split(name) == canonical


def test_an_unknown_split_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(
        DatasetError, match=r"split: expected one of .*cross_task, .*test_domain, all, got 'validation'$"
    ):
        canonical_split("validation")


def test_all_is_the_three_test_splits_one_after_another(tmp_path: Path) -> None:
    for seed, name in enumerate(["test_domain", "test_website", "train", "test_task"]):
        write_parquet(synthetic_rows(1, 2, 3, seed=seed), tmp_path / f"{name}-00000-of-00001.parquet")
    assert [task[0].annotation_id for task in open_split(tmp_path, "all").steps_by_task()] == [
        "task-3-0",
        "task-1-0",
        "task-0-0",
    ]


def test_limit_counts_tasks_over_all_splits(tmp_path: Path) -> None:
    for seed, name in enumerate(["test_task", "test_website", "test_domain"]):
        write_parquet(synthetic_rows(2, 2, 3, seed=seed), tmp_path / f"{name}.parquet")
    found = [task[0].annotation_id for task in open_split(tmp_path, "all", limit=3).steps_by_task()]
    assert found == ["task-0-0", "task-0-1", "task-1-0"]


# --- where data can lie -----------------------------------------------------------------------------------------------


def table_of(rows: list[Row]) -> Any:
    return datasets.Dataset(pa.Table.from_pylist(rows, schema=hub_schema()))


def two_shards(rows: list[Row], folder: Path) -> Path:
    write_parquet(rows[5:], folder / "test_domain-00001-of-00002.parquet")
    write_parquet(rows[:5], folder / "test_domain-00000-of-00002.parquet")
    return folder


STORED: dict[str, Callable[[list[Row], Path], Any]] = {
    "parquet in data/": lambda rows, at: write_parquet(rows, at / "data" / "test_domain-0.parquet").parents[1],
    "parquet in the folder": lambda rows, at: str(write_parquet(rows, at / "test_domain-0.parquet").parent),
    "jsonl in the folder": lambda rows, at: write_jsonl(rows, at / "test_domain.jsonl").parent,
    "shards": two_shards,
    "a parquet file": lambda rows, at: write_parquet(rows, at / "mine.parquet"),
    "a jsonl file": lambda rows, at: write_jsonl(rows, at / "mine.jsonl"),
    "a table": lambda rows, at: table_of(rows),
    "a table of plain Python": lambda rows, at: datasets.Dataset.from_list(rows),
    "a stream": lambda rows, at: table_of(rows).to_iterable_dataset(),
    "a dict": lambda rows, at: datasets.DatasetDict({"cross_domain": table_of(rows)}),
    "a dict of the hub's names": lambda rows, at: datasets.DatasetDict({"test_domain": table_of(rows)}),
}
ONE_FILE = ("a parquet file", "a jsonl file")


@pytest.mark.parametrize(
    ("name", "split"),
    [(name, split) for name in STORED for split in ("cross_domain", "test_domain")]
    + [(name, "all") for name in ONE_FILE],
)
def test_rows_are_found_wherever_they_are_stored(tmp_path: Path, rows: list[Row], name: str, split: str) -> None:
    assert keys(load_steps(STORED[name](rows, tmp_path), split)) == row_keys(rows)


def test_jsonl_and_parquet_give_equal_steps(tmp_path: Path, rows: list[Row]) -> None:
    from_parquet = list(load_steps(write_parquet(rows, tmp_path / "a.parquet"), "train"))
    from_jsonl = list(load_steps(write_jsonl(rows, tmp_path / "a.jsonl"), "train"))
    plain = [_without_picture(step) for step in from_parquet]
    assert plain == [_without_picture(step) for step in from_jsonl]


def _without_picture(step: Step) -> tuple[object, ...]:
    names = [name for name in Step.__slots__ if name not in ("screenshot", "split")]
    return (*(getattr(step, name) for name in names), step.screenshot and step.screenshot.read())


def test_a_table_gives_the_steps_of_a_file(folder: Path, rows: list[Row]) -> None:
    from_table, from_file = (load_steps(source, "test_domain") for source in (table_of(rows), folder))
    assert list(map(_without_picture, from_table)) == list(map(_without_picture, from_file))


def test_an_iterable_dataset_gives_its_rows_in_order(rows: list[Row]) -> None:
    random.Random(3).shuffle(rows)
    stream = datasets.Dataset.from_list(rows).to_iterable_dataset()
    assert keys(load_steps(stream, "train")) == keys(load_steps(datasets.Dataset.from_list(rows), "train"))


def test_an_iterable_dataset_keeps_the_bytes_of_pictures(rows: list[Row]) -> None:
    step = next(load_steps(table_of(rows).to_iterable_dataset(), "train"))
    assert step.screenshot is not None
    assert step.screenshot.read() == rows[0]["screenshot"]["bytes"]


def test_a_stream_that_changes_between_readings_is_an_error(rows: list[Row]) -> None:
    readings = iter([rows, rows[::-1]] * 2)
    stream = datasets.IterableDataset.from_generator(
        lambda: iter(next(readings)), features=datasets.Features.from_arrow_schema(hub_schema())
    )
    with pytest.raises(
        DatasetError, match=r"dataset: expected .* as row \d+ of .*, got .*: it gives other rows when read again"
    ):
        list(load_steps(stream, "train"))


# --- what cannot be used ----------------------------------------------------------------------------------------------


def no_parquet(folder: Path) -> Path:
    (folder / "train.parquet").write_bytes(b"no parquet at all")
    return folder


def few_columns(folder: Path) -> Path:
    pq.write_table(pa.table({"annotation_id": ["a"], "action_uid": ["b"]}), folder / "train.parquet")
    return folder


def a_shard_of_two(folder: Path) -> Path:
    return write_parquet(synthetic_rows(1, 1, 3, seed=1), folder / "train-00000-of-00002.parquet").parent


def both_formats(folder: Path) -> Path:
    write_parquet(synthetic_rows(1, 1, 3, seed=1), folder / "train.parquet")
    return write_jsonl(list(synthetic_rows(1, 1, 3, seed=1)), folder / "train.jsonl").parent


def another_file(folder: Path, name: str, make: Callable[[Path], None]) -> Path:
    make(folder / name)
    return folder / name


UNUSABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no folder": (
        lambda at: str(at / "nowhere"), r"dataset: expected sample, a folder, .*, got '.*nowhere': there is no such folder",
    ),
    "no name": (lambda at: "", "no such folder"),
    "another object": (lambda at: [], "got a list"),
    "another file": (
        lambda at: another_file(at, "rows.csv", Path.touch), r"expected a .parquet(, .jsonl or .json| or .jsonl) file, got .*rows.csv"
    ),
    "a pipe": (lambda at: another_file(at, "rows.jsonl", os.mkfifo), r"expected a .parquet(, .jsonl or .json| or .jsonl) file"),
    "columns": (few_columns, r"the columns .*cleaned_html, pos_candidates.* in .*train.parquet, got anno"),
    "no parquet": (no_parquet, r"cannot read .*train.parquet: ."),
    "a missing shard": (a_shard_of_two, r" has 1 of 2 files of train; fetch the others"),
    "both formats": (both_formats, r"has train as .parquet and as .jsonl; keep one"),
    "another split": (
        lambda at: write_parquet(synthetic_rows(1, 1, 3, seed=1), at / "test_domain.parquet").parent,
        r"split: expected train \(train\) in .*, got only cross_domain$",
    ),
    "a dict without it": (
        lambda at: datasets.DatasetDict({"test_task": table_of(list(synthetic_rows(1, 1, 3, seed=1)))}),
        r"expected train .* in the DatasetDict, got only test_task$",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_data_that_cannot_be_used_are_named_at_the_call(
    tmp_path: Path, make: Callable[[Path], Any], message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        load_steps(make(tmp_path), "train")


def test_a_parquet_file_with_a_spoiled_column_is_named(folder: Path) -> None:
    spoil_column(next(folder.rglob("*.parquet")), "cleaned_html")
    with pytest.raises(DatasetError, match=r"cannot read .*test_domain-00000-of-00001.parquet: ."):
        list(load_steps(folder, "test_domain"))


def test_a_line_that_is_not_json_is_named_by_its_number(tmp_path: Path, rows: list[Row]) -> None:
    path = write_jsonl(rows[:2], tmp_path / "rows.jsonl")
    path.write_text(path.read_text() + "\n{broken\n")
    with pytest.raises(
        DatasetError, match=r"dataset: expected a JSON object as line 4 of .*rows.jsonl, got no JSON: ."
    ):
        list(load_steps(path, "train"))


def test_a_limit_below_one_is_an_error(folder: Path) -> None:
    with pytest.raises(DatasetError, match="limit: expected a number of tasks of at least 1, got 0"):
        load_steps(folder, "test_domain", limit=0)


# --- what is read, and when -------------------------------------------------------------------------------------------


def test_raw_html_is_not_read_unless_asked_for(folder: Path, rows: list[Row]) -> None:
    spoil_column(next(folder.rglob("*.parquet")), "raw_html")
    steps = list(load_steps(folder, "test_domain"))
    assert keys(iter(steps)) == row_keys(rows)
    assert {step.raw_html for step in steps} == {None}


def test_raw_html_is_there_when_asked_for(folder: Path, rows: list[Row]) -> None:
    step = next(load_steps(folder, "test_domain", raw_html=True))
    assert step.raw_html == rows[0]["raw_html"]


@pytest.mark.parametrize("column", ["cleaned_html", "screenshot.bytes", "neg_candidates.list.element"])
def test_fingerprint_and_count_read_no_page_and_no_picture(folder: Path, column: str) -> None:
    path = next(folder.rglob("*.parquet"))
    before = open_split(folder, "test_domain").fingerprint
    spoil_column(path, column)
    assert open_split(folder, "test_domain").fingerprint == before
    assert len(open_split(folder, "test_domain").keys) == 12


def test_steps_are_read_one_by_one(folder: Path) -> None:
    steps = load_steps(folder, "test_domain")
    assert next(steps).index == 0
    assert next(steps).index == 1


def test_reading_stops_when_the_limit_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(synthetic_rows(40, 1, 3, seed=1), tmp_path / "train.parquet", row_group_size=10)
    served: list[int] = []
    iter_batches = pq.ParquetFile.iter_batches

    def counting(self: pq.ParquetFile, **arguments: Any) -> Iterator[pa.RecordBatch]:
        for batch in iter_batches(self, **arguments):
            if "cleaned_html" in batch.schema.names:
                served.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counting)
    assert len(list(load_steps(path, "train", limit=2))) == 2
    assert sum(served) < 10


def test_importing_the_module_imports_no_heavy_package() -> None:
    code = "import sys, seeact_offline.dataset; print({'pyarrow', 'datasets', 'pandas', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_an_iterator_that_is_left_open_ends_without_a_word() -> None:
    # with `datasets` imported pyarrow's names were gone before the iterator
    code = "import datasets, seeact_offline as so; steps = iter(so.load_steps('sample', 'cross_task')); next(steps)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [write_parquet, write_jsonl])
def test_shuffled_rows_come_out_task_by_task_in_step_order(tmp_path: Path, rows: list[Row], write: Any) -> None:
    shuffled = random.Random(5).sample(rows, len(rows))
    steps = list(load_steps(write(shuffled, tmp_path / f"train.{write.__name__[6:]}"), "train"))
    tasks = list(dict.fromkeys(row["annotation_id"] for row in shuffled))
    assert [(s.annotation_id, s.index) for s in steps] == [(task, index) for task in tasks for index in range(4)]


def test_shuffled_rows_keep_what_belongs_to_them(tmp_path: Path, rows: list[Row]) -> None:
    straight = load_steps(write_parquet(rows, tmp_path / "a.parquet"), "train")
    shuffled = load_steps(write_parquet(random.Random(5).sample(rows, len(rows)), tmp_path / "b.parquet"), "train")
    assert {step.key: step for step in straight} == {step.key: step for step in shuffled}


def test_steps_beyond_the_ninth_are_ordered_as_numbers(tmp_path: Path) -> None:
    path = write_parquet(reversed(list(synthetic_rows(1, 12, 3, seed=1))), tmp_path / "a.parquet")
    assert [step.index for step in load_steps(path, "train")] == list(range(12))


def test_limit_takes_whole_tasks_in_order_of_first_appearance(tmp_path: Path, rows: list[Row]) -> None:
    shuffled = random.Random(7).sample(rows, len(rows))
    tasks = list(open_split(write_parquet(shuffled, tmp_path / "a.parquet"), "train", limit=2).steps_by_task())
    assert [task[0].annotation_id for task in tasks] == list(dict.fromkeys(r["annotation_id"] for r in shuffled))[:2]
    assert [len(task) for task in tasks] == [4, 4]


@given(order=st.permutations(range(9)), taken=st.integers(0, 9), size=st.integers(1, 4))
def test_in_order_gives_any_order_of_any_part_of_a_stream(order: list[int], taken: int, size: int) -> None:
    table = pa.table({"n": list(range(9)), "text": [str(n) * n for n in range(9)]})
    batches = ((at, table.slice(at, size).to_batches()[0]) for at in range(0, 9, size))
    found = in_order(batches, order[:taken], "table")
    assert [row.to_pylist() for row in found] == [[{"n": n, "text": str(n) * n}] for n in order[:taken]]


def test_in_order_says_when_a_row_is_gone() -> None:
    with pytest.raises(DatasetError, match=r"dataset: expected row 5 in the table, .* got the end of its rows"):
        list(in_order(enumerate(pa.table({"n": [1, 2]}).to_batches()), [5], "the table"))


def test_steps_come_task_by_task(folder: Path) -> None:
    tasks = open_split(folder, "test_domain").steps_by_task()
    assert [[step.index for step in task] for task in tasks] == [[0, 1, 2, 3]] * 3


def test_keys_are_those_of_the_steps(folder: Path) -> None:
    keys = open_split(folder, "test_domain", limit=2).keys
    assert list(keys) == [step.key for step in load_steps(folder, "test_domain", limit=2)]
    assert len(keys) == 8


# --- fingerprint ------------------------------------------------------------------------------------------------------


def test_the_fingerprint_is_16_hex_digits_under_both_spellings(folder: Path) -> None:
    fingerprint = open_split(folder, "test_domain").fingerprint
    assert re.fullmatch("[0-9a-f]{16}", fingerprint)
    assert open_split(folder, "cross_domain").fingerprint == fingerprint


@pytest.mark.parametrize("name", ["action_uid", "confirmed_task", "operation", "target_action_index"])
def test_the_fingerprint_changes_with_a_light_field(rows: list[Row], name: str) -> None:
    before = open_split(datasets.Dataset.from_list(rows), "train").fingerprint
    rows[3] = rows[3] | {name: "9"}
    assert open_split(datasets.Dataset.from_list(rows), "train").fingerprint != before


def test_the_fingerprint_of_files_that_stay_as_they_are_is_computed_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_split(folder, "test_domain").fingerprint
    monkeypatch.setattr(Split, "_compute_fingerprint", pytest.fail)
    assert open_split(folder, "test_domain").fingerprint == before


def test_the_fingerprint_changes_with_the_size_of_a_file(tmp_path: Path, rows: list[Row]) -> None:
    before = open_split(write_jsonl(rows, tmp_path / "a.jsonl"), "train").fingerprint
    rows[0]["cleaned_html"] += " "
    assert open_split(write_jsonl(rows, tmp_path / "a.jsonl"), "train").fingerprint != before


SAME_SIZE: dict[str, Callable[[Row], Row]] = {
    "cleaned_html": lambda row: {"cleaned_html": row["cleaned_html"].replace("<", ">", 1)},
    "neg_candidates": lambda row: {"neg_candidates": row["neg_candidates"][::-1]},
    "screenshot": lambda row: {"screenshot": {"bytes": row["screenshot"]["bytes"][::-1], "path": None}},
}
WRITTEN = {
    "parquet": lambda rows, folder: write_parquet(rows, folder / "a.parquet"),
    "jsonl": lambda rows, folder: write_jsonl(rows, folder / "a.jsonl"),
    "table": lambda rows, folder: datasets.Dataset.from_list(rows),
    "stream": lambda rows, folder: datasets.Dataset.from_list(rows).to_iterable_dataset(),
}


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("column", SAME_SIZE)
def test_the_content_digest_changes_with_a_page_or_a_picture(
    tmp_path: Path, rows: list[Row], kind: str, column: str
) -> None:
    before = open_split(WRITTEN[kind](rows, tmp_path), "train").content_digest
    rows[3] = rows[3] | SAME_SIZE[column](rows[3])
    assert open_split(WRITTEN[kind](rows, tmp_path), "train").content_digest != before


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_copy_has_the_same_content_digest(tmp_path: Path, rows: list[Row], kind: str) -> None:
    first = open_split(WRITTEN[kind](rows, tmp_path), "train").content_digest
    (tmp_path / "copy").mkdir()
    assert open_split(WRITTEN[kind](rows, tmp_path / "copy"), "train").content_digest == first


def test_the_content_digest_changes_with_a_picture_given_by_its_path(tmp_path: Path, rows: list[Row]) -> None:
    rows[0] = rows[0] | {"screenshot": {"bytes": None, "path": "a.png"}}
    digests = []
    for content in (b"one", b"two"):
        (tmp_path / "a.png").write_bytes(content)
        for kind in ("parquet", "jsonl"):
            digests.append(open_split(WRITTEN[kind](rows, tmp_path), "train").content_digest)
    assert len(set(digests)) == 4


def test_a_digest_that_is_remembered_is_not_computed_again(tmp_path: Path) -> None:
    computed: list[int] = []

    def compute() -> str:
        computed.append(1)
        return "abc"

    assert [cached_digest("name", [stamp, 2.5], compute) for stamp in (1, 1, 7)] == ["abc"] * 3
    assert len(computed) == 2


# --- what a row becomes -----------------------------------------------------------------------------------------------


def test_the_plain_fields_of_a_step(tmp_path: Path) -> None:
    row = list(synthetic_rows(1, 4, 6, seed=1))[2]
    step = one_step(tmp_path)
    assert (step.task, step.website, step.domain, step.subdomain, step.cleaned_html, step.index) == (
        row["confirmed_task"],
        row["website"],
        row["domain"],
        row["subdomain"],
        row["cleaned_html"],
        2,
    )


STEPS: dict[str, tuple[Row, Row]] = {
    "a good row": ({}, {"faults": ()}),
    "history": ({"action_reprs": ["a", "b", "c", "d"], "target_action_index": "2"}, {"history": ("a", "b")}),
    "an index that is a number": (
        {"action_reprs": ["a", "b", "c"], "target_action_index": 1}, {"history": ("a",), "index": 1}
    ),
    "no text of the last action": (
        {"action_reprs": ["a", "b"], "target_action_index": 2}, {"history": ("a", "b"), "faults": ()}
    ),
    "a bad index": ({"target_action_index": 99}, {"history": ()}),
    "a value of null": (
        {"operation": json.dumps({"op": "CLICK", "original_op": "HOVER", "value": None})},
        {"operation": Operation("CLICK", "", "HOVER")},
    ),
    "a decoded operation": (
        {"operation": {"op": "TYPE", "original_op": "TYPE", "value": "x"}},
        {"operation": Operation("TYPE", "x", "TYPE")},
    ),
    "no id": ({"annotation_id": None}, {"annotation_id": ""}),
    "no positives": ({"pos_candidates": []}, {"faults": ()}),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "fields"), STEPS.values(), ids=STEPS)
def test_the_fields_of_a_step(tmp_path: Path, changes: Row, fields: Row) -> None:
    step = one_step(tmp_path, **changes)
    assert {name: getattr(step, name) for name in fields} == fields


def test_candidates_are_positives_then_negatives_in_row_order(tmp_path: Path) -> None:
    step = one_step(tmp_path, pos_candidates=[candidate("9")], neg_candidates=[candidate("7"), candidate("8")])
    assert [(c.backend_node_id, c.is_positive) for c in step.candidates] == [("9", True), ("7", False), ("8", False)]


@pytest.mark.parametrize("attributes", [{"bounding_box_rect": "1,2,3.5,4"}, '{"bounding_box_rect": "1,2,3.5,4"}'])
def test_a_candidate_may_be_decoded_already(tmp_path: Path, attributes: object) -> None:
    raw = {"tag": "a", "backend_node_id": 5, "attributes": attributes}
    step = one_step(tmp_path, pos_candidates=[raw], neg_candidates=[])
    assert step.candidates == (Candidate("5", "a", Box(1.0, 2.0, 3.5, 4.0), True),)


@pytest.mark.parametrize(
    ("value", "known"), [("true", True), (True, True), ("false", False), (None, False), (1, False)]
)
@pytest.mark.parametrize("box", ["1,2,3,4", None])
def test_what_takes_clicks_is_what_the_row_says_does(
    tmp_path: Path, value: object, known: bool, box: str | None
) -> None:
    attributes = json.dumps({"bounding_box_rect": box, "is_clickable": value})
    raw = json.dumps({"tag": "a", "backend_node_id": "5", "attributes": attributes})
    assert one_step(tmp_path, pos_candidates=[raw], neg_candidates=[]).candidates[0].is_clickable is known


def test_an_element_without_box_and_clicks_is_no_fault(tmp_path: Path) -> None:
    raw = json.dumps({"tag": "a", "backend_node_id": "5", "attributes": "{}"})
    step = one_step(tmp_path, pos_candidates=[raw], neg_candidates=[])
    assert (step.candidates, step.faults) == ((Candidate("5", "a", None, True),), ())


# --- faults of a row --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"screenshot": None}, "no_screenshot"),
        ({"screenshot": {"bytes": None, "path": None}}, "no_screenshot"),
        ({"cleaned_html": None}, "bad_html"),
        ({"cleaned_html": " "}, "bad_html"),
        ({"neg_candidates": [candidate("5", "1,2,3")]}, "bad_box"),
        ({"neg_candidates": [candidate("5", "1,2,3,wide")]}, "bad_box"),
        ({"neg_candidates": [candidate("5", "1,2,3,nan")]}, "bad_box"),
        ({"pos_candidates": [candidate("5")], "neg_candidates": [candidate("5")]}, "duplicate_id"),
        ({"target_action_index": "two"}, "bad_target_index"),
        ({"target_action_index": -1}, "bad_target_index"),
        ({"target_action_index": 5}, "bad_target_index"),
        ({"target_action_index": None}, "bad_target_index"),
        ({"operation": "{"}, "bad_operation"),
        ({"operation": '{"op": "HOVER", "value": ""}'}, "bad_operation"),
        ({"operation": None}, "bad_operation"),
        ({"pos_candidates": ["{"]}, "bad_candidates"),
        ({"pos_candidates": ["[1]"]}, "bad_candidates"),
        ({"pos_candidates": None}, "bad_candidates"),
        ({"pos_candidates": ['{"tag": "a"}']}, "bad_candidates"),
        ({"pos_candidates": ['{"backend_node_id": "5", "attributes": "{"}']}, "bad_candidates"),
        ({"confirmed_task": None}, "missing_field"),
        ({"annotation_id": None}, "missing_field"),
        ({"action_uid": None}, "missing_field"),
        ({"action_reprs": None}, "missing_field"),
    ],
)
def test_a_bad_row_is_a_step_with_a_named_fault(tmp_path: Path, changes: Row, name: str) -> None:
    assert fault_names(one_step(tmp_path, **changes)) == [name]


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"pos_candidates": [candidate("5", "1,2,x,4")]}, "backend_node_id '5' has '1,2,x,4'"),
        (
            {"neg_candidates": [candidate(str(n), "none") for n in range(900, 905)]},
            "backend_node_id '900' has 'none' (and 4 more)",
        ),
        ({"operation": "x" * 10_000}, f"no JSON object: '{'x' * 59}..."),
    ],
)
def test_a_fault_shows_shortly_what_was_found_first(tmp_path: Path, changes: Row, detail: str) -> None:
    assert [fault.detail for fault in one_step(tmp_path, **changes).faults] == [detail]


def test_a_row_that_repeats_a_key_is_given_with_a_fault_that_names_the_first(tmp_path: Path) -> None:
    rows = list(synthetic_rows(1, 2, 3, seed=1))
    steps = list(load_steps(write_parquet([*rows, rows[1]], tmp_path / "a.parquet"), "train"))
    assert [fault_names(step) for step in steps] == [[], [], ["duplicate_step"]]
    assert "row 1 of" in steps[2].faults[0].detail


def test_text_that_is_not_utf8_is_a_fault_of_its_row(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(list(synthetic_rows(1, 2, 3, seed=1)), schema=hub_schema())
    spoiled = pa.array([b"<html>\xff</html>", b"<html/>"], pa.binary()).view(pa.string())
    place = table.schema.get_field_index("cleaned_html")
    pq.write_table(table.set_column(place, "cleaned_html", spoiled), tmp_path / "a.parquet")
    steps = list(load_steps(tmp_path / "a.parquet", "train"))
    assert [fault_names(step) for step in steps] == [["bad_html"], []]


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_a_picture_is_a_real_one_with_the_digest_of_its_bytes(folder: Path, rows: list[Row]) -> None:
    step: Any = next(load_steps(folder, "test_domain"))
    assert Image.open(io.BytesIO(step.screenshot.read())).size == (1280, 180)
    assert step.screenshot.digest == hashlib.sha256(rows[0]["screenshot"]["bytes"]).hexdigest()


@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: {"bytes": text}, lambda text: "data:x," + text])
def test_a_picture_in_jsonl_may_be_base64(tmp_path: Path, wrap: Callable[[str], object]) -> None:
    step: Any = one_step(tmp_path, screenshot=wrap(base64.b64encode(b"picture").decode()))
    assert step.screenshot.read() == b"picture"


@pytest.mark.parametrize(
    ("screenshot", "message"),
    [
        ("no base64!", "bad_screenshot: not base64"),
        ({"path": "gone.png"}, r"bad_screenshot: path 'gone\.png' cannot be read"),
    ],
)
def test_a_picture_that_cannot_be_had_is_found_when_it_is_read(
    tmp_path: Path, screenshot: object, message: str
) -> None:
    step: Any = one_step(tmp_path, screenshot=screenshot)
    assert step.faults == ()
    with pytest.raises(RowError, match=message):
        step.screenshot.read()


def test_a_picture_may_be_a_path_inside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots" / "a.png").write_bytes(b"picture")
    step: Any = one_step(tmp_path, screenshot={"path": "shots/a.png"})
    assert step.screenshot.read() == b"picture"


@pytest.mark.parametrize("path", ["../secret.png", "/etc/hostname", "link.png"])
def test_a_path_that_leads_out_of_the_folder_is_not_opened(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "data set"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    step: Any = one_step(folder, screenshot={"path": path})
    with pytest.raises(RowError, match="leads out of"):
        step.screenshot.read()


# --- against the obvious ----------------------------------------------------------------------------------------------


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
boxes = st.sampled_from(["1,2,3,4", "1.5,-2,1e3,0", "1,2,3", "a,b,c,d", "1,2,3,nan", "1_0,2,3,4", " 1 ,2,3,4 "])
attribute_texts = st.one_of(
    st.dictionaries(
        st.sampled_from(["bounding_box_rect", "class", "is_clickable"]),
        boxes | st.just("true") | json_values,
        max_size=3,
    ).map(json.dumps),
    st.text(max_size=8),
)
listed = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "backend_node_id": st.sampled_from(["7", "", 7]) | json_values,
            "tag": st.sampled_from(["a", None]) | json_values,
            "attributes": attribute_texts | json_values,
        },
    ).map(json.dumps),
    st.text(max_size=10),
    json_values.map(json.dumps),
)


@pytest.mark.slow
@settings(max_examples=often(500))
@given(text=listed, after=st.sampled_from(["", " ", "}", "\ud800"]))
def test_the_quick_reading_of_a_candidate_gives_what_the_careful_one_does(text: str, after: str) -> None:
    quick = _plain_candidate(text + after, True)
    if quick is not None:
        log = FaultLog()
        assert _candidate(json.loads(text + after), "pos_candidates", True, log) == quick
        assert log.faults() == ()


def test_a_candidate_of_the_released_form_is_read_quickly() -> None:
    text = json.dumps({"attributes": json.dumps({"bounding_box_rect": "1,2,3,4"}), "backend_node_id": "7", "tag": "a"})
    assert _plain_candidate(text, False) == Candidate("7", "a", Box(1, 2, 3, 4), False)


@given(parts=st.lists(st.floats(), min_size=0, max_size=6))
def test_a_box_is_four_numbers_of_a_page_and_nothing_else(parts: list[float]) -> None:
    good = len(parts) == 4 and all(abs(part) <= MAX_PIXEL for part in parts)
    assert parse_box(",".join(map(repr, parts))) == (Box(*parts) if good else None)


@pytest.mark.parametrize("rect", ["", "1_0,2,3,4", [1, 2, 3], [True, 2, 3, 4], ["1", 2, 3, 4], {"x": 1}, 5])
def test_what_is_no_box(rect: object) -> None:
    assert parse_box(rect) is None


def test_blank_lines_of_jsonl_are_not_rows(tmp_path: Path, rows: list[Row]) -> None:
    path = write_jsonl(rows, tmp_path / "a.jsonl")
    path.write_text("\n" + path.read_text().replace("\n", "\n\n"))
    assert JsonlFiles("a", None, (path,)).count() == 12
    assert keys(load_steps(path, "train")) == row_keys(rows)


# --- the real step ----------------------------------------------------------------------------------------------------


def test_the_real_step(shared_step: Path) -> None:
    [step] = load_steps(shared_step, "cross_domain")
    assert (len(step.candidates), step.truth.positives, step.operation.text) == (468, frozenset({"8635"}), "CLICK")
    assert (step.index, len(step.history), step.faults) == (2, 2, ())
    assert step.candidates[0].box == Box(587.0, 596.59375, 93.0, 54.0)
    assert step.screenshot is not None
    assert Image.open(io.BytesIO(step.screenshot.read())).size == (1280, 7412)


# --- hostile rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_picture_path_that_is_no_regular_file_is_not_read(tmp_path: Path, rows: list[Row], kind: str) -> None:
    """A pipe was waited for without end."""
    place = tmp_path / "page.png"
    {"pipe": lambda: os.mkfifo(place), "device": lambda: place.symlink_to("/dev/zero"), "folder": place.mkdir}[kind]()
    step = step_of({**rows[0], "screenshot": {"bytes": None, "path": "page.png"}}, tmp_path)
    with pytest.raises(RowError) as caught:
        step.screenshot.read()
    assert caught.value.name == "bad_screenshot"


@pytest.mark.parametrize(
    "store",
    [
        lambda data, at: StoredScreenshot(data),
        lambda data, at: StoredScreenshot(base64.b64encode(data).decode()),
        lambda data, at: at.joinpath("page.png").write_bytes(data) and StoredScreenshot(None, "page.png", at),
    ],
    ids=["bytes", "base64", "file"],
)
def test_a_picture_of_too_many_bytes_is_a_named_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Callable[[bytes, Path], StoredScreenshot]
) -> None:
    monkeypatch.setattr(rows_module, "MAX_PICTURE_BYTES", 99)
    assert store(b"x" * 99, tmp_path).read() == b"x" * 99
    with pytest.raises(RowError, match="more than 99 bytes"):
        store(b"x" * 100, tmp_path).read()


HALF = "\ud83d"
HALVES = {
    "task": lambda row: {**row, "confirmed_task": f"tea {HALF}"},
    "task id": lambda row: {**row, "annotation_id": f"a{HALF}"},
    "step id": lambda row: {**row, "action_uid": f"a{HALF}"},
    "website": lambda row: {**row, "website": HALF},
    "action": lambda row: {**row, "action_reprs": [f"[a] {HALF} -> CLICK"] * 3, "target_action_index": "2"},
    "value": lambda row: {**row, "operation": json.dumps({"op": "TYPE", "value": HALF})},
    "page": lambda row: {**row, "cleaned_html": row["cleaned_html"].replace("</body>", f"{HALF}</body>")},
    "candidate": lambda row: {
        **row,
        "neg_candidates": [json.dumps({"backend_node_id": HALF, "tag": "a", "attributes": "{}"})],
    },
}


@pytest.mark.parametrize("change", HALVES.values(), ids=HALVES.keys())
def test_half_a_surrogate_pair_is_a_named_fault(tmp_path: Path, rows: list[Row], change: Callable[[Row], Row]) -> None:
    """It ended as an internal error wherever the text was hashed, sent or stored."""
    assert [fault.name for fault in step_of(change(dict(rows[0])), tmp_path).faults] == ["bad_text"]
