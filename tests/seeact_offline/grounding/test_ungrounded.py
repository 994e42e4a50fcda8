"""Turn 1 alone: the operation that its text decides on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.grounding.ungrounded import UngroundedGrounding
from seeact_offline.models.builtin import open_builtin
from seeact_offline.records import CallError, Completion, Operation, Request, Usage
from seeact_offline.runs.prepare import prepare


class Saying:
    """A model that always says the same, or raises it."""

    def __init__(self, said: str | Exception) -> None:
        self.said = said
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        if isinstance(self.said, Exception):
            raise self.said
        return Completion(self.said, Usage(calls=1))

    async def aclose(self) -> None:
        pass


@pytest.fixture(scope="module")
def prepared() -> PreparedStep:
    return prepare(next(load_steps("sample", "cross_task")), None, 0)


def grounding(form: QuestionOptions | None = None) -> UngroundedGrounding:
    image = form is None or form.image
    return UngroundedGrounding(open_pack("seeact", "ungrounded", image=image), form)


def ground(prepared: PreparedStep, said: str | Exception) -> GroundingResult:
    return asyncio.run(grounding().ground(prepared, Saying(said)))


def test_one_turn_is_asked_on_the_whole_page(prepared: PreparedStep) -> None:
    model = Saying("Click it.")
    asyncio.run(grounding().ground(prepared, model))
    (request,) = model.requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[1].picture.box == (0, 0, *prepared.picture.size)


def test_the_operation_is_that_of_the_text_and_there_is_no_element(prepared: PreparedStep) -> None:
    decision = ground(prepared, 'Well.\nACTION: TYPE\nVALUE: "Oslo"').decision
    assert (decision.element_id, decision.op, decision.value, decision.failure) == (None, "TYPE", "Oslo", None)


def test_a_text_without_an_operation_is_a_named_failure(prepared: PreparedStep) -> None:
    grounded = ground(prepared, "A page about tea.")
    assert (grounded.ran, grounded.decision.failure) == (True, "no_operation")


def test_a_refusal_is_the_models_answer(prepared: PreparedStep) -> None:
    grounded = ground(prepared, CallError("refused", "no", Usage(calls=1)))
    assert (grounded.ran, grounded.decision.failure, grounded.usage.calls) == (True, "refused", 1)


def test_a_call_without_an_answer_leaves_the_step_unasked(prepared: PreparedStep) -> None:
    grounded = ground(prepared, CallError("timeout", "slow"))
    assert (grounded.ran, grounded.decision.failure) == (False, "timeout")


@pytest.mark.parametrize("operation", [Operation("CLICK"), Operation("TYPE", 'say "a, b"'), Operation("SELECT", "2")])
def test_the_ideal_plan_is_read_as_it_was_meant(prepared: PreparedStep, operation: Operation) -> None:
    step = replace(prepared, step=replace(prepared.step, operation=operation))
    decision = asyncio.run(grounding().ground(step, open_builtin("oracle"))).decision
    assert Operation(decision.op, decision.value) == operation


def test_without_a_picture_the_page_around_all_candidates_is_shown(prepared: PreparedStep) -> None:
    (question,) = grounding(QuestionOptions(image=False)).questions(prepared)
    ids = [candidate.backend_node_id for candidate in prepared.step.candidates]
    assert prepared.page.describe_group(ids).html in question.turns[0]
    assert question.pictures == (None,)


def test_a_page_beyond_the_limit_is_made_smaller_and_counted(prepared: PreparedStep) -> None:
    grounded = asyncio.run(grounding(QuestionOptions(max_side=100)).ground(prepared, Saying("Click it.")))
    assert grounded.notes == (("picture_resized", 1),)
