"""The most that a call of a model can cost, by what is known of the call and by the bills for the calls before it.

A prompt's pictures are counted by the dearest rule that no bill has refuted: a rule under which an earlier prompt would have had more
tokens than were billed is not the model's. Bills that are larger than the count raise it, each for prompt, reply and price. Without a price,
the bills are bounds of one: no token of a reply can have cost more than its whole call divided by their number.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from seeact_offline.records import Message, Usage
from seeact_offline.tokens import Size, count_words, visual_tokens

TOKENS_A_WORD = 1.5
BYTES_A_TOKEN = 4
"""A text counts as so many tokens a word, or one for so many bytes, whichever is more: tokenizers cut rare words into pieces."""
PIXELS_A_TOKEN = 784
"""By which the sizes of calls are compared, whatever rule the server has."""
FRAME_TOKENS = 500
"""Tokens of a prompt beyond our count up to which they are taken for what servers put around every conversation."""
UNKNOWN = (2048, 2048)
"""Pixels of a picture that does not say its size."""
MILLION = 1_000_000
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
        return Price(max(one.prompt for one in prices), max(one.completion for one in prices))


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
    others = 0 if text.isascii() else sum(not character.isascii() for character in text)
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
