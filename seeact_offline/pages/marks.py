"""Marks on a picture: a red box around each element and a label beside it. `docs/asking.md` says the same for people.

Boxes are drawn by the supervision library, labels by Pillow. Labels stand at a corner of their box as in SeeAct's
released code (src/offline_experiments/screenshot_generation/image_annotation.py at bcbbdc1), or are kept clear of each
other (`MarkPlace`).

Coordinates are whole pixels of the picture that is drawn on. A label that is kept clear lies on one of its box's
*rails*, lines along which it slides beside or inside the box (`_rails`). Labels are placed one after the other in the
order given. Each takes the place nearest to its anchor on the first rail that has one clear of the labels before it and
of the boxes of other elements (boxes around its own do not count); in the absence of such a place, on the first rail
that has one clear of labels; where none has, the place of all that covers the least of the labels before it. A box that
is smaller than two labels is kept clear too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import chain, islice, product
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from seeact_offline.records import InputError

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageFont import FreeTypeFont

MarkKind = Literal["number", "letter", "double-letter"]
MARK_KINDS: tuple[MarkKind, ...] = get_args(MarkKind)
MarkPosition = Literal["bottom-left", "bottom-center", "bottom-right", "top-left", "top-center", "top-right", "center"]
MARK_POSITIONS: tuple[MarkPosition, ...] = get_args(MarkPosition)
MarkPlace = Literal["corner", "clear", "outside"]
MARK_PLACES: tuple[MarkPlace, ...] = get_args(MarkPlace)
"""corner: at the named corner as released, whatever it covers; clear: there unless it would cover another label or hide
its own element; outside: beside the element as long as there is room."""

NO_MARK = "NA"
"""The answer for "no marked element", and so never a label."""
STYLE = 3
"""Goes up whenever the same marks are drawn in another way, so that no cached answer is taken for a new picture."""
RED = (255, 64, 64)
"""Colour of the release."""
LINE = 2
"""Thickness of a box as supervision counts it: OpenCV's lines of 2 are 3 px wide, one on either side of the edge."""
# stands out on dark pages, where the released red and black do not
OUTLINE = "white"
REACH = 1
"""Pixels by which a box's line lies outside the box, and as many inside of the edge pixel."""
GAP = 2
"""Pixels kept free between two labels, for two that touch read as one."""
TALL = 2.5
"""Label heights from which a box has room for its label inside."""
AWAY = 4
"""Steps of a label's height that a label may be away from its box; then a line leads to it."""


def _option(name: str, purpose: str, choices: Sequence[str] = (), *, is_drawn: bool = True) -> dict[str, Any]:
    """`is_drawn`: the field decides how marks look; False where it decides but the labels, or which turn has them."""
    return {"option": name, "help": purpose, "choices": tuple(choices), "is_drawn": is_drawn}


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Describes how elements are marked. Each field is an option of the grounding `annotation`, under the name in its
    metadata."""

    kind: MarkKind = field(default="number", metadata=_option("marks", "kind of label", MARK_KINDS, is_drawn=False))
    position: MarkPosition = field(
        default="bottom-left", metadata=_option("mark_position", "where a label goes", MARK_POSITIONS)
    )
    turn1: bool = field(
        default=False, metadata=_option("mark_turn1", "the marked picture in turn 1 too", is_drawn=False)
    )
    text_size: int = field(default=16, metadata=_option("mark_text_size", "pixels of a label's font"))
    """Size of the release: capitals 11 pixels tall."""
    padding: int = field(default=10, metadata=_option("mark_padding", "pixels around a label's text"))
    """Padding of the release: a label of one letter is 26 to 36 pixels wide and 33 tall."""
    place: MarkPlace = field(
        default="corner",
        metadata=_option(
            "mark_place",
            "corner: at its corner as released, over whatever lies there; clear: moved where it would cover another label or"
            " hide its element; outside: beside its element",
            MARK_PLACES,
        ),
    )
    outline: bool = field(
        default=False, metadata=_option("mark_outline", "a white line around boxes and labels, for dark pages")
    )

    @property
    def identity(self) -> dict[str, object]:
        """Options that a run records. Those that came after the first three are left out at their defaults."""
        options = {each.metadata["option"]: (getattr(self, each.name), each.default) for each in fields(self)}
        first = list(options)[:3]
        return {name: value for name, (value, default) in options.items() if name in first or value != default}

    @property
    def drawing(self) -> tuple[object, ...]:
        """Values that decide the picture, but for the labels. Those after the released three count together, and only
        if one is not its default: so a field that is added leaves the keys of the pictures without it as they are."""
        drawn = [each for each in fields(self) if each.metadata["is_drawn"]]
        values = tuple(getattr(self, each.name) for each in drawn)
        return values[:3] if values[3:] == tuple(each.default for each in drawn[3:]) else values

    @property
    def words(self) -> dict[str, str]:
        """Placeholders of a prompt that say what labels are and where they stand."""
        corner = _CORNERS[self.position]
        places = {"corner": corner, "clear": f"{corner} where there is room"}
        outside = f"outside its box, {corner} where there is room"
        return {"label_kind": _KINDS[self.kind], "label_place": places.get(self.place, outside)}


_KINDS: dict[MarkKind, str] = {"number": "number", "letter": "letter", "double-letter": "pair of letters"}
_CORNERS: dict[MarkPosition, str] = {
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
        """Tells whether any pixel is in both."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def within(self, picture: tuple[int, int]) -> Rect | None:
        """The part that lies in the picture; None for one wholly outside."""
        inside = Rect(max(self.x0, 0), max(self.y0, 0), min(self.x1, picture[0]), min(self.y1, picture[1]))
        return inside if inside.x0 < inside.x1 and inside.y0 < inside.y1 else None

    def contains(self, other: Rect) -> bool:
        """Tells whether all of the other's pixels are in this one; equal ones contain each other."""
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
    """Number of elements of one picture that can be told apart: 26 letters, 675 pairs (all but NA); None: any
    number."""
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


def pixel_rect(x0: float, y0: float, x1: float, y1: float) -> Rect:
    """The pixels from one corner to the other, both included, with fractions cut off as supervision does."""
    return Rect(int(x0), int(y0), int(x1) + 1, int(y1) + 1)


# --- where labels go -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rail:
    """A line along which a label slides: its left or top edge varies from `low` to `high`, the other one is fixed."""

    horizontal: bool
    fixed: int
    low: int
    high: int
    anchor: int
    """Preferred place on the line."""

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
    """Places of the labels."""

    spots: tuple[Rect, ...]
    """One a box, in their order; without width for a label that is not drawn. Parts outside the picture are not
    seen."""
    n_off_position: int = 0
    """Number of labels that stand elsewhere than asked, as they would cover another label or hide their element
    there."""


def place_labels(boxes: Sequence[Rect], sizes: Sequence[Size], picture: tuple[int, int], marks: Marks) -> Placement:
    """Places the labels as `marks` says.

    As released some may leave the picture. Where they are kept clear all lie inside it, and those of boxes outside are
    not drawn.
    """
    if marks.place == "corner":
        return Placement(tuple(_released(box, size, marks.position) for box, size in zip(boxes, sizes, strict=True)))
    parts = {i: part for i, box in enumerate(boxes) if (part := box.within(picture)) is not None}
    place = place_outside if marks.place == "outside" else place_clear
    placed = place(list(parts.values()), [sizes[i] for i in parts], picture, marks.position)
    spots = dict(zip(parts, placed.spots, strict=True))
    return replace(
        placed, spots=tuple(spots.get(i, Rect(box.x0, box.y0, box.x0, box.y0)) for i, box in enumerate(boxes))
    )


def _released(box: Rect, size: Size, position: MarkPosition) -> Rect:
    """The place where supervision puts a label: an edge of it lies on the line of the box."""
    edge, _, side = position.rpartition("-")
    x = {"left": box.x0, "right": box.x1 - size.width}.get(side, (box.x0 + box.x1 - size.width) // 2)
    y = {"bottom": box.y1 - 1, "top": box.y0 + 1 - size.height}.get(edge, (box.y0 + box.y1 - size.height) // 2)
    return Rect(x, y, x + size.width, y + size.height)


def place_outside(
    boxes: Sequence[Rect], sizes: Sequence[Size], picture: tuple[int, int], position: MarkPosition
) -> Placement:
    """No label covers its own box as long as there is room beside or near it; else it goes where `place_clear` would
    put it.

    A label takes the place nearest to its corner on the first line outside that has one clear of the labels before it
    and of other boxes, but for those around its own; where there is none, of the labels.
    """
    spots: list[Rect] = []
    moved = 0
    for box, size in zip(boxes, sizes, strict=True):
        rails, labels = _outer_rails(box, size, picture, position), [_grown(other, GAP) for other in spots]
        foreign = [_grown(other, REACH) for other in boxes if not other.contains(box)]
        tried = (_free_spot(rail, size, [box, *some]) for some in ([*labels, *foreign], labels) for rail in rails)
        spot = next((free for free in tried if free is not None), None)
        spots.append(_place(_rails(box, size, picture, position), box, size, spots, foreign) if spot is None else spot)
        moved += spots[-1] != _at_corner(box, size, picture, position)[0]
    return Placement(tuple(spots), moved)


def place_clear(
    boxes: Sequence[Rect], sizes: Sequence[Size], picture: tuple[int, int], position: MarkPosition
) -> Placement:
    """A label stands at the named corner of its box, and leaves it only where it would cover another label or hide its
    element.

    It stands outside along the edge, as released, where that is free of labels; of those that would cover each other
    there the first stays. The others go to another side of the same corner, unless that covers a small element. Those
    for which no side is free are placed last, each on the first line of its box with room for it: clear of all labels,
    and of other boxes where that can be.
    """
    spots: dict[int, Rect] = {}
    sides = [_at_corner(box, size, picture, position) for box, size in zip(boxes, sizes, strict=True)]
    small = [_small(box, size) for box, size in zip(boxes, sizes, strict=True)]
    for tried in (slice(1), slice(1, None)):
        for i, corner in enumerate(sides):
            if i not in spots:
                taken = [*spots.values(), *chain(*(small if tried.start else small[i : i + 1]))]
                free = (spot for spot in corner[tried] if not any(other.meets(spot) for other in taken))
                spots.update((i, spot) for spot in islice(free, 1))
    moved = [i for i in range(len(boxes)) if i not in spots]
    for i in moved:
        foreign = [_grown(other, REACH) for other in boxes if not other.contains(boxes[i])]
        rails = _rails(boxes[i], sizes[i], picture, position)
        spots[i] = _place(rails, boxes[i], sizes[i], list(spots.values()), foreign)
    return Placement(tuple(spots[i] for i in range(len(boxes))), len(moved))


def _small(box: Rect, size: Size) -> list[Rect]:
    """The box, if its label would hide more than half of it: then the label may not touch it."""
    area = (box.x1 - box.x0) * (box.y1 - box.y0)
    return [box] if area < 2 * size.width * size.height else []


def _at_corner(box: Rect, size: Size, picture: tuple[int, int], position: MarkPosition) -> list[Rect]:
    """The label on each side of the named corner, best first; what leaves the picture is moved into it.

    Outside along the edge, flush with the box; inside; outside beside the box; outside over the corner. At the middle
    of an edge there is but outside and inside, in the middle of the box one place.
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


def _place(rails: Sequence[_Rail], box: Rect, size: Size, placed: Sequence[Rect], foreign: Sequence[Rect]) -> Rect:
    """The first free place; where there is none, the one that covers the least of a small box, then of the labels
    before it."""
    labels, own = [_grown(other, GAP) for other in placed], _small(box, size)
    for obstacles in ([*labels, *foreign], labels, placed):
        for rail in rails:
            spot = _free_spot(rail, size, [*obstacles, *own])
            if spot is not None:
                return spot
    crowded = [rail.at(start, size) for rail in rails for start in rail.starts(size, [*labels, *own])]
    return min(crowded, key=lambda spot: [sum(other.overlap(spot) for other in some) for some in (own, placed)])


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
    """The lines outside of the box: along its four sides, that of the position first, then in steps of a label's
    height."""
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
        """Place of the label's left or top edge by the position: flush with the box's lines, or centred."""
        (x0, y0, x1, y1), (width, height) = self.box, self.size
        if not horizontal:
            return y0 - REACH if self.position.startswith("top") else y1 + REACH - height
        side = self.position.rpartition("-")[2]
        return {"left": x0 - REACH, "right": x1 + REACH - width}.get(side, (x0 + x1 - width) // 2)


def _clamp(place: int, last: int) -> int:
    return max(0, min(place, last))


# --- drawing ---------------------------------------------------------------------------------------------------------


def label_size(label: str, marks: Marks) -> Size:
    """Pixels of a label with its background; all labels are of one height.

    OpenCV counts a text a pixel taller than its letters, and a background's last row and column come on top.
    """
    font, around = label_font(marks.text_size), 2 * marks.padding + 1
    return Size(math.ceil(font.getlength(label)) + around, capital_height(marks.text_size) + 1 + around)


def draw_marks(
    image: Image.Image, boxes: Sequence[Rect], labels: Sequence[str], spots: Sequence[Rect], marks: Marks
) -> Image.Image:
    """A marked copy of an RGB picture. All boxes are drawn before any label, so that no line crosses a label. Nothing
    is seen of what lies outside the picture."""
    from PIL import ImageDraw

    if marks.outline:
        image = image.copy()
        pen = ImageDraw.Draw(image)
        # before the red lines, so that it crosses none
        for box in boxes:
            x0, y0, x1, y1 = _grown(box, LINE)
            pen.rectangle((x0, y0, x1 - 1, y1 - 1), outline=OUTLINE)
    marked = _draw_boxes(image, boxes)
    pen, font = ImageDraw.Draw(marked), label_font(marks.text_size)
    drawn = [mark for mark in zip(boxes, labels, spots, strict=True) if mark[2].within(image.size)]
    for box, _, spot in drawn:
        if not _grown(box, LINE).meets(spot):
            if marks.outline:
                pen.line(_leader(box, spot), fill=OUTLINE, width=3)
            pen.line(_leader(box, spot), fill=RED, width=1)
    for _, label, spot in drawn:
        pen.rectangle((spot.x0, spot.y0, spot.x1 - 1, spot.y1 - 1), "black", OUTLINE if marks.outline else None)
        left = (spot.x0 + spot.x1 - font.getlength(label)) / 2
        pen.text((left, spot.y1 - marks.padding - 1), label, fill="white", font=font, anchor="ls")
    return marked


def _leader(box: Rect, spot: Rect) -> tuple[tuple[int, int], tuple[int, int]]:
    """The line from the middle of a label to the nearest point of its box."""
    x, y = (spot.x0 + spot.x1) // 2, (spot.y0 + spot.y1) // 2
    return (x, y), (min(max(x, box.x0), box.x1 - 1), min(max(y, box.y0), box.y1 - 1))


def _draw_boxes(image: Image.Image, boxes: Sequence[Rect]) -> Image.Image:
    import numpy as np
    from PIL import Image

    sv = _supervision()
    scene = np.array(image)
    # supervision writes blue, green, red; Pillow's pixels are red, green, blue
    annotator = sv.BoxAnnotator(color=sv.Color(*reversed(RED)), thickness=LINE)
    for box in boxes:
        # only what is around the box: without OpenCV supervision goes over all of what it is given
        around = _grown(box, LINE).within(image.size)
        if around is not None:
            corners = np.array([box.x0, box.y0, box.x1 - 1, box.y1 - 1])
            # lines far outside are drawn just outside: OpenCV counts in 32 bits
            near = np.clip(corners, np.tile(around[:2], 2) - LINE, np.tile(around[2:], 2) + LINE) - np.tile(
                around[:2], 2
            )
            view = scene[around.y0 : around.y1, around.x0 : around.x1]
            annotator.annotate(view, sv.Detections(xyxy=near[np.newaxis], class_id=np.array([0])))
    return Image.fromarray(scene)


@lru_cache(maxsize=1)
def _supervision():  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        # that OpenCV is missing: what is drawn here is the same with and without it
        warnings.simplefilter("ignore")
        import supervision
    return supervision


@lru_cache
def label_font(size: int) -> FreeTypeFont:
    """Pillow's own scalable font, so that no font has to be installed."""
    from PIL import ImageFont

    font = ImageFont.load_default(size=size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise InputError("grounding", "a Pillow with FreeType, to draw the labels of annotation", "one without")
    return font


@lru_cache
def capital_height(text_size: int) -> int:
    """Pixels of a label's letters."""
    return math.ceil(-label_font(text_size).getbbox("A0", anchor="ls")[1])
