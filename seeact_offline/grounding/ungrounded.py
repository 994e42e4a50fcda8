"""No grounding at all: turn 1 alone, on the whole page, and the operation and value that its text decides on."""

from __future__ import annotations

from seeact_offline.grounding import Decision, Form, Grounded, Prepared
from seeact_offline.grounding.asking import (
    Question,
    converse,
    count_resized,
    decision,
    noted,
    page_html,
    plan_ideal,
    reply,
    total,
    whole_page,
)
from seeact_offline.plans import parse_plan
from seeact_offline.prompting import PromptPack
from seeact_offline.records import GroundingReply, Model, StepError, Usage


class UngroundedGrounding:
    """Asks what to do next, and never on which element."""

    needs_ranking = False

    def __init__(self, pack: PromptPack, form: Form | None = None) -> None:
        self.form = form or Form()
        self._pack = pack

    def questions(self, prepared: Prepared) -> list[Question]:
        """The only one, of one turn. Raises RowError `bad_screenshot`."""
        step, pack = prepared.step, self._pack
        html = "" if self.form.image else page_html(prepared)
        turn1 = pack.render_turn1(step.task, step.history, html)
        picture = whole_page(prepared, self.form)
        return [Question(0, (), pack.render_system(), (turn1,), (picture,), (plan_ideal(step),))]

    async def ground(self, prepared: Prepared, model: Model) -> Grounded:
        usages: list[Usage] = []
        try:
            (question,) = self.questions(prepared)
            talk = await converse(question, prepared.step, model, usages)
        except StepError as error:
            return Grounded((), Decision(None, "", "", error.name, error.detail), total(usages), ran=False)
        read, detail = GroundingReply(None, failure=talk.failure), talk.detail
        if talk.failure is None:
            plan = parse_plan(talk.texts[-1])
            read = GroundingReply(None, plan.op, plan.value, plan.failure)
        answer = reply(question, talk.texts, read, detail)
        notes = noted(picture_resized=count_resized([question]))
        return Grounded((answer,), decision(answer), total(usages), notes=notes)
