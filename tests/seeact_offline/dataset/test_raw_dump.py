"""The raw dump and the task files -> the hub's layout, on a small dump that each test writes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.dataset import load_steps, raw_dump
from seeact_offline.dataset.raw_dump import BrokenJson, Problem, SplitReport, convert, read_items, write_rows
from seeact_offline.records import Box, DatasetError
from tests.pages import picture

PAGE = '<html backend_node_id="1"><button backend_node_id="10"/><a backend_node_id="20"/></html>'
Json = dict[str, Any]
TARGET = {"is_original_target": True, "is_top_level_target": True}


def candidate(node_id: str, tag: str, **flags: bool) -> Json:
    attributes = {"backend_node_id": node_id, "bounding_box_rect": "1,2,3,4.5", "class": "ä"}
    return {"tag": tag, "attributes": json.dumps(attributes), **flags, "backend_node_id": node_id}


def make_action(uid: str, html: str = PAGE) -> Json:
    return {
        "action_uid": uid,
        "raw_html": f"<!DOCTYPE html>{html}",
        "cleaned_html": html,
        "operation": {"original_op": "TYPE", "value": "pie", "op": "TYPE"},
        "pos_candidates": [candidate("10", "button", **TARGET)],
        "neg_candidates": [candidate("20", "a")],
    }


def make_task(name: str, n_actions: int = 2) -> Json:
    return {
        "annotation_id": name,
        "website": "bakery",
        "domain": "Shopping",
        "subdomain": "Food",
        "confirmed_task": f"Order {name}",
        "action_reprs": [f"[button]  Number {i} -> TYPE: pie" for i in range(n_actions)],
        "actions": [make_action(f"{name}-{i}") for i in range(n_actions)],
    }


class Dump:
    """A dump and its task files, on disk."""

    def __init__(self, folder: Path) -> None:
        self.screens, self.tasks, self.out = folder / "raw_dump", folder / "tasks", folder / "out"
        self.problems: list[Problem] = []

    def add(self, path: str, tasks: list[Json]) -> Path:
        """A task file, and the screenshots of all its actions."""
        file = self.tasks / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(tasks))
        for task in tasks:
            uids = [action["action_uid"] for action in task["actions"]]
            self.screen(task["annotation_id"], [self.entry(uid, n) for n, uid in enumerate(uids)])
        return file

    def screen(self, name: str, entries: list[Json]) -> Path:
        path = self.screens / name / "processed" / "screenshot.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(entries))
        return path

    @staticmethod
    def entry(uid: str, shade: int) -> Json:
        before, after = (base64.b64encode(picture(40, 30, shade + more)).decode() for more in (0, 100))
        return {"action_uid": uid, "before": {"screenshot": before}, "after": {"screenshot": after}}

    def convert(self, split: str | None = None) -> list[SplitReport]:
        return convert(self.screens, self.tasks, self.out, split, self.problems.append)

    @property
    def names(self) -> list[str]:
        return [problem.name for problem in self.problems]


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    return Dump(tmp_path)


def test_rows_are_read_back_as_steps(dump: Dump) -> None:
    dump.add("test_task/test_task_0.json", [make_task("pie"), make_task("bun")])
    (report,) = dump.convert()
    steps = list(load_steps(dump.out, "cross_task", raw_html=True))
    assert [str(step.key) for step in steps] == ["pie_pie-0", "pie_pie-1", "bun_bun-0", "bun_bun-1"]
    assert all(step.faults == () for step in steps)
    assert (report.split, report.tasks, report.rows, report.pictures, report.problems) == ("cross_task", 2, 4, 4, {})


def test_every_field_of_the_task_file_arrives(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    (report,) = dump.convert()
    step = list(load_steps(dump.out, "train", raw_html=True))[1]
    assert (step.task, step.website, step.domain, step.subdomain) == ("Order pie", "bakery", "Shopping", "Food")
    assert (step.operation.text, step.operation.original_op) == ("TYPE pie", "TYPE")
    assert (step.cleaned_html, step.raw_html) == (PAGE, f"<!DOCTYPE html>{PAGE}")
    assert (step.history, step.index) == (("[button]  Number 0 -> TYPE: pie",), 1)
    assert [(c.backend_node_id, c.tag, c.is_positive) for c in step.candidates] == [
        ("10", "button", True),
        ("20", "a", False),
    ]
    assert step.candidates[0].box == Box(1, 2, 3, 4.5)
    # word for word those of the task file
    assert pq.read_table(report.path)["pos_candidates"][0].as_py() == [json.dumps(candidate("10", "button", **TARGET))]


def test_picture_is_the_one_before_the_action_whatever_the_order_in_the_dump(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    dump.screen("pie", [dump.entry("other", 9), dump.entry("pie-1", 1), dump.entry("pie-0", 0)])
    dump.convert()
    pictures = [step.screenshot.read() for step in load_steps(dump.out, "train") if step.screenshot]
    assert pictures == [picture(40, 30, 0), picture(40, 30, 1)]


def test_attributes_given_as_an_object_are_read_too(dump: Dump) -> None:
    task = make_task("pie", 1)
    for found in (*task["actions"][0]["pos_candidates"], *task["actions"][0]["neg_candidates"]):
        found["attributes"] = json.loads(found["attributes"])
    dump.add("train/train_0.json", [task])
    dump.convert()
    (step,) = load_steps(dump.out, "train")
    assert [c.box for c in step.candidates] == [Box(1, 2, 3, 4.5)] * 2


def test_split_is_the_name_of_the_folder(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    dump.add("test_website/deep/part.json", [make_task("bun")])
    assert [report.split for report in dump.convert()] == ["train", "cross_website"]


def test_named_split_is_that_of_all_files(dump: Dump) -> None:
    dump.add("a/0.json", [make_task("pie")])
    dump.add("train/1.json", [make_task("bun")])
    (report,) = dump.convert("test_domain")
    assert (report.split, report.tasks) == ("cross_domain", 2)


@pytest.mark.parametrize(
    ("files", "split", "message"),
    [
        (["a/0.json"], None, r"split: expected .*0\.json in a folder named like a split .*; name the split"),
        (["a/0.json"], "all", "split: expected one of train"),
        (["a/0.json"], "", "split: expected one of train"),
        (["a/0.json"], "tests", "split: expected one of train"),
        ([], None, r"tasks: expected \.json files in .*, got none"),
    ],
)
def test_task_files_of_no_known_split_are_refused(
    dump: Dump, files: list[str], split: str | None, message: str
) -> None:
    dump.tasks.mkdir()
    for file in files:
        dump.add(file, [make_task("pie")])
    with pytest.raises(DatasetError, match=message):
        dump.convert(split)


def test_files_go_by_number_not_by_letter(dump: Dump) -> None:
    for number in (10, 2, 1):
        dump.add(f"train/train_{number}.json", [make_task(f"task{number}", 1)])
    dump.convert()
    assert [step.annotation_id for step in load_steps(dump.out, "train")] == ["task1", "task2", "task10"]


def test_tasks_may_lie_in_a_folder_task_of_the_dump(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    dump.screens.rename(dump.screens.with_name("moved"))
    dump.screens.mkdir()
    dump.screens.with_name("moved").rename(dump.screens / "task")
    (report,) = dump.convert()
    assert report.pictures == 2


FIRST = Dump.entry("pie-0", 0)
SCREENS: dict[str, tuple[str, list[str], list[bool]]] = {
    "no file": ("", ["no_dump_folder"], [False, False]),
    "no entry": (json.dumps([FIRST]), ["no_screenshot"], [True, False]),
    "null": (json.dumps([FIRST, {"action_uid": "pie-1", "before": None}]), ["no_screenshot"], [True, False]),
    "no base64": (
        json.dumps([FIRST, {"action_uid": "pie-1", "before": {"screenshot": "no: base64"}}]), ["bad_base64"], [True, False]
    ),
    "torn": (
        json.dumps([FIRST, Dump.entry("pie-1", 1)])[:-20], ["broken_file", "no_screenshot"], [True, False]
    ),
    "too deep": (
        json.dumps([FIRST, {"action_uid": [], "before": "DEEP"}, Dump.entry("pie-1", 1)]).replace(
            '"DEEP"', "[" * 100_000 + "]" * 100_000
        ), ["bad_screen"], [True, True]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "names", "pictures"), SCREENS.values(), ids=SCREENS)
def test_missing_picture_is_a_named_problem_and_a_row_without_it(
    dump: Dump, text: str, names: list[str], pictures: list[bool]
) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    screens = dump.screens / "pie" / "processed" / "screenshot.json"
    screens.write_text(text) if text else screens.unlink()
    dump.convert()
    assert dump.names == names
    assert [step.screenshot is not None for step in load_steps(dump.out, "train")] == pictures


def test_task_met_twice_is_kept_once_over_all_splits(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie"), make_task("pie")])
    dump.add("test_task/test_0.json", [make_task("pie"), make_task("bun")])
    assert [(report.split, report.tasks) for report in dump.convert()] == [("train", 1), ("cross_task", 1)]
    assert dump.names == ["duplicate_task", "duplicate_task"]


def test_other_number_of_texts_than_actions_is_named_and_all_rows_kept(dump: Dump) -> None:
    task = make_task("pie", 2)
    task["action_reprs"].pop()
    dump.add("train/train_0.json", [task])
    dump.convert()
    assert (dump.names, len(list(load_steps(dump.out, "train")))) == (["action_count"], 2)


@pytest.mark.parametrize("action", [None, {}, {"action_uid": 7}])
def test_action_without_uid_is_left_out_and_the_others_keep_their_places(dump: Dump, action: object) -> None:
    task = make_task("pie", 3)
    dump.add("train/train_0.json", [task])
    task["actions"][1] = action
    (dump.tasks / "train" / "train_0.json").write_text(json.dumps([task]))
    dump.convert()
    assert dump.names == ["bad_action"]
    assert [step.index for step in load_steps(dump.out, "train")] == [0, 2]


@pytest.mark.parametrize("task", [7, {}, {"annotation_id": "", "actions": []}, {"annotation_id": "x", "actions": 1}])
def test_entry_that_is_no_task_is_left_out(dump: Dump, task: object) -> None:
    path = dump.add("train/train_0.json", [make_task("pie", 1)])
    path.write_text(json.dumps([task, make_task("pie", 1)]))
    (report,) = dump.convert()
    assert (dump.names, report.tasks) == (["bad_task"], 1)


def test_broken_file_is_named_with_its_byte_and_the_others_go_on(dump: Dump) -> None:
    path = dump.add("train/train_0.json", [make_task("pie", 1)])
    text = path.read_text()[:-1]
    path.write_text(f"{text}, {{oops}}]")
    dump.add("train/train_1.json", [make_task("bun", 1)])
    (report,) = dump.convert()
    (problem,) = dump.problems
    assert (problem.name, problem.where) == ("broken_file", str(path))
    assert problem.detail.startswith(f"byte {len(text) + 3}: ")
    assert report.tasks == 2


@pytest.mark.parametrize(
    ("text", "byte", "items"),
    [
        (b'[{"a": 1}, {"b": 2', 18, 1),
        (b"[1, 2, x]", 7, 2),
        (b"[1] x", 4, 1),
        (b"[1}", 2, 1),
        (b"[1, ]", 4, 1),
        (b'  {"a": 1}', 2, 0),
        (b"", 0, 0),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 5, 1000])
def test_fault_is_found_at_its_byte_whatever_the_chunk(
    tmp_path: Path, text: bytes, byte: int, items: int, chunk_bytes: int
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text)
    reader = read_items(path, chunk_bytes)
    assert len(list(islice(reader, items))) == items
    with pytest.raises(BrokenJson) as caught:
        next(reader)
    assert caught.value.byte == byte


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(st.lists(JSON), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_entries_are_those_of_a_parser_that_reads_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], chunk_bytes: int, indent: int | None, ascii_only: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(
        json.dumps(values, indent=indent, ensure_ascii=ascii_only), encoding="utf-8", errors="surrogatepass"
    )
    try:
        path.read_text("utf-8")
    except UnicodeDecodeError:
        return
    entries = list(read_items(path, chunk_bytes))
    assert [entry.number for entry in entries] == list(range(len(values)))
    for entry, value in zip(entries, values, strict=True):
        assert (entry.value, bool(entry.fault)) == (value, False) or "half a character" in entry.fault


# One bad task costs itself alone


def nested(opening: str, closing: str, depth: int = 1_000_000) -> str:
    return '{"annotation_id": "bad", "actions": ' + opening * depth + closing * depth + "}"


def with_text(old: str, new: str) -> str:
    return json.dumps(make_task("bad")).replace(old, new)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (with_text("<!DOCTYPE", "\\ud800"), "entry 1, task bad: half a character: \\ud800"),
        (with_text("bakery", "\\udc00x"), "entry 1, task bad: half a character: \\udc00"),
        (with_text("website", "\\ud83d\\ud83d"), "entry 1, task bad: half a character: \\ud83d"),
        (with_text('"bad"', '"\\ud800"'), "entry 1: half a character: \\ud800"),
        (with_text("bakery", "caf\udcff"), "of the file is no UTF-8"),
        (with_text('"bad"', json.dumps("x" * 5000)), f"entry 1, task {'x' * 80}...: annotation_id of 5,000 characters; at most"),
        (with_text('"bad"', json.dumps("ä" * 128)), "annotation_id of 128 characters; at most 255 bytes"),
        (with_text('"bad"', "9" * 5000), "entry 1: Exceeds the limit"),
        (nested("[", "]"), "entry 1, task bad: more than 100 lists and objects within each other"),
        (nested('{"a":', "}", 200_000).replace(":}", ":1}"), "entry 1, task bad: more than 100 lists"),
        (nested("[", "]", 98), None),
        (nested("[", "]", 100), "more than 100 lists"),
    ],
)  # fmt: skip
def test_a_task_that_cannot_be_written_is_named_and_the_others_are_written(
    dump: Dump, text: str, told: str | None
) -> None:
    path = dump.add("train/train_0.json", [])
    text = f"[{json.dumps(make_task('pie', 1))}, {text}, {json.dumps(make_task('bun', 1))}]"
    path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    (report,) = dump.convert()
    bad = [problem for problem in dump.problems if problem.name == "bad_task"]
    assert [step.annotation_id for step in load_steps(dump.out, "train")] == ["pie", "bun"]
    assert (report.problems.get("bad_task", 0), len(bad)) == ((0, 0) if told is None else (1, 1))
    assert told is None or told in str(bad[0])


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1000])
@pytest.mark.parametrize("text", ['"' + "x]," * 99 + '"', '["' + '\\\\\\"' * 99 + '"]', "[" + "[]," * 99 + "[]]"])
def test_an_entry_that_is_too_large_is_forgotten_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int, text: str
) -> None:
    monkeypatch.setattr(raw_dump, "MAX_ENTRY_BYTES", 100)
    path = tmp_path / "x.json"
    path.write_text(f'["before", {text}, "after"]')
    json.loads(path.read_text())
    before, large, after = read_items(path, chunk_bytes)
    assert (before.value, large.value, large.fault, after.value) == ("before", None, "more than 0 MB", "after")


def test_an_entry_of_too_many_values_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_dump, "MAX_COMMAS", 100)
    path = tmp_path / "x.json"
    path.write_text(json.dumps([[0] * 101, [0] * 102]))
    assert [entry.fault for entry in read_items(path)] == ["", "more than 100 commas"]


@pytest.mark.slow
def test_brackets_that_never_close_cost_the_rest_of_their_file(dump: Dump) -> None:
    path = dump.add("train/train_0.json", [make_task("pie", 1)])
    path.write_text(path.read_text()[:-1] + ", " + "[" * 1_000_000)
    dump.add("train/train_1.json", [make_task("bun", 1)])
    (report,) = dump.convert()
    assert (dump.names, report.tasks) == (["broken_file"], 2)


@pytest.mark.parametrize("name", ["..", ".", "a/../..", "../../elsewhere", "nul\0", "x" * 255])
def test_an_id_that_names_no_folder_costs_the_pictures_alone(dump: Dump, name: str) -> None:
    path = dump.add("train/train_0.json", [])
    path.write_text(json.dumps([make_task(name, 1)]))
    dump.screen(".", []).rename(dump.screens / "screenshot.json")
    (report,) = dump.convert()
    assert (dump.names, report.rows) == (["no_dump_folder"], 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_among_the_task_files_is_named(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie", 1)])
    os.mkfifo(dump.tasks / "train" / "train_1.json")
    (report,) = dump.convert()
    assert (report.tasks, str(dump.problems[0])) == (1, f"broken_file: {dump.tasks}/train/train_1.json: cannot read "
        f"{dump.tasks}/train/train_1.json: not a regular file")  # fmt: skip


def test_interrupted_conversion_leaves_no_file_and_keeps_the_last_one(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    (report,) = dump.convert()
    assert report.path is not None
    before = report.path.read_bytes()

    def interrupted() -> Iterator[Json]:
        yield pq.read_table(report.path).to_pylist()[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(interrupted(), report.path, group_bytes=1)
    assert [path.name for path in report.path.parent.iterdir()] == [report.path.name]
    assert report.path.read_bytes() == before


def test_split_without_any_row_leaves_no_file(dump: Dump) -> None:
    path = dump.add("train/train_0.json", [])
    path.write_text("[]")
    (report,) = dump.convert()
    assert (report.path, report.rows) == (None, 0)
    assert not list(dump.out.rglob("*.*"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak is read from /proc, which is not here")
def test_memory_does_not_grow_with_the_dump(tmp_path: Path) -> None:
    small, large = (peak_megabytes(tmp_path / str(n), n_tasks=n) for n in (8, 80))
    assert large - small < 8


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak is read from /proc, which is not here")
def test_a_megabyte_of_brackets_takes_little_memory(tmp_path: Path) -> None:
    dumps = [Dump(tmp_path / name) for name in ("plain", "nested")]
    for dump, more in zip(dumps, ("", ", " + nested("[", "]")), strict=True):
        path = dump.add("train/train_0.json", [make_task("pie", 1)])
        path.write_text(path.read_text()[:-1] + more + "]")
    plain, deep = map(peak_of, dumps)
    assert deep - plain < 30


def peak_megabytes(folder: Path, n_tasks: int) -> float:
    """The most memory that converting a dump of some 1.2 MB a task takes."""
    dump, random = Dump(folder), Random(n_tasks)
    screen = base64.b64encode(random.randbytes(150_000)).decode()
    tasks = [make_task(f"task{n}") for n in range(n_tasks)]
    for task in tasks:
        task["actions"] = [make_action(action["action_uid"], PAGE + "x" * 100_000) for action in task["actions"]]
    dump.add("train/train_0.json", tasks)
    shot = {"screenshot": screen}
    for task in tasks:
        uids = [action["action_uid"] for action in task["actions"]]
        dump.screen(task["annotation_id"], [{"action_uid": uid, "before": shot, "after": shot} for uid in uids])
    return peak_of(dump)


def peak_of(dump: Dump) -> float:
    """Megabytes that a process of its own takes. From /proc, as `getrusage` gives a new process the peak of the one that started it."""
    code = (
        "import sys; from pathlib import Path; from seeact_offline.dataset.raw_dump import convert;"
        "report, = convert(*map(Path, sys.argv[1:4]), group_bytes=1 << 20); assert report.pictures == report.rows > 0;"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    words = [sys.executable, "-c", code, str(dump.screens), str(dump.tasks), str(dump.out)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    return int(done.stdout) / 1024
