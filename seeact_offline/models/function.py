"""Models that are objects of Python: a function from messages to text, or whatever has `complete`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from seeact_offline.records import CallError, Completion, Model, ModelSpecError, Request, Usage


class FunctionModel:
    """Asks a function, which is given the request's messages and returns the reply's text, or an awaitable of it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    async def complete(self, request: Request) -> Completion:
        """Raises CallError `empty_reply` for no text. A plain function runs in a thread; what it raises fails its step."""
        if inspect.iscoroutinefunction(self._function):
            text = await self._function(request.messages)
        else:
            text = await asyncio.to_thread(self._called, request)
            if inspect.isawaitable(text):
                text = await text
        if not isinstance(text, str):
            raise CallError("api_error", f"expected a text from the model, got a {type(text).__name__}")
        if not text.strip():
            raise CallError("empty_reply", "the model gave no text", Usage(calls=1))
        return Completion(text, Usage(calls=1))

    def _called(self, request: Request) -> Any:
        try:
            return self._function(request.messages)
        except StopIteration as error:
            # a future takes none, and whoever awaits it would wait forever
            raise RuntimeError("the function raised StopIteration") from error

    async def aclose(self) -> None:
        """Nothing is held open."""


class _Kept:
    """A caller's own model: used again by the next run, so that closing it is the caller's business."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def complete(self, request: Request) -> Completion:
        return await self._model.complete(request)

    async def aclose(self) -> None:
        """Left open."""


def as_model(given: Any) -> Model:
    """Raises ModelSpecError for what is neither a model nor a function."""
    if hasattr(given, "complete"):
        return _Kept(given)
    if callable(given):
        return FunctionModel(given)
    raise ModelSpecError(
        "model",
        "PROVIDER/NAME, an object with `complete` or a function from messages to text",
        f"a {type(given).__name__}",
    )


def name_of_object(given: Any) -> str:
    """What tells it from other objects, and is the same in the next process."""
    named = given if hasattr(given, "__qualname__") else type(given)
    return f"{named.__module__}.{named.__qualname__}"
