"""`show`: exactly what a model would be sent for one step."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from seeact_offline.pages.outlines import BLUE, GREEN, RED
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, make_sample


@pytest.fixture
def step_words(shared_step: Path, tmp_path: Path) -> list[str]:
    """The options that show the real step."""
    named = ["--dataset", str(shared_step), "--split", "test_domain"]
    return [*named, "--scores", str(shared_step / "scores_all_data.pkl"), "--out", str(tmp_path / "pictures")]


@pytest.fixture
def shown(cli: Cli, step_words: list[str]) -> dict[str, Any]:
    outcome = cli("show", *step_words, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    return dict(json.loads(outcome.out))


def picture_size(path: str) -> tuple[int, int]:
    with Image.open(path) as picture:
        return picture.size


def test_json_has_the_parts_that_other_programs_rely_on(shown: dict[str, Any]) -> None:
    assert shown.keys() == {"query", "candidates", "groups"}
    assert all(candidate.keys() == {"id", "text", "score", "rank"} for candidate in shown["candidates"])
    assert all(g.keys() == {"choices", "crop", "system", "turns", "image"} for g in shown["groups"])
    assert all(len(group["turns"]) == 2 for group in shown["groups"])


def test_query_and_candidate_texts_are_the_golden_ones(shown: dict[str, Any], shared_step: Path) -> None:
    golden = json.loads((shared_step / "golden_mindact.json").read_text())
    assert shown["query"] == golden["query"]
    assert {candidate["id"]: candidate["text"] for candidate in shown["candidates"]} == golden["docs"]


def test_candidates_stand_in_order_of_rank(shown: dict[str, Any]) -> None:
    assert [candidate["rank"] for candidate in shown["candidates"]] == list(range(468))


def test_groups_are_the_golden_ones(shown: dict[str, Any], shared_step: Path) -> None:
    golden = json.loads((shared_step / "expected_groups.json").read_text())
    assert [group["choices"] for group in shown["groups"]] == [group["choices"] for group in golden]


def test_pictures_have_the_golden_sizes(shown: dict[str, Any], shared_step: Path) -> None:
    golden = json.loads((shared_step / "expected_groups.json").read_text())
    sizes = [list(picture_size(group["image"])) for group in shown["groups"]]
    assert sizes == [group["crop_size"] for group in golden]


def test_a_crop_says_where_its_picture_was_cut_from(shown: dict[str, Any]) -> None:
    for group in shown["groups"]:
        x0, y0, x1, y1 = group["crop"]
        assert picture_size(group["image"]) == (x1 - x0, y1 - y0)


@pytest.mark.parametrize("name", ["0", "c69cbea4-7231-42f7-b5fc-e0fac8f781e9"])
def test_a_step_goes_by_its_number_or_its_id(cli: Cli, step_words: list[str], name: str) -> None:
    outcome = cli("show", *step_words, "--step", name)
    assert outcome.status == 0
    assert "c69cbea4-7231-42f7-b5fc-e0fac8f781e9" in outcome.out


def test_text_has_all_that_is_sent(cli: Cli, sample: Sample) -> None:
    shown = json.loads(cli("show", *sample.words, "--json").out)["groups"][0]
    text = cli("show", *sample.words).out
    assert all(part in text for part in (shown["system"], *shown["turns"], shown["image"]))


def test_without_out_pictures_lie_below_runs(cli: Cli, sample: Sample) -> None:
    cli("show", *sample.words)
    assert list(Path("runs/show").glob("*/group-0.jpg"))


# --- the pictures as files -------------------------------------------------------------------------------------------


ONE_GROUP = ("--top-k", "6", "--merge", "single")
SMALL = ("--top-k", "6", "--group-size", "3")


@pytest.mark.parametrize(
    ("words", "kind", "name"), [((), "JPEG", "a.jpg"), (("--image-format", "png"), "PNG", "a.PNG"), (("--image-format", "webp:80"), "WEBP", "a.webp")]
)  # fmt: skip
def test_the_picture_of_one_group_is_the_file_named(
    cli: Cli, sample: Sample, tmp_path: Path, words: tuple[str, ...], kind: str, name: str
) -> None:
    path = tmp_path / "new" / name
    outcome = cli("show", *sample.words, *ONE_GROUP, *words, "--picture", path, "--json")
    (group,) = json.loads(outcome.out)["groups"]
    x0, y0, x1, y1 = group["crop"]
    with Image.open(path) as picture:
        assert (picture.format, picture.size) == (kind, (x1 - x0, y1 - y0))
    assert group["image"] == str(path)
    assert [file.name for file in path.parent.iterdir()] == [name]
    assert not Path("runs").exists()


def test_of_several_groups_the_files_are_numbered_as_the_groups_are(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    outcome = cli("show", *sample.words, *SMALL, "--picture", tmp_path / "new" / "a.jpg")
    names = sorted(file.name for file in (tmp_path / "new").iterdir())
    assert len(names) > 1
    assert names == [f"a-{group}.jpg" for group in range(len(names))]
    assert all(
        f"group {n}: " in outcome.out and str(tmp_path / "new" / name) in outcome.out for n, name in enumerate(names)
    )


def test_a_marked_picture_of_turn_two_has_a_file_of_its_own(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--grounding", "annotation", *ONE_GROUP, "--picture", tmp_path / "a.png", "--image-format", "png")
    assert cli("show", *sample.words, *words).status == 0
    with Image.open(tmp_path / "a.png") as plain, Image.open(tmp_path / "a-turn2.png") as marked:
        assert plain.size == marked.size
        assert plain.tobytes() != marked.tobytes()


def test_a_picture_made_smaller_is_written_as_small(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    cli("show", *sample.words, *ONE_GROUP, "--max-image-side", 100, "--picture", tmp_path / "a.jpg")
    assert max(picture_size(str(tmp_path / "a.jpg"))) == 100


def test_the_folder_is_filled_too_where_it_is_named(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    cli("show", *sample.words, *ONE_GROUP, "--picture", tmp_path / "a.jpg", "--out", tmp_path / "folder")
    assert (tmp_path / "a.jpg").read_bytes() == (tmp_path / "folder" / "group-0.jpg").read_bytes()


def test_text_says_what_is_sent(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--picture", tmp_path / "a.jpg", "--image-detail", "low")
    out = cli("show", *sample.words, *ONE_GROUP, *words).out
    width, height = picture_size(str(tmp_path / "a.jpg"))
    assert f"picture {tmp_path / 'a.jpg'} ({width} x {height} px, jpeg:95, " in out
    assert "detail low)" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--picture a.png",
            "--picture: expected a file ending in .jpg or .jpeg, as pictures are sent as jpeg:95 (--image-format png sends .png), got a.png",
        ),
        ("--picture a.jpg --image-format webp:80", "ending in .webp, as pictures are sent as webp:80 (--image-format jpeg:95 sends .jpg), got a.jpg"),
        ("--picture a", "--picture: expected a file ending in .jpg or .jpeg, as pictures are sent as jpeg:95, got a"),
        ("--picture a.jpg --no-image", "--picture cannot be combined with --no-image"),
        ("--boxes a.gif", "--boxes: expected a file ending in one of .png, .jpg, .jpeg, got a.gif"),
        ("--image-format jpg", "--image-format: expected png, jpeg:Q or webp:Q"),
        ("--out taken", "cannot write taken"),
        ("--picture taken/a.jpg", "cannot write taken/a.jpg: "),
        ("--boxes taken/a.png", "cannot write taken/a.png: "),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_is_refused_in_one_sentence(cli: Cli, sample: Sample, words: str, sentence: str) -> None:
    Path("taken").write_text("a file")
    assert sentence in cli("show", *sample.words, *words.split()).error


@pytest.mark.slow
@pytest.mark.parametrize("turn1", [(), ("--mark-turn1",)])
def test_annotation_says_where_its_pictures_were_cut_from(
    cli: Cli, step_words: list[str], turn1: tuple[str, ...]
) -> None:
    """With marks in turn 1 it was null once."""
    shown = json.loads(cli("show", *step_words, "--grounding", "annotation", *turn1, "--json").out)
    plain = json.loads(cli("show", *step_words, "--json").out)
    assert [group["crop"] for group in shown["groups"]] == [group["crop"] for group in plain["groups"]]


@pytest.mark.slow
def test_boxes_are_drawn_in_the_colour_of_their_kind(cli: Cli, step_words: list[str], tmp_path: Path) -> None:
    outcome = cli("show", *step_words, "--boxes", tmp_path / "boxes.png", "--json")
    boxes = json.loads(outcome.out)["boxes"]
    assert boxes.keys() == {"image", "unseen"}
    assert boxes["image"] == str(tmp_path / "boxes.png")
    with Image.open(tmp_path / "boxes.png") as picture:
        assert (picture.format, picture.size) == ("PNG", (1280, 7412))
        colours = {colour for _, colour in picture.getcolors(picture.width * picture.height) or ()}
    assert {GREEN, RED, BLUE} <= colours


def test_boxes_need_no_picture_to_be_sent_and_no_ranks(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--grounding", "attributes", "--no-image", "--boxes", tmp_path / "boxes.jpg")
    assert cli("show", *sample.words, *words).status == 0
    with Image.open(tmp_path / "boxes.jpg") as picture:
        assert picture.format == "JPEG"


def test_page_text_cannot_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    row = next(synthetic_rows(1, 1, 5, seed=3))
    row["confirmed_task"] = "Use \x1b[2J\x1b]0;owned\x07 it\r\n"
    # characters that XML admits: a one-byte CSI, and one that reverses what follows
    row["cleaned_html"] = row["cleaned_html"].replace("</text>", "\x9b31m\u202e</text>", 1)
    sample = make_sample(tmp_path / "data", [row])
    outcome = cli("show", *sample.words)
    assert outcome.status == 0
    assert "\\u009b31m" in outcome.out
    assert not {c for c in outcome.out if unicodedata.category(c) in {"Cc", "Cf"}} - {"\n", "\t"}


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_causes_no_error(step_words: list[str], repo: Path) -> None:
    command = [sys.executable, "-m", "seeact_offline.cli", "show", *step_words, "--json"]
    env = {**os.environ, "PYTHONPATH": str(repo)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""


def test_the_system_text_of_all_groups_is_shown_once(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    shown = cli("show", *sample.words, "--group-size", 4, "--out", tmp_path)
    system = json.loads(cli("show", *sample.words, "--group-size", 4, "--out", tmp_path, "--json").out)["groups"][1][
        "system"
    ]
    assert (shown.out.count("== group "), shown.out.count(system)) == (3, 1)


def test_turn_1_of_all_groups_is_printed_once_and_the_right_element_named(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    words = ("show", *sample.words, "--group-size", 3, "--out", tmp_path)
    shown = json.loads(cli(*words, "--json").out)
    text = cli(*words).out
    assert len(shown["groups"]) > 1
    assert text.count(shown["groups"][0]["turns"][0]) == 1
    assert text.count("-- turn 2") == len(shown["groups"])
    assert re.search(r"== right element\n\d+  rank \d+, (not )?offered  ", text)
