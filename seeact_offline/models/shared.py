"""One set of replies for several runs over the same steps: what one of them has asked, the others are told.

Requests of a step that hold the same messages (texts, and pictures by their keys) are one request, whichever run, group or
turn they come from. It is paid for once, by the run that came first, and kept in a SQLite file the moment its reply
arrives, together with who paid. Only the payer is given back what it cost, however often and after however many kills it
asks, so that costs add up over the runs and are the same whatever the timing.

An answer of the model that is no text (refused, truncated, empty) is paid for too, and kept. Calls without an answer are
not: asking again is the remedy.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path

from seeact_offline.models.cache import open_file, unusable
from seeact_offline.records import CallError, Completion, Model, Request, Usage


@dataclass(frozen=True, slots=True)
class Kept:
    """One reply as the file holds it."""

    payer: tuple[str, ...]
    # the run, step, group and turn that paid
    usage: Usage
    text: str = ""
    failure: str | None = None
    # how the model declined, in place of a text
    detail: str = ""


class SharedReplies:
    """The model, and the file of its replies. Equal requests in flight at the same time share one call."""

    def __init__(self, model: Model, path: Path) -> None:
        """The caller sees to it that a file is used with one model and one way of sampling. Raises InputError."""
        self.calls = 0
        # requests passed on to the model
        self._model = model
        self._path = path
        self._waiting: dict[str, asyncio.Task[Kept]] = {}
        self._closed = False
        try:
            self._db = open_file(path)
        except (OSError, sqlite3.Error) as error:
            raise unusable(path, error) from error

    def of(self, run: str) -> SharingModel:
        """The model as one run asks it. `run`: its name, the same whenever it is resumed."""
        return SharingModel(self, run)

    async def reply(self, request: Request, payer: tuple[str, ...]) -> Kept:
        """What is kept, or else the model's reply, with `payer` as the one who pays. Raises as the model does."""
        key = messages_key(request)
        task = self._waiting.get(key)
        if task is None:
            saved = self._read(key)
            if saved is not None:
                return saved
            task = self._start(key, request, payer)
        # shielded: a run that gives up must not lose a reply that is paid for, nor fail those who wait for it too
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

    def _start(self, key: str, request: Request, payer: tuple[str, ...]) -> asyncio.Task[Kept]:
        self.calls += 1
        task = asyncio.create_task(self._ask(key, request, payer))
        self._waiting[key] = task
        task.add_done_callback(lambda done: self._finished(key, done))
        return task

    async def _ask(self, key: str, request: Request, payer: tuple[str, ...]) -> Kept:
        try:
            completion = await self._model.complete(request)
            kept = Kept(payer, completion.usage, completion.text)
        except CallError as error:
            if not error.answered:
                raise
            kept = Kept(payer, error.usage, failure=error.name, detail=error.detail)
        self._write(key, kept)
        return kept

    def _finished(self, key: str, task: asyncio.Task[Kept]) -> None:
        del self._waiting[key]
        if not task.cancelled():
            # marks the error as seen: when every caller has given up, nobody else looks at it
            task.exception()

    def _read(self, key: str) -> Kept | None:
        try:
            row = self._db.execute("SELECT completion FROM completions WHERE key = ?", (key,)).fetchone()
            return None if row is None else _decoded(row[0])
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            raise unusable(self._path, error) from error

    def _write(self, key: str, kept: Kept) -> None:
        try:
            self._db.execute("INSERT OR REPLACE INTO completions VALUES (?, ?)", (key, json.dumps(asdict(kept))))
        except sqlite3.Error as error:
            raise unusable(self._path, error) from error


class SharingModel:
    """A `Model` for one run: replies that another run, or another place of this one, has paid for cost nothing."""

    def __init__(self, replies: SharedReplies, run: str) -> None:
        self.reused = 0
        # requests answered by what another place has paid for
        self._replies = replies
        self._run = run

    async def complete(self, request: Request) -> Completion:
        """Raises what the model raises, and InputError when the file breaks."""
        payer = (self._run, *request.step.key, str(request.group), str(request.turn))
        kept = await self._replies.reply(request, payer)
        self.reused += kept.payer != payer
        usage = kept.usage if kept.payer == payer else Usage()
        if kept.failure is not None:
            raise CallError(kept.failure, kept.detail, usage)
        return Completion(kept.text, usage)

    async def aclose(self) -> None:
        """The shared model is closed by whoever opened it."""


def messages_key(request: Request) -> str:
    """The digest of the step and of all that the model is shown."""
    messages = [[m.role, m.text, m.picture.key if m.picture else None] for m in request.messages]
    canonical = json.dumps([list(request.step.key), messages])
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _decoded(text: str) -> Kept:
    saved = json.loads(text)
    return Kept(tuple(saved.pop("payer")), Usage(**saved.pop("usage")), **saved)
