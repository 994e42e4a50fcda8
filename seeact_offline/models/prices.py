"""Prices of models: a table that names each price's day and source, and the user's own in its place.

A model is found by its exact name, or by the name that is left without a day at its end (`gpt-4o-2024-08-06` is `gpt-4o`).
Nothing is guessed: a model that is not listed has no price. Fields of the file, one entry a price::

    {"schema": 1, "prices": [{"model": "gpt-4o", "prompt": 2.5, "cached": 1.25, "completion": 10,
                              "date": "2026-11-23", "source": "openai.com/api/pricing"}]}

Prices are USD per million tokens. `date` is the day of which the source says so, or else the day of looking it up. `cached` and
`source` may be left out. An entry with `tier` is the price of a service tier (`priority`), besides the model's usual one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date as Date
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import read_named
from seeact_offline.models.bills import Price
from seeact_offline.records import InputError

LISTED_HOSTS = frozenset({"api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"})
"""Servers whose models the bundled table means by their names."""
_DAY = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
_WANTED = "IN,OUT in USD per million prompt and completion tokens, or a JSON file of prices"


@dataclass(frozen=True, slots=True)
class Quote:
    """A price, and who says so."""

    model: str
    """The table's name for it."""
    price: Price
    date: str
    """YYYY-MM-DD; empty where the user gave the price."""
    source: str
    cached: float | None = None
    """USD per million prompt tokens that the provider had seen before; None: not known. Plans do not count on it."""
    tier: str = ""
    """The service tier; empty for the usual price."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model; of several for one model each holds from its day on."""

    quotes: tuple[Quote, ...]

    def find(self, name: str, date: str) -> Quote | None:
        """The price on this day (YYYY-MM-DD) with those of its service tiers, the earliest known where the day lies before; None for no
        such model."""
        for bare in (name, undated(name)):
            by_tier: dict[str, Quote] = {}
            for quote in sorted((quote for quote in self.quotes if quote.model == bare), key=lambda quote: quote.date):
                if quote.tier not in by_tier or quote.date <= date:
                    by_tier[quote.tier] = quote
            if usual := by_tier.pop("", None):
                tiers = tuple((tier, quote.price) for tier, quote in sorted(by_tier.items()))
                return replace(usual, price=usual.price._replace(tiers=tiers))
        return None


def price_of(model: str, given: Price | PriceTable, date: str) -> Quote | None:
    """The charge of `PROVIDER/NAME` on this day (YYYY-MM-DD), by the user's price, which holds for any model, or by a table. None: the
    table has none."""
    return Quote(model, given, "", "given") if isinstance(given, Price) else given.find(model.partition("/")[2], date)


def undated(name: str) -> str:
    """Removes the day at the end of a model's name, if there is one."""
    return _DAY.sub("", name)


def read_given(text: str) -> Price | PriceTable:
    """The price that `IN,OUT` gives, or the table of a file. Raises InputError."""
    with suppress(ValueError):
        prompt, completion = map(float, text.split(","))
        if _usable(prompt, completion):
            return Price(prompt, completion)
    try:
        return _table(read_named("price", Path(text), _WANTED))
    except FormatError as error:
        raise InputError("price", error.expected, f"{error.got} in {text}") from None


@cache
def bundled_prices() -> PriceTable:
    """The prices that come with the program."""
    return _table((files("seeact_offline") / "models" / "prices.json").read_bytes())


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    prompt: float
    completion: float
    date: str
    cached: float | None = None
    source: str = ""
    tier: str = ""


class _File(msgspec.Struct):
    prices: list[_Entry]


def _table(content: bytes) -> PriceTable:
    """Raises FormatError."""
    quotes = []
    for entry in typed(read_json(content), _File).prices:
        if not _usable(entry.prompt, entry.completion, entry.cached or 0.0):
            raise FormatError("prices of at least 0", f"another one for {entry.model}")
        try:
            Date.fromisoformat(entry.date)
        except ValueError:
            raise FormatError("a date like 2026-11-23", f"{entry.date!r} for {entry.model}") from None
        price = Price(entry.prompt, entry.completion)
        quotes.append(Quote(entry.model, price, entry.date, entry.source, entry.cached, entry.tier.lower()))
    return PriceTable(tuple(quotes))


def _usable(*prices: float) -> bool:
    return all(isfinite(price) and price >= 0 for price in prices)
