"""Places on a picture: the numbers in which they are written, and the element that lies there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from seeact_offline.records import Box, ReplyError

Coordinates = Literal["absolute", "fraction", "per-mille"]
COORDINATES: tuple[Coordinates, ...] = ("absolute", "fraction", "per-mille")

# --- scales ----------------------------------------------------------------------------------------------------------


def shown_point(numbers: Sequence[float], coordinates: Coordinates, size: tuple[int, int]) -> tuple[float, float]:
    """The place in pixels of a picture of `size`; a box counts by its centre. Raises ReplyError `point_outside`."""
    limits = _limits(coordinates, size)
    for position, number in enumerate(numbers):
        limit = limits[position % 2]
        if not 0 <= number <= limit:
            raise ReplyError("point_outside", f"expected {'xy'[position % 2]} from 0 to {limit:g}, got {number:g}")
    if is_everything(numbers, limits):
        raise ReplyError("no_point", "a box around the whole picture")
    x, y = centre(numbers)
    return x / limits[0] * size[0], y / limits[1] * size[1]


def is_everything(numbers: Sequence[float], extent: tuple[float, float]) -> bool:
    """Tells whether a box is around the whole picture, and so points at nothing. `extent`: the numbers at its right and
    bottom edge."""
    edges = zip(numbers[2:], extent, strict=False)
    return len(numbers) == 4 and max(numbers[:2]) <= 0 and all(number >= 0.98 * edge for number, edge in edges)


def write_point(point: tuple[float, float], coordinates: Coordinates, size: tuple[int, int], decimals: int) -> str:
    """A place in pixels of a picture of `size`, written as `x y` in the coordinates with this many decimals."""
    limits = _limits(coordinates, size)
    numbers = (
        min(max(round(value / side * limit, decimals), 0), limit)
        for value, side, limit in zip(point, size, limits, strict=True)
    )
    return " ".join(f"{number:.{decimals}f}" for number in numbers)


def describe(coordinates: Coordinates, size: tuple[int, int]) -> str:
    """The sentence that tells a model how to write a place."""
    width, height = size
    return {
        "absolute": f"in pixels of the picture, which is {width} wide and {height} high",
        "fraction": "as fractions of the picture's width and height, from 0 to 1 with at least three decimals",
        "per-mille": "in thousandths of the picture's width and height, from 0 to 1000",
    }[coordinates]


def _limits(coordinates: Coordinates, size: tuple[int, int]) -> tuple[float, float]:
    fixed = {"fraction": 1.0, "per-mille": 1000.0}.get(coordinates)
    return (float(size[0]), float(size[1])) if fixed is None else (fixed, fixed)


def centre(numbers: Sequence[float]) -> tuple[float, float]:
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    left, top, right, bottom = numbers
    return (left + right) / 2, (top + bottom) / 2


# --- elements --------------------------------------------------------------------------------------------------------


def element_at(point: tuple[float, float], elements: Iterable[tuple[str, Box]]) -> str | None:
    """The smallest element whose box contains the point, the last of equally small ones; None if there is none.

    `elements`: ids and boxes in document order, so the last of equals is the innermost. Edges count as inside; a box
    without area contains no point.
    """
    px, py = point
    # web agents ask for every label of a page: a method call a box would be half of their time
    holding = [
        (w * h, node) for node, (x, y, w, h) in elements if w > 0 and h > 0 and x <= px <= x + w and y <= py <= y + h
    ]
    # reversed, because min takes the first of equals
    return min(reversed(holding), key=lambda area_and_node: area_and_node[0], default=(0.0, None))[1]


def is_usable(box: Box) -> bool:
    """Tells whether the box has an area that can be pointed at."""
    return box.w > 0 and box.h > 0


def visible_centre(box: Box, size: tuple[int, int]) -> tuple[float, float] | None:
    """The centre of the part of the box that a page of `size` shows; None if it shows nothing of it."""
    left, top = max(box.x, 0.0), max(box.y, 0.0)
    right, bottom = min(box.right, float(size[0])), min(box.bottom, float(size[1]))
    return ((left + right) / 2, (top + bottom) / 2) if left < right and top < bottom else None
