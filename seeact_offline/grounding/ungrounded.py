"""Asks turn 1 alone, on the whole page, and takes operation and value from its text; no element is asked for."""

from __future__ import annotations

from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import (
    Question,
    Session,
    count_resized,
    ideal_plan,
    in_thread,
    nonzero_notes,
    page_html,
    whole_page,
)
from seeact_offline.grounding.strategy import Strategy, StrategyInstance
from seeact_offline.merging import decision
from seeact_offline.prompting import PromptPack
from seeact_offline.records import GroundingReply, Model, StepError
from seeact_offline.replies.next_action import parse_next_action


class UngroundedGrounding(Grounding):
    """Asks what to do next, and never on which element."""

    needs_ranking = False

    def __init__(self, pack: PromptPack, form: QuestionOptions | None = None) -> None:
        self.form = form or QuestionOptions()
        self._pack = pack

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The only one, of one turn. Raises RowError `bad_screenshot`."""
        step, pack = prepared.step, self._pack
        html = "" if self.form.image else page_html(prepared)
        turn1 = pack.render_turn1(step.task, step.history, html)
        picture = whole_page(prepared, self.form)
        return [Question(0, (), pack.render_system(), (turn1,), (picture,), (ideal_plan(step),))]

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        session = Session(model, prepared.step.key)
        try:
            (question,) = await in_thread(self.questions, prepared)
            answer = await session.ask(question, _read)
        except StepError as error:
            return session.failed(error)
        return session.ended(decision(answer), notes=nonzero_notes(picture_resized=count_resized([question])))


def _read(text: str) -> GroundingReply:
    action = parse_next_action(text)
    return GroundingReply(None, action.op, action.value, action.failure)


STRATEGY = Strategy(
    name="ungrounded",
    open=lambda inputs: StrategyInstance(UngroundedGrounding(inputs.pack, inputs.form)),
    turn2=None,
    needs_page=False,
)
