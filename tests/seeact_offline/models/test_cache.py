"""Replies that were paid for are kept, each the moment it arrives."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.models import ModelOptions, Price, open_model
from seeact_offline.models.cache import CachedModel, request_key
from seeact_offline.records import (
    PNG,
    CallError,
    Completion,
    ImageFormat,
    InputError,
    Message,
    Operation,
    Request,
    Step,
    Usage,
)
from tests.chat_server import Answer, ChatServer, script

STEP = Step("task", "step", "Buy tea", (), "shop", "Shopping", "<html/>", Operation("CLICK"), (), None)
IDENTITY = {"model": "openai/m"}


class EchoModel:
    """Repeats the last message, a moment later."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = False

    async def complete(self, request: Request) -> Completion:
        self.asked += 1
        await asyncio.sleep(0.01)
        text = request.messages[-1].text
        if text == "fail":
            raise CallError("timeout", "too late")
        return Completion(text, Usage(1, 10, 2, 0, 0.25))

    async def aclose(self) -> None:
        self.closed = True


@dataclass(frozen=True)
class KeyOnly:
    key: str

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        raise AssertionError("a saved reply needs no picture")


def asking(text: str) -> Request:
    return Request((Message("user", text),), STEP.key, 0, 1)


def use(path: Path, body: Callable[[CachedModel], Awaitable[object]], model: EchoModel | None = None) -> CachedModel:
    """Runs `body` with a cache on `path`, closed at the end."""

    async def run() -> CachedModel:
        cached = CachedModel(model or EchoModel(), path, IDENTITY)
        try:
            await body(cached)
        finally:
            await cached.aclose()
        return cached

    return asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "cache.sqlite"


def test_a_saved_reply_is_given_back_with_its_usage(path: Path) -> None:
    async def body(cached: CachedModel) -> None:
        assert await cached.complete(asking("Ä \ud83d")) == Completion("Ä \ud83d", Usage(1, 10, 2, 0, 0.25))

    first, second = use(path, body), use(path, body)
    assert (first.calls, first.hits) == (1, 0)
    assert (second.calls, second.hits) == (0, 1)


def test_a_reply_is_saved_before_the_run_ends(path: Path) -> None:
    async def body(cached: CachedModel) -> None:
        await cached.complete(asking("paid"))
        other = CachedModel(EchoModel(), path, IDENTITY)
        await other.complete(asking("paid"))
        assert (other.calls, other.hits) == (0, 1)
        await other.aclose()

    use(path, body)


def test_equal_requests_in_flight_share_one_call(path: Path) -> None:
    model = EchoModel()

    async def body(cached: CachedModel) -> None:
        replies = await asyncio.gather(*(cached.complete(asking("same")) for _ in range(5)))
        assert [reply.text for reply in replies] == ["same"] * 5

    cached = use(path, body, model)
    assert (model.asked, cached.calls, cached.hits) == (1, 1, 4)


def test_a_caller_that_gives_up_does_not_fail_the_others(path: Path) -> None:
    async def body(cached: CachedModel) -> None:
        first = asyncio.create_task(cached.complete(asking("same")))
        second = asyncio.create_task(cached.complete(asking("same")))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).text == "same"

    use(path, body)


def test_failures_are_not_saved(path: Path) -> None:
    model = EchoModel()

    async def body(cached: CachedModel) -> None:
        for _ in range(2):
            with pytest.raises(CallError, match="timeout"):
                await cached.complete(asking("fail"))

    use(path, body, model)
    assert model.asked == 2


def test_closing_gives_up_calls_in_flight_and_closes_the_model(path: Path) -> None:
    model = EchoModel()

    async def body(cached: CachedModel) -> None:
        waiting = asyncio.create_task(cached.complete(asking("late")))
        await asyncio.sleep(0)
        await cached.aclose()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    use(path, body, model)
    assert model.closed


def changed(**changes: Any) -> str:
    message = Message("user", "text", KeyOnly("p"))
    return request_key(IDENTITY, Request((replace(message, **changes),), STEP.key, 0, 1))


def test_the_key_covers_role_text_and_picture() -> None:
    keys = {
        changed(),
        changed(role="system"),
        changed(text="other"),
        changed(picture=KeyOnly("q")),
        changed(picture=None),
    }
    assert len(keys) == 5


@pytest.mark.parametrize("change", [{"group": 4}, {"turn": 2}, {"key": replace(STEP, action_uid="other").key}])
def test_equal_messages_in_two_places_are_two_calls(change: dict) -> None:
    request = asking("text")
    assert request_key(IDENTITY, request) != request_key(IDENTITY, replace(request, **change))


def test_what_was_offered_is_no_part_of_the_key() -> None:
    request = asking("text")
    assert request_key(IDENTITY, request) == request_key(IDENTITY, replace(request, offered=("x",)))


@pytest.mark.parametrize(
    "change",
    [
        *({"max_tokens": 5}, {"temperature": 1.0}, {"temperature": None}, {"seed": 9}, {"price": Price(1, 1)}),
        *({"image_detail": "low"}, {"image_format": PNG}, {"image_format": ImageFormat("jpeg", 94)}),
    ],
)
def test_another_way_of_asking_is_another_reply_but_another_price_is_not(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    async def run(options: ModelOptions) -> None:
        model = open_model("openai/m", options)
        await model.complete(asking("text"))
        await model.aclose()

    with ChatServer(script("Hi.")) as server:
        options = ModelOptions(base_url=server.base_url, cache=tmp_path / "cache.sqlite")
        asyncio.run(run(options))
        asyncio.run(run(replace(options, **change)))
    assert len(server.requests) == (1 if "price" in change else 2)


def test_a_run_killed_between_two_turns_pays_for_the_first_once(tmp_path: Path) -> None:
    async def run(options: ModelOptions) -> str:
        model = open_model("openai/m", options)
        try:
            first = await model.complete(asking("turn 1"))
            return (await model.complete(asking(f"turn 2 after {first.text}"))).text
        finally:
            await model.aclose()

    with ChatServer(script("one", Answer("down", status=500), "two")) as server:
        options = ModelOptions(base_url=server.base_url, cache=tmp_path / "cache.sqlite", max_retries=0)
        with pytest.raises(CallError, match="server_error"):
            asyncio.run(run(options))
        assert asyncio.run(run(options)) == "two"
    texts = [body["messages"][0]["content"] for body in server.requests]
    assert texts == ["turn 1", "turn 2 after one", "turn 2 after one"]


def test_models_that_cost_nothing_are_not_cached(tmp_path: Path) -> None:
    open_model("builtin/lexical", ModelOptions(cache=tmp_path / "cache.sqlite"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"no database " * 500)
    with pytest.raises(InputError, match=r"^cache: expected .*, got .*cache\.sqlite: file is not a database"):
        CachedModel(EchoModel(), path, IDENTITY)


def test_a_saved_reply_that_cannot_be_read_is_an_error_that_names_the_file(path: Path) -> None:
    async def fill(cached: CachedModel) -> None:
        await cached.complete(asking("text"))

    use(path, fill)
    db = sqlite3.connect(path)
    db.execute("UPDATE completions SET completion = '{}'")
    db.commit()
    db.close()

    async def body(cached: CachedModel) -> None:
        with pytest.raises(InputError, match=r"^cache: expected .*, got .*cache\.sqlite: "):
            await cached.complete(asking("text"))

    use(path, body)


async def _fill(cached: CachedModel) -> None:
    for number in range(40):
        await cached.complete(asking(f"{number} " * 30))


def test_a_damaged_reply_is_refused_once_and_then_asked_for_again(path: Path) -> None:
    use(path, _fill)
    db = sqlite3.connect(path)
    db.execute("UPDATE completions SET completion = replace(completion, '7 7', '8 7')")
    db.commit()
    db.close()

    async def read(cached: CachedModel) -> None:
        assert (await cached.complete(asking("7 " * 30))).text == "7 " * 30

    with pytest.raises(InputError, match="the same command asks for it again"):
        use(path, read)
    assert use(path, read).calls == 1
