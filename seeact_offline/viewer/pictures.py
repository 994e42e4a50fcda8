"""Pictures as WebP files, and the files that were asked for last."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from seeact_offline.records import CropBox, ImageFormat

if TYPE_CHECKING:
    from PIL import Image

QUALITY = 80
EFFORT = 1
"""Of WebP's 0 to 6: more takes twice as long for files smaller by a quarter."""
PART = 2048
"""Most pixels from the top of a part of a page to its bottom: the first is seen before the others are encoded."""
LONGEST = ImageFormat("webp", QUALITY).longest_side or 0
KEPT_BYTES = 64_000_000


def parts_of(size: tuple[int, int]) -> list[CropBox]:
    """A page of this width and height from its top down, in parts of about the same height."""
    width, height = size
    n = max(1, ceil(height / PART))
    cuts = [round(height * i / n) for i in range(n + 1)]
    return [CropBox(0, top, width, bottom) for top, bottom in pairwise(cuts)]


def webp(image: Image.Image) -> bytes:
    """A picture too large for the format is made smaller."""
    longest = max(image.size)
    if longest > LONGEST:
        width, height = (max(1, side * LONGEST // longest) for side in image.size)
        image = image.resize((width, height))
    out = io.BytesIO()
    image.save(out, "webp", quality=QUALITY, method=EFFORT)
    return out.getvalue()


class Kept:
    """The contents of files by name, as many of those used last as `budget` bytes hold. Any thread may use it."""

    def __init__(self, budget: int = KEPT_BYTES) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._files: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def get(self, name: str) -> bytes | None:
        with self._lock:
            if name in self._files:
                self._files.move_to_end(name)
            return self._files.get(name)

    def put(self, name: str, content: bytes) -> None:
        """What is larger than the budget is not kept."""
        with self._lock:
            self._size += len(content) - len(self._files.pop(name, b""))
            self._files[name] = content
            while self._size > self._budget:
                self._size -= len(self._files.popitem(last=False)[1])

    def clear(self) -> None:
        with self._lock:
            self._files.clear()
            self._size = 0
