"""What a call is charged, by what servers say of its bill, and what is refused because it may cost anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from seeact_offline.models import ModelOptions, Price, find_model
from seeact_offline.models.batch import BatchCodec, read_result
from seeact_offline.models.budget import Bills, Budget, Ledger, Load, Terms
from seeact_offline.models.prices import price_of, read_given
from seeact_offline.models.retrying import MOST_PAID
from seeact_offline.models.tokens import possible_rules
from seeact_offline.records import CallError, Completion, InputError, Message, OutOfBudget, Usage
from tests.chat_server import Answer, ChatServer, script
from tests.seeact_offline.models.asking import HELLO, ask_in_turn, ask_one, opened, quick

PRICE = Price(50.0, 400.0, (("priority", Price(100.0, 1000.0)), ("flex", Price(25.0, 200.0))))
MOST_TOKENS = 5000


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")


class Charge(NamedTuple):
    """What a server says beside a reply, and the USD that are charged for it; None: all that was reserved."""

    source: str
    said: Mapping[str, Any]
    usd: float | None
    price: Price | None = PRICE
    api: str = "chat"


def _chat(prompt: int, reply: int, total: int | None = None, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
    return {"usage": {**usage, **({} if total is None else {"total_tokens": total}), **more}}


def _thoughts(tokens: int, of: str = "completion_tokens_details") -> dict[str, Any]:
    return {of: {"reasoning_tokens": tokens}}


CHARGES = [
    Charge("xAI, inspect_ai#5528", _chat(2000, 100, 5600, **_thoughts(3500)), (2000 * 50 + 3600 * 400) / 1e6),
    Charge("Gemini, vercel/ai#12425: in the total alone", _chat(2000, 100, 5600), (2000 * 50 + 3600 * 400) / 1e6),
    Charge("OpenAI, promptfoo#9507: in the reply", _chat(2000, 3600, 5600, **_thoughts(3500)), (2000 * 50 + 3600 * 400) / 1e6),
    Charge("a gateway without a total", {"usage": {"prompt_tokens": 2000, "completion_tokens": 100, **_thoughts(3500)}}, (2000 * 50 + 3600 * 400) / 1e6),
    Charge("a gateway whose total is too low", _chat(2000, 100, 100), (2000 * 50 + 100 * 400) / 1e6),
    Charge(
        "Responses API, thoughts beside",
        {"usage": {"input_tokens": 2000, "output_tokens": 100, "total_tokens": 5600, **_thoughts(3500, "output_tokens_details")}},
        (2000 * 50 + 3600 * 400) / 1e6, api="responses",
    ),
    Charge("OpenRouter: dearer than the price", _chat(2000, 100, cost=0.5), 0.5),
    Charge("OpenRouter: cheaper than the price", _chat(2000, 100, cost=0.001), 0.14),
    Charge("OpenRouter, no price", _chat(2000, 100, cost=0.02), 0.02, None),
    Charge("OpenRouter, an own key", _chat(2000, 100, cost=0.01, is_byok=True, cost_details={"upstream_inference_cost": 0.2}), 0.21, None),
    Charge("OpenRouter, its own key", _chat(2000, 100, cost=0.2, is_byok=False, cost_details={"upstream_inference_cost": 0.2}), 0.2, None),
    Charge("DeepInfra", _chat(2000, 100, estimated_cost=0.5), 0.5),
    Charge("Perplexity", _chat(2000, 100, cost={"total_cost": 0.5, "request_cost": 0.1}), 0.5),
    Charge("xAI: ticks", _chat(2000, 100, cost_in_usd_ticks=5_000_000_000), 0.5),
    Charge("a gateway: a text", _chat(2000, 100, cost="0.5"), 0.5),
    Charge("a gateway: nonsense", _chat(2000, 100, cost="much", estimated_cost=-1), 0.14),
    Charge("OpenAI: priority came back", {**_chat(2000, 100), "service_tier": "priority"}, 0.3),
    Charge("OpenAI: flex came back", {**_chat(2000, 100), "service_tier": "flex"}, 0.07),
    Charge("OpenAI: the usual tier", {**_chat(2000, 100), "service_tier": "default"}, 0.14),
    Charge("a tier without a price", {**_chat(2000, 100), "service_tier": "turbo"}, 2.5 * 0.14),
    Charge("zeros", _chat(0, 0), None),
    Charge("a prompt of nothing", _chat(0, 100), None),
    Charge("a reply of nothing", _chat(2000, 0), None),
    Charge("no usage", {}, None),
]  # fmt: skip
NAMES = [row.source for row in CHARGES]


def _body(row: Charge) -> dict[str, Any]:
    if row.api == "responses":
        output = [{"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}]
        return {"status": "completed", "output": output, **row.said}
    return {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}], **row.said}


@pytest.mark.parametrize("row", CHARGES, ids=NAMES)
def test_a_call_is_charged_what_it_costs(row: Charge) -> None:
    budget = Budget(None, row.price, MOST_TOKENS)
    options: dict[str, Any] = {
        "model_args": {"api": row.api},
        "price": row.price,
        "max_tokens": MOST_TOKENS,
        "budget": budget,
    }
    with ChatServer(lambda _: Answer(body=json.dumps(_body(row)).encode())) as server:
        completion = ask_one(opened(server, **options))
    if row.usd is None:
        assert budget.spent > MOST_TOKENS * PRICE.dearest.completion / 1e6
        assert completion.usage.unreported == 1
    else:
        assert budget.spent == completion.usage.cost_usd == pytest.approx(row.usd)


@pytest.mark.parametrize("row", [row for row in CHARGES if row.usd is not None], ids=lambda row: row.source)
def test_a_reply_from_a_batch_is_charged_alike(row: Charge) -> None:
    options = ModelOptions(base_url="http://127.0.0.1:9/v1", price=row.price, model_args={"api": row.api})
    line = {"custom_id": "k", "response": {"status_code": 200, "body": _body(row)}, "error": None}
    outcome = read_result(json.dumps(line).encode(), BatchCodec("openai/m", options)).outcome
    assert outcome.usage.cost_usd == pytest.approx(row.usd)


def test_a_streamed_reply_is_charged_alike() -> None:
    pieces = [
        {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}], "service_tier": "priority"},
        {"choices": [], **_chat(2000, 100, 5600)},
    ]
    body = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces).encode()
    with ChatServer(lambda _: Answer(body=body)) as server:
        completion = ask_one(opened(server, price=PRICE))
    assert completion.usage.cost_usd == pytest.approx((2000 * 100 + 3600 * 1000) / 1e6)


# --- the limit that is sent ---


def reserved(path: Path, **options: Any) -> float:
    """USD that were reserved for one call."""
    with Ledger(path / "spending.jsonl") as ledger, ChatServer(script("Hi.")) as server:
        budget = Budget(1000.0, Price(0.0, 1e6), 16, ledger=ledger)
        ask_one(opened(server, budget=budget, price=Price(0.0, 1e6), **{"max_tokens": 16, **options}))
    return float(json.loads((path / "spending.jsonl").read_text().splitlines()[0])["most"])


@pytest.mark.parametrize(
    ("args", "most"),
    [
        ({}, 16),
        ({"max_tokens": 500}, 500),
        ({"max_completion_tokens": 500}, 500),
        ({"max_completion_tokens": 500, "max_tokens": 9}, 500),
        ({"api": "responses", "max_output_tokens": 500}, 500),
        ({"api": "responses"}, 16),
    ],
)
def test_what_is_reserved_is_the_limit_that_is_sent(args: dict[str, Any], most: float, tmp_path: Path) -> None:
    assert reserved(tmp_path, model_args=args) == most


@pytest.mark.parametrize(
    "args",
    [
        {"max_tokens": None},
        {"max_tokens": -1},
        {"max_tokens": "many"},
        {"max_completion_tokens": None},
        {"api": "responses", "max_output_tokens": None},
        {"api": "responses", "max_output_tokens": None, "max_tokens": 5},
    ],
)
def test_no_limit_of_new_tokens_is_refused_where_money_is_limited(args: dict[str, Any]) -> None:
    source, budget = find_model("openai/m"), Budget(1000.0, PRICE, 16)
    options = ModelOptions(base_url="http://127.0.0.1:9/v1", model_args=args, budget=budget)
    with pytest.raises(InputError, match=r"^`max_cost` needs a limit of new tokens, without which"):
        source.provider.check_spending(options)
    with pytest.raises(InputError, match="a limit of new tokens"):
        ask_one(source.open(options))


def test_a_server_that_takes_no_limit_is_asked_nothing_where_money_is_limited() -> None:
    """A call without one had cost three times the limit."""

    def reply(body: dict[str, Any]) -> Answer | str:
        name = next((name for name in ("max_tokens", "max_completion_tokens") if name in body), None)
        return (
            Answer(f"Unsupported parameter: '{name}'", 400, code="unsupported_parameter", param=name) if name else "Hi."
        )

    with ChatServer(reply) as server:
        assert ask_one(opened(server)).text == "Hi."
        n_asked, budget = len(server.requests), Budget(1.0, PRICE, 16)
        with pytest.raises(InputError, match="a limit of new tokens"):
            ask_one(opened(server, budget=budget, price=PRICE, max_tokens=16))
        assert all("max_tokens" in body or "max_completion_tokens" in body for body in server.requests[n_asked:])
    assert budget.spent == 0


# --- service tiers ---


@pytest.mark.parametrize(
    ("tier", "is_refused"),
    [("priority", False), ("flex", False), ("auto", False), ("default", False), ("fast", True), ("Turbo", True)],
)
def test_a_tier_without_a_price_of_its_own_is_refused_where_money_is_limited(tier: str, is_refused: bool) -> None:
    check = find_model("openai/m").provider.check_spending
    options = ModelOptions(base_url="http://127.0.0.1:9/v1", model_args={"service_tier": tier}, price=PRICE)
    if not is_refused:
        check(options)
        return
    with pytest.raises(InputError, match=rf"^`max_cost` needs a price of the service tier '{tier.lower()}'"):
        check(options)


def test_a_run_ends_at_the_first_reply_in_a_tier_without_a_price() -> None:
    body = {**_body(CHARGES[0]), **_chat(100, 10), "service_tier": "turbo"}
    budget = Budget(100.0, PRICE, 16)
    with ChatServer(lambda _: Answer(body=json.dumps(body).encode())) as server:
        first, second = ask_in_turn(opened(server, budget=budget, price=PRICE, max_tokens=16), 2)
        assert len(server.requests) == 1
    assert isinstance(first, Completion)
    assert str(second).startswith("`max_cost` needs a price of the service tier 'turbo'")
    assert budget.spent == first.usage.cost_usd


def test_a_file_has_prices_of_tiers(tmp_path: Path) -> None:
    entries = [
        {"model": "m", "prompt": 1, "completion": 2, "date": "2026-01-01"},
        {"model": "m", "prompt": 3, "completion": 5, "date": "2026-01-01", "tier": "Priority"},
        {"model": "m", "prompt": 4, "completion": 6, "date": "2026-02-01", "tier": "priority"},
        {"model": "other", "prompt": 9, "completion": 9, "date": "2026-01-01", "tier": "priority"},
    ]
    (tmp_path / "prices.json").write_text(json.dumps({"prices": entries}))
    table = read_given(str(tmp_path / "prices.json"))
    found = [price_of("openai/m", table, day) for day in ("2026-01-15", "2026-03-01")]
    assert [quote.price for quote in found if quote] == [
        Price(1, 2, (("priority", Price(3, 5)),)),
        Price(1, 2, (("priority", Price(4, 6)),)),
    ]
    assert price_of("openai/other", table, "2026-03-01") is None


# --- attempts that are paid ---


@pytest.mark.parametrize(
    "torn", [Answer("cut", finish_reason="error"), Answer(body=b'{"choices": [')], ids=["torn", "unreadable"]
)
def test_a_reply_that_the_server_breaks_off_is_paid_for_five_times_at_most(torn: Answer) -> None:
    with ChatServer(script(torn)) as server:
        (failed,) = ask_in_turn(opened(server), 1)
        assert len(server.requests) == MOST_PAID == 5
    assert isinstance(failed, CallError)


# --- what a call can cost ---

SMALL, TALL = (100, 100), (1280, 8000)


def load(*pictures: tuple[int, int], text: float = 100.0) -> Load:
    return Load(text, pictures, 100)


A_DOLLAR = Price(1e6, 0.0)
"""A token of the prompt."""


def bills(model: str, price: Price | None = A_DOLLAR) -> Bills:
    return Bills(Terms(price, 100, tuple(rule.most for rule in possible_rules(model))))


@pytest.mark.parametrize(
    ("model", "pictures", "least"),
    [
        ("gpt-4o", [TALL], 765),
        ("openai/gpt-4o-mini", [TALL], 2833 + 4 * 5667),
        ("claude-sonnet-4-5", [TALL], 1280 * 8000 / 750),
        ("qwen2.5-vl-72b", [TALL] * 3, 3 * 1280 * 8000 / 784),
        ("qwen2.5-vl-72b", [(9000, 9000)], 16_384),
        ("ByteDance/UI-TARS-1.5-7B", [TALL], 1280 * 8000 / 784),
        ("nobody-knows", [TALL], 2833 + 4 * 5667),
        ("nobody-knows", [(9000, 9000)], 9000 * 9000 / 750),
    ],
)
def test_a_picture_counts_as_the_dearest_rule_of_its_models_family(
    model: str, pictures: list[Any], least: float
) -> None:
    most = bills(model).most(load(*pictures))
    assert most is not None
    assert least + 100 <= most < 1.02 * least + 110


def test_a_rule_under_which_an_earlier_prompt_was_larger_than_its_bill_is_given_up() -> None:
    found = bills("nobody-knows")
    before = found.most(load(TALL))
    found.add(load((800, 600)), Usage(1, 800, 10, 0, 800.0))
    after = found.most(load(TALL))
    assert before is not None
    assert after is not None
    # GPT-4o mini's 25,501 are refuted, Qwen's 13,158 and Claude's 13,654 are not
    assert 13_158 < after < 15_000 < before


def test_a_larger_bill_than_the_count_raises_the_count() -> None:
    found = bills("gpt-4o")
    found.add(load(SMALL), Usage(1, 255 + 90 + 300, 10, 0, 645.0))
    # a few tokens around each prompt are no ratio
    assert found.most(load(TALL)) == pytest.approx(765 + 100 + 290)
    found.add(load(TALL), Usage(1, 13_158 + 90, 10, 0, 13_248.0))
    most = found.most(load(TALL))
    assert most is not None
    assert most >= 13_248


def test_longer_replies_than_were_asked_for_raise_the_reply() -> None:
    found = bills("gpt-4o", Price(0.0, 1e6))
    found.add(load(), Usage(1, 90, 400, 0, 400.0))
    assert found.most(load()) == 400


def test_without_a_price_the_bills_are_bounds_of_one() -> None:
    found = bills("gpt-4o", None)
    assert found.most(load()) is None
    # 90 tokens of a dollar and 10 of two
    found.add(load(), Usage(1, 90, 10, 0, 110.0))
    most = found.most(load())
    assert most is not None
    assert most >= 100 * 1 + 100 * 2


def test_calls_go_out_together_only_as_far_as_bills_for_calls_of_their_size_allow() -> None:
    """After a cheap first call 16 large ones were made at once, and billed 4.5 times what was left."""
    at_once = 0
    most_at_once: list[int] = []

    async def attempt() -> Completion:
        nonlocal at_once
        at_once += 1
        most_at_once[-1] = max(most_at_once[-1], at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return Completion("ok", Usage(1, 10, 10, 0, 0.01))

    async def ask() -> None:
        budget = Budget(1000.0, Price(1.0, 1.0), 100)
        for words in (1, 50, 50, 1):
            most_at_once.append(0)
            messages = (Message("user", "word " * words),)
            await asyncio.gather(*(budget.spend(messages, attempt) for _ in range(3 if words == 50 else 12)))

    asyncio.run(ask())
    first, larger, again, small = most_at_once
    assert (first > 3, larger, again, small) == (True, 2, 3, 12)


def test_what_bills_have_told_is_known_to_a_resumed_run(tmp_path: Path) -> None:
    async def attempt() -> Completion:
        return Completion("ok", Usage(1, 700, 300, 0, 10.0))

    path = tmp_path / "spending.jsonl"
    for expected in (1, 2):
        with Ledger(path) as ledger:
            budget = Budget(25.0, Price(1e4, 1e4), 100, ledger=ledger)
            asyncio.run(budget.spend(HELLO, attempt))
            assert budget.spent == expected * 10
    with Ledger(path) as ledger, pytest.raises(OutOfBudget, match="the next call may cost 10"):
        asyncio.run(Budget(25.0, Price(1e4, 1e4), 100, ledger=ledger).spend(HELLO, attempt))
