"""Prices of models: a table that names each price's day and source, and the user's own in its place.

A model is found by its exact name, or by the name that is left without a day at its end (`gpt-4o-2024-08-06` is
`gpt-4o`). Nothing is guessed: a model that is not listed has no price. Fields of the file, one entry a price::

    {"schema": 1, "prices": [{"model": "gpt-4o", "prompt": 2.5, "cached": 1.25, "completion": 10,
                              "date": "2026-11-23", "source": "openai.com/api/pricing"}]}

Prices are USD per million tokens. `date` is the day of which the source says so, or else the day of looking it up.
`cached` and `source` may be left out. An entry with `tier` is the price of a service tier (`priority`), besides the
model's usual one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import date as Date
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import read_named
from seeact_offline.models.budget import Price
from seeact_offline.models.tokens import undated
from seeact_offline.records import InputError

LISTED_HOSTS = frozenset({"api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"})
"""Servers whose models the bundled table means by their names."""
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


class PriceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's price in a table, as its file has it."""

    model: str
    prompt: float
    completion: float
    date: str
    cached: float | None = None
    """Of prompt tokens that the provider had seen before; None: not known. Plans do not count on it."""
    source: str = ""
    tier: str = ""
    """The service tier; empty for the usual price."""


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by model; of several for one model each holds from its day on."""

    prices: tuple[PriceEntry, ...]

    def find(self, name: str, date: str) -> Quote | None:
        """The price on this day (YYYY-MM-DD) with those of its service tiers, the earliest known where the day lies
        before; None for no such model."""
        for bare in (name, undated(name)):
            by_tier: dict[str, PriceEntry] = {}
            for entry in sorted((entry for entry in self.prices if entry.model == bare), key=lambda entry: entry.date):
                if entry.tier.lower() not in by_tier or entry.date <= date:
                    by_tier[entry.tier.lower()] = entry
            if usual := by_tier.pop("", None):
                tiers = ((tier, Price(entry.prompt, entry.completion)) for tier, entry in sorted(by_tier.items()))
                price = Price(usual.prompt, usual.completion, tuple(tiers))
                return Quote(bare, price, usual.date, usual.source)
        return None


def price_of(model: str, given: Price | PriceTable, date: str) -> Quote | None:
    """The charge of `PROVIDER/NAME` on this day (YYYY-MM-DD), by the user's price, which holds for any model, or by a
    table. None: the table has none."""
    return Quote(model, given, "", "given") if isinstance(given, Price) else given.find(model.partition("/")[2], date)


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


def _table(content: bytes) -> PriceTable:
    """Raises FormatError."""
    table = typed(read_json(content), PriceTable)
    for entry in table.prices:
        if not _usable(entry.prompt, entry.completion, entry.cached or 0.0):
            raise FormatError("prices of at least 0", f"another one for {entry.model}")
        try:
            Date.fromisoformat(entry.date)
        except ValueError:
            raise FormatError("a date like 2026-11-23", f"{entry.date!r} for {entry.model}") from None
    return table


def _usable(*prices: float) -> bool:
    return all(isfinite(price) and price >= 0 for price in prices)
