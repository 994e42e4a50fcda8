"""Groups whose replies come in a file later."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import PreparedStep
from seeact_offline.grounding.choice import ChoiceGrounding
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.models.client import WAITING
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import CallError, Completion, Model, RankedCandidate, Request
from tests.scripted import Scripted

FINAL = "ELEMENT: A\nACTION: CLICK\nVALUE: None"
STILL = CallError(WAITING, "its reply is still to come")


class Waiting(Model):
    """A model that has no reply yet."""

    async def complete(self, request: Request) -> Completion:
        raise CallError(WAITING, "its reply is still to come")


@pytest.fixture
def prepared() -> PreparedStep:
    step = next(iter(load_steps("sample", "cross_task")))
    assert step.screenshot is not None
    ranked = [RankedCandidate(c.backend_node_id, 1.0, rank) for rank, c in enumerate(step.candidates[:10])]
    return PreparedStep(step, Page(step.cleaned_html), PagePicture(step.screenshot), tuple(ranked))


def grounding() -> ChoiceGrounding:
    return ChoiceGrounding(open_pack("seeact", "choice"), group_size=4)


def test_the_groups_after_one_that_waits_are_asked_too(prepared: PreparedStep) -> None:
    model = Scripted("Plan.", STILL, STILL, "Plan.", FINAL)
    grounded = asyncio.run(grounding().ground(prepared, model))
    assert [(request.group, request.turn) for request in model.requests] == [(0, 1), (0, 2), (1, 1), (2, 1), (2, 2)]
    assert (grounded.decision.failure, grounded.ran) == (WAITING, False)
    # no final round among some of the groups
    assert not model.answers


@pytest.mark.parametrize("name", ["timeout", "bad_request", "internal_error"])
def test_any_other_failure_ends_the_step_at_once(name: str, prepared: PreparedStep) -> None:
    model = Scripted("Plan.", FINAL, CallError(name, "why"), "Plan.")
    grounded = asyncio.run(grounding().ground(prepared, model))
    assert [request.group for request in model.requests] == [0, 0, 1]
    assert (grounded.decision.failure, grounded.decision.detail) == (name, "why")


def test_a_step_that_waits_lets_go_of_its_pictures(prepared: PreparedStep) -> None:
    """They stayed until the garbage collector came by, which runs see to that it seldom does."""
    copy = PreparedStep(prepared.step, prepared.page, PagePicture(prepared.step.screenshot), prepared.ranked)  # type: ignore[arg-type]
    held = weakref.ref(copy.picture)
    gc.disable()
    try:
        asyncio.run(grounding().ground(copy, Waiting()))
        del copy
        assert held() is None
    finally:
        gc.enable()
