"""One site for all that the viewer shows: files by name, and the steps and pictures that were asked for last."""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.resources import files
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import CropBox, ImageFormat, RowError, StepKey

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
PART_HEIGHT = 2048
"""Most pixels from the top of a part of a page to its bottom: the first is seen before the others are encoded."""
OPEN_STEPS = 3
"""Steps whose pages stay in memory."""
PICTURES = 256
"""Pictures whose files stay in memory, of some 200 kB each."""


@dataclass(frozen=True, slots=True)
class File:
    """Content of a name."""

    content: bytes
    mime: str


def static_files() -> dict[str, File]:
    """The page itself: HTML, style sheets and scripts, by name."""
    folder = files("seeact_offline.viewer") / "static"
    resources = sorted((file for file in folder.iterdir() if file.is_file()), key=lambda file: file.name)
    return {
        file.name: File(file.read_bytes(), MIME[Path(file.name).suffix])
        for file in resources
        if Path(file.name).suffix in MIME
    }


def json_file(value: object) -> File:
    """JSON that browsers can read: null for numbers that JSON lacks."""
    try:
        content = msgspec.json.encode(value)
    except (ValueError, OverflowError):
        # half of a surrogate pair in a model's text, or a huge number, must not keep the file from being written
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        content = json.dumps(finite, separators=(",", ":")).encode()
    return File(content, MIME[".json"])


def webp(image: Image.Image) -> bytes:
    """The picture as a WebP file, made smaller where it is too large for the format."""
    longest = max(image.size)
    if longest > LONGEST_SIDE:
        width, height = (max(1, side * LONGEST_SIDE // longest) for side in image.size)
        image = image.resize((width, height))
    out = io.BytesIO()
    image.save(out, "webp", quality=QUALITY, method=EFFORT)
    return out.getvalue()


@dataclass(frozen=True)
class StepFiles:
    """A step as JSON, and its pictures."""

    json: dict[str, Any]
    images: Mapping[str, Callable[[], Image.Image]] = field(default_factory=dict)
    """Name of each picture -> a function that decodes it; raises RowError."""


class StepSite:
    """A site, as files by name that are made when they are asked for, by the server and by a bundle alike: the page
    itself, `index.json` and other tables, one JSON file a step, and the steps' pictures.

    A name is looked up among those that exist; no part of it ever becomes a path. Any thread may ask.
    """

    folder: ClassVar[str]
    """Folder of the steps' files."""

    def __init__(self) -> None:
        self._static = static_files()
        self._steps_lock = threading.RLock()
        self._steps: OrderedDict[StepKey, StepFiles] = OrderedDict()
        self._webp = lru_cache(PICTURES)(self._encoded)

    def keys(self) -> Mapping[str, StepKey]:
        """The steps by name."""
        raise NotImplementedError

    def tables(self) -> Mapping[str, Callable[[], Any]]:
        """Names of files beside the steps' -> the function that makes their JSON, or the whole File."""
        raise NotImplementedError

    def open_step(self, key: StepKey) -> StepFiles:
        """Reads a step. The last ones are kept."""
        raise NotImplementedError

    def step_json(self, key: StepKey) -> dict[str, Any]:
        """The file of a step, with what changes while it is kept."""
        return self.step(key).json

    def post(self, name: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Writes what a person sends. Returns the status and JSON of the answer."""
        raise NotImplementedError

    def prepare(self) -> list[str]:
        """Does what makes later requests quick. Returns the problems that this finds."""
        return []

    def close(self) -> None:
        """Releases the files of a person's notes."""

    def names(self, pictures: bool = True) -> Iterator[str]:
        """Every name that exists, `index.html` first. `pictures`: with those, for which each step is opened."""
        yield from sorted(self._static, key=lambda name: (name != "index.html", name))
        yield from self.tables()
        for name, key in list(self.keys().items()):
            yield f"{self.folder}/{name}.json"
            if pictures:
                yield from self.step(key).images

    def get(self, name: str) -> File | None:
        """None for a name that does not exist."""
        if name in self._static:
            return self._static[name]
        keys = self.keys()
        if (make := self.tables().get(name)) is not None:
            value = make()
            return value if isinstance(value, File) else json_file(value)
        folder, _, rest = name.partition("/")
        if folder == "img":
            key = keys.get(rest.partition("-")[0])
            content = None if key is None else self._webp(name, key)
            return None if content is None else File(content, MIME[".webp"])
        key = keys.get(rest.removesuffix(".json"))
        return json_file(self.step_json(key)) if folder == self.folder and rest.endswith(".json") and key else None

    def step(self, key: StepKey) -> StepFiles:
        with self._steps_lock:
            self._steps[key] = self._steps.pop(key) if key in self._steps else self.open_step(key)
            while len(self._steps) > OPEN_STEPS:
                self._steps.popitem(last=False)
            return self._steps[key]

    def forget_steps(self) -> None:
        """Steps are opened anew. A picture's name changes with the picture."""
        with self._steps_lock:
            self._steps.clear()

    def _encoded(self, name: str, key: StepKey) -> bytes | None:
        """The picture of this name, which belongs to this step; None where there is none."""
        # one at a time: a page is decoded once for all of its parts
        with self._steps_lock:
            pixels = self.step(key).images.get(name)
            try:
                image = None if pixels is None else pixels()
            except RowError:
                return None
        return None if image is None else webp(image)


# --- names of steps and pictures ---


def step_name(key: StepKey) -> str:
    """Name of a step in names of files: 16 hexadecimal digits."""
    return hashlib.sha256(str(key).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def image_name(key: StepKey, content: str) -> str:
    """Name of a picture of a step. `content`: the same for the same picture."""
    return f"img/{step_name(key)}-{hashlib.sha256(content.encode()).hexdigest()[:12]}.webp"


def page_parts(size: tuple[int, int]) -> list[CropBox]:
    """A page of this width and height from its top down, in parts of about the same height."""
    width, height = size
    n = max(1, ceil(height / PART_HEIGHT))
    cuts = [round(height * i / n) for i in range(n + 1)]
    return [CropBox(0, top, width, bottom) for top, bottom in pairwise(cuts)]


def picture_json(key: StepKey, picture: PagePicture, images: dict[str, Callable[[], Image.Image]]) -> dict[str, Any]:
    """A picture in parts as JSON. Adds the pixels of each part to `images`. Raises RowError for one that cannot be
    read."""
    width, height = picture.size
    parts = []
    for box in page_parts(picture.size):
        name = image_name(key, f"{picture.digest} part {box}")
        images[name] = partial(picture.part, box)
        parts.append({"top": box.y0, "height": box.y1 - box.y0, "src": name})
    return {"width": width, "height": height, "parts": parts}
