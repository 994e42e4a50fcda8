"""What the strategies share: a question of one or two turns, its conversation with a model, and the merging of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

from seeact_offline.grounding import Decision, Grounded, Prepared, QuestionOptions
from seeact_offline.models.told import ask_told
from seeact_offline.pages.screenshots import Crop, group_crop
from seeact_offline.prompting import PromptPack
from seeact_offline.records import (
    Box,
    CallError,
    CropBox,
    GroundingReply,
    MergeRule,
    Message,
    Model,
    Operation,
    Picture,
    RankedCandidate,
    Reply,
    Request,
    RowError,
    Step,
    StepError,
    StepKey,
    Usage,
    letter,
)
from seeact_offline.tokens import count_words, visual_tokens

NOTES = {
    "picture_resized": "a picture was made smaller to be sent; places on it are mapped back",
    "reply_reused": "a reply to the same question, paid for by another row of the table or by another group",
}
"""What may be counted of any strategy's questions, and what each count means."""


@dataclass(frozen=True, slots=True)
class Question:
    """Something to be asked: the texts of its turns and what is shown with each."""

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
    """What one who knows the truth would answer, turn by turn."""
    is_final_round: bool = False
    texts: tuple[str, ...] = ()
    """How each of `offered` is written; empty where the picture shows them instead."""
    labels: tuple[str, ...] = ()
    """What stands for each of `offered` in an answer; empty: letters from A, the one after them meaning none."""
    alone: Question | None = None
    """Where turn 1 is shared: the same with a turn 1 of its own."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a model said to one question."""

    texts: tuple[str, ...]
    """A reply a turn; fewer when it declined."""
    failure: str | None = None
    """How the model declined: refused, truncated, empty_reply."""
    detail: str = ""


Reader = Callable[[str], GroundingReply]


# --- asking ---


@dataclass
class Session:
    """One step's calls to a model: what it said, group by group, and what that cost."""

    model: Model
    key: StepKey
    replies: list[Reply] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    async def converse(self, question: Question, said: Sequence[str] = (), until: int | None = None) -> Conversation:
        """Asks the turns in order, from the one after those already answered (`said`) to turn `until` (default: the last).

        A model that declines (refuses, stops short) has answered, and the conversation says how. Raises CallError for a call
        without any answer; what was paid until then is in `usage`.
        """
        texts = list(said)
        try:
            for turn in range(len(texts) + 1, (until or len(question.turns)) + 1):
                request = Request(messages(question, texts), self.key, question.index, turn, question.offered)
                completion = await ask_told(self.model, request, "".join(question.ideal[turn - 1 : turn]))
                self.usage += completion.usage
                texts.append(completion.text)
        except CallError as error:
            self.usage += error.usage
            if not error.answered:
                raise
            return Conversation(tuple(texts), error.name, error.detail)
        return Conversation(tuple(texts))

    async def ask(self, question: Question, read: Reader, said: Sequence[str] = ()) -> Reply:
        """The conversation, and what its last text means; kept in `replies`. Raises as `converse` does."""
        talk = await self.converse(question, said)
        meant = GroundingReply(None, failure=talk.failure) if talk.failure is not None else read(talk.texts[-1])
        self.replies.append(reply(question, talk.texts, meant, talk.detail))
        return self.replies[-1]

    def failed(self, error: StepError, reachable: bool | None = None) -> Grounded:
        """The step could not be carried out: the one place where its error becomes its named failure."""
        decided = Decision(None, "", "", error.name, error.detail)
        return Grounded(tuple(self.replies), decided, self.usage, ran=False, reachable=reachable)


def reply(question: Question, texts: Sequence[str], read: GroundingReply, detail: str = "") -> Reply:
    """A question's conversation as it is recorded; the index chosen becomes the element that was offered there."""
    return Reply(
        group=question.index,
        offered=question.offered,
        replies=tuple(texts),
        element_id=None if read.choice is None else question.offered[read.choice],
        op=read.op,
        value=read.value,
        failure=read.failure,
        detail=(detail or _place(question)) if read.failure else "",
        is_final_round=question.is_final_round,
    )


def messages(question: Question, said: Sequence[str] = ()) -> tuple[Message, ...]:
    """The conversation up to the turn after those already answered."""
    out = [Message("system", question.system), Message("user", question.turns[0], question.pictures[0])]
    for turn, text in enumerate(said, 1):
        out += [Message("assistant", text), Message("user", question.turns[turn], question.pictures[turn])]
    return tuple(out)


def _place(question: Question) -> str:
    if not question.offered:
        return f"question {question.index}"
    if question.labels:
        return f"group {question.index}, labels {question.labels[0]} to {question.labels[-1]}"
    return f"group {question.index}, options A to {letter(len(question.offered))}"


# --- what one who knows the truth would say ---


def plan_ideal(step: Step) -> str:
    """The first reply of one who knows the operation, in lines that a plan's reader finds."""
    return f"The next action is known.\n{operation_lines(step.truth.operation)}"


def final_lines(element: str, operation: Operation) -> str:
    """The final answer, as prompts ask for it."""
    return f"ELEMENT: {element}\n{operation_lines(operation)}"


def operation_lines(operation: Operation) -> str:
    """A value's line breaks would end its line, so they become spaces."""
    return f"ACTION: {operation.op}\nVALUE: {' '.join(operation.value.splitlines()) or 'None'}"


# --- a page's candidates in groups ---


class GroupStrategy(Protocol):
    """A strategy that offers the ranked candidates group by group."""

    @property
    def form(self) -> QuestionOptions: ...

    @property
    def merge_rule(self) -> MergeRule: ...

    def questions(self, prepared: Prepared) -> list[Question]:
        """One a group."""

    def final_round(self, prepared: Prepared, picks: Sequence[str], index: int) -> Question:
        """The groups' picks among themselves."""

    def read(self, question: Question) -> Reader:
        """How the question's last reply is read."""


async def ground_by_groups(strategy: GroupStrategy, prepared: Prepared, model: Model) -> Grounded:
    """Asks every group, then merges by the rule. With a shared turn 1 the first group's is asked once, for all."""
    session, rule = Session(model, prepared.step.key), strategy.merge_rule
    try:
        questions = strategy.questions(prepared)
        opening = await _opening(strategy.form, questions, session)
        if opening.failure is not None:
            return _declined(questions[0], opening, session.usage)
        for question in questions:
            await session.ask(question, strategy.read(question), opening.texts)
        picks = [r.element_id for r in session.replies if r.element_id is not None]
        if rule == "final-round" and len(picks) > 1:
            questions.append(strategy.final_round(prepared, picks, len(session.replies)))
            await session.ask(questions[-1], strategy.read(questions[-1]), opening.texts)
    except StepError as error:
        return session.failed(error)
    ranked = [candidate.backend_node_id for candidate in prepared.ranked]
    notes = noted(picture_resized=count_resized(questions), **_price_of_sharing(questions, session.replies))
    return Grounded(tuple(session.replies), merge(session.replies, rule, ranked), session.usage, notes=notes)


async def _opening(form: QuestionOptions, questions: Sequence[Question], session: Session) -> Conversation:
    """What all groups go on from: nothing, or the reply to the one turn 1 of the step."""
    if not form.shared_turn1 or not questions:
        return Conversation(())
    return await session.converse(questions[0], until=1)


def _declined(question: Question, opening: Conversation, usage: Usage) -> Grounded:
    """The model would not say anything of the page: that is its answer to every group."""
    only = reply(question, (), GroundingReply(None, failure=opening.failure), opening.detail)
    return Grounded((only,), decision(only), usage)


# --- what is shown, and one turn 1 for all groups of a step ---


def share_turn1(question: Question, prepared: Prepared, pack: PromptPack, form: QuestionOptions) -> Question:
    """The question with the step's own turn 1 in place of its group's: the whole page, as a picture or as markup."""
    step = prepared.step
    turn1 = pack.render_turn1(step.task, step.history, "" if form.image else page_html(prepared))
    return replace(
        question,
        turns=(turn1, *question.turns[1:]),
        pictures=(whole_page(prepared, form), *question.pictures[1:]),
        ideal=(plan_ideal(step), *question.ideal[1:]),
        alone=question,
    )


def whole_page(prepared: Prepared, form: QuestionOptions) -> Crop | None:
    """The picture of all of the page. None where none is to be shown; raises RowError `bad_screenshot`."""
    if not form.image:
        return None
    width, height = prepared.picture.size
    return prepared.picture.crop(CropBox(0, 0, width, height), max_side=form.max_side)


def group_picture(prepared: Prepared, boxes: Sequence[Box], form: QuestionOptions) -> Crop | None:
    """The part of the page that a group is shown. None where none is to be shown; raises RowError `bad_screenshot`."""
    if not form.image:
        return None
    return prepared.picture.crop(group_crop(boxes, prepared.picture.size), max_side=form.max_side)


def page_html(prepared: Prepared) -> str:
    """The page's markup pruned around its ranked candidates, or around all of them where nothing was ranked."""
    ranked = [candidate.backend_node_id for candidate in prepared.ranked]
    return prepared.page.describe_group(ranked or [c.backend_node_id for c in prepared.step.candidates]).html


def count_resized(questions: Sequence[Question]) -> int:
    """How many different pictures were made smaller to be sent."""
    shown = [picture for question in questions for picture in question.pictures if picture is not None]
    return len({picture.key for picture in shown if getattr(picture, "resized", False)})


def _price_of_sharing(questions: Sequence[Question], replies: Sequence[Reply]) -> dict[str, int]:
    """What the calls of a shared turn 1 come to, and those that a turn 1 a group would have taken.

    Prompt tokens are estimates by the rules of `tokens`, on both sides, with the shared reply standing for those of the
    groups; they are left out where a picture's size is not known. Empty where nothing was shared.
    """
    alone = [question.alone for question in questions if question.alone is not None]
    if not alone:
        return {}
    calls = {"shared_turn1": 1, "calls_if_per_group": sum(len(question.turns) for question in alone)}
    said = [one.replies for one in replies]
    shared = [prompt_tokens(questions[0], 1, said[0])]
    shared += [prompt_tokens(q, 2, texts) for q, texts in zip(questions, said, strict=True)]
    single = [prompt_tokens(q, turn, texts) for q, texts in zip(alone, said, strict=True) for turn in (1, 2)]
    if None in shared or None in single:
        return calls
    return calls | {
        "estimated_prompt_tokens": sum(filter(None, shared)),
        "estimated_prompt_tokens_if_per_group": sum(filter(None, single)),
    }


def prompt_tokens(question: Question, turn: int, said: Sequence[str]) -> int | None:
    """About how many tokens the request of this turn is, given the replies so far. None: a picture of unknown size."""
    texts = [question.system, *question.turns[:turn], *said[: turn - 1]]
    pictures = [picture for picture in question.pictures[:turn] if picture is not None]
    sizes = [getattr(picture, "size", None) for picture in pictures]
    if None in sizes:
        return None
    return sum(map(count_words, texts)) + sum(visual_tokens(size) for size in sizes if size is not None)


# --- a page's candidates, split ---


def split_groups(ids: Sequence[str], size: int) -> list[Sequence[str]]:
    """Groups of `size`, the first taking what is left over: 50 in groups of 17 are 16, 17 and 17."""
    short = len(ids) % size
    cuts = [0] * bool(short) + list(range(short, len(ids) + 1, size))
    return [ids[begin:end] for begin, end in pairwise(cuts)]


def ordered_groups(
    prepared: Prepared, boxes: dict[str, Box], size: int, rule: MergeRule, form: QuestionOptions
) -> list[Sequence[str]]:
    """The ranked candidates from the top of the page down, split, in the order in which the groups are asked."""
    groups = split_groups(by_height(prepared, boxes), len(prepared.ranked) if rule == "single" else size)
    return groups if form.order is None else form.order.shuffled(groups, prepared.step.key, "groups")


def boxes_of(step: Step, ranked: Sequence[RankedCandidate]) -> dict[str, Box]:
    """Of the ranked candidates. Raises RowError `missing_box`."""
    wanted = {candidate.backend_node_id for candidate in ranked}
    boxes = {c.backend_node_id: c.box for c in step.candidates if c.backend_node_id in wanted}
    missing = next((node for node, box in boxes.items() if box is None), None)
    if missing is not None:
        raise RowError("missing_box", f"candidate {missing} has no bounding_box_rect")
    return {node: box for node, box in boxes.items() if box is not None}


def by_height(prepared: Prepared, boxes: dict[str, Box]) -> list[str]:
    """Ids by the top of their boxes; equal ones in document order, so that the row's order gives nothing away."""
    return sorted(boxes, key=lambda node: (boxes[node].y, prepared.page.position(node)))


# --- from replies to a decision ---


def merge(replies: Sequence[Reply], rule: MergeRule, ranked: Sequence[str]) -> Decision:
    """One decision from the groups' replies.

    `first` takes the first group with a pick, `best-rank` the pick that the ranker puts highest, `final-round` the answer
    of the last question where there was one, `single` the only group. When nothing is picked the operation is that of the
    first group that names one, and the step's failure is the first reply that could not be read, if any.
    """
    final = [r for r in replies if r.is_final_round]
    if rule == "final-round" and final:
        return decision(final[-1])
    asked = [r for r in replies if not r.is_final_round]
    picked = [r for r in asked if r.element_id is not None]
    if picked:
        place = {node: i for i, node in enumerate(ranked)}
        return decision(min(picked, key=lambda r: place[str(r.element_id)]) if rule == "best-rank" else picked[0])
    unread = next((r for r in asked if r.failure), None)
    named = next((r for r in asked if r.op), None)
    failure, detail = (unread.failure, unread.detail) if unread else (None, "")
    return Decision(None, named.op if named else "", named.value if named else "", failure, detail)


def decision(reply: Reply) -> Decision:
    """What one reply says, taken as the step's answer."""
    return Decision(reply.element_id, reply.op, reply.value, reply.failure, reply.detail)


def noted(**counts: int) -> tuple[tuple[str, int], ...]:
    """The counts that are not zero, sorted by name, as `Grounded.notes` holds them."""
    return tuple(sorted((name, count) for name, count in counts.items() if count))
