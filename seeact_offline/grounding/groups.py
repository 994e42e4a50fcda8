"""A page's candidates in groups: which are asked about together, in which order, and how their answers become one.

Groups are those of SeeAct's released code: the ranked candidates from the top of the page down, cut by `split_groups`.
A group is left out only where its part of the page is empty; an element need not be visible to be asked about.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import (
    Conversation,
    Question,
    Reader,
    Session,
    build_reply,
    count_resized,
    in_thread,
    nonzero_notes,
)
from seeact_offline.merging import RELEASED_SIZE, decision, merge, split_groups
from seeact_offline.models.tokens import count_words, visual_tokens
from seeact_offline.pages.screenshots import is_crop_empty
from seeact_offline.prompting import PromptPack
from seeact_offline.records import (
    Box,
    GroundingReply,
    MergeRule,
    Model,
    RankedCandidate,
    Reply,
    RowError,
    Step,
    StepError,
)

NOTES = {
    "last_group_dropped": "a last group of one element, which is not asked about (any group size but 17)",
    "tie_at_group_cut": "two elements of one height on either side of a cut between groups,"
    " where document order decides",
    "group_off_picture": "a group that is not asked about, as it lies over 1,024 pixels above or below the picture",
}
"""Counts about a step's groups, with the meaning of each."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A step's ranked candidates as they are asked about."""

    groups: tuple[tuple[str, ...], ...]
    """Ids, in the order in which the groups are asked."""
    notes: Mapping[str, int]


def ranked_boxes(step: Step, ranked: Sequence[RankedCandidate]) -> dict[str, Box]:
    """Boxes of the ranked candidates, by id. Raises RowError `missing_box`."""
    wanted = {candidate.backend_node_id for candidate in ranked}
    boxes = {c.backend_node_id: c.box for c in step.candidates if c.backend_node_id in wanted}
    missing = next((node for node, box in boxes.items() if box is None), None)
    if missing is not None:
        raise RowError("missing_box", f"candidate {missing} has no bounding_box_rect")
    return {node: box for node, box in boxes.items() if box is not None}


# --- asking ---


class GroupStrategy(Grounding):
    """Offers the ranked candidates group by group, and merges the groups' answers by a rule."""

    merge_rule: MergeRule

    def __init__(
        self,
        pack: PromptPack,
        group_size: int = RELEASED_SIZE,
        merge: MergeRule = "final-round",
        form: QuestionOptions | None = None,
    ) -> None:
        self.form = form or QuestionOptions()
        self.merge_rule = merge
        self._pack = pack
        self._group_size = group_size

    @abstractmethod
    def build_question(self, prepared: PreparedStep, ids: Sequence[str], index: int) -> Question:
        """Builds the question about these candidates. Raises RowError."""

    @abstractmethod
    def read(self, question: Question) -> Reader:
        """Returns the reader of the question's last reply."""

    def counts(self, prepared: PreparedStep, asked: Sequence[Question]) -> dict[str, int]:
        """Counts for the step's notes, by the names that the strategy declares."""
        return dict(self.grouping(prepared).notes)

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The questions, one per group, top of the page first. Raises RowError `missing_box`,
        `bad_screenshot`, `nothing_to_show`."""
        return [self.build_question(prepared, ids, index) for index, ids in enumerate(self.grouping(prepared).groups)]

    def final_round(self, prepared: PreparedStep, picks: Sequence[str], index: int) -> Question:
        """The question about the groups' picks."""
        return replace(self.build_question(prepared, picks, index), is_final_round=True)

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        """Asks every group, then merges by the rule. With a shared turn 1 the first group's is asked once, for all."""
        session = Session(model, prepared.step.key)
        opening = Conversation(())
        try:
            questions = await in_thread(self.questions, prepared)
            if self.form.shared_turn1 and questions:
                opening = await session.converse(questions[0], until=1)
            if opening.failure is not None:
                # the model would not say anything of the page: that is its answer to every group
                declined = GroundingReply(None, failure=opening.failure)
                session.replies.append(build_reply(questions[0], (), declined, opening.detail))
                return session.ended(decision(session.replies[0]))
            await session.ask_all(questions, self.read, opening.texts)
            picks = [r.element_id for r in session.replies if r.element_id is not None]
            if self.merge_rule == "final-round" and len(picks) > 1:
                questions.append(await in_thread(self.final_round, prepared, picks, len(session.replies)))
                await session.ask(questions[-1], self.read(questions[-1]), opening.texts)
        except StepError as error:
            return session.failed(error)
        ranked = [candidate.backend_node_id for candidate in prepared.ranked]
        counts = await in_thread(self.counts, prepared, questions)
        counts |= await in_thread(_price_of_sharing, questions, session.replies)
        notes = nonzero_notes(picture_resized=count_resized(questions), **counts)
        return session.ended(merge(session.replies, self.merge_rule, ranked), notes=notes)

    def reaches(self, prepared: PreparedStep) -> bool:
        """Tells whether a positive is in some group. Raises RowError."""
        positives = prepared.step.truth.positives
        return not all(positives.isdisjoint(ids) for ids in self.grouping(prepared).groups)

    def grouping(self, prepared: PreparedStep) -> Grouping:
        """Splits the ranked candidates from the top of the page down.

        Raises RowError `missing_box`, `bad_screenshot`, `nothing_to_show`. No group is left of a single candidate where
        `group_size` drops a last group of one.
        """
        boxes = ranked_boxes(prepared.step, prepared.ranked)
        # equal heights in document order, so that the row's order gives nothing away
        ordered = sorted(boxes, key=lambda node: (boxes[node].y, prepared.page.position(node)))
        split = [tuple(ordered)] if self.merge_rule == "single" else split_groups(ordered, self._group_size)
        shown = [
            ids
            for ids in split
            if not self.form.image or not is_crop_empty([boxes[node] for node in ids], prepared.picture.size)
        ]
        if split and not shown:
            raise RowError("nothing_to_show", f"all {len(boxes)} ranked candidates lie far above or below the picture")
        notes = nonzero_notes(
            last_group_dropped=len(ordered) - sum(map(len, split)),
            tie_at_group_cut=sum(boxes[upper[-1]].y == boxes[lower[0]].y for upper, lower in pairwise(split)),
            group_off_picture=len(split) - len(shown),
        )
        return Grouping(tuple(self.form.ordered(shown, prepared.step.key, "groups")), notes)


# --- what a shared turn 1 saves ---


def _price_of_sharing(questions: Sequence[Question], replies: Sequence[Reply]) -> dict[str, int]:
    """Counts the calls of a shared turn 1, and those that a turn 1 a group would have taken.

    Prompt tokens are estimates by the rules of `tokens`, on both sides, with the shared reply standing for those of the
    groups; they are left out where a picture's size is not known. Empty where nothing was shared.
    """
    alone = [question.alone for question in questions if question.alone is not None]
    if not alone:
        return {}
    calls = {"shared_turn1": 1, "calls_if_per_group": sum(len(question.turns) for question in alone)}
    texts_of_groups = [reply.replies for reply in replies]
    shared = [prompt_tokens(questions[0], 1, texts_of_groups[0])]
    shared += [prompt_tokens(q, 2, texts) for q, texts in zip(questions, texts_of_groups, strict=True)]
    single = [prompt_tokens(q, turn, texts) for q, texts in zip(alone, texts_of_groups, strict=True) for turn in (1, 2)]
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
