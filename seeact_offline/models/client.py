"""Calls a model: any model in kept replies, budget and retries, in this order. A provider brings only the call."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cached_property

from seeact_offline.models.budget import Budget
from seeact_offline.models.failures import Failure
from seeact_offline.models.provider import ModelOptions
from seeact_offline.models.reply_cache import ReplyCache, ReplyStore
from seeact_offline.models.retrying import Breaker, Limiter, Retrier
from seeact_offline.records import CallError, CallRecord, Completion, Model, Request, SeeActError

WAITING = "waiting_for_batch"
"""The failure of a call whose reply is still to come in a file of a batch."""


async def call_model(model: Model, request: Request, ideal: str) -> Completion:
    """Returns the model's reply. A model that takes it is given `ideal`, the right answer in its prompt's words.

    Raises what the model raises on purpose (SeeActError). Any other error of it becomes CallError `model_error`, and a
    return value that is no `Completion` with a text CallError `api_error`: models are other people's code.
    """
    try:
        completion: object = await model.complete_with_ideal(request, ideal)
    except SeeActError:
        raise
    # a user's model may raise anything: it is a failure of this step
    except Exception as error:
        from seeact_offline.models.failures import scrubbed

        raise CallError("model_error", scrubbed(f"{type(error).__name__}: {error}")) from error
    if not isinstance(completion, Completion):
        raise CallError("api_error", f"expected a Completion from the model, got a {type(completion).__name__}")
    if not isinstance(completion.text, str):
        raise CallError("api_error", f"expected a text from the model, got a {type(completion.text).__name__}")
    return completion


# --- two models as one ---


class PlannerAndGrounder(Model):
    """Passes each request to the model that it is for."""

    def __init__(self, planner: Model, grounder: Model) -> None:
        self._planner, self._grounder = planner, grounder
        self.takes_ideal = planner.takes_ideal or grounder.takes_ideal

    async def complete(self, request: Request) -> Completion:
        """Raises as the model does that is asked."""
        return await self.complete_with_ideal(request, "")

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        """Completes as `complete` does; `ideal` reaches a model that asks for it."""
        return await (self._grounder if request.for_second else self._planner).complete_with_ideal(request, ideal)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that a server would not take."""
        return tuple(name for model in self.parts for name in model.dropped)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on how the models are asked."""
        return tuple(dict.fromkeys(text for model in self.parts for text in model.remarks))

    async def aclose(self) -> None:
        """Closes both. Safe to call twice."""
        await asyncio.gather(*(model.aclose() for model in self.parts))

    @property
    def parts(self) -> tuple[Model, ...]:
        """The planner, then the grounder."""
        return self._planner, self._grounder


# --- a model in its budget ---

_CHARS_PER_TOKEN = 4
_PICTURE_TOKENS = 1000
"""Rough, for the limit of tokens a minute, and corrected by what the server then says."""


class ServerModel(Model):
    """A model on a server whose attempts can fail for other reasons than the request, and are then made again."""

    @property
    def reply_limit(self) -> float | None:
        """Most new tokens of a reply, where that may be another limit than that of its options; infinite for none, None
        for theirs."""
        return None

    @abstractmethod
    async def prepare(self, request: Request) -> Callable[[], Awaitable[Completion | Failure]]:
        """Encodes the request; the result makes one attempt. Raises RowError for a picture that cannot be encoded."""

    async def complete(self, request: Request) -> Completion:
        """Makes one attempt. Raises CallError where that fails: what `open_model` opens tries again."""
        outcome = await (await self.prepare(request))()
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome


class ModelClient(Model):
    """A model in its budget, with its replies kept. Belongs to the event loop that first asks it; close it in the same
    loop."""

    def __init__(self, model: Model, identity: Callable[[], Mapping[str, object]], options: ModelOptions) -> None:
        """`identity`: everything that replies depend on except the messages. Raises InputError for a
        file of kept replies that cannot be used."""
        self._model, self._identity = model, identity
        self.takes_ideal = model.takes_ideal
        self._budget = options.budget or Budget(None, options.price, options.max_tokens)
        self._calls = Retrier(
            Limiter(options.concurrency, options.rpm, options.tpm),
            Breaker(model.server, options.fail_on_error),
            options.max_wait_s,
            options.max_retries,
        )
        self._store = self._kept = None
        if options.cache is not None:
            self._store = ReplyStore(options.cache, str(self.identity.get("model", "")), options.run)
            self._kept = ReplyCache(self._store, self.identity, options.asks_each, model.takes_ideal)

    @cached_property
    def identity(self) -> Mapping[str, object]:
        return self._identity()

    async def complete(self, request: Request) -> Completion:
        """Raises CallError, OutOfBudget before a call that could cost too much, and ModelStopped where nothing gets
        through."""
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
        return self._model.dropped

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on how the model is asked, on its money, and on its kept replies."""
        kept = () if self._store is None else self._store.remarks
        return (*self._model.remarks, *self._budget.remarks, *kept)

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

        model = self._model
        if not isinstance(model, ServerModel):
            return await self._budget.spend(messages, timed)
        attempt = await model.prepare(request)
        n_pictures = sum(message.picture is not None for message in messages)
        tokens = sum(len(message.text) for message in messages) // _CHARS_PER_TOKEN + _PICTURE_TOKENS * n_pictures
        seed = f"{request.key} {request.group} {request.turn}"

        def paid() -> Awaitable[Completion | Failure]:
            return self._budget.spend(messages, attempt, model.reply_limit)

        return await self._calls.call(seed, tokens, paid)
