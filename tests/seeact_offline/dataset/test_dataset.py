"""`seeact_offline.dataset`: real files and real `datasets` objects in, `Step`s out."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from seeact_offline.dataset import canonical_split, load_steps, open_split
from seeact_offline.dataset import rows as rows_module
from seeact_offline.dataset.order import in_order
from seeact_offline.dataset.readers import JsonlFiles
from seeact_offline.dataset.rows import MAX_PIXEL, FaultLog, StoredScreenshot, _candidate, _plain_candidate, parse_box
from seeact_offline.files.digest import cached_digest
from seeact_offline.records import Box, Candidate, DatasetError, Operation, RowError, Step
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


@pytest.mark.parametrize("split", ["cross_domain", "test_domain"])
def test_a_folder_gives_a_split_under_both_spellings(folder: Path, rows: list[Row], split: str) -> None:
    assert keys(load_steps(folder, split)) == row_keys(rows)


def test_a_missing_split_is_an_error_that_lists_those_found(folder: Path) -> None:
    with pytest.raises(DatasetError, match=r"split: expected cross_task \(test_task\) in .*, got only cross_domain$"):
        load_steps(folder, "cross_task")


def test_all_is_the_three_test_splits_one_after_another(tmp_path: Path) -> None:
    for seed, name in enumerate(["test_domain", "test_website", "train", "test_task"]):
        write_parquet(synthetic_rows(1, 2, 3, seed=seed), tmp_path / f"{name}-00000-of-00001.parquet")
    assert [task[0].annotation_id for task in open_split(tmp_path, "all").steps_by_task()] == [
        "task-3-0",
        "task-1-0",
        "task-0-0",
    ]


def test_all_reads_a_single_file_once(tmp_path: Path, rows: list[Row]) -> None:
    assert keys(load_steps(write_jsonl(rows, tmp_path / "mine.jsonl"), "all")) == row_keys(rows)


def test_limit_counts_tasks_over_all_splits(tmp_path: Path) -> None:
    for seed, name in enumerate(["test_task", "test_website", "test_domain"]):
        write_parquet(synthetic_rows(2, 2, 3, seed=seed), tmp_path / f"{name}.parquet")
    found = [task[0].annotation_id for task in open_split(tmp_path, "all", limit=3).steps_by_task()]
    assert found == ["task-0-0", "task-0-1", "task-1-0"]


# --- where data can lie -----------------------------------------------------------------------------------------------


def test_parquet_directly_in_the_folder_is_found(tmp_path: Path, rows: list[Row]) -> None:
    write_parquet(rows, tmp_path / "test_domain-00000-of-00001.parquet")
    assert keys(load_steps(str(tmp_path), "test_domain")) == row_keys(rows)


def test_jsonl_in_a_folder_is_found(tmp_path: Path, rows: list[Row]) -> None:
    write_jsonl(rows, tmp_path / "test_domain.jsonl")
    assert keys(load_steps(tmp_path, "cross_domain")) == row_keys(rows)


def test_several_files_of_a_split_are_read_in_the_order_of_their_names(tmp_path: Path, rows: list[Row]) -> None:
    write_parquet(rows[5:], tmp_path / "test_domain-00001-of-00002.parquet")
    write_parquet(rows[:5], tmp_path / "test_domain-00000-of-00002.parquet")
    assert keys(load_steps(tmp_path, "test_domain")) == row_keys(rows)


def test_a_missing_shard_is_an_error(tmp_path: Path, rows: list[Row]) -> None:
    write_parquet(rows, tmp_path / "test_domain-00000-of-00002.parquet")
    with pytest.raises(
        DatasetError, match=r"dataset: expected all 2 files of cross_domain in .*, got 1; fetch the others"
    ):
        load_steps(tmp_path, "test_domain")


def test_a_parquet_file_is_the_split_asked_for(tmp_path: Path, rows: list[Row]) -> None:
    assert keys(load_steps(write_parquet(rows, tmp_path / "mine.parquet"), "train")) == row_keys(rows)


def test_jsonl_and_parquet_give_equal_steps(tmp_path: Path, rows: list[Row]) -> None:
    from_parquet = list(load_steps(write_parquet(rows, tmp_path / "a.parquet"), "train"))
    from_jsonl = list(load_steps(write_jsonl(rows, tmp_path / "a.jsonl"), "train"))
    plain = [_without_picture(step) for step in from_parquet]
    assert plain == [_without_picture(step) for step in from_jsonl]


def _without_picture(step: Step) -> tuple[object, ...]:
    names = [name for name in Step.__slots__ if name not in ("screenshot", "split")]
    return (*(getattr(step, name) for name in names), step.screenshot and step.screenshot.read())


def test_a_datasets_table_gives_the_steps(folder: Path, rows: list[Row]) -> None:
    table = datasets.Dataset(pa.Table.from_pylist(rows, schema=hub_schema()))
    assert list(map(_without_picture, load_steps(table, "train"))) == list(
        map(_without_picture, load_steps(folder, "test_domain"))
    )


def test_a_datasets_table_made_from_plain_python_gives_the_steps(rows: list[Row]) -> None:
    assert keys(load_steps(datasets.Dataset.from_list(rows), "train")) == row_keys(rows)


@pytest.mark.parametrize("name", ["cross_domain", "test_domain"])
def test_a_dataset_dict_may_use_either_spelling(rows: list[Row], name: str) -> None:
    tables = datasets.DatasetDict({name: datasets.Dataset.from_list(rows)})
    assert keys(load_steps(tables, "test_domain")) == row_keys(rows)


def test_a_dataset_dict_without_the_split_lists_what_it_has(rows: list[Row]) -> None:
    tables = datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)})
    with pytest.raises(DatasetError, match=r"expected cross_task .* in the DatasetDict, got only train$"):
        load_steps(tables, "cross_task")


def test_an_iterable_dataset_gives_its_rows_in_order(rows: list[Row]) -> None:
    random.Random(3).shuffle(rows)
    stream = datasets.Dataset.from_list(rows).to_iterable_dataset()
    assert keys(load_steps(stream, "train")) == keys(load_steps(datasets.Dataset.from_list(rows), "train"))


def test_an_iterable_dataset_keeps_the_bytes_of_pictures(rows: list[Row]) -> None:
    table = datasets.Dataset(pa.Table.from_pylist(rows, schema=hub_schema()))
    step = next(load_steps(table.to_iterable_dataset(), "train"))
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


# --- the hub ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Row]]:
    """The library's own loader, with the hub's one repository `owner/pages` being a local folder."""
    for name in ("train", "test_task"):
        rows = synthetic_rows(1, 2, 3, seed=len(name), raw_html_size=50)
        write_parquet(rows, tmp_path / "pages" / "data" / f"{name}-00000-of-00001.parquet")
    calls: list[Row] = []
    load, split_names = datasets.load_dataset, datasets.get_dataset_split_names

    def local_load(path: str, **arguments: Any) -> Any:
        calls.append(arguments)
        return load(str(tmp_path / Path(path).name), cache_dir=str(tmp_path / "cache"), **arguments)

    monkeypatch.setattr(datasets, "load_dataset", local_load)
    monkeypatch.setattr(datasets, "get_dataset_split_names", lambda path: split_names(str(tmp_path / Path(path).name)))
    return lambda: calls


def test_a_hub_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It takes connections and never answers, as behind some firewalls; its own client would try for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
        monkeypatch.setattr("seeact_offline.dataset.sources.ANSWER_S", 0.1)
        with pytest.raises(DatasetError, match=r"'nobody/nothing': .* and the hub does not answer$"):
            open_split("nobody/nothing", "train")


def test_a_hub_id_gives_the_steps_of_the_split(hub: Callable[[], list[Row]]) -> None:
    assert keys(load_steps("owner/pages", "cross_task")) == [("task-9-0", "uid-9-0-0"), ("task-9-0", "uid-9-0-1")]


def test_a_hub_id_asks_for_one_split_without_raw_html(hub: Callable[[], list[Row]]) -> None:
    load_steps("owner/pages", "cross_task")
    assert hub()[0]["split"] == "test_task"
    assert "raw_html" not in hub()[0]["columns"]


def test_only_the_files_of_one_split_are_converted(hub: Callable[[], list[Row]], tmp_path: Path) -> None:
    load_steps("owner/pages", "cross_task")
    assert [path.name for path in (tmp_path / "cache").rglob("*.arrow")] == ["pages-test_task.arrow"]


def test_raw_html_comes_from_the_hub_when_asked_for(hub: Callable[[], list[Row]]) -> None:
    step = next(load_steps("owner/pages", "cross_task", raw_html=True))
    assert step.raw_html is not None
    assert len(step.raw_html) == 50


def test_a_split_that_the_hub_lacks_is_an_error_that_lists_the_splits(hub: Callable[[], list[Row]]) -> None:
    with pytest.raises(DatasetError, match=r"expected cross_domain .* in owner/pages, got only .*train"):
        load_steps("owner/pages", "cross_domain")


def test_a_path_in_a_row_of_the_hub_opens_no_file(tmp_path: Path, hub: Callable[[], list[Row]]) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"secret")
    row = next(synthetic_rows(1, 1, 3, seed=1)) | {"screenshot": {"bytes": None, "path": str(secret)}}
    write_parquet([row], tmp_path / "pages" / "data" / "test_website-00000-of-00001.parquet")
    step = next(load_steps("owner/pages", "cross_website"))
    assert step.screenshot is not None
    with pytest.raises(RowError, match="bad_screenshot"):
        step.screenshot.read()


# --- what cannot be used ----------------------------------------------------------------------------------------------


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"dataset: expected a folder, .*, got '.*nowhere': there is no such folder"):
        load_steps(str(tmp_path / "nowhere"), "train")


def test_an_empty_name_is_an_error() -> None:
    with pytest.raises(DatasetError, match="no such folder"):
        load_steps("", "train")


def test_an_object_of_another_kind_is_an_error() -> None:
    with pytest.raises(DatasetError, match="got a list"):
        load_steps([], "train")


def test_a_file_of_another_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").touch()
    with pytest.raises(DatasetError, match=r"expected a .parquet or .jsonl file, got .*rows.csv"):
        load_steps(tmp_path / "rows.csv", "train")


def test_missing_columns_are_named_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "test_task.parquet"
    pq.write_table(pa.table({"annotation_id": ["a"], "action_uid": ["b"]}), path)
    with pytest.raises(
        DatasetError, match=r"the columns .*cleaned_html, pos_candidates.* in .*test_task.parquet, got anno"
    ):
        load_steps(tmp_path, "cross_task")


def test_a_file_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(DatasetError, match=r"dataset: expected .*train.parquet to be readable, got ."):
        load_steps(tmp_path, "train")


def test_a_parquet_file_with_a_spoiled_column_is_named(folder: Path) -> None:
    spoil_column(next(folder.rglob("*.parquet")), "cleaned_html")
    with pytest.raises(DatasetError, match=r"expected .*test_domain-00000-of-00001.parquet to be readable, got ."):
        list(load_steps(folder, "test_domain"))


def test_a_line_that_is_not_json_is_named_by_its_number(tmp_path: Path, rows: list[Row]) -> None:
    path = write_jsonl(rows[:2], tmp_path / "rows.jsonl")
    path.write_text(path.read_text() + "\n{broken\n")
    with pytest.raises(
        DatasetError, match=r"dataset: expected a JSON object as line 4 of .*rows.jsonl, got no JSON: ."
    ):
        list(load_steps(path, "train"))


def test_the_two_kinds_of_file_for_one_split_are_an_error(tmp_path: Path, rows: list[Row]) -> None:
    write_parquet(rows, tmp_path / "train.parquet")
    write_jsonl(rows, tmp_path / "train.jsonl")
    with pytest.raises(DatasetError, match=r"expected train in .* as .parquet or as .jsonl, got both; keep one"):
        load_steps(tmp_path, "train")


def test_a_limit_below_one_is_an_error(folder: Path) -> None:
    with pytest.raises(DatasetError, match="limit: expected a number of tasks of at least 1, got 0"):
        load_steps(folder, "test_domain", limit=0)


# --- what is read, and when -------------------------------------------------------------------------------------------


def test_raw_html_is_not_read_unless_asked_for(folder: Path, rows: list[Row]) -> None:
    spoil_column(next(folder.rglob("*.parquet")), "raw_html")
    assert keys(load_steps(folder, "test_domain")) == row_keys(rows)


def test_raw_html_is_none_unless_asked_for(folder: Path) -> None:
    assert next(load_steps(folder, "test_domain")).raw_html is None


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
    found = in_order(table.to_batches(max_chunksize=size), order[:taken], "table")
    assert [row.to_pylist() for row in found] == [[{"n": n, "text": str(n) * n}] for n in order[:taken]]


def test_in_order_says_when_a_row_is_gone() -> None:
    with pytest.raises(DatasetError, match=r"dataset: expected row 5 in the table, .* got the end of its rows"):
        list(in_order(pa.table({"n": [1, 2]}).to_batches(), [5], "the table"))


def test_load_tasks_gives_a_list_of_steps_for_each_task(folder: Path) -> None:
    assert [[step.index for step in task] for task in open_split(folder, "test_domain").steps_by_task()] == [
        [0, 1, 2, 3]
    ] * 3


def test_keys_are_those_of_the_steps(folder: Path) -> None:
    keys = open_split(folder, "test_domain", limit=2).keys
    assert list(keys) == [step.key for step in load_steps(folder, "test_domain", limit=2)]
    assert len(keys) == 8


# --- fingerprint ------------------------------------------------------------------------------------------------------


def test_the_fingerprint_is_16_hex_digits(folder: Path) -> None:
    assert len(open_split(folder, "test_domain").fingerprint) == 16
    int(open_split(folder, "test_domain").fingerprint, 16)


def test_the_fingerprint_is_the_same_under_both_spellings(folder: Path) -> None:
    assert open_split(folder, "test_domain").fingerprint == open_split(folder, "cross_domain").fingerprint


@pytest.mark.parametrize("name", ["action_uid", "confirmed_task", "operation", "target_action_index"])
def test_the_fingerprint_changes_with_a_light_field(rows: list[Row], name: str) -> None:
    before = open_split(datasets.Dataset.from_list(rows), "train").fingerprint
    rows[3] = rows[3] | {name: "9"}
    assert open_split(datasets.Dataset.from_list(rows), "train").fingerprint != before


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


def test_a_good_row_has_no_faults(tmp_path: Path) -> None:
    assert one_step(tmp_path).faults == ()


def test_history_is_what_came_before_and_nothing_later(tmp_path: Path) -> None:
    step = one_step(tmp_path, action_reprs=["a", "b", "c", "d"], target_action_index="2")
    assert step.history == ("a", "b")


def test_the_target_index_may_be_a_number(tmp_path: Path) -> None:
    assert one_step(tmp_path, action_reprs=["a", "b", "c"], target_action_index=1).history == ("a",)


def test_the_last_action_text_may_be_missing(tmp_path: Path) -> None:
    step = one_step(tmp_path, action_reprs=["a", "b"], target_action_index=2)
    assert (step.history, step.faults) == (("a", "b"), ())


def test_a_value_of_none_is_the_empty_text(tmp_path: Path) -> None:
    raw = json.dumps({"op": "CLICK", "original_op": "HOVER", "value": None})
    assert one_step(tmp_path, operation=raw).operation == Operation("CLICK", "", "HOVER")


def test_an_operation_may_be_decoded_already(tmp_path: Path) -> None:
    raw = {"op": "TYPE", "original_op": "TYPE", "value": "x"}
    assert one_step(tmp_path, operation=raw).operation == Operation("TYPE", "x", "TYPE")


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


def test_a_row_that_says_nothing_of_clicks_names_none(tmp_path: Path) -> None:
    raw = json.dumps({"tag": "a", "backend_node_id": "5", "attributes": json.dumps({"bounding_box_rect": "1,2,3,4"})})
    assert not one_step(tmp_path, pos_candidates=[raw], neg_candidates=[]).candidates[0].is_clickable


def test_a_missing_box_is_no_fault(tmp_path: Path) -> None:
    raw = json.dumps({"tag": "a", "backend_node_id": "5", "attributes": "{}"})
    step = one_step(tmp_path, pos_candidates=[raw], neg_candidates=[])
    assert (step.candidates[0].box, step.faults) == (None, ())


def test_a_step_without_positives_is_no_fault(tmp_path: Path) -> None:
    step = one_step(tmp_path, pos_candidates=[])
    assert (step.truth.positives, step.faults) == (frozenset(), ())


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


def test_a_bad_box_is_none_and_its_fault_shows_what_was_found(tmp_path: Path) -> None:
    step = one_step(tmp_path, pos_candidates=[candidate("5", "1,2,x,4")], neg_candidates=[])
    assert step.candidates[0].box is None
    assert step.faults[0].detail == "backend_node_id '5' has '1,2,x,4'"


def test_many_faults_of_a_kind_are_one_with_a_count(tmp_path: Path) -> None:
    step = one_step(tmp_path, neg_candidates=[candidate(str(n), "none") for n in range(900, 905)])
    assert [fault.detail for fault in step.faults] == ["backend_node_id '900' has 'none' (and 4 more)"]


def test_what_was_found_is_shortened(tmp_path: Path) -> None:
    step = one_step(tmp_path, operation="x" * 10_000)
    assert len(step.faults[0].detail) < 100


def test_a_bad_target_index_leaves_no_history(tmp_path: Path) -> None:
    assert one_step(tmp_path, target_action_index=99).history == ()


def test_a_null_annotation_id_is_the_empty_text(tmp_path: Path) -> None:
    assert one_step(tmp_path, annotation_id=None).annotation_id == ""


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


def test_a_picture_is_a_real_one(folder: Path) -> None:
    step = next(load_steps(folder, "test_domain"))
    assert step.screenshot is not None
    assert Image.open(io.BytesIO(step.screenshot.read())).size == (1280, 180)


def test_the_digest_of_a_picture_is_the_sha256_of_its_bytes(folder: Path, rows: list[Row]) -> None:
    step: Any = next(load_steps(folder, "test_domain"))
    assert step.screenshot.digest == hashlib.sha256(rows[0]["screenshot"]["bytes"]).hexdigest()


@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: {"bytes": text}, lambda text: "data:x," + text])
def test_a_picture_in_jsonl_may_be_base64(tmp_path: Path, wrap: Callable[[str], object]) -> None:
    step: Any = one_step(tmp_path, screenshot=wrap(base64.b64encode(b"picture").decode()))
    assert step.screenshot.read() == b"picture"


def test_wrong_base64_is_found_when_the_picture_is_read(tmp_path: Path) -> None:
    step: Any = one_step(tmp_path, screenshot="no base64!")
    assert step.faults == ()
    with pytest.raises(RowError, match="bad_screenshot: not base64"):
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


def test_a_picture_that_is_not_there_is_found_when_it_is_read(tmp_path: Path) -> None:
    step: Any = one_step(tmp_path, screenshot={"path": "gone.png"})
    with pytest.raises(RowError, match=r"bad_screenshot: path 'gone\.png' cannot be read"):
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


@settings(max_examples=500)
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


def test_a_data_set_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    with pytest.raises(DatasetError, match=r"expected a .parquet or .jsonl file"):
        load_steps(tmp_path / "rows.jsonl", "train")


@pytest.mark.parametrize("stored", [bytes, lambda data: base64.b64encode(data).decode()], ids=["bytes", "base64"])
def test_a_picture_of_too_many_bytes_is_a_named_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: Callable[[bytes], bytes | str]
) -> None:
    monkeypatch.setattr(rows_module, "MAX_PICTURE_BYTES", 99)
    assert StoredScreenshot(stored(b"x" * 99)).read() == b"x" * 99
    with pytest.raises(RowError, match="more than 99 bytes"):
        StoredScreenshot(stored(b"x" * 100)).read()


def test_a_picture_file_of_too_many_bytes_is_a_named_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "MAX_PICTURE_BYTES", 99)
    (tmp_path / "page.png").write_bytes(b"x" * 100)
    with pytest.raises(RowError, match="more than 99 bytes"):
        StoredScreenshot(None, "page.png", tmp_path).read()


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
