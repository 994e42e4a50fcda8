"""MindAct's outputs and predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError, Prediction
from tests.seeact_offline.scoring.importers.files import problems, read_as, said


def written(tmp_path: Path, entries: object, name: str = "test_task_outputs_top50.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(entries))
    return path


def question(ids: str, reply: str) -> list[Any]:
    return [list(ids), ["<html>", "what?", [[node, f"<a {node}>"] for node in ids]], reply]


def decided(tmp_path: Path, rounds: list[Any], **truth: Any) -> Prediction:
    return said(read_as("mindact", run=written(tmp_path, [["t_a", rounds]])), "t_a", **truth)


def test_the_last_winner_is_the_answer(tmp_path: Path) -> None:
    rounds = [
        question("12345", "Answer: C.\nAction: CLICK"),
        question("6789x", "Answer: A."),
        question("2", "Answer: B.\nAction: TYPE\nValue: a  b"),
    ]
    prediction = decided(tmp_path, rounds)
    assert (prediction.element_id, prediction.op, prediction.value) == ("2", "TYPE", "a  b")
    assert [group.element_id for group in prediction.groups] == ["2", None, "2"]


def test_an_empty_queue_is_no_element(tmp_path: Path) -> None:
    rounds = [question("12345", "Answer: B.\nAction: CLICK"), question("16789", "Answer: A.")]
    assert decided(tmp_path, rounds).element_id is None


def test_a_dropped_winner_stays_if_one_candidate_is_left_unasked(tmp_path: Path) -> None:
    rounds = [question("12345", "Answer: B.\nAction: CLICK"), question("67891", "Answer: A.")]
    assert decided(tmp_path, rounds, n_candidates=10).element_id == "1"
    assert decided(tmp_path, rounds, n_candidates=9).element_id is None


def test_as_many_candidates_are_asked_as_the_files_name_says(tmp_path: Path) -> None:
    rounds = [question("12345", "Answer: B.\nAction: CLICK"), question("67891", "Answer: A.")]
    path = written(tmp_path, [["t_a", rounds]], "x_outputs_top9.json")
    assert said(read_as("mindact", run=path), "t_a", n_candidates=400).element_id is None


def test_a_chat_models_reply_without_answer_is_none(tmp_path: Path) -> None:
    rounds = [question("12345", "B. Action: CLICK"), question("67", "Answer: B. Action: CLICK")]
    assert [group.element_id for group in decided(tmp_path, rounds).groups] == [None, "6"]


def test_the_first_answer_and_action_count(tmp_path: Path) -> None:
    reply = "Answer: C. Action: SELECT\nValue: None\nAnswer: B.\nAction: CLICK\nValue: x"
    prediction = decided(tmp_path, [question("12", reply)])
    assert (prediction.element_id, prediction.op, prediction.value) == ("2", "SELECT", "None")


def test_t5_is_read_by_its_first_character(tmp_path: Path) -> None:
    prediction = decided(tmp_path, [question("12", " C.\nAction: TYPE\nValue: x")])
    assert (prediction.element_id, prediction.op, prediction.value) == ("2", "TYPE", "x")


def test_a_letter_beyond_the_choices_resets_a_chat_models_winner(tmp_path: Path) -> None:
    rounds = [question("12345", "Answer: B.\nAction: CLICK"), question("13", "Answer: F.")]
    prediction = decided(tmp_path, rounds, n_candidates=6)
    assert prediction.element_id is None
    assert dict(prediction.notes) == {"letter_beyond_choices": 1}


def test_a_letter_beyond_the_choices_keeps_t5s_winner(tmp_path: Path) -> None:
    rounds = [question("12345", "B.\nAction: CLICK"), question("13", "F.")]
    assert decided(tmp_path, rounds, n_candidates=6).element_id == "1"


def test_a_step_that_was_not_asked_cannot_be_right(tmp_path: Path) -> None:
    prediction = decided(tmp_path, [])
    assert (prediction.element_id, prediction.op, prediction.reachable) == (None, "", False)


def test_predictions_are_final(tmp_path: Path) -> None:
    entries = [["t_a", "5", "TYPE new york"], ["t_b", "", ""], ["t_c", "6", "CLICK "]]
    found = read_as("mindact", run=written(tmp_path, entries, "x_predictions_top50.json"))
    first, second, third = (said(found, key) for key in ("t_a", "t_b", "t_c"))
    assert (first.element_id, first.op, first.value) == ("5", "TYPE", "new york")
    assert (second.element_id, second.op, second.value) == (None, "", "")
    assert (third.op, third.value) == ("CLICK", "")


def test_odd_entries_are_named(tmp_path: Path) -> None:
    entries = [["t_a", "5", "CLICK"], 3, ["t_a", "6", "CLICK"], ["t_b"], None, ["t_c", []]]
    found = read_as("mindact", run=written(tmp_path, entries))
    assert problems(found) == ["bad_row", "bad_row", "bad_row", "bad_row", "duplicate_step"]
    assert said(found, "t_a").element_id == "5"


def test_rounds_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    rounds = [None, [1, 2], question("12", "Answer: B.\nAction: CLICK"), [["3"], ["html", "q", [7]], "B"]]
    assert decided(tmp_path, rounds).element_id == "1"


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "[]"])
def test_other_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match="run: expected MindAct's"):
        read_as("mindact", run=path)


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[["t_a", "5", "CLICK"], ["t_')
    with pytest.raises(InputError, match="cut off"):
        read_as("mindact", run=path)
