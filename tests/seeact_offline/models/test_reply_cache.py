"""Replies that were paid for are kept, each the moment it arrives, and none is paid for twice."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.models import ModelOptions, Price, open_model
from seeact_offline.models.client import ModelClient
from seeact_offline.models.reply_cache import replies_paid_by, request_key
from seeact_offline.records import PNG, CallError, Completion, ImageFormat, Message, Request, StepKey, Usage
from tests.chat_server import Answer, ChatServer, script

STEP = StepKey("task", "step")
IDENTITY = {"model": "openai/m"}
COST = Usage(1, 10, 2, 0, 0.25)


class Echo:
    """Repeats the last message a moment later; some messages it declines, some are lost."""

    identity = IDENTITY

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, request: Request) -> Completion:
        self.asked += 1
        await asyncio.sleep(0.005)
        text = request.messages[-1].text
        if text in {"refused", "timeout"}:
            raise CallError(text, "said so", COST)
        return Completion(text, COST)

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class KeyOnly:
    key: str

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        raise AssertionError("a saved reply needs no picture")


def asking(text: str, group: int = 0, step: StepKey = STEP) -> Request:
    return Request((Message("user", text),), step, group, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "replies.sqlite"


def use(path: Path, body: Callable[[ModelClient], Awaitable[object]], **options: Any) -> int:
    """Runs `body` with replies kept in `path`, closed at the end; how often the model was asked."""
    echo = Echo()

    async def run() -> None:
        model = open_model(echo, ModelOptions(cache=path, **{"run": "one", **options}))
        assert isinstance(model, ModelClient)
        try:
            await body(model)
        finally:
            await model.aclose()

    asyncio.run(run())
    return echo.asked


async def usage_of(model: ModelClient, request: Request) -> Usage:
    """Also of an answer that is no text."""
    try:
        return (await model.complete(request)).usage
    except CallError as error:
        return error.usage


@pytest.mark.parametrize("run", ["one", "another"])
@pytest.mark.parametrize("text", ["Ä \ud83d", "refused"])
def test_a_kept_reply_is_given_back_with_its_usage(path: Path, text: str, run: str) -> None:
    async def body(model: ModelClient) -> None:
        assert await usage_of(model, asking(text)) == COST

    assert (use(path, body), use(path, body, run=run)) == (1, 0)


@pytest.mark.parametrize(("run", "n_paid"), [("one", 2), ("another", 1), ("", 0), ("nobody", 0)])
def test_a_store_says_what_a_run_has_paid(path: Path, run: str, n_paid: int) -> None:
    """Also for answers that are no text; not for what another run has paid for, quotes its id, or is damaged."""

    def asking_for(*texts: str) -> Callable[[ModelClient], Awaitable[object]]:
        return lambda model: asyncio.gather(*(usage_of(model, asking(text)) for text in texts))

    assert replies_paid_by(path, run) == {}
    assert not path.exists()
    use(path, asking_for("a", "refused", "broken"))
    use(path, asking_for("a", '"run": "one"'), run="another")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE completions SET checksum = 'x' WHERE instr(completion, 'broken')")
    assert [*replies_paid_by(path, run).values()] == [COST] * n_paid
    path.write_bytes(b"no database")
    assert replies_paid_by(path, run) == {}


def test_how_the_model_declined_is_given_back(path: Path) -> None:
    async def body(model: ModelClient) -> None:
        with pytest.raises(CallError, match=r"^refused: said so$"):
            await model.complete(asking("refused"))

    assert (use(path, body), use(path, body)) == (1, 0)


def test_a_call_without_answer_is_made_again(path: Path) -> None:
    async def body(model: ModelClient) -> None:
        for _ in range(2):
            with pytest.raises(CallError, match="timeout"):
                await model.complete(asking("timeout"))

    assert use(path, body) == 2


def test_a_reply_is_kept_before_the_run_ends(path: Path) -> None:
    async def again(model: ModelClient) -> None:
        await model.complete(asking("paid"))

    async def body(model: ModelClient) -> None:
        await again(model)
        assert await asyncio.to_thread(use, path, again) == 0

    use(path, body)


def test_equal_requests_in_flight_share_one_call(path: Path) -> None:
    async def body(model: ModelClient) -> None:
        replies = await asyncio.gather(*(model.complete(asking("same")) for _ in range(3)))
        assert [(one.text, one.usage) for one in replies] == [("same", COST), ("same", Usage()), ("same", Usage())]

    assert use(path, body) == 1


def test_a_caller_that_gives_up_does_not_fail_the_others(path: Path) -> None:
    async def body(model: ModelClient) -> None:
        first = asyncio.create_task(model.complete(asking("same")))
        second = asyncio.create_task(model.complete(asking("same")))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).text == "same"

    assert use(path, body) == 1


def test_closing_gives_up_calls_in_flight(path: Path) -> None:
    async def body(model: ModelClient) -> None:
        waiting = asyncio.create_task(model.complete(asking("late")))
        await asyncio.sleep(0)
        await model.aclose()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    use(path, body)


def test_two_programs_do_not_pay_for_one_request(path: Path) -> None:
    async def body(model: ModelClient) -> None:
        await asyncio.gather(*(model.complete(asking(f"{number}")) for number in range(20)))

    async def both() -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(use, path, body, run=run) for run in ("one", "two")))

    assert sum(asyncio.run(both())) == 20


# --- equal requests ---


REUSES: dict[str, tuple[dict[str, Any], Request, bool]] = {
    "another group": ({}, asking("hi", group=1), True),
    "another turn": ({}, replace(asking("hi"), turn=2), True),
    "other candidates behind the same words": ({}, replace(asking("hi"), offered=("x",)), True),
    "other words": ({}, asking("ho"), False),
    "another step": ({}, asking("hi", step=StepKey("task", "next")), False),
    "another group, each to be asked": ({"ask_equal": True}, asking("hi", group=1), False),
    "another group of a model that answers by chance": ({"temperature": 1.0}, asking("hi", group=1), False),
    "the same place of a model that answers by chance": ({"temperature": 1.0}, asking("hi"), True),
}


@pytest.mark.parametrize(("options", "second", "reused"), REUSES.values(), ids=REUSES.keys())
def test_equal_requests_of_a_step_are_asked_and_counted_once(
    path: Path, options: dict[str, Any], second: Request, reused: bool
) -> None:
    async def body(model: ModelClient) -> None:
        await model.complete(asking("hi"))
        found = await model.complete(second)
        assert found.call is not None
        assert (found.call.reused, found.usage, found.call.usage) == (reused, Usage() if reused else COST, COST)

    assert use(path, body, **options) == (1 if reused else 2)


def test_the_place_that_paid_is_noted(path: Path) -> None:
    async def body(model: ModelClient) -> None:
        await model.complete(asking("hi", group=2))

    use(path, body)
    with closing(sqlite3.connect(path)) as db:
        (kept,) = db.execute("SELECT completion FROM completions").fetchone()
    assert '"run": "one", "place": ["task", "step", 2, 1]' in kept


@pytest.mark.parametrize(("run", "day"), [("one", None), ("another", "2001-01-01")])
def test_a_reply_that_another_run_paid_for_says_on_which_day(path: Path, run: str, day: str | None) -> None:
    async def body(model: ModelClient) -> None:
        await model.complete(asking("hi"))

    async def again(model: ModelClient) -> None:
        found = (await model.complete(asking("hi"))).call
        assert found is not None
        assert (found.attempts, found.from_store) == (0, day)

    use(path, body)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE completions SET made = '2001-01-01'")
    use(path, again, run=run)


# --- what a reply is known by ---


def changed(**changes: Any) -> str:
    message = Message("user", "text", KeyOnly("p"))
    return request_key(IDENTITY, Request((replace(message, **changes),), STEP, 0, 1), False)


def test_the_key_covers_role_text_and_picture() -> None:
    keys = {
        changed(),
        changed(role="system"),
        changed(text="other"),
        changed(picture=KeyOnly("q")),
        changed(picture=None),
    }
    assert len(keys) == 5


@pytest.mark.parametrize(
    "change",
    [
        *({"max_tokens": 5}, {"temperature": 1.0}, {"temperature": None}, {"seed": 9}, {"price": Price(1, 1)}),
        *({"image_detail": "low"}, {"image_format": PNG}, {"image_format": ImageFormat("jpeg", 94)}),
        {"model_version": "june"},
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


def test_replies_of_models_that_cost_nothing_are_not_kept(tmp_path: Path) -> None:
    open_model("builtin/lexical", ModelOptions(cache=tmp_path / "cache.sqlite"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["'{}'", "replace(completion, 'text', 'next')"])
def test_a_damaged_reply_is_asked_for_again_with_a_remark(path: Path, damage: str) -> None:
    async def body(model: ModelClient) -> None:
        assert (await model.complete(asking("text"))).text == "text"

    async def again(model: ModelClient) -> None:
        await body(model)
        assert model.remarks == ("kept replies that were damaged and are asked for again: 1",)

    use(path, body)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE completions SET completion = {damage}")
    assert (use(path, again), use(path, body)) == (1, 0)
