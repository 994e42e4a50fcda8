"""Pictures as data URLs, the form in which chat completions take them."""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict

from seeact_offline.records import ImageFormat, Picture

BUDGET = 64 * 1024 * 1024
"""Characters of all kept URLs together."""


class DataUrls:
    """Encodes each picture once while it is kept: turn 2 shows the picture of turn 1 again, and equal crops have equal keys.

    Belongs to the event loop that first asks it.
    """

    def __init__(self, image_format: ImageFormat, budget: int = BUDGET) -> None:
        """Of the URLs asked for last as many are kept as `budget` characters hold."""
        self._format = image_format
        self._budget = budget
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[str]] = {}

    async def get(self, picture: Picture) -> str:
        """Encodes in a thread, for pages are large. Raises what `picture.encoded` raises."""
        key = picture.key
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        task = self._under_way.get(key) or self._begin(key, picture)
        # shielded: a step that is given up must not fail another that waits for the same picture
        return await asyncio.shield(task)

    def _begin(self, key: str, picture: Picture) -> asyncio.Task[str]:
        task = asyncio.create_task(asyncio.to_thread(self._url, picture))
        self._under_way[key] = task
        task.add_done_callback(lambda done: self._finished(key, done))
        return task

    def _url(self, picture: Picture) -> str:
        content = base64.b64encode(picture.encoded(self._format)).decode("ascii")
        return f"data:{self._format.mime};base64,{content}"

    def _finished(self, key: str, task: asyncio.Task[str]) -> None:
        del self._under_way[key]
        # looking at the error marks it as seen: when every caller has given up, nobody else does
        if task.cancelled() or task.exception() is not None:
            return
        self._kept[key] = task.result()
        while sum(map(len, self._kept.values())) > self._budget:
            self._kept.popitem(last=False)
