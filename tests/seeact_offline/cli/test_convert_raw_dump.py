"""`convert-raw-dump` as the shell would run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seeact_offline.dataset import load_steps
from tests.seeact_offline.conftest import Cli
from tests.seeact_offline.dataset.test_raw_dump import Dump, make_task


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    dump = Dump(tmp_path)
    dump.add("train/train_0.json", [make_task("pie")])
    return dump


def words(dump: Dump) -> list[str]:
    return ["convert-raw-dump", str(dump.screens), str(dump.tasks), "--out", str(dump.out)]


def test_complete_dump_is_converted_with_status_0(cli: Cli, dump: Dump) -> None:
    outcome = cli(*words(dump))
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines()[2].startswith("| train | 1     | 2    | 2               | 0        |")
    assert len(list(load_steps(dump.out, "train"))) == 2


def test_missing_parts_are_named_counted_and_end_in_status_1(cli: Cli, dump: Dump) -> None:
    dump.screen("pie", [])
    outcome = cli(*words(dump))
    assert outcome.status == 1
    assert outcome.err.splitlines() == [
        "no_screenshot: task pie, action pie-0",
        "no_screenshot: task pie, action pie-1",
    ]
    assert "| train | no_screenshot | 2     |" in outcome.out


def test_many_problems_of_a_name_are_told_in_part(cli: Cli, dump: Dump) -> None:
    (dump.tasks / "train" / "train_0.json").write_text(json.dumps([make_task("pie", 50)]))
    outcome = cli(*words(dump))
    assert len(outcome.err.splitlines()) == 21
    assert "| train | no_screenshot | 48    |" in outcome.out


def test_a_task_that_cannot_be_written_is_named_and_ends_in_status_1(cli: Cli, dump: Dump) -> None:
    path = dump.tasks / "train" / "train_0.json"
    path.write_text(path.read_text()[:-1] + ', {"annotation_id": "bun", "actions": [], "website": "\\ud800"}]')
    outcome = cli(*words(dump))
    assert (outcome.status, outcome.err) == (1, f"bad_task: {path}, entry 1, task bun: half a character: \\ud800\n")
    assert len(list(load_steps(dump.out, "train"))) == 2


def test_split_can_be_named(cli: Cli, dump: Dump) -> None:
    assert cli(*words(dump), "--split", "test_task").status == 0
    assert len(list(load_steps(dump.out, "cross_task"))) == 2


@pytest.mark.parametrize(
    ("place", "word", "sentence"),
    [
        (1, "nowhere", "DUMP_DIR: expected a folder, got 'nowhere'"),
        (2, "nowhere", "TASKS_DIR: expected a folder, got 'nowhere'"),
        (5, "--split=tests", "--split: expected one of train"),
    ],
)
def test_what_cannot_be_converted_is_one_sentence(cli: Cli, dump: Dump, place: int, word: str, sentence: str) -> None:
    named = words(dump)
    named[place : place + 1] = [word]
    assert sentence in cli(*named).error
