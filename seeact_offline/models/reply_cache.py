"""Replies that were paid for, each kept the moment it arrives, so that no request is paid for twice.

A reply is known by what is asked: the model with all that its replies depend on, the step, and the messages with their
pictures. At temperature 0 equal requests of a step are one request, whichever group, turn or run they come from; at a
higher one, or where each is to be asked, a request is known by its group and turn too. An answer of the model that is
no text (refused, truncated, empty) is paid for too, and kept; calls without an answer are not: asking again is the
remedy.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from seeact_offline.files.store import Store, texts_with
from seeact_offline.models.budget import LAST_CALLS_S
from seeact_offline.records import CallError, CallRecord, Completion, Request, Usage

POLL_S = 0.1
"""Seconds between two looks for a reply that another program is waiting for."""
# `CallRecord.asked` is the beginning of a key: enough hex digits to tell the requests of a run apart
ASKED_CHARS = 16
Ask = Callable[[Request, str], Awaitable[Completion]]


@dataclass(frozen=True, slots=True)
class CachedReply:
    """One answer as the store holds it."""

    text: str
    usage: Usage
    failure: str | None = None
    """The name of the failure by which the model declined, in place of a text."""
    detail: str = ""
    run: str = ""
    """The run that paid; empty where it has no id, as one whose model was opened alone."""
    place: Sequence[str | int] = ()
    """Step, group and turn that paid."""
    made: str = ""
    """UTC day; empty where it is not known."""
    finish_reason: str | None = None
    """As `CallRecord.finish_reason`."""
    call: CallRecord | None = None
    """The call that has just given it; not kept."""

    @classmethod
    def of(cls, answer: Completion | CallError) -> CachedReply:
        """Makes one from a text, or from how the model declined."""
        call = answer.call or CallRecord()
        if isinstance(answer, Completion):
            return cls(answer.text, answer.usage, finish_reason=call.finish_reason, call=call)
        return cls("", answer.usage, answer.name, answer.detail, call=call)


class ReplyStore:
    """The replies of one file. Close it."""

    def __init__(self, path: Path, model: str = "", run: str = "") -> None:
        """`model`, `run`: noted with each reply. Raises InputError for a file that cannot be opened."""
        self._store, self._model, self.run = Store(path, "cache"), model, run

    def get(self, key: str) -> CachedReply | None:
        """The kept reply; None for none. A damaged one is removed. Raises InputError when the file breaks."""
        stored = self._store.get(key)
        if stored is None:
            return None
        try:
            saved = json.loads(stored.text)
            return CachedReply(**saved | {"usage": Usage(**saved["usage"]), "made": stored.made})
        except (ValueError, KeyError, TypeError):
            self._store.remove(key)
            return None

    def put(self, key: str, reply: CachedReply) -> None:
        """Raises InputError when the file breaks."""
        saved = asdict(replace(reply, run=self.run, made="", call=None))
        saved = {name: value for name, value in saved.items() if value or name == "text"}
        self._store.put(key, json.dumps(saved, default=msgspec.structs.asdict), self._model)

    async def get_or_ask(self, key: str, ask: Callable[[], Awaitable[CachedReply]]) -> CachedReply:
        """The kept reply, or else what `ask` gives, which is then kept. Waits for another program that is asking for
        it. Raises what `ask` raises."""
        while (kept := self.get(key)) is None and not self._store.claim(key):
            await asyncio.sleep(POLL_S)
        if kept is not None:
            return kept
        try:
            # it may have come between the look and the claim
            kept = self.get(key)
            if kept is None:
                kept = await ask()
                self.put(key, kept)
            return kept
        finally:
            self._store.release(key)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on a damaged file, and on damaged replies in it."""
        lost = self._store.damaged
        damaged = f"kept replies that were damaged and are asked for again: {lost}" if lost else ""
        return tuple(filter(None, (self._store.remark, damaged)))

    def close(self) -> None:
        """Safe to call twice."""
        self._store.close()


class ReplyCache:
    """The replies of a store to one model that is asked in one way. Equal requests in flight share one call."""

    def __init__(
        self, store: ReplyStore, identity: Mapping[str, object], by_place: bool, with_ideal: bool = False
    ) -> None:
        """`identity`: everything that replies depend on except step and messages. `by_place`: equal requests of two
        groups or turns are two. `with_ideal`: replies depend on the ideal ones."""
        self._store, self._identity, self._by_place, self._with_ideal = store, dict(identity), by_place, with_ideal
        self._waiting: dict[str, asyncio.Task[CachedReply]] = {}
        self.counted: set[str] = set()
        """`CallRecord.asked` of the replies whose usage is counted already."""

    def key(self, request: Request, ideal: str = "") -> str:
        """Makes a request's key; see `request_key`."""
        identity = self._identity | ({"ideal": ideal} if self._with_ideal else {})
        return request_key(identity, request, self._by_place)

    def look(self, request: Request) -> Completion | None:
        """The kept reply; None for none. Raises CallError for one with which the model declined."""
        key = self.key(request)
        kept = self._store.get(key)
        return None if kept is None else self._counted_once(key, kept, CallRecord(0))

    async def complete(self, request: Request, ideal: str, ask: Ask) -> Completion:
        """The kept reply, or what `ask` gives. Raises what `ask` raises."""
        key = self.key(request, ideal)
        task = self._waiting.get(key)
        is_first = task is None
        if task is None:

            def forget(done: asyncio.Task[CachedReply]) -> None:
                del self._waiting[key]
                if not done.cancelled():
                    # marks the error as seen: when every caller has given up, nobody else looks at it
                    done.exception()

            task = asyncio.create_task(self._store.get_or_ask(key, lambda: self._answer(request, ideal, ask)))
            self._waiting[key] = task
            task.add_done_callback(forget)
        # shielded: a caller that gives up must not lose a reply that is paid for, nor fail those who wait for it too
        try:
            kept = await asyncio.shield(task)
        except CallError as error:
            if is_first:
                raise
            raise CallError(error.name, error.detail) from None
        return self._counted_once(key, kept, (kept.call if is_first else None) or CallRecord(0))

    def _counted_once(self, key: str, kept: CachedReply, call: CallRecord) -> Completion:
        """The reply, its usage counted at the place that asks first. Raises CallError where the model declined."""
        asked = key[:ASKED_CHARS]
        reused = asked in self.counted
        self.counted.add(asked)
        from_store = None if kept.run == self._store.run else kept.made
        call = msgspec.structs.replace(
            call, asked=asked, reused=reused, from_store=from_store, usage=kept.usage, finish_reason=kept.finish_reason
        )
        usage = Usage() if reused else kept.usage
        if kept.failure is not None:
            raise CallError(kept.failure, kept.detail, usage, call)
        return Completion(kept.text, usage, call)

    async def aclose(self) -> None:
        """Gives up calls still in flight, those of an interrupted run after LAST_CALLS_S, and closes the store."""
        tasks = list(self._waiting.values())
        current = asyncio.current_task()
        if tasks and current is not None and current.cancelling():
            # they are paid for, and most end soon
            await asyncio.wait(tasks, timeout=LAST_CALLS_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._store.close()

    async def _answer(self, request: Request, ideal: str, ask: Ask) -> CachedReply:
        try:
            kept = CachedReply.of(await ask(request, ideal))
        except CallError as error:
            if not error.answered:
                raise
            kept = CachedReply.of(error)
        return replace(kept, run=self._store.run, place=(*request.key, request.group, request.turn))


def replies_paid_by(path: Path, run: str) -> dict[str, Usage]:
    """`CallRecord.asked` -> usage of every reply in a store that this run has paid for; without those that cannot be
    read."""
    paid: dict[str, Usage] = {}
    # most rows are of other runs, and their JSON is not read
    for key, text in texts_with(path, json.dumps({"run": run})[1:-1] if run else ""):
        with suppress(ValueError, KeyError, TypeError):
            saved = json.loads(text)
            if saved.get("run", "") == run:
                paid[key[:ASKED_CHARS]] = Usage(**saved["usage"])
    return paid


def request_key(identity: Mapping[str, object], request: Request, by_place: bool) -> str:
    """The digest under which a reply is kept: of what is asked at this step, or at this place."""
    messages = [[m.role, m.text, m.picture.key if m.picture else None] for m in request.messages]
    asked_at = [*request.key, request.group, request.turn] if by_place else [*request.key]
    return hashlib.sha256(json.dumps([identity, asked_at, messages], sort_keys=True).encode("ascii")).hexdigest()
