"""Asks an `openai/NAME` model on a server of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from seeact_offline.models import ModelOptions, open_model, retrying
from seeact_offline.models.client import ModelClient
from seeact_offline.records import CallError, Completion, Message, Model, ModelStopped, Request, StepKey
from tests.chat_server import Answer, ChatServer, script

HELLO = (Message("system", "Be brief."), Message("user", "Hello"))
SOON = {"retry-after-ms": "1"}


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    monkeypatch.setattr(retrying, "FIRST_PAUSE_S", 0.002)
    monkeypatch.setattr(retrying, "LONGEST_PAUSE_S", 0.02)


def request(number: int = 0, messages: tuple[Message, ...] = HELLO) -> Request:
    return Request(messages, StepKey("task", f"step {number}"), 0, 1)


def opened(server: ChatServer, name: str = "m", **changes: Any) -> ModelClient:
    model = open_model(f"openai/{name}", replace(ModelOptions(base_url=server.base_url), **changes))
    assert isinstance(model, ModelClient)
    return model


def ask_one(model: Model, messages: tuple[Message, ...] = HELLO) -> Completion:
    """Once, and closes it."""

    async def run() -> Completion:
        try:
            return await model.complete(request(messages=messages))
        finally:
            await model.aclose()

    return asyncio.run(run())


def ask_many(model: Model, requests: Iterable[Request]) -> list[Completion | BaseException]:
    """All at once; what they raise stands in the place of their answers."""

    async def run() -> list[Completion | BaseException]:
        try:
            return await asyncio.gather(*map(model.complete, requests), return_exceptions=True)
        finally:
            await model.aclose()
            # safe to call twice
            await model.aclose()

    return asyncio.run(run())


def ask_in_turn(model: Model, n: int) -> list[Completion | BaseException]:
    """One call after the other; what they raise stands in the place of their answers."""

    async def run() -> list[Completion | BaseException]:
        found: list[Completion | BaseException] = []
        for number in range(n):
            found += await asyncio.gather(model.complete(request(number)), return_exceptions=True)
        await model.aclose()
        return found

    return asyncio.run(run())


def failure(answer: Answer | int, **changes: Any) -> CallError:
    """How a call fails whose server answers so after it has answered well once."""
    with ChatServer(script("Hi.", answer)) as server:
        found = ask_in_turn(opened(server, **{"max_retries": 0, **changes}), 2)[1]
    assert isinstance(found, CallError)
    return found


def stopped(answer: Answer | int, **changes: Any) -> ModelStopped:
    """How the run stops whose server answers so from the start."""
    with ChatServer(script(answer)) as server, pytest.raises(ModelStopped) as caught:
        ask_one(opened(server, **changes))
    return caught.value
