"""Holds what strategies share: a question of one or two turns, and its conversation with a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from seeact_offline.grounding import GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.merging import Decision
from seeact_offline.models.client import WAITING, call_model
from seeact_offline.pages.screenshots import Crop, group_crop
from seeact_offline.prompting import PromptPack
from seeact_offline.records import (
    Box,
    Call,
    CallError,
    CropBox,
    GroundingReply,
    Message,
    Model,
    Operation,
    Picture,
    Reply,
    Request,
    Step,
    StepError,
    StepKey,
    Usage,
    letter,
)

NOTES = {
    "picture_resized": "a picture was made smaller to be sent; places on it are mapped back",
    "reply_reused": "a reply to the same question, paid for by another group or by another row of the table",
    "unknown_finish_reason": "a reply that the server ended for a reason that is not known; it was taken as it is",
}
"""Counts about any strategy's questions, with the meaning of each."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question: the texts of its turns, and the picture shown with each."""

    index: int
    """The group, from 0; a final round counts on."""
    offered: tuple[str, ...]
    """backend_node_ids in the order of their labels; empty where nothing is offered."""
    system: str
    turns: tuple[str, ...]
    """The user's texts: two, or one that holds both."""
    pictures: tuple[Picture | None, ...]
    """Shown with each turn; None: none, or for turn 2 the one above still holds."""
    ideal: tuple[str, ...] = ()
    """The ideal answers, turn by turn."""
    is_final_round: bool = False
    examples: tuple[Message, ...] = ()
    """Shown before the first turn: questions that somebody has asked, and how they were answered."""
    texts: tuple[str, ...] = ()
    """Text of each of `offered`; empty where the picture shows them instead."""
    labels: tuple[str, ...] = ()
    """Label of each of `offered` in an answer; empty: letters from A, the one after them meaning none."""
    reply_prefix: str = ""
    """Stands before a reply where the model is given it back, as the prompt pack says."""
    for_second: bool = False
    """See `Request.for_second`."""
    inserted: tuple[str, ...] | None = None
    """Turn 1's `Message.inserted`."""
    markup: int = 0
    """Turn 1's `Message.markup`."""
    alone: Question | None = None
    """The same question with a turn 1 of its own; set where turn 1 is shared."""


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question that was answered, put together again from the replies."""

    question: Question
    part: tuple[int, int, int, int] | None = None
    """Left, top, right and bottom of the page's part that it is about; None: that of its pictures."""
    act: str = ""
    """The reply's action, in the agent's language; empty where none was read, or the grounding has no such language."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A model's replies to one question."""

    texts: tuple[str, ...]
    """A reply a turn; fewer when it declined."""
    failure: str | None = None
    """Name of the way in which the model declined: refused, truncated, empty_reply."""
    detail: str = ""


Reader = Callable[[str], GroundingReply]
T = TypeVar("T")


# --- asking ---


async def in_thread(work: Callable[..., T], *arguments: object) -> T:
    """Runs `work` in a thread, so that other steps' calls continue while a page is read or a picture cut."""
    return await asyncio.to_thread(work, *arguments)


@dataclass
class Session:
    """One step's calls to a model: what it said, group by group, and what that cost."""

    model: Model
    key: StepKey
    replies: list[Reply] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    calls: list[Call] = field(default_factory=list)
    coming: tuple[Picture, ...] = ()
    """Pictures of later questions."""

    async def converse(self, question: Question, said: Sequence[str] = (), until: int | None = None) -> Conversation:
        """Asks the turns in order, from the one after those already answered (`said`) to
        turn `until` (default: the last).

        A model that declines (refuses, stops short) has answered, and the conversation says how. Raises CallError for a
        call without any answer; what was paid until then is in `usage`.
        """
        texts = list(said)
        try:
            for turn in range(len(texts) + 1, (until or len(question.turns)) + 1):
                request = Request(
                    messages=messages(question, texts),
                    key=self.key,
                    group=question.index,
                    turn=turn,
                    offered=question.offered,
                    for_second=question.for_second,
                    coming=self.coming,
                )
                completion = await call_model(self.model, request, "".join(question.ideal[turn - 1 : turn]))
                self.usage += completion.usage
                if completion.call is not None:
                    self.calls.append(Call(question.index, turn, completion.call))
                texts.append(completion.text)
        except CallError as error:
            self.usage += error.usage
            if error.call is not None:
                self.calls.append(Call(question.index, turn, error.call))
            if not error.answered:
                raise
            return Conversation(tuple(texts), error.name, error.detail)
        return Conversation(tuple(texts))

    async def ask(self, question: Question, read: Reader, said: Sequence[str] = ()) -> Reply:
        """The conversation, and what its last text means; kept in `replies`. Raises as `converse` does."""
        talk = await self.converse(question, said)
        meant = GroundingReply(None, failure=talk.failure) if talk.failure is not None else read(talk.texts[-1])
        self.replies.append(build_reply(question, talk.texts, meant, talk.detail))
        return self.replies[-1]

    async def ask_all(
        self, questions: Sequence[Question], read: Callable[[Question], Reader], said: Sequence[str] = ()
    ) -> None:
        """Asks one after the other. Replies that are still to come are awaited together; any
        other CallError ends it at once."""
        waiting = ""
        for number, question in enumerate(questions, 1):
            later = [picture for other in questions[number:] for picture in other.pictures]
            self.coming = tuple(picture for picture in later if picture is not None)
            try:
                await self.ask(question, read(question), said)
            except CallError as error:
                if error.name != WAITING:
                    raise
                # not the error itself, which holds this frame, and with it all pictures
                waiting = error.detail
        if waiting:
            raise CallError(WAITING, waiting)

    def failed(self, error: StepError, **more: Any) -> GroundingResult:
        """The step could not be carried out: the one place where its error becomes its named
        failure. `more`: as of `ended`."""
        return self.ended(Decision(None, "", "", error.name, error.detail, error.stage), ran=False, **more)

    def ended(self, decided: Decision, **more: Any) -> GroundingResult:
        """The result of the conversations; `more`: the other fields of `GroundingResult`."""
        return GroundingResult(tuple(self.replies), decided, self.usage, calls=tuple(self.calls), **more)


def build_reply(question: Question, texts: Sequence[str], read: GroundingReply, detail: str = "") -> Reply:
    """A question's conversation as it is recorded; the index chosen becomes the element that was offered there."""
    place = f"group {question.index}, options A to {letter(len(question.offered))}"
    if not question.offered:
        place = f"question {question.index}"
    elif question.labels:
        place = f"group {question.index}, labels {question.labels[0]} to {question.labels[-1]}"
    return Reply(
        group=question.index,
        offered=question.offered,
        replies=tuple(texts),
        element_id=None if read.choice is None else question.offered[read.choice],
        op=read.op,
        value=read.value,
        failure=read.failure,
        detail=(detail or place) if read.failure else "",
        is_final_round=question.is_final_round,
    )


def messages(question: Question, said: Sequence[str] = ()) -> tuple[Message, ...]:
    """The conversation up to the turn after those already answered. An empty system text is no message."""
    # ours where turn 1 tells what is not
    inserted = None if question.inserted is None else ()
    system = [Message("system", question.system, inserted=inserted)] if question.system else []
    first = Message("user", question.turns[0], question.pictures[0], question.inserted, question.markup)
    out = [*system, *question.examples, first]
    for turn, text in enumerate(said, 1):
        out += [
            Message("assistant", question.reply_prefix + text),
            Message("user", question.turns[turn], question.pictures[turn]),
        ]
    return tuple(out)


# --- ideal answers ---


def ideal_plan(step: Step) -> str:
    """The ideal first reply: the operation, in lines that the reader of turn 1 finds."""
    return f"The next action is known.\n{operation_lines(step.truth.operation)}"


def final_lines(element: str, operation: Operation) -> str:
    """The final answer, as prompts ask for it."""
    return f"ELEMENT: {element}\n{operation_lines(operation)}"


def operation_lines(operation: Operation) -> str:
    """A value's line breaks would end its line, so they become spaces."""
    return f"ACTION: {operation.op}\nVALUE: {' '.join(operation.value.splitlines()) or 'None'}"


# --- what is shown, and one turn 1 for all groups of a step ---


def share_turn1(question: Question, prepared: PreparedStep, pack: PromptPack, form: QuestionOptions) -> Question:
    """The question with the step's own turn 1 in place of its group's: the whole page, as a picture or as markup."""
    step = prepared.step
    turn1 = pack.render_turn1(step.task, step.history, "" if form.image else page_html(prepared))
    return replace(
        question,
        turns=(turn1, *question.turns[1:]),
        pictures=(whole_page(prepared, form), *question.pictures[1:]),
        ideal=(ideal_plan(step), *question.ideal[1:]),
        alone=question,
    )


def whole_page(prepared: PreparedStep, form: QuestionOptions) -> Crop | None:
    """The picture of all of the page. None where none is to be shown; raises RowError `bad_screenshot`."""
    if not form.image:
        return None
    width, height = prepared.picture.size
    return prepared.picture.crop(CropBox(0, 0, width, height), max_side=form.max_side)


def group_picture(prepared: PreparedStep, boxes: Sequence[Box], form: QuestionOptions) -> Crop | None:
    """The part of the page that a group is shown. None where none is to be shown; raises RowError `bad_screenshot`."""
    if not form.image:
        return None
    return prepared.picture.crop(group_crop(boxes, prepared.picture.size), max_side=form.max_side)


def page_html(prepared: PreparedStep) -> str:
    """The page's markup pruned around its ranked candidates, or around all of them where nothing was ranked."""
    ranked = [candidate.backend_node_id for candidate in prepared.ranked]
    return prepared.page.describe_group(ranked or [c.backend_node_id for c in prepared.step.candidates]).html


def count_resized(questions: Sequence[Question]) -> int:
    """Counts the different pictures that were made smaller to be sent."""
    shown = [picture for question in questions for picture in question.pictures if picture is not None]
    return len({picture.key for picture in shown if getattr(picture, "resized", False)})


def nonzero_notes(**counts: int) -> dict[str, int]:
    """The counts that are not zero, sorted by name, as `GroundingResult.notes` holds them."""
    return {name: count for name, count in sorted(counts.items()) if count}
