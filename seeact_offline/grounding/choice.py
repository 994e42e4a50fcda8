"""Grounding by textual choices: the top-k in groups, each described as options, two turns a group, one merged answer.

Source: SeeAct (arXiv 2401.01614v2) section 3.2 and appendix; the rules that merge the groups' answers are ours, as none
was released.
"""

from __future__ import annotations

from collections.abc import Sequence

from seeact_offline.grounding import GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import (
    Question,
    Reader,
    final_lines,
    group_picture,
    share_turn1,
)
from seeact_offline.grounding.groups import (
    NOTES,
    Grouping,
    ground_by_groups,
    group_candidates,
    offers_target,
    ranked_boxes,
)
from seeact_offline.grounding.strategy import GROUPING_OPTIONS, Strategy, StrategyInputs, StrategyInstance
from seeact_offline.pages.dom import Choice
from seeact_offline.prompting import Placeholders, PromptPack
from seeact_offline.records import Box, MergeRule, Model, Step, letter
from seeact_offline.replies.final_answer import parse_grounding_reply


class ChoiceGrounding:
    """Asks every group, then merges by the rule."""

    needs_ranking = True

    def __init__(
        self,
        pack: PromptPack,
        group_size: int = 17,
        merge: MergeRule = "final-round",
        form: QuestionOptions | None = None,
    ) -> None:
        self.form = form or QuestionOptions()
        self.merge_rule = merge
        self._pack = pack
        self._group_size = group_size

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """One a group, top of the page first. Raises RowError `missing_box`, `bad_screenshot`, `nothing_to_show`."""
        boxes, groups = ranked_boxes(prepared.step, prepared.ranked), self.grouping(prepared).groups
        return [choice_question(prepared, self._pack, self.form, ids, boxes, i) for i, ids in enumerate(groups)]

    def grouping(self, prepared: PreparedStep) -> Grouping:
        boxes = ranked_boxes(prepared.step, prepared.ranked)
        return group_candidates(prepared, boxes, self._group_size, self.merge_rule, self.form)

    def counts(self, prepared: PreparedStep, asked: Sequence[Question]) -> dict[str, int]:
        return dict(self.grouping(prepared).notes)

    def final_round(self, prepared: PreparedStep, picks: Sequence[str], index: int) -> Question:
        boxes = ranked_boxes(prepared.step, prepared.ranked)
        return choice_question(prepared, self._pack, self.form, picks, boxes, index, is_final_round=True)

    def read(self, question: Question) -> Reader:
        return lambda text: parse_grounding_reply(text, "choice", len(question.offered))

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        return await ground_by_groups(self, prepared, model)

    def reaches(self, prepared: PreparedStep) -> bool:
        """Whether a positive is in some group."""
        return offers_target(self, prepared)


def choice_question(
    prepared: PreparedStep,
    pack: PromptPack,
    form: QuestionOptions,
    ids: Sequence[str],
    boxes: dict[str, Box],
    index: int,
    is_final_round: bool = False,
) -> Question:
    """These elements as options, in document order or shuffled, with the part of the page that they are in."""
    step = prepared.step
    group = prepared.page.describe_group(ids)
    choices = _in_order(group.choices, form, step, index)
    crop = group_picture(prepared, [boxes[i] for i in ids], form)
    turn1 = pack.render_turn1(step.task, step.history, "" if form.image else group.html)
    turns = pack.messages(turn1, pack.render_turn2([choice.text for choice in choices]))
    offered = tuple(choice.backend_node_id for choice in choices)
    question = Question(
        index=index,
        offered=offered,
        system=pack.render_system(),
        turns=turns,
        pictures=(crop, None)[: len(turns)],
        ideal=choice_ideal(step, offered)[-len(turns) :],
        is_final_round=is_final_round,
        texts=tuple(choice.text for choice in choices),
        reply_prefix=pack.reply_prefix,
    )
    return share_turn1(question, prepared, pack, form) if form.shared_turn1 else question


def _in_order(choices: Sequence[Choice], form: QuestionOptions, step: Step, index: int) -> Sequence[Choice]:
    return choices if form.order is None else form.order.shuffled(choices, step.key, f"choices {index}")


def choice_ideal(step: Step, offered: Sequence[str]) -> tuple[str, str]:
    """The truth wherever it is offered, with the right operation: what is lost is lost before the model."""
    truth = step.truth
    place = next((i for i, node in enumerate(offered) if node in truth.positives), None)
    where = "is not among those shown" if place is None else f"is element {offered[place]}"
    plan = f"The next action is {truth.operation.text!r}; its target {where}."
    return plan, final_lines(letter(len(offered) if place is None else place), truth.operation)


def _open(asked: StrategyInputs) -> StrategyInstance:
    return StrategyInstance(ChoiceGrounding(asked.pack, asked.group_size, asked.merge, asked.form))


STRATEGY = Strategy(
    name="choice",
    open=_open,
    turn2=Placeholders(("choices", "none_label"), required=(("choices",), ("none_label",))),
    grouping_options=GROUPING_OPTIONS,
    is_grouped=True,
    is_lettered=True,
    notes=NOTES,
)
