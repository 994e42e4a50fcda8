"""A limit on what a run's calls cost that is never exceeded: before each attempt the most that it can cost is reserved.

Where that no longer fits, attempts wait for those in flight, which mostly cost less than was reserved for them. When
none is in flight and it still does not fit, the run is out of budget. Each attempt is written to the run's ledger
before it is made and when its cost is known, so a run that is killed and resumed knows everything that it may have
spent.

The most that a call can cost follows from what is known of it and from the bills for the calls before it. A prompt's
pictures are counted by the dearest rule that no bill has refuted: a rule under which an earlier prompt would have had
more tokens than were billed is not the model's. Bills that are larger than the count raise it, each for prompt, reply
and price. Without a price, the bills are bounds of one: no token of a reply can have cost more than its whole call
divided by their number.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self, TypeVar

import msgspec

from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.whole import Journal
from seeact_offline.models.tokens import Size, count_words, visual_tokens
from seeact_offline.records import CallError, Completion, InputError, Message, OutOfBudget, Usage

if TYPE_CHECKING:
    from seeact_offline.models.failures import Failure

TOKENS_A_WORD = 1.5
BYTES_A_TOKEN = 4
"""A text counts as so many tokens a word, or one for so many bytes, whichever is more: tokenizers cut rare words into
pieces."""
PIXELS_A_TOKEN = 784
"""By which the sizes of calls are compared, whatever rule the server has."""
FRAME_TOKENS = 500
"""Tokens of a prompt beyond our count up to which they are taken for what servers put around every conversation."""
UNKNOWN = (2048, 2048)
"""Pixels of a picture that does not say its size."""
MILLION = 1_000_000
LAST_CALLS_S = 5
"""Seconds for which calls in flight, which are paid for, are waited for when a run is interrupted."""
CHEAP_TIERS = frozenset(
    {"", "auto", "default", "standard", "standard_only", "on_demand", "scale", "shared", "flex", "batch"}
)
"""Service tiers that cost the usual price, or less."""


class Price(NamedTuple):
    """The charge of a model, in USD per million tokens.

    >>> Price(prompt=2.5, completion=10).of(prompt_tokens=1000, completion_tokens=200)
    0.0045
    """

    prompt: float
    completion: float
    tiers: tuple[tuple[str, Price], ...] = ()
    """Prices of service tiers, by the name that requests and replies give them."""

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """USD for so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / MILLION

    def in_tier(self, tier: str) -> Price | None:
        """The price in a service tier; None for one that may cost more, and has no price of its own."""
        return dict(self.tiers).get(tier, self if tier in CHEAP_TIERS else None)

    @property
    def dearest(self) -> Price:
        """The price in the dearest tier: a server may answer in another than was asked for."""
        prices = [self, *(price for _, price in self.tiers)]
        return Price(max(price.prompt for price in prices), max(price.completion for price in prices))


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything that decides the cost of a model's calls."""

    price: Price | None = None
    """None where the model itself reports what a call cost."""
    max_tokens: int = 4096
    """Most that a reply may have, where a call does not say otherwise."""
    picture_rules: tuple[Callable[[Size], int], ...] = (visual_tokens,)
    """Each counts the tokens of a picture as the model may do."""
    name: str = ""
    """Tells the models of a run apart; empty for the first."""


class Load(NamedTuple):
    """The size of a call: all that it sends, and the most that it can get."""

    text: float
    """The most tokens that all texts can have."""
    pictures: tuple[Size, ...]
    reply: float
    """Most tokens of the reply."""

    @property
    def size(self) -> float:
        """Tokens by which calls are compared."""
        return self.text + sum(width * height / PIXELS_A_TOKEN for width, height in self.pictures)


NOTHING = Load(0.0, (), 0.0)


def load_of(messages: Sequence[Message], reply: float) -> Load:
    """The load of a call. `reply`: most tokens of it."""
    sizes = [getattr(message.picture, "size", UNKNOWN) for message in messages if message.picture is not None]
    text = sum(text_tokens(message.text) for message in messages)
    return Load(text, tuple((int(width), int(height)) for width, height in sizes), reply)


def text_tokens(text: str) -> float:
    """The most tokens that a text can plausibly have."""
    # a run of other letters may be a sentence, and each of them more than a token
    others = len(text) - len(text.encode("ascii", "ignore"))
    return TOKENS_A_WORD * others + max(TOKENS_A_WORD * count_words(text), len(text) / BYTES_A_TOKEN)


class Bills:
    """The bills for a model's calls, and what follows from them for the next."""

    def __init__(self, terms: Terms) -> None:
        self._price, self._rules = terms.price, list(terms.picture_rules)
        self._bills: list[tuple[float, float]] = []
        """Size of a call and its USD, in order of size."""
        self._prompts: list[tuple[Load, int]] = []
        """With their tokens as billed."""
        self._prompt_factor = self._reply_factor = self._price_factor = 1.0
        """Largest ratios of what was billed to our count of it; at least 1."""
        self._frame = 0.0
        """Most tokens of a prompt beyond our count, as far as they are few."""
        self._prompt_rate, self._reply_rate = 0.0, inf
        """Most USD per million tokens, as far as the bills tell."""

    def larger(self, load: Load) -> Sequence[float]:
        """USD of each call that was at least so large."""
        return [usd for _, usd in self._bills[bisect_left(self._bills, (load.size,)) :]]

    def most(self, load: Load) -> float | None:
        """USD that a call can cost; None where no bill tells."""
        price = self._price
        if price is None and self._prompt_rate and self._reply_rate < inf:
            price = Price(self._prompt_rate, self._reply_rate)
        if price is not None:
            tokens = self._frame + self._prompt_factor * self._prompt_tokens(load)
            return self._price_factor * price.dearest.of(tokens, self._reply_factor * load.reply)
        # replies differ in length
        return 2 * max(self.larger(load)) if self.larger(load) else None

    def own_cost(self, load: Load) -> float:
        """USD by our count alone; 0 without a price."""
        return 0.0 if self._price is None else self._price.of(self._prompt_tokens(load), load.reply)

    def add(self, load: Load, usage: Usage) -> None:
        """Notes the bill for a call. `usage`: with its cost."""
        cost, prompt, reply = usage.cost_usd or 0.0, usage.prompt_tokens, usage.completion_tokens
        insort(self._bills, (load.size, cost))
        is_counted = prompt > 0 and not usage.unreported
        if self._price is not None:
            usd = self._price.dearest.of(*((prompt, reply) if is_counted else (self._prompt_tokens(load), load.reply)))
            self._price_factor = max(self._price_factor, cost / usd if usd else 0.0)
        elif is_counted:
            self._prompt_rate = max(self._prompt_rate, cost * MILLION / prompt)
            if reply and cost:
                self._reply_rate = min(self._reply_rate, cost * MILLION / reply)
        if not is_counted:
            return
        self._reply_factor = max(self._reply_factor, reply / load.reply)
        self._prompts.append((load, prompt))
        counts = {rule: sum(map(rule, load.pictures)) for rule in self._rules}
        # where all count more, the one that counts least is nearest
        bound = max(prompt, min(counts.values()))
        self._rules = [rule for rule, count in counts.items() if count <= bound]
        # fewer rules count less, for earlier prompts too
        for earlier, billed in self._prompts if len(self._rules) < len(counts) else self._prompts[-1:]:
            beyond = billed - self._prompt_tokens(earlier)
            if beyond <= FRAME_TOKENS:
                self._frame = max(self._frame, beyond)
            else:
                self._prompt_factor = max(self._prompt_factor, billed / max(1.0, billed - beyond))

    def _prompt_tokens(self, load: Load) -> float:
        return load.text + max(sum(map(rule, load.pictures)) for rule in self._rules)


# --- money that is left ---

CALLS_A_STEP = 8
"""Calls for which there has to be money before a further step is begun."""
CALLS_A_BILL = 2
"""Calls in flight that a bill for one of at least their size bears out, besides one that is made alone."""
NOISE = 1e-9
"""USD by which sums of the same costs in another order may differ."""
_WHOLE = re.compile(r"\{[^{}]*\}")
"""An entry of a ledger. A damaged line may have one behind NULs, or behind half of another."""
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
Outcome = TypeVar("Outcome", bound="Completion | Failure")


def priced(usage: Usage, price: Price | None) -> Usage:
    """The usage with its cost, where it counts tokens and reports none."""
    if price is None or usage.cost_usd or usage.unreported or not (usage.prompt_tokens or usage.completion_tokens):
        return usage
    return msgspec.structs.replace(usage, cost_usd=price.of(usage.prompt_tokens, usage.completion_tokens))


class _Entry(msgspec.Struct, omit_defaults=True):
    """A line of the ledger: an attempt that is about to be made (`most`), or its cost."""

    attempt: int
    """0 for money that was spent elsewhere."""
    most: _Amount = 0.0
    """USD; 0 in the second line of an attempt."""
    cost: _Amount | None = None
    """USD; None where no price was known."""
    prompt_tokens: _Count = 0
    """As the server counts, in the second line as well as `completion_tokens`."""
    completion_tokens: _Count = 0
    load: Load = NOTHING
    """In the first line."""
    model: str = ""
    """The name of its `Terms`."""


class Ledger:
    """The money that a run may have spent, attempt by attempt. A context manager, open for writing inside."""

    def __init__(self, path: Path | None = None, price: Price | None = None, kept: float = 0.0) -> None:
        """`path`: None for no file. `price`: of attempts that were made when none was known. `kept`: USD that kept
        answers have cost; it counts where the lines say less, and is noted inside. Ignores what cannot be read of a
        damaged file. Raises OSError."""
        self._journal, self._open = None if path is None else Journal(path), ExitStack()
        self.knows_all = True
        """False: it holds attempts of which nobody says the price."""
        self.spent = self.dearest = self.refused = 0.0
        """USD, of all attempts whose outcome is known or never will be; of the dearest attempt; of the last for which
        too little was left."""
        self.in_flight: dict[int, _Entry] = {}
        self.freed = asyncio.Event()
        """The next attempt in flight that ends."""
        self._bills: dict[Terms, Bills] = {}
        self._paid: list[tuple[_Entry, Usage]] = []
        self.n_answered = 0
        """Calls answered since it was opened."""
        entries, n_damaged = _read(self._journal)
        self._attempts = max((entry.attempt for entry in entries), default=0)
        reserved = {entry.attempt: entry for entry in entries if entry.most}
        for entry in entries:
            if not entry.most:
                self.knows_all = self.knows_all and (entry.cost is not None or price is not None)
                tokens = entry.prompt_tokens, entry.completion_tokens
                usage = priced(Usage(int(any(tokens)), *tokens, cost_usd=entry.cost), price)
                # a damaged file may have lost what was reserved
                self._count(reserved.pop(entry.attempt, entry), usage)
        self.spent += sum(entry.most for entry in reserved.values())
        self._lacking = kept - self.spent if kept > self.spent + NOISE else 0.0
        self.spent += self._lacking
        damage = f"{path} lacked {self._lacking:.4f} USD that kept replies have cost, and {n_damaged} of its lines are damaged"
        self.remarks = (damage,) if self._lacking or n_damaged else ()
        self.spent_before = self.spent if entries else None
        """USD that earlier sessions of the run have spent; None for the first."""

    def __enter__(self) -> Self:
        if self._lacking:
            self._append(_Entry(0, cost=self._lacking))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, cost: float, calls: int = 0) -> None:
        """Counts what was spent elsewhere on this run, for so many calls."""
        self.spent += cost
        self.n_answered += calls
        if cost:
            self._append(_Entry(0, cost=cost))

    def reserve(self, most: float, load: Load, model: str, is_durable: bool) -> _Entry:
        """Notes an attempt that is about to be made. `is_durable`: it is on disk when this returns."""
        self._attempts += 1
        entry = _Entry(self._attempts, most, load=load, model=model)
        if most:
            self._append(entry, is_durable)
        self.in_flight[entry.attempt] = entry
        return entry

    def settle(self, reserved: _Entry, usage: Usage) -> None:
        """Notes the outcome. `usage`: with a cost, or of tokens without a price; else all that was reserved counts."""
        del self.in_flight[reserved.attempt]
        self.n_answered += bool(usage.calls)
        self._count(reserved, usage)
        tokens = (0, 0) if usage.unreported else (usage.prompt_tokens, usage.completion_tokens)
        if usage.cost_usd is not None or any(tokens):
            self._append(_Entry(reserved.attempt, 0.0, usage.cost_usd, *tokens))
        self.freed.set()
        self.freed = asyncio.Event()

    def bills(self, terms: Terms) -> Bills:
        """The bills of a model, with all that come later."""
        if terms not in self._bills:
            self._bills[terms] = Bills(terms)
            for reserved, usage in self._paid:
                if reserved.model == terms.name:
                    self._bills[terms].add(reserved.load, usage)
        return self._bills[terms]

    def _count(self, reserved: _Entry, usage: Usage) -> None:
        self.spent += reserved.most if usage.cost_usd is None else usage.cost_usd
        if reserved.load.reply > 0 and usage.cost_usd is not None and (usage.cost_usd or usage.calls):
            self.dearest = max(self.dearest, usage.cost_usd)
            self._paid.append((reserved, usage))
            for terms, bills in self._bills.items():
                if terms.name == reserved.model:
                    bills.add(reserved.load, usage)

    def _append(self, entry: _Entry, is_durable: bool = False) -> None:
        if self._journal is not None:
            if not self._journal.is_open:
                self._open.enter_context(self._journal)
            self._journal.append(msgspec.json.encode(entry).decode(), is_durable)


def _read(journal: Journal | None) -> tuple[list[_Entry], int]:
    """Everything that can be read of a ledger, and the number of damaged lines."""
    entries, n_damaged = list[_Entry](), 0
    for line in () if journal is None else journal.lines():
        parts, n_damaged = _WHOLE.findall(line.text), n_damaged + 1
        with suppress(FormatError):
            entries += [decoded(part, _Entry) for part in parts]
            n_damaged -= parts == [line.text]
    return entries, n_damaged


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
        """`limit`: USD, None for any sum. `price`: None where the model itself reports what a call cost. `max_tokens`:
        most that a reply may have. `picture_rules`: the model may count a picture by any of them."""
        self.limit, self.is_limited = inf if limit is None else limit, limit is not None and limit < inf
        self._ledger, self._terms = ledger or Ledger(), Terms(price, max_tokens, picture_rules)
        self._bills = self._ledger.bills(self._terms)
        self.add, self.remarks = self._ledger.add, self._ledger.remarks

    def sharing(self, terms: Terms) -> Budget:
        """The same money for a second model, on its own terms."""
        second = copy(self)
        second._terms, second._bills = terms, self._ledger.bills(terms)
        return second

    @property
    def spent(self) -> float:
        """USD, without attempts in flight."""
        return self._ledger.spent

    @property
    def known(self) -> float | None:
        """USD spent; None where no price is known and no call has told its cost."""
        return self.spent if self.spent or self._terms.price is not None else None

    @property
    def since_resumed(self) -> str:
        """`40 sent and 0.2272 USD spent since the run resumed`; empty in its first session."""
        before = self._ledger.spent_before
        if before is None:
            return ""
        cost = "" if self.known is None else f" and {self.spent - before:.4f} USD spent"
        return f"{self._ledger.n_answered} sent{cost} since the run resumed"

    async def spend(
        self, messages: Sequence[Message], attempt: Callable[[], Awaitable[Outcome]], reply: float | None = None
    ) -> Outcome:
        """Makes an attempt, and gives back its outcome with its cost. `reply`: most tokens that it may have; None,
        infinite: as in the terms.

        Raises what it raises, OutOfBudget before an attempt that could cost too much, and InputError where there is a
        limit and nobody says what calls cost.
        """
        most_tokens = self._terms.max_tokens if reply is None or reply == inf else reply
        reserved = await self._reserve(load_of(messages, most_tokens))
        try:
            outcome = await attempt()
        except CallError as error:
            error.usage = self._settle(reserved, error)
            raise
        except BaseException as error:
            # an InputError is ours, before anything was sent
            self._ledger.settle(reserved, Usage(cost_usd=0.0 if isinstance(error, InputError) else None))
            raise
        usage = self._settle(reserved, outcome)
        is_answer = isinstance(outcome, Completion) or outcome.usage.calls
        # every call is larger than nothing
        if self._terms.price is None and self.is_limited and is_answer and not any(self._bills.larger(NOTHING)):
            needs = "`max_cost` needs a `price`, or a model that reports what its calls cost"
            raise InputError("max_cost", sentence=needs)
        return replace(outcome, usage=usage)

    def has_room(self, steps: int) -> bool:
        """True if so many steps may be under way. Near the limit steps are asked one after the other, so most are
        finished."""
        reply, dearest = NOTHING._replace(reply=self._terms.max_tokens), self._ledger.dearest
        call = max(dearest, self._bills.own_cost(reply)) if dearest else inf
        return steps <= 1 or not self.is_limited or self.limit - self.spent >= steps * CALLS_A_STEP * call

    def too_small(self) -> InputError:
        """The error for a run that got no step done with it."""
        spent = f"{self.limit}, of which {self.spent:.4f} were spent before any step was answered"
        least = f"at least {self._ledger.refused:.4f}, which the first call may cost"
        return InputError("max_cost", *(("enough for a step", spent) if self.spent else (least, str(self.limit))))

    def _settle(self, reserved: _Entry, outcome: Completion | Failure | CallError) -> Usage:
        """Notes an outcome. Returns its usage with its cost, all that was reserved where nobody knows."""
        usage = self._usage(reserved, outcome)
        self._ledger.settle(reserved, usage)
        if usage.cost_usd is not None:
            return usage
        return msgspec.structs.replace(usage, cost_usd=reserved.most or outcome.usage.cost_usd)

    def _usage(self, reserved: _Entry, outcome: Completion | Failure | CallError) -> Usage:
        """The outcome's usage with its cost, None where nobody knows. A text without token counts is charged by our own
        count, which is never too low; one whose server says that it used nothing, as it was reserved."""
        usage, price, most = outcome.usage, self._terms.price, reserved.most
        if not isinstance(outcome, Completion | CallError) and outcome.unbilled:
            return msgspec.structs.replace(usage, cost_usd=usage.cost_usd or 0.0)
        if isinstance(outcome, CallError) and not usage.calls:
            return msgspec.structs.replace(usage, cost_usd=None)
        with_cost = priced(usage, price)
        if price is None or with_cost.cost_usd or with_cost is not usage:
            return with_cost
        if isinstance(outcome, Completion) and not usage.unreported:
            cost = self._bills.own_cost(reserved.load._replace(reply=text_tokens(outcome.text)))
            return msgspec.structs.replace(usage, cost_usd=min(cost, most) if self.is_limited else cost)
        least = price.of(usage.prompt_tokens, usage.completion_tokens)
        return msgspec.structs.replace(usage, cost_usd=least if least > most else None)

    async def _reserve(self, load: Load) -> _Entry:
        """Waits until the most that a call may cost can be spent. Raises OutOfBudget where it never will."""
        ledger, terms = self._ledger, self._terms
        while True:
            most = 0.0 if terms.price is None and not self.is_limited else self._bills.most(load)
            if most is None:
                # nobody knows: all that is left
                most = (self.limit - self.spent) * (1 - 1e-9) if self.limit > self.spent else inf
            # one count may be wrong where others were right: no more calls at once than bills for calls of that size bear out
            in_flight = sum(entry.model == terms.name for entry in ledger.in_flight.values())
            is_borne_out = not self.is_limited or in_flight <= CALLS_A_BILL * len(self._bills.larger(load))
            total = self.spent + sum(entry.most for entry in ledger.in_flight.values()) + most
            if is_borne_out and total <= self.limit:
                return ledger.reserve(most, load, terms.name, self.is_limited)
            if not ledger.in_flight:
                ledger.refused = most
                spent = f"{self.spent:.4f} of {self.limit} USD are spent"
                raise OutOfBudget(f"{spent}, and the next call may cost {most:.4f}")
            await ledger.freed.wait()
