"""Wraps any model in kept replies, budget and retries, in this order. A provider brings only the call."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

from seeact_offline.models.breaker import Breaker
from seeact_offline.models.budget import Budget
from seeact_offline.models.failures import Failure
from seeact_offline.models.limiter import Limiter
from seeact_offline.models.model_call import call_model
from seeact_offline.models.provider import ModelOptions
from seeact_offline.models.reply_cache import ReplyCache, ReplyStore
from seeact_offline.models.retrying import Retrier
from seeact_offline.records import CallRecord, Completion, Request

_CHARS_PER_TOKEN = 4
_PICTURE_TOKENS = 1000
"""Rough, for the limit of tokens a minute, and corrected by what the server then says."""


class ServerModel(Protocol):
    """A model on a server whose attempts can fail for other reasons than the request, and are then made again.

    One that may send another limit of new tokens than that of its options says so by `reply_limit`, infinite for none.
    """

    server: str
    """Its name in errors."""

    async def prepare(self, request: Request) -> Callable[[], Awaitable[Completion | Failure]]:
        """Encodes the request; the result makes one attempt. Raises RowError for a picture that cannot be encoded."""


class ModelClient:
    """A model in its budget, with its replies kept. Belongs to the event loop that first asks it; close it in the same loop."""

    def __init__(self, model: Any, identity: Callable[[], Mapping[str, object]], options: ModelOptions) -> None:
        """`model`: a `Model`, or `ServerModel`. `identity`: everything that replies depend on except the messages. Raises InputError for a
        file of kept replies that cannot be used."""
        self._model, self._identity = model, identity
        self._budget = options.budget or Budget(None, options.price, options.max_tokens)
        self._calls = Retrier(
            Limiter(options.concurrency, options.rpm, options.tpm),
            Breaker(getattr(model, "server", "the model"), options.fail_on_error),
            options.max_wait_s,
            options.max_retries,
        )
        self._store = self._kept = None
        if options.cache is not None:
            self._store = ReplyStore(options.cache, str(self.identity.get("model", "")), options.run)
            with_ideal = hasattr(model, "complete_with_ideal")
            self._kept = ReplyCache(self._store, self.identity, options.asks_each, with_ideal)

    @cached_property
    def identity(self) -> Mapping[str, object]:
        return self._identity()

    async def complete(self, request: Request) -> Completion:
        """Raises CallError, OutOfBudget before a call that could cost too much, and ModelStopped where nothing gets through."""
        return await self.complete_with_ideal(request, "")

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        """Completes as `complete` does; `ideal` reaches a model that asks for it alone."""
        if self._kept is None:
            return await self._ask(request, ideal)
        return await self._kept.complete(request, ideal, self._ask)

    @property
    def counted(self) -> set[str]:
        """Returns `ReplyCache.counted`; empty where replies are not kept."""
        return set() if self._kept is None else self._kept.counted

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that the server would not take."""
        return tuple(getattr(self._model, "dropped", ()))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on how the model is asked, and on its kept replies."""
        return (*getattr(self._model, "remarks", ()), *(() if self._store is None else self._store.remarks))

    async def aclose(self) -> None:
        """Gives up calls in flight, closes the model and the file of its replies. Safe to call twice."""
        if self._kept is not None:
            await self._kept.aclose()
        await self._model.aclose()

    async def _ask(self, request: Request, ideal: str) -> Completion:
        messages = request.messages

        async def timed() -> Completion:
            began = time.monotonic()
            completion = await call_model(self._model, request, ideal)
            return replace(completion, call=completion.call or CallRecord(seconds=time.monotonic() - began))

        if not hasattr(self._model, "prepare"):
            return await self._budget.spend(messages, timed)
        attempt = await self._model.prepare(request)
        n_pictures = sum(message.picture is not None for message in messages)
        tokens = sum(len(message.text) for message in messages) // _CHARS_PER_TOKEN + _PICTURE_TOKENS * n_pictures
        seed = f"{request.key} {request.group} {request.turn}"

        def paid() -> Awaitable[Completion | Failure]:
            return self._budget.spend(messages, attempt, getattr(self._model, "reply_limit", None))

        return await self._calls.call(seed, tokens, paid)
