"""Files that a site has under names, and the pictures that were asked for last."""

from __future__ import annotations

import io
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.records import ImageFormat, RowError, StepKey

if TYPE_CHECKING:
    from PIL import Image

MIME = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".webp": "image/webp",
    ".txt": "text/plain; charset=utf-8",
}
QUALITY = 80
EFFORT = 1
"""WebP's method, 0 to 6. A higher one takes twice as long for files that are a quarter smaller."""
LONGEST_SIDE = ImageFormat("webp", QUALITY).longest_side or 0
OPEN_STEPS = 3
"""Steps whose pages stay in memory."""
CACHE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class File:
    """Content of a name."""

    content: bytes
    mime: str


def static_files() -> dict[str, File]:
    """The page itself: HTML, style sheets and scripts, by name."""
    folder = files("seeact_offline.viewer") / "static"
    found = sorted((one for one in folder.iterdir() if one.is_file()), key=lambda one: one.name)
    return {
        one.name: File(one.read_bytes(), MIME[Path(one.name).suffix]) for one in found if Path(one.name).suffix in MIME
    }


def json_file(value: object) -> File:
    """JSON that browsers can read: ASCII alone, and null for numbers that JSON lacks."""
    # ASCII only: half of a surrogate pair in a model's text must not keep the file from being written
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        # NaN and infinity, of a file that another program wrote
        known = json.loads(json.dumps(value), parse_constant=lambda _: None)
        text = json.dumps(known, separators=(",", ":"))
    return File(text.encode(), MIME[".json"])


def webp(image: Image.Image) -> bytes:
    """The picture as a WebP file, made smaller where it is too large for the format."""
    longest = max(image.size)
    if longest > LONGEST_SIDE:
        width, height = (max(1, side * LONGEST_SIDE // longest) for side in image.size)
        image = image.resize((width, height))
    out = io.BytesIO()
    image.save(out, "webp", quality=QUALITY, method=EFFORT)
    return out.getvalue()


class FileCache:
    """Contents of the files used last, up to `budget` bytes. Any thread may use it."""

    def __init__(self, budget: int = CACHE_BYTES) -> None:
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
        """Adds a file. One that is larger than the budget is not kept."""
        with self._lock:
            self._size += len(content) - len(self._files.pop(name, b""))
            self._files[name] = content
            while self._size > self._budget:
                self._size -= len(self._files.popitem(last=False)[1])


@dataclass(frozen=True)
class StepFiles:
    """A step as JSON, and its pictures."""

    json: dict[str, Any]
    images: Mapping[str, Callable[[], Image.Image]] = field(default_factory=dict)
    """Name of each picture -> a function that decodes it; raises RowError."""


class StepCache:
    """The steps that were opened last, and their pictures. Any thread may use it."""

    def __init__(self, open_step: Callable[[StepKey], StepFiles]) -> None:
        self._open = open_step
        self._lock = threading.RLock()
        self._steps: OrderedDict[StepKey, StepFiles] = OrderedDict()
        self._pictures = FileCache()

    def step(self, key: StepKey) -> StepFiles:
        with self._lock:
            self._steps[key] = self._steps.pop(key) if key in self._steps else self._open(key)
            while len(self._steps) > OPEN_STEPS:
                self._steps.popitem(last=False)
            return self._steps[key]

    def picture(self, name: str, key: StepKey | None) -> File | None:
        """The picture of this name, which belongs to this step; None where there is none."""
        content = self._pictures.get(name)
        if content is None:
            pixels = None if key is None else self.step(key).images.get(name)
            if pixels is None:
                return None
            try:
                # one at a time: a page is decoded once for all of its parts
                with self._lock:
                    image = pixels()
            except RowError:
                return None
            content = webp(image)
            self._pictures.put(name, content)
        return File(content, MIME[".webp"])

    def clear(self) -> None:
        """Forgets the steps. A picture's name changes with the picture."""
        with self._lock:
            self._steps.clear()
