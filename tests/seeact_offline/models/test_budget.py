"""A budget is never exceeded, and is used as far as it goes."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.models.budget import Budget, Ledger, Price
from seeact_offline.models.failures import Failure, malformed, of_status
from seeact_offline.records import CallError, Completion, InputError, Message, OutOfBudget, Usage

PRICE = Price(0.0, 1_000_000.0)
"""A dollar a token of the reply, and nothing for the prompt."""
ASKED = (Message("user", "Buy tea"),)
COSTING = {cost: Completion("ok", Usage(1, cost_usd=float(cost))) for cost in range(5)}
"""In dollars."""
Outcome = Completion | Failure | BaseException


class Spender:
    """Ends each attempt as it is told."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes, self.asked, self.at_once, self.most_at_once = outcomes, 0, 0, 0

    async def attempt(self) -> Any:
        outcome = self.outcomes[self.asked]
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def spend(budget: Budget, outcomes: Sequence[Outcome]) -> tuple[Spender, list[Any]]:
    """As many attempts at once as there are outcomes, and what became of them."""
    spender = Spender(outcomes)

    async def run() -> list[Any]:
        return await asyncio.gather(*(budget.spend(ASKED, spender.attempt) for _ in outcomes), return_exceptions=True)

    return spender, asyncio.run(run())


def refusals(found: Sequence[Any]) -> int:
    return sum(isinstance(one, OutOfBudget) for one in found)


@given(st.integers(1, 30), st.lists(st.integers(0, 4), max_size=12))
def test_no_more_than_the_limit_is_spent_and_no_call_that_fits_is_refused(limit: int, costs: list[int]) -> None:
    budget = Budget(limit, PRICE, 4)
    spender, found = spend(budget, [COSTING[cost] for cost in costs])
    # a price, and a text without tokens: a cost of zero is none that was reported
    expected = [cost or 1.5 for cost in costs[: spender.asked]]
    assert budget.spent == sum(expected) <= limit
    assert spender.asked + refusals(found) == len(costs)
    assert not refusals(found) or budget.spent + 4 > limit


COSTS: dict[str, tuple[Outcome, float]] = {
    # an attempt of unknown cost counts as the most that it can have cost
    "a body that cannot be read": (malformed("not JSON"), 4),
    "an error of a gateway": (of_status(502, {}, b"oops"), 4),
    "an error in the middle of it": (of_status(500, {}, b"oops"), 4),
    "no connection any more": (Failure("connection_failed", ""), 4),
    "a reply without usage": (Completion("ok", Usage(1, cost_usd=None, unreported=1)), 4),
    "an exception": (ValueError("broken"), 4),
    "a caller that gives up": (asyncio.CancelledError(), 4),
    # one that was turned away costs nothing
    "too many requests": (of_status(429, {}, b"slow down"), 0),
    "overloaded": (of_status(529, {}, b"busy"), 0),
    "a request that is refused": (of_status(400, {}, b"no"), 0),
    "no connection": (Failure("connection_failed", "", unreachable=True, unbilled=True), 0),
    # an answer that is no text is paid for too
    "a reply that is cut off": (Failure("truncated", "", usage=Usage(1, 0, 3, 0, None)), 3),
    "a blank reply": (Failure("empty_reply", "", usage=Usage(1, 0, 3, 0, None)), 3),
    "a model of Python that declines": (CallError("truncated", "", Usage(1, cost_usd=3.0)), 3),
}


@pytest.mark.parametrize(("outcome", "cost"), COSTS.values(), ids=COSTS.keys())
def test_every_attempt_has_its_cost(outcome: Outcome, cost: float) -> None:
    budget = Budget(10, PRICE, 4)
    _, found = spend(budget, [outcome, outcome])
    assert budget.spent == 2 * cost
    if cost == 3:
        assert [one.usage.cost_usd for one in found] == [3, 3]


def test_near_the_limit_calls_wait_for_one_another() -> None:
    spender, found = spend(Budget(9, PRICE, 4), [COSTING[1]] * 5)
    assert (spender.most_at_once, spender.asked, refusals(found)) == (2, 5, 0)


def test_what_was_spent_before_counts() -> None:
    budget = Budget(5, PRICE, 4)
    budget.add(1.5)
    _, (error,) = spend(budget, [COSTING[1]])
    assert str(error) == "1.5000 of 5 USD are spent, and the next call may cost 4.0000"


def test_words_are_charged_where_no_tokens_are_reported_but_never_beyond_the_limit() -> None:
    """`Buy tea` counts as 3 tokens."""
    priced, reply = Price(1_000_000.0, 1_000_000.0), Completion("ok " * 50, Usage(1))
    costs = []
    for limit in (None, 8.0):
        _, (found,) = spend(Budget(limit, priced, 4), [reply])
        costs.append(found.usage.cost_usd)
    assert costs == [3 + 75, 3 + 4]


def test_at_a_price_of_nothing_nothing_is_spent() -> None:
    budget = Budget(1, Price(0.0, 0.0), 4)
    _, found = spend(budget, [Completion("ok", Usage(1, 9, 9, 0, None)), Completion("ok", Usage(1)), malformed("cut")])
    assert (budget.spent, [one.usage.cost_usd for one in found[:2]]) == (0, [0, 0])


def test_where_calls_cost_more_than_was_reserved_more_is_reserved() -> None:
    dear = Completion("ok", Usage(1, 0, 8, 0, None))
    budget = Budget(20, PRICE, 4)
    spender, found = spend(budget, [dear])
    assert budget.spent == 8
    spender, found = spend(budget, [dear] * 3)
    assert (spender.asked, refusals(found), budget.spent) == (1, 2, 16)


# --- a model that reports its costs ---


def test_without_a_price_the_first_call_tells_what_calls_cost() -> None:
    budget = Budget(10)
    spender, found = spend(budget, [COSTING[1]] * 20)
    assert (spender.asked, refusals(found), budget.spent) == (9, 11, 9)


@pytest.mark.parametrize("cost", [0.0, None])
def test_without_a_price_a_model_that_reports_no_cost_has_no_limit(cost: float | None) -> None:
    _, (error,) = spend(Budget(10), [Completion("ok", Usage(1, 900, 5, 0, cost))])
    assert isinstance(error, InputError)
    assert str(error) == "`max_cost` needs a `price`, or a model that reports what its calls cost"


def test_without_a_price_a_call_that_is_lost_counts_as_twice_the_dearest() -> None:
    budget = Budget(10)
    spend(budget, [COSTING[2], CallError("model_error", "broken"), COSTING[1]])
    assert budget.spent == 2 + 4 + 1


def test_a_call_that_costs_nothing_is_none_without_a_price_once_another_has_cost_something() -> None:
    _, found = spend(Budget(10), [COSTING[1], COSTING[0], COSTING[1]])
    assert [one.usage.cost_usd for one in found] == [1, 0, 1]


# --- the ledger ---


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spending.jsonl"


def in_run(path: Path, body: Callable[[Budget], object], limit: float | None = 10, price: Price | None = PRICE) -> None:
    with Ledger(path, price) as ledger:
        body(Budget(limit, price, 4, ledger=ledger))


def spent(path: Path, price: Price | None = PRICE) -> float:
    return Ledger(path, price).spent


def test_a_run_that_is_resumed_knows_what_it_has_spent(path: Path) -> None:
    in_run(path, lambda budget: spend(budget, [COSTING[1], COSTING[2], malformed("cut")]))
    assert spent(path) == 1 + 2 + 4
    in_run(path, lambda budget: spend(budget, [COSTING[2]] * 5))
    # 3 of 10 dollars are left, and a call may cost 4
    assert spent(path) == 7


def test_a_run_that_was_killed_has_paid_for_the_attempts_in_flight(path: Path) -> None:

    async def killed(budget: Budget) -> None:
        attempt = asyncio.create_task(budget.spend(ASKED, lambda: asyncio.sleep(60)))  # type: ignore[type-var]
        await asyncio.sleep(0)
        assert spent(path) == 4
        attempt.cancel()

    in_run(path, lambda budget: asyncio.run(killed(budget)))


@pytest.mark.parametrize(("limit", "n_on_disk"), [(10, [1, 3]), (None, [])])
def test_under_a_limit_a_reservation_is_on_disk_before_the_attempt(
    path: Path, monkeypatch: pytest.MonkeyPatch, limit: float | None, n_on_disk: list[int]
) -> None:
    synced: list[int] = []
    begun: list[int] = []

    def fsync(file: int) -> None:
        if stat.S_ISREG(os.fstat(file).st_mode):
            synced.append(len(path.read_bytes().splitlines()))

    async def attempt() -> Completion:
        begun.append(len(synced))
        return COSTING[1]

    def ask_twice(budget: Budget) -> None:
        for _ in range(2):
            asyncio.run(budget.spend(ASKED, attempt))

    monkeypatch.setattr(os, "fsync", fsync)
    in_run(path, ask_twice, limit)
    assert (synced, begun) == (n_on_disk, [1, 2] if n_on_disk else [0, 0])
    assert len(path.read_bytes().splitlines()) == 4


# --- a damaged ledger ---

LINES = [
    b'{"attempt":1,"most":4.0,"load":[3,[],4]}\n',
    b'{"attempt":1,"cost":1.0}\n',
    b'{"attempt":2,"most":4.0,"load":[3,[],4]}\n',
    b'{"attempt":2,"cost":2.0}\n',
    b'{"attempt":3,"most":4.0,"load":[3,[],4]}\n',
    b'{"attempt":0,"cost":0.5}\n',
]
"""The outcome of attempt 3 is not known: 7.5 USD. Its reply may be kept, at 1 USD: then 4.5 USD are kept, those from elsewhere among them."""
KEPT = 4.5


def without(number: int, filler: bytes) -> bytes:
    return b"".join(filler if place == number else line for place, line in enumerate(LINES))


DAMAGES: dict[str, tuple[bytes, float]] = {
    "none": (b"".join(LINES), 7.5),
    "emptied": (b"", 0),
    "all NULs": (b"\0" * 200, 0),
    "NULs for a reservation": (without(0, b"\0" * 40 + b"\n"), 7.5),
    "NULs for a reservation and its newline": (without(0, b"\0" * 41), 7.5),
    "NULs for a cost": (without(1, b"\0" * 24 + b"\n"), 10.5),
    "NULs for a cost and its newline": (without(3, b"\0" * 25), 9.5),
    "NULs for the only line of an attempt": (without(4, b"\0" * 40 + b"\n"), 3.5),
    "NULs at the end": (b"".join(LINES) + b"\0" * 40, 7.5),
    "half a line before another": (without(1, LINES[1][:12]), 10.5),
    "half a line": (without(1, LINES[1][:12] + b"\n"), 10.5),
    "a newline lost": (without(1, LINES[1].strip()), 7.5),
    "in the opposite order": (b"".join(reversed(LINES)), 7.5),
    "no text": (without(1, b"\xff\xfe{}\n"), 10.5),
    "less than nothing": (without(1, b'{"attempt":1,"cost":-9.0}\n'), 10.5),
    "no number": (without(1, b'{"attempt":1,"cost":NaN}\n'), 10.5),
    "infinite": (without(1, b'{"attempt":1,"cost":1e999}\n{"attempt":1,"cost":Infinity}\n'), 10.5),
    "a name for a number": (without(1, b'{"attempt":"one"}\n'), 10.5),
    "deep": (without(1, b"[" * 100_000 + b"\n"), 10.5),
}


@pytest.mark.parametrize(("content", "usd"), DAMAGES.values(), ids=DAMAGES.keys())
def test_of_a_damaged_ledger_counts_what_can_be_read_and_no_less_than_is_kept(
    path: Path, content: bytes, usd: float
) -> None:
    path.write_bytes(content)
    assert Ledger(path).spent == usd
    with Ledger(path, kept=KEPT) as ledger:
        assert ledger.spent == max(usd, KEPT)
        is_damaged = content.count(b"\n") != sum(line in LINES for line in content.splitlines(keepends=True))
        assert bool(ledger.remarks) == (is_damaged or usd < KEPT)
    # readers that know of no replies agree, and so does the next start
    assert Ledger(path).spent == Ledger(path, kept=KEPT).spent == max(usd, KEPT)


def test_a_ledger_cut_anywhere_has_spent_what_is_left_of_it_or_what_is_kept(path: Path) -> None:
    whole = b"".join(LINES)
    # after each line
    sums = [0, 4, 1, 5, 3, 7, 7.5]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        usd = sums[whole[:size].count(b"\n")]
        with Ledger(path, kept=KEPT) as ledger:
            assert (ledger.spent, bool(ledger.remarks)) == (max(usd, KEPT), usd < KEPT)
        assert Ledger(path).spent == max(usd, KEPT)


def test_lines_that_a_resumed_run_adds_to_a_damaged_ledger_are_of_new_attempts(path: Path) -> None:
    path.write_bytes(without(4, b"\0" * 40 + b"\n"))
    in_run(path, lambda budget: spend(budget, [malformed("cut"), COSTING[1]]), limit=20)
    assert spent(path) == 3.5 + 4 + 1


def test_tokens_of_a_time_without_a_price_are_charged_once_there_is_one(path: Path) -> None:
    in_run(path, lambda budget: spend(budget, [Completion("ok", Usage(1, 7, 2, 0, None))]), None, None)
    assert (spent(path, None), spent(path)) == (0, 2)


def test_that_calls_cost_more_than_was_reserved_is_known_to_a_resumed_run(path: Path) -> None:
    in_run(path, lambda budget: spend(budget, [Completion("ok", Usage(1, 0, 8, 0, None))]), limit=15)
    # by our own count a call would cost no more than 4 of the 7 that are left
    in_run(path, lambda budget: spend(budget, [COSTING[1]]), limit=15)
    assert spent(path) == 8
