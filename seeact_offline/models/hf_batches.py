"""Answers calls in batches: those that arrive while a batch is under way become the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

WINDOW_S = 0.02
"""Seconds that a batch that is not full waits for more: nothing compared with the time that it takes."""

P = TypeVar("P")
A = TypeVar("A")


@dataclass(slots=True)
class _PendingItem(Generic[P, A]):
    item: P
    length: int
    answer: asyncio.Future[A] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Batches(Generic[P, A]):
    """Collects items and answers them in a thread of its own, one batch at a time. Belongs to the loop that first asks."""

    def __init__(self, work: Callable[[Sequence[P]], Sequence[A]], size: Callable[[], int]) -> None:
        """`work`: one answer an item, in order. `size`: how many items it may be given now."""
        self._work, self._size = work, size
        self._waiting: list[_PendingItem[P, A]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="generate")
        self._runner: asyncio.Task[None] | None = None

    async def ask(self, item: P, length: int) -> A:
        """`length`: items of like length are put together. Raises what `work` raises."""
        waiting = _PendingItem[P, A](item, length)
        self._waiting.append(waiting)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await waiting.answer

    async def aclose(self) -> None:
        """Gives up what waits, and waits for the batch under way."""
        for one in self._waiting:
            one.answer.cancel()
        self._waiting.clear()
        await asyncio.to_thread(self._thread.shutdown)
        if self._runner is not None:
            await asyncio.gather(self._runner, return_exceptions=True)

    async def _run(self) -> None:
        while self._waiting:
            if len(self._waiting) < self._size():
                await asyncio.sleep(WINDOW_S)
            self._waiting = [one for one in self._waiting if not one.answer.done()]
            if not self._waiting:
                return
            # the one that waits longest and those nearest it in length, the longest first: nobody waits for ever
            first = self._waiting[0]
            nearest = sorted(self._waiting, key=lambda one: (one is not first, abs(one.length - first.length)))
            batch = nearest[: self._size()]
            self._waiting = [one for one in self._waiting if one not in batch]
            await self._answer(sorted(batch, key=lambda one: -one.length))

    async def _answer(self, batch: Sequence[_PendingItem[P, A]]) -> None:
        items = [one.item for one in batch]
        try:
            answers = await asyncio.get_running_loop().run_in_executor(self._thread, self._work, items)
        except asyncio.CancelledError:
            for one in batch:
                one.answer.cancel()
            raise
        # whatever it is belongs to those who asked; a panic of the tokenizers' library is not even an Exception
        except BaseException as error:
            failure = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
            for one in batch:
                if not one.answer.done():
                    one.answer.set_exception(failure)
            return
        for one, answer in zip(batch, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)
