"""The bill by the server's own rule never exceeds the limit, whatever is run, however often it is killed, and whatever the server says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tariffs import PRICE, PRIORITY, VERBS, Bill, Tariff, bill, write_pages

pytestmark = pytest.mark.slow

_USUAL = {"prompt": PRICE[0], "completion": PRICE[1]}
_DEAR = {name: usd * PRIORITY for name, usd in _USUAL.items()}
TIERS = "prices.json"
TARIFFS: Mapping[str, Tariff] = {
    "thoughts beside the reply": Tariff(says="thoughts beside", thinks=0.9, options={"max_tokens": 800}),
    "thoughts in the total alone": Tariff("OpenAI's tiles", "thoughts in the total alone", thinks=0.9, options={"max_tokens": 800}),
    "tiers that come back": Tariff("Claude's pixels", tiers=True, model="claude-x", options={"max_tokens": 800, "price": TIERS}),
    "OpenRouter's cost, no price": Tariff(says="OpenRouter's cost", tiers=False, options={"price": None, "max_tokens": 800}),
    "the cost of an own key, no price": Tariff("Claude's pixels", "OpenRouter's cost of an own key", thinks=0.5, options={"price": None, "max_tokens": 800}),
    "DeepInfra's cost, another price": Tariff(says="DeepInfra's cost", model="qwen3-vl", options={"price": "1,5", "max_tokens": 800}),
    "Perplexity's cost, no price": Tariff("OpenAI's tiles", "Perplexity's cost", options={"price": None, "max_tokens": 800}),
    "xAI's cost in another tier": Tariff(says="xAI's cost", thinks=0.8, options={"price": None, "max_tokens": 800}),
    "a usage of zeros": Tariff(says="zeros", model="qwen2.5-vl-7b", options={"max_tokens": 800}),
    "no usage, and many faults": Tariff("OpenAI's tiles", "nothing", broken=0.3, model="gpt-4o", options={"max_tokens": 800}),
    "a family that nobody knows": Tariff("GPT-4o mini's tiles", thinks=0.5, broken=0.2, options={"max_tokens": 800}),
    "a family under another's name": Tariff(says="thoughts beside", thinks=0.5, broken=0.2, model="gpt-4o", options={"max_tokens": 800}),
    "a limit by its server's name": Tariff("Claude's pixels", thinks=0.9, broken=0.1, options={"model_args": {"max_tokens": 2500}}),
}  # fmt: skip
CAPS = {
    "eval": 0.2, "eval of an agent": 0.15, "judge": 0.2, "improve": 0.3, "ablate": 0.2, "captions": 0.2, "planner with grounder": 0.2, "batches": 0.3,
}  # fmt: skip
"""USD: for most tariffs less than the whole command would cost, and more than its first call may."""
DEAR = frozenset({"a family that nobody knows", "a limit by its server's name"})
"""Tariffs at which a call may cost several times as much."""
NOT_IN_BATCHES = frozenset({"a usage of zeros", "no usage, and many faults"})
CASES = [(verb, name) for verb in VERBS for name in TARIFFS if verb != "batches" or name not in NOT_IN_BATCHES]
OFTEN = [(verb, name) for (verb, name) in zip(VERBS, [*TARIFFS][:: len(TARIFFS) // len(VERBS)], strict=False)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pages(tmp_path_factory.mktemp("bills") / "pages")


def billed(verb: str, name: str, pages: Path, folder: Path, kills: int) -> Bill:
    tariff, prices = TARIFFS[name], folder / TIERS
    tiers: list[dict[str, object]] = [{**_USUAL}, {**_DEAR, "tier": "priority"}]
    entries = [{"model": tariff.model, "date": "2026-01-01", **one} for one in tiers]
    prices.write_text(json.dumps({"prices": entries}))
    if tariff.options.get("price") == TIERS:
        tariff = replace(tariff, options={**tariff.options, "price": str(prices)})
    found = bill(verb, tariff, pages, folder, CAPS[verb] * (3 if name in DEAR else 1), kills)
    assert not found.complaint.startswith("crashed"), found.complaint
    return found


@pytest.mark.parametrize(("verb", "name"), OFTEN)
def test_no_more_is_billed_than_the_limit(verb: str, name: str, pages: Path, tmp_path: Path) -> None:
    found = billed(verb, name, pages, tmp_path, kills=1)
    assert 0 < found.billed <= found.cap


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("verb", "name"), CASES)
def test_no_more_is_billed_than_the_limit_after_five_restarts(
    verb: str, name: str, pages: Path, tmp_path: Path
) -> None:
    found = billed(verb, name, pages, tmp_path, kills=5)
    print(f"{verb}, {name}: {found}")
    assert found.kills == 5
    assert 0 < found.billed <= found.cap
