"""The table of servers' behaviours: each of its rows, played by one server, and the trials without a row."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter, defaultdict
from typing import Any

import pytest

from seeact_offline.models import ModelOptions, Price
from seeact_offline.models.budget import Budget
from seeact_offline.models.failures import HINTS, RETRIES, STOPPING, Failure, Row, of_status, rows
from seeact_offline.models.openai import OpenAIModel
from seeact_offline.records import CallError, Completion, ImageFormat, Message
from tests.chat_server import Answer, ChatServer, script
from tests.documents import DOCS
from tests.seeact_offline.models.asking import ask_in_turn, opened, quick, request


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")


class Picture:
    key = "p"

    def encoded(self, image_format: ImageFormat) -> bytes:
        return b"pixels"


def played(row: Row) -> Answer:
    """The answer of a server that behaves as the row says."""
    if row.code.startswith("finish_reason="):
        choice = {"message": {"content": "Hi."}, "finish_reason": row.code.partition("=")[2]}
        return Answer(body=json.dumps({"choices": [choice]}).encode())
    field, _, code = row.code.rpartition("=")
    message = row.phrase.replace("*", "x").replace("{}", "temperature") or "no"
    error: dict[str, Any] = {"message": message, "param": "temperature" if row.hint == "{}" else None}
    if code:
        error[field or "code"] = code
    return Answer(status=int((row.status or "400").split()[0]), body=json.dumps({"error": error}).encode())


def outcomes(table: tuple[Row, ...]) -> list[Completion | Failure]:
    """One attempt a row, all by one model at one server."""
    left = iter(table)

    async def run(server: ChatServer) -> list[Completion | Failure]:
        model = OpenAIModel("m", ModelOptions(base_url=server.base_url))
        try:
            return [await (await model.prepare(request(0, (Message("user", "Hi"),))))() for _ in table]
        finally:
            await model.aclose()

    with ChatServer(lambda body: played(next(left))) as server:
        return asyncio.run(run(server))


NAMES = {"no_such_model": "bad_request", "at_limit": "no_quota"}


def test_each_row_is_what_it_says() -> None:
    table = tuple(row for row in rows() if row.means != "otherwise")
    found = [
        ("done", False) if isinstance(outcome, Completion) else (outcome.name, outcome.hopeless)
        for outcome in outcomes(table)
    ]
    # a model that is gone may come back where the fault is the server's
    lost = {row: "server_error" for row in table if row.means == "no_such_model" and row.status.startswith("5")}
    said = [
        (lost.get(row) or NAMES.get(row.means, row.means), row.means in ("no_such_model", "forbidden")) for row in table
    ]
    assert [pair for pair in zip(table, found, said, strict=True) if pair[1] != pair[2]] == []


def test_each_hint_of_the_table_has_its_sentence() -> None:
    hints = {row.hint for row in rows() if row.hint and row.means != "otherwise"}
    assert hints == HINTS.keys()


def is_in(name: str, body: dict[str, Any]) -> bool:
    """Whether a request holds the parameter, or asks in the way, that is refused."""
    if name == "system":
        return any(message["role"] == "system" for message in body["messages"])
    return not body.get("stream") if name == "stream" else name in body


@pytest.mark.parametrize(
    "row",
    [row for row in rows() if row.means == "otherwise"],
    ids=lambda row: f"{row.provider}: {row.code}{row.phrase}",
)
def test_what_a_row_refuses_is_left_out_at_once(row: Row) -> None:
    refused = "temperature" if row.hint == "{}" else row.hint
    with ChatServer(lambda body: played(row) if is_in(refused, body) else "Hi.") as server:
        model = opened(server)
        found = ask_in_turn(model, 2)
    assert all(isinstance(outcome, Completion) for outcome in found)
    assert [is_in(refused, body) for body in server.requests] == [True, False, False]
    assert len(model.dropped) == 1


@pytest.mark.parametrize("refused", ["temperature", "system"])
def test_what_no_row_names_goes_once_a_trial_and_a_second_refusal_blame_it(refused: str) -> None:
    said = Answer({"temperature": "I will not have 'temperature'", "system": "what is this system role?"}[refused], 400)
    with ChatServer(lambda body: said if is_in(refused, body) else "Hi.") as server:
        model = opened(server)
        found = ask_in_turn(model, 4)
    assert all(isinstance(outcome, Completion) for outcome in found)
    # refused, tried without; refused again, so left out from then on
    assert [is_in(refused, body) for body in server.requests] == [True, False, True, False, False, False]
    assert len(model.dropped) == 1
    assert not any("blamed once" in remark for remark in model.remarks)


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize(
    "words",
    ["the system role is odd just now", "'temperature': trouble", "only stream=true just now", "'max_tokens': trouble"],
)
def test_what_was_blamed_once_stays(status: int, words: str) -> None:
    faults = iter([Answer(words, status)])
    with ChatServer(lambda body: next(faults, "Hi.")) as server:
        model = opened(server)
        found = ask_in_turn(model, 4)
    assert all(isinstance(outcome, Completion) for outcome in found)
    assert model.dropped == ()
    first, *others = server.requests[-3:]
    assert first.keys() == server.requests[0].keys()
    assert all(len(body["messages"]) == 2 for body in others)
    assert any("blamed once: 1" in remark for remark in model.remarks) == (status != 500)


def test_parts_that_are_refused_in_turn_go_in_turn_with_and_without_a_row() -> None:
    words = {
        "system": "what is this system role?",
        "temperature": "I will not have 'temperature'",
        "seed": "Unknown parameter: 'seed'.",
    }

    def answer(body: dict[str, Any]) -> Answer | str:
        return next((Answer(said, 400) for name, said in words.items() if is_in(name, body)), "Hi.")

    with ChatServer(answer) as server:
        model = opened(server)
        found = ask_in_turn(model, 3)
    assert all(isinstance(outcome, Completion) for outcome in found)
    assert sorted(model.dropped) == ["seed", "system -> user", "temperature"]


def test_a_hiccup_during_a_trial_is_waited_for() -> None:
    answers = iter([Answer("I will not have 'temperature'", 400), Answer("busy", 503)])
    with ChatServer(lambda body: next(answers, "Hi.")) as server:
        model = opened(server)
        assert [getattr(outcome, "text", outcome) for outcome in ask_in_turn(model, 2)] == ["Hi.", "Hi."]
    assert all("temperature" in body for body in server.requests[2:])
    assert model.dropped == ()


def test_a_request_that_is_refused_without_what_it_names_fails_with_the_first_words() -> None:
    with ChatServer(lambda body: Answer(f"'temperature' {'temperature' in body}", 400)) as server:
        model = opened(server)
        (found,) = ask_in_turn(model, 1)
    assert isinstance(found, CallError)
    assert "'temperature' True" in found.detail
    assert model.dropped == ()


@pytest.mark.parametrize(
    ("status", "message", "name"),
    [
        (500, "Failed to parse input at pos 12: The page says Insufficient funds.", "server_error"),
        (400, "Invalid input: input_value='Payment required: no payment method on file'", "bad_request"),
        (502, "Upstream failed. Your daily limit is 500 EUR", "server_error"),
        (500, "Report: content violates usage guidelines", "server_error"),
        (503, "maximum context length cache lost", "server_error"),
        (429, "Requests per day exceeded. Please try again in 1.2.3s", "no_quota"),
        (429, "Requests per day exceeded. Please wait ... seconds", "no_quota"),
    ],
)
def test_words_in_a_servers_own_fault_decide_nothing_lasting(status: int, message: str, name: str) -> None:
    assert of_status(status, {}, json.dumps({"error": {"message": message}}).encode()).name == name


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_code_of_moderation_is_no_refusal_where_the_server_has_a_bad_day(status: int) -> None:
    assert of_status(status, {}, b'{"error": {"message": "no", "code": "content_filter"}}').name in (
        "rate_limited",
        "server_error",
    )


@pytest.mark.parametrize("words", ["I will not have 'temperature'", "Unknown parameter: 'temperature'."])
def test_what_the_server_has_taken_once_is_left_out_of_one_request_alone(words: str) -> None:
    calls = Counter[str]()

    def answer(body: dict[str, Any]) -> Answer | str:
        calls["all"] += 1
        return Answer(words, 400) if calls["all"] > 2 and "temperature" in body and calls["all"] < 9 else "Hi."

    with ChatServer(answer) as server:
        model = opened(server)
        found = ask_in_turn(model, 7)
    assert all(isinstance(outcome, Completion) for outcome in found)
    assert model.dropped == ()
    assert "temperature" in server.requests[-1]


def test_a_prompt_that_leaves_no_room_ends_neither_the_run_nor_its_limit() -> None:
    words = Answer("max_tokens=4096 does not leave room: 'max_completion_tokens' is 'max_tokens'", 400)
    with ChatServer(script("Hi.", words, words, words, words, "Hi.")) as server:
        model = opened(server, budget=Budget(1e6, Price(1, 1)), price=Price(1, 1))
        found = ask_in_turn(model, 4)
    assert [getattr(outcome, "name", None) for outcome in found] == [None, "bad_request", "bad_request", None]
    assert model.dropped == ()


QUOTES = (
    "insufficient balance",
    "flagged by moderation",
    "Your credit balance is too low",
    "invalid api key",
    "system role not supported",
)


@pytest.mark.parametrize("quoted", QUOTES)
def test_what_a_server_quotes_of_a_page_decides_nothing(quoted: str) -> None:
    page = f"{'Shop. ' * 40}{quoted}{' Shop.' * 40}"
    bodies = [
        {"error": {"message": f"cannot read '{page}'"}},
        {"error": {"message": "cannot read this", "metadata": {"flagged_input": quoted}}},
        {"detail": [{"loc": ["body", "messages"], "msg": "cannot read", "input": [{"text": quoted}]}]},
        {"error": {"message": "cannot read this " + "x" * 600 + quoted}},
    ]
    for body in bodies:
        with ChatServer(lambda _, body=body: Answer(status=400, body=json.dumps(body).encode())) as server:
            model = opened(server)
            (found,) = ask_in_turn(model, 1)
        assert isinstance(found, CallError)
        assert found.name == "bad_request"
        assert model.dropped == ()


def test_no_two_rows_claim_the_same() -> None:
    claims = Counter((row.status, row.code.lower(), row.phrase.lower()) for row in rows())
    assert [claim for claim, count in claims.items() if count > 1] == []


HELPS = {
    "truncated": "a higher `--max-tokens`",
    "auth_failed": "the right key",
    "at_limit": "waiting, or another plan",
    "no_quota": "credit",
    "no_such_model": "the right `--model` and `--base-url`",
    "rate_limited": "`--rpm`, `--tpm`",
}
"""What a user can do, where no hint says it."""


def test_the_table_of_servers_md_is_made_from_the_rows() -> None:
    """`python -m tests.seeact_offline.models.test_servers_table` writes it anew."""
    text = (DOCS / "servers.md").read_text(encoding="utf-8")
    assert f"\n{table()}\n" in text
    assert f" {len(rows())} codes" in text


def table() -> str:
    """One line for each meaning: how many rows have it, how they look, and what comes of it."""
    lines = ["| it is | rows | for example | asked again | what helps |", "|---|---|---|---|---|"]
    by_meaning: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows():
        by_meaning[row.means, row.hint].append(row)
    for (means, hint), alike in by_meaning.items():
        name = f"refuses {hint}" if means == "otherwise" else ": ".join(filter(None, (means, hint)))
        codes = [row.code for row in alike if row.code and not row.phrase]
        phrases = [row.phrase for row in alike if row.phrase and not row.code]
        seen = ", ".join(map(code, codes[:1] + phrases[:1] or [alike[0].status]))
        helps = HINTS.get(hint) or HELPS.get(means, "")
        lines.append(f"| {name} | {len(alike)} | {seen} | {asked_again(means)} | {helps} |")
    return "\n".join(lines) + "\n"


def asked_again(means: str) -> str:
    if means == "otherwise":
        return "without it"
    if means == "at_limit":
        return "after a pause of at most a minute; else the run stops"
    if means in ("forbidden", "no_such_model"):
        return "no; the run stops if it has no answer yet"
    if means in STOPPING:
        return "no: the run stops"
    times = RETRIES.get(means, 0)
    return "no" if times == 0 else "until `--max-wait`" if math.isinf(times) else f"{times} times"


def code(text: str) -> str:
    return f"<code>{text.replace('`', '&#96;')}</code>" if "`" in text else f"`{text}`"


if __name__ == "__main__":
    page = DOCS / "servers.md"
    before, header, rest = page.read_text(encoding="utf-8").partition("| it is |")
    page.write_text(before + table() + rest[rest.index("\n\n") + 1 :], encoding="utf-8")
