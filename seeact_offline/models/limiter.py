"""Limits on the calls in flight, and on requests and tokens a minute. Calls pass in the order in which they came.

The number in flight follows what the server takes, as TCP does: it grows with every answer, is halved when the server says that
there are too many (once for all calls that were under way by then), and grows more slowly from there. A call that pauses is not in
flight: it leaves, and enters again.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from math import inf
from typing import Literal

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
