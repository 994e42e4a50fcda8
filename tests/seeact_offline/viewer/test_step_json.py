"""One step as it is looked at: what was really sent, and what is said where something cannot be had."""

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
from seeact_offline.files.journal import Journal
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Request, Usage
from seeact_offline.viewer.run_data import open_data
from seeact_offline.viewer.site import Site
from seeact_offline.viewer.step_page import page_parts
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.viewer.conftest import read_json

Change = Callable[[dict[str, Any]], None]


def step_of(site: Site, place: int = 0) -> dict[str, Any]:
    """The step at this place of the list."""
    return read_json(site, f"step/{read_json(site, 'index.json')['keys'][place]}.json")


def copied(run: Path, to: Path, change: Change = lambda manifest: None) -> Path:
    """The run with another manifest."""
    shutil.copytree(run, to)
    manifest = json.loads((to / "manifest.json").read_text())
    change(manifest)
    (to / "manifest.json").write_text(json.dumps(manifest))
    return to


class Listening:
    """Takes the first option, and remembers what it was sent."""

    def __init__(self) -> None:
        self.heard: dict[tuple[str, int, int], Request] = {}

    async def complete(self, request: Request) -> Any:
        self.heard[request.key.action_uid, request.group, request.turn] = request
        from seeact_offline.records import Completion

        return Completion("ELEMENT: A\nACTION: CLICK\nVALUE: None", Usage(calls=1))

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("grounding", ["choice", "annotation", "attributes", "pixel", "mindact"])
def test_prompts_and_pictures_are_those_that_were_sent(grounding: str, tmp_path: Path) -> None:
    """The model itself wrote down what it got."""
    model = Listening()
    run = so.evaluate(limit=1, grounding=grounding, model=model, ranker="bm25", ask_equal=True, out=tmp_path / "run")
    site, n_checked = Site([run.path]), 0
    for key in read_json(site, "index.json")["keys"]:
        step = read_json(site, f"step/{key}.json")
        for group in step["runs"][0]["groups"]:
            for turn, prompt in enumerate(group["prompts"] or [], 1):
                request = model.heard[step["action_uid"], group["group"], turn]
                assert prompt == request.messages[-1].text
                assert group["system"] == next((m.text for m in request.messages if m.role == "system"), None)
                picture = request.messages[-1].picture
                shown = group["images"][turn - 1]
                assert (picture is None) == (shown is None)
                if picture is not None:
                    found = site.get(shown)
                    assert found is not None
                    assert Image.open(io.BytesIO(found.content)).size == picture.size  # type: ignore[attr-defined]
                n_checked += 1
    assert n_checked >= len(model.heard) / 2


def test_a_final_round_is_put_together_too(sample_site: Site) -> None:
    groups = [
        group for place in range(5) for group in step_of(sample_site, place)["runs"][0]["groups"] if group["final"]
    ]
    assert groups
    assert all(group["prompts"] for group in groups)


def test_what_is_offered_has_a_label_each(sample_site: Site) -> None:
    for group in step_of(sample_site)["runs"][0]["groups"]:
        assert len(group["labels"]) == len(group["offered"])


def test_the_right_ones_and_the_picks_stand_first(sample_site: Site) -> None:
    steps = [step_of(sample_site, place) for place in range(5)]
    step = next(one for one in steps if one["runs"][0]["outcome"] == "wrong_element")
    ids = [element["id"] for element in step["elements"]]
    n = len(step["truth"]["positives"])
    assert sorted(ids[:n]) == step["truth"]["positives"]
    assert ids[n] == step["runs"][0]["predicted"]["element_id"]
    assert len(set(ids)) == len(ids)


def test_every_candidate_has_its_place_in_words(sample_site: Site) -> None:
    for element in step_of(sample_site)["elements"]:
        assert element["path"].partition(" > ")[0] == "html"
        assert element["path"].rpartition(" > ")[2].partition(":")[0] == element["tag"]


def test_the_parts_of_a_picture_make_the_whole(sample_site: Site) -> None:
    picture = step_of(sample_site)["picture"]
    tops = [part["top"] for part in picture["parts"]]
    assert tops == [0, *(part["top"] + part["height"] for part in picture["parts"])][: len(tops)]
    assert sum(part["height"] for part in picture["parts"]) == picture["height"]
    sizes = [Image.open(io.BytesIO(sample_site.get(part["src"]).content)).size for part in picture["parts"]]  # type: ignore[union-attr]
    assert sizes == [(picture["width"], part["height"]) for part in picture["parts"]]


@pytest.mark.parametrize("height", [1, 2048, 2049, 7412, 40_000])
def test_no_part_is_taller_than_the_format_takes(height: int) -> None:
    boxes = page_parts((1280, height))
    assert [box.y0 for box in boxes] == [0, *(box.y1 for box in boxes)][:-1]
    assert max(box.y1 - box.y0 for box in boxes) <= 2048
    assert boxes[-1].y1 == height


# --- what cannot be had ---


def test_a_data_set_that_has_moved_leaves_all_but_pages(sample_run: Path, tmp_path: Path) -> None:
    moved = copied(
        sample_run, tmp_path / "run", lambda manifest: manifest["settings"].update(dataset="/no/such/folder")
    )
    here, there = step_of(Site([sample_run])), step_of(Site([moved]))
    assert "'/no/such/folder': there is no such folder" in there["problems"][0]
    assert (there["picture"], there["history"]) == (None, [])
    assert {name: there[name] for name in ("task", "website", "index", "n_actions")} == {
        name: here[name] for name in ("task", "website", "index", "n_actions")
    }
    ours, theirs = (step["runs"][0] for step in (here, there))
    assert {name: ours[name] for name in ours if name != "groups"} == {
        name: theirs[name] for name in theirs if name != "groups"
    }
    assert [group["replies"] for group in theirs["groups"]] == [group["replies"] for group in ours["groups"]]
    assert [group["prompts"] for group in theirs["groups"]] == [None] * len(theirs["groups"])
    assert there["truth"] == here["truth"]


def test_the_list_says_that_the_data_have_moved_and_names_the_tasks(sample_run: Path, tmp_path: Path) -> None:
    moved = copied(
        sample_run, tmp_path / "run", lambda manifest: manifest["settings"].update(dataset="/no/such/folder")
    )
    index = read_json(Site([moved]), "index.json")
    assert "cannot be shown" in index["runs"][0]["problems"][0]
    assert index["tasks"] == read_json(Site([sample_run]), "index.json")["tasks"]


def test_other_rows_are_not_taken_for_the_runs(sample_run: Path, tmp_path: Path) -> None:
    other = copied(
        sample_run, tmp_path / "run", lambda manifest: manifest["settings"].update(dataset_fingerprint="0" * 16)
    )
    step = step_of(Site([other]))
    assert step["picture"] is None
    assert "other rows" in step["problems"][0]


def test_where_the_data_are_now_can_be_said(sample_run: Path, tmp_path: Path) -> None:
    moved = copied(
        sample_run, tmp_path / "run", lambda manifest: manifest["settings"].update(dataset="/no/such/folder")
    )
    assert step_of(Site([moved], dataset="sample"))["picture"] is not None


def no_prompts(manifest: dict[str, Any]) -> None:
    manifest["identity"]["prompts_digest"] = "0" * 64


def old_version(manifest: dict[str, Any]) -> None:
    manifest["packages"]["seeact-offline"] = "0.0.1"


def imported(manifest: dict[str, Any]) -> None:
    manifest["identity"]["imported"] = "uground"


@pytest.mark.parametrize(
    ("change", "why"),
    [(no_prompts, "prompts_digest"), (old_version, "version 0.0.1"), (imported, "imported")],
)
def test_a_prompt_that_may_not_have_been_sent_is_not_shown(
    change: Change, why: str, sample_run: Path, tmp_path: Path
) -> None:
    step = step_of(Site([copied(sample_run, tmp_path / "run", change)]))
    groups = step["runs"][0]["groups"]
    assert {(group["prompts"], group["system"]) for group in groups} == {(None, None)}
    assert {image for group in groups for image in group["images"]} == {None}
    assert all(group["crop"] is not None for group in groups)
    assert any(why in problem for problem in step["problems"])


def test_a_group_that_offered_something_else_is_not_put_together(sample_run: Path, tmp_path: Path) -> None:
    run = copied(sample_run, tmp_path / "run")
    lines = [json.loads(line.text) for line in Journal(run / "predictions.jsonl").lines()]
    lines[0]["groups"][1]["offered"].reverse()
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    step = step_of(Site([run]))
    assert [group["prompts"] is None for group in step["runs"][0]["groups"]][:3] == [False, True, False]
    assert any("group 1 cannot be put together again" in problem for problem in step["problems"])


def test_a_run_without_predictions_still_shows_its_scores(sample_run: Path, tmp_path: Path) -> None:
    run = copied(sample_run, tmp_path / "run")
    (run / "predictions.jsonl").unlink()
    step, whole = step_of(Site([run])), step_of(Site([sample_run]))
    assert (step["runs"][0]["ran"], step["runs"][0]["groups"]) == (False, [])
    assert step["runs"][0]["predicted"] == {**whole["runs"][0]["predicted"], "point": None}
    assert step["runs"][0]["outcome"] is not None
    assert any("does not keep the model's replies" in problem for problem in step["problems"])


def test_a_faulty_row_is_shown_with_its_fault(tmp_path: Path) -> None:
    rows = list(synthetic_rows(1, 2, 12, seed=1))
    rows[0]["cleaned_html"] = "<html"
    rows[1]["screenshot"] = {"bytes": b"no picture", "path": None}
    write_parquet(rows, tmp_path / "data" / "test_task-00000-of-00001.parquet")
    run = so.evaluate(dataset=str(tmp_path), ranker="bm25", out=tmp_path / "run")
    site = Site([run.path])
    steps = [step_of(site, place) for place in range(2)]
    assert steps[0]["runs"][0]["failure"] == "bad_html"
    assert steps[0]["picture"] is not None
    assert steps[1]["picture"] is None
    assert steps[1]["elements"][0]["path"]


# --- runs side by side ---


def test_a_run_without_the_step_is_null(sample_run: Path, other_run: Path) -> None:
    site = Site([sample_run, other_run])
    found = [step["runs"] for place in (0, -1) if (step := step_of(site, place))]
    assert [run is None for run in found[0]] == [False, False]
    assert [run is None for run in found[1]] == [False, True]


def test_a_picture_of_both_runs_is_there_once(sample_run: Path, tmp_path: Path) -> None:
    twin = copied(sample_run, tmp_path / "twin")
    step = step_of(Site([sample_run, twin]))
    ours, theirs = ([group["images"] for group in run["groups"]] for run in step["runs"])
    assert ours == theirs


# --- one row of many ---


def test_only_one_row_group_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "data" / "test_task-00000-of-00001.parquet"
    write_parquet(list(synthetic_rows(6, 2, 12, seed=1)), path)
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=3)
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
    assert [len(groups) for groups in read] == [1] * len(wanted)
    assert isinstance(split.sources[0], ParquetFiles)


def test_a_step_that_the_data_lack_is_none(sample_run: Path) -> None:
    from seeact_offline.records import StepKey

    settings = json.loads((sample_run / "manifest.json").read_text())["settings"]
    assert open_data(settings).step(StepKey("no", "such")) is None


def test_the_page_is_the_rows(sample_site: Site) -> None:
    step = step_of(sample_site)
    row = next(one for one in so.load_steps("sample", "cross_task") if one.action_uid == step["action_uid"])
    assert row.screenshot is not None
    assert (step["picture"]["width"], step["picture"]["height"]) == PagePicture(row.screenshot).size
    assert step["task"] == row.task


def test_scores_are_those_that_the_ranker_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEACT_CACHE", str(tmp_path / "cache"))
    site = Site([so.evaluate(limit=1, ranker="bm25", out=tmp_path / "run").path])
    elements = step_of(site)["elements"]
    ranked = sorted((one for one in elements if one["rank"] is not None), key=lambda one: one["rank"])
    assert len(ranked) > 10
    scores = [one["score"] for one in elements]
    assert None not in scores
    assert [one["score"] for one in ranked] == sorted(scores, reverse=True)[: len(ranked)]


def test_a_run_whose_scores_are_gone_shows_ranks_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEACT_CACHE", str(tmp_path / "cache"))
    run = so.evaluate(limit=1, ranker="bm25", out=tmp_path / "run").path
    monkeypatch.setenv("SEEACT_CACHE", str(tmp_path / "another"))
    elements = step_of(Site([run]))["elements"]
    assert {one["score"] for one in elements} == {None}
    assert any(one["rank"] is not None for one in elements)
