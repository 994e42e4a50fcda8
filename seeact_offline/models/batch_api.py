"""OpenAI's files and batches endpoints, for files of requests that are carried out within a day.

Any call may be cut off after the server has done what it says. So each file has a name of its own on the server, and before
one is sent or begun again the server is asked what it has: nothing is uploaded twice, and no batch is begun (and paid) twice.
"""

from __future__ import annotations

import asyncio
import re
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

    async def aclose(self) -> None:
        """Closes its connections."""
        await self._client.close()

    async def upload(self, path: Path, name: str, perhaps_there: bool) -> str:
        """The id of a file of requests, sent under a name that no other has. `perhaps_there`: an earlier call may have sent it."""
        seconds = self._timeout_s + path.stat().st_size / SLOWEST

        async def send() -> Any:
            with path.open("rb") as file:
                parts = (name, file, "application/jsonl")
                return await self._client.files.create(file=parts, purpose="batch", timeout=seconds)

        return await self._made(self._client.files, ("filename", name), perhaps_there, send, seconds)

    async def begin(self, file_id: str, url: str, perhaps_there: bool) -> str:
        """The id of the batch of a file. `perhaps_there`: an earlier call may have begun it."""
        if self._server.is_azure:
            # Azure finds the API in the file's lines, and takes neither another endpoint than this nor a file that it still reads
            url = "/chat/completions"
            file = await self._polled(self._client.files, file_id, lambda status: status not in ("pending", "running"))
            if _status(file) == "error":
                why = failures.scrubbed(str(getattr(file, "status_details", None) or file))
                raise ModelStopped("model", f"a file that {self._server.address} can read", why)
        batches: Any = self._client.batches

        async def begin() -> Any:
            return await batches.create(input_file_id=file_id, endpoint=url, completion_window="24h")

        return await self._made(batches, ("input_file_id", file_id), perhaps_there, begin, self._timeout_s)

    async def wait(self, batch_id: str) -> EndedBatch:
        """The batch, once it has ended."""
        batch = await self._polled(self._client.batches, batch_id, ENDED.__contains__)
        files = {"output": batch.output_file_id, "errors": batch.error_file_id}
        errors = getattr(batch.errors, "data", None) or []
        why = failures.scrubbed("; ".join(str(error.message) for error in errors[:3]))
        return EndedBatch(_status(batch), {kind: file for kind, file in files.items() if file}, why)

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
                            raise ValueError(f"no file of a batch: {lines[:200].decode('utf-8', 'replace')}")
                        file.write(lines)

        await self._retried(fetch)

    # --- attempts ---

    async def _retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        from openai import APIStatusError, OpenAIError

        async def named() -> T | Failure:
            try:
                return await attempt()
            except APIStatusError as error:
                return failures.of_status(error.status_code, error.response.headers, error.response.content)
            except (OpenAIError, TimeoutError, ReplyTooLarge) as error:
                return failures.of_exception(error)
            except library().HTTPError as error:
                # in the middle of a file: the SDK has not wrapped it, and its cause has a name that is nobody's
                error.__cause__ = None
                return failures.of_exception(error)
            # the SDK checks nothing of what it reads: a body may lack any field, or be no object at all
            except (ValueError, AttributeError, TypeError) as error:
                return failures.malformed(f"{self._server.address} answered with {error}")

        try:
            return await self._calls.call(secrets.token_hex(8), 0, named)
        except CallError as error:
            raise ModelStopped("model", f"an answer from {self._server.address}", str(error)) from None

    async def _made(
        self, kind: Any, mark: tuple[str, str], is_search: bool, make: Callable[[], Awaitable[Any]], seconds: float
    ) -> str:
        """The id of the server's entry of this kind with this field. From the second attempt on, or if `is_search`, it may be there."""

        async def attempt() -> str:
            nonlocal is_search
            is_first, is_search = not is_search, True
            async with asyncio.timeout(seconds):
                if not is_first:
                    async for entry in kind.list(limit=100):
                        if getattr(entry, mark[0], None) == mark[1]:
                            return _id(entry)
                return _id(await make())

        return await self._retried(attempt)

    async def _polled(self, kind: Any, entry_id: str, is_over: Callable[[str], bool]) -> Any:
        """The entry, once its status is such."""

        async def look() -> Any:
            async with asyncio.timeout(self._timeout_s):
                entry = await kind.retrieve(entry_id)
            _id(entry)
            return entry

        while not is_over(_status(entry := await self._retried(look))):
            await self._sleep(POLL_S)
        return entry


def _status(entry: Any) -> str:
    return str(getattr(entry, "status", "")).lower()


def _id(entry: Any) -> str:
    """Raises ValueError for one that cannot stand in a path."""
    if not (isinstance(entry.id, str) and re.fullmatch(r"[\w-][\w.-]*", entry.id)):
        raise ValueError(f"the id {entry.id!r:.80}")
    return entry.id


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
