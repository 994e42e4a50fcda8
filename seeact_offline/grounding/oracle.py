"""Grounding by a person: for each step's turn-1 text somebody has said which element it means, and how it is operated.

The answers are read from a file, one JSON object a line with exactly these fields::

    {"annotation_id": "...", "action_uid": "...", "element_id": "123", "op": "TYPE", "value": "New York"}

`element_id` is null where the text means no element of the page; `op` is CLICK, TYPE, SELECT, or empty where the text
names none; `value` is empty or null where there is none. The model is still asked turn 1, so that its text stands beside
the answer in the predictions.

Source: SeeAct (arXiv 2401.01614v2) section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from seeact_offline.files.digest import file_digest
from seeact_offline.files.formats import FormatError, read_json, short, typed
from seeact_offline.grounding import Grounded, Prepared, QuestionOptions
from seeact_offline.grounding.asking import Question, Session, count_resized, decision, noted, reply
from seeact_offline.grounding.strategy import Asked, Opened, Option, Strategy
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


def _open(asked: Asked) -> Opened:
    path = asked.own["oracle_file"]
    if path is None:
        raise InputError("oracle_file", "a file of answers with grounding oracle", "none")
    grounding = OracleGrounding(asked.pack, asked.form, read_answers(path))
    return Opened(grounding, {"oracle_digest": file_digest(path)})


STRATEGY = Strategy(
    name="oracle",
    open=_open,
    turn2=None,
    options=(Option("oracle_file", "the elements a person chose, JSONL", read=Path, metavar="FILE"),),
)


# --- the file ---


_NotEmpty = Annotated[str, msgspec.Meta(min_length=1)]


def read_answers(path: Path) -> dict[StepKey, PersonAnswer]:
    """All lines of an oracle file. Raises InputError with the number of the line that is at fault."""
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise InputError("oracle_file", "a readable file", f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError("oracle_file", "UTF-8 text", f"the byte {byte:#04x} in {path}") from None
    answers: dict[StepKey, PersonAnswer] = {}
    seen: dict[StepKey, int] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"line {number} of {path}"
            key, answer = _read_line(line, where)
            if key in seen:
                raise InputError("oracle_file", "each step once", f"{key} again in {where}, after line {seen[key]}")
            answers[key], seen[key] = answer, number
    return answers


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A line of an oracle file."""

    annotation_id: _NotEmpty
    action_uid: _NotEmpty
    element_id: _NotEmpty | None
    op: str
    value: str | None

    def __post_init__(self) -> None:
        if self.op not in (*OPERATIONS, ""):
            raise FormatError(f"op to be {', '.join(OPERATIONS)} or empty", short(self.op))


def _read_line(line: str, where: str) -> tuple[StepKey, PersonAnswer]:
    row: Any = None
    try:
        row = read_json(line)
        found = typed(row, _Line)
    except FormatError as error:
        raise InputError("oracle_file", error.expected, f"{error.got} in {where}{_step_named(row)}") from None
    return StepKey(found.annotation_id, found.action_uid), PersonAnswer(found.element_id, found.op, found.value or "")


def _step_named(row: Any) -> str:
    """The step of a line that is at fault, as far as it names one."""
    ids = [row.get(name) for name in StepKey._fields] if isinstance(row, dict) else [None]
    return f", step {StepKey(*ids)}" if all(isinstance(name, str) and name for name in ids) else ""
