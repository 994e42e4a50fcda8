"""Grounding by textual choices: the top-k in groups, each described as options, two turns a group, one merged answer.

Source: SeeAct (arXiv 2401.01614v2) section 3.2 and appendix; the rules that merge the groups' answers are ours, as none
was released.
"""

from __future__ import annotations

from collections.abc import Sequence

from seeact_offline.grounding import PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import Question, Reader, final_lines, group_picture, share_turn1
from seeact_offline.grounding.groups import NOTES, GroupStrategy, ranked_boxes
from seeact_offline.grounding.strategy import GROUPING_OPTIONS, Strategy, StrategyInstance
from seeact_offline.prompting import Placeholders, PromptPack
from seeact_offline.records import Box, Step, letter
from seeact_offline.replies.final_answer import parse_grounding_reply


class ChoiceGrounding(GroupStrategy):
    """Asks every group, then merges by the rule."""

    def build_question(self, prepared: PreparedStep, ids: Sequence[str], index: int) -> Question:
        return choice_question(
            prepared, self._pack, self.form, ids, ranked_boxes(prepared.step, prepared.ranked), index
        )

    def read(self, question: Question) -> Reader:
        return lambda text: parse_grounding_reply(text, "choice", len(question.offered))


def choice_question(
    prepared: PreparedStep,
    pack: PromptPack,
    form: QuestionOptions,
    ids: Sequence[str],
    boxes: dict[str, Box],
    index: int,
) -> Question:
    """These elements as options, in document order or shuffled, with the part of the page that they are in."""
    step = prepared.step
    group = prepared.page.describe_group(ids)
    choices = form.ordered(group.choices, step.key, f"choices {index}")
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
        texts=tuple(choice.text for choice in choices),
        reply_prefix=pack.reply_prefix,
    )
    return share_turn1(question, prepared, pack, form) if form.shared_turn1 else question


def choice_ideal(step: Step, offered: Sequence[str]) -> tuple[str, str]:
    """The truth wherever it is offered, with the right operation: what is lost is lost before the model."""
    truth = step.truth
    place = next((i for i, node in enumerate(offered) if node in truth.positives), None)
    where = "is not among those shown" if place is None else f"is element {offered[place]}"
    plan = f"The next action is {truth.operation.text!r}; its target {where}."
    return plan, final_lines(letter(len(offered) if place is None else place), truth.operation)


STRATEGY = Strategy(
    name="choice",
    open=lambda inputs: StrategyInstance(ChoiceGrounding(inputs.pack, inputs.group_size, inputs.merge, inputs.form)),
    turn2=Placeholders(("choices", "none_label"), required=(("choices",), ("none_label",))),
    grouping_options=GROUPING_OPTIONS,
    is_grouped=True,
    is_lettered=True,
    notes=NOTES,
)
