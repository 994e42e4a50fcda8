"""A provider: `parrot/TEXT` always says TEXT."""

from __future__ import annotations

from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.records import Completion, Request, Usage


class Parrot:
    def __init__(self, text: str) -> None:
        self._text = text

    async def complete(self, request: Request) -> Completion:
        return Completion(self._text, Usage(calls=1))

    async def aclose(self) -> None:
        pass


def _open(name: str, options: ModelOptions) -> Parrot:
    return Parrot(name)


def _identity(name: str, options: ModelOptions) -> dict[str, str]:
    return {"model": f"parrot/{name}"}


PROVIDER = Provider(usage=("TEXT",), open=_open, identity=_identity)
