"""Geometry of what an agent is shown: a part of the page as a picture, and the numbers in which places on it are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from seeact_offline.pages.screenshots import smart_resize

Size = tuple[int, int]
"""Width and height in pixels."""
Rectangle = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels of the page."""
Point = tuple[float, float]
Rule = Literal["none", "smart", "linear", "exact", "fit"]
BLOCK_WIDTH, BLOCK_HEIGHT, BLOCK_STEP = 1280, 1000, 800
"""Pixels of UGround's blocks and of the scroll between two. Source: OSU-NLP-Group/UGround 3a9b9f2."""


def linear_resize(width: int, height: int, min_pixels: int, max_pixels: int) -> Size:
    """The size to which UI-TARS' clients scale a picture: truncated where it is too large, rounded up where it is too small."""
    pixels = width * height
    if pixels > max_pixels:
        scale = math.sqrt(max_pixels / pixels)
        return int(width * scale), int(height * scale)
    if pixels < min_pixels:
        scale = math.sqrt(min_pixels / pixels)
        return math.ceil(width * scale), math.ceil(height * scale)
    return width, height


def blocks(width: int, height: int) -> list[Rectangle]:
    """UGround's blocks of a page: at most 1280 pixels wide and 1000 high, one every 800 pixels.

    Source: OSU-NLP-Group/UGround 3a9b9f2. A page of 200 pixels or less is one block, where the released rule has none.
    """
    count = max(1, (height - (BLOCK_HEIGHT - BLOCK_STEP)) // BLOCK_STEP + 1)
    right = min(width, BLOCK_WIDTH)
    return [(0, top, right, min(top + BLOCK_HEIGHT, height)) for top in range(0, count * BLOCK_STEP, BLOCK_STEP)]


@dataclass(frozen=True, slots=True)
class Resize:
    """A rule by which a picture is scaled."""

    rule: Rule = "none"
    factor: int = 28
    min_pixels: int = 0
    max_pixels: int = 0
    size: Size = (0, 0)
    """`exact`: the size; `fit`: a frame into which a larger picture is scaled, keeping its shape."""

    def apply(self, size: Size) -> Size:
        """The size of a picture once it is scaled. Raises ValueError where the rule refuses it."""
        return _RULES[self.rule](self, size)


def _fit(rule: Resize, size: Size) -> Size:
    scale = min(1.0, *(limit / side for limit, side in zip(rule.size, size, strict=True)))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


_RULES: dict[str, Callable[[Resize, Size], Size]] = {
    "none": lambda rule, size: size,
    "smart": lambda rule, size: smart_resize(*size, rule.factor, rule.min_pixels, rule.max_pixels),
    "linear": lambda rule, size: linear_resize(*size, rule.min_pixels, rule.max_pixels),
    "exact": lambda rule, size: rule.size,
    "fit": _fit,
}


@dataclass(frozen=True, slots=True)
class Frame:
    """The numbers in which places are written: pixels of the picture as the model sees it, or shares of its sides."""

    scale: float | None = None
    """Number at the right and bottom edge; None: pixels."""
    decimals: int = 0
    """Digits after the point with which a place is written."""
    rounded_to: int | None = None
    """Digits to which a place is rounded before that; None: it is rounded once."""
    clamps: bool = False
    """True if a place beyond the picture is moved to its edge, and not refused, where replies are read strictly."""
    reads_fractions: bool = False
    """True if two numbers from 0 to 1 are shares of the sides, though places are written in pixels."""
    y_first: bool = False
    """True if the first number of a place counts down the picture, and the second one across it."""
    resize: Resize = field(default_factory=Resize)
    """The model's own scaling of the picture that it is sent."""

    def extent(self, sent: Size) -> Point:
        """The first and second number at the far edges of a picture of this size. Raises ValueError as `Resize.apply`."""
        if self.scale is not None:
            return self.scale, self.scale
        return self.ordered(self.resize.apply(sent))

    def ordered(self, pair: Point) -> Point:
        """Turns x and y into the order of the frame, and back."""
        return (pair[1], pair[0]) if self.y_first else pair

    def describe(self, sent: Size) -> str:
        """The frame in words, for people."""
        width, height = self.ordered(self.extent(sent))
        numbers = f"pixels of {width:g} x {height:g}" if self.scale is None else f"0 to {self.scale:g}"
        return numbers + ", y before x" * self.y_first


PIXELS = Frame()
"""Pixels of the picture as sent."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of the page as it was sent.

    The second thousand pixels of a page, sent at half their size:

    >>> shown = Shown(page=(1280, 5000), sent=(640, 500), part=(0, 1000, 1280, 2000))
    >>> shown.to_page((320, 250)), shown.from_page((640, 1500))
    ((640.0, 1500.0), (320, 250))
    >>> shown.from_page((640, 1500), Frame(scale=1000))
    (500, 500)
    """

    page: Size
    """Pixels of the whole page."""
    sent: Size
    """Pixels of the picture."""
    part: Rectangle
    """The part of the page that the picture shows."""

    @classmethod
    def whole(cls, page: Size, sent: Size | None = None) -> Shown:
        """The whole page, in its own size unless another is given."""
        return cls(page, sent or page, (0, 0, *page))

    def to_page(self, place: Point, frame: Frame = PIXELS) -> Point:
        """The place in pixels of the page. Raises ValueError for a picture that the frame's rule refuses."""
        left, top, right, bottom = self.part
        first, second = frame.extent(self.sent)
        x, y = frame.ordered((place[0] / first, place[1] / second))
        return left + x * (right - left), top + y * (bottom - top)

    def from_page(self, place: Point, frame: Frame = PIXELS) -> Point:
        """The place in numbers of the frame, rounded as they are written. Raises ValueError as `to_page`."""
        left, top, right, bottom = self.part
        shares = frame.ordered(((place[0] - left) / (right - left), (place[1] - top) / (bottom - top)))
        first, second = (share * edge for share, edge in zip(shares, frame.extent(self.sent), strict=True))
        if frame.rounded_to is not None:
            first, second = round(first, frame.rounded_to), round(second, frame.rounded_to)
        # whole numbers are written without a point
        digits = frame.decimals or None
        return round(first, digits), round(second, digits)
