"""Replies that were paid for, kept in a SQLite file, so that no call is paid for twice.

Every reply is stored the moment it arrives: a run killed in the middle of a step asks again only for what never came.
A hit gives back the saved usage too, so a resumed run reports the same cost as one that was never interrupted.
Failures are not kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from seeact_offline.records import Completion, InputError, Model, Request, Usage

_LOCK_WAIT_S = 30.0
# another run may be writing to the same file


class CachedModel:
    """A model whose replies are kept. Equal requests in flight at the same time share one call."""

    def __init__(self, model: Model, path: Path, identity: Mapping[str, object]) -> None:
        """`identity`: all that replies depend on beside the messages. Raises InputError for an unusable file."""
        self.hits = 0
        # requests answered without a call of their own
        self.calls = 0
        # requests passed on
        self._model = model
        self._path = path
        self._identity = dict(identity)
        self._waiting: dict[str, asyncio.Task[Completion]] = {}
        self._closed = False
        try:
            self._db = open_file(path)
        except (OSError, sqlite3.Error) as error:
            raise unusable(path, error) from error

    async def complete(self, request: Request) -> Completion:
        """The saved reply, or the model's. Raises what the model raises, and InputError when the file breaks."""
        key = request_key(self._identity, request)
        task = self._waiting.get(key)
        if task is None:
            saved = self._read(key)
            if saved is not None:
                self.hits += 1
                return saved
            task = self._start(key, request)
        else:
            self.hits += 1
        # shielded: a caller that gives up must not lose a reply that is paid for, nor fail those who wait for it too
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Gives up calls still in flight, closes the model and the file."""
        if self._closed:
            return
        self._closed = True
        tasks = list(self._waiting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._db.close()
        await self._model.aclose()

    def _start(self, key: str, request: Request) -> asyncio.Task[Completion]:
        self.calls += 1
        task = asyncio.create_task(self._ask(key, request))
        self._waiting[key] = task
        task.add_done_callback(lambda done: self._finished(key, done))
        return task

    async def _ask(self, key: str, request: Request) -> Completion:
        completion = await self._model.complete(request)
        self._write(key, completion)
        return completion

    def _finished(self, key: str, task: asyncio.Task[Completion]) -> None:
        del self._waiting[key]
        if not task.cancelled():
            # marks the error as seen: when every caller has given up, nobody else looks at it
            task.exception()

    def _read(self, key: str) -> Completion | None:
        try:
            row = self._db.execute("SELECT completion FROM completions WHERE key = ?", (key,)).fetchone()
            return None if row is None else _decoded(row[0])
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            raise unusable(self._path, error) from error

    def _write(self, key: str, completion: Completion) -> None:
        try:
            self._db.execute("INSERT OR REPLACE INTO completions VALUES (?, ?)", (key, _encoded(completion)))
        except sqlite3.Error as error:
            raise unusable(self._path, error) from error


def request_key(identity: Mapping[str, object], request: Request) -> str:
    """The digest of the call's place (step, group, turn) and of all that its reply depends on: model, server, sampling,
    messages with their pictures. Equal messages in two places are two calls, so that each is paid for, and counted, once."""
    messages = [[m.role, m.text, m.picture.key if m.picture else None] for m in request.messages]
    place = [*request.step.key, request.group, request.turn]
    canonical = json.dumps([identity, place, messages], sort_keys=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def open_file(path: Path) -> sqlite3.Connection:
    """Each statement commits by itself; a write-ahead log keeps the file whole when the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, timeout=_LOCK_WAIT_S, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("CREATE TABLE IF NOT EXISTS completions (key TEXT PRIMARY KEY, completion TEXT NOT NULL)")
        verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    except BaseException:
        # whatever it was goes on its way; only the file must not stay open
        db.close()
        raise
    return db


def _encoded(completion: Completion) -> str:
    return json.dumps({"text": completion.text, "usage": asdict(completion.usage)})


def _decoded(text: str) -> Completion:
    saved = json.loads(text)
    return Completion(saved["text"], Usage(**saved["usage"]))


def unusable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"the reply cache must be a SQLite file of this program that can be written; {path} is not usable: {error}"
    )
