"""Grounding by a person: for each step's turn-1 text somebody has said which element it means, and how it is operated.

The answers are read from a file, one JSON object a line with these fields, of which the last three may be left out::

    {"annotation_id": "...", "action_uid": "...", "element_id": "123", "op": "TYPE", "value": "New York",
     "turn1_sha256": "e3b0c442...", "annotator": "Ann", "seconds": 12.5}

`element_id` is null where the text means no element of the page; `op` is CLICK, TYPE, SELECT, or empty where the
text names none; `value` is empty or null where there is none. `annotator` is who says so, and `seconds` how long
it took; neither changes a figure.

`turn1_sha256` binds the answer to the text that was judged. It is the SHA-256, as 64 lower-case hexadecimal digits, of
the model's reply to turn 1 exactly as `predictions.jsonl` holds it (`groups[].replies[0]` after JSON decoding, nothing
stripped), in UTF-8; half of a surrogate pair is encoded as Python's `surrogatepass` does. If the run's reply is
another text, the step fails as `oracle_of_another_text`. An answer without a digest is used, but counted as
`oracle_unbound`: files from before there was a digest cannot be repaired, because nobody knows any more which text was
judged, but the report must say so.

The model is asked turn 1, so that its text stands beside the answer in the predictions. A model rarely says the same
twice, so `replay_turn1` takes the texts of a finished run instead and asks no model. Any grounding's run will do if it
asked turn 1 once a step in a message of its own; results name that run's model.

Source: SeeAct (arXiv 2401.01614v2) section 4.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec

from seeact_offline.files.digest import file_digest
from seeact_offline.files.formats import FormatError, short
from seeact_offline.files.named import read_rows
from seeact_offline.files.redaction import redact
from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import (
    Conversation,
    Question,
    Session,
    build_reply,
    count_resized,
    in_thread,
    nonzero_notes,
)
from seeact_offline.grounding.strategy import Option, Strategy, StrategyInputs, StrategyInstance
from seeact_offline.grounding.ungrounded import UngroundedGrounding
from seeact_offline.merging import decision
from seeact_offline.models.replay import Recording, read_recordings
from seeact_offline.prompting import PromptPack
from seeact_offline.records import (
    OPERATIONS,
    CallError,
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
    "oracle_of_another_text",  # it was given for another turn-1 text
)
"""Reasons why a step has no answer of a person. Like a call that failed, each leaves the step not run."""
NOTHING_ASKED = Question(0, (), "", (), ())
"""Stands for the question where a finished run's text is judged."""


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """A person's reading of a turn-1 text."""

    element_id: str | None
    """None: no element of the page."""
    op: str
    """One of OPERATIONS, or empty."""
    value: str = ""
    turn1_sha256: str | None = None
    """The digest of the text that was judged; None: not known."""
    annotator: str = ""
    """Name of the person; empty where it is not known."""
    seconds: float | None = None
    """Time that the person took; None where it is not known."""


NO_ANSWER = PersonAnswer(None, "")


class OracleGrounding(Grounding):
    """Takes the element, operation and value from the answers; asks the model for the text only."""

    needs_ranking = False

    def __init__(
        self,
        pack: PromptPack,
        form: QuestionOptions | None,
        answers: Mapping[StepKey, PersonAnswer],
        turn1: Mapping[StepKey, Conversation] | None = None,
    ) -> None:
        """`turn1`: what a finished run's model said; None: the model is inputs."""
        self._plan = UngroundedGrounding(pack, form)
        self.form = self._plan.form if turn1 is None else replace(self._plan.form, image=False)
        self._answers = answers
        self._turn1 = turn1

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The only one, of one turn; none where no model is inputs. Raises RowError `bad_screenshot`."""
        return self._plan.questions(prepared) if self._turn1 is None else []

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        """A step without a usable answer is not inputs."""
        session = Session(model, prepared.step.key)
        question = NOTHING_ASKED
        try:
            talk = None if self._turn1 is None else self._turn1.get(prepared.step.key)
            if talk is None and self._turn1 is not None:
                raise CallError("no_recorded_reply", "the run that is replayed holds no reply to turn 1 of this step")
            # nobody was asked about a text that the model declined to write
            answer = NO_ANSWER if talk is not None and talk.failure is not None else self._answer(prepared.step)
            if talk is None:
                (question,) = await in_thread(self.questions, prepared)
                talk = await session.converse(question)
        except StepError as error:
            return session.failed(error)
        resized = count_resized([question])
        if talk.failure is not None:
            # without a text there is nothing that the answer could be about
            declined = build_reply(question, talk.texts, GroundingReply(None, failure=talk.failure), talk.detail)
            session.replies.append(declined)
            return session.ended(decision(declined), notes=nonzero_notes(picture_resized=resized))
        digest = turn1_sha256(talk.texts[0])
        if answer.turn1_sha256 not in (None, digest):
            detail = f"the oracle file judged the text {answer.turn1_sha256}, the run's is {digest}"
            another = RowError("oracle_of_another_text", detail)
            session.replies.append(
                build_reply(question, talk.texts, GroundingReply(None, failure=another.name), detail)
            )
            return session.failed(another)
        reply = build_reply(question, talk.texts, GroundingReply(None, answer.op, answer.value))
        reply = msgspec.structs.replace(reply, element_id=answer.element_id)
        notes = nonzero_notes(picture_resized=resized, oracle_unbound=int(answer.turn1_sha256 is None))
        session.replies.append(reply)
        return session.ended(decision(reply), notes=notes)

    def reaches(self, prepared: PreparedStep) -> bool:
        """Tells whether the page has a right element at all."""
        return bool(prepared.step.truth.positives)

    def _answer(self, step: Step) -> PersonAnswer:
        answer = self._answers.get(step.key)
        if answer is None:
            raise RowError("no_answer", "the oracle file has no line for this step")
        if answer.element_id is not None and answer.element_id not in {c.backend_node_id for c in step.candidates}:
            raise RowError("unknown_element", f"element {answer.element_id[:40]} of the oracle file is no candidate")
        return answer


def turn1_sha256(text: str) -> str:
    """The digest that binds an answer to a turn-1 text. Secrets are blotted out first,
    as they are in the predictions."""
    return hashlib.sha256(redact(text).encode("utf-8", "surrogatepass")).hexdigest()


def _open(inputs: StrategyInputs) -> StrategyInstance:
    path, run = inputs.own["oracle_file"], inputs.own["replay_turn1"]
    if path is None:
        raise InputError("oracle_file", sentence="grounding oracle needs `oracle_file`, a file of answers")
    answers, identity = read_answers(path), {"oracle_digest": file_digest(path)}
    if run is None:
        return StrategyInstance(OracleGrounding(inputs.pack, inputs.form, answers), identity)
    grounding = OracleGrounding(inputs.pack, inputs.form, answers, read_turn1(run))
    return StrategyInstance(grounding, identity | {"turn1_digest": file_digest(run / PREDICTIONS)}, replayed=run)


STRATEGY = Strategy(
    name="oracle",
    open=_open,
    turn2=None,
    options=(
        Option("oracle_file", "the elements a person chose, JSONL", read=Path, metavar="FILE"),
        Option("replay_turn1", "take the turn-1 texts of a finished run and ask no model", read=Path, metavar="RUN"),
    ),
    is_human=True,
    notes={"oracle_unbound": "a person's answer without turn1_sha256: nobody knows which turn-1 text it was given for"},
)


# --- the texts of a finished run ---

PREDICTIONS = "predictions.jsonl"


def read_turn1(run: Path) -> dict[StepKey, Conversation]:
    """A run's replies to turn 1, for each step where the model said or declined something.

    Raises InputError for a run that cannot be read, or with several turn-1 texts of a step.
    """
    path = run / PREDICTIONS
    try:
        recorded = read_recordings(path)
    except InputError as error:
        raise error.renamed("replay_turn1") from None
    conversations = {
        key: _one_turn1(list(groups.values()), f"step {key} of {path}") for key, groups in recorded.items()
    }
    return {key: talk for key, talk in conversations.items() if talk is not None}


def _one_turn1(groups: Sequence[Recording], where: str) -> Conversation | None:
    """The step's one turn-1 text; None where the run has no answer of the model."""
    texts = {group.replies[0] for group in groups if group.replies}
    if len(texts) > 1:
        wanted = "a run that asked turn 1 once a step (ungrounded, oracle, attributes, pixel or batching shared-turn1)"
        raise InputError("replay_turn1", sentence=f"{where} has {len(texts)} turn-1 texts; name {wanted}")
    if texts:
        return Conversation((texts.pop(),))
    declined = next((group.failure for group in groups if group.failure in CallError.ANSWERED), None)
    return None if declined is None else Conversation((), declined)


# --- the file ---


_NotEmpty = Annotated[str, msgspec.Meta(min_length=1)]


def read_answers(path: Path) -> dict[StepKey, PersonAnswer]:
    """All lines of an oracle file. Raises InputError with the number of the line that is at fault."""
    answers: dict[StepKey, PersonAnswer] = {}
    seen: dict[StepKey, str] = {}
    for row, where in read_rows("oracle_file", path, _Line):
        key = StepKey(row.annotation_id, row.action_uid)
        if key in seen:
            raise InputError("oracle_file", "each step once", f"{key} again in {where}, after {seen[key]}")
        answers[key] = PersonAnswer(
            row.element_id, row.op, row.value or "", row.turn1_sha256, row.annotator, row.seconds
        )
        seen[key] = where
    return answers


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A line of an oracle file."""

    annotation_id: _NotEmpty
    action_uid: _NotEmpty
    element_id: _NotEmpty | None
    op: str
    value: str | None
    turn1_sha256: str | None = None
    annotator: str = ""
    seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if self.op not in (*OPERATIONS, ""):
            raise FormatError(f"op to be {', '.join(OPERATIONS)} or empty", short(self.op))
        if self.turn1_sha256 is not None and not re.fullmatch("[0-9a-f]{64}", self.turn1_sha256):
            raise FormatError("turn1_sha256 to be 64 digits from 0 to 9 and a to f", short(self.turn1_sha256))


def answer_line(key: StepKey, answer: PersonAnswer) -> str:
    """The JSON of one line of an oracle file; `read_answers` is its reverse."""
    row = asdict(answer)
    optional = {name: row.pop(name) for name in ("turn1_sha256", "annotator", "seconds")}
    # ASCII only, as half of a surrogate pair has no UTF-8
    return json.dumps(
        {**key._asdict(), **row, **{name: value for name, value in optional.items() if value not in (None, "")}}
    )
