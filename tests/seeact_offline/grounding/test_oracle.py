"""A person's elements: the file, and what is made of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.grounding import Grounded
from seeact_offline.grounding.oracle import OracleGrounding, PersonAnswer, read_answers
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.records import CallError, InputError, StepKey
from tests.scripted import Scripted
from tests.seeact_offline.grounding.test_pixel import a_step, prepared

KEY = StepKey("task", "step")
ROW = {"annotation_id": "task", "action_uid": "step", "element_id": "20", "op": "TYPE", "value": "New York"}


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def grounded(answers: dict[StepKey, PersonAnswer], model: Scripted, positives=("20",)) -> Grounded:
    grounding = OracleGrounding(open_pack("seeact", "oracle"), None, answers)
    return asyncio.run(grounding.ground(prepared(a_step(positives)), model))


def test_answers_are_read_by_step(tmp_path: Path) -> None:
    other = ROW | {"action_uid": "other", "element_id": None, "op": "", "value": None}
    answers = read_answers(written(tmp_path, ROW, "", other))
    assert answers == {KEY: PersonAnswer("20", "TYPE", "New York"), StepKey("task", "other"): PersonAnswer(None, "")}


def test_a_value_may_hold_half_of_a_surrogate_pair(tmp_path: Path) -> None:
    assert read_answers(written(tmp_path, ROW | {"value": "\ud83d"}))[KEY].value == "\ud83d"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "expected a JSON object, got '{' in line 2 of .*"),
        ("[1]", r"expected an object, got \[1\] in line 2 of .*"),
        (
            {"annotation_id": "task"},
            "expected exactly the fields annotation_id, .*, value, got 'annotation_id' in line 2 of .*",
        ),
        (ROW | {"note": "x"}, "expected exactly the fields .* in line 2 of .*"),
        (ROW | {"action_uid": "b", "element_id": 20}, "expected element_id to be a text .*, got 20 in line 2 of .*"),
        (ROW | {"action_uid": ""}, "expected action_uid to be a text .* in line 2 of .*"),
        (
            ROW | {"action_uid": "b", "op": "HOVER"},
            "expected op to be CLICK, TYPE, SELECT or empty, got 'HOVER' in line 2 of .*, step task_b",
        ),
        (
            ROW | {"action_uid": "b", "value": 2},
            "expected value to be a text or null, got 2 in line 2 of .*, step task_b",
        ),
        (ROW | {"op": None}, "expected op to be a text, got None in line 2 of .*, step task_step"),
        (ROW | {"op": "\ud83d"}, "expected op to be CLICK, .* or empty, got .* in line 2 of .*, step task_step"),
        (ROW, "expected each step once, got task_step again in line 2 of .*, after line 1"),
    ],
)
def test_a_wrong_line_is_refused_in_one_sentence(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^oracle_file: {message}$") as caught:
        read_answers(written(tmp_path, ROW, line))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^oracle_file: expected a readable file, got"):
        read_answers(tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"^oracle_file: expected UTF-8 text, got the byte 0xff in .*bytes.jsonl"):
        read_answers(tmp_path / "bytes.jsonl")


def test_the_persons_answer_counts_and_the_models_text_is_recorded_beside_it() -> None:
    model = Scripted("I would press Go.")
    found = grounded({KEY: PersonAnswer("20", "CLICK")}, model)
    assert (found.decision.element_id, found.decision.op, found.decision.failure) == ("20", "CLICK", None)
    assert [group.replies for group in found.groups] == [("I would press Go.",)]
    assert [request.turn for request in model.requests] == [1]


def test_no_element_is_an_answer_too() -> None:
    found = grounded({KEY: PersonAnswer(None, "CLICK")}, Scripted("I would scroll."))
    assert (found.decision.element_id, found.decision.failure, found.ran) == (None, None, True)


@pytest.mark.parametrize(
    ("answers", "failure"), [({}, "no_answer"), ({KEY: PersonAnswer("99", "CLICK")}, "unknown_element")]
)
def test_a_step_without_a_usable_answer_is_not_asked(answers, failure: str) -> None:
    model = Scripted()
    found = grounded(answers, model)
    assert (found.ran, found.decision.failure, found.reachable, model.requests) == (False, failure, None, [])


def test_a_model_that_says_nothing_leaves_nothing_to_ground() -> None:
    found = grounded({KEY: PersonAnswer("20", "CLICK")}, Scripted(CallError("refused", "no")))
    assert (found.ran, found.decision.element_id, found.decision.failure) == (True, None, "refused")


def test_a_call_without_an_answer_is_not_run() -> None:
    found = grounded({KEY: PersonAnswer("20", "CLICK")}, Scripted(CallError("timeout")))
    assert (found.ran, found.decision.failure) == (False, "timeout")


@pytest.mark.parametrize(("positives", "reachable"), [(("20",), True), ((), False)])
def test_a_person_can_name_any_right_element_that_there_is(positives, reachable: bool) -> None:
    assert grounded({KEY: PersonAnswer("20", "CLICK")}, Scripted("plan"), positives).reachable is reachable
