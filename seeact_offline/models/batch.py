"""Asking in batches: files of requests, files of replies, in the form that OpenAI's batches and `vllm run-batch` share.

A model that is never called answers from the store of paid replies, as live runs do, and notes the requests that have no reply there.
Requests are written and replies read as the live provider does it, so a reply from a file equals one from a call.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seeact_offline.models import PROVIDERS, failures, find_model
from seeact_offline.models.address import find_server
from seeact_offline.models.apis import find_fault
from seeact_offline.models.budget import priced
from seeact_offline.models.failures import Failure
from seeact_offline.models.model_call import WAITING
from seeact_offline.models.parameters import DETAIL, SYSTEM
from seeact_offline.models.provider import ModelOptions, version_of
from seeact_offline.models.reply_cache import CachedReply, ReplyCache, ReplyStore
from seeact_offline.records import CallError, Completion, Model, ModelSpecError, Request, StepKey

if TYPE_CHECKING:
    from seeact_offline.models.openai import OpenAIModel

_NOT_CARRIED_OUT = ("batch_expired", "batch_cancelled")
"""Codes of requests that were never begun."""


class BatchCodec:
    """Writes requests and reads replies as the live provider does, and sends nothing."""

    def __init__(self, spec: Any, options: ModelOptions, refused: Sequence[str] = ()) -> None:
        """`refused`: `self.refused` of an earlier wave. Raises ModelSpecError for a model that takes no batches."""
        self._source, self._options = find_model(spec), options
        if not self._source.provider.takes_batches:
            able = [f"{name}/{rest}" for name, one in PROVIDERS.items() if one.takes_batches for rest in one.usage]
            raise ModelSpecError("model", sentence=f"`batch` cannot ask {spec!r}; use {' or '.join(able)}")
        self._model: OpenAIModel = self._source.provider.open(self._source.name, options)
        first = self.parameters
        for name in refused:
            self._model.parameters.leave_out(name)
        self.ever_sent = tuple(dict.fromkeys([*first, *self.parameters]))
        """Names of parameters that some wave so far may have held."""

    @property
    def identity(self) -> Mapping[str, object]:
        """The live model's, so replies are shared."""
        return {**self._model.identity, **self._source.code, **version_of(self._options)}

    @property
    def by_place(self) -> bool:
        """Equal requests of two places are two."""
        return self._options.asks_each

    @property
    def url(self) -> str:
        """The path that every line names. Azure's chat completions have a name of their own in batches."""
        is_azures = find_server(self._options.base_url).is_azure and self._model.api.conversation == "messages"
        return self._model.api.path if is_azures else f"/v1{self._model.api.path}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of those that are sent now. No batch can be sent in pieces, so that is not among them."""
        form = self._model.parameters.form
        return (*form.sent, *(name for name in (DETAIL, SYSTEM) if name not in form.gone))

    @property
    def refused(self) -> tuple[str, ...]:
        """Names of the parameters and ways to ask that the server does not take: they are left out from the next wave on."""
        return self._model.parameters.form.gone

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that are left out, as the live model names them."""
        return self._model.dropped

    async def line(self, key: str, request: Request) -> bytes:
        """The request as a line of a batch, its pictures as data URLs. Raises the RowError of a picture that cannot be encoded."""
        model, pictures = self._model, [one.picture for one in request.messages if one.picture is not None]
        urls = [await model.pictures.get(picture) for picture in pictures]
        body = model.body(request, urls, model.parameters.form)
        head = json.dumps({"custom_id": key, "method": "POST", "url": self.url})
        return b"".join([head.removesuffix("}").encode(), b', "body": ', body, b"}\n"])

    def read(self, body: object) -> Completion | Failure:
        """Reads the body of a success."""
        outcome = self._model.read(json.dumps(body).encode(), {})
        return replace(outcome, usage=priced(outcome.usage, self._options.price))

    def give_way(self, sent: Collection[str], failure: Failure) -> bool:
        """True if it refuses one of our own parameters among those that were `sent`, which is left out from now on."""
        return self._model.parameters.give_way(sent, failure)


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request without a reply."""

    key: str
    request: Request


class BatchModel(Model):
    """A model that is never called: it answers from kept replies alone."""

    def __init__(
        self, codec: BatchCodec, replies: ReplyStore, failed: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        """`failed`: keys of requests that are not to be asked again -> the failure's name and what the server said."""
        self._replies, self._failed = ReplyCache(replies, codec.identity, codec.by_place), failed or {}
        self._missing: dict[StepKey, list[PendingRequest]] = {}

    async def complete(self, request: Request) -> Completion:
        """The kept reply. Raises CallError, WAITING for a reply that is still to come; InputError when the file breaks."""
        found, key = self._replies.look(request), self._replies.key(request)
        if found is not None:
            return found
        if key in self._failed:
            raise CallError(*self._failed[key])
        self._missing.setdefault(request.key, []).append(PendingRequest(key, request))
        raise CallError(WAITING, "its reply is still to come")

    def missing(self, step: StepKey) -> list[PendingRequest]:
        """Requests of the step without a reply since this was last called, in order of asking."""
        return self._missing.pop(step, [])

    async def aclose(self) -> None:
        """Leaves the store open: its owner closes it."""


# --- what came back ---


@dataclass(frozen=True, slots=True)
class Result:
    """One line of what came back."""

    key: str
    outcome: Completion | Failure

    @property
    def kept(self) -> CachedReply | None:
        """The model's answer, which may be that it declines; None for a call without an answer."""
        answer = self.outcome if isinstance(self.outcome, Completion) else self.outcome.error
        return CachedReply.of(answer) if isinstance(answer, Completion) or answer.answered else None


def read_result(line: bytes, codec: BatchCodec) -> Result:
    """Reads a line of an output or error file. Raises ValueError for one that is neither."""
    try:
        row = json.loads(line)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(row, dict) or not isinstance(row.get("custom_id"), str):
        raise ValueError("a line without custom_id")
    response, fault = row.get("response"), find_fault(row)
    status, body = (response.get("status_code"), response.get("body")) if isinstance(response, dict) else (None, None)
    with suppress(ValueError, RecursionError):
        # gateways write both as texts too
        status = int(status) if isinstance(status, str) else status
        body = json.loads(body) if isinstance(body, str) else body
    if status == 200 and not fault:
        return Result(row["custom_id"], codec.read(body))
    # vLLM names whatever it stumbled over in a text, under a status that says little
    if not (isinstance(fault, str) and fault) and isinstance(status, int) and not isinstance(status, bool):
        return Result(row["custom_id"], failures.of_status(status, {}, json.dumps(body or fault).encode()))
    code, said = (fault.get("code"), fault.get("message")) if isinstance(fault, dict) else (None, None)
    named, is_begun = failures.of_body({"error": fault}, {}), code not in _NOT_CARRIED_OUT
    if named is not None and named.name != "api_error" and is_begun:
        return Result(row["custom_id"], named)
    detail = failures.scrubbed(str(said or fault or "neither a response nor an error"))
    return Result(row["custom_id"], Failure("api_error" if is_begun else str(code), detail))
