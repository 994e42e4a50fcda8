"""A person's elements: the file, and what is made of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.files import redaction
from seeact_offline.grounding import GroundingResult
from seeact_offline.grounding.conversation import Conversation
from seeact_offline.grounding.oracle import (
    OracleGrounding,
    PersonAnswer,
    answer_line,
    read_answers,
    read_turn1,
    turn1_sha256,
)
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


def grounded(answers: dict[StepKey, PersonAnswer], model: Scripted, positives=("20",), turn1=None) -> GroundingResult:
    grounding = OracleGrounding(open_pack("seeact", "oracle"), None, answers, turn1)
    return asyncio.run(grounding.ground(prepared(a_step(positives)), model))


def test_answers_are_read_by_step(tmp_path: Path) -> None:
    other = ROW | {"action_uid": "other", "element_id": None, "op": "", "value": None}
    answers = read_answers(written(tmp_path, ROW, "", other))
    assert answers == {KEY: PersonAnswer("20", "TYPE", "New York"), StepKey("task", "other"): PersonAnswer(None, "")}


@pytest.mark.parametrize(
    "answer",
    [
        PersonAnswer("20", "TYPE", "half \ud83d of a pair"),
        PersonAnswer(None, "", "", turn1_sha256("the text"), "Ann", 12.5),
        PersonAnswer("20", "CLICK", seconds=0.0),
    ],
)
def test_an_answer_that_is_written_reads_back(tmp_path: Path, answer: PersonAnswer) -> None:
    assert read_answers(written(tmp_path, answer_line(KEY, answer))) == {KEY: answer}


def test_a_value_may_hold_half_of_a_surrogate_pair(tmp_path: Path) -> None:
    assert read_answers(written(tmp_path, ROW | {"value": "\ud83d"}))[KEY].value == "\ud83d"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "expected a JSON object, got '{' in line 2 of .*"),
        ("[1]", r"expected an object, got \[1\] in line 2 of .*"),
        (
            {"annotation_id": "task"},
            "expected exactly the fields annotation_id, .*, value, and perhaps turn1_sha256, annotator, seconds, got 'annotation_id' in line 2 of .*",
        ),
        (
            ROW | {"note": "x"},
            "expected exactly the fields .*, and perhaps turn1_sha256, annotator, seconds, got .* in line 2 of .*",
        ),
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
        (
            ROW | {"turn1_sha256": "E3B0"},
            "expected turn1_sha256 to be 64 digits from 0 to 9 and a to f, got 'E3B0' in line 2 of .*, step task_step",
        ),
        (
            ROW | {"action_uid": "b", "seconds": -1},
            "expected seconds to be a number .*, got -1 in line 2 of .*, step task_b",
        ),
        (ROW, "expected each step once, got task_step again in line 2 of .*, after line 1 of .*"),
    ],
)
def test_a_wrong_line_is_refused_in_one_sentence(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^oracle_file: {message}$") as caught:
        read_answers(written(tmp_path, ROW, line))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cannot read "):
        read_answers(tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"a\xff")
    with pytest.raises(InputError, match=r"^oracle_file: expected UTF-8 text, got the byte 0xff in .*bytes.jsonl"):
        read_answers(tmp_path / "bytes.jsonl")


GO = PersonAnswer("20", "CLICK")
JUDGED = PersonAnswer("20", "CLICK", turn1_sha256=turn1_sha256("plan"))
PLAN = {KEY: Conversation(("plan",))}
UNBOUND = {"oracle_unbound": 1}


@pytest.mark.parametrize(
    ("answer", "said", "turn1", "element", "failure", "ran", "notes"),
    [
        (GO, "plan", None, "20", None, True, UNBOUND),
        (JUDGED, "plan", None, "20", None, True, {}),
        (JUDGED, "another", None, None, "oracle_of_another_text", False, {}),
        (PersonAnswer(None, "CLICK"), "I would scroll.", None, None, None, True, UNBOUND),
        # a step without a usable answer is not asked
        (None, None, None, None, "no_answer", False, {}),
        (PersonAnswer("99", "CLICK"), None, None, None, "unknown_element", False, {}),
        (GO, CallError("refused", "no"), None, None, "refused", True, {}),
        (GO, CallError("timeout"), None, None, "timeout", False, {}),
        # the texts of a finished run: no model is asked
        (JUDGED, None, PLAN, "20", None, True, {}),
        (JUDGED, None, {KEY: Conversation(("another",))}, None, "oracle_of_another_text", False, {}),
        (GO, None, {}, None, "no_recorded_reply", False, {}),
        (GO, None, {KEY: Conversation((), "refused")}, None, "refused", True, {}),
        # nobody need judge what a model declined to say
        (None, None, {KEY: Conversation((), "refused")}, None, "refused", True, {}),
    ],
)
def test_the_persons_answer_counts_or_the_reason_against_it(answer, said, turn1, element, failure, ran, notes) -> None:
    model = Scripted(*([] if said is None else [said]))
    found = grounded({} if answer is None else {KEY: answer}, model, turn1=turn1)
    assert (found.decision.element_id, found.decision.failure, found.ran) == (element, failure, ran)
    assert (dict(found.notes), found.usage.calls) == (notes, int(isinstance(said, str)))
    assert [request.turn for request in model.requests] == ([] if said is None else [1])


def test_the_text_is_recorded_also_where_the_answer_was_given_for_another() -> None:
    for said in ("plan", "another"):
        found = grounded({KEY: JUDGED}, Scripted(said))
        assert [group.replies for group in found.groups] == [(said,)]
    assert turn1_sha256("another") in found.decision.detail


@pytest.mark.parametrize(("positives", "reachable"), [(("20",), True), ((), False)])
def test_a_person_can_name_any_right_element_that_there_is(positives, reachable: bool) -> None:
    ours = OracleGrounding(open_pack("seeact", "oracle"), None, {})
    assert ours.reaches(prepared(a_step(positives))) is reachable


# --- bound to the text that was judged -------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "data"), [(" I would\n\nNow. ", b" I would\n\nNow. "), ("\ud83d", b"\xed\xa0\xbd")])
def test_the_digest_is_that_of_the_text_in_utf8(said: str, data: bytes) -> None:
    assert turn1_sha256(said) == hashlib.sha256(data).hexdigest()


def test_a_digest_is_read(tmp_path: Path) -> None:
    digest = turn1_sha256("plan")
    assert read_answers(written(tmp_path, ROW | {"turn1_sha256": digest}))[KEY].turn1_sha256 == digest


def test_the_digest_is_that_of_the_text_as_it_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_hidden", set())
    redaction.hide("a-secret-key")
    assert turn1_sha256("Type a-secret-key here.") == turn1_sha256("Type *** here.")


# --- the texts of a finished run -------------------------------------------------------------------------------------


def recorded(folder: Path, *groups: dict[str, Any]) -> Path:
    row = {"annotation_id": "task", "action_uid": "step", "groups": groups}
    (folder / "predictions.jsonl").write_text(json.dumps(row) + "\n")
    return folder


def test_nothing_is_shown_where_nothing_is_asked() -> None:
    grounding = OracleGrounding(open_pack("seeact", "oracle"), None, {}, {})
    assert (grounding.questions(prepared(a_step())), grounding.form.image) == ([], False)


def test_groups_that_share_a_turn_1_have_one_text(tmp_path: Path) -> None:
    run = recorded(tmp_path, *({"group": n, "offered": [f"{n}"], "replies": ["plan", f"A{n}"]} for n in (0, 1)))
    assert read_turn1(run) == {KEY: Conversation(("plan",))}


def test_groups_with_a_turn_1_each_are_refused_in_one_sentence(tmp_path: Path) -> None:
    run = recorded(tmp_path, *({"group": n, "replies": [f"plan {n}", "A"]} for n in (0, 1)))
    with pytest.raises(InputError, match=r" has 2 turn-1 texts; name a run that asked turn 1 once a step \(.*\)$"):
        read_turn1(run)


@pytest.mark.parametrize(
    ("group", "read"),
    [
        ({"replies": [], "failure": "refused"}, {KEY: Conversation((), "refused")}),
        ({"replies": [], "failure": None}, {}),
        ({"replies": ["plan"], "failure": "truncated"}, {KEY: Conversation(("plan",))}),
    ],
)
def test_a_reply_to_turn_1_counts_whatever_came_of_turn_2(tmp_path: Path, group: dict[str, Any], read: object) -> None:
    assert read_turn1(recorded(tmp_path, {"group": 0, **group})) == read


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cannot read .*predictions.jsonl: No such"):
        read_turn1(tmp_path)
