"""A grounding: turn 1 decides on the operation, and the element is the n-th of the ranking."""

from __future__ import annotations

from msgspec.structs import replace

from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import Question, Session, build_reply, nonzero_notes
from seeact_offline.grounding.strategy import Option, Strategy, StrategyInputs, StrategyInstance
from seeact_offline.grounding.ungrounded import UngroundedGrounding
from seeact_offline.merging import decision
from seeact_offline.prompting import PromptPack
from seeact_offline.records import GroundingReply, Model
from seeact_offline.replies.next_action import parse_next_action


class NthGrounding(Grounding):
    def __init__(self, pack: PromptPack, form: QuestionOptions, place: int) -> None:
        self.form = form
        self._plan = UngroundedGrounding(pack, form)
        self._place = place

    def questions(self, prepared: PreparedStep) -> list[Question]:
        return self._plan.questions(prepared)

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        session = Session(model, prepared.step.key)
        (question,) = self.questions(prepared)
        talk = await session.converse(question)
        plan = parse_next_action(talk.texts[-1])
        said = build_reply(question, talk.texts, GroundingReply(None, plan.op, plan.value, plan.failure), talk.detail)
        element = prepared.ranked[self._place].backend_node_id
        said = replace(said, element_id=element, failure=None)
        return GroundingResult((said,), decision(said), session.usage, notes=nonzero_notes(taken_unseen=1))


def _open(asked: StrategyInputs) -> StrategyInstance:
    return StrategyInstance(NthGrounding(asked.pack, asked.form, asked.own["place"]), asked.own)


STRATEGY = Strategy(
    name="nth",
    open=_open,
    turn2=None,
    grouping_options=("top_k",),
    options=(Option("place", "which of the ranking, from 0", 0, read=int, metavar="N"),),
    notes={"taken_unseen": "the element was taken by its rank alone"},
)
