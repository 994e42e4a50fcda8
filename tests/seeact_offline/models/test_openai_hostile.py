"""Servers that are broken or mean harm: every one a named failure, in little memory, and no key sent elsewhere."""

from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc
from typing import Any

import pytest

from seeact_offline.models.http_client import MAX_REPLY_BYTES
from seeact_offline.records import CallError, Message, ModelStopped
from tests.chat_server import Answer, ChatServer, script
from tests.seeact_offline.models.asking import HELLO, ask_in_turn, ask_one, failure, opened, quick, stopped

MB = 1_000_000
MESSAGE = {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")


def reply_of(n_bytes: int) -> bytes:
    body = json.dumps(MESSAGE)
    return body.replace("Hi.", "x" * (n_bytes - len(body) + 3)).encode()


TOO_LARGE = {
    "announced": lambda: Answer(body=reply_of(MAX_REPLY_BYTES + 1)),
    "endless": lambda: Answer(chunks=itertools.repeat(b" " * 100_000)),
    "endless error": lambda: Answer(status=400, chunks=itertools.repeat(b"x" * 100_000)),
    "packed": lambda: Answer(body=gzip.compress(b" " * 64 * MB, 6), headers={"Content-Encoding": "gzip"}),
    "packed twice": lambda: Answer(
        body=gzip.compress(gzip.compress(b" " * 64 * MB, 6)), headers={"Content-Encoding": "gzip, gzip"}
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_body_too_large_is_a_named_failure_in_bounded_memory(name: str) -> None:
    answer = TOO_LARGE[name]()
    tracemalloc.start()
    error = failure(answer)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.name == "reply_too_large"
    assert peak < 5 * MAX_REPLY_BYTES


def test_a_body_just_small_enough_is_read() -> None:
    with ChatServer(script(Answer(body=reply_of(MAX_REPLY_BYTES)))) as server:
        text = ask_one(opened(server)).text
    assert set(text) == {"x"}
    assert len(text) > 7 * MB


def test_a_packed_reply_is_unpacked() -> None:
    packed = Answer(body=gzip.compress(json.dumps(MESSAGE).encode()), headers={"Content-Encoding": "gzip"})
    with ChatServer(script(packed)) as server:
        assert ask_one(opened(server)).text == "Hi."


def test_what_is_not_packed_as_it_says_is_a_named_failure() -> None:
    error = failure(Answer(body=b"not gzip at all", headers={"Content-Encoding": "gzip"}))
    assert error.name == "api_error"
    assert "unpacked" in error.detail


def test_a_reply_that_is_late_or_drips_is_a_timeout() -> None:
    """No single pause between drops is longer than the limit, all of them together are."""
    for answer in (Answer("late", delay_s=5.0), Answer(chunks=itertools.repeat(b" "), gap_s=0.05)):
        assert failure(answer, timeout_s=0.3).name == "timeout"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_not_sent_on(status: int) -> None:
    with ChatServer(script("Hi.")) as other:
        to = {"Location": f"{other.base_url}/chat/completions"}
        error = stopped(Answer(body=b"", status=status, headers=to))
    assert f"the server redirects to {other.base_url}/chat/completions" in str(error)
    assert other.requests == []


def test_a_redirect_after_an_answer_fails_its_call_alone() -> None:
    with ChatServer(script("Hi.", Answer(body=b"", status=302, headers={"Location": "http://h/"}), "Hi.")) as server:
        found = ask_in_turn(opened(server), 3)
    assert isinstance(found[1], CallError)
    assert found[1].name == "redirected"
    assert not isinstance(found[2], Exception)


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe{}",
        b'{"choices": [{"message": {"content": "\xff"}}]}',
        b"[" * 200_000,
        b'{"choices": ' + b"9" * 5000 + b"}",
        b'{"error": [[[]]]}',
        b'{"error": {"message": {"a": 1}, "code": {"b": 2}}}',
        b'{"choices": {"0": {}}, "usage": []}',
        b"NaN",
        b'"' + b"x" * 100_000 + b'"',
    ],
)
@pytest.mark.parametrize("status", [200, 400])
def test_nonsense_is_a_named_failure(body: bytes, status: int) -> None:
    error = failure(Answer(body=body, status=status))
    assert error.name == ("api_error" if status == 200 else "bad_request")
    assert len(error.detail) <= 350


@pytest.mark.parametrize(
    "usage",
    ["none", [], {}, {"prompt_tokens": "many"}, {"prompt_tokens": -5, "completion_tokens": 1}, {"prompt_tokens": 1e9}],
)
def test_usage_that_makes_no_sense_is_not_reported(usage: Any) -> None:
    with ChatServer(script(Answer(body=json.dumps({**MESSAGE, "usage": usage}).encode()))) as server:
        used = ask_one(opened(server)).usage
    assert (used.calls, used.unreported, used.prompt_tokens, used.cost_usd) == (1, 1, 0, None)


def test_a_servers_name_for_a_call_is_kept_short() -> None:
    with ChatServer(script(Answer("Hi.", headers={"x-request-id": "r" * 5000}))) as server:
        record = ask_one(opened(server)).call
    assert record is not None
    assert record.request_id == "r" * 200


def test_an_error_that_echoes_the_request_is_short() -> None:
    with ChatServer(lambda body: Answer(json.dumps(body) * 50, status=400)) as server:
        (found,) = ask_in_turn(opened(server), 1)
    assert isinstance(found, CallError)
    assert len(found.detail) <= 350


def test_a_page_of_odd_characters_is_sent_and_answered() -> None:
    odd = Message("user", 'quotes " \\ \x00 \u2028 \ud83d é 漢 </script>')
    with ChatServer(lambda body: body["messages"][-1]["content"]) as server:
        assert ask_one(opened(server), (HELLO[0], odd)).text == odd.text.replace("\ud83d", "?")


def test_a_run_stopped_by_a_hostile_server_does_not_show_the_key() -> None:
    error = stopped(Answer("Incorrect API key provided: sk-test-0123456789abcdef", status=401))
    assert isinstance(error, ModelStopped)
    assert "sk-test" not in f"{error}"
