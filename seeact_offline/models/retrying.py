"""Makes a call as a series of attempts: through the limiter, and again while that can help; and stops a run in which
nothing gets through.

The pauses grow twofold up to LONGEST_PAUSE_S and are drawn at random below that (full jitter), from a seed of the
request's own; a server that names a pause is given it. A pausing call is not in flight, so others proceed. The SDK's
own retries are switched off: they know no limits, no budget and no other calls.

A run that continued without answers would spend hours to fill its results with zeros. It ends with an error in the
server's words; what has been answered until then stays, and the same command resumes from there.

The number of calls in flight follows what the server takes, as TCP does: it grows with every answer, is halved when the
server says that there are too many (once for all calls that were under way by then), and grows more slowly from there.
Calls pass in the order in which they came.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Literal, TypeVar, cast

import msgspec

from seeact_offline.models.failures import RETRIES, STOPPING, Failure
from seeact_offline.records import CallError, CallRecord, Completion, ModelStopped, Usage

# begins low, because nobody knows yet what the server takes: every answer adds one
FIRST_IN_FLIGHT = 8
Verdict = Literal["answered", "too_many", "failed"]


class Rate:
    """So many units a minute, evenly: what is taken beyond what has flowed in since is owed, and delays the next."""

    def __init__(self, per_minute: float, now: float) -> None:
        """`per_minute`: infinite for no limit."""
        self._per_s = per_minute / 60
        self._most = max(1.0, self._per_s)
        self._level, self._at = self._most, now

    def wait(self, now: float) -> float:
        """Seconds until the next may begin; 0: at once."""
        if self._per_s == inf:
            return 0.0
        self._level, self._at = min(self._most, self._level + (now - self._at) * self._per_s), now
        # what rounding leaves over is no reason to wait
        return max(0.0, 1.0 - 1e-6 - self._level) / self._per_s

    def take(self, units: float) -> None:
        """Negative units are given back."""
        self._level -= units


class Limiter:
    """Belongs to one event loop."""

    def __init__(self, most: int, rpm: float | None = None, tpm: float | None = None) -> None:
        """`most`: calls in flight; `rpm`, `tpm`: requests and tokens a minute, None for any number."""
        self.allowed = float(min(most, FIRST_IN_FLIGHT))
        """Calls that may be in flight now."""
        self.in_flight = 0
        self._most, self._n_halved = most, 0
        self._requests, self._tokens = (Rate(inf if rate is None else rate, time.monotonic()) for rate in (rpm, tpm))
        # a lock is given to those who wait for it in their order
        self._next, self._changed = asyncio.Lock(), asyncio.Event()

    async def enter(self, tokens: int) -> int:
        """Waits for a place, which the caller must `leave`; returns what to leave it with. `tokens`: an estimate."""
        async with self._next:
            while True:
                now = time.monotonic()
                # where all places are taken, a call has to leave first
                is_full = self.in_flight >= int(self.allowed)
                wait = inf if is_full else max(self._requests.wait(now), self._tokens.wait(now))
                if wait <= 0:
                    break
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if wait == inf else wait):
                        await self._changed.wait()
            self.in_flight += 1
            self._requests.take(1)
            self._tokens.take(tokens)
            return self._n_halved

    def leave(self, entered: int, verdict: Verdict, more_tokens: int) -> None:
        """`entered`: from `enter`; `more_tokens`: those that it took beyond the estimate."""
        self.in_flight -= 1
        self._tokens.take(more_tokens)
        if verdict == "answered":
            self.allowed = min(float(self._most), self.allowed + (1 / self.allowed if self._n_halved else 1))
        elif verdict == "too_many" and entered == self._n_halved:
            self.allowed = max(1.0, self.allowed / 2)
            self._n_halved += 1
        self._changed.set()


# --- attempts ---

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
"""Longest pause, unless the server asks for more."""
ENOUGH = 10
"""Calls of which a share means something."""
MOST_PAID = 5
"""Attempts at a call that the server bills, answers that it broke off itself among them."""
PERSISTENT = 8
"""Times that a call is asked again after failures other than rate limits while others get through."""
FIRST_CONTACT_S = 4.0
"""Seconds for which a server that was never reached is tried."""
FIRST_IN_A_ROW = 10
"""Failed calls, before any has got through, that stop a run."""
MOST_IN_A_ROW = 20
"""Failed calls one after the other that stop it later."""
T = TypeVar("T")
Attempt = Callable[[], Awaitable[T | Failure]]


@dataclass
class _Progress:
    """A call so far."""

    random: Random
    answered_before: int
    """Calls that had got through when it began."""
    began: float = 0.0
    spent_s: float = 0.0
    """Seconds in attempts and pauses; time spent before the limiter does not count."""
    usage: Usage = field(default_factory=Usage)
    failures: Counter[str] = field(default_factory=Counter)
    """Counts by the failure's name."""


class Retrier:
    """Makes calls of one server. Belongs to one event loop."""

    def __init__(
        self,
        limiter: Limiter,
        breaker: Breaker,
        max_wait_s: float = 600.0,
        max_retries: int | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`max_wait_s`: for attempts and pauses together; `max_retries`: None for any number."""
        self._limiter, self._breaker, self._sleep = limiter, breaker, sleep
        self._max_wait_s, self._max_retries = max_wait_s, inf if max_retries is None else max_retries

    async def call(self, seed: str, tokens: int, attempt: Attempt[T]) -> T:
        """The result; a completion with everything that all attempts have used. `seed`: the request's own; `tokens`: an
        estimate for the limiter.

        Raises CallError for a call that failed, ModelStopped where the run is to stop.
        """
        call = _Progress(Random(seed), self._breaker.n_answered)
        while True:
            outcome = await self._attempt(call, tokens, attempt)
            call.usage += _usage(outcome)
            if not isinstance(outcome, Failure):
                self._breaker.answered()
                if not isinstance(outcome, Completion):
                    return outcome
                seconds = time.monotonic() - call.began
                record = msgspec.structs.replace(
                    outcome.call or CallRecord(), attempts=call.failures.total() + 1, seconds=seconds
                )
                return cast("T", replace(outcome, usage=call.usage, call=record))
            call.failures[outcome.name] += 1
            pause = self._pause(call, outcome)
            # a server that has never been reached is not waited for
            is_first = outcome.unreachable and self._breaker.n_answered == 0
            max_wait_s = min(FIRST_CONTACT_S, self._max_wait_s) if is_first else self._max_wait_s
            if pause == inf or call.spent_s + pause > max_wait_s:
                raise self._error(call, outcome)
            await self._sleep(pause)
            call.spent_s += pause

    async def _attempt(self, call: _Progress, tokens: int, attempt: Attempt[T]) -> T | Failure:
        self._breaker.check()
        entered = await self._limiter.enter(tokens)
        verdict: Verdict = "failed"
        used, began = 0, time.monotonic()
        call.began = call.began or began
        try:
            # another call may have stopped the run while this one waited
            self._breaker.check()
            outcome = await attempt()
            used = _usage(outcome).prompt_tokens + _usage(outcome).completion_tokens
            if not isinstance(outcome, Failure):
                verdict, used = "answered", used or tokens
            elif outcome.name == "rate_limited" or outcome.status == 529:
                verdict = "too_many"
        finally:
            self._limiter.leave(entered, verdict, used - tokens)
        call.spent_s += time.monotonic() - began
        return outcome

    def _pause(self, call: _Progress, failure: Failure) -> float:
        """Seconds until the next attempt; infinite where there is to be none."""
        times, attempts = call.failures[failure.name], call.failures.total()
        # the server answers others meanwhile, and this call is not just one too many
        is_alone = failure.name != "rate_limited" and self._breaker.n_answered > call.answered_before
        if attempts > self._max_retries or times > RETRIES.get(failure.name, 0) or (is_alone and times > PERSISTENT):
            return inf
        if call.usage.calls >= MOST_PAID:
            return inf
        if failure.hopeless and self._breaker.n_answered == 0:
            return inf
        draw = call.random.random()
        if failure.retry_after_s:
            # calls that were refused together must not come back together
            return failure.retry_after_s + draw * min(1.0, failure.retry_after_s / 10)
        return draw * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 20))

    def _error(self, call: _Progress, failure: Failure) -> CallError:
        """The error for the step. Raises ModelStopped where one failure more is too many."""
        if failure.error.answered:
            # its words are the model's, and the same in every run
            self._breaker.answered()
            return CallError(failure.name, failure.detail, call.usage)
        self._breaker.failed(failure)
        attempts = call.failures.total()
        after = f" (after {attempts} attempts)" if attempts > 1 else ""
        if failure.retry_after_s and failure.retry_after_s > self._max_wait_s:
            after += f" (it asks to wait {failure.retry_after_s:.0f} s, max_wait is {self._max_wait_s:.0f})"
        return CallError(failure.name, failure.detail + after, call.usage)


def _usage(outcome: object) -> Usage:
    return outcome.usage if isinstance(outcome, Completion | Failure) else Usage()


class Breaker:
    """Counts finished calls. Once it has stopped the run, `check` raises ModelStopped too."""

    def __init__(self, server: str, most_failed: float | None = None) -> None:
        """`server`: as errors name it; `most_failed`: the share of failed calls beyond which the run stops, from 0 to
        1."""
        self.n_answered = 0
        """Calls that got through."""
        self._server, self._most_failed = server, most_failed
        self._n_failed = self._in_a_row = 0
        self._stopped: ModelStopped | None = None

    def check(self) -> None:
        """Raises ModelStopped once the run is to stop."""
        if self._stopped is not None:
            raise ModelStopped(*self._stopped.args)

    def answered(self) -> None:
        """Counts a call that got through."""
        self.n_answered += 1
        self._in_a_row = 0

    def failed(self, failure: Failure) -> None:
        """Counts a call that failed for good. Raises ModelStopped where that is one too many."""
        self._n_failed += 1
        self._in_a_row += 1
        n, is_first = self.n_answered + self._n_failed, self.n_answered == 0
        expected = ""
        if failure.name in STOPPING or (is_first and (failure.hopeless or failure.unreachable)):
            expected = f"an answer from {self._server}"
        elif self._in_a_row >= (FIRST_IN_A_ROW if is_first else MOST_IN_A_ROW):
            expected = f"answers from {self._server}, not {self._in_a_row} failed calls in a row"
        elif self._most_failed is not None and self._n_failed > self._most_failed * max(n, ENOUGH):
            expected = f"at most {self._most_failed:.0%} of calls to fail, not {self._n_failed} of {n}"
        if expected and self._stopped is None:
            self._stopped = ModelStopped("model", expected, f"{failure.name}: {failure.detail}")
        if expected:
            self.check()
