"""Marks on a picture: a red box around each element and a label beside it. `docs/marks.md` says the same for people.

Boxes are drawn by the supervision library, labels by Pillow, at places that this module chooses: no label covers another
as long as there is room around its own box.

Coordinates are whole pixels of the picture that is drawn on. A label lies on one of its box's *rails*, lines along which
it slides beside or inside the box (`_rails`). Labels are placed one after the other in the order given. Each takes the
place nearest to its anchor on the first rail that has one clear of the labels before it and of the boxes of other
elements (boxes around its own do not count); in the absence of such a place, on the first rail that has one clear of
labels; where none has, the place of all that covers the least of the labels before it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from string import ascii_uppercase
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from seeact_offline.records import Box, InputError

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageFont import FreeTypeFont

MarkKind = Literal["number", "letter", "double-letter"]
MARK_KINDS: tuple[MarkKind, ...] = get_args(MarkKind)
MarkPosition = Literal["bottom-left", "bottom-center", "bottom-right", "top-left", "top-center", "top-right", "center"]
MARK_POSITIONS: tuple[MarkPosition, ...] = get_args(MarkPosition)
MarkPlace = Literal["corner", "outside"]
MARK_PLACES: tuple[MarkPlace, ...] = get_args(MarkPlace)
"""corner: as released, over the element where its corner lies so; outside: beside the element as long as there is room."""

NO_MARK = "NA"
"""The answer for "no marked element", and so never a label."""
STYLE = 2
"""Goes up whenever the same marks are drawn in another way, so that no cached answer is taken for a new picture."""
LINE = 2
"""Thickness of a box as supervision counts it: OpenCV's lines of 2 are 3 px wide, one on either side of the edge."""
OUTLINE = "white"
REACH = 1
"""Pixels by which a box's line lies outside the box, and as many inside of the edge pixel."""
FONT_SIZE = 16
"""As released: capitals 11 pixels tall."""
PADDING = 10
"""Pixels around a label's text, as released: a label of one letter is about 31 by 31."""
GAP = 2
"""Pixels kept free between two labels, for two that touch read as one."""
TALL = 2.5
"""Label heights from which a box has room for its label inside."""
AWAY = 4
"""Steps of a label's height that a label may be away from its box; then a line leads to it."""


@dataclass(frozen=True, slots=True)
class Marks:
    """How elements are marked."""

    kind: MarkKind = "number"
    position: MarkPosition = "bottom-left"
    in_turn1: bool = False
    """Whether turn 1 shows the marked picture too."""
    text_size: int = FONT_SIZE
    """Pixels, as fonts count them."""
    padding: int = PADDING
    """Pixels around a label's text."""
    placing: MarkPlace = "corner"
    outlined: bool = False
    """Whether a white line goes around boxes and labels, which are red and black, so that they stand out on a dark page."""

    @property
    def place(self) -> str:
        """Where labels stand, in words for a prompt."""
        corner = _PLACES[self.position]
        return corner if self.placing == "corner" else f"outside its box, {corner} where there is room"

    @property
    def look(self) -> str:
        """What labels are, in words for a prompt."""
        return _LOOKS[self.kind]


_LOOKS: dict[MarkKind, str] = {"number": "number", "letter": "letter", "double-letter": "pair of letters"}
_PLACES: dict[MarkPosition, str] = {
    "bottom-left": "at the bottom left corner of its box",
    "bottom-center": "at the middle of the bottom edge of its box",
    "bottom-right": "at the bottom right corner of its box",
    "top-left": "at the top left corner of its box",
    "top-center": "at the middle of the top edge of its box",
    "top-right": "at the top right corner of its box",
    "center": "in the middle of its box",
}


class Rect(NamedTuple):
    """Whole pixels; right and bottom exclusive."""

    x0: int
    y0: int
    x1: int
    y1: int

    def meets(self, other: Rect) -> bool:
        """Whether any pixel is in both."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def contains(self, other: Rect) -> bool:
        """Whether all of the other's pixels are in this one; equal ones contain each other."""
        return self.x0 <= other.x0 and self.y0 <= other.y0 and self.x1 >= other.x1 and self.y1 >= other.y1

    def overlap(self, other: Rect) -> int:
        """Pixels in both."""
        width = min(self.x1, other.x1) - max(self.x0, other.x0)
        height = min(self.y1, other.y1) - max(self.y0, other.y0)
        return width * height if width > 0 and height > 0 else 0


class Size(NamedTuple):
    """Whole pixels."""

    width: int
    height: int


# --- labels ----------------------------------------------------------------------------------------------------------

_LETTERS = tuple(ascii_uppercase)
_PAIRS = tuple("".join(pair) for pair in product(_LETTERS, repeat=2) if "".join(pair) != NO_MARK)
_LABELS: dict[MarkKind, tuple[str, ...]] = {"letter": _LETTERS, "double-letter": _PAIRS}


def mark_capacity(kind: MarkKind) -> int | None:
    """How many elements of one picture can be told apart: 26 letters, 675 pairs (all but NA); None: any number."""
    return None if kind == "number" else len(_LABELS[kind])


def mark_labels(kind: MarkKind, count: int) -> tuple[str, ...]:
    """The labels of `count` elements in order: 1, 2, ...; A, B, ...; AA, AB, ... Raises InputError for too many."""
    check_capacity(kind, count)
    return tuple(str(i + 1) for i in range(count)) if kind == "number" else _LABELS[kind][:count]


def check_capacity(kind: MarkKind, count: int) -> None:
    """Raises InputError when a picture of `count` elements needs more labels than there are, and says what to use."""
    capacity = mark_capacity(kind)
    if capacity is not None and count > capacity:
        instead = "double-letter or number" if count <= len(_PAIRS) else "number"
        raise InputError("marks", f"at most {capacity} elements in one picture for {kind}", f"{count}; use {instead}")


# --- boxes -----------------------------------------------------------------------------------------------------------


def visible(box: Box, page: tuple[int, int]) -> Box | None:
    """The part of a box that lies on the page; None for a box without area or wholly outside."""
    x0, y0 = max(box.x, 0.0), max(box.y, 0.0)
    x1, y1 = min(box.right, float(page[0])), min(box.bottom, float(page[1]))
    return Box(x0, y0, x1 - x0, y1 - y0) if box.w > 0 and box.h > 0 and x1 > x0 and y1 > y0 else None


def pixel_rect(x0: float, y0: float, x1: float, y1: float, picture: tuple[int, int]) -> Rect:
    """The pixels that a rectangle touches, inside the picture, at least one."""
    left, top = min(max(math.floor(x0), 0), picture[0] - 1), min(max(math.floor(y0), 0), picture[1] - 1)
    right, bottom = min(max(math.ceil(x1), left + 1), picture[0]), min(max(math.ceil(y1), top + 1), picture[1])
    return Rect(left, top, right, bottom)


# --- where labels go -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rail:
    """A line along which a label slides: its left or top edge varies from `low` to `high`, the other one is fixed."""

    horizontal: bool
    fixed: int
    low: int
    high: int
    anchor: int
    """Where on the line the label should be."""

    def at(self, start: int, size: Size) -> Rect:
        x, y = (start, self.fixed) if self.horizontal else (self.fixed, start)
        return Rect(x, y, x + size.width, y + size.height)

    def band(self, size: Size) -> Rect:
        """All that a label on the line may cover."""
        first, last = self.at(self.low, size), self.at(self.high, size)
        return Rect(first.x0, first.y0, last.x1, last.y1)

    def starts(self, size: Size, obstacles: Iterable[Rect]) -> list[int]:
        """The anchor, and the places right beside an obstacle, nearest to the anchor first, of equal ones the later.

        If any place of the line is free so is one of these, and no other free place is nearer to the anchor.
        """
        span = size.width if self.horizontal else size.height
        ends = [(r.x0, r.x1) if self.horizontal else (r.y0, r.y1) for r in obstacles]
        beside = {place for low, high in ends for place in (low - span, high)}
        inside = {place for place in beside if self.low <= place <= self.high} | {self.anchor}
        return sorted(inside, key=lambda place: (abs(place - self.anchor), -place))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where labels go."""

    spots: tuple[Rect, ...]
    """In the order of the boxes; inside the picture."""
    n_off_position: int
    """How many do not stand where they were asked to, as they would cover another label there."""


def place_outside(
    boxes: Sequence[Rect], sizes: Sequence[Size], picture: tuple[int, int], position: MarkPosition
) -> Placement:
    """No label covers its own box as long as there is room beside or near it; else it goes where `place_labels` would put it.

    A label takes the place nearest to its corner on the first line outside that has one clear of the labels before it and of
    other boxes, but for those around its own; where there is none, of the labels.
    """
    spots: list[Rect] = []
    moved = 0
    for box, size in zip(boxes, sizes, strict=True):
        rails, labels = _outer_rails(box, size, picture, position), [_grown(other, GAP) for other in spots]
        foreign = [_grown(other, REACH) for other in boxes if not other.contains(box)]
        tried = (_free_spot(rail, size, [box, *some]) for some in ([*labels, *foreign], labels) for rail in rails)
        spot = next((one for one in tried if one is not None), None)
        spots.append(_place(_rails(box, size, picture, position), size, spots, foreign) if spot is None else spot)
        moved += spots[-1] != _at_corner(box, size, picture, position)[0]
    return Placement(tuple(spots), moved)


def place_labels(
    boxes: Sequence[Rect], sizes: Sequence[Size], picture: tuple[int, int], position: MarkPosition
) -> Placement:
    """A label stands at the named corner of its box, and leaves it only where it would cover another label.

    It stands outside along the edge, as released, where that is free of labels; of those that would cover each other there the
    first stays. The others go to another side of the same corner. Those for which no side is free are placed last, each on the
    first line of its box with room for it: clear of all labels, and of other boxes where that can be.
    """
    spots: dict[int, Rect] = {}
    sides = [_at_corner(box, size, picture, position) for box, size in zip(boxes, sizes, strict=True)]
    for tried in (slice(1), slice(1, None)):
        for i, corner in enumerate(sides):
            if i not in spots:
                placed = list(spots.values())
                free = (spot for spot in corner[tried] if not any(other.meets(spot) for other in placed))
                spots.update((i, spot) for spot in islice(free, 1))
    moved = [i for i in range(len(boxes)) if i not in spots]
    for i in moved:
        foreign = [_grown(other, REACH) for other in boxes if not other.contains(boxes[i])]
        rails = _rails(boxes[i], sizes[i], picture, position)
        spots[i] = _place(rails, sizes[i], list(spots.values()), foreign)
    return Placement(tuple(spots[i] for i in range(len(boxes))), len(moved))


def _at_corner(box: Rect, size: Size, picture: tuple[int, int], position: MarkPosition) -> list[Rect]:
    """The label on each side of the named corner, best first; what leaves the picture is moved into it.

    Outside along the edge, flush with the box; inside; outside beside the box; outside over the corner. At the middle of an
    edge there is but outside and inside, in the middle of the box one place.
    """
    lines = _Lines(box, size, picture, position)
    if position == "center":
        return [lines.middle().at(lines.middle().anchor, size)]
    edge, side = position.split("-")
    outside, inside = lines.outside(edge), lines.inside(edge)
    spots = [outside.at(outside.anchor, size), inside.at(inside.anchor, size)]
    if side != "center":
        beside = lines.outside(side).fixed
        spots += [Rect(beside, spot.y0, beside + size.width, spot.y1) for spot in reversed(spots)]
    return spots


def _place(rails: Sequence[_Rail], size: Size, placed: Sequence[Rect], foreign: Sequence[Rect]) -> Rect:
    """The first free place; where there is none, the one that covers the least of the labels placed before."""
    labels = [_grown(other, GAP) for other in placed]
    for obstacles in ([*labels, *foreign], labels, placed):
        for rail in rails:
            spot = _free_spot(rail, size, obstacles)
            if spot is not None:
                return spot
    crowded = [rail.at(start, size) for rail in rails for start in rail.starts(size, labels)]
    return min(crowded, key=lambda spot: sum(other.overlap(spot) for other in placed))


def _free_spot(rail: _Rail, size: Size, obstacles: Sequence[Rect]) -> Rect | None:
    band = rail.band(size)
    near = [other for other in obstacles if other.meets(band)]
    spots = (rail.at(start, size) for start in rail.starts(size, near))
    return next((spot for spot in spots if not any(other.meets(spot) for other in near)), None)


def _grown(rect: Rect, by: int) -> Rect:
    return Rect(rect.x0 - by, rect.y0 - by, rect.x1 + by, rect.y1 + by)


def _rails(box: Rect, size: Size, picture: tuple[int, int], position: MarkPosition) -> list[_Rail]:
    """The lines on which a label is beside its box, best first.

    Outside along the edge of the position; inside along it, in a box of some height; outside along the other edges;
    inside, where the label hides part of what it marks; then around the box in steps of a label's height (`AWAY`). A
    label at an edge stands along it with its whole length, or along the whole of a shorter edge: one that stuck out
    over a corner would seem to belong to the next box.
    """
    tall = box.y1 - box.y0 >= TALL * size.height
    lines = _Lines(box, size, picture, position)
    edge, opposite = ("top", "bottom") if position.startswith("top") else ("bottom", "top")
    first = [lines.middle()] if position == "center" else []
    inner = [lines.inside(edge), lines.inside(opposite), lines.middle()]
    outer = _outer_rails(box, size, picture, position)
    near = [outer[0], *inner[: int(tall)], *outer[1:4]]
    return [*first, *near, *inner[int(tall) :], *outer[4:]]


def _outer_rails(box: Rect, size: Size, picture: tuple[int, int], position: MarkPosition) -> list[_Rail]:
    """The lines outside of the box: along its four sides, that of the position first, then in steps of a label's height."""
    lines = _Lines(box, size, picture, position)
    edge, opposite = ("top", "bottom") if position.startswith("top") else ("bottom", "top")
    return [lines.outside(side, k) for k in range(AWAY + 1) for side in (edge, opposite, "right", "left")]


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines around and inside one box. What leaves the picture is moved into it."""

    box: Rect
    size: Size
    picture: tuple[int, int]
    position: MarkPosition

    def outside(self, side: str, steps: int = 0) -> _Rail:
        """Along an edge, `steps` label heights away from it."""
        (x0, y0, x1, y1), (width, height) = self.box, self.size
        beyond = REACH + steps * (height + GAP)
        fixed = {"bottom": y1 + beyond, "top": y0 - beyond - height, "right": x1 + beyond, "left": x0 - beyond - width}
        return self._along(side in ("top", "bottom"), fixed[side], steps * (height + GAP))

    def inside(self, edge: str) -> _Rail:
        inset = REACH + 1
        return self._along(True, self.box.y0 + inset if edge == "top" else self.box.y1 - inset - self.size.height)

    def middle(self) -> _Rail:
        return self._along(True, (self.box.y0 + self.box.y1 - self.size.height) // 2)

    def _along(self, horizontal: bool, fixed: int, longer: int = 0) -> _Rail:
        begin, end = (self.box.x0, self.box.x1) if horizontal else (self.box.y0, self.box.y1)
        span, depth = self.size if horizontal else (self.size.height, self.size.width)
        length, room = self.picture if horizontal else (self.picture[1], self.picture[0])
        anchor = self._anchor(horizontal)
        low = min(anchor, begin - longer, end - span - longer)
        high = max(anchor, begin + longer, end - span + longer)
        low, high, anchor = (_clamp(place, length - span) for place in (low, high, anchor))
        return _Rail(horizontal, _clamp(fixed, room - depth), low, high, anchor)

    def _anchor(self, horizontal: bool) -> int:
        """Where the position wants the label's left or top edge: flush with the box's lines, or centred."""
        (x0, y0, x1, y1), (width, height) = self.box, self.size
        if not horizontal:
            return y0 - REACH if self.position.startswith("top") else y1 + REACH - height
        side = self.position.rpartition("-")[2]
        return {"left": x0 - REACH, "right": x1 + REACH - width}.get(side, (x0 + x1 - width) // 2)


def _clamp(place: int, last: int) -> int:
    return max(0, min(place, last))


# --- drawing ---------------------------------------------------------------------------------------------------------


def label_size(label: str, marks: Marks) -> Size:
    """What a label takes with its background; all labels are of one height."""
    font, around = _font(marks.text_size), 2 * marks.padding
    return Size(math.ceil(font.getlength(label)) + around, capital_height(marks.text_size) + around)


def draw_marks(
    image: Image.Image, boxes: Sequence[Rect], labels: Sequence[str], spots: Sequence[Rect], marks: Marks
) -> Image.Image:
    """A marked copy of an RGB picture. All boxes are drawn before any label, so that no line crosses a label."""
    from PIL import ImageDraw

    marked = _draw_boxes(_with_outlines(image, boxes) if marks.outlined else image, boxes)
    pen, font = ImageDraw.Draw(marked), _font(marks.text_size)
    for box, spot in zip(boxes, spots, strict=True):
        if not _grown(box, LINE).meets(spot):
            if marks.outlined:
                pen.line(_leader(box, spot), fill=OUTLINE, width=3)
            pen.line(_leader(box, spot), fill="red", width=1)
    for label, spot in zip(labels, spots, strict=True):
        pen.rectangle((spot.x0, spot.y0, spot.x1 - 1, spot.y1 - 1), "black", OUTLINE if marks.outlined else None)
        left = (spot.x0 + spot.x1 - font.getlength(label)) / 2
        pen.text((left, spot.y1 - marks.padding), label, fill="white", font=font, anchor="ls")
    return marked


def _with_outlines(image: Image.Image, boxes: Sequence[Rect]) -> Image.Image:
    """A copy with a line around where each red one will be, drawn before them all so that it crosses none."""
    from PIL import ImageDraw

    copy = image.copy()
    pen = ImageDraw.Draw(copy)
    for box in boxes:
        x0, y0, x1, y1 = _grown(box, LINE)
        pen.rectangle((x0, y0, x1 - 1, y1 - 1), outline=OUTLINE)
    return copy


def _leader(box: Rect, spot: Rect) -> tuple[tuple[int, int], tuple[int, int]]:
    """From the middle of a label to the nearest point of its box."""
    x, y = (spot.x0 + spot.x1) // 2, (spot.y0 + spot.y1) // 2
    return (x, y), (min(max(x, box.x0), box.x1 - 1), min(max(y, box.y0), box.y1 - 1))


def _draw_boxes(image: Image.Image, boxes: Sequence[Rect]) -> Image.Image:
    import numpy as np
    from PIL import Image

    sv = _supervision()
    scene = np.array(image)
    annotator = sv.BoxAnnotator(color=sv.Color(r=0, g=0, b=255), thickness=LINE)
    # supervision writes blue, green, red; Pillow's pixels are red, green, blue
    for box in boxes:
        left, top = max(0, box.x0 - LINE), max(0, box.y0 - LINE)
        # only what is around the box: without OpenCV supervision goes over all of what it is given
        view = scene[top : box.y1 + LINE, left : box.x1 + LINE]
        corners = np.array([[box.x0 - left, box.y0 - top, box.x1 - 1 - left, box.y1 - 1 - top]])
        annotator.annotate(view, sv.Detections(xyxy=corners, class_id=np.array([0])))
    return Image.fromarray(scene)


@lru_cache(maxsize=1)
def _supervision():  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        # that OpenCV is missing: what is drawn here is the same with and without it
        warnings.simplefilter("ignore")
        import supervision
    return supervision


@lru_cache
def _font(size: int) -> FreeTypeFont:
    """Pillow's own scalable font, so that no font has to be installed."""
    from PIL import ImageFont

    font = ImageFont.load_default(size=size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise InputError("grounding", "a Pillow with FreeType, to draw the labels of annotation", "one without")
    return font


@lru_cache
def capital_height(text_size: int) -> int:
    """Pixels of a label's letters."""
    return math.ceil(-_font(text_size).getbbox("A0", anchor="ls")[1])
