"""Answers calls in batches: those that arrive while a batch is under way become the next one, which is prepared meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

WINDOW_S = 0.02
"""A batch that is not full waits until none has come for so many seconds: nothing compared with the time that it takes."""

P = TypeVar("P")
Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(slots=True)
class _PendingItem(Generic[P, A]):
    item: P
    length: int
    answer: asyncio.Future[A] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True)
class _Batch(Generic[P, Q, A]):
    items: list[_PendingItem[P, A]]
    prepared: asyncio.Future[Q]


class Batches(Generic[P, Q, A]):
    """Collects items, and prepares and answers them in a thread each, one batch at a time. Belongs to the loop that first asks."""

    def __init__(
        self, prepare: Callable[[Sequence[P]], Q], work: Callable[[Q], Sequence[A]], size: Callable[[], int]
    ) -> None:
        """`prepare`: makes a batch ready for `work`, which gives one answer an item, in order. `size`: most items of a batch now."""
        self._prepare, self._work, self._size = prepare, work, size
        self._waiting: list[_PendingItem[P, A]] = []
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix=name) for name in ("prepare", "generate")]
        self._runner: asyncio.Task[None] | None = None
        self._next: _Batch[P, Q, A] | None = None
        self._is_answering = False

    async def ask(self, item: P, length: int) -> A:
        """`length`: items of like length are put together. Raises what `prepare` and `work` raise."""
        waiting = _PendingItem[P, A](item, length)
        self._waiting.append(waiting)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        self._look_ahead()
        return await waiting.answer

    async def aclose(self) -> None:
        """Gives up what waits, and waits for the batch under way."""
        for one in (*self._waiting, *(self._next.items if self._next else ())):
            one.answer.cancel()
        self._waiting.clear()
        self._next = None
        for thread in self._threads:
            await asyncio.to_thread(thread.shutdown)
        if self._runner is not None:
            await asyncio.gather(self._runner, return_exceptions=True)

    async def _run(self) -> None:
        while self._waiting or self._next is not None:
            if self._next is None:
                seen = -1
                while seen < len(self._waiting) < self._size():
                    seen = len(self._waiting)
                    await asyncio.sleep(WINDOW_S)
                self._next = self._begin()
            batch, self._next = self._next, None
            if batch is None:
                return
            self._is_answering = True
            self._look_ahead()
            await self._answer(batch)
            self._is_answering = False

    def _look_ahead(self) -> None:
        """Prepares the next batch while one is answered, as soon as it is full."""
        if self._is_answering and self._next is None and len(self._waiting) >= self._size():
            self._next = self._begin()

    def _begin(self) -> _Batch[P, Q, A] | None:
        """The one that waits longest and those nearest it in length, the longest first: nobody waits for ever. None: nobody waits."""
        self._waiting = [one for one in self._waiting if not one.answer.done()]
        if not self._waiting:
            return None
        first = self._waiting[0]
        nearest = sorted(self._waiting, key=lambda one: (one is not first, abs(one.length - first.length)))
        batch = sorted(nearest[: self._size()], key=lambda one: -one.length)
        self._waiting = [one for one in self._waiting if one not in batch]
        items = [one.item for one in batch]
        return _Batch(batch, asyncio.get_running_loop().run_in_executor(self._threads[0], self._prepare, items))

    async def _answer(self, batch: _Batch[P, Q, A]) -> None:
        try:
            prepared = await batch.prepared
            answers = await asyncio.get_running_loop().run_in_executor(self._threads[1], self._work, prepared)
        except asyncio.CancelledError:
            for one in batch.items:
                one.answer.cancel()
            raise
        # whatever it is belongs to those who asked; a panic of the tokenizers' library is not even an Exception
        except BaseException as error:
            failure = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
            for one in batch.items:
                if not one.answer.done():
                    one.answer.set_exception(failure)
            return
        for one, answer in zip(batch.items, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)
