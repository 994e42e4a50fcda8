"""Turn 1 alone: the operation that its text decides on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import PreparedStep, QuestionOptions
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.grounding.ungrounded import UngroundedGrounding
from seeact_offline.models.builtin import open_builtin
from seeact_offline.records import CallError, Operation
from seeact_offline.runs.prepare import prepare
from tests.scripted import Scripted


@pytest.fixture(scope="module")
def prepared() -> PreparedStep:
    return prepare(next(load_steps("sample", "cross_task")), None, 0)


def grounding(form: QuestionOptions | None = None) -> UngroundedGrounding:
    image = form is None or form.image
    return UngroundedGrounding(open_pack("seeact", "ungrounded", image=image), form)


def test_one_turn_is_asked_on_the_whole_page(prepared: PreparedStep) -> None:
    model = Scripted("Click it.")
    asyncio.run(grounding().ground(prepared, model))
    (request,) = model.requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[1].picture.box == (0, 0, *prepared.picture.size)


@pytest.mark.parametrize(
    ("said", "decision", "ran"),
    [
        ('Well.\nACTION: TYPE\nVALUE: "Oslo"', (None, "TYPE", "Oslo", None), True),
        ("A page about tea.", (None, "", "", "no_operation"), True),
        (CallError("refused", "no"), (None, "", "", "refused"), True),
        (CallError("timeout", "slow"), (None, "", "", "timeout"), False),
    ],
)
def test_the_operation_is_that_of_the_text_and_there_is_no_element(prepared: PreparedStep, said, decision, ran) -> None:
    grounded = asyncio.run(grounding().ground(prepared, Scripted(said)))
    found = grounded.decision
    assert ((found.element_id, found.op, found.value, found.failure), grounded.ran) == (decision, ran)


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
    grounded = asyncio.run(grounding(QuestionOptions(max_side=100)).ground(prepared, Scripted("Click it.")))
    assert grounded.notes == {"picture_resized": 1}
