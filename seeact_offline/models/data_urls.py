"""Pictures as data URLs, the form in which chat completions take them."""

from __future__ import annotations

import asyncio
import base64
import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from seeact_offline.records import ImageFormat, Picture

BUDGET = 64 * 1024 * 1024
"""Bytes of all kept URLs together."""


class DataUrls:
    """Encodes each picture once while it is kept: turn 2 shows the picture of turn 1 again, and equal crops have equal keys.

    Belongs to the event loop that first asks it.
    """

    def __init__(self, image_format: ImageFormat, budget: int = BUDGET) -> None:
        """Keeps as many of the URLs asked for last as `budget` bytes hold."""
        self._format, self._budget = image_format, budget
        self._urls: OrderedDict[str, asyncio.Future[bytes]] = OrderedDict()
        self._sizes: dict[str, int] = {}
        """Bytes of each URL that is encoded."""
        # more would not be done sooner, and each holds a page's pixels meanwhile
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1, "pictures")

    async def get(self, picture: Picture) -> bytes:
        """The URL in ASCII. Encodes in a thread, for pages are large. Raises what `picture.encoded` raises."""

        def encode(picture: Picture) -> bytes:
            return b"data:%b;base64,%b" % (self._format.mime.encode(), base64.b64encode(picture.encoded(self._format)))

        key = picture.key
        if key not in self._urls:
            loop = asyncio.get_running_loop()
            self._urls[key] = task = loop.run_in_executor(self._threads, encode, picture)
            task.add_done_callback(lambda done: self._encoded(key, done))
        self._urls.move_to_end(key)
        # shielded: a step that is given up must not fail another that waits for the same picture
        return await asyncio.shield(self._urls[key])

    def _encoded(self, key: str, task: asyncio.Future[bytes]) -> None:
        # looking at the error marks it as seen: when every caller has given up, nobody else does
        if task.cancelled() or task.exception() is not None:
            del self._urls[key]
            return
        self._sizes[key] = len(task.result())
        for oldest in [key for key in self._urls if key in self._sizes]:
            if sum(self._sizes.values()) <= self._budget:
                break
            del self._urls[oldest], self._sizes[oldest]
