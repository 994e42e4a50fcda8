"""A model whose replies are kept, so that no call is paid for twice.

A hit gives back the saved usage too, so a resumed run reports the same cost as one that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from seeact_offline.models.paid import PaidCalls
from seeact_offline.records import Completion, Model, Request, Usage


class CachedModel:
    """A model whose replies are kept. Equal requests in flight at the same time share one call."""

    def __init__(self, model: Model, path: Path, identity: Mapping[str, object]) -> None:
        """`identity`: all that replies depend on beside the messages. Raises InputError for an unusable file."""
        self._asked = 0
        self._model = model
        self._identity = dict(identity)
        self._closed = False
        self._paid = PaidCalls(path, _encoded, _decoded)

    @property
    def calls(self) -> int:
        """Requests passed on."""
        return self._paid.calls

    @property
    def hits(self) -> int:
        """Requests answered without a call of their own."""
        return self._asked - self._paid.calls

    async def complete(self, request: Request) -> Completion:
        """The saved reply, or the model's. Raises what the model raises, and InputError when the file breaks."""
        self._asked += 1
        return await self._paid.get(request_key(self._identity, request), lambda: self._model.complete(request))

    async def aclose(self) -> None:
        """Gives up calls still in flight, closes the model and the file."""
        if self._closed:
            return
        self._closed = True
        await self._paid.aclose()
        await self._model.aclose()


def request_key(identity: Mapping[str, object], request: Request) -> str:
    """The digest of the call's place (step, group, turn) and of all that its reply depends on: model, server, sampling,
    messages with their pictures. Equal messages in two places are two calls, so that each is paid for, and counted, once."""
    messages = [[m.role, m.text, m.picture.key if m.picture else None] for m in request.messages]
    place = [*request.key, request.group, request.turn]
    canonical = json.dumps([identity, place, messages], sort_keys=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _encoded(completion: Completion) -> str:
    return json.dumps({"text": completion.text, "usage": asdict(completion.usage)})


def _decoded(text: str) -> Completion:
    saved = json.loads(text)
    return Completion(saved["text"], Usage(**saved["usage"]))
