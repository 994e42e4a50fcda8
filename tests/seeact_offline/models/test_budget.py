"""A budget is never exceeded, and is used as far as it goes."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.models.budget import Budget, BudgetedModel, Price
from seeact_offline.records import CallError, Completion, Message, OutOfBudget, Request, StepKey, Usage

PRICE = Price(0.0, 1_000_000.0)
"""A dollar a token of the reply, and nothing for the prompt."""
REQUEST = Request((Message("user", "Buy tea"),), StepKey("t", "s"), 0, 1)


class Spender:
    """Costs what it is told, call by call."""

    def __init__(self, costs: list[float | None]) -> None:
        self.costs, self.asked, self.at_once, self.most_at_once = costs, 0, 0, 0

    async def complete(self, request: Request) -> Completion:
        cost = self.costs[self.asked]
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if cost is not None and cost < 0:
            raise CallError("truncated", "", Usage(1, cost_usd=-cost))
        return Completion("ok", Usage(1, cost_usd=cost))

    async def aclose(self) -> None:
        """Nothing is open."""


def spend(limit: float, costs: list[float | None], max_tokens: int = 4) -> tuple[Spender, Budget, int]:
    """As many calls at once as there are costs; the last is how many were refused."""
    spender, budget = Spender(costs), Budget(limit, PRICE, max_tokens)
    model = BudgetedModel(spender, budget)

    async def run() -> list[object]:
        return await asyncio.gather(*(model.complete(REQUEST) for _ in costs), return_exceptions=True)

    return spender, budget, sum(isinstance(one, OutOfBudget) for one in asyncio.run(run()))


@given(st.integers(1, 30), st.lists(st.integers(0, 4).map(float), max_size=12))
def test_no_more_than_the_limit_is_spent_and_no_call_that_fits_is_refused(limit: int, costs: list[float]) -> None:
    spender, budget, refused = spend(limit, list(costs))
    assert budget.spent == sum(costs[: spender.asked]) <= limit
    assert spender.asked + refused == len(costs)
    assert not refused or budget.spent + 4 > limit


def test_a_call_of_unknown_cost_counts_as_the_most_that_it_can_have_cost() -> None:
    assert spend(10, [None, None])[1].spent == 8


def test_a_truncated_reply_is_paid_for_too() -> None:
    assert spend(10, [-3.0])[1].spent == 3


def test_near_the_limit_calls_wait_for_one_another() -> None:
    spender, _, refused = spend(9, [1.0] * 5)
    assert (spender.most_at_once, spender.asked, refused) == (2, 5, 0)


def test_what_was_spent_before_counts() -> None:
    model = BudgetedModel(Spender([1.0]), Budget(5, PRICE, 4, spent=1.5))
    with pytest.raises(OutOfBudget, match=r"1\.5000 of 5 USD are spent, and the next call may cost 4\.0000"):
        asyncio.run(model.complete(REQUEST))


def test_words_and_pictures_are_set_aside_too() -> None:
    budget = Budget(1, Price(1_000_000.0, 0.0), 4)
    assert budget.most((Message("user", "Buy tea"),)) == 3.0
