"""`openai/NAME` against a real server on this machine."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seeact_offline.models import ModelOptions, Price, open_model
from seeact_offline.models.failures import DETAIL_CHARS
from seeact_offline.models.openai import DataUrls, OpenAIModel
from seeact_offline.records import (
    JPEG_95,
    PNG,
    Completion,
    ImageFormat,
    Message,
    ModelSpecError,
    Operation,
    RowError,
    Step,
    Usage,
)
from tests.chat_server import COMPLETION_TOKENS, IMAGE_TOKENS, PROMPT_TOKENS, Answer, ChatServer, script
from tests.seeact_offline.models.asking import HELLO, ask_many, ask_one, failure, opened, request, stopped

KEY = "sk-test-0123456789abcdef"
STEP = Step("task", "step", "Buy tea", (), "shop", "Shopping", "<html/>", Operation("CLICK"), (), None)


@dataclass
class FakePicture:
    """A picture that counts how often it is encoded."""

    key: str
    content: bytes = b"pixels"
    n_encoded: int = 0

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        self.n_encoded += 1
        return f"{image_format} ".encode() + self.content


class BrokenPicture:
    key = "broken"

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        raise RowError("bad_screenshot", "not an image")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return KEY


def ask(server: ChatServer, messages: tuple[Message, ...], name: str = "m", **changes: Any) -> Completion:
    return ask_one(opened(server, name, **changes), messages)


def test_the_request_that_leaves_is_as_released() -> None:
    """Text before picture, JPEG of quality 95 looked at closely, at most 4,096 new tokens, temperature 0; text alone as a string."""
    talk = (Message("system", "Be brief."), Message("user", "Look", FakePicture("p")), Message("assistant", "Hi."))
    with ChatServer(script("Hi.")) as server:
        ask(server, (*talk, Message("user", "Again")))
    url = "data:image/jpeg;base64," + base64.b64encode(b"jpeg:95 pixels").decode()
    look = [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": url, "detail": "high"}}]
    sent = [("system", "Be brief."), ("user", look), ("assistant", "Hi."), ("user", "Again")]
    messages = [{"role": role, "content": content} for role, content in sent]
    (request,) = server.requests
    assert request == {"model": "m", "messages": messages, "max_tokens": 4096, "temperature": 0.0, "seed": 0}


@pytest.mark.parametrize("detail", ["auto", "low", "high"])
@pytest.mark.parametrize(("text", "kind"), [("png", "image/png"), ("jpeg:60", "image/jpeg"), ("webp:90", "image/webp")])
def test_a_picture_is_sent_in_the_format_and_detail_asked_for(text: str, kind: str, detail: Any) -> None:
    with ChatServer(script("Hi.")) as server:
        picture = Message("user", "Look", FakePicture("p"))
        ask(server, (picture,), image_format=ImageFormat.read(text), image_detail=detail)
    (image,) = (part["image_url"] for part in server.requests[0]["messages"][0]["content"] if "image_url" in part)
    content = base64.b64encode(f"{text} pixels".encode()).decode()
    assert image == {"url": f"data:{kind};base64,{content}", "detail": detail}


def test_the_second_turn_does_not_encode_the_picture_again() -> None:
    picture = FakePicture("p")
    first = (Message("user", "Look", picture),)
    second = (*first, Message("assistant", "Hi."), Message("user", "Choose"))
    with ChatServer(script("Hi.")) as server:
        ask_many(opened(server), [request(0, first), request(1, second)])
    assert picture.n_encoded == 1


def test_pictures_are_encoded_off_the_event_loop() -> None:
    class LoopSeeing(FakePicture):
        def encoded(self, image_format: ImageFormat = PNG) -> bytes:
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            return super().encoded(image_format)

    with ChatServer(script("Hi.")) as server:
        assert ask(server, (Message("user", "Look", LoopSeeing("p")),))


def test_equal_pictures_asked_for_at_once_are_encoded_once() -> None:
    pictures = [FakePicture("same") for _ in range(5)]

    async def run() -> list[bytes]:
        urls = DataUrls(JPEG_95)
        return await asyncio.gather(*(urls.get(picture) for picture in pictures))

    assert len(set(asyncio.run(run()))) == 1
    assert sum(picture.n_encoded for picture in pictures) == 1


def test_who_gives_up_on_a_picture_does_not_fail_who_still_waits_for_it() -> None:
    class Slow(FakePicture):
        def encoded(self, image_format: ImageFormat = PNG) -> bytes:
            started.set()
            assert go_on.wait(10)
            return super().encoded(image_format)

    async def run() -> bytes:
        urls = DataUrls(JPEG_95)
        first, second = (asyncio.create_task(urls.get(picture)) for _ in range(2))
        await asyncio.to_thread(started.wait, 10)
        first.cancel()
        await asyncio.sleep(0)
        go_on.set()
        return await second

    started, go_on, picture = threading.Event(), threading.Event(), Slow("p")
    assert asyncio.run(run()).startswith(b"data:image/jpeg;base64,")
    assert picture.n_encoded == 1


def test_a_picture_is_kept_as_long_as_somebody_holds_it() -> None:
    async def run() -> list[int]:
        urls, counts = DataUrls(JPEG_95), []
        for _ in range(2):
            picture = FakePicture("p")
            for _ in range(2):
                await urls.get(picture)
            counts.append(picture.n_encoded)
            del picture
        return counts

    assert asyncio.run(run()) == [1, 1]


def test_pictures_that_are_coming_are_encoded_once_behind_the_first() -> None:
    first, second, broken = FakePicture("1"), FakePicture("2"), BrokenPicture()

    async def run() -> None:
        urls = DataUrls(JPEG_95)
        await urls.get(first, (second, broken))
        await urls.get(second)
        with pytest.raises(RowError, match="bad_screenshot"):
            await urls.get(broken)

    asyncio.run(run())
    assert (first.n_encoded, second.n_encoded) == (1, 1)


def test_a_picture_that_cannot_be_encoded_is_the_rows_failure() -> None:
    with ChatServer(script("Hi.")) as server, pytest.raises(RowError, match="bad_screenshot"):
        ask(server, (Message("user", "Look", BrokenPicture()),))
    assert server.requests == []


def test_half_a_surrogate_pair_does_not_stop_a_request() -> None:
    with ChatServer(script("Hi.")) as server:
        ask(server, (Message("user", "odd \ud83d end"),))
    assert server.requests[0]["messages"][0]["content"] == "odd ? end"


CALL = {"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [1, 2]}}
CHAT_CALL = {"type": "function", "function": CALL | {"arguments": json.dumps(CALL["arguments"])}}


@pytest.mark.parametrize(
    ("said", "expected"),
    [(None, json.dumps(CALL)), ("I click.", f"I click.\n{json.dumps(CALL)}")],
)
def test_calls_of_tools_stand_behind_the_text(said: str | None, expected: str) -> None:
    message = {"role": "assistant", "content": said, "tool_calls": [CHAT_CALL]}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
    with ChatServer(lambda _: Answer(body=body)) as server:
        assert ask(server, HELLO).text == expected


def test_computer_calls_of_the_responses_api_are_text_too() -> None:
    call = {"type": "computer_call", "action": {"type": "click", "x": 1, "y": 2}}
    body = json.dumps({"output": [call], "status": "completed"}).encode()
    with ChatServer(lambda _: Answer(body=body)) as server:
        assert json.loads(ask(server, HELLO, model_args={"api": "responses"}).text) == call


def test_the_reply_comes_back_unchanged() -> None:
    with ChatServer(script("  ELEMENT: A\n")) as server:
        assert ask(server, HELLO).text == "  ELEMENT: A\n"


USED = Usage(1, PROMPT_TOKENS + IMAGE_TOKENS, COMPLETION_TOKENS, IMAGE_TOKENS)
COST = ((PROMPT_TOKENS + IMAGE_TOKENS) * 2 + COMPLETION_TOKENS * 8) / 1e6


@pytest.mark.parametrize(
    ("answer", "price", "usage"),
    [
        (Answer("Hi."), Price(2.0, 8.0), replace(USED, cost_usd=COST)),
        (Answer("Hi."), None, replace(USED, cost_usd=None)),
        (Answer("Hi.", with_usage=False), None, Usage(calls=1, cost_usd=None, unreported=1)),
        # all that it may have cost
        (Answer("Hi.", with_usage=False), Price(0, 1000), Usage(calls=1, cost_usd=0.2, unreported=1)),
    ],
    ids=["counted", "without a price", "a server that counts nothing", "such a server at a price"],
)
def test_usage(answer: Answer, price: Price | None, usage: Usage) -> None:
    with ChatServer(script(answer)) as server:
        completion = ask(server, (Message("user", "Look", FakePicture("p")),), price=price, max_tokens=200)
    assert completion.usage == usage


@pytest.mark.parametrize(
    ("name", "options", "sent"),
    [
        ("org/m", {"max_tokens": 7, "temperature": 0.5, "seed": 3}, {"max_tokens": 7, "temperature": 0.5, "seed": 3}),
        ("m", {"temperature": None}, {"max_tokens": 4096, "seed": 0}),
        # nothing is guessed from a model's name
        ("o1", {}, {"max_tokens": 4096, "temperature": 0.0, "seed": 0}),
        ("openai/o3", {}, {"max_tokens": 4096, "temperature": 0.0, "seed": 0}),
    ],
)
def test_sampling_settings_are_sent(name: str, options: dict[str, Any], sent: dict[str, Any]) -> None:
    with ChatServer(script("Hi.")) as server:
        ask(server, HELLO, name=name, **options)
    assert {key: value for key, value in server.requests[0].items() if key != "messages"} == {"model": name, **sent}


def test_openai_itself_is_told_the_limit_by_its_newer_name() -> None:
    identity = OpenAIModel("gpt-4o", ModelOptions(max_tokens=9)).identity
    assert identity["max_completion_tokens"] == 9
    assert "max_tokens" not in identity


STATUSES = {
    **dict.fromkeys((400, 404, 422), "bad_request"),
    **dict.fromkeys((409, 500, 503, 529), "server_error"),
    **{403: "forbidden", 408: "timeout", 429: "rate_limited"},
}


@pytest.mark.parametrize(("status", "name"), STATUSES.items())
def test_a_status_has_a_failure_name(status: int, name: str) -> None:
    error = failure(status)
    assert error.name == name
    assert f"scripted {status}" in error.detail


@pytest.mark.parametrize(
    "quoted",
    [
        f"wrong key {KEY}.",
        "wrong key sk-abc***xyz9.",
        "wrong header Authorization: Bearer c3VyZSB0aGluZw",
        "wrong header {'authorization': 'Bearer c3VyZSB0aGluZw'}",
        "no route to http://user:c3VyZSB0aGluZw@proxy",
    ],
)
def test_a_failure_never_quotes_a_secret(quoted: str) -> None:
    for error in (failure(Answer(quoted, status=400)), stopped(Answer(quoted, status=401))):
        assert "wrong" in str(error) or "no route" in str(error)
        for secret in (KEY, "sk-abc", "xyz9", "c3VyZSB0aGluZw"):
            assert secret not in f"{error} {error.__cause__} {error.__context__}"


def test_a_key_of_any_form_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "tok/en+4711=")
    assert failure(Answer("wrong key tok/en+4711=.", status=400)).detail == "Error code: 400 - wrong key ***"


def test_a_failures_detail_is_one_short_line() -> None:
    detail = failure(Answer("line\n" * 500, status=500)).detail
    assert len(detail) == DETAIL_CHARS
    assert "\n" not in detail


def test_an_error_of_unknown_layout_is_shown() -> None:
    assert "no such model" in failure(Answer(status=404, body=b'{"detail": "no such model"}')).detail


def test_the_key_from_the_environment_is_sent() -> None:
    with ChatServer(script("Hi.")) as server:
        ask(server, HELLO)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with ChatServer(script("Hi.")) as server:
        assert ask(server, HELLO).text == "Hi."


def test_a_proxy_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with ChatServer(script("Hi.")) as server:
        assert ask(server, HELLO).text == "Hi."


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    with pytest.raises(
        ModelSpecError,
        match=r"^`model` openai/NAME needs an API key in .*OPENAI_API_KEY, or the `base_url` of a server",
    ):
        open_model("openai/gpt-4o", ModelOptions())


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http://", "http://[", ""])
def test_a_base_url_must_be_one(url: str) -> None:
    with pytest.raises(ModelSpecError, match=r"^base_url: expected a URL"):
        open_model("openai/gpt-4o", ModelOptions(base_url=url))


@pytest.mark.parametrize("spec", ["gpt-4o", "gpt/4o", "openai/", "openai", "", "/x"])
def test_a_spec_without_a_known_provider_names_those_that_are(spec: str) -> None:
    with pytest.raises(ModelSpecError, match=r"^model: expected PROVIDER/NAME .*openai, .*replay, builtin"):
        open_model(spec, ModelOptions())


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("gpt-4o", "openai/gpt-4o"),
        ("gpt4o", "openai/gpt-4o"),
        ("gpt-99", "openai/gpt-99"),
        ("lexical", "builtin/lexical"),
        ("acme/x-7b", "openai/acme/x-7b or hf/acme/x-7b"),
        ("opnai/x", "openai/x"),
        ("weights", "hf/weights"),
        ("kept.jsonl", "replay/kept.jsonl"),
    ],
)
def test_a_model_named_without_its_provider_is_suggested_with_one(
    spec: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("weights").mkdir()
    Path("kept.jsonl").touch()
    with pytest.raises(ModelSpecError) as error:
        open_model(spec, ModelOptions())
    assert str(error.value).endswith(f"{spec!r}; did you mean {hint}?")


def test_many_requests_at_once_each_get_their_own_reply() -> None:
    texts = [f"number {number}" for number in range(30)]
    with ChatServer(lambda body: body["messages"][0]["content"]) as server:
        found = ask_many(opened(server), [request(i, (Message("user", text),)) for i, text in enumerate(texts)])
    assert [one.text for one in found if isinstance(one, Completion)] == texts


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("ALL_PROXY", "socks5://user:pass-word@127.0.0.1:1", "ALL_PROXY: .*SOCKS proxy, which needs the package socksio"),
        ("https_proxy", "foo://user:pass-word@127.0.0.1:1", "https_proxy: expected the URL of an HTTP or SOCKS proxy"),
        ("SSL_CERT_FILE", "/missing", "SSL_CERT_FILE: expected certificates, got /missing: No such file"),
    ],
)  # fmt: skip
def test_a_client_that_cannot_be_opened_is_refused_at_once(
    variable: str, value: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ModelSpecError, match=wanted) as refused:
        open_model("openai/x", ModelOptions(base_url="https://example.invalid/v1"))
    assert "pass-word" not in str(refused.value)
    # a server on this machine is reached without either
    open_model("openai/x", ModelOptions(base_url="http://127.0.0.1:9/v1"))
