"""What is asked again, for how long, and when a run stops: against a real server on this machine."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from email.utils import formatdate
from random import Random
from typing import Any

import pytest

from seeact_offline.models import retrying
from seeact_offline.models.failures import BLANK_RETRIES, MALFORMED_RETRIES, Failure
from seeact_offline.models.retrying import FIRST_IN_A_ROW, MOST_IN_A_ROW, PERSISTENT, Breaker, Limiter, Retrier
from seeact_offline.records import CallError, Completion, Message, ModelStopped
from tests.chat_server import COMPLETION_TOKENS, PROMPT_TOKENS, Answer, ChatServer, script
from tests.seeact_offline.models.asking import (
    SOON,
    ask_in_turn,
    ask_many,
    ask_one,
    failure,
    opened,
    quick,
    request,
)

HTML = Answer(body=b"<html>hello</html>", headers={"Content-Type": "text/html"})
MALFORMED = {
    "JSON torn": Answer(body=b'{"choices": [{"mess'),
    "nothing": Answer(body=b""),
    "a page": HTML,
    "an error as a success": Answer(body=b'{"error": {"message": "upstream failed"}}'),
    "no choices": Answer(body=b'{"choices": []}'),
    "a choice without message": Answer(body=b'{"choices": [{}]}'),
    "a list": Answer(body=b"[]"),
    "a number for the text": Answer(body=b'{"choices": [{"message": {"content": 7}}]}'),
    "not UTF-8": Answer(body=b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "too deep": Answer(body=b"[" * 100_000),
}
PASSING = {
    **{f"status {status}": Answer("busy", status) for status in (408, 409, 425, 429, 500, 502, 503, 529)},
    "a connection reset": Answer(hang_up=True),
    "a body cut short": Answer("Hi.", cut=True),
    "a limit under status 200": Answer(body=b'{"error": {"message": "slow down", "code": 429}}'),
    **MALFORMED,
}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


# --- what is asked again ---


@pytest.mark.parametrize("answer", PASSING.values(), ids=PASSING.keys())
def test_what_may_pass_is_asked_again(answer: Answer) -> None:
    with ChatServer(script(answer, answer, "Hi.")) as server:
        completion = ask_one(opened(server))
    assert completion.text == "Hi."
    assert len(server.requests) == 3


def test_an_answer_too_slow_is_asked_for_again() -> None:
    with ChatServer(script(Answer("late", delay_s=5.0), "Hi.")) as server:
        assert ask_one(opened(server, timeout_s=0.2)).text == "Hi."


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_a_request_that_is_at_fault_is_not_asked_again(status: int) -> None:
    with ChatServer(script("Hi.", status)) as server:
        error = ask_in_turn(opened(server), 2)[1]
    assert isinstance(error, CallError)
    assert (error.name, error.detail) == ("bad_request", f"Error code: {status} - scripted {status}")
    assert len(server.requests) == 2


DECLINED = {
    "refused": Answer(None, refusal="I cannot help."),
    "refused by a filter": Answer("", finish_reason="content_filter"),
    "refused by a policy": Answer("against the rules", status=400, code="content_policy_violation"),
    "truncated": Answer("I would", finish_reason="length"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_what_the_model_declines_is_its_answer(name: str) -> None:
    with ChatServer(script(DECLINED[name])) as server, pytest.raises(CallError) as caught:
        ask_one(opened(server))
    assert caught.value.name == name.split()[0]
    assert caught.value.answered
    assert name != "truncated" or caught.value.detail.endswith("it began: I would")
    assert len(server.requests) == 1


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_blank_text_is_asked_again_twice_and_then_the_models_own(text: str | None) -> None:
    with ChatServer(script(Answer(text))) as server, pytest.raises(CallError) as caught:
        ask_one(opened(server))
    assert caught.value.name == "empty_reply"
    assert caught.value.usage.calls == len(server.requests) == 1 + BLANK_RETRIES


def test_a_blank_reply_is_paid_for_beside_the_one_that_counts() -> None:
    with ChatServer(script(Answer(""), "Hi.")) as server:
        usage = ask_one(opened(server)).usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2, 2 * PROMPT_TOKENS, 2 * COMPLETION_TOKENS)


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_success_is_asked_for_so_often_and_no_more(answer: Answer) -> None:
    with ChatServer(script("Hi.", answer)) as server:
        error = ask_in_turn(opened(server), 2)[1]
    assert isinstance(error, CallError)
    assert error.name == "api_error"
    assert len(server.requests) == 1 + 1 + MALFORMED_RETRIES


def test_the_number_of_retries_can_be_limited() -> None:
    with ChatServer(script(Answer("slow down", 429, SOON))) as server, pytest.raises(CallError, match="rate_limited"):
        ask_one(opened(server, max_retries=2))
    assert len(server.requests) == 3


def test_a_call_that_fails_while_others_get_through_is_given_up_in_the_end() -> None:
    """A server that breaks on one request does so for ever."""
    first = Counter[str]()

    def answer(body: dict[str, Any]) -> Answer | str:
        text = body["messages"][0]["content"]
        first[text] += 1
        return Answer("crash", 500) if text == "poison" else "Hi."

    async def run() -> list[Completion | BaseException]:
        model = opened(server)
        poison = asyncio.create_task(model.complete(request(0, (Message("user", "poison"),))))
        while first["poison"] < 2:
            await asyncio.sleep(0.001)
        found = await asyncio.gather(model.complete(request(1)), poison, return_exceptions=True)
        await model.aclose()
        return found

    with ChatServer(answer) as server:
        well, ill = asyncio.run(run())
    assert isinstance(well, Completion)
    assert isinstance(ill, CallError)
    assert ill.name == "server_error"
    assert first["poison"] == 1 + PERSISTENT


def test_a_failed_call_is_repeated_and_not_those_before_it() -> None:
    asked = Counter[str]()

    def answer(body: dict[str, Any]) -> Answer | str:
        text = body["messages"][0]["content"]
        asked[text] += 1
        return Answer("busy", 503) if text == "second" and asked[text] == 1 else f"re {text}"

    with ChatServer(answer) as server:
        found = ask_many(opened(server), (request(i, (Message("user", t),)) for i, t in enumerate(["first", "second"])))
    assert [c.text for c in found if isinstance(c, Completion)] == ["re first", "re second"]
    assert asked == {"first": 1, "second": 2}


# --- how long ---


@pytest.mark.parametrize(
    "headers",
    [
        lambda: {"retry-after-ms": "250"},
        lambda: {"retry-after": "0.25"},
        lambda: {"retry-after": formatdate(time.time() + 1.3, usegmt=True)},
    ],
    ids=["milliseconds", "seconds", "date"],
)
def test_a_pause_that_the_server_asks_for_is_kept(headers: Any) -> None:
    with ChatServer(script(Answer("slow down", 429, headers()), "Hi.")) as server:
        completion = ask_one(opened(server))
    assert completion.call is not None
    assert completion.call.seconds >= 0.2


def test_a_pause_longer_than_may_be_waited_fails_at_once_and_says_so() -> None:
    error = failure(Answer("slow down", 429, {"retry-after": "700"}), max_retries=None)
    assert error.name == "rate_limited"
    assert "asks to wait 700 s, max_wait is 600" in error.detail


@pytest.mark.parametrize("value", ["soon", "-5", "inf", "nan", "1e400", "9" * 400, "Mon, 99 Foo 2026 99:99:99 GMT"])
def test_a_pause_that_makes_no_sense_is_ours_to_choose(value: str) -> None:
    with ChatServer(script(Answer("slow down", 429, {"retry-after": value}), "Hi.")) as server:
        assert ask_one(opened(server)).text == "Hi."


def test_no_attempt_begins_after_the_longest_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_PAUSE_S", 0.05)
    error = failure(503, max_retries=None, max_wait_s=0.2)
    assert error.name == "server_error"
    assert "attempts)" in error.detail


def test_pauses_grow_and_are_drawn_from_the_requests_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(retrying, "FIRST_PAUSE_S", 1.0)
    monkeypatch.setattr(retrying, "LONGEST_PAUSE_S", 4.0)
    left: list[Completion | Failure] = [*[Failure("server_error", "busy")] * 4, Completion("Hi.")]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def attempt() -> Completion | Failure:
        return left.pop(0)

    async def run() -> Completion:
        return await Retrier(Limiter(1), Breaker("here"), sleep=sleep).call("seed", 0, attempt)

    assert asyncio.run(run()).text == "Hi."
    draws = Random("seed")
    assert slept == [draws.random() * most for most in (1.0, 2.0, 4.0, 4.0)]


def test_an_answer_says_what_it_took() -> None:
    with ChatServer(script(503, Answer("Hi.", headers={"x-request-id": "req_17"}))) as server:
        record = ask_one(opened(server)).call
    assert record is not None
    assert (record.attempts, record.request_id) == (2, "req_17")
    assert 0 < record.seconds < 10


# --- how many at once ---


def test_no_more_calls_are_in_flight_than_asked_for() -> None:
    with ChatServer(lambda body: Answer("Hi.", delay_s=0.02)) as server:
        found = ask_many(opened(server, concurrency=3), map(request, range(20)))
    assert all(isinstance(one, Completion) for one in found)
    assert server.most_at_once == 3


def test_a_call_that_has_to_wait_long_does_not_hold_up_the_others() -> None:
    """With room for one in flight."""

    def answer(body: dict[str, Any]) -> Answer | str:
        if body["messages"][0]["content"] == "slow" and len(server.requests) == 1:
            return Answer("slow down", 429, {"retry-after-ms": "400"})
        return body["messages"][0]["content"]

    async def run() -> list[str]:
        model, done = opened(server, concurrency=1), []

        async def one(number: int, text: str) -> None:
            done.append((await model.complete(request(number, (Message("user", text),)))).text)

        await asyncio.gather(*(one(i, text) for i, text in enumerate(["slow", "a", "b", "c"])))
        await model.aclose()
        return done

    with ChatServer(answer) as server:
        assert asyncio.run(run()) == ["a", "b", "c", "slow"]


def test_requests_a_minute_are_kept_to() -> None:
    """600 a minute: one second's worth at once, then one every 100 ms."""
    began = time.monotonic()
    with ChatServer(script("Hi.")) as server:
        found = ask_many(opened(server, rpm=600), map(request, range(14)))
    assert all(isinstance(one, Completion) for one in found)
    assert time.monotonic() - began >= 0.35


# --- when the run stops ---


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("Incorrect API key", 401), "auth_failed: Error code: 401 - Incorrect API key"),
        (Answer("country not supported", 403), "country not supported"),
        (Answer("no money left", 402), "no_quota: Error code: 402 - no money left"),
        (Answer("You exceeded your current quota", 429, code="insufficient_quota"), "no_quota"),
        (Answer("Billing hard limit has been reached", 400, code="billing_hard_limit_reached"), "no_quota"),
        (Answer("Your credit balance is too low to access the API", 400), "no_quota"),
        (Answer("The model `gpt-9` does not exist", 404, code="model_not_found"), "The model `gpt-9` does not exist"),
        (Answer("The model `gpt-9` does not exist", 400, code="model_not_found"), "The model `gpt-9` does not exist"),
    ],
)
def test_a_first_call_that_says_that_none_will_get_through_stops_the_run(answer: Answer, said: str) -> None:
    with ChatServer(script(answer)) as server, pytest.raises(ModelStopped) as caught:
        ask_one(opened(server))
    assert said in str(caught.value)
    assert server.base_url in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer("Incorrect API key", 401),
        Answer("You exceeded your current quota", 429, code="insufficient_quota"),
        Answer(body=b'{"error": {"message": "no quota", "code": "insufficient_quota"}}'),
    ],
)
def test_a_key_or_a_quota_that_runs_out_stops_the_run(answer: Answer) -> None:
    with ChatServer(script("Hi.", "Hi.", answer)) as server:
        found = ask_in_turn(opened(server), 3)
    assert [type(one) for one in found] == [Completion, Completion, ModelStopped]


@pytest.mark.parametrize("status", [403, 404])
def test_once_a_call_got_through_such_a_word_is_about_one_call(status: int) -> None:
    with ChatServer(script("Hi.", status, "Hi.")) as server:
        found = ask_in_turn(opened(server), 3)
    assert [type(one) for one in found] == [Completion, CallError, Completion]


@pytest.mark.parametrize("retries", [None, 0])
def test_a_server_that_was_never_reached_stops_the_run_within_seconds(
    monkeypatch: pytest.MonkeyPatch, retries: int | None
) -> None:
    monkeypatch.setattr(retrying, "FIRST_CONTACT_S", 0.05)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        with ChatServer(script("never")) as server:
            found = ask_many(opened(server, base_url=url, max_retries=retries), map(request, range(8)))
    assert all(isinstance(one, ModelStopped) for one in found)
    assert f"expected an answer from {url}, got connection_failed" in str(found[0])


def test_a_server_that_goes_away_is_waited_for() -> None:
    """As long as may be waited, for it has answered once."""
    with ChatServer(script("Hi.")) as server:
        model = opened(server, max_wait_s=0.3)

        async def run() -> Completion | BaseException:
            await model.complete(request())
            await asyncio.to_thread(server.close)
            (found,) = await asyncio.gather(model.complete(request(1)), return_exceptions=True)
            await model.aclose()
            return found

        found = asyncio.run(run())
    assert isinstance(found, CallError)
    assert found.name == "connection_failed"


@pytest.mark.parametrize(("before", "most"), [([], FIRST_IN_A_ROW), (["Hi."], MOST_IN_A_ROW)], ids=["first", "later"])
def test_calls_that_all_fail_stop_the_run(before: list[str], most: int) -> None:
    with ChatServer(script(*before, 400)) as server:
        found = ask_in_turn(opened(server), len(before) + most + 1)
    failed = [CallError] * (most - 1)
    assert [type(one) for one in found] == [*[Completion] * len(before), *failed, ModelStopped, ModelStopped]
    assert "scripted 400" in str(found[-1])
    assert len(server.requests) == len(before) + most


def test_models_that_decline_do_not_stop_a_run() -> None:
    with ChatServer(script(Answer(None, refusal="No."))) as server:
        found = ask_in_turn(opened(server), MOST_IN_A_ROW + 1)
    assert all(isinstance(one, CallError) for one in found)


@pytest.mark.parametrize(
    ("share", "answers", "counted"),
    [
        (0.3, ("Hi.", 400, "Hi.", 400, 400, "Hi.", 400, "Hi."), "at most 30% of calls to fail, not 4 of 7"),
        (0.0, ("Hi.", 400), "at most 0% of calls to fail, not 1 of 2"),
    ],
)
def test_a_share_of_failed_calls_stops_the_run(share: float, answers: tuple[str | int, ...], counted: str) -> None:
    with ChatServer(script(*answers)) as server:
        found = ask_in_turn(opened(server, fail_on_error=share), int(counted.split()[-1]))
    assert [type(one) for one in found[:-1]] == [
        CallError if one == 400 else Completion for one in answers[: len(found) - 1]
    ]
    assert isinstance(found[-1], ModelStopped)
    assert f"expected {counted}" in str(found[-1])


def test_calls_that_wait_while_the_run_stops_are_not_sent() -> None:
    with ChatServer(lambda body: Answer("Incorrect API key", 401, delay_s=0.05)) as server:
        found = ask_many(opened(server, concurrency=4), map(request, range(30)))
    assert all(isinstance(one, ModelStopped) for one in found)
    assert len(server.requests) <= 4


# --- all of it together ---


@pytest.mark.slow
def test_a_storm_of_faults_is_weathered() -> None:
    """Three calls of ten meet one of all kinds of faults; every answer is that of its own request."""
    faults = [*PASSING.values(), Answer(""), Answer("late", delay_s=0.5)]
    draws = Random(7)

    def answer(body: dict[str, Any]) -> Answer | str:
        return draws.choice(faults) if draws.random() < 0.3 else f"re {body['messages'][0]['content']}"

    texts = [f"question {number}" for number in range(300)]
    with ChatServer(answer) as server:
        model = opened(server, concurrency=32, timeout_s=0.4)
        found = ask_many(model, (request(i, (Message("user", text),)) for i, text in enumerate(texts)))
    replies = [one.text if isinstance(one, Completion) else None for one in found]
    assert all(reply in (None, f"re {text}") for reply, text in zip(replies, texts, strict=True))
    assert replies.count(None) <= 3
    assert not any(isinstance(one, ModelStopped) for one in found)
