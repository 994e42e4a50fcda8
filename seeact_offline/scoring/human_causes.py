"""Causes of loss that people give, in addition to the computed ones.

A file with one JSON object a line, of which the last two fields may be left out::

    {"annotation_id": "...", "action_uid": "...", "answer_sha256": "e3b0c442...", "cause": "wrong_annotation",
     "note": "both buttons lead there", "annotator": "Ann"}

`cause` is one of HUMAN_CAUSES. `answer_sha256` binds the line to the answer that was judged (`answer_digest`), so that
one file may hold the causes of several runs, and none is taken for a run that answered otherwise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from seeact_offline.files.formats import FormatError, short
from seeact_offline.files.named import read_rows
from seeact_offline.records import InputError, Prediction, StepKey, StepScore
from seeact_offline.scoring.waterfall import HUMAN_CAUSES, LEFT_OUT, SUCCESS


class AnswerId(NamedTuple):
    """The answer that a cause is about."""

    key: StepKey
    answer_sha256: str


@dataclass(frozen=True, slots=True)
class HumanCause:
    """A cause of loss that a person gives."""

    cause: str
    """One of HUMAN_CAUSES."""
    note: str = ""
    annotator: str = ""


@dataclass(frozen=True, slots=True)
class Relabelling:
    """Scores with people's causes, and the numbers of causes used and not used."""

    scores: list[StepScore]
    counts: dict[str, int]
    """Numbers of causes: `used`; `changed`, those that were computed otherwise; `not_lost`, of steps that succeed or
    are left out."""


def answer_digest(prediction: Prediction) -> str:
    """SHA-256 of the answer and of all replies of the model, as 64 hexadecimal digits."""
    replies = [group.replies for group in prediction.groups]
    answered = [prediction.element_id, prediction.op, prediction.value, prediction.point, prediction.failure, replies]
    return hashlib.sha256(json.dumps(answered).encode()).hexdigest()


def relabelled(
    scores: Sequence[StepScore], predictions: Sequence[Prediction], causes: Mapping[AnswerId, HumanCause]
) -> Relabelling:
    """Adds persons' causes. A step that succeeds was lost to nothing and stays as it is."""
    with_causes, used, changed, not_lost = [], 0, 0, 0
    for score, prediction in zip(scores, predictions, strict=True):
        human = causes.get(AnswerId(score.key, answer_digest(prediction)))
        is_lost = score.outcome not in (SUCCESS, LEFT_OUT)
        used += human is not None and is_lost
        not_lost += human is not None and not is_lost
        changed += human is not None and is_lost and human.cause != score.outcome
        with_causes.append(score if human is None or not is_lost else replace(score, person_cause=human.cause))
    return Relabelling(with_causes, {"used": used, "changed": changed, "not_lost": not_lost})


# --- the file ---

_NotEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    annotation_id: _NotEmpty
    action_uid: _NotEmpty
    answer_sha256: _NotEmpty
    cause: str
    note: str = ""
    annotator: str = ""

    def __post_init__(self) -> None:
        check_cause(self.cause)


def check_cause(cause: str) -> None:
    """Raises FormatError unless it is one of HUMAN_CAUSES."""
    if cause not in HUMAN_CAUSES:
        raise FormatError(f"cause to be one of {', '.join(HUMAN_CAUSES)}", short(cause))


def cause_line(judged: AnswerId, cause: HumanCause) -> str:
    """The JSON of one line; `read_causes` is its reverse."""
    row = {**judged.key._asdict(), "answer_sha256": judged.answer_sha256, "cause": cause.cause}
    optional = {"note": cause.note, "annotator": cause.annotator}
    return json.dumps({**row, **{name: text for name, text in optional.items() if text}})


def read_causes(path: Path) -> dict[AnswerId, HumanCause]:
    """Reads causes in the order of the file. Raises InputError with the number of the line that is at fault."""
    causes: dict[AnswerId, HumanCause] = {}
    for row, where in read_rows("causes", path, _Line):
        judged = AnswerId(StepKey(row.annotation_id, row.action_uid), row.answer_sha256)
        if judged in causes:
            raise InputError("causes", "each answer once", f"that of {judged.key} again in {where}")
        causes[judged] = HumanCause(row.cause, row.note, row.annotator)
    return causes
