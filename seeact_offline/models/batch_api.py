"""OpenAI's files and batches endpoints, for files of requests that are carried out within a day.

Any call may be cut off after the server has done what it says. So each file has a name of its own on the server, and before
one is sent or begun again the server is asked what it has: nothing is uploaded twice, and no batch is begun (and paid) twice.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from seeact_offline.files.redaction import redact
from seeact_offline.files.whole import whole
from seeact_offline.models import failures
from seeact_offline.models.address import find_key, find_server
from seeact_offline.models.failures import Failure
from seeact_offline.models.http_client import MAX_REPLY_BYTES, ReplyTooLarge, library, open_client, pieces
from seeact_offline.models.limiter import Limiter
from seeact_offline.models.provider import ModelOptions
from seeact_offline.models.retrying import Breaker, Retrier
from seeact_offline.records import CallError, ModelStopped

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
    """The batches of one server. Belongs to the running loop; close it there. Methods raise ModelStopped where they get no answer."""

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
        """The id of a file of requests, sent under a name that no other has. `perhaps_there`: an earlier call may have sent it."""

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
        return EndedBatch(batch["status"].lower(), {kind: found for kind, found in ids.items() if found}, why)

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
        """The id of the server's entry of this kind with these fields. From the second attempt on, or if `is_search`, it may be there."""

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
        """The object that a call gives which sends a file of `size` bytes. Raises CallError, and what the SDK raises."""
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
    """The lines that each chunk ends, without secrets: a server may quote the key. A line longer than any reply comes in pieces."""

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
