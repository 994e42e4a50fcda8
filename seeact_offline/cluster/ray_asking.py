"""Steps asked by Ray's workers, each with a model of its own; see docs/ray.md.

The command reads the split, hands every step with its scores to a worker that has a place free, and keeps what comes back, as
it does without Ray: only where a step is prepared and asked differs. A step whose worker dies is given to another.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

from seeact_offline.cluster.ray import (
    ATTEMPTS,
    ClusterSize,
    Note,
    cluster_size,
    connected,
    first_line,
    worded_errors,
)
from seeact_offline.grounding.conversation import in_thread
from seeact_offline.models import open_model
from seeact_offline.pages.dom import Page
from seeact_offline.ranking import Scores, StepScores
from seeact_offline.ranking.rankers import model_threads, set_model_threads
from seeact_offline.ranking.stage import Workers
from seeact_offline.records import InputError, Model, SeeActError, Step, StepError
from seeact_offline.runs.engines import AskTask

START_S = 120.0
"""Seconds for a worker to start, on a cluster that is busy or has lost a machine."""
CLOSE_S = 5.0
"""Seconds for workers to put down their work."""


@dataclass(frozen=True, slots=True)
class AskWorkers:
    """The workers that will be started."""

    places: tuple[int, ...]
    """Steps that each is given at once."""
    gpus_each: float

    def __str__(self) -> str:
        return f"Ray: {len(self.places)} asking workers, {self.gpus_each:g} GPUs each, {sum(self.places)} steps at once in all"


def ask_workers(workers: Workers, room: ClusterSize, is_loaded: bool, concurrency: int) -> AskWorkers:
    """Fills in what is not asked for: a model that is loaded has a worker per GPU, or per machine; any other is asked by a worker
    per CPU. None is left without a place. Raises InputError if there is not enough room, for which Ray would wait forever."""
    each = workers.gpus_each
    if each is None:
        each = 1.0 if room.gpus >= 1 and is_loaded else 0.0
    fitting = int(room.gpus / each) if each else room.machines if is_loaded else room.cpus
    count = workers.score or max(1, min(fitting, room.cpus))
    if count * each > room.gpus:
        raise InputError(
            "gpus_per_worker", f"workers that fit {room.gpus:g} GPUs", f"{count} workers of {each:g} GPUs each"
        )
    if count > room.cpus:
        raise InputError("score_workers", f"workers that fit {room.cpus} CPUs", str(count))
    count = min(count, concurrency)
    return AskWorkers(tuple(len(range(place, concurrency, count)) for place in range(count)), each)


@asynccontextmanager
async def open_worker_pool(
    asking: AskTask, workers: Workers, note: Note = lambda text: None
) -> AsyncIterator[RayWorkerPool]:
    """Connects to Ray, or starts one on this machine; inside, its workers ask. `note`: hears of lost workers. Raises InputError."""
    with connected(workers.address, workers.score or 1, note) as ray:
        askers = ask_workers(workers, cluster_size(ray), asking.is_loaded, asking.options.concurrency)
        opened = RayWorkerPool(asking, askers, note=note)
        try:
            yield opened
        finally:
            await opened.aclose()


class RayWorkerPool:
    """Asks steps on a connected Ray. Belongs to one event loop."""

    def __init__(
        self, asking: AskTask, askers: AskWorkers, attempts: int = ATTEMPTS, note: Note = lambda text: None
    ) -> None:
        """Raises InputError for a model that cannot be sent to another process."""
        self.askers = askers
        self._attempts = attempts
        self._note = note
        threads = model_threads(asking.model) if asking.is_loaded else None
        self._workers = [
            _Worker(_starting(asking.shared(places), asking.identity, threads, askers.gpus_each))
            for places in askers.places
        ]
        self._places: asyncio.Queue[_Worker] = asyncio.Queue()
        # in turns, so that no worker is full while another has nothing to do
        for row in zip_longest(*([worker] * n for worker, n in zip(self._workers, askers.places, strict=True))):
            for worker in filter(None, row):
                self._places.put_nowait(worker)

    async def ask(self, step: Step, scores: Scores | None) -> Any:
        """Gives what `AskTask.ask` does. Raises what must stop the run, and InputError for a step whose workers die one after the other."""
        known = None if scores is None else await in_thread(_KnownScores.read, step, scores)
        problem = ""
        for _ in range(self._attempts):
            try:
                found = await self._asked(step, known)
            except _WorkerLost as error:
                problem = str(error)
            else:
                if isinstance(found, SeeActError):
                    raise found
                return found
        killed = f"step {step.key} killed {self._attempts} workers ({problem}); all that is answered is kept"
        raise InputError("engine", sentence=killed)

    async def remarks(self) -> list[str]:
        """The remarks of all workers' models; those of a worker that does not answer are lost."""
        asked = [asyncio.ensure_future(_result(worker.actor.remarks.remote())) for worker in self._workers]
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), CLOSE_S)
        known = [one.result() for one in asked if one.done() and not one.cancelled() and one.exception() is None]
        return list(dict.fromkeys(remark for some in known for remark in some))

    async def aclose(self) -> None:
        """Gives up what is under way."""
        closing = [asyncio.ensure_future(_result(worker.actor.aclose.remote())) for worker in self._workers]
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_S)
        for done in closing:
            done.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        for worker in self._workers:
            worker.end()

    async def _asked(self, step: Step, known: _KnownScores | None) -> Any:
        """Asks the next worker with a free place. Raises _WorkerLost, and InputError."""
        worker = await self._places.get()
        actor = worker.actor
        try:
            if await worker.starts():
                return await _result(actor.ask.remote(step, known))
            # dropped for good
            if worker in self._workers:
                self._workers.remove(worker)
                worker.end()
            if not self._workers:
                raise InputError(
                    "engine", sentence=f"no worker started within {START_S:.0f} s; the same command resumes from here"
                )
        except _WorkerLost as error:
            if worker.renew(actor):
                self._note(f"a worker died ({error}) and has a successor; its steps are asked again")
            raise
        finally:
            if worker in self._workers:
                self._places.put_nowait(worker)
        return await self._asked(step, known)


class _WorkerLost(Exception):
    """The worker died, or its machine did; says how Ray puts it."""


async def _result(reference: Any) -> Any:
    """Raises _WorkerLost, and InputError for an error that another worker would meet too."""
    from ray.exceptions import RayError, RayTaskError

    with worded_errors():
        try:
            return await reference
        except RayTaskError:
            raise
        except RayError as error:
            raise _WorkerLost(first_line(error)) from error


class _Worker:
    """A worker and its successors."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._begin()

    def _begin(self) -> None:
        self.actor = self._start()
        self._starting = asyncio.ensure_future(asyncio.wait_for(_result(self.actor.ready.remote()), START_S))

    async def starts(self) -> bool:
        """Waits for the start; False if it takes too long. Raises _WorkerLost."""
        try:
            await asyncio.shield(self._starting)
        except TimeoutError:
            return False
        return True

    def renew(self, lost: Any) -> bool:
        """Replaces a lost actor; False where another of its steps has done so."""
        if self.actor is not lost:
            return False
        self.end()
        self._begin()
        return True

    def end(self) -> None:
        import ray

        self._starting.cancel()
        ray.kill(self.actor)


def _starting(asking: AskTask, identity: dict[str, Any], threads: int | None, gpus: float) -> Callable[[], Any]:
    """The function that starts a worker. Raises InputError."""
    import ray

    places = asking.options.concurrency
    try:
        known = ray.put(asking)
    except TypeError as error:
        raise InputError("model", sentence=f"the model cannot be sent to Ray's workers: {first_line(error)}") from error
    # all that is under way, and a call that closes
    actor: Any = ray.remote(num_cpus=1, num_gpus=gpus)(_AskWorker)
    return lambda: actor.options(max_concurrency=places + 2).remote(known, identity, threads, os.getcwd())


# --- in a worker -----------------------------------------------------------------------------------------------------


class _AskWorker:
    """Asks the steps that it is given. One object per worker, which keeps its model."""

    def __init__(self, asking: AskTask, identity: dict[str, Any], threads: int | None, folder: str) -> None:
        """`identity`: of the model that every worker must have. `folder`: in which the command was given, and in which relative
        paths and `.env` are looked for."""
        self._asking, self._identity, self._threads = asking, identity, threads
        with suppress(OSError):
            os.chdir(folder)

    async def ready(self) -> None:
        """Comes back when the worker runs."""

    async def ask(self, step: Step, scores: Scores | None) -> Any:
        """An error is returned: one that is raised would come back as Ray's."""
        try:
            return await self._asking.ask(step, scores, self._model)
        except SeeActError as error:
            return error

    async def remarks(self) -> tuple[str, ...]:
        return self._model.remarks if "_model" in vars(self) else ()

    async def aclose(self) -> None:
        if "_model" in vars(self):
            await self._model.aclose()

    @cached_property
    def _model(self) -> Model:
        # not in the constructor: an error there would look as if the worker had died
        if self._threads is not None:
            set_model_threads(self._threads)
        # a function of Python came from there, whether or not its source did
        here = {name: value for name, value in self._asking.identity.items() if name != "code"}
        other = [name for name, value in here.items() if self._identity.get(name) != value]
        if other:
            got = f"{other[0]} {here[other[0]]!r:.80} on {socket.gethostname()}"
            raise InputError("model", f"{other[0]} {self._identity.get(other[0])!r:.80} on every machine", got)
        return open_model(self._asking.model, self._asking.options)


@dataclass(frozen=True, slots=True)
class _KnownScores:
    """The scores of one step, on their way to a worker that has no score file."""

    scores: StepScores | None
    failure: str = ""
    """The name of the `StepError` for which there are none."""
    detail: str = ""
    digest: str = ""

    @classmethod
    def read(cls, step: Step, scores: Scores) -> _KnownScores:
        try:
            return cls(scores.of(step))
        except StepError as error:
            return cls(None, error.name, error.detail)

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        """Raises StepError."""
        if self.failure:
            raise StepError(self.failure, self.detail)
        return self.scores
