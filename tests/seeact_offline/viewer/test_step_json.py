"""A step as JSON: what was really sent, what the row holds, and a sentence for each part that cannot be read."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import seeact_offline as so
from seeact_offline.dataset import open_split
from seeact_offline.dataset.readers import ParquetFiles
from seeact_offline.files.whole import Journal
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Completion, Request, StepKey, Usage
from seeact_offline.viewer.run_data import open_data
from seeact_offline.viewer.site import Site
from seeact_offline.viewer.site_files import page_parts
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.viewer.conftest import read_json

Change = Callable[[dict[str, Any]], None]


def step_of(site: Site, place: int = 0) -> dict[str, Any]:
    """The step at this place of the list."""
    return read_json(site, f"step/{read_json(site, 'index.json')['keys'][place]}.json")


def size_of(site: Site, name: str) -> tuple[int, int]:
    found = site.get(name)
    assert found is not None
    return Image.open(io.BytesIO(found.content)).size


@pytest.fixture
def changed(sample_run: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """`changed(change)`: the run with another manifest."""

    def copy(change: Change = lambda manifest: None) -> Path:
        run = Path(shutil.copytree(sample_run, tmp_path / "run"))
        manifest = json.loads((run / "manifest.json").read_text())
        change(manifest)
        (run / "manifest.json").write_text(json.dumps(manifest))
        return run

    return copy


class Listening:
    """Takes the first option, and remembers what it was sent."""

    def __init__(self) -> None:
        self.heard: dict[tuple[str, int, int], Request] = {}
        self.say: Callable[[Request], str] = lambda request: "ELEMENT: A\nACTION: CLICK\nVALUE: None"

    async def complete(self, request: Request) -> Completion:
        self.heard[request.key.action_uid, request.group, request.turn] = request
        return Completion(self.say(request), Usage(calls=1))

    async def aclose(self) -> None:
        pass


@pytest.mark.slow
def test_a_web_agents_dialogue_is_the_one_that_was_held(tmp_path: Path) -> None:
    """Marked windows, lists, corrections and scrolls; earlier steps are told as they were."""
    model = Listening()
    said = (
        "Click [1]",
        "Thought: a\nAction: Click [9999]",
        "Thought: a\nAction: Scroll [WINDOW]; [down]",
        "Thought: a\nAction: Click [0]",
    )
    model.say = lambda request: said[request.group]
    task = "60f6e6d3-9bf6-5b98-a75c-951ec5e95c87"
    run = so.evaluate(tasks=[task], agent="webvoyager", model=model, ask_equal=True, out=tmp_path / "run")
    site = Site([run.path])
    for place, n_told in ((0, 0), (1, 2)):
        step = step_of(site, place)
        groups = step["runs"][0]["groups"]
        assert (step["problems"], len(groups[0]["examples"])) == ([], n_told)
        assert [group["act"] for group in groups] == ["", "Click [9999]", "Scroll [WINDOW]; [down]", "Click [0]"]
        assert [group["window"][1] for group in groups[:3]] == [0, 0, 0] < [groups[3]["window"][1]]
        for group in groups:
            *before, last = model.heard[step["action_uid"], group["group"], 1].messages[1:]
            assert group["prompts"] == [last.text]
            assert [(one["role"], one["text"]) for one in group["examples"]] == [(one.role, one.text) for one in before]
            shown = [*(one["image"] for one in group["examples"]), *group["images"]]
            assert [name is None for name in shown] == [one.picture is None for one in (*before, last)]
    assert size_of(site, groups[3]["images"][0]) == model.heard[step["action_uid"], 3, 1].messages[-1].picture.size  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("grounding", ["choice", "annotation", "attributes", "pixel", "mindact"])
def test_prompts_and_pictures_are_those_that_were_sent(grounding: str, tmp_path: Path) -> None:
    """The model itself wrote down what it got."""
    model = Listening()
    run = so.evaluate(limit=1, grounding=grounding, model=model, ranker="bm25", ask_equal=True, out=tmp_path / "run")
    site = Site([run.path])
    steps = [step_of(site, place) for place in range(3)]
    n_checked = 0
    for step in steps:
        for group in step["runs"][0]["groups"]:
            for turn, prompt in enumerate(group["prompts"] or [], 1):
                request = model.heard[step["action_uid"], group["group"], turn]
                assert prompt == request.messages[-1].text
                assert group["system"] == next((m.text for m in request.messages if m.role == "system"), None)
                picture, shown = request.messages[-1].picture, group["images"][turn - 1]
                assert (picture is None) == (shown is None)
                assert picture is None or size_of(site, shown) == picture.size  # type: ignore[attr-defined]
                n_checked += 1
    heard = sum(uid in {step["action_uid"] for step in steps} for uid, _, _ in model.heard)
    assert n_checked >= heard / 2 > 0


def test_a_final_round_is_rebuilt_too_and_what_is_offered_has_a_label_each(sample_site: Site) -> None:
    groups = [group for place in range(5) for group in step_of(sample_site, place)["runs"][0]["groups"]]
    final = [group for group in groups if group["final"]]
    assert final
    assert all(group["prompts"] for group in final)
    assert all(len(group["labels"]) == len(group["offered"]) for group in groups)


def test_the_right_elements_and_the_choices_stand_first_and_each_has_its_place_in_words(sample_site: Site) -> None:
    steps = [step_of(sample_site, place) for place in range(5)]
    step = next(one for one in steps if one["runs"][0]["outcome"] == "wrong_element")
    ids = [element["id"] for element in step["elements"]]
    n = len(step["truth"]["positives"])
    assert sorted(ids[:n]) == step["truth"]["positives"]
    assert ids[n] == step["runs"][0]["predicted"]["element_id"]
    assert len(set(ids)) == len(ids)
    for element in step["elements"]:
        assert element["path"].partition(" > ")[0] == "html"
        assert element["path"].rpartition(" > ")[2].partition(":")[0] == element["tag"]


def test_the_page_is_the_rows_and_its_parts_make_the_whole(sample_site: Site) -> None:
    step = step_of(sample_site)
    row = next(one for one in so.load_steps("sample", "cross_task") if one.action_uid == step["action_uid"])
    assert row.screenshot is not None
    picture, parts = step["picture"], step["picture"]["parts"]
    assert ((picture["width"], picture["height"]), step["task"]) == (PagePicture(row.screenshot).size, row.task)
    assert [part["top"] for part in parts] == [0, *(part["top"] + part["height"] for part in parts)][:-1]
    assert sum(part["height"] for part in parts) == picture["height"]
    assert [size_of(sample_site, part["src"]) for part in parts] == [(picture["width"], p["height"]) for p in parts]


@pytest.mark.parametrize("height", [1, 2048, 2049, 7412, 40_000])
def test_no_part_is_taller_than_the_format_takes(height: int) -> None:
    boxes = page_parts((1280, height))
    assert [box.y0 for box in boxes] == [0, *(box.y1 for box in boxes)][:-1]
    assert max(box.y1 - box.y0 for box in boxes) <= 2048
    assert boxes[-1].y1 == height


# --- what cannot be read ---


def moved(manifest: dict[str, Any]) -> None:
    manifest["settings"]["dataset"] = "/no/such/folder"


def test_a_data_set_that_has_moved_leaves_all_but_pages(sample_run: Path, changed: Callable[[Change], Path]) -> None:
    run = changed(moved)
    here, there = step_of(Site([sample_run])), step_of(Site([run]))
    assert "'/no/such/folder': there is no such folder" in there["problems"][0]
    assert (there["picture"], there["history"]) == (None, [])
    for name in ("task", "website", "index", "n_actions", "truth"):
        assert there[name] == here[name]
    ours, theirs = (step["runs"][0] for step in (here, there))
    for name in ours.keys() - {"groups"}:
        assert ours[name] == theirs[name]
    for mine, other in zip(ours["groups"], theirs["groups"], strict=True):
        assert (other["replies"], other["prompts"]) == (mine["replies"], None)
    index = read_json(Site([run]), "index.json")
    assert "cannot be shown" in index["runs"][0]["problems"][0]
    assert index["tasks"] == read_json(Site([sample_run]), "index.json")["tasks"]
    assert step_of(Site([run], dataset="sample"))["picture"] is not None


def test_other_rows_are_not_taken_for_the_runs(changed: Callable[[Change], Path]) -> None:
    run = changed(lambda manifest: manifest["settings"].update(dataset_fingerprint="0" * 16))
    step = step_of(Site([run]))
    assert step["picture"] is None
    assert "other rows" in step["problems"][0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda manifest: manifest["identity"].update(prompts_digest="0" * 64), "prompts_digest"),
        (lambda manifest: manifest["packages"].update({"seeact-offline": "0.0.1"}), "version 0.0.1"),
        (lambda manifest: manifest["identity"].update(imported="uground"), "imported"),
    ],
    ids=["other prompts", "other version", "imported"],
)
def test_a_prompt_that_may_not_have_been_sent_is_not_shown(
    change: Change, why: str, changed: Callable[[Change], Path]
) -> None:
    step = step_of(Site([changed(change)]))
    groups = step["runs"][0]["groups"]
    assert {(group["prompts"], group["system"]) for group in groups} == {(None, None)}
    assert {image for group in groups for image in group["images"]} == {None}
    assert all(group["crop"] is not None and group["labels"] for group in groups)
    assert any(why in problem for problem in step["problems"])


def test_a_group_that_offered_something_else_is_not_rebuilt(changed: Callable[..., Path]) -> None:
    run = changed()
    lines = [json.loads(line.text) for line in Journal(run / "predictions.jsonl").lines()]
    lines[0]["groups"][1]["offered"].reverse()
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    step = step_of(Site([run]))
    assert [group["prompts"] is None for group in step["runs"][0]["groups"]][:3] == [False, True, False]
    assert any("group 2 cannot be put together again" in problem for problem in step["problems"])


def test_a_run_without_predictions_still_shows_its_scores(sample_run: Path, changed: Callable[..., Path]) -> None:
    run = changed()
    (run / "predictions.jsonl").unlink()
    step, whole = step_of(Site([run])), step_of(Site([sample_run]))
    shown = step["runs"][0]
    assert (shown["ran"], shown["groups"], shown["outcome"]) == (False, [], whole["runs"][0]["outcome"])
    assert shown["predicted"] == {**whole["runs"][0]["predicted"], "point": None}
    assert any("does not keep the model's replies" in problem for problem in step["problems"])


def test_a_faulty_row_is_shown_with_its_fault(tmp_path: Path) -> None:
    rows = list(synthetic_rows(1, 2, 12, seed=1))
    rows[0]["cleaned_html"] = "<html"
    rows[1]["screenshot"] = {"bytes": b"no picture", "path": None}
    write_parquet(rows, tmp_path / "data" / "test_task-00000-of-00001.parquet")
    site = Site([so.evaluate(dataset=str(tmp_path), ranker="bm25", out=tmp_path / "run").path])
    steps = [step_of(site, place) for place in range(2)]
    assert (steps[0]["runs"][0]["failure"], steps[0]["picture"] is not None) == ("bad_html", True)
    assert (steps[1]["picture"], bool(steps[1]["elements"][0]["path"])) == (None, True)


@pytest.mark.parametrize("kept", [True, False])
def test_scores_are_those_that_the_ranker_left_else_there_are_ranks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setenv("SEEACT_CACHE", str(tmp_path / "cache"))
    # not the sample, whose scores are shipped
    write_parquet(list(synthetic_rows(1, 2, 24, seed=1)), tmp_path / "data" / "test_task-00000-of-00001.parquet")
    run = so.evaluate(dataset=str(tmp_path), ranker="bm25", out=tmp_path / "run").path
    monkeypatch.setenv("SEEACT_CACHE", str(tmp_path / ("cache" if kept else "another")))
    elements = step_of(Site([run]))["elements"]
    scores = [one["score"] for one in elements]
    ranked = sorted((one for one in elements if one["rank"] is not None), key=lambda one: one["rank"])
    assert len(ranked) > 10
    if kept:
        assert [one["score"] for one in ranked] == sorted(scores, reverse=True)[: len(ranked)]
    else:
        assert set(scores) == {None}


# --- runs side by side ---


def test_a_run_without_the_step_is_null(sample_run: Path, other_run: Path) -> None:
    site = Site([sample_run, other_run])
    found = [[run is None for run in step_of(site, place)["runs"]] for place in (0, -1)]
    assert found == [[False, False], [False, True]]


def test_a_picture_of_both_runs_is_there_once(sample_run: Path, changed: Callable[..., Path]) -> None:
    ours, theirs = step_of(Site([sample_run, changed()]))["runs"]
    assert [group["images"] for group in ours["groups"]] == [group["images"] for group in theirs["groups"]]


# --- one row of many ---


def test_only_one_row_group_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "data" / "test_task-00000-of-00001.parquet"
    write_parquet(list(synthetic_rows(6, 2, 12, seed=1)), path)
    pq.write_table(pq.read_table(path), path, row_group_size=3)
    split = open_split(str(tmp_path), "cross_task")
    settings = {"dataset": str(tmp_path), "split": "cross_task", "dataset_fingerprint": split.fingerprint}
    data, wanted = open_data(settings), {step.key: step for step in split.steps()}
    read: list[list[int]] = []
    batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda file, **how: read.append(how["row_groups"]) or batches(file, **how)
    )
    found = {key: data.step(key) for key in wanted}
    assert all(step is not None and step.cleaned_html == wanted[key].cleaned_html for key, step in found.items())
    # a column at a time
    (group,) = {len(groups) for groups in read}
    shard, _ = next(iter(data.places.values()))
    assert (group, len(read)) == (1, len(shard.columns) * len(wanted))
    assert isinstance(split.sources[0], ParquetFiles)
    assert data.step(StepKey("no", "such")) is None


def test_replies_of_all_runs_are_those_of_the_steps(sample_run: Path, other_run: Path) -> None:
    site = Site([sample_run, other_run])
    replies = read_json(site, "replies.json")
    assert list(replies) == read_json(site, "index.json")["keys"]
    for place in (0, -1):
        step = step_of(site, place)
        said = ["\n".join(text for group in run["groups"] for text in group["replies"]) if run else "" for run in step["runs"]]  # fmt: skip
        assert replies[step["key"]] == said
