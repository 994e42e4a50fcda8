"""Asking in batches: files of requests, files of replies, in the form that OpenAI's batches and `vllm run-batch` share.

A model that is never called answers from the store of paid replies, as live runs do, and notes the requests that have
no reply there. Requests are written and replies read as the live provider does it, so a reply from a file equals one
from a call.

OpenAI's files and batches endpoints carry such files out within a day. Any call may be cut off after the server has
done what it says. So each file has a name of its own on the server, and before one is sent or begun again the server is
asked what it has: nothing is uploaded twice, and no batch is begun (and paid) twice.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from seeact_offline.files.redaction import redact
from seeact_offline.files.whole import whole
from seeact_offline.models import PROVIDERS, failures, find_model
from seeact_offline.models.address import find_key, find_server
from seeact_offline.models.apis import find_fault
from seeact_offline.models.budget import priced
from seeact_offline.models.client import WAITING
from seeact_offline.models.failures import Failure
from seeact_offline.models.http_client import MAX_REPLY_BYTES, ReplyTooLarge, library, open_client, pieces
from seeact_offline.models.parameters import DETAIL, SYSTEM
from seeact_offline.models.provider import ModelOptions, version_of
from seeact_offline.models.reply_cache import CachedReply, ReplyCache, ReplyStore
from seeact_offline.models.retrying import Breaker, Limiter, Retrier
from seeact_offline.records import CallError, Completion, Model, ModelSpecError, ModelStopped, Request, StepKey

if TYPE_CHECKING:
    from seeact_offline.models.openai import OpenAIModel

_NOT_CARRIED_OUT = ("batch_expired", "batch_cancelled")
"""Codes of requests that were never begun."""


class BatchCodec:
    """Writes requests and reads replies as the live provider does, and sends nothing."""

    def __init__(self, spec: Any, options: ModelOptions, refused: Sequence[str] = ()) -> None:
        """`refused`: `self.refused` of an earlier wave. Raises ModelSpecError for a model that takes no batches."""
        self._source, self._options, self.by_place = find_model(spec), options, options.asks_each
        if not self._source.provider.takes_batches:
            able = [
                f"{name}/{rest}"
                for name, provider in PROVIDERS.items()
                if provider.takes_batches
                for rest in provider.usage
            ]
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
        """Names of the parameters and ways to ask that the server does not take: they are left out from the next wave
        on."""
        return self._model.parameters.form.gone

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that are left out, as the live model names them."""
        return self._model.dropped

    async def line(self, key: str, request: Request) -> bytes:
        """The request as a line of a batch, its pictures as data URLs. Raises the RowError of a picture that cannot be
        encoded."""
        model, pictures = self._model, [message.picture for message in request.messages if message.picture is not None]
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
        """The kept reply. Raises CallError, WAITING for a reply that is still to come; InputError when the file
        breaks."""
        kept, key = self._replies.look(request), self._replies.key(request)
        if kept is not None:
            return kept
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
    code, sentence = (fault.get("code"), fault.get("message")) if isinstance(fault, dict) else (None, None)
    named, is_begun = failures.of_body({"error": fault}, {}), code not in _NOT_CARRIED_OUT
    if named is not None and named.name != "api_error" and is_begun:
        return Result(row["custom_id"], named)
    detail = failures.scrubbed(str(sentence or fault or "neither a response nor an error"))
    return Result(row["custom_id"], Failure("api_error" if is_begun else str(code), detail))


# --- submitting ---

POLL_S = 30.0
"""Seconds between two looks at a batch, or at a file that Azure still reads."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled", "canceled"})
SLOWEST = 100_000
"""Bytes a second: a file that goes or comes more slowly, beyond the seconds that any call has, has timed out."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EndedBatch:
    """A batch that has ended, as the server sees it."""

    status: str
    """One of ENDED."""
    files: Mapping[str, str]
    """Its `output` and `errors`, where there are any -> the file's id."""
    why: str
    """The server's words on a batch that failed as a whole; empty for any other."""


class BatchApi:
    """The batches of one server. Belongs to the running loop; close it there. Methods raise ModelStopped where they get
    no answer."""

    def __init__(self, options: ModelOptions, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Raises ModelSpecError for an unusable base URL."""
        self._server, self._timeout_s, self._sleep = find_server(options.base_url), options.timeout_s, sleep
        retries = options.max_wait_s, options.max_retries
        self._calls = Retrier(Limiter(1), Breaker(self._server.address), *retries, sleep)
        self._client = open_client(self._server, find_key(self._server), options.timeout_s)
        # not parsed by the SDK: nothing of an answer is sure to be as documented
        self._files: Any = self._client.files.with_raw_response
        self._batches: Any = self._client.batches.with_raw_response

    async def aclose(self) -> None:
        """Closes its connections."""
        await self._client.close()

    async def upload(self, path: Path, name: str, perhaps_there: bool) -> str:
        """The id of a file of requests, sent under a name that no other has. `perhaps_there`: an earlier call may have
        sent it."""

        async def send() -> Mapping[str, Any]:
            with path.open("rb") as file:
                parts = (name, file, "application/jsonl")
                return await self._object(self._files.create(file=parts, purpose="batch"), path.stat().st_size)

        return await self._made(self._files, {"filename": name}, perhaps_there, send)

    async def begin(self, file_id: str, url: str, perhaps_there: bool) -> str:
        """The id of the batch of a file. `perhaps_there`: an earlier call may have begun it."""
        if self._server.is_azure:
            # Azure finds the API in the file's lines, and takes neither another endpoint than this nor a file that it still reads
            url = "/chat/completions"
            file = await self._polled(self._files, file_id, lambda status: status not in ("pending", "running"))
            if str(file.get("status")).lower() == "error":
                why = failures.scrubbed(str(file.get("status_details") or file))
                raise ModelStopped("model", f"a file that {self._server.address} can read", why)

        async def begin() -> Mapping[str, Any]:
            wanted = {"input_file_id": file_id, "endpoint": url, "completion_window": "24h"}
            return await self._object(self._batches.create(**wanted))

        return await self._made(self._batches, {"input_file_id": file_id}, perhaps_there, begin)

    async def wait(self, batch_id: str) -> EndedBatch:
        """The batch, once it has ended."""
        batch = await self._polled(self._batches, batch_id, ENDED.__contains__)
        ids = {"output": _id(batch, "output_file_id"), "errors": _id(batch, "error_file_id")}
        errors = batch["errors"].get("data") if isinstance(batch.get("errors"), dict) else None
        why = failures.scrubbed("; ".join(str(error.get("message")) for error in _objects(errors)[:3]))
        return EndedBatch(batch["status"].lower(), {kind: file_id for kind, file_id in ids.items() if file_id}, why)

    async def download(self, file_id: str, path: Path, most: int) -> None:
        """Writes the file's content, whole or not at all. Raises ModelStopped for more than `most` bytes too."""

        async def fetch() -> None:
            latest = asyncio.get_running_loop().time() + self._timeout_s
            answer = self._client.files.with_streaming_response.content(file_id)
            async with asyncio.timeout_at(latest) as deadline, answer as response:
                with whole(path) as draft, draft.open("wb") as file:
                    async for lines in _redacted(pieces(response.http_response, most)):
                        deadline.reschedule(latest + response.http_response.num_bytes_downloaded / SLOWEST)
                        if file.tell() == 0 and lines.strip() and not lines.lstrip().startswith(b"{"):
                            raise self._nonsense("no file of a batch", lines)
                        file.write(lines)

        await self._retried(fetch)

    # --- attempts ---

    async def _retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        from openai import APIStatusError, OpenAIError

        async def named() -> T | Failure:
            try:
                return await attempt()
            except CallError as error:
                return Failure(error.name, error.detail, usage=error.usage)
            except APIStatusError as error:
                return failures.of_status(error.status_code, error.response.headers, error.response.content)
            except (OpenAIError, TimeoutError, ReplyTooLarge) as error:
                return failures.of_exception(error)
            except library().HTTPError as error:
                # in the middle of a file: the SDK has not wrapped it, and its cause has a name that is nobody's
                error.__cause__ = None
                return failures.of_exception(error)

        try:
            return await self._calls.call(secrets.token_hex(8), 0, named)
        except CallError as error:
            raise ModelStopped("model", f"an answer from {self._server.address}", str(error)) from None

    async def _made(
        self, kind: Any, marks: Mapping[str, str], is_search: bool, make: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> str:
        """The id of the server's entry of this kind with these fields. From the second attempt on, or if `is_search`,
        it may be there."""

        async def attempt() -> str:
            nonlocal is_search
            after: str | None = "" if is_search else None
            is_search = True
            while after is not None:
                page = await self._object(kind.list(limit=100, **({"after": after} if after else {})))
                entries = _objects(page.get("data"))
                for entry in entries:
                    if marks.items() <= entry.items():
                        return _needed_id(entry)
                last = _needed_id(entries[-1]) if entries and page.get("has_more") else None
                # a server that does not know pages gives the same one again
                after = None if last == after else last
            return _needed_id(await make())

        return await self._retried(attempt)

    async def _polled(self, kind: Any, entry_id: str, is_over: Callable[[str], bool]) -> Mapping[str, Any]:
        """The entry, once its status is such."""
        while True:
            entry = await self._retried(lambda: self._object(kind.retrieve(entry_id)))
            if is_over(str(entry.get("status")).lower()):
                return entry
            await self._sleep(POLL_S)

    async def _object(self, call: Awaitable[Any], size: int = 0) -> Mapping[str, Any]:
        """The object that a call gives which sends a file of `size` bytes. Raises CallError, and what the SDK
        raises."""
        async with asyncio.timeout(self._timeout_s + size / SLOWEST):
            content = (await call).content
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self._nonsense("something that is no object", content)
        if failure := failures.of_body(answer, {}):
            raise failure.error
        return answer

    def _nonsense(self, what: str, content: bytes) -> CallError:
        begun = content[:200].decode("utf-8", "replace")
        return failures.malformed(f"{self._server.address} answered with {what}: {begun}").error


async def _redacted(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines that each chunk ends, without secrets: a server may quote the key. A line longer than any reply comes
    in pieces."""

    def without_secrets(lines: bytearray) -> bytes:
        return redact(lines.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    held = bytearray()
    async for chunk in chunks:
        held += chunk
        is_due = b"\n" in chunk or len(held) > MAX_REPLY_BYTES
        end = (held.rfind(b"\n") + 1 or len(held)) if is_due else 0
        yield without_secrets(held[:end])
        del held[:end]
    yield without_secrets(held)


def _id(answer: Mapping[str, Any], name: str = "id") -> str | None:
    """A name that can stand in a path; None where there is none."""
    value = answer.get(name)
    return value if isinstance(value, str) and value.isprintable() and value.strip(".") else None


def _needed_id(answer: Mapping[str, Any]) -> str:
    if (value := _id(answer)) is None:
        raise failures.malformed(f"an answer without id: {json.dumps(answer)[:200]}").error
    return value


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
