"""One set of replies for several runs over the same steps: what one of them has asked, the others are told.

Requests of a step that hold the same messages (texts, and pictures by their keys) are one request, whichever run, group or
turn they come from. It is paid for once, by the run that came first, and kept in a SQLite file the moment its reply
arrives, together with who paid. Only the payer is given back what it cost, however often and after however many kills it
asks, so that costs add up over the runs and are the same whatever the timing.

An answer of the model that is no text (refused, truncated, empty) is paid for too, and kept. Calls without an answer are
not: asking again is the remedy.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from seeact_offline.models.paid import PaidCalls
from seeact_offline.models.told import ask_told
from seeact_offline.records import CallError, Completion, Model, Request, Usage


@dataclass(frozen=True, slots=True)
class Kept:
    """One reply as the file holds it."""

    payer: tuple[str, ...]
    """The run, step, group and turn that paid."""
    usage: Usage
    text: str = ""
    failure: str | None = None
    """How the model declined, in place of a text."""
    detail: str = ""


class SharedReplies:
    """The model, and the file of its replies. Equal requests in flight at the same time share one call."""

    def __init__(self, model: Model, path: Path) -> None:
        """The caller sees to it that a file is used with one model and one way of sampling. Raises InputError."""
        self._model = model
        self._closed = False
        self._paid = PaidCalls(path, lambda kept: json.dumps(asdict(kept)), _decoded)

    @property
    def calls(self) -> int:
        """Requests passed on to the model."""
        return self._paid.calls

    def of(self, run: str) -> SharingModel:
        """The model as one run asks it. `run`: its name, the same whenever it is resumed."""
        return SharingModel(self, run)

    async def reply(self, request: Request, payer: tuple[str, ...], ideal: str = "") -> Kept:
        """What is kept, or else the model's reply, with `payer` as the one who pays. Raises as the model does.

        `ideal` reaches a model that has `complete_told` and no other.
        """
        return await self._paid.get(messages_key(request), lambda: self._ask(request, payer, ideal))

    async def aclose(self) -> None:
        """Gives up calls still in flight, closes the model and the file."""
        if self._closed:
            return
        self._closed = True
        await self._paid.aclose()
        await self._model.aclose()

    async def _ask(self, request: Request, payer: tuple[str, ...], ideal: str) -> Kept:
        try:
            completion = await ask_told(self._model, request, ideal)
        except CallError as error:
            if not error.answered:
                raise
            return Kept(payer, error.usage, failure=error.name, detail=error.detail)
        return Kept(payer, completion.usage, completion.text)


class SharingModel:
    """A `Model` for one run: replies that another run, or another place of this one, has paid for cost nothing."""

    def __init__(self, replies: SharedReplies, run: str) -> None:
        self.reused = 0
        # requests answered by what another place has paid for
        self._replies = replies
        self._run = run

    async def complete(self, request: Request) -> Completion:
        """Raises what the model raises, and InputError when the file breaks."""
        return await self.complete_told(request, "")

    async def complete_told(self, request: Request, ideal: str) -> Completion:
        """As `complete`; whether the shared model is told is its own affair."""
        payer = (self._run, *request.key, str(request.group), str(request.turn))
        kept = await self._replies.reply(request, payer, ideal)
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
    canonical = json.dumps([list(request.key), messages])
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _decoded(text: str) -> Kept:
    saved = json.loads(text)
    return Kept(tuple(saved.pop("payer")), Usage(**saved.pop("usage")), **saved)
