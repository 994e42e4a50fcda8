"""A model that is never called, the lines of its requests, and those of its replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from seeact_offline.models import ModelOptions, Price, open_model
from seeact_offline.models.batch import BatchCodec, BatchModel, read_result
from seeact_offline.models.client import WAITING
from seeact_offline.models.reply_cache import CachedReply, ReplyCache, ReplyStore
from seeact_offline.records import CallError, Completion, ImageFormat, Message, ModelSpecError, Request, StepKey, Usage
from tests.chat_server import Answer, ChatServer, rendered, script

OPTIONS = ModelOptions(base_url="http://127.0.0.1:9/v1", price=Price(1, 2))
HELLO = Request((Message("system", "Be brief."), Message("user", "Hello")), StepKey("task", "step"), 0, 1)


class Dot:
    """A picture."""

    key = "dot"

    def encoded(self, image_format: ImageFormat) -> bytes:
        return str(image_format).encode()


@pytest.fixture
def codec() -> BatchCodec:
    return BatchCodec("openai/m", OPTIONS)


@pytest.fixture
def replies(tmp_path: Path) -> Iterator[ReplyStore]:
    replies = ReplyStore(tmp_path / "replies.sqlite", "openai/m")
    yield replies
    replies.close()


def key_of(codec: BatchCodec, request: Request = HELLO) -> str:
    return ReplyCache(cast("ReplyStore", None), codec.identity, codec.by_place).key(request)


def failure_of(model: BatchModel, request: Request = HELLO) -> CallError:
    with pytest.raises(CallError) as caught:
        asyncio.run(model.complete(request))
    return caught.value


def result(answer: Answer, codec: BatchCodec, **changes: Any) -> Any:
    body = json.loads(rendered(answer, {"model": "m", "messages": []}))
    row = {"custom_id": "k", "response": {"status_code": answer.status, "body": body}, "error": None, **changes}
    return read_result(json.dumps(row).encode(), codec)


def live(answer: Answer) -> Completion | CallError:
    """What the live provider makes of it."""

    async def ask(options: ModelOptions) -> Completion | CallError:
        model = open_model("openai/m", options)
        try:
            return replace(await model.complete(HELLO), call=None)
        except CallError as error:
            return error
        finally:
            await model.aclose()

    with ChatServer(script(answer)) as server:
        return asyncio.run(ask(replace(OPTIONS, base_url=server.base_url, max_retries=0)))


# --- asking ---


def test_what_has_no_reply_is_taken_down_once_with_its_key(codec: BatchCodec, replies: ReplyStore) -> None:
    model = BatchModel(codec, replies)
    assert failure_of(model).name == WAITING
    missing = model.missing(HELLO.key)
    assert [(one.key, one.request) for one in missing] == [(key_of(codec), HELLO)]
    assert model.missing(HELLO.key) == []


def test_what_has_a_reply_is_answered(codec: BatchCodec, replies: ReplyStore) -> None:
    usage = Usage(1, 2, 3, 0, 0.5)
    replies.put(key_of(codec), CachedReply("Hi.", usage))
    model = BatchModel(codec, replies)
    assert replace(asyncio.run(model.complete(HELLO)), call=None) == Completion("Hi.", usage)
    assert model.missing(HELLO.key) == []


def test_a_model_that_declined_declines_again(codec: BatchCodec, replies: ReplyStore) -> None:
    replies.put(key_of(codec), CachedReply("", Usage(1), "refused", "No."))
    error = failure_of(BatchModel(codec, replies))
    assert (error.name, error.detail, error.usage, error.answered) == ("refused", "No.", Usage(1), True)


def test_what_is_not_to_be_asked_again_fails_by_its_name(codec: BatchCodec, replies: ReplyStore) -> None:
    model = BatchModel(codec, replies, {key_of(codec): ("bad_request", "too long")})
    assert str(failure_of(model)) == "bad_request: too long"
    assert model.missing(HELLO.key) == []


def test_a_reply_is_kept_where_the_live_model_looks_for_it(
    tmp_path: Path, codec: BatchCodec, replies: ReplyStore
) -> None:
    replies.put(key_of(codec), CachedReply("Hi.", Usage(1)))
    model = open_model("openai/m", replace(OPTIONS, cache=tmp_path / "replies.sqlite"))

    async def ask() -> Completion:
        try:
            return await model.complete(HELLO)
        finally:
            await model.aclose()

    # nothing listens at its address
    assert asyncio.run(ask()).text == "Hi."


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_line_holds_the_body_that_the_live_model_sends(api: str) -> None:
    request = replace(HELLO, messages=(*HELLO.messages, Message("user", "Look, a \ud800 \n", Dot())))
    options = replace(OPTIONS, model_args={"api": api, "top_p": 0.5})

    async def ask(base_url: str) -> None:
        model = open_model("openai/m", replace(options, base_url=base_url))
        await model.complete(request)
        await model.aclose()

    with ChatServer(script("Hi.")) as server:
        asyncio.run(ask(server.base_url))
    line = asyncio.run(BatchCodec("openai/m", options).line("k", request))
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    row = json.loads(line)
    assert row.pop("body") == server.requests[0]
    assert row == {"custom_id": "k", "method": "POST", "url": server.paths[0]}


@pytest.mark.parametrize("spec", ["builtin/lexical", "hf/x", len])
def test_other_models_are_refused(spec: Any) -> None:
    with pytest.raises(ModelSpecError, match=r"`batch` cannot ask .*; use openai/NAME"):
        BatchCodec(spec, OPTIONS)


@pytest.mark.parametrize(
    ("url", "args", "path"),
    [
        ("http://h/v1", {}, "/v1/chat/completions"),
        ("http://h/v1", {"api": "responses"}, "/v1/responses"),
        ("https://shop.openai.azure.com/openai/v1", {}, "/chat/completions"),
        ("https://shop.openai.azure.com/openai/v1", {"api": "responses"}, "/v1/responses"),
    ],
)
def test_a_line_names_the_path_that_its_server_knows(url: str, args: dict[str, Any], path: str) -> None:
    codec = BatchCodec("openai/m", ModelOptions(base_url=url, model_args=args))
    assert json.loads(asyncio.run(codec.line("k", HELLO)))["url"] == codec.url == path


# --- reading ---


@pytest.mark.parametrize(
    "answer",
    [
        *(Answer("Hi."), Answer("Hi.", with_usage=False), Answer("cut", finish_reason="length"), Answer(refusal="No.")),
        *(Answer("", finish_reason="content_filter"), Answer("flagged", status=400, code="content_filter")),
        *(Answer("  "), Answer("bad", status=400), Answer("busy", status=429), Answer("down", status=503)),
        *(Answer(body=body) for body in (b'{"choices": []}', b'{"error": {"message": "full", "code": 503}}', b"[]")),
    ],
)
def test_a_reply_in_a_file_is_read_as_one_of_a_call(answer: Answer, codec: BatchCodec) -> None:
    found, asked = result(answer, codec).outcome, live(answer)
    # a call whose usage nobody reports is charged as it was reserved; for a file nothing is
    is_as_reserved = asked.usage.unreported > 0
    if isinstance(asked, Completion):
        assert replace(found, call=None) == (replace(asked, usage=found.usage) if is_as_reserved else asked)
    else:
        assert (found.name, found.error.answered) == (asked.name, asked.answered)
        assert is_as_reserved or found.usage == asked.usage
        assert found.detail.split(" answered ")[-1] == asked.detail.split(" answered ")[-1]


def test_what_counts_as_the_models_answer_is_kept_and_nothing_else(codec: BatchCodec) -> None:
    declined = result(Answer(refusal="No."), codec).kept
    assert (declined.failure, declined.detail, declined.usage.calls) == ("refused", "No.", 1)
    assert result(Answer("down", status=500), codec).kept is None


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"response": None, "error": {"code": "batch_expired", "message": "late"}}, "batch_expired: late"),
        ({"response": None, "error": {"code": "other", "message": "odd"}}, "api_error: odd"),
        ({"response": None, "error": None}, "api_error: neither a response nor an error"),
        ({"response": {"status_code": 400, "body": None}, "error": "EngineDeadError"}, "api_error: EngineDeadError"),
        (
            {"response": {"status_code": 400, "body": None}, "error": {"error": {"message": "too long", "code": 400}}},
            "bad_request: Error code: 400 - too long",
        ),
        ({"response": "x"}, "api_error: neither a response nor an error"),
    ],
)
def test_a_line_without_a_reply_says_why(row: dict[str, Any], named: str, codec: BatchCodec) -> None:
    outcome = read_result(json.dumps({"custom_id": "k", **row}).encode(), codec).outcome
    assert f"{outcome.name}: {outcome.detail}" == named  # type: ignore[union-attr]


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"1", b'{"custom_id": 3}', b"\xff\xfe\x00", b"[" * 100_000])
def test_what_is_no_result_is_refused(line: bytes, codec: BatchCodec) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_result(line, codec)


def test_a_refused_parameter_stays_away_in_later_waves(codec: BatchCodec) -> None:
    said = Answer("Unsupported parameter: 'seed'", status=400, param="seed", code="unsupported_parameter")
    sent = codec.parameters
    # as each of thousands of lines says so
    assert [codec.give_way(sent, result(said, codec).outcome) for _ in range(2)] == [True, True]
    assert len(codec.refused) == 1
    later = BatchCodec("openai/m", OPTIONS, json.loads(json.dumps(codec.refused)))
    assert later.dropped == ("seed",)
    assert set(codec.parameters) == set(later.parameters) == set(sent) - {"seed"}
    assert later.identity == codec.identity
