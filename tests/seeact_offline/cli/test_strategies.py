"""Every grounding strategy and every way of putting questions, through `eval`, `show` and `score`."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.chat_server import ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Outcome, Sample, contents, make_sample, read_json, read_lines

SMALL = ("--top-k", "6", "--group-size", "3")
UNGROUPED = {"pixel", "attributes", "oracle", "--ungrounded"}
"""Words of commands that do not use these."""
METRICS = ("element_accuracy", "operation_f1", "step_success_rate")
WAYS = {
    "choice": (),
    "choice, one turn": ("--turns", "1"),
    "choice, no picture": ("--no-image",),
    "choice, one turn and no picture": ("--no-image", "--turns", "1"),
    "choice, shared turn 1": ("--batching", "shared-turn1"),
    "annotation": ("--grounding", "annotation"),
    "annotation, marked turn 1": ("--grounding", "annotation", "--mark-turn1", "--marks", "double-letter"),
    "annotation, one turn": ("--grounding", "annotation", "--turns", "1"),
    "annotation, shared turn 1": ("--grounding", "annotation", "--batching", "shared-turn1"),
    "attributes": ("--grounding", "attributes"),
    "attributes, no picture": ("--grounding", "attributes", "--no-image"),
    "attributes, one turn": ("--grounding", "attributes", "--turns", "1"),
    "pixel": ("--grounding", "pixel"),
    "pixel, fractions": ("--grounding", "pixel", "--coordinates", "fraction"),
    "pixel, one turn": ("--grounding", "pixel", "--turns", "1"),
    "ungrounded": ("--ungrounded",),
    "ungrounded, no picture": ("--ungrounded", "--no-image"),
}


def small_for(words: Iterable[object]) -> tuple[str, ...]:
    return () if UNGROUPED.intersection(words) else SMALL


def run(cli: Cli, sample: Sample, out: Path, *words: object, model: str = "builtin/oracle") -> Outcome:
    return cli("eval", *sample.words, *small_for(words), "--model", model, "--out", out, *words)


@pytest.fixture
def oracle_file(sample: Sample, tmp_path: Path) -> Path:
    """What a person would say who is always right."""
    from seeact_offline.dataset import load_steps

    lines = []
    for step in load_steps(sample.dataset, "cross_task"):
        right = next(c.backend_node_id for c in step.candidates if c.is_positive)
        lines.append(
            {
                "annotation_id": step.annotation_id, "action_uid": step.action_uid, "element_id": right,
                "op": step.operation.op, "value": step.operation.value,
            }
        )  # fmt: skip
    path = tmp_path / "oracle.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


# --- every strategy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["builtin/lexical", "builtin/oracle"])
@pytest.mark.parametrize("way", WAYS)
def test_builtin_models_run_through_every_strategy(
    cli: Cli, sample: Sample, tmp_path: Path, way: str, model: str
) -> None:
    outcome = run(cli, sample, tmp_path / "run", *WAYS[way], model=model)
    assert outcome.status == 0, outcome.err
    results = read_json(tmp_path / "run" / "results.json")
    assert (results["n_steps"], results["failures"].get("internal_error")) == (12, None)


@pytest.mark.parametrize("way", [way for way in WAYS if "ungrounded" not in way])
def test_one_who_knows_the_truth_reaches_exactly_the_ceiling(
    cli: Cli, sample: Sample, tmp_path: Path, way: str
) -> None:
    run(cli, sample, tmp_path / "run", *WAYS[way])
    results = read_json(tmp_path / "run" / "results.json")
    assert results["element_accuracy"] == results["ceiling"]
    assert results["operation_f1"]["macro"] == 1.0


def test_a_person_who_is_right_is_right(cli: Cli, sample: Sample, tmp_path: Path, oracle_file: Path) -> None:
    words = ("--grounding", "oracle", "--oracle-file", oracle_file)
    assert run(cli, sample, tmp_path / "run", *words, model="builtin/lexical").status == 0
    results = read_json(tmp_path / "run" / "results.json")
    assert [results[name]["macro"] for name in METRICS] == [1.0, 1.0, 1.0]


def test_an_ungrounded_run_scores_the_operation_alone(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    outcome = run(cli, sample, tmp_path / "run", "--ungrounded")
    results = read_json(tmp_path / "run" / "results.json")
    assert (results["grounding"], results["operation_f1"]["macro"]) == ("ungrounded", 1.0)
    assert results["element_accuracy"] is results["step_success_rate"] is None
    assert results["usage"]["calls"] == 12
    assert "Operation F1" in outcome.out
    assert cli("score", tmp_path / "run").status == 0
    assert read_json(tmp_path / "run" / "results.json") == results


def test_scores_that_nothing_reads_are_remarked_on(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    outcome = run(cli, sample, tmp_path / "run", "--grounding", "pixel")
    assert f"the score file {sample.scores} is not read" in outcome.err
    assert "ranks nothing" in outcome.err
    assert read_json(tmp_path / "run" / "results.json")["ranker"] is None


def test_a_row_without_picture_is_asked_where_none_is_shown(cli: Cli, tmp_path: Path) -> None:
    rows = [{**row, "screenshot": None} for row in synthetic_rows(1, 2, 8, seed=5)]
    sample = make_sample(tmp_path / "data", rows)
    assert run(cli, sample, tmp_path / "seen").status == 1
    assert run(cli, sample, tmp_path / "read", "--no-image").status == 0
    assert read_json(tmp_path / "read" / "results.json")["failures"] == {}


# --- which options go together ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("--marks letter", "--marks"),
        ("--mark-position center --grounding pixel", "--mark-position"),
        ("--mark-turn1 --grounding attributes", "--mark-turn1"),
        ("--fuzzy-threshold 90", "--fuzzy-threshold"),
        ("--fuzzy-threshold 101 --grounding attributes", "--fuzzy-threshold"),
        ("--coordinates absolute", "--coordinates"),
        ("--coordinates absolute --ungrounded", "--coordinates"),
        ("--oracle-file x.jsonl", "--oracle-file"),
        ("--grounding oracle", "--oracle-file"),
        ("--grounding oracle --oracle-file nowhere.jsonl", "nowhere.jsonl"),
        ("--no-image --grounding annotation", "--no-image"),
        ("--no-image --grounding pixel", "--no-image"),
        ("--turns 1 --ungrounded", "--turns"),
        ("--turns 3", "--turns"),
        ("--batching shared-turn1 --turns 1", "--batching"),
        ("--batching shared-turn1 --grounding pixel", "--batching"),
        ("--batching shared-turn1 --grounding annotation --mark-turn1", "--mark-turn1"),
        ("--repeats 2 --grounding attributes", "--repeats"),
        ("--ungrounded --grounding pixel", "--ungrounded"),
        ("--max-image-side 2", "--max-image-side"),
        ("--marks letter --grounding annotation --group-size 30", "letter"),
        ("--grounding telepathy", "--grounding"),
        ("--grounding pixel --merge single", "--merge"),
        ("--grounding attributes --top-k 5", "--top-k"),
        ("--ungrounded --group-size 5", "--group-size"),
        ("--grounding mindact --merge first", "--merge"),
        ("--mark-place outside", "--mark-place"),
        ("--mark-outline --grounding pixel", "--mark-outline"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(
    cli: Cli, sample: Sample, tmp_path: Path, words: str, option: str
) -> None:
    outcome = cli("eval", *sample.words, "--model", "builtin/oracle", "--out", tmp_path / "run", *words.split())
    assert option in outcome.error
    remedies = ("expected", "is an option of", "remove", "needs", "cannot")
    assert any(words in outcome.error for words in remedies)
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_the_usual_run_is_identified_as_it_always_was(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    run(cli, sample, tmp_path / "run")
    assert list(read_json(tmp_path / "run" / "manifest.json")["identity"]) == [
        *("split", "dataset_fingerprint", "data_digest", "scores_digest", "top_k", "grounding", "group_size", "merge"),
        *("prompts_digest", "model", "seed"),
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("", "--turns 1"),
        ("", "--no-image"),
        ("", "--batching shared-turn1"),
        ("", "--max-image-side 500"),
        ("", "--grounding annotation"),
        ("--grounding annotation", "--grounding annotation --marks letter"),
        ("--grounding annotation", "--grounding annotation --mark-position center"),
        ("--grounding annotation", "--grounding annotation --mark-turn1"),
        ("--grounding annotation", "--grounding annotation --mark-place outside"),
        ("--grounding annotation", "--grounding annotation --mark-outline"),
        ("--grounding attributes", "--grounding attributes --fuzzy-threshold 95"),
        ("--grounding pixel", "--grounding pixel --coordinates per-mille"),
        ("--grounding pixel", "--ungrounded"),
    ],
)
def test_a_folder_made_with_other_options_is_refused(
    cli: Cli, sample: Sample, tmp_path: Path, first: str, second: str
) -> None:
    assert run(cli, sample, tmp_path / "run", "--limit", 1, *first.split()).status == 0
    before = contents(tmp_path / "run")
    outcome = run(cli, sample, tmp_path / "run", "--limit", 1, *second.split())
    assert outcome.status == 2
    assert "another configuration" in outcome.err
    assert contents(tmp_path / "run") == before


# --- a shared turn 1 -------------------------------------------------------------------------------------------------


def test_a_shared_turn_1_states_calls_and_tokens_of_both_protocols(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    run(cli, sample, tmp_path / "shared", "--batching", "shared-turn1")
    run(cli, sample, tmp_path / "usual")
    shared, usual = (read_json(tmp_path / name / "results.json") for name in ("shared", "usual"))
    price = shared["batching_price"]
    assert price["shared-turn1"]["calls"] == shared["usage"]["calls"] / 12
    # one who knows the truth picks the same either way, so that the other run is the one that is reckoned with
    assert price["per-group"]["calls"] == usual["usage"]["calls"] / 12
    assert 0 < price["shared-turn1"]["estimated_prompt_tokens"] < price["per-group"]["estimated_prompt_tokens"]
    assert "batching_price" not in usual
    assert "turn 1 for every group" in (tmp_path / "shared" / "report.md").read_text()
    assert not any("estimated" in name for name in shared["notes"])


# --- other orders ----------------------------------------------------------------------------------------------------


def test_the_spread_over_orders_is_that_of_the_repeats(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    run(cli, tall_sample, tmp_path / "run", "--repeats", 3, model="builtin/lexical")
    spread = read_json(tmp_path / "run" / "results.json")["shuffle_spread"]
    repeats = [read_json(tmp_path / "run" / f"shuffled-{n}" / "results.json") for n in (1, 2, 3)]
    assert spread["n_orders"] == 3
    for name in METRICS:
        values = [repeat[name]["macro"] for repeat in repeats]
        assert spread[name]["values"] == values
        assert (spread[name]["min"], spread[name]["max"]) == (min(values), max(values))
        assert spread[name]["sd"] == pytest.approx(statistics.stdev(values))
    assert "Order of groups and choices" in (tmp_path / "run" / "report.md").read_text()


def test_repeats_ask_the_same_groups_in_other_orders(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    run(cli, tall_sample, tmp_path / "run", "--repeats", 2)
    folders = [tmp_path / "run", *(tmp_path / "run" / f"shuffled-{n}" for n in (1, 2))]
    usual, first, second = ([line["groups"] for line in read_lines(folder / "predictions.jsonl")] for folder in folders)

    def groups(step: list[dict[str, Any]]) -> set[frozenset[str]]:
        return {frozenset(group["offered"]) for group in step}

    assert [groups(step) for step in usual] == [groups(step) for step in first] == [groups(step) for step in second]
    assert first != usual != second != first


def test_more_repeats_are_added_to_a_finished_run(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    run(cli, sample, tmp_path / "run", "--repeats", 1)
    before = contents(tmp_path / "run" / "shuffled-1")
    outcome = run(cli, sample, tmp_path / "run", "--repeats", 2)
    assert outcome.status == 0
    assert "order 1 of 2: 0 steps to ask" in outcome.err
    assert contents(tmp_path / "run" / "shuffled-1") == before
    assert read_json(tmp_path / "run" / "results.json")["shuffle_spread"]["n_orders"] == 2


@pytest.mark.slow
def test_an_interrupted_repeat_goes_on_and_pays_for_nothing_twice(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        return "ELEMENT: A\nACTION: CLICK\nVALUE: None" if len(body["messages"]) == 4 else "Plan."

    with ChatServer(answer) as server:
        words = ("--model", "openai/test", "--base-url", server.base_url, "--repeats", 1)
        asked = (*sample.words, *SMALL, "--merge", "first", *words, "--out", tmp_path / "run")
        assert cli("eval", *asked).status == 0
        paid, whole = len(server.requests), contents(tmp_path / "run", ["results.json", "report.md"])
        lines = (tmp_path / "run" / "shuffled-1" / "predictions.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "run" / "shuffled-1" / "predictions.jsonl").write_text("".join(lines[:5]) + lines[5][:20])
        assert cli("eval", *asked).status == 0
        assert len(server.requests) == paid
    assert contents(tmp_path / "run", ["results.json", "report.md"]) == whole
    assert (tmp_path / "run" / "shuffled-1" / "predictions.jsonl").read_text() == "".join(lines)


def test_scoring_again_keeps_the_spread(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    run(cli, sample, tmp_path / "run", "--repeats", 2)
    before = contents(tmp_path / "run", ["results.json", "report.md"])
    assert cli("score", tmp_path / "run").status == 0
    assert contents(tmp_path / "run", ["results.json", "report.md"]) == before


# --- show ------------------------------------------------------------------------------------------------------------


def show(cli: Cli, sample: Sample, out: Path, *words: object) -> list[dict[str, Any]]:
    outcome = cli("show", *sample.words, *small_for(words), "--json", "--out", out, *words)
    assert outcome.status == 0, outcome.err
    return list(json.loads(outcome.out)["groups"])


@pytest.mark.parametrize("way", WAYS)
def test_every_strategy_can_be_shown(cli: Cli, sample: Sample, tmp_path: Path, way: str) -> None:
    groups = show(cli, sample, tmp_path, *WAYS[way])
    assert groups
    for group in groups:
        assert group.keys() >= {"choices", "crop", "system", "turns", "image"}
        for path in (group["image"], group.get("image_turn2")):
            if path is not None:
                with Image.open(path) as picture:
                    picture.load()
    assert cli("show", *sample.words, *small_for(WAYS[way]), *WAYS[way]).status == 0


def test_the_marked_picture_is_a_file_and_its_marks_are_listed(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    for group in show(cli, sample, tmp_path, "--grounding", "annotation"):
        assert [label for _, label in group["choices"]] == ["1", "2", "3"][: len(group["choices"])]
        with Image.open(group["image"]) as plain, Image.open(group["image_turn2"]) as marked:
            assert plain.size == marked.size
            assert plain.convert("RGB").tobytes() != marked.convert("RGB").tobytes()


def test_without_a_picture_none_is_written(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    groups = show(cli, sample, tmp_path / "pictures", "--no-image")
    assert {(group["image"], group["crop"]) for group in groups} == {(None, None)}
    assert list((tmp_path / "pictures").iterdir()) == []


# --- prompts that fit one way of marking ---


@pytest.fixture
def lettered(tmp_path: Path) -> Path:
    """A pack whose words speak of letters at the bottom left, in turn 1 too."""
    pack = tmp_path / "lettered"
    pack.mkdir()
    (pack / "system.txt").write_text("Be brief.\n")
    (pack / "turn1.txt").write_text("{{task}} {{history}} Never mind the letters.\n")
    (pack / "turn2.txt").write_text("Which letter of {{labels}}?\n")
    only_with = {"annotation": {"marks": "letter", "mark_position": "bottom-left", "mark_turn1": True}}
    (pack / "pack.json").write_text(json.dumps({"only_with": only_with, "reply_prefix": "\n\n"}))
    return pack


def test_prompts_that_fit_one_way_of_marking_are_asked_that_way(
    cli: Cli, sample: Sample, lettered: Path, tmp_path: Path
) -> None:
    run(cli, sample, tmp_path / "run", "--grounding", "annotation", "--prompts", lettered)
    results = read_json(tmp_path / "run" / "results.json")
    assert [results[name] for name in ("marks", "mark_position", "mark_turn1")] == ["letter", "bottom-left", True]


def test_prompts_refuse_a_way_of_marking_that_they_do_not_fit(
    cli: Cli, sample: Sample, lettered: Path, tmp_path: Path
) -> None:
    words = ("--grounding", "annotation", "--prompts", lettered, "--marks", "number")
    outcome = run(cli, sample, tmp_path / "run", *words)
    assert outcome.status == 2
    assert f"--marks number does not fit the prompts of {lettered}; use letter" in outcome.error


def test_the_first_reply_is_handed_back_as_the_prompts_say(
    cli: Cli, sample: Sample, lettered: Path, tmp_path: Path
) -> None:
    with ChatServer(lambda body: "I will click.") as server:
        words = ("--grounding", "annotation", "--prompts", lettered, "--base-url", server.base_url, "--limit", 1)
        run(cli, sample, tmp_path / "run", *words, model="openai/x")
        second = next(body for body in server.requests if len(body["messages"]) == 4)
    assert second["messages"][2]["content"] == "\n\nI will click."
