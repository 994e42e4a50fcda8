"""A bad row is a counted, named failure; the run goes on and the good rows do not notice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, contents, make_sample, read_json, read_lines

Row = dict[str, Any]
ROWS = list(synthetic_rows(2, 2, 8, seed=4))
WORDS = ("--top-k", "6", "--group-size", "3")
BAD_UID = "uid-bad"
PLACE = 1
"""Where the bad row stands: between good ones, so that there is something to disturb."""


def edit_candidate(row: Row, **changes: Any) -> Row:
    """The row with its first negative candidate changed: `id`, or `rect`."""
    outer = json.loads(row["neg_candidates"][0])
    inner = json.loads(outer["attributes"])
    if "rect" in changes:
        inner["bounding_box_rect"] = changes["rect"]
    if "id" in changes:
        inner["backend_node_id"] = outer["backend_node_id"] = changes["id"]
    changed = json.dumps({**outer, "attributes": json.dumps(inner)})
    return {**row, "neg_candidates": [changed, *row["neg_candidates"][1:]]}


def with_picture(row: Row, data: bytes) -> Row:
    return {**row, "screenshot": {"bytes": data, "path": None}}


def with_value(row: Row, value: str) -> Row:
    return {**row, "operation": json.dumps({"op": "TYPE", "original_op": "TYPE", "value": value})}


def with_nodes(row: Row, nodes: str) -> Row:
    return {**row, "cleaned_html": row["cleaned_html"].replace("</body>", f"{nodes}</body>")}


def with_attributes(n: int) -> str:
    return "<p " + " ".join(f"a{i}='x'" for i in range(n)) + "/>"


def first_id(row: Row) -> str:
    return str(json.loads(row["neg_candidates"][0])["backend_node_id"])


def repeat_in_html(row: Row) -> Row:
    twin = f'<p backend_node_id="{first_id(row)}"/></body>'
    return {**row, "cleaned_html": row["cleaned_html"].replace("</body>", twin)}


BAD: dict[str, tuple[str, Callable[[Row], Row]]] = {
    "no screenshot": ("no_screenshot", lambda row: {**row, "screenshot": None}),
    "a screenshot of no bytes": ("no_screenshot", lambda row: with_picture(row, b"")),
    "a screenshot that is no image": ("bad_screenshot", lambda row: with_picture(row, b"this is no image")),
    "a screenshot cut in its header": (
        "bad_screenshot",
        lambda row: with_picture(row, row["screenshot"]["bytes"][:20]),
    ),
    "unparsable HTML": ("bad_html", lambda row: {**row, "cleaned_html": "<html><body></html>"}),
    "HTML that is text": ("bad_html", lambda row: {**row, "cleaned_html": "no page"}),
    "no HTML": ("bad_html", lambda row: {**row, "cleaned_html": None}),
    "a box of three numbers": ("bad_box", lambda row: edit_candidate(row, rect="1,2,3")),
    "a box in words": ("bad_box", lambda row: edit_candidate(row, rect="a,b,c,d")),
    "a box without end": ("bad_box", lambda row: edit_candidate(row, rect="0,0,inf,1")),
    "a candidate absent from the HTML": ("missing_candidate", lambda row: edit_candidate(row, id="999999")),
    "an id twice among the candidates": (
        "duplicate_id",
        lambda row: {**row, "neg_candidates": [*row["neg_candidates"], row["neg_candidates"][0]]},
    ),
    "an id twice in the HTML": ("duplicate_id", repeat_in_html),
    "a target index beyond the actions": ("bad_target_index", lambda row: {**row, "target_action_index": "99"}),
    "a target index below 0": ("bad_target_index", lambda row: {**row, "target_action_index": "-1"}),
    "a target index in words": ("bad_target_index", lambda row: {**row, "target_action_index": "second"}),
    "an operation that is no JSON": ("bad_operation", lambda row: {**row, "operation": "CLICK"}),
    "an unknown operation": ("bad_operation", lambda row: {**row, "operation": '{"op": "HOVER", "value": ""}'}),
    "no candidates": ("no_candidates", lambda row: {**row, "pos_candidates": [], "neg_candidates": []}),
    "a candidate that is no JSON": ("bad_candidates", lambda row: {**row, "neg_candidates": ["{"]}),
    "half of a surrogate pair as a value": ("bad_text", lambda row: with_value(row, "tea \ud83d")),
    "half of a surrogate pair in an id": ("bad_text", lambda row: edit_candidate(row, id="12\udc00")),
    "a box whose edges add up to infinity": ("bad_box", lambda row: edit_candidate(row, rect="1e308,1,1e308,1")),
    "a box of infinite area": ("bad_box", lambda row: edit_candidate(row, rect="1,1,1e200,1e200")),
    "a value of a million words": ("text_too_long", lambda row: with_value(row, "w " * 1_000_000)),
    "a page of a million nodes": ("page_too_large", lambda row: with_nodes(row, "<p/>" * 1_000_000)),
    "a page of 30 million characters": ("page_too_large", lambda row: with_nodes(row, "x" * 30_000_000)),
    "a node of 100,000 attributes": ("page_too_large", lambda row: with_nodes(row, with_attributes(100_000))),
    "no task": ("missing_field", lambda row: {**row, "confirmed_task": None}),
}


def sample_with(folder: Path, bad: Row | None) -> Sample:
    """The good rows, and between them the bad one. The scores know its candidates as they were."""
    rows = ROWS if bad is None else [*ROWS[:PLACE], bad, *ROWS[PLACE:]]
    spare = {**ROWS[PLACE], "action_uid": BAD_UID}
    return make_sample(folder, rows, scored=[*ROWS, spare])


def bad_row(change: Callable[[Row], Row]) -> Row:
    return {**change(ROWS[PLACE]), "action_uid": BAD_UID}


@pytest.fixture
def untroubled(cli: Cli, tmp_path: Path) -> list[dict[str, Any]]:
    """The good rows' predictions in a run without a bad row."""
    sample = sample_with(tmp_path / "good", None)
    assert cli("eval", *sample.words, *WORDS, "--out", tmp_path / "good-run").status == 0
    return read_lines(tmp_path / "good-run" / "predictions.jsonl")


@pytest.mark.parametrize(("failure", "change"), BAD.values(), ids=BAD.keys())
def test_a_bad_row_is_a_named_failure_and_disturbs_no_other(
    cli: Cli, tmp_path: Path, untroubled: list[dict[str, Any]], failure: str, change: Callable[[Row], Row]
) -> None:
    sample = sample_with(tmp_path / "data", bad_row(change))
    outcome = cli("eval", *sample.words, *WORDS, "--out", tmp_path / "run")
    results = read_json(tmp_path / "run" / "results.json")
    lines = read_lines(tmp_path / "run" / "predictions.jsonl")
    assert outcome.status == 0
    assert results["failures"] == {failure: 1}
    assert (results["n_steps"], results["waterfall"]["data_fault"]["steps"]) == (len(ROWS) + 1, 1)
    assert [line for line in lines if line["action_uid"] != BAD_UID] == untroubled


def test_a_bad_row_says_what_was_found(cli: Cli, tmp_path: Path) -> None:
    sample = sample_with(tmp_path / "data", bad_row(BAD["a box of three numbers"][1]))
    cli("eval", *sample.words, *WORDS, "--out", tmp_path / "run")
    (line,) = (x for x in read_lines(tmp_path / "run" / "predictions.jsonl") if x["action_uid"] == BAD_UID)
    assert first_id(ROWS[PLACE]) in line["detail"]
    assert "1,2,3" in line["detail"]


def test_a_bad_row_counts_as_wrong(cli: Cli, tmp_path: Path) -> None:
    sample = sample_with(tmp_path / "data", bad_row(BAD["no screenshot"][1]))
    cli("eval", *sample.words, "--top-k", 8, "--model", "builtin/oracle", "--out", tmp_path / "run")
    results = read_json(tmp_path / "run" / "results.json")
    assert results["element_accuracy"]["micro"] == pytest.approx(len(ROWS) / (len(ROWS) + 1))


def test_a_run_with_a_bad_row_can_be_run_again_without_a_change(cli: Cli, tmp_path: Path) -> None:
    words = (*sample_with(tmp_path / "data", bad_row(BAD["no HTML"][1])).words, *WORDS, "--out", tmp_path / "run")
    cli("eval", *words)
    before = contents(tmp_path / "run")
    assert cli("eval", *words).status == 0
    assert contents(tmp_path / "run") == before


# --- the same step twice ---------------------------------------------------------------------------------------------


@pytest.fixture
def repeated(tmp_path: Path) -> Sample:
    """A row whose key an earlier row has, with another page."""
    page = {name: ROWS[3][name] for name in ("cleaned_html", "pos_candidates", "neg_candidates", "operation")}
    return make_sample(tmp_path / "twice", [*ROWS[:2], {**ROWS[0], **page}, *ROWS[2:]], scored=ROWS)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_repeated_step_is_a_failure_beside_the_first(
    cli: Cli, tmp_path: Path, untroubled: list[dict[str, Any]], repeated: Sample, concurrency: int
) -> None:
    outcome = cli("eval", *repeated.words, *WORDS, "--concurrency", concurrency, "--out", tmp_path / "run")
    lines = read_lines(tmp_path / "run" / "predictions.jsonl")
    results = read_json(tmp_path / "run" / "results.json")
    assert outcome.status == 0
    assert (results["n_steps"], results["failures"]) == (len(ROWS) + 1, {"duplicate_step": 1})
    assert [line for line in lines if line["ran"]] == untroubled


def test_a_repeated_step_does_not_hide_the_first_when_run_again(cli: Cli, tmp_path: Path, repeated: Sample) -> None:
    words = (*repeated.words, *WORDS, "--out", tmp_path / "run")
    cli("eval", *words)
    before = contents(tmp_path / "run")
    assert "5 steps are done already" in cli("eval", *words).err
    assert contents(tmp_path / "run") == before


def test_a_repeated_step_is_scored_again_as_it_was(cli: Cli, tmp_path: Path, repeated: Sample) -> None:
    cli("eval", *repeated.words, *WORDS, "--out", tmp_path / "run")
    before = contents(tmp_path / "run")
    assert cli("score", tmp_path / "run").status == 0
    assert contents(tmp_path / "run") == before


# --- pictures that are broken further in -----------------------------------------------------------------------------


def torn_picture(row: Row) -> Row:
    """The header is whole, the pixels are not."""
    data = row["screenshot"]["bytes"]
    return with_picture(row, data[: len(data) // 2])


def test_torn_pixels_do_not_matter_to_a_model_that_sees_none(
    cli: Cli, tmp_path: Path, untroubled: list[dict[str, Any]]
) -> None:
    sample = sample_with(tmp_path / "data", bad_row(torn_picture))
    assert cli("eval", *sample.words, *WORDS, "--out", tmp_path / "run").status == 0


def test_torn_pixels_are_a_failure_where_they_are_sent(cli: Cli, tmp_path: Path) -> None:
    sample = sample_with(tmp_path / "data", bad_row(torn_picture))
    with ChatServer(lambda body: "ELEMENT: A\nACTION: CLICK\nVALUE: None") as server:
        words = ("--model", "openai/test", "--base-url", server.base_url, "--out", tmp_path / "run")
        assert cli("eval", *sample.words, *WORDS, *words).status == 0
    assert read_json(tmp_path / "run" / "results.json")["failures"] == {"bad_screenshot": 1}


def test_the_terminal_and_the_report_say_in_a_line_that_a_row_counts_as_wrong(cli: Cli, tmp_path: Path) -> None:
    sample = sample_with(tmp_path / "data", bad_row(BAD["no screenshot"][1]))
    outcome = cli("eval", *sample.words, *WORDS, "--out", tmp_path / "run")
    line = "1 row without a screenshot counts as wrong."
    assert line in outcome.out.splitlines()
    assert line in (tmp_path / "run" / "report.md").read_text("utf-8").splitlines()
    assert "failed to run" not in outcome.err
    assert "Failures:" not in outcome.out


def test_a_row_at_fault_is_asked_again_only_by_name(cli: Cli, tmp_path: Path) -> None:
    words = (*sample_with(tmp_path / "data", bad_row(BAD["no screenshot"][1])).words, *WORDS, "--out", tmp_path / "run")
    cli("eval", *words)
    assert "5 steps are done already" in cli("eval", *words, "--retry-failed").err
    key = f"{ROWS[PLACE]['annotation_id']}_{BAD_UID}"
    assert "4 steps are done already" in cli("eval", *words, "--step", key).err


def test_a_model_that_gives_no_answer_is_a_failed_run_beside_a_row_at_fault(cli: Cli, tmp_path: Path) -> None:
    sample = sample_with(tmp_path / "data", bad_row(BAD["no screenshot"][1]))
    silent = tmp_path / "replies.jsonl"
    silent.write_text('{"annotation_id": "x", "action_uid": "y", "group": 0, "replies": ["z"]}\n')
    good = ("--out", tmp_path / "run", "--model")
    outcome = cli("eval", *sample.words, *WORDS, *good, f"replay/{silent}")
    assert outcome.status == 1


def test_an_ablation_says_it_once_for_all_its_rows(cli: Cli, tmp_path: Path) -> None:
    sample = sample_with(tmp_path / "data", bad_row(BAD["no screenshot"][1]))
    few = ("--kinds", "number", "--positions", "bottom-left,bottom-center", "--turn1", "plain")
    outcome = cli(
        "ablate",
        "--over",
        "markup",
        *sample.words,
        *WORDS,
        *few,
        "--model",
        "builtin/oracle",
        "--out",
        tmp_path / "run",
    )
    assert outcome.status == 0
    assert outcome.err.count("1 row without a screenshot counts as wrong.") == 1


def test_a_grid_with_a_row_at_fault_has_not_failed(cli: Cli, tmp_path: Path) -> None:
    sample = sample_with(tmp_path / "data", bad_row(BAD["no screenshot"][1]))
    models = ("--model", "builtin/oracle", "--model", "builtin/lexical")
    assert cli("eval", *sample.words, *WORDS, *models, "--out", tmp_path / "grid").status == 0
