"""OpenAI's files and batches endpoints, for files of requests that are carried out within a day.

Any call may be cut off after the server has done what it says. So each file has a name of its own on the server, and before
one is sent or begun again the server is asked what it has: nothing is uploaded twice, and no batch is begun (and paid) twice.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from seeact_offline.files.redaction import redact
from seeact_offline.files.whole import write_whole
from seeact_offline.models import failures
from seeact_offline.models.address import AZURE_KEY_VARIABLE, KEY_VARIABLE, find_server
from seeact_offline.models.environment import variable
from seeact_offline.models.failures import Failure
from seeact_offline.models.http_client import MAX_REPLY_BYTES
from seeact_offline.models.provider import ModelOptions
from seeact_offline.models.retrying import FIRST_CONTACT_S, FIRST_PAUSE_S, LONGEST_PAUSE_S
from seeact_offline.records import ModelStopped

POLL_S = 30.0
"""Between two looks at a batch."""
WINDOW = "24h"
"""In which a batch is to be carried out; OpenAI knows no other."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_CONNECT_S = 10.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PAGE = 100
"""Entries of a list asked for at once."""
T = TypeVar("T")


class _Failed(Exception):
    """One attempt that gave nothing."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class BatchState:
    """How a batch stands."""

    id: str
    status: str
    """`validating`, `in_progress`, `finalizing`, or one of ENDED, and what else a server may say."""
    output_file: str | None
    error_file: str | None
    why: str
    """What the server says of a batch that failed as a whole; empty for any other."""


class BatchApi:
    """One server's. A context manager."""

    def __init__(self, options: ModelOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        """Raises ModelSpecError for a base URL that is none."""
        self._server = find_server(options.base_url)
        self._options, self._sleep = options, sleep
        self._client: Any = None
        self._reached = False

    @property
    def address(self) -> str:
        """Without secrets."""
        return self._server.address

    def __enter__(self) -> BatchApi:
        from openai import DefaultHttpxClient

        local: dict[str, Any] = {"trust_env": False} if self._server.host in _LOOPBACK else {}
        # a redirect could lead the key, and the pages, to another host
        self._client = DefaultHttpxClient(
            base_url=self._server.url,
            params=dict(self._server.query),
            headers=_access(self._server.is_azure),
            timeout=_timeout(self._options.timeout_s),
            follow_redirects=False,
            **local,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def upload(self, path: Path, name: str, perhaps_there: bool) -> str:
        """The id of a file of requests, sent under a name that no other has, unless it is there: `perhaps_there` says that an
        earlier call may have sent it. Raises ModelStopped."""

        def send() -> str:
            with path.open("rb") as file:
                parts = {"file": (name, file, "application/jsonl")}
                return _text(self._json("POST", "files", data={"purpose": "batch"}, files=parts), "id")

        return self._once(lambda: self._find("files", lambda entry: entry.get("filename") == name), send, perhaps_there)

    def begin(self, file_id: str, url: str, perhaps_there: bool) -> str:
        """The id of the batch of a file, begun unless it is there, as in `upload`. Raises ModelStopped."""
        wanted = {"input_file_id": file_id, "endpoint": url, "completion_window": WINDOW}
        return self._once(
            lambda: self._find("batches", lambda entry: entry.get("input_file_id") == file_id),
            lambda: _text(self._json("POST", "batches", json=wanted), "id"),
            perhaps_there,
        )

    def look(self, batch_id: str) -> BatchState:
        """Raises ModelStopped."""
        found = self._patiently(lambda _: self._json("GET", f"batches/{_name(batch_id)}"))
        return BatchState(
            id=batch_id,
            status=str(found.get("status")),
            output_file=_id(found.get("output_file_id")),
            error_file=_id(found.get("error_file_id")),
            why=_why(found.get("errors")),
        )

    def wait(self, batch_id: str) -> BatchState:
        """Until the batch has ended. Raises ModelStopped."""
        while (state := self.look(batch_id)).status not in ENDED:
            self._sleep(POLL_S)
        return state

    def download(self, file_id: str, path: Path, most: int) -> None:
        """The file's content, there whole or not at all. Raises ModelStopped, also for more than `most` bytes."""

        def fetch(draft: Path) -> None:
            with draft.open("wb") as file:
                for line in _without_secrets(self._chunks("GET", f"files/{_name(file_id)}/content", most)):
                    if file.tell() == 0 and line.strip() and not line.startswith(b"{"):
                        shown = line[:200].decode("utf-8", "replace")
                        raise _Failed(failures.malformed(f"{self.address} answered with no file of a batch: {shown}"))
                    file.write(line)

        self._patiently(lambda _: write_whole(path, fetch))

    # --- attempts ---

    def _once(self, find: Callable[[], str | None], make: Callable[[], str], perhaps_there: bool) -> str:
        return self._patiently(lambda tried: (find() if perhaps_there or tried else None) or make())

    def _patiently(self, attempt: Callable[[bool], T]) -> T:
        """What `attempt` gives, which is told whether it was tried before. Raises ModelStopped when nothing more can help."""
        spent, pause, tried = 0.0, FIRST_PAUSE_S, False
        while True:
            try:
                return attempt(tried)
            except _Failed as error:
                failure = error.failure
            waited = failure.retry_after_s or pause
            patience = FIRST_CONTACT_S if failure.unreachable and not self._reached else self._options.max_wait_s
            if not failure.retries or spent + waited > patience:
                raise ModelStopped(
                    "model", f"an answer from {self.address}", f"{failure.name}: {failure.detail}"
                ) from None
            self._sleep(waited)
            spent, pause, tried = spent + waited, min(2 * pause, LONGEST_PAUSE_S), True

    def _find(self, what: str, is_it: Callable[[Mapping[str, Any]], bool]) -> str | None:
        """The id of an entry of a list of the server's; None where there is none."""
        return next((_text(entry, "id") for entry in self._listed(what) if is_it(entry)), None)

    def _listed(self, what: str) -> Iterator[Mapping[str, Any]]:
        after: dict[str, str] = {}
        while True:
            page = self._json("GET", what, params={"limit": str(_PAGE), **after})
            entries = page.get("data")
            found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
            yield from found
            last = {"after": _text(found[-1], "id")} if found else {}
            # a server that does not know pages gives the same one again
            if not page.get("has_more") or not last or last == after:
                return
            after = last

    def _json(self, method: str, path: str, **request: Any) -> Mapping[str, Any]:
        """One attempt. Raises _Failed."""
        content = b"".join(self._chunks(method, path, MAX_REPLY_BYTES, **request))
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            shown = content[:200].decode("utf-8", "replace")
            raise _Failed(failures.malformed(f"{self.address} answered with something that is no object: {shown}"))
        if error := failures.of_body(found, {}):
            raise _Failed(error)
        return found

    def _chunks(self, method: str, path: str, most: int, **request: Any) -> Iterator[bytes]:
        """The body of one attempt's answer. Raises _Failed, also for one of more than `most` bytes."""
        try:
            with self._client.stream(method, path, **request) as response:
                self._reached = True
                if response.status_code != 200:
                    said = b"".join(_up_to(response.iter_bytes(), MAX_REPLY_BYTES))
                    raise _Failed(failures.of_status(response.status_code, response.headers, said))
                yield from _up_to(response.iter_bytes(), most)
        except _library().HTTPError as error:
            raise _Failed(failures.of_exception(error)) from None


def _up_to(chunks: Iterator[bytes], most: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise _Failed(Failure("reply_too_large", f"a body of more than {most} bytes"))
        yield chunk


def _without_secrets(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same lines: a server may quote the key. One that is longer than any reply may be comes in pieces."""
    held = b""
    for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        yield from (_redacted(line) + b"\n" for line in lines)
        if len(held) > MAX_REPLY_BYTES:
            yield _redacted(held)
            held = b""
    yield _redacted(held)


def _redacted(line: bytes) -> bytes:
    return redact(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _access(is_azure: bool) -> dict[str, str]:
    """The key in the header that the server looks for it in. A server of one's own may need none."""
    azure = variable(AZURE_KEY_VARIABLE) if is_azure else ""
    return {"api-key": azure} if azure else {"Authorization": f"Bearer {variable(KEY_VARIABLE) or 'no-key-needed'}"}


def _library() -> Any:
    """httpx, or httpx2, whichever the SDK uses."""
    from openai import DefaultHttpxClient

    return sys.modules[DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]


def _timeout(seconds: float) -> Any:
    """Between two pieces of a body: a large file may take longer as a whole."""
    return _library().Timeout(seconds, connect=min(_CONNECT_S, seconds))


def _text(found: Mapping[str, Any], name: str) -> str:
    value = _id(found.get(name))
    if value is None:
        raise _Failed(failures.malformed(f"an answer without {name}: {json.dumps(found)[:200]}"))
    return value


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _name(identifier: str) -> str:
    """An id as a part of a path."""
    from urllib.parse import quote

    return quote(identifier, safe="")


def _why(errors: Any) -> str:
    listed = errors.get("data") if isinstance(errors, dict) else None
    said = (
        [str(entry.get("message")) for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
    return failures.scrubbed("; ".join(said[:3]))
