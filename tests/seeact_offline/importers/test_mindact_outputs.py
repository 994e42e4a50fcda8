"""MindAct's outputs and predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError, Prediction
from tests.seeact_offline.importers.files import problems, read_as, said


def written(tmp_path: Path, entries: object, name: str = "test_task_outputs_top50.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(entries))
    return path


def question(ids: str, reply: str) -> list[Any]:
    return [list(ids), ["<html>", "what?", [[node, f"<a {node}>"] for node in ids]], reply]


def decided(tmp_path: Path, rounds: list[Any], **truth: Any) -> Prediction:
    return said(read_as("mindact", run=written(tmp_path, [["t_a", rounds]])), "t_a", **truth)


CHAT, T5 = "Answer: B.\nAction: CLICK", "B.\nAction: CLICK"
TWO_ANSWERS = "Answer: C. Action: SELECT\nValue: None\nAnswer: B.\nAction: CLICK\nValue: x"
NOTHING = (None, "", "")
DECISIONS = {
    "the last winner is the answer": (
        [question("12345", "Answer: C.\nAction: CLICK"), question("6789x", "Answer: A."), question("2", "Answer: B.\nAction: TYPE\nValue: a  b")],
        None, ("2", "TYPE", "a  b"), ["2", None, "2"],
    ),
    "an empty queue is no element": ([question("12345", CHAT), question("16789", "Answer: A.")], None, NOTHING, ["1", None]),
    "a dropped winner stays if one candidate is left unasked": (
        [question("12345", CHAT), question("67891", "Answer: A.")], 10, ("1", "CLICK", ""), ["1", None],
    ),
    "a dropped winner is gone if none is": ([question("12345", CHAT), question("67891", "Answer: A.")], 9, NOTHING, ["1", None]),
    "a chat model's reply without answer is none": (
        [question("12345", "B. Action: CLICK"), question("67", "Answer: B. Action: CLICK")], None, ("6", "CLICK", ""), [None, "6"],
    ),
    "the first answer and action count": ([question("12", TWO_ANSWERS)], None, ("2", "SELECT", "None"), ["2"]),
    "T5 is read by its first character": ([question("12", " C.\nAction: TYPE\nValue: x")], None, ("2", "TYPE", "x"), ["2"]),
    "a letter beyond the choices resets a chat model's winner": (
        [question("12345", CHAT), question("13", "Answer: F.")], 6, NOTHING, ["1", None],
    ),
    "a letter beyond the choices keeps T5's winner": (
        [question("12345", T5), question("13", "F.")], 6, ("1", "CLICK", ""), ["1", None],
    ),
    "a sign before A counts T5's options back": ([question("123", "@.\nAction: CLICK")], None, ("2", "CLICK", ""), ["2"]),
    "a reply without action has none": ([question("12", "B.")], None, ("1", "", ""), ["1"]),
    "rounds that cannot be read are left out": (
        [None, [1, 2], question("12", CHAT), [["3"], ["html", "q", [7]], "B"]], None, ("1", "CLICK", ""), ["1"],
    ),
    "a step that was not asked has no answer": ([], None, NOTHING, []),
}  # fmt: skip


@pytest.mark.parametrize(("rounds", "n_candidates", "answer", "winners"), DECISIONS.values(), ids=DECISIONS)
def test_rounds_are_decided_as_mindact_decides_them(
    tmp_path: Path, rounds: list[Any], n_candidates: int | None, answer: tuple[str | None, str, str], winners: list[Any]
) -> None:
    found = decided(tmp_path, rounds, **({} if n_candidates is None else {"n_candidates": n_candidates}))
    assert [group.element_id for group in found.groups] == winners
    assert (found.element_id, found.op, found.value) == answer


def test_letters_beyond_the_choices_are_counted_and_a_step_not_asked_is_unreachable(tmp_path: Path) -> None:
    assert dict(decided(tmp_path, [question("12", "Answer: F.")]).notes) == {"letter_beyond_choices": 1}
    assert decided(tmp_path, []).reachable is False


def test_as_many_candidates_are_asked_as_the_files_name_says(tmp_path: Path) -> None:
    rounds = [question("12345", "Answer: B.\nAction: CLICK"), question("67891", "Answer: A.")]
    path = written(tmp_path, [["t_a", rounds]], "x_outputs_top9.json")
    assert said(read_as("mindact", run=path), "t_a", n_candidates=400).element_id is None


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


@pytest.mark.parametrize(
    ("text", "error"),
    [
        *((text, "run: expected MindAct's") for text in ('{"a": 1}', "[1, 2]", "[]")),
        ('[["t_a", "5", "CLICK"], ["t_', "cut off"),
    ],
)
def test_other_json_and_a_file_that_was_cut_off_are_refused(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=error):
        read_as("mindact", run=path)
