"""`record` as the shell would run it, as far as no browser is needed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import ClassVar

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.writing import ElementRecord, StepRecord
from seeact_offline.recorder import RecordFailed, RecordOptions, load_script
from seeact_offline.recorder.recording import PARTIAL
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import Box, Operation, StepError
from seeact_offline.sample import SITES
from tests.seeact_offline.conftest import Cli

SCRIPT = SITES / "brimlode" / "tasks.yaml"


class Recorder:
    """Opens no browser; every task fails."""

    def __init__(self, options: RecordOptions) -> None:
        pass

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def record(self, task: TaskScript) -> list[StepRecord]:
        raise StepError("nothing_to_click", task.task)


class ScriptedRecorder(Recorder):
    """Records an empty page for each action, and does otherwise for the tasks of `ends`."""

    ends: ClassVar[dict[str, BaseException]] = {}
    asked: ClassVar[list[str]] = []
    refused = frozenset({"https://elsewhere.example"})

    def record(self, task: TaskScript) -> list[StepRecord]:
        self.asked.append(task.task)
        if task.task in self.ends:
            raise self.ends[task.task]
        common = (task.annotation_id, task.task, task.website, task.domain, task.subdomain)
        return [
            step_of(*common, task.action_uid(index), index, is_positive=action.frame is None)
            for index, action in enumerate(task.actions)
        ]


def step_of(
    annotation_id: str,
    task: str,
    website: str,
    domain: str,
    subdomain: str,
    uid: str,
    index: int,
    is_positive: bool = True,
) -> StepRecord:
    return StepRecord(
        annotation_id, uid, task, website, domain, subdomain, index, ("[a]  Go -> CLICK",) * 9, Operation("CLICK"), "\ud83d\ude00",
        "<html/>", (ElementRecord("1", "a", Box(0, 0, 1, 1), {}, is_positive),), b"\x00\xff picture" * (index + 1),
    )  # fmt: skip


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> type[ScriptedRecorder]:
    class Fresh(ScriptedRecorder):
        ends: ClassVar[dict[str, BaseException]] = {}
        asked: ClassVar[list[str]] = []

    monkeypatch.setattr("seeact_offline.cli.record.Recorder", Fresh)
    return Fresh


def write_tasks(folder: Path, *names: str, **changes: object) -> Path:
    tasks = [
        {"task": name, "split": split, "steps": [{"op": "CLICK", "selector": "a"}] * 2, **changes}
        for name, split in zip(names, ["train", "test_website"] * len(names), strict=False)
    ]
    path = folder / "script.json"
    path.write_text(json.dumps({"website": "w", "start": "http://localhost:1", "tasks": tasks}))
    return path


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("end", [KeyboardInterrupt(), StepError("record_failed", "hung"), RuntimeError("crash")])
def test_a_recording_that_stopped_is_resumed_and_ends_in_the_same_bytes(
    cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder], end: BaseException
) -> None:
    script, whole, out = write_tasks(tmp_path, "one", "two", "three"), tmp_path / "whole", tmp_path / "out"
    assert cli("record", script, "--out", whole).status == 0
    browser.ends["two"] = end
    with contextlib.suppress(RuntimeError, KeyboardInterrupt):
        cli("record", script, "--out", out)
    assert (out / PARTIAL).read_bytes().count(b"\n") == (2 if isinstance(end, StepError) else 1)
    browser.ends.clear()
    browser.asked.clear()
    outcome = cli("record", script, "--out", out)
    assert (outcome.status, "1/3 recorded before: one" in outcome.err) == (0, True)
    assert browser.asked == (["two"] if isinstance(end, StepError) else ["two", "three"])
    assert files(out) == files(whole)


def test_what_was_recorded_is_a_data_set_while_a_task_still_fails(
    cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder]
) -> None:
    browser.ends["two"] = StepError("record_failed", "hung")
    outcome = cli("record", write_tasks(tmp_path, "one", "two", "three"), "--out", tmp_path / "out")
    assert (outcome.status, outcome.err.splitlines()[2]) == (1, "2/3 left out: hung")
    steps = list(load_steps(tmp_path / "out", "train"))
    assert [(step.task, step.screenshot.read()) for step in steps if step.screenshot] == [
        (task, b"\x00\xff picture" * n) for task in ("one", "three") for n in (1, 2)
    ]


def test_steps_whose_rows_have_no_right_element_are_named(
    cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder]
) -> None:
    steps = [{"op": "CLICK", "selector": "a"}, {"op": "CLICK", "selector": "b", "frame": "iframe"}] * 2
    outcome = cli("record", write_tasks(tmp_path, "one", steps=steps), "--out", tmp_path / "out")
    named = "rows without a right element, as the cleaned page lacks it: step 2, inside a frame; step 4, inside a frame"
    assert named in outcome.err.splitlines()


def test_the_good_steps_of_a_task_are_kept_until_it_is_recorded_whole(
    cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder]
) -> None:
    script, out = write_tasks(tmp_path, "one", "two"), tmp_path / "out"
    begun = step_of(load_script(script, "train")[1].annotation_id, "two", "w", "", "", "u", 0)
    browser.ends["two"] = RecordFailed("step 2 of 2: no such button", [begun])
    outcome = cli("record", script, "--out", out)
    assert outcome.status == 1
    assert "2/2 1 step before it kept: step 2 of 2: no such button" in outcome.err
    assert [step.task for step in load_steps(out, "cross_website")] == ["two"]
    browser.ends.clear()
    assert cli("record", script, "--out", out).status == 0
    assert [step.task for step in load_steps(out, "cross_website")] == ["two", "two"]


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({}, []),
        ({"start": "http://localhost:2"}, ["one", "two", "three"]),
        ({"steps": [{"op": "CLICK", "selector": "b"}]}, None),
    ],
)
def test_a_task_or_an_option_that_changed_is_recorded_anew(
    cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder], change: dict[str, object], asked: list[str] | None
) -> None:
    browser.ends["three"] = StepError("record_failed", "hung")
    cli("record", write_tasks(tmp_path, "one", "two", "three"), "--out", tmp_path / "out")
    browser.asked.clear()
    cli("record", write_tasks(tmp_path, "one", "two", "three", **change), "--out", tmp_path / "out")
    assert browser.asked == ([*(asked or []), "three"] if asked == [] else ["one", "two", "three"])


def test_force_records_every_task_anew(cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder]) -> None:
    browser.ends["two"] = StepError("record_failed", "hung")
    script = write_tasks(tmp_path, "one", "two")
    cli("record", script, "--out", tmp_path / "out")
    browser.asked.clear()
    cli("record", script, "--out", tmp_path / "out", "--force")
    assert browser.asked == ["one", "two"]


def test_another_scripts_recording_is_not_resumed(cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder]) -> None:
    browser.ends["two"] = StepError("record_failed", "hung")
    out = tmp_path / "out"
    cli("record", write_tasks(tmp_path, "one", "two"), "--out", out)
    error = cli("record", write_tasks(tmp_path, "four"), "--out", out).error
    assert f"error: {out} holds another script's task" in error


def test_a_damaged_recording_is_refused_by_its_line(cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / PARTIAL).write_text('{"key": 1}\n[]\n')
    error = cli("record", write_tasks(tmp_path, "one"), "--out", out).error
    assert f"line 1 of {out / PARTIAL} is damaged; name a new folder, or use --force" in error


def test_an_origin_that_was_not_reached_is_told_with_the_option_that_allows_it(
    cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder]
) -> None:
    told = cli("record", write_tasks(tmp_path, "one", "two"), "--out", tmp_path / "out").err.splitlines()
    assert [line for line in told if "elsewhere" in line] == [
        "no requests were sent to https://elsewhere.example; --allow-origin https://elsewhere.example allows them"
    ]


@pytest.mark.parametrize("start", ["http://a,MAP * b", "http://", "ftp://host/x", "http://*"])
def test_a_start_that_names_no_origin_is_refused_before_a_browser_is_opened(
    cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder], start: str
) -> None:
    error = cli("record", write_tasks(tmp_path, "one", start=start), "--out", tmp_path / "out").error
    assert error == f"error: script: expected a URL of http or https with a host, got {start!r}"


@pytest.mark.parametrize("split", ["all", "tests"])
def test_a_split_that_a_task_cannot_belong_to_is_refused_before_a_browser_is_opened(
    cli: Cli, tmp_path: Path, browser: type[ScriptedRecorder], split: str
) -> None:
    error = cli("record", write_tasks(tmp_path, "one", split=split), "--out", tmp_path / "out").error
    assert (error.startswith("error: --split: expected one of train, "), browser.asked) == (True, [])


def test_a_folder_that_holds_something_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    error = cli("record", SCRIPT, "--out", tmp_path).error
    assert error == f"error: {tmp_path} holds something already; name a new folder, or use --force"


def test_force_records_into_it_all_the_same(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seeact_offline.cli.record.Recorder", Recorder)
    (tmp_path / "data").mkdir()
    outcome = cli("record", SCRIPT, "--out", tmp_path, "--force")
    assert (outcome.status, "left out" in outcome.err) == (1, True)
