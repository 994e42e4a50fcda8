"""Grounding by a person: for each step's turn-1 text somebody has said which element it means, and how it is operated.

The answers are read from a file, one JSON object a line with exactly these fields::

    {"annotation_id": "...", "action_uid": "...", "element_id": "123", "op": "TYPE", "value": "New York"}

`element_id` is null where the text means no element of the page; `op` is CLICK, TYPE, SELECT, or empty where the text
names none; `value` is empty or null where there is none. The model is still asked turn 1, so that its text stands beside
the answer in the predictions.

Source: SeeAct (arXiv 2401.01614v2) section 4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seeact_offline.grounding import Grounded, Prepared, QuestionOptions
from seeact_offline.grounding.asking import Question, Session, count_resized, decision, noted, reply
from seeact_offline.grounding.ungrounded import UngroundedGrounding
from seeact_offline.prompting import PromptPack
from seeact_offline.records import (
    OPERATIONS,
    GroundingReply,
    InputError,
    Model,
    RowError,
    Step,
    StepError,
    StepKey,
)

FIELDS = ("annotation_id", "action_uid", "element_id", "op", "value")
ANSWER_FAILURES = (
    "no_answer",  # the file has no line for the step
    "unknown_element",  # its element is no candidate of the step
)


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """What a person says a turn-1 text means."""

    element_id: str | None
    # None: no element of the page
    op: str
    """One of OPERATIONS, or empty."""
    value: str = ""


class OracleGrounding:
    """Takes the element, operation and value from the answers; asks the model for the text only."""

    needs_ranking = False

    def __init__(self, pack: PromptPack, form: QuestionOptions | None, answers: Mapping[StepKey, PersonAnswer]) -> None:
        self._plan = UngroundedGrounding(pack, form)
        self.form = self._plan.form
        self._answers = answers

    def questions(self, prepared: Prepared) -> list[Question]:
        """The only one, of one turn. Raises RowError `bad_screenshot`."""
        return self._plan.questions(prepared)

    async def ground(self, prepared: Prepared, model: Model) -> Grounded:
        """A step without a usable answer is not asked. `reachable`: whether the step has a right element at all."""
        session = Session(model, prepared.step.key)
        try:
            answer = self._answer(prepared.step)
            (question,) = self.questions(prepared)
            talk = await session.converse(question)
        except StepError as error:
            return session.failed(error)
        # without a text there is nothing that the answer could be about
        read = GroundingReply(None, answer.op, answer.value) if talk.failure is None else _declined(talk.failure)
        said = reply(question, talk.texts, read, talk.detail)
        said = replace(said, element_id=answer.element_id if talk.failure is None else None)
        notes = noted(picture_resized=count_resized([question]))
        reachable = bool(prepared.step.truth.positives)
        return Grounded((said,), decision(said), session.usage, notes=notes, reachable=reachable)

    def _answer(self, step: Step) -> PersonAnswer:
        answer = self._answers.get(step.key)
        if answer is None:
            raise RowError("no_answer", "the oracle file has no line for this step")
        if answer.element_id is not None and answer.element_id not in {c.backend_node_id for c in step.candidates}:
            raise RowError("unknown_element", f"element {answer.element_id[:40]} of the oracle file is no candidate")
        return answer


def _declined(failure: str) -> GroundingReply:
    return GroundingReply(None, failure=failure)


# --- the file ---


def read_answers(path: Path) -> dict[StepKey, PersonAnswer]:
    """All lines of an oracle file. Raises InputError with the number of the line that is at fault."""
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise InputError(f"--oracle-file: expected a readable file, got {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"--oracle-file: expected UTF-8 text in {path}, got the byte {byte:#04x}") from None
    answers: dict[StepKey, PersonAnswer] = {}
    seen: dict[StepKey, int] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"--oracle-file: line {number} of {path}"
            key, answer = _read_line(line, where)
            if key in seen:
                raise InputError(f"{where}: expected each step once, got {key} again after line {seen[key]}")
            answers[key], seen[key] = answer, number
    return answers


def _read_line(line: str, where: str) -> tuple[StepKey, PersonAnswer]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: expected one JSON object, got {_short(line)}") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected one JSON object, got {_short(line)}")
    if set(row) != set(FIELDS):
        raise InputError(f"{where}: expected exactly the fields {', '.join(FIELDS)}, got {_short(', '.join(row))}")
    key = StepKey(_text(row, "annotation_id", where), _text(row, "action_uid", where))
    element = None if row["element_id"] is None else _text(row, "element_id", where)
    op, value = row["op"], row["value"]
    if op not in (*OPERATIONS, "") or not isinstance(op, str):
        raise InputError(f"{where}, step {key}: expected op to be {', '.join(OPERATIONS)} or empty, got {_short(op)}")
    if not isinstance(value, str | None):
        raise InputError(f"{where}, step {key}: expected value to be text or null, got {_short(value)}")
    return key, PersonAnswer(element, op, value or "")


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    text = row[name]
    if not isinstance(text, str) or not text:
        raise InputError(f"{where}: expected {name} to be a text of at least one character, got {_short(text)}")
    return text


def _short(found: object) -> str:
    return repr(found)[:80]
