"""What was paid for, kept in a SQLite file by key, so that no call is paid for twice.

Every value is stored the moment it arrives: a run killed in the middle of a step asks again only for what never came.
Values asked for at the same time share one call. Failures are not kept. Each value lies beside a checksum: a bit that flips on
a disk could make another answer of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Generic, TypeVar

from seeact_offline.records import InputError

T = TypeVar("T")
_LOCK_WAIT_S = 30.0
"""Another run may be writing to the same file."""


class PaidCalls(Generic[T]):
    """Values by key, each called for once."""

    def __init__(self, path: Path, encode: Callable[[T], str], decode: Callable[[str], T]) -> None:
        """`decode` may raise ValueError, KeyError or TypeError. Raises InputError for an unusable file."""
        self.calls = 0
        # values that had to be called for
        self._path = path
        self._encode, self._decode = encode, decode
        self._waiting: dict[str, asyncio.Task[T]] = {}
        try:
            self._db = _open_file(path)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from error

    async def get(self, key: str, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The saved value, or what `call` gives. Raises what `call` raises, and InputError when the file breaks."""
        task = self._waiting.get(key)
        if task is None:
            saved = self._read(key)
            if saved is not None:
                return saved
            task = self._start(key, call)
        # shielded: a caller that gives up must not lose a reply that is paid for, nor fail those who wait for it too
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Gives up calls still in flight and closes the file."""
        tasks = list(self._waiting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._db.close()

    def _start(self, key: str, call: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        self.calls += 1
        task = asyncio.create_task(self._ask(key, call))
        self._waiting[key] = task
        task.add_done_callback(lambda done: self._finished(key, done))
        return task

    async def _ask(self, key: str, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        value = await call()
        self._write(key, value)
        return value

    def _finished(self, key: str, task: asyncio.Task[T]) -> None:
        del self._waiting[key]
        if not task.cancelled():
            # marks the error as seen: when every caller has given up, nobody else looks at it
            task.exception()

    def _read(self, key: str) -> T | None:
        try:
            # as bytes, for a damaged value may be no text
            row = self._db.execute(
                "SELECT CAST(completion AS BLOB), CAST(checksum AS BLOB) FROM completions WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            value, checksum = row
            if checksum not in (None, _checksum(key, value)):
                self._db.execute("DELETE FROM completions WHERE key = ?", (key,))
                raise ValueError("a reply is damaged; it is removed now, and the same command asks for it again")
            return self._decode(value.decode())
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            raise _unusable(self._path, error) from error

    def _write(self, key: str, value: T) -> None:
        try:
            text = self._encode(value)
            row = key, text, _checksum(key, text.encode()).decode()
            self._db.execute("INSERT OR REPLACE INTO completions (key, completion, checksum) VALUES (?, ?, ?)", row)
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error


def _open_file(path: Path) -> sqlite3.Connection:
    """Each statement commits by itself; a write-ahead log keeps the file whole when the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, timeout=_LOCK_WAIT_S, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(
            "CREATE TABLE IF NOT EXISTS completions (key TEXT PRIMARY KEY, completion TEXT NOT NULL, checksum TEXT)"
        )
        # the index too: a key that is not found there would be paid for again
        verdict = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        if "checksum" not in {column[1] for column in db.execute("PRAGMA table_info(completions)")}:
            # a file of an earlier version: what it holds has none
            db.execute("ALTER TABLE completions ADD COLUMN checksum TEXT")
    except BaseException:
        # whatever it was goes on its way; only the file must not stay open
        db.close()
        raise
    return db


def _checksum(key: str, value: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + value).hexdigest()[:16].encode()


def _unusable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"the reply cache must be a SQLite file of this program that can be written; {path} is not usable: {error}"
    )
