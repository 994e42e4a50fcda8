"""Page pictures: size, crop, encode. Nothing is decoded before a model really needs the pixels."""

from __future__ import annotations

import hashlib
import io
import math
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from seeact_offline.records import PNG, Box, CropBox, ImageFormat, Picture, RowError, Screenshot

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""Formats of pictures that are opened, by Pillow's names."""
MARGIN = 1024
"""Page pixels shown above and below a group (SeeAct)."""
KEPT_BYTES = 32_000_000 * (os.cpu_count() or 1)
"""Most bytes of decoded pages in the whole process: a tall one in colours has 25 MB, and each core encodes one."""
BLOCK_BYTES = 1 << 20
"""Bytes of Pillow's pieces of memory."""
MOST_STRETCHED = 200
"""Longest side over shortest, beyond which `smart_resize` refuses a picture."""


class PixelCache:
    """Keeps the pixels of the pages used last, as many as `budget` bytes hold; any thread may use it.

    A step needs its page again for every group, and many steps are under way at once.
    """

    def __init__(self, budget: int = KEPT_BYTES) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._bytes: OrderedDict[weakref.ref[PagePicture], int] = OrderedDict()

    def used(self, page: PagePicture, n_bytes: int) -> None:
        """Others forget theirs where there is no room for both. A page that nobody holds any more counts nothing."""
        with self._lock:
            others = {ref: size for ref, size in self._bytes.items() if ref() not in (None, page)}
            self._bytes = OrderedDict(others | {weakref.ref(page): n_bytes})
            while len(self._bytes) > 1 and sum(self._bytes.values()) > self._budget:
                oldest = self._bytes.popitem(last=False)[0]()
                if oldest is not None:
                    oldest.forget_pixels()


_PIXELS = PixelCache()


class PagePicture:
    """One step's screenshot, decoded once for all crops unless too many others are in use meanwhile."""

    def __init__(self, screenshot: Screenshot) -> None:
        self._screenshot = screenshot

    @cached_property
    def digest(self) -> str:
        """sha256 of the encoded file."""
        return hashlib.sha256(self._screenshot.read()).hexdigest()

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, from the file's header. Raises RowError `bad_screenshot`."""
        return self._opened.size

    @property
    def pixels(self) -> Image.Image:
        """The decoded RGB picture, not to be drawn on. Raises RowError `bad_screenshot`."""
        return _in_rgb(self._decoded())

    def part(self, box: CropBox) -> Image.Image:
        """A copy of these RGB pixels. Raises RowError `bad_screenshot`."""
        # cut before it is converted: a page of few colours has a byte to a pixel, one in RGB four
        return _in_rgb(self._decoded().crop(box))

    def forget_pixels(self) -> None:
        """They are decoded anew when they are needed again."""
        vars(self).pop("_opened", None)

    def _decoded(self) -> Image.Image:
        """The pixels in the file's own mode."""
        picture = self._opened
        try:
            picture.load()
        except (OSError, ValueError, SyntaxError) as error:
            raise _bad(error) from None
        _PIXELS.used(self, picture.width * picture.height * (1 if len(picture.getbands()) == 1 else 4))
        return picture

    @cached_property
    def format(self) -> str:
        """PNG, JPEG, WEBP, ... from the file's header. Raises RowError `bad_screenshot`."""
        return self._opened.format or ""

    @property
    def bytes_per_pixel(self) -> float:
        """Bytes of the file for each pixel: next to none for a picture of one colour."""
        return len(self._screenshot.read()) / max(self.size[0] * self.size[1], 1)

    def check_whole(self) -> None:
        """Raises RowError `bad_screenshot` for a file that is cut short, without decoding it: PNG by its checksums,
        JPEG by its end mark, WebP by the length it states; other formats are decoded."""
        data = self._screenshot.read()
        try:
            if self.format == "PNG":
                open_picture(data).verify()
            elif self.format == "JPEG" and b"\xff\xd9" not in data[-4096:]:
                raise OSError("a JPEG without an end mark")
            elif self.format == "WEBP" and len(data) < int.from_bytes(data[4:8], "little") + 8:
                raise OSError("a WebP file shorter than it says")
            elif self.format not in {"PNG", "JPEG", "WEBP"}:
                self._decoded()
        except (OSError, ValueError, SyntaxError) as error:
            raise _bad(error) from None

    def reduced(self, width: int) -> Image.Image:
        """The RGB picture about `width` pixels across, cheap for formats that decode at a reduced size. Raises
        RowError."""
        from PIL import Image

        try:
            picture = self._opened
            height = max(1, round(picture.height * width / picture.width))
            picture.draft("RGB", (width, height))
            return picture.resize((width, height), Image.Resampling.NEAREST).convert("RGB")
        except (OSError, ValueError, SyntaxError) as error:
            raise _bad(error) from None

    @cached_property
    def _opened(self) -> Image.Image:
        from PIL import Image

        try:
            return open_picture(self._screenshot.read())
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise _bad(error) from None

    def crop(self, box: CropBox, max_side: int | None = None, size: tuple[int, int] | None = None) -> Crop:
        """`max_side`: pixels that neither side of the crop as shown may exceed; None: shown as it is. `size`: its very
        size."""
        return Crop(self, box, max_side, size)


class Crop:
    """Part of a page picture, made smaller where it must be. Equal crops of equal files have equal keys."""

    def __init__(
        self, page: PagePicture, box: CropBox, max_side: int | None = None, size: tuple[int, int] | None = None
    ) -> None:
        if max_side is not None and max_side < 1:
            raise ValueError(f"max_side must be 1 or more, got {max_side}")
        self._page = page
        self.box = box
        # shown pixels per page pixel; each side is then rounded to whole pixels, at least one
        self.scale = 1.0 if max_side is None else min(1.0, max_side / max(box.size))
        self._size = size

    @property
    def size(self) -> tuple[int, int]:
        """Width and height as shown."""
        if self._size is not None:
            return self._size
        width, height = self.box.size
        return max(1, round(width * self.scale)), max(1, round(height * self.scale))

    @property
    def resized(self) -> bool:
        return self.size != self.box.size

    @property
    def key(self) -> str:
        shown = "@{}x{}".format(*self.size) if self.resized else ""
        return f"{self._page.digest}:{','.join(map(str, self.box))}{shown}"

    def to_page(self, x: float, y: float) -> tuple[float, float]:
        """A point of the picture as shown -> the point of the page that is seen there."""
        (width, height), (shown_width, shown_height) = self.box.size, self.size
        return self.box.x0 + x * width / shown_width, self.box.y0 + y * height / shown_height

    def from_page(self, x: float, y: float) -> tuple[float, float]:
        """A point of the page -> where it is seen in the picture as shown, the inverse of `to_page`."""
        (width, height), (shown_width, shown_height) = self.box.size, self.size
        return (x - self.box.x0) * shown_width / width, (y - self.box.y0) * shown_height / height

    def image(self) -> Image.Image:
        """The RGB pixels as shown, the caller's own to draw on. Raises RowError `bad_screenshot`."""
        from PIL import Image

        if self.resized:
            return self._page.pixels.resize(self.size, Image.Resampling.LANCZOS, box=self.box)
        return self._page.part(self.box)

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        return encode(self.image(), image_format)


def open_picture(data: bytes) -> Image.Image:
    """Opens an encoded picture, the only way of doing so; its pixels are not decoded yet. Raises OSError for other
    formats.

    Left to itself, Pillow tries all it knows, and starts Ghostscript on EPS.
    """
    from PIL import Image, UnidentifiedImageError

    # pixels in pieces of one size fit where others were: in blocks of 16 MB, a run's memory grows by 120 MB
    Image.core.set_block_size(BLOCK_BYTES)  # type: ignore[attr-defined]
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        raise OSError(f"no readable {', '.join(FORMATS[:-1])} or {FORMATS[-1]}") from None


def encode(image: Image.Image, image_format: ImageFormat = PNG) -> bytes:
    """The bytes of a file of this format; the same picture gives the same bytes. No side may exceed its
    `longest_side`."""
    if image_format.quality is None:
        out = io.BytesIO()
        # level 1 halves the time of the default for some 10 % more bytes
        image.save(out, image_format.kind, compress_level=1)
        return out.getvalue()
    # a file with a descriptor, where there is such: Pillow then encodes JPEG without holding up the other threads
    with open(os.memfd_create("picture"), "w+b") if hasattr(os, "memfd_create") else io.BytesIO() as file:
        image.save(file, image_format.kind, quality=image_format.quality)
        file.seek(0)
        return file.read()


def _in_rgb(image: Image.Image) -> Image.Image:
    return image if image.mode == "RGB" else image.convert("RGB")


def smart_resize(width: int, height: int, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """The size to which Qwen2-VL's processor scales a picture: both sides multiples of `factor`, at most `max_pixels`
    in all.

    Raises ValueError for a picture over 200 times as long as wide. Source: QwenLM/Qwen3-VL 9658872, qwen-vl-utils.

    >>> smart_resize(1280, 800, factor=28, min_pixels=3_136, max_pixels=12_845_056)
    (1288, 812)
    >>> smart_resize(1280, 5000, factor=28, min_pixels=3_136, max_pixels=1_003_520)
    (504, 1960)
    """
    if max(width, height) > MOST_STRETCHED * min(width, height):
        raise ValueError(f"expected a picture at most {MOST_STRETCHED} times as long as wide, got {width} x {height}")
    new = [max(factor, factor * round(side / factor)) for side in (width, height)]
    if new[0] * new[1] > max_pixels:
        scale = math.sqrt(width * height / max_pixels)
        new = [max(factor, factor * math.floor(side / scale / factor)) for side in (width, height)]
    elif new[0] * new[1] < min_pixels:
        scale = math.sqrt(min_pixels / (width * height))
        new = [factor * math.ceil(side * scale / factor) for side in (width, height)]
    return new[0], new[1]


def group_crop(boxes: Iterable[Box], size: tuple[int, int], margin: int = MARGIN) -> CropBox:
    """The part of the page that a group is shown: full width, `_rows_shown` of them.

    A group whose part is empty is shown the nearest strip of one pixel.
    """
    width, height = size
    top, bottom = _rows_shown(list(boxes), height, margin)
    top = min(top, max(0, height - 1))
    return CropBox(0, top, width, max(bottom, top + 1))


def shown_box(picture: Picture | None) -> list[int] | None:
    """Page pixels that a picture shows; None if it is no crop of a page."""
    return None if picture is None or picture.box is None else list(picture.box)


def is_crop_empty(boxes: Sequence[Box], size: tuple[int, int], margin: int = MARGIN) -> bool:
    """Tells whether the whole group lies farther than `margin` above or below the picture."""
    top, bottom = _rows_shown(boxes, size[1], margin)
    return bottom <= top


def _rows_shown(boxes: Sequence[Box], height: int, margin: int) -> tuple[int, int]:
    """First and last (exclusive) row: from `margin` above the topmost box to `margin` below the lowest bottom edge, as
    far as the picture reaches. Rounding is half to even, as in SeeAct's released example (crops of 2529, 5808 and 3224
    px)."""
    top = max(0, round(min(box.y for box in boxes) - margin))
    return top, min(height, round(max(box.bottom for box in boxes) + margin))


def _bad(error: Exception) -> RowError:
    return RowError("bad_screenshot", f"the screenshot cannot be decoded: {' '.join(str(error).split())[:200]}")
