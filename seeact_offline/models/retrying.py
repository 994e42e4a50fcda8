"""A call as a row of attempts: through the gate, asked again while that can help, and no longer.

The pauses grow twofold up to LONGEST_PAUSE_S and are drawn at random below that (full jitter), from a seed of the request's own;
a server that names a pause is given it. A pausing call is not in flight, so that others go on.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random

from seeact_offline.models.breaker import Breaker
from seeact_offline.models.failures import Failure
from seeact_offline.models.gate import Gate, Pass
from seeact_offline.records import CallError, CallRecord, Completion, Usage

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
"""Unless the server asks for more."""
PERSISTENT = 8
"""Times that a call is asked again after failures other than rate limits while others get through."""
FIRST_CONTACT_S = 4.0
"""How long a server that was never reached is tried."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a call is asked again."""

    max_wait_s: float = 600.0
    """Attempts and pauses together; time spent before the gate does not count."""
    max_retries: int | None = None


@dataclass
class _Call:
    """What has become of a call so far."""

    random: Random
    answered_before: int
    """Calls that had got through when it began."""
    attempts: int = 0
    spent_s: float = 0.0
    began: float | None = None
    usage: Usage = field(default_factory=Usage)
    failures: Counter[str] = field(default_factory=Counter)
    """By name."""


class Retrying:
    """Makes calls of one server. Belongs to one event loop."""

    def __init__(
        self,
        gate: Gate,
        breaker: Breaker,
        patience: RetryPolicy,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._gate, self._breaker, self._patience, self._sleep = gate, breaker, patience, sleep

    async def call(self, seed: str, tokens: int, attempt: Callable[[], Awaitable[Completion | Failure]]) -> Completion:
        """The answer, with what all attempts have used. `seed`: the request's own; `tokens`: an estimate for the gate.

        Raises CallError for a call that failed, ModelStopped where the run is to stop.
        """
        call = _Call(Random(seed), self._breaker.n_answered)
        while True:
            outcome = await self._try(call, tokens, attempt)
            call.usage += outcome.usage
            if isinstance(outcome, Completion):
                self._breaker.answered()
                record = replace(outcome.call or CallRecord(), attempts=call.attempts, seconds=_since(call.began))
                return replace(outcome, usage=call.usage, call=record)
            pause = self._pause(call, outcome)
            if pause is None:
                raise self._given_up(call, outcome)
            await self._sleep(pause)
            call.spent_s += pause

    async def _try(
        self, call: _Call, tokens: int, attempt: Callable[[], Awaitable[Completion | Failure]]
    ) -> Completion | Failure:
        self._breaker.check()
        place = await self._gate.enter(tokens)
        outcome, began = None, time.monotonic()
        try:
            # another call may have stopped the run while this one waited
            self._breaker.check()
            call.began = began if call.began is None else call.began
            outcome = await attempt()
        finally:
            self._leave(place, outcome)
        call.attempts += 1
        call.spent_s += _since(began)
        return outcome

    def _leave(self, place: Pass, outcome: Completion | Failure | None) -> None:
        used = 0 if outcome is None else outcome.usage.prompt_tokens + outcome.usage.completion_tokens
        if isinstance(outcome, Completion):
            self._gate.leave(place, "answered", used or place.tokens)
        else:
            limited = outcome is not None and (outcome.name == "rate_limited" or outcome.status == 529)
            self._gate.leave(place, "too_many" if limited else "failed", used)

    def _pause(self, call: _Call, failure: Failure) -> float | None:
        """Seconds until the next attempt; None: there is to be none."""
        call.failures[failure.name] += 1
        times = call.failures[failure.name]
        if failure.remedy in ("none", "stop") or call.attempts > _number(self._patience.max_retries):
            return None
        if times > _number(failure.most) or (self._is_alone(call, failure) and times > PERSISTENT):
            return None
        pause = self._drawn_pause(call, failure)
        # a server that has never been reached is not waited for
        is_first = failure.unreachable and self._breaker.n_answered == 0
        most = min(FIRST_CONTACT_S, self._patience.max_wait_s) if is_first else self._patience.max_wait_s
        return pause if call.spent_s + pause <= most else None

    def _is_alone(self, call: _Call, failure: Failure) -> bool:
        """Whether the server answers others meanwhile, and this call is not just one too many."""
        return failure.name != "rate_limited" and self._breaker.n_answered > call.answered_before

    @staticmethod
    def _drawn_pause(call: _Call, failure: Failure) -> float:
        draw = call.random.random()
        if failure.retry_after_s:
            # calls that were refused together must not come back together
            return failure.retry_after_s + draw * min(1.0, failure.retry_after_s / 10)
        return draw * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(call.attempts - 1, 20))

    def _given_up(self, call: _Call, failure: Failure) -> CallError:
        """The error for the step. Raises ModelStopped where one failure more is too many."""
        if failure.answered:
            # its words are the model's, and the same in every run
            self._breaker.answered()
            return CallError(failure.name, failure.detail, call.usage)
        self._breaker.failed(failure)
        after = f" (after {call.attempts} attempts)" if call.attempts > 1 else ""
        if failure.retry_after_s and failure.retry_after_s > self._patience.max_wait_s:
            after += f" (it asks to wait {failure.retry_after_s:.0f} s, max_wait is {self._patience.max_wait_s:.0f})"
        return CallError(failure.name, failure.detail + after, call.usage)


def _number(limit: int | None) -> float:
    return float("inf") if limit is None else limit


def _since(began: float | None) -> float:
    return 0.0 if began is None else time.monotonic() - began
