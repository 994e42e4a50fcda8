"""SeeClick's and ShowUI's Mind2Web as data sets: pictures with a box each, and nothing else of a page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.dataset import open_split
from seeact_offline.ranking.stage import RankConfig, rank
from seeact_offline.records import Box, InputError
from tests.recut_data import IMAGES, SIZE, TASKS, action, task, write_seeclick, write_showui

WRITERS = {"seeclick": write_seeclick, "showui": write_showui}


@pytest.mark.parametrize("layout", WRITERS)
def test_a_step_is_its_picture_and_its_box(layout: str, tmp_path: Path) -> None:
    steps = list(so.load_steps(WRITERS[layout](tmp_path), "cross_website"))
    assert [str(step.key) for step in steps] == ["a-1_u-0", "a-1_u-1", "a-1_u-2", "b-2_u-0", "b-2_u-3"]
    typed = steps[1]
    assert (typed.task, typed.website, typed.domain) == ("Buy a-1", "shop", "Shopping")
    assert typed.history == ("[button]  Thing 0 -> CLICK",)
    assert (typed.index, typed.n_actions, typed.action_text) == (1, 3, "[button]  Thing 1 -> TYPE")
    assert (typed.operation.op, typed.operation.value) == ("TYPE", "New York")
    assert typed.truth.boxes == (Box(200, 100, 60, 24),)
    assert [step.operation.original_op for step in steps[3:]] == ["HOVER", "ENTER"]
    assert not typed.has_page
    assert not any(step.faults for step in steps)


def moved(folder: Path, before: str, after: str) -> Path:
    (folder / after).parent.mkdir(parents=True, exist_ok=True)
    (folder / before).rename(folder / after)
    return folder


PLACES: dict[str, Callable[[Path], Path]] = {
    "files beside the pictures": write_seeclick,
    "the file itself": lambda at: write_seeclick(at) / "mind2web_data_test_website.json",
    "files in data": lambda at: moved(write_seeclick(at), "mind2web_data_test_website.json", "data/mind2web_data_test_website.json"),
    "an archive in its own folder": lambda at: moved(moved(write_seeclick(at), IMAGES, "x"), "x", f"mind2web_images/{IMAGES}"),
    "the readme's name": lambda at: moved(write_seeclick(at), IMAGES, "mind2web_imgs"),
    "metadata and images": write_showui,
    "the folder metadata": lambda at: write_showui(at) / "metadata",
    "one split's metadata": lambda at: write_showui(at, name="test_website"),
    "metadata of all splits": lambda at: write_showui(at) / "metadata" / "hf_test_full.json",
}  # fmt: skip


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
def test_file_and_pictures_are_found(make: Callable[[Path], Path], tmp_path: Path) -> None:
    steps = list(so.load_steps(make(tmp_path / "set"), "cross_website"))
    assert [step.screenshot is not None and len(step.screenshot.read()) > 0 for step in steps] == [True] * 5


def test_a_file_of_all_splits_has_the_steps_of_the_one_that_is_asked_for(tmp_path: Path) -> None:
    folder = write_showui(tmp_path)
    file = folder / "metadata" / "hf_test_full.json"
    steps = json.loads(file.read_text())
    file.write_text(json.dumps([*steps[:3], *({**step, "split": "test_task"} for step in steps[3:])]))
    counts = {split: len(open_split(folder, split).keys) for split in ("cross_website", "cross_task", "all")}
    assert counts == {"cross_website": 3, "cross_task": 2, "all": 5}
    assert len(open_split(file, "all").keys) == 5


def test_earlier_actions_are_those_that_the_file_keeps(tmp_path: Path) -> None:
    tasks = [task("a-1", action("u-0", "CLICK"), action("lost-1", "CLICK"), action("u-2", "CLICK"))]
    last = [list(so.load_steps(write(tmp_path / name, tasks), "cross_website"))[-1] for name, write in WRITERS.items()]
    assert [len(step.history) for step in last] == [2, 1]


def test_a_file_without_texts_of_actions_tells_operations(tmp_path: Path) -> None:
    tasks = [{name: value for name, value in TASKS[0].items() if name != "action_reprs"}]
    *_, last = so.load_steps(write_seeclick(tmp_path, tasks), "cross_website")
    assert last.history == ("CLICK", "TYPE: New York")


def test_opening_and_reading_steps_opens_no_picture(tmp_path: Path) -> None:
    tasks = [task(f"t-{n}", action("u-0", "CLICK"), action("u-1", "CLICK")) for n in range(500)]
    (tmp_path / IMAGES).mkdir()
    (tmp_path / "mind2web_data_test_website.json").write_text(json.dumps(tasks))
    split = open_split(tmp_path, "cross_website", limit=400)
    assert len(list(split.steps())) == len(split.keys) == 800


BROKEN = {
    "no box": (action("u-1", "CLICK", box=None), "bad_box"),
    "a box without a side": (action("u-1", "CLICK", box={"x": 1, "y": 2, "width": 3}), "bad_box"),
    "a box of texts": (action("u-1", "CLICK", box={"x": "1", "y": "2", "width": "3", "height": "4"}), "bad_box"),
    "an endless box": (action("u-1", "CLICK", box=(0, 0, float("inf"), 3)), "bad_box"),
    "no picture": (action("lost-1", "CLICK"), "bad_screenshot"),
    "no operation": ({**action("u-1", "CLICK"), "operation": None}, "bad_operation"),
    "no id": ({**action("u-1", "CLICK"), "action_uid": ""}, "missing_field"),
}


@pytest.mark.parametrize(("broken", "failure"), BROKEN.values(), ids=BROKEN)
def test_a_broken_action_is_a_named_failure_that_is_left_out_of_figures(
    broken: dict[str, Any], failure: str, tmp_path: Path
) -> None:
    tasks = [task("a-1", action("u-0", "CLICK"), broken, texts=["one", "two"])]
    run = so.evaluate(
        dataset=write_seeclick(tmp_path, tasks), split="cross_website", agent="seeclick", model="builtin/oracle", out=tmp_path / "run"
    )  # fmt: skip
    assert run.results["failures"] == {failure: 1}
    # an action with a box counts, whatever else it lacks
    assert run.results["n_steps"] == 1 + (failure in ("bad_operation", "missing_field"))


def written(value: Any, name: str = "mind2web_data_test_website.json") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / IMAGES).mkdir(parents=True)
        (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))

    return write


def both(folder: Path) -> None:
    write_seeclick(folder)
    (folder / "hf_test_website.json").write_text("[]")


UNUSABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no pictures": (lambda at: shutil.rmtree(write_seeclick(at) / IMAGES), "needs a folder of pictures, ming2web_images"),
    "both layouts": (both, "test_website as mind2web_data_test_website.json and as hf_test_website.json; name one file"),
    "another split": (lambda at: write_seeclick(at, split="test_task"), "only cross_task"),
    "no list": (written({}), "which is no list of tasks or steps"),
    "nothing": (written([]), "which is no list of tasks or steps"),
    "another JSON": (written([{"id": 1, "conversations": []}]), "whose first entry has id, conversations"),
    "a torn file": (written('[{"actions": ['), "expected a JSON object"),
    "a task without actions": (written([TASKS[0], {"annotation_id": "x"}]), "whose entry 1 has no actions"),
    "a step without content": (written([{"step": None}], "hf_test_website.json"), "whose entry 0 has no step"),
    "no row of the split": (written([{"step": {}, "split": "test_task"}], "hf_test_website.json"), "rows of cross_website"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_another_layout_is_refused_in_one_sentence(make: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    make(tmp_path / "set")
    with pytest.raises(InputError, match=message) as raised:
        _ = open_split(tmp_path / "set", "cross_website").keys
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("layout", WRITERS)
@pytest.mark.parametrize("agent", ["seeclick", "showui", "qwen3-vl", "uground", "anthropic"])
def test_the_oracle_reaches_the_ceiling(agent: str, layout: str, tmp_path: Path) -> None:
    run = so.evaluate(
        dataset=WRITERS[layout](tmp_path / "set"), split="cross_website", agent=agent, model="builtin/oracle", out=tmp_path / "run"
    )  # fmt: skip
    assert run.results["element_accuracy"]["micro"] == run.results["ceiling"]["micro"] == 1.0
    assert all(0 <= one.point[0] <= SIZE[0] for one in run.predictions() if one.point)
    assert run.results["failures"] == {}


def test_earlier_pictures_can_be_told(tmp_path: Path) -> None:
    options = {"split": "cross_website", "agent": "qwen3-vl", "history_pictures": 2, "model": "builtin/oracle"}
    run = so.evaluate(dataset=write_seeclick(tmp_path / "set"), out=tmp_path / "run", **options)
    assert run.results["element_accuracy"]["micro"] == 1.0


@pytest.mark.parametrize(
    "options",
    [
        *({"grounding": name} for name in ("choice", "annotation", "attributes", "mindact")),
        {"agent": "webvoyager"},
        {"grounding": "oracle", "oracle_file": "answers.jsonl"},
    ],
    ids=str,
)
def test_what_needs_a_page_is_refused_by_name(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answers.jsonl").write_text("")
    name = options.get("agent") or options["grounding"]
    with pytest.raises(InputError, match=rf"{name} needs HTML and candidates, .* use an agent that sees the picture"):
        so.evaluate(dataset=write_seeclick(tmp_path / "set"), split="cross_website", model="builtin/oracle", **options)
    assert not Path("runs").exists()


def test_a_ranker_has_nothing_to_rank(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a ranker needs HTML and candidates"):
        rank(RankConfig(dataset=write_seeclick(tmp_path), split="cross_website", ranker="bm25"), tmp_path / "s.parquet")


@pytest.mark.parametrize("options", [{"grounding": "pixel"}, {"ungrounded": True}], ids=str)
def test_what_asks_about_a_picture_alone_is_asked_unless_there_is_none(options: dict[str, Any], tmp_path: Path) -> None:
    data = {"dataset": write_seeclick(tmp_path / "set"), "split": "cross_website", "model": "builtin/oracle"}
    run = so.evaluate(out=tmp_path / "run", **data, **options)
    assert run.results["operation_f1"]["micro"] == 1.0
    with pytest.raises(InputError, match="no_image"):
        so.evaluate(out=tmp_path / "blind", no_image=True, **data, **options)
