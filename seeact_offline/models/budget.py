"""A limit on what a run's calls cost that is never exceeded: before each attempt the most that it can cost is reserved.

Where that no longer fits, attempts wait for those in flight, which mostly cost less than was reserved for them. When none is in
flight and it still does not fit, the run is out of budget. Each attempt is written to the run's ledger before it is made and when
its cost is known, so a run that is killed and resumed knows everything that it may have spent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import msgspec

from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.journal import Journal
from seeact_offline.models.failures import Failure
from seeact_offline.records import CallError, Completion, InputError, Message, OutOfBudget, Usage
from seeact_offline.tokens import Size, count_words, visual_tokens

TOKENS_A_WORD = 1.5
BYTES_A_TOKEN = 4
"""A text counts as so many tokens a word, or one for so many bytes, whichever is more: tokenizers cut rare words into pieces."""
CALLS_A_STEP = 8
"""Calls for which there has to be money before a further step is begun."""
UNKNOWN = (2048, 2048)
"""Pixels of a picture that does not say its size."""
MILLION = 1_000_000
Outcome = TypeVar("Outcome", bound="Completion | Failure")


class Price(NamedTuple):
    """The charge of a model, in USD per million tokens."""

    prompt: float
    completion: float


def priced(usage: Usage, price: Price | None) -> Usage:
    """The usage with its cost, where it counts tokens and reports none."""
    if price is None or usage.cost_usd or usage.unreported or not (usage.prompt_tokens or usage.completion_tokens):
        return usage
    cost = (usage.prompt_tokens * price.prompt + usage.completion_tokens * price.completion) / MILLION
    return replace(usage, cost_usd=cost)


class _Entry(msgspec.Struct, omit_defaults=True):
    """A line of the ledger: an attempt that is about to be made (`most`), or its cost."""

    attempt: int
    most: float | None = None
    """USD; None in the second line of an attempt."""
    cost: float | None = None
    """USD; None where no price was known."""
    prompt_tokens: int = 0
    """Noted where no price was known, as `completion_tokens`."""
    completion_tokens: int = 0


class Ledger:
    """The money that a run may have spent, attempt by attempt. A context manager, open for writing inside."""

    def __init__(self, path: Path, price: Price | None = None) -> None:
        """`price`: of attempts that were made when none was known. Raises InputError for a file that cannot be read."""
        self._journal, self._open = Journal(path), ExitStack()
        self.is_new = not path.exists()
        self.knows_all = True
        """False: it holds attempts of which nobody says the price."""
        self.spent = 0.0
        """USD, with all that was reserved for attempts of which nobody knows the outcome."""
        self.dearest = 0.0
        """USD of the attempt that has cost most."""
        self.margin = 1.0
        """The largest ratio of an attempt's cost to the sum that was reserved for it; at least 1."""
        self._attempts = 0
        reserved: dict[int, float] = {}
        for line in self._journal.lines():
            try:
                entry = decoded(line.text, _Entry)
            except FormatError as error:
                raise InputError("out", error.expected, f"{error.got} in line {line.number} of {path}") from None
            self._attempts = max(self._attempts, entry.attempt)
            if entry.most is not None:
                reserved[entry.attempt] = entry.most
                continue
            self.knows_all = self.knows_all and (entry.cost is not None or price is not None)
            tokens = Usage(1, entry.prompt_tokens, entry.completion_tokens)
            cost = (entry.cost if entry.cost is not None else priced(tokens, price).cost_usd) or 0.0
            self.spent += cost
            self.dearest = max(self.dearest, cost)
            if most := reserved.pop(entry.attempt, None):
                self.margin = max(self.margin, cost / most)
        self.spent += sum(reserved.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def reserve(self, most: float) -> int:
        """Notes an attempt that is about to be made; returns its number."""
        self._attempts += 1
        if most:
            self._append(_Entry(self._attempts, most=most))
        return self._attempts

    def settle(self, attempt: int, usage: Usage) -> None:
        """Notes the outcome. `usage`: with a cost, or of tokens without a price."""
        if usage.cost_usd is not None:
            self._append(_Entry(attempt, cost=usage.cost_usd))
        elif usage.prompt_tokens or usage.completion_tokens:
            self._append(_Entry(attempt, None, None, usage.prompt_tokens, usage.completion_tokens))

    def _append(self, entry: _Entry) -> None:
        if not self._journal.is_open:
            self._open.enter_context(self._journal)
        self._journal.append(json.dumps(msgspec.to_builtins(entry)))


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything that decides the cost of a model's calls."""

    price: Price | None = None
    """None where the model itself reports what a call cost."""
    max_tokens: int = 4096
    """Most that a reply may have."""
    picture_tokens: Callable[[Size], int] = visual_tokens
    """Counts the tokens of a picture as the model does."""


class _Reservation(NamedTuple):
    """The money set aside for an attempt in flight."""

    number: int
    most: float
    margin: float


class Budget:
    """The money left for all models that share it. Belongs to one event loop at a time."""

    def __init__(
        self,
        limit: float | None = None,
        price: Price | None = None,
        max_tokens: int = 4096,
        picture_tokens: Callable[[Size], int] = visual_tokens,
        ledger: Ledger | None = None,
    ) -> None:
        """`limit`: USD, None for any sum. `price`: None where the model itself reports what a call cost. `max_tokens`: most that a
        reply may have. `picture_tokens`: what the model counts a picture as."""
        self.limit, self.price = inf if limit is None else limit, price
        self._terms = Terms(price, max_tokens, picture_tokens)
        self.spent = 0.0 if ledger is None else ledger.spent
        self.refused: float | None = None
        """USD that the call could have cost for which too little was left; None where there was none."""
        self._ledger = ledger
        self._reserved: set[_Reservation] = set()
        self._attempts = 0
        self._dearest = 0.0 if ledger is None else ledger.dearest
        # how many times as much a call has cost as it can by our count
        self._margin = 1.0 if ledger is None else ledger.margin
        self._freed: asyncio.Event | None = None

    async def spend(
        self, messages: Sequence[Message], attempt: Callable[[], Awaitable[Outcome]], terms: Terms | None = None
    ) -> Outcome:
        """Makes an attempt, and gives back its outcome with its cost. `terms`: of another model than the budget's own. Raises what it raises, OutOfBudget before an attempt that
        could cost too much, and InputError where there is a limit and nobody says what calls cost."""
        terms = terms or self._terms
        reserved = await self._reserve(messages, terms)
        usage = Usage(cost_usd=None)
        try:
            outcome = await attempt()
            usage = self._usage(outcome, messages, reserved, terms)
        except CallError as error:
            usage = self._usage(error, messages, reserved, terms)
            error.usage = _charged(error.usage, usage, reserved.most)
            raise
        finally:
            self._settle(reserved, usage)
        if terms.price is None and self.limit < inf and not self._dearest:
            raise InputError("max_cost", "a price, or a model that reports what its calls cost", "neither")
        return replace(outcome, usage=_charged(outcome.usage, usage, reserved.most))

    def has_room(self, steps: int) -> bool:
        """True if so many steps may be under way. Near the limit steps are asked one after the other, so most are finished."""
        call = max(self._dearest, _cost((), self._terms.max_tokens, self._terms)) if self._dearest else inf
        return steps <= 1 or self.limit == inf or self.limit - self.spent >= steps * CALLS_A_STEP * call

    def add(self, cost: float) -> None:
        """Counts what was spent elsewhere on this run."""
        self.spent += cost
        if self._ledger is not None and cost:
            self._ledger.settle(self._ledger.reserve(0.0), Usage(cost_usd=cost))

    @property
    def known(self) -> float | None:
        """USD spent; None where no price is known and no call has told its cost."""
        return self.spent if self.spent or self.price is not None else None

    def too_small(self) -> InputError:
        """The error for a run that got no step done with it."""
        if not self.spent:
            return InputError(
                "max_cost", f"at least {self.refused or 0:.4f}, which the first call may cost", str(self.limit)
            )
        wanted = "enough for a step"
        return InputError(
            "max_cost", wanted, f"{self.limit}, of which {self.spent:.4f} were spent before any step was answered"
        )

    def _usage(
        self,
        outcome: Completion | Failure | CallError,
        messages: Sequence[Message],
        reserved: _Reservation,
        terms: Terms,
    ) -> Usage:
        """The outcome's usage with its cost, None where nobody knows. A text without token counts is charged by our own count, which is
        never too low."""
        usage = outcome.usage
        if isinstance(outcome, Failure) and outcome.unbilled:
            return replace(usage, cost_usd=usage.cost_usd or 0.0)
        if isinstance(outcome, CallError) and not usage.calls:
            return replace(usage, cost_usd=None)
        known = priced(usage, terms.price)
        if terms.price is None or known.cost_usd or known is not usage:
            return known
        if isinstance(outcome, Completion) and not usage.unreported:
            cost = _cost(messages, _tokens(outcome.text), terms)
            return replace(usage, cost_usd=cost if self.limit == inf else min(cost, reserved.most))
        return replace(usage, cost_usd=None)

    async def _reserve(self, messages: Sequence[Message], terms: Terms) -> _Reservation:
        """Waits until the most that a call may cost can be spent. Raises OutOfBudget where it never will."""
        while True:
            if terms.price is not None:
                most = self._margin * _cost(messages, terms.max_tokens, terms)
            elif self.limit == inf:
                most = 0.0
            else:
                # only past costs are known: all that is left for the first call, then twice the dearest
                left = self.limit - self.spent
                most = 2 * self._dearest or (left * (1 - 1e-9) if left > 0 else inf)
            # the first call is made alone: it shows how far our count of tokens is right
            is_first_under_way = self._reserved and not self._dearest and self.limit < inf
            total = self.spent + sum(one.most for one in self._reserved) + most
            if not is_first_under_way and total <= self.limit:
                break
            if not self._reserved:
                self.refused = most
                raise OutOfBudget(
                    f"{self.spent:.4f} of {self.limit} USD are spent, and the next call may cost {most:.4f}"
                )
            self._freed = self._freed or asyncio.Event()
            await self._freed.wait()
        self._attempts = self._attempts + 1 if self._ledger is None else self._ledger.reserve(most)
        reserved = _Reservation(self._attempts, most, self._margin)
        self._reserved.add(reserved)
        return reserved

    def _settle(self, reserved: _Reservation, usage: Usage) -> None:
        """A cost that nobody knows counts as all that was reserved."""
        self._reserved.discard(reserved)
        self.spent += reserved.most if usage.cost_usd is None else usage.cost_usd
        if usage.cost_usd is not None:
            self._dearest = max(self._dearest, usage.cost_usd)
            if reserved.most:
                # calls that cost more than they can by our count: from now on more is reserved
                self._margin = max(self._margin, reserved.margin * usage.cost_usd / reserved.most)
        if self._ledger is not None:
            self._ledger.settle(reserved.number, usage)
        if self._freed is not None:
            self._freed.set()
            self._freed = None


class SharedBudget:
    """The same money for a second model, on its own terms."""

    def __init__(self, budget: Budget, terms: Terms) -> None:
        self._budget, self._terms = budget, terms

    async def spend(self, messages: Sequence[Message], attempt: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Spends as `Budget.spend` does."""
        return await self._budget.spend(messages, attempt, self._terms)


def _charged(reported: Usage, settled: Usage, most: float) -> Usage:
    """The usage as the ledger has it: a cost that nobody knows is all that was reserved."""
    if settled.cost_usd is None and most:
        return replace(settled, cost_usd=most)
    return settled if reported.calls else reported


def _cost(messages: Sequence[Message], reply_tokens: float, terms: Terms) -> float:
    """USD that these messages and a reply of so many tokens cost; 0 without a price."""
    if terms.price is None:
        return 0.0
    prompt = sum(_tokens(message.text) for message in messages)
    pictures = [message.picture for message in messages if message.picture is not None]
    prompt += sum(terms.picture_tokens(getattr(picture, "size", UNKNOWN)) for picture in pictures)
    return (prompt * terms.price.prompt + reply_tokens * terms.price.completion) / MILLION


def _tokens(text: str) -> float:
    # a run of other letters may be a sentence, and each of them more than a token
    others = sum(not character.isascii() for character in text)
    return TOKENS_A_WORD * others + max(TOKENS_A_WORD * count_words(text), len(text) / BYTES_A_TOKEN)
