"""Price tables, bundled and of one's own."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.models import PROVIDERS
from seeact_offline.models.budget import Price
from seeact_offline.models.prices import PriceEntry, PriceTable, Quote, bundled_prices, price_of, read_given
from seeact_offline.records import InputError

TODAY = "2026-11-23"
UNLISTED = "gpt-4o-mini-high gpt gpt-4o- gpt-4o-2024 my-gpt-4o GPT-4o gpt-4o-latest openai/gpt-4o".split()
ENTRY = {"model": "m", "prompt": 1, "completion": 2, "date": "2026-01-01"}


def written(folder: Path, *entries: dict[str, Any]) -> str:
    path = folder / "prices.json"
    path.write_text(json.dumps({"schema": 1, "prices": entries}))
    return str(path)


def table(*dated: tuple[str, float]) -> PriceTable:
    """Of one model."""
    return PriceTable(tuple(PriceEntry("m", prompt, 1.0, day) for day, prompt in dated))


# --- the bundled table -------------------------------------------------------------------------------------------


def test_every_bundled_price_has_a_day_a_source_and_figures_that_make_sense() -> None:
    for entry in bundled_prices().prices:
        assert date.fromisoformat(entry.date) <= date.fromisoformat(TODAY)
        assert len(entry.source) > 10
        # replies cost more than prompts, and prompts seen before less
        assert 0 < entry.prompt < entry.completion
        assert entry.cached is None or 0 < entry.cached < entry.prompt


def test_no_bundled_price_is_there_twice() -> None:
    places = [(entry.model, entry.date) for entry in bundled_prices().prices]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("family", ["gpt-", "claude-", "gemini-"])
def test_it_knows_models_of_all_three_providers(family: str) -> None:
    assert any(entry.model.startswith(family) for entry in bundled_prices().prices)


# --- which price -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("gpt-4o", Price(2.5, 10.0)),
        ("gpt-4o-2024-08-06", Price(2.5, 10.0)),
        ("gpt-4o-2024-05-13", Price(5.0, 15.0)),
        ("claude-sonnet-4-20250514", Price(3.0, 15.0)),
        *((name, None) for name in UNLISTED),
    ],
)
def test_a_model_has_the_price_of_its_exact_name_or_of_the_name_without_a_day(name: str, price: Price | None) -> None:
    quote = price_of(f"openai/{name}", bundled_prices(), TODAY)
    assert (quote and quote.price) == price


def test_the_bundled_table_holds_the_prices_of_the_providers_own_servers_alone() -> None:
    assert [name for name, provider in PROVIDERS.items() if provider.is_listed(None)] == ["openai"]
    assert not PROVIDERS["openai"].is_listed("http://localhost:8000/v1")


def test_of_several_prices_the_latest_holds() -> None:
    changed = table(("2026-06-01", 2.0), ("2026-01-01", 1.0), ("2026-09-01", 3.0))
    found = [price_of("openai/m", changed, day) for day in ("2025-12-31", "2026-01-01", "2026-08-31", "2027-01-01")]
    assert [quote and quote.price.prompt for quote in found] == [1.0, 1.0, 2.0, 3.0]


# --- one's own ---------------------------------------------------------------------------------------------------


def test_two_numbers_are_a_price_of_any_model() -> None:
    given = read_given("2.5,10")
    assert given == Price(2.5, 10.0)
    quote = price_of("hf/anything", given, TODAY)
    assert quote is not None
    assert (quote.price, quote.date) == (given, "")


def test_a_file_takes_the_place_of_the_bundled_table(tmp_path: Path) -> None:
    given = read_given(written(tmp_path, {**ENTRY, "cached": 0.5, "source": "our contract"}))
    quote = price_of("openai/m", given, TODAY)
    assert quote == Quote("m", Price(1.0, 2.0), "2026-01-01", "our contract")
    assert price_of("openai/gpt-4o", given, TODAY) is None


def test_the_bundled_file_can_be_given(repo: Path) -> None:
    given = read_given(str(repo / "seeact_offline" / "models" / "prices.json"))
    assert given == bundled_prices()


@pytest.mark.parametrize("text", ["", "1", "1,2,3", "1,-2", "nan,1", "inf,1", "one,two", "nowhere.json"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_given(text)
    assert caught.value.argument == "price"


WRONG = {"prompt": [-1], "completion": ["2"], "cached": [-0.1], "date": ["June", None], "model": [3], "extra": [1]}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_file_with_a_wrong_entry_is_refused_by_name(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(InputError, match=r"prices\.json"):
        read_given(written(tmp_path, {**ENTRY, name: value}))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"\xff", b'{"prices": {}}', b'{"prices": [{"model": "m", "prompt": NaN}]}']
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "prices.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"prices\.json"):
        read_given(str(path))
