"""OpenAI's files and batches endpoints, for files of requests that are carried out within a day.

Any call may be cut off after the server has done what it says. So each file has a name of its own on the server, and before
one is sent or begun again the server is asked what it has: nothing is uploaded twice, and no batch is begun (and paid) twice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from seeact_offline.files.redaction import redact
from seeact_offline.files.whole import write_whole
from seeact_offline.models import failures
from seeact_offline.models.address import NO_KEY, Server, find_server, key_header
from seeact_offline.models.failures import Failure
from seeact_offline.models.http_client import CONNECT_S, MAX_REPLY_BYTES, environment_settings, library
from seeact_offline.models.provider import ModelOptions
from seeact_offline.models.retrying import FIRST_CONTACT_S, FIRST_PAUSE_S, LONGEST_PAUSE_S
from seeact_offline.records import ModelStopped

POLL_S = 30.0
"""Seconds between two looks at a batch."""
WINDOW = "24h"
"""The time in which a batch is to be carried out; OpenAI knows no other."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
PAGE = 100
"""Entries of a list asked for at once."""
T = TypeVar("T")
_OF_THE_CALL = re.compile(r"(accept|authorization|content-type|user-agent|x-stainless-.*)$", re.IGNORECASE)
"""Headers that the SDK sets for calls of its own."""


class _AttemptFailed(Exception):
    """One attempt that gave nothing."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch, as the server sees it."""

    id: str
    status: str
    """`validating`, `in_progress`, `finalizing`, or one of ENDED, and what else a server may say."""
    output_file: str | None
    error_file: str | None
    why: str
    """The server's words on a batch that failed as a whole; empty for any other."""


class BatchApi:
    """The batches of one server. A context manager. Each method raises ModelStopped where the server does not answer."""

    def __init__(self, options: ModelOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        """Raises ModelSpecError for an unusable base URL."""
        self._server = find_server(options.base_url)
        self._options, self._sleep = options, sleep
        self._client: Any = None
        self._reached = False

    @property
    def address(self) -> str:
        """The server's address, without secrets."""
        return self._server.address

    def __enter__(self) -> BatchApi:
        from openai import DefaultHttpxClient

        seconds = self._options.timeout_s
        self._client = DefaultHttpxClient(
            base_url=self._server.url,
            params=dict(self._server.query),
            headers=_headers(self._server),
            # between two pieces of a body: a large file may take longer as a whole
            timeout=library().Timeout(seconds, connect=min(CONNECT_S, seconds)),
            # a redirect could lead the key, and the pages, to another host
            follow_redirects=False,
            **environment_settings(self._server.host),
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def upload(self, path: Path, name: str, perhaps_there: bool) -> str:
        """The id of a file of requests, sent under a name that no other has, unless it is there. `perhaps_there`: an earlier call may
        have sent it."""

        def send(tried: bool) -> str:
            if (perhaps_there or tried) and (found := self._find("files", "filename", name)):
                return found
            with path.open("rb") as file:
                parts = {"file": (name, file, "application/jsonl")}
                return _id_of(self._json("POST", "files", data={"purpose": "batch"}, files=parts))

        return self._retried(send)

    def begin(self, file_id: str, url: str, perhaps_there: bool) -> str:
        """The id of the batch of a file, begun unless it is there, as in `upload`."""
        wanted = {"input_file_id": file_id, "endpoint": url, "completion_window": WINDOW}

        def begin(tried: bool) -> str:
            if (perhaps_there or tried) and (found := self._find("batches", "input_file_id", file_id)):
                return found
            return _id_of(self._json("POST", "batches", json=wanted))

        return self._retried(begin)

    def look(self, batch_id: str) -> BatchState:
        """The batch now."""
        found = self._retried(lambda _: self._json("GET", f"batches/{quote(batch_id, safe='')}"))
        output, errors = (_text(found.get(name)) for name in ("output_file_id", "error_file_id"))
        listed = found["errors"].get("data") if isinstance(found.get("errors"), dict) else None
        said = [str(one.get("message")) for one in _objects(listed)]
        return BatchState(batch_id, str(found.get("status")), output, errors, failures.scrubbed("; ".join(said[:3])))

    def wait(self, batch_id: str) -> BatchState:
        """The batch, once it has ended."""
        while (state := self.look(batch_id)).status not in ENDED:
            self._sleep(POLL_S)
        return state

    def download(self, file_id: str, path: Path, most: int) -> None:
        """Writes the file's content, whole or not at all. Raises ModelStopped for more than `most` bytes too."""

        def fetch(draft: Path) -> None:
            with draft.open("wb") as file:
                for line in _redacted(self._chunks("GET", f"files/{quote(file_id, safe='')}/content", most)):
                    if file.tell() == 0 and line.strip() and not line.startswith(b"{"):
                        raise self._nonsense("no file of a batch", line)
                    file.write(line)

        self._retried(lambda _: write_whole(path, fetch))

    # --- attempts ---

    def _retried(self, attempt: Callable[[bool], T]) -> T:
        """The result of `attempt`, which is told whether it was tried before."""
        spent, pause, tried = 0.0, FIRST_PAUSE_S, False
        while True:
            try:
                return attempt(tried)
            except _AttemptFailed as error:
                failure = error.failure
            waited = failure.retry_after_s or pause
            is_first = failure.unreachable and not self._reached
            if not failure.retries or spent + waited > (FIRST_CONTACT_S if is_first else self._options.max_wait_s):
                raise ModelStopped(
                    "model", f"an answer from {self.address}", f"{failure.name}: {failure.detail}"
                ) from None
            self._sleep(waited)
            spent, pause, tried = spent + waited, min(2 * pause, LONGEST_PAUSE_S), True

    def _find(self, kind: str, name: str, value: str) -> str | None:
        """The id of the server's entry of this kind whose field `name` has this value; None where it has none."""
        after: dict[str, str] = {}
        while True:
            page = self._json("GET", kind, params={"limit": str(PAGE), **after})
            entries = _objects(page.get("data"))
            for entry in entries:
                if entry.get(name) == value:
                    return _id_of(entry)
            last = {"after": _id_of(entries[-1])} if entries else {}
            # a server that does not know pages gives the same one again
            if not page.get("has_more") or not last or last == after:
                return None
            after = last

    def _json(self, method: str, path: str, **request: Any) -> Mapping[str, Any]:
        """The object that one attempt gives. Raises _AttemptFailed."""
        content = b"".join(self._chunks(method, path, MAX_REPLY_BYTES, **request))
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._nonsense("something that is no object", content)
        if error := failures.of_body(found, {}):
            raise _AttemptFailed(error)
        return found

    def _chunks(self, method: str, path: str, most: int, **request: Any) -> Iterator[bytes]:
        """The body that one attempt gives. Raises _AttemptFailed, also for more than `most` bytes."""
        try:
            with self._client.stream(method, path, **request) as response:
                self._reached = True
                if response.status_code != 200:
                    said = b"".join(_up_to(response.iter_bytes(), MAX_REPLY_BYTES))
                    raise _AttemptFailed(failures.of_status(response.status_code, response.headers, said))
                yield from _up_to(response.iter_bytes(), most)
        except library().HTTPError as error:
            raise _AttemptFailed(failures.of_exception(error)) from None

    def _nonsense(self, what: str, content: bytes) -> _AttemptFailed:
        said = content[:200].decode("utf-8", "replace")
        return _AttemptFailed(failures.malformed(f"{self.address} answered with {what}: {said}"))


def _headers(server: Server) -> dict[str, str]:
    """The key, and what else live calls send from the environment: by organization and project a server knows whom to bill."""
    from openai import OpenAI

    with OpenAI(api_key=NO_KEY, base_url=server.url) as live:
        named = {name: value for name, value in live.default_headers.items() if isinstance(value, str)}
    own = {name: value for name, value in named.items() if not _OF_THE_CALL.match(name)}
    return own | key_header(server)


def _up_to(chunks: Iterator[bytes], most: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise _AttemptFailed(Failure("reply_too_large", f"a body of more than {most} bytes"))
        yield chunk


def _redacted(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines, without secrets: a server may quote the key. One that is longer than any reply may be comes in pieces."""

    def without_secrets(line: bytes) -> bytes:
        return redact(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    held = b""
    for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        yield from (without_secrets(line) + b"\n" for line in lines)
        if len(held) > MAX_REPLY_BYTES:
            yield without_secrets(held)
            held = b""
    yield without_secrets(held)


def _id_of(found: Mapping[str, Any]) -> str:
    if (value := _text(found.get("id"))) is None:
        raise _AttemptFailed(failures.malformed(f"an answer without id: {json.dumps(found)[:200]}"))
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
