"""The raw dump and the task files -> the hub's layout, on a small dump that each test writes."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.raw_dump import BrokenJson, Problem, SplitReport, convert, read_items, write_rows
from seeact_offline.records import Box, DatasetError
from tests.pages import picture

PAGE = '<html backend_node_id="1"><button backend_node_id="10"/><a backend_node_id="20"/></html>'
Json = dict[str, Any]


def candidate(node_id: str, tag: str, **flags: bool) -> Json:
    attributes = {"backend_node_id": node_id, "bounding_box_rect": "1,2,3,4.5", "class": "ä"}
    return {"tag": tag, "attributes": json.dumps(attributes), **flags, "backend_node_id": node_id}


def make_action(uid: str, html: str = PAGE) -> Json:
    return {
        "action_uid": uid,
        "raw_html": f"<!DOCTYPE html>{html}",
        "cleaned_html": html,
        "operation": {"original_op": "TYPE", "value": "pie", "op": "TYPE"},
        "pos_candidates": [candidate("10", "button", is_original_target=True, is_top_level_target=True)],
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
    dump.convert()
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


def test_picture_is_the_one_before_the_action_whatever_the_order_in_the_dump(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    dump.screen("pie", [dump.entry("other", 9), dump.entry("pie-1", 1), dump.entry("pie-0", 0)])
    dump.convert()
    pictures = [step.screenshot.read() for step in load_steps(dump.out, "train") if step.screenshot]
    assert pictures == [picture(40, 30, 0), picture(40, 30, 1)]


def test_candidates_are_word_for_word_those_of_the_task_file(dump: Dump) -> None:
    import pyarrow.parquet as pq

    task = make_task("pie", 1)
    dump.add("train/train_0.json", [task])
    (report,) = dump.convert()
    (row,) = pq.read_table(report.path).to_pylist()
    assert row["pos_candidates"] == [json.dumps(task["actions"][0]["pos_candidates"][0])]


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


def test_file_whose_split_nothing_says_is_refused(dump: Dump) -> None:
    dump.add("a/0.json", [make_task("pie")])
    with pytest.raises(
        DatasetError, match=r"split: expected .*0\.json in a folder named like a split .*; name the split"
    ):
        dump.convert()


@pytest.mark.parametrize("split", ["all", "", "tests"])
def test_unknown_split_is_refused(dump: Dump, split: str) -> None:
    with pytest.raises(DatasetError, match="split: expected one of train"):
        dump.convert(split)


def test_folder_without_task_files_is_refused(dump: Dump) -> None:
    dump.tasks.mkdir()
    with pytest.raises(DatasetError, match=r"tasks: expected \.json files in .*, got none"):
        dump.convert()


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


def no_folder(dump: Dump) -> None:
    (dump.screens / "pie" / "processed" / "screenshot.json").unlink()


def one_screen_less(dump: Dump) -> None:
    dump.screen("pie", [dump.entry("pie-0", 0)])


def null_screen(dump: Dump) -> None:
    dump.screen("pie", [dump.entry("pie-0", 0), {"action_uid": "pie-1", "before": None}])


def no_base64(dump: Dump) -> None:
    dump.screen("pie", [dump.entry("pie-0", 0), {"action_uid": "pie-1", "before": {"screenshot": "no: base64"}}])


def broken_screens(dump: Dump) -> None:
    path = dump.screen("pie", [dump.entry("pie-0", 0), dump.entry("pie-1", 1)])
    path.write_text(path.read_text()[:-20])


@pytest.mark.parametrize(
    ("harm", "names", "pictures"),
    [
        (no_folder, ["no_dump_folder"], [False, False]),
        (one_screen_less, ["no_screenshot"], [True, False]),
        (null_screen, ["no_screenshot"], [True, False]),
        (no_base64, ["bad_base64"], [True, False]),
        (broken_screens, ["broken_file", "no_screenshot"], [True, False]),
    ],
)
def test_missing_picture_is_a_named_problem_and_a_row_without_it(
    dump: Dump, harm: Callable[[Dump], None], names: list[str], pictures: list[bool]
) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    harm(dump)
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


def test_id_that_leads_out_of_the_dump_is_not_followed(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("../../elsewhere", 1)])
    dump.convert()
    assert dump.names == ["no_dump_folder"]


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
        (b'["\xff"]', 2, 0),
        (b"[1] x", 4, 1),
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


def test_interrupted_conversion_leaves_no_file_and_keeps_the_last_one(dump: Dump) -> None:
    dump.add("train/train_0.json", [make_task("pie")])
    (report,) = dump.convert()
    assert report.path is not None
    before = report.path.read_bytes()

    def interrupted() -> Iterator[Json]:
        yield next(iter(pq_rows(report.path)))
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


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak is read from /proc, which is not here")
def test_memory_does_not_grow_with_the_dump(tmp_path: Path) -> None:
    small, large = (peak_megabytes(tmp_path / str(n), n_tasks=n) for n in (8, 80))
    assert large - small < 8


def pq_rows(path: Path | None) -> list[Json]:
    import pyarrow.parquet as pq

    return list(pq.read_table(path).to_pylist())


def peak_megabytes(folder: Path, n_tasks: int) -> float:
    """The most memory that a process of its own takes for a dump of some 1.2 MB a task.

    From /proc, as `getrusage` gives a new process the peak of the one that started it.
    """
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
    code = (
        "import sys; from pathlib import Path; from seeact_offline.dataset.raw_dump import convert;"
        "report, = convert(*map(Path, sys.argv[1:4]), group_bytes=1 << 20); assert report.pictures == report.rows > 0;"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    words = [sys.executable, "-c", code, str(dump.screens), str(dump.tasks), str(dump.out)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    return int(done.stdout) / 1024
