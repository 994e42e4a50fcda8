"""How many calls are in flight, and how many begin a minute."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.models.retrying import FIRST_IN_FLIGHT, Limiter, Rate, Verdict


def after(limiter: Limiter, *rounds: tuple[Verdict, int]) -> float:
    """The number allowed after so many calls in flight together have ended so, round by round."""

    async def run() -> None:
        for verdict, n in rounds:
            for entered in [await asyncio.wait_for(limiter.enter(0), 1) for _ in range(n)]:
                limiter.leave(entered, verdict, 0)

    asyncio.run(run())
    return limiter.allowed


@pytest.mark.parametrize(
    ("most", "rounds", "allowed"),
    [
        (64, [("answered", FIRST_IN_FLIGHT)], 2 * FIRST_IN_FLIGHT),
        (20, [("answered", 8)] * 9, 20),
        (3, [], 3),
        (64, [("too_many", 8)], 4),
        (64, [("too_many", 8), ("too_many", 4)], 2),
        (64, [("too_many", 1)] * 10, 1),
        (64, [("failed", 8)], FIRST_IN_FLIGHT),
    ],
    ids=[
        "grows with every answer",
        "up to the limit",
        "never begins above the limit",
        "halved once for all calls refused together",
        "halved again",
        "never below one",
        "other failures change nothing",
    ],
)
def test_the_number_in_flight_follows_the_server(most: int, rounds: list[tuple[Verdict, int]], allowed: float) -> None:
    assert after(Limiter(most), *rounds) == allowed


def test_after_a_refusal_it_grows_by_about_one_a_round() -> None:
    limiter = Limiter(64)
    before = after(limiter, ("too_many", 8))
    assert before < after(limiter, ("answered", 4)) <= before + 1


def test_places_are_given_in_the_order_of_asking() -> None:
    async def run() -> list[int]:
        limiter, order = Limiter(1), []

        async def one(number: int) -> None:
            entered = await limiter.enter(0)
            order.append(number)
            await asyncio.sleep(0)
            limiter.leave(entered, "failed", 0)

        await asyncio.gather(*map(one, range(6)))
        return order

    assert asyncio.run(run()) == list(range(6))


@pytest.mark.parametrize("steps", range(4))
def test_a_caller_who_gives_up_waiting_takes_no_place(steps: int) -> None:
    """Whether it gives up before its turn, or when it is its turn and it has not noticed."""

    async def run() -> int:
        limiter = Limiter(1)
        held = await limiter.enter(0)
        waiting = [asyncio.create_task(limiter.enter(0)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        limiter.leave(held, "failed", 0)
        for _ in range(steps):
            await asyncio.sleep(0)
        if waiting[1].done():
            limiter.leave(waiting[1].result(), "failed", 0)
        waiting[1].cancel()
        await asyncio.gather(*waiting[:2], return_exceptions=True)
        limiter.leave(await asyncio.wait_for(waiting[2], 1), "failed", 0)
        return limiter.in_flight

    assert asyncio.run(run()) == 0


@given(
    per_minute=st.floats(1, 100_000),
    units=st.lists(st.floats(0, 5_000), min_size=2, max_size=40),
    idle=st.lists(st.floats(0, 30), min_size=40, max_size=40),
)
def test_a_rate_is_kept_to_whatever_is_asked_for(per_minute: float, units: list[float], idle: list[float]) -> None:
    """All but the last, whose debt is still to be waited off, within one second's worth of what flowed in."""
    now = 0.0
    rate = Rate(per_minute, now)
    for unit, pause in zip(units, idle, strict=False):
        now += pause
        now += rate.wait(now)
        assert rate.wait(now) == pytest.approx(0, abs=1e-3)
        rate.take(unit)
    begun = sum(units[:-1])
    assert begun <= now * per_minute / 60 + max(1.0, per_minute / 60) + 1e-3 * max(1.0, begun)


def test_tokens_a_minute_count_the_tokens_that_calls_really_took() -> None:
    """600,000 a minute are 10,000 a second: a call that took 2,000 more than estimated delays the next ones by a fifth of one."""

    async def run() -> float:
        limiter = Limiter(8, tpm=600_000)
        limiter.leave(await limiter.enter(10_000), "answered", 2000)
        began = asyncio.get_running_loop().time()
        await limiter.enter(0)
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(run()) > 0.15
