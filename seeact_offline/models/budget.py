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
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import msgspec

from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.journal import Journal
from seeact_offline.models.bills import Bills, Load, Price, Terms, load_of, text_tokens
from seeact_offline.records import CallError, Completion, InputError, Message, OutOfBudget, Usage
from seeact_offline.tokens import Size, visual_tokens

if TYPE_CHECKING:
    from seeact_offline.models.failures import Failure

CALLS_A_STEP = 8
"""Calls for which there has to be money before a further step is begun."""
CALLS_A_BILL = 2
"""Calls in flight that a bill for one of at least their size bears out, besides one that is made alone."""
Outcome = TypeVar("Outcome", bound="Completion | Failure")


def priced(usage: Usage, price: Price | None) -> Usage:
    """The usage with its cost, where it counts tokens and reports none."""
    if price is None or usage.cost_usd or usage.unreported or not (usage.prompt_tokens or usage.completion_tokens):
        return usage
    return replace(usage, cost_usd=price.of(usage.prompt_tokens, usage.completion_tokens))


class _Entry(msgspec.Struct, omit_defaults=True):
    """A line of the ledger: an attempt that is about to be made (`most`), or its cost."""

    attempt: int
    most: float | None = None
    """USD; None in the second line of an attempt."""
    cost: float | None = None
    """USD; None where no price was known."""
    prompt_tokens: int = 0
    """As the server counts, in the second line as well as `completion_tokens`."""
    completion_tokens: int = 0
    text: float = 0.0
    """The size of the attempt, as a `Load` has it, in the first line."""
    pictures: tuple[Size, ...] = ()
    reply: float = 0.0
    model: str = ""
    """The name of its `Terms`."""


class _Paid(NamedTuple):
    """An attempt whose cost is known."""

    model: str
    load: Load
    usage: Usage


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
        self.paid: list[_Paid] = []
        self._attempts = 0
        reserved: dict[int, _Entry] = {}
        for line in self._journal.lines():
            try:
                entry = decoded(line.text, _Entry)
            except FormatError as error:
                raise InputError("out", error.expected, f"{error.got} in line {line.number} of {path}") from None
            self._attempts = max(self._attempts, entry.attempt)
            if entry.most is not None:
                reserved[entry.attempt] = entry
                continue
            self.knows_all = self.knows_all and (entry.cost is not None or price is not None)
            tokens = Usage(1, entry.prompt_tokens, entry.completion_tokens)
            cost = (entry.cost if entry.cost is not None else priced(tokens, price).cost_usd) or 0.0
            self.spent += cost
            self.dearest = max(self.dearest, cost)
            if (first := reserved.pop(entry.attempt, None)) and first.reply:
                load = Load(first.text, first.pictures, first.reply)
                self.paid.append(_Paid(first.model, load, replace(tokens, cost_usd=cost)))
        self.spent += sum(entry.most or 0.0 for entry in reserved.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def reserve(self, most: float, load: Load | None = None, model: str = "") -> int:
        """Notes an attempt that is about to be made; returns its number."""
        self._attempts += 1
        if most:
            sent = {} if load is None else load._asdict()
            self._append(_Entry(self._attempts, most=most, model=model, **sent))
        return self._attempts

    def settle(self, attempt: int, usage: Usage) -> None:
        """Notes the outcome. `usage`: with a cost, or of tokens without a price."""
        if usage.cost_usd is not None or (not usage.unreported and (usage.prompt_tokens or usage.completion_tokens)):
            tokens = (0, 0) if usage.unreported else (usage.prompt_tokens, usage.completion_tokens)
            self._append(_Entry(attempt, None, usage.cost_usd, *tokens))

    def _append(self, entry: _Entry) -> None:
        if not self._journal.is_open:
            self._open.enter_context(self._journal)
        self._journal.append(json.dumps(msgspec.to_builtins(entry)))


class _Reservation(NamedTuple):
    """The money set aside for an attempt in flight."""

    number: int
    most: float
    load: Load
    terms: Terms


class Budget:
    """The money left for all models that share it. Belongs to one event loop at a time."""

    def __init__(
        self,
        limit: float | None = None,
        price: Price | None = None,
        max_tokens: int = 4096,
        picture_rules: tuple[Callable[[Size], int], ...] = (visual_tokens,),
        ledger: Ledger | None = None,
    ) -> None:
        """`limit`: USD, None for any sum. `price`: None where the model itself reports what a call cost. `max_tokens`: most that a
        reply may have. `picture_rules`: the model may count a picture by any of them."""
        self.limit, self.price = inf if limit is None else limit, price
        self._terms = Terms(price, max_tokens, picture_rules)
        self.spent = 0.0 if ledger is None else ledger.spent
        self.refused: float | None = None
        """USD that the call could have cost for which too little was left; None where there was none."""
        self._ledger = ledger
        self._reserved: set[_Reservation] = set()
        self._attempts = 0
        self._dearest = 0.0 if ledger is None else ledger.dearest
        self._bills: dict[Terms, Bills] = {}
        self._freed: asyncio.Event | None = None

    async def spend(
        self,
        messages: Sequence[Message],
        attempt: Callable[[], Awaitable[Outcome]],
        reply: float | None = None,
        terms: Terms | None = None,
    ) -> Outcome:
        """Makes an attempt, and gives back its outcome with its cost. `reply`: most tokens that it may have, infinite for any number; None:
        those of the terms. `terms`: of another model than the budget's own.

        Raises what it raises, OutOfBudget before an attempt that could cost too much, and InputError where there is a limit and nobody
        says what calls cost.
        """
        terms = terms or self._terms
        load = load_of(messages, terms.max_tokens if reply is None or reply == inf else reply)
        bills = self._bills_of(terms)
        reserved = await self._reserve(load, terms, bills)
        usage = Usage(cost_usd=None)
        try:
            outcome = await attempt()
            usage = self._usage(outcome, reserved, bills)
        except CallError as error:
            usage = self._usage(error, reserved, bills)
            error.usage = _charged(error.usage, usage, reserved.most)
            raise
        except InputError:
            # ours, before anything was sent
            usage = Usage(cost_usd=0.0)
            raise
        finally:
            self._settle(reserved, usage, bills)
        is_answer = isinstance(outcome, Completion) or outcome.usage.calls
        if terms.price is None and self.is_limited and is_answer and not bills.tell_costs:
            raise InputError(
                "max_cost", sentence="`max_cost` needs a `price`, or a model that reports what its calls cost"
            )
        return replace(outcome, usage=_charged(outcome.usage, usage, reserved.most))

    @property
    def is_limited(self) -> bool:
        return self.limit < inf

    def has_room(self, steps: int) -> bool:
        """True if so many steps may be under way. Near the limit steps are asked one after the other, so most are finished."""
        reply = Load(0.0, (), self._terms.max_tokens)
        call = max(self._dearest, self._bills_of(self._terms).own_cost(reply)) if self._dearest else inf
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

    def _bills_of(self, terms: Terms) -> Bills:
        if terms not in self._bills:
            self._bills[terms] = bills = Bills(terms)
            for paid in self._ledger.paid if self._ledger is not None else ():
                if paid.model == terms.name:
                    bills.add(paid.load, paid.usage)
        return self._bills[terms]

    def _usage(self, outcome: Completion | Failure | CallError, reserved: _Reservation, bills: Bills) -> Usage:
        """The outcome's usage with its cost, None where nobody knows. A text without token counts is charged by our own count, which is
        never too low; one whose server says that it used nothing, as it was reserved."""
        usage, price = outcome.usage, reserved.terms.price
        if not isinstance(outcome, Completion | CallError) and outcome.unbilled:
            return replace(usage, cost_usd=usage.cost_usd or 0.0)
        if isinstance(outcome, CallError) and not usage.calls:
            return replace(usage, cost_usd=None)
        known = priced(usage, price)
        if price is None or known.cost_usd or known is not usage:
            return known
        if isinstance(outcome, Completion) and not usage.unreported:
            cost = bills.own_cost(reserved.load._replace(reply=text_tokens(outcome.text)))
            return replace(usage, cost_usd=min(cost, reserved.most) if self.is_limited else cost)
        least = price.of(usage.prompt_tokens, usage.completion_tokens)
        return replace(usage, cost_usd=least if least > reserved.most else None)

    async def _reserve(self, load: Load, terms: Terms, bills: Bills) -> _Reservation:
        """Waits until the most that a call may cost can be spent. Raises OutOfBudget where it never will."""
        while True:
            most = 0.0 if terms.price is None and not self.is_limited else bills.most(load)
            if most is None:
                # nobody knows: all that is left
                left = self.limit - self.spent
                most = left * (1 - 1e-9) if left > 0 else inf
            # one count may be wrong where others were right: no more calls at once than bills for calls of that size bear out
            in_flight = sum(one.terms == terms for one in self._reserved)
            is_borne_out = not self.is_limited or in_flight <= CALLS_A_BILL * len(bills.larger(load))
            total = self.spent + sum(one.most for one in self._reserved) + most
            if is_borne_out and total <= self.limit:
                break
            if not self._reserved:
                self.refused = most
                raise OutOfBudget(
                    f"{self.spent:.4f} of {self.limit} USD are spent, and the next call may cost {most:.4f}"
                )
            self._freed = self._freed or asyncio.Event()
            await self._freed.wait()
        if self._ledger is None:
            self._attempts += 1
        else:
            self._attempts = self._ledger.reserve(most, load, terms.name)
        reserved = _Reservation(self._attempts, most, load, terms)
        self._reserved.add(reserved)
        return reserved

    def _settle(self, reserved: _Reservation, usage: Usage, bills: Bills) -> None:
        """A cost that nobody knows counts as all that was reserved."""
        self._reserved.discard(reserved)
        self.spent += reserved.most if usage.cost_usd is None else usage.cost_usd
        if usage.cost_usd is not None:
            self._dearest = max(self._dearest, usage.cost_usd)
        if usage.cost_usd or usage.calls:
            bills.add(reserved.load, usage)
        if self._ledger is not None:
            self._ledger.settle(reserved.number, usage)
        if self._freed is not None:
            self._freed.set()
            self._freed = None


class SharedBudget:
    """The same money for a second model, on its own terms."""

    def __init__(self, budget: Budget, terms: Terms) -> None:
        self._budget, self._terms = budget, terms

    async def spend(
        self, messages: Sequence[Message], attempt: Callable[[], Awaitable[Outcome]], reply: float | None = None
    ) -> Outcome:
        """Spends as `Budget.spend` does."""
        return await self._budget.spend(messages, attempt, reply, self._terms)

    @property
    def is_limited(self) -> bool:
        return self._budget.is_limited


def _charged(reported: Usage, settled: Usage, most: float) -> Usage:
    """The usage as the ledger has it: a cost that nobody knows is all that was reserved."""
    if settled.cost_usd is None and most:
        return replace(settled, cost_usd=most)
    return settled if reported.calls else reported
