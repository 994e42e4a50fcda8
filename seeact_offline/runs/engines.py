"""Engines that ask in place of this process, by name; an annex brings each, and they load when chosen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from seeact_offline.files.extensions import Doors
from seeact_offline.models import ModelOptions, find_model
from seeact_offline.ranking import Scores
from seeact_offline.records import Model, Step

ASKING_ENGINES = Doors({"ray": "seeact_offline.cluster.ray_asking:open_worker_pool"})
"""Name -> function of an `AskTask`, `Workers` and a function that hears of lost workers, which opens a pool whose
`ask(step, scores)` asks a step."""


@dataclass(frozen=True)
class AskTask:
    """The work of a worker: the model and the function that asks a step."""

    model: Any
    """A spec as `open_model` takes it."""
    options: ModelOptions
    """Options for all workers together."""
    ask: Callable[[Step, Scores | None, Model], Awaitable[Any]]
    """Asks one step; can be sent to another process."""

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that replies depend on, as this machine sees it. Raises InputError."""
        return find_model(self.model).identity(self.options)

    @property
    def is_loaded(self) -> bool:
        """Tells, as `Provider.is_loaded`, that a worker holds the model itself, and does not call it elsewhere."""
        return find_model(self.model).provider.is_loaded

    def shared(self, places: int) -> AskTask:
        """The task of a worker with so many of the places: its part of the calls in
        flight and of the calls a minute."""
        part = places / self.options.concurrency
        rpm, tpm = (None if rate is None else rate * part for rate in (self.options.rpm, self.options.tpm))
        cache = None if self.options.cache is None else self.options.cache.absolute()
        return replace(self, options=replace(self.options, concurrency=places, rpm=rpm, tpm=tpm, cache=cache))
