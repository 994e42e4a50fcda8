"""A model's text -> the place on a picture that it points at, and from there to an element. Nothing is ever guessed.

How a point is *written* is recognised: tags (``<point>12 34</point>``, ``<points x="12" y="34">``, ``<box>...</box>``,
``<|box_start|>(1,2),(3,4)<|box_end|>``), brackets (``[[12,34]]``, ``[1,2,3,4]``), ``(12, 34)``, ``x=12, y=34`` and JSON.
What its numbers *mean* is not: pixels, fractions and thousandths look alike, so the scale is agreed beforehand and a
number beyond it is a failure. Four numbers are the left, top, right and bottom of a box, which counts by its centre.

The last ELEMENT or POINT line decides; without such a line, the text must name exactly one place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from seeact_offline.records import Box, ReplyError
from seeact_offline.replies.words import MAX_READ, NO_ELEMENT, folded, without_thoughts

Coordinates = Literal["absolute", "fraction", "per-mille"]
COORDINATES: tuple[Coordinates, ...] = ("absolute", "fraction", "per-mille")

POINT_FAILURES = (
    # neither a place nor a word for "none"
    "no_point",
    # more than one place, and nothing says which is the answer
    "several_points",
    # a box whose right or bottom edge comes first: its numbers mean something else
    "reversed_box",
    # a number beyond the agreed scale
    "point_outside",
)


@dataclass(frozen=True, slots=True)
class PointReply:
    """A place as a model wrote it."""

    numbers: tuple[float, ...] = ()
    """x, y; or left, top, right, bottom; in the agreed coordinates."""
    says_none: bool = False
    """True only when the text really says that there is no such element."""
    failure: str | None = None
    """One of POINT_FAILURES, or None."""
    detail: str = ""
    """The text found instead of a place; empty without a failure."""


# --- reading ---------------------------------------------------------------------------------------------------------


def read_point(text: str) -> PointReply:
    """The place that a reply names. Never raises because of `text`."""
    plain = folded(without_thoughts(text)[-MAX_READ:])
    for segment in reversed(list(_answers(plain))):
        found = _read_segment(segment)
        if found is not None:
            return found
    return _one_of(_points(plain)) or PointReply(failure="no_point", detail="no point or box in the reply")


_COLON = r"""[\s*_`"'\])]{0,8}[:=]"""
_LABEL = re.compile(rf"(?<![\w<|])(?P<name>ELEMENT|POINT){_COLON}(?!=)", re.IGNORECASE)
_NEXT_LABEL = re.compile(rf"\b(?:ELEMENT|POINT|ACTION|OPERATION|VALUE){_COLON}|\n\s*\n", re.IGNORECASE)
_DRESS = re.compile(r"(?:[\W\d_]|final|answer|the|my|is|target){0,40}", re.IGNORECASE)


def _answers(plain: str) -> Iterator[tuple[str, str]]:
    """Yields the text after each ELEMENT or POINT label: the rest of its line, and all up to the next label or empty line."""
    line_start = 0
    for label in _LABEL.finditer(plain):
        line_start = max(line_start, plain.rfind("\n", line_start, label.start()) + 1)
        key = plain[label.start() - 1 : label.start()] in ('"', "'") and label["name"].upper() == "ELEMENT"
        if not (key or label["name"].isupper() or _DRESS.fullmatch(plain, line_start, label.start())):
            continue
        rest = plain[label.end() : label.end() + 400]
        begin = len(rest) - len(rest.lstrip())
        following = _NEXT_LABEL.search(rest, begin)
        whole = rest[: following.start()] if following else rest
        yield whole.lstrip().partition("\n")[0], whole


_NONE = re.compile(
    rf"""[\s"'*_`(\[{{<]*(?:{NO_ELEMENT}|no (?:such |matching )?element|not (?:on|in|visible|present|shown|available))"""
    r"(?![a-z0-9])",
    re.IGNORECASE,
)
_NUMBER = r"[-+]?(?:\d++(?:\.\d++)?+|\.\d++)(?![\d.]{0,40}%)"
_BARE = re.compile(rf"[\s\"'*_`]*(?P<n>{_NUMBER}(?:[,;\s]{{1,4}}{_NUMBER}){{1,3}})[\s\"'*_`.]*")


def _read_segment(segment: tuple[str, str]) -> PointReply | None:
    """Reads the line; if it says nothing, the whole passage."""
    line, whole = segment
    for text in (line, whole):
        bare = _BARE.fullmatch(text)
        found = _one_of([_numbers(bare["n"])]) if bare else _one_of(_points(text))
        if found is not None:
            return found
        if _NONE.match(text):
            return PointReply(says_none=True)
    return None


def _one_of(points: Sequence[tuple[float, ...]]) -> PointReply | None:
    """The only place named, or None; a failure for several different places, and for numbers that make no place."""
    if not points:
        return None
    odd = next((numbers for numbers in points if len(numbers) not in (2, 4)), None)
    if odd is not None:
        return PointReply(failure="no_point", detail=f"expected 2 or 4 numbers, got {_shown(odd)}")
    # a box together with its own centre is one place
    different = {_centre(numbers): numbers for numbers in points}
    if len(different) > 1:
        shown = ", ".join(map(_shown, list(different.values())[:3]))
        return PointReply(failure="several_points", detail=f"{len(different)} places: {shown}")
    numbers = points[0]
    if len(numbers) == 4 and (numbers[2] < numbers[0] or numbers[3] < numbers[1]):
        return PointReply(failure="reversed_box", detail=f"expected left, top, right, bottom, got {_shown(numbers)}")
    return PointReply(numbers)


_PAIR = rf"{_NUMBER}\s*,\s*{_NUMBER}"
_GAP = r"""["'\s]{0,4}[:=]["'\s]{0,4}"""
_AND = r"""["'\s]{0,4}(?:px|pixels)?["'\s]{0,4}[,;]?\s*(?:and\s+)?["']?"""
# <point x="1" y="2">words</point>, <points x1="1" y1="2" x2="3" y2="4">words</points>
_ATTRIBUTES = re.compile(r"<points?\b(?P<attributes>[^<>]{3,400})/?>(?:[^<>]{0,200}</points?>)?", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"\b(?P<axis>[xy])\d*\s*=\s*[\"']?\s*(?P<n>{_NUMBER})", re.IGNORECASE)
_COORDS = re.compile(r"\bcoords\s*=\s*[\"'](?P<n>[\d.\s]*)")
# the clearest notations first: what one has read is taken out before the next one looks
_NOTATIONS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    # in tags: <point>1 2</point>, <box>(1,2),(3,4)</box>, <|box_start|>(1,2),(3,4)<|box_end|>
    (
        re.compile(
            r"<\|?(?:point|points|box|bbox)(?:_start)?\|?>(?P<inside>[^<>]{3,200})(?:<[/|]{0,2}(?:point|points|box|bbox)(?:_end)?\|?>)?",
            re.IGNORECASE,
        ),
        lambda match: re.sub(r"(?i)\b[xy]\d?\s*[=:]", " ", match["inside"]),
    ),
    # x1=1, y1=2, x2=3, y2=4 before x=1, y=2
    (
        re.compile(
            rf"\bx_?(?:1|min){_GAP}({_NUMBER}){_AND}y_?(?:1|min){_GAP}({_NUMBER}){_AND}"
            rf"x_?(?:2|max){_GAP}({_NUMBER}){_AND}y_?(?:2|max){_GAP}({_NUMBER})",
            re.IGNORECASE,
        ),
        lambda match: " ".join(match.groups()),
    ),
    (
        re.compile(rf"\bx{_GAP}({_NUMBER}){_AND}y{_GAP}({_NUMBER})", re.IGNORECASE),
        lambda match: " ".join(match.groups()),
    ),
    (re.compile(rf"\[\s*(?:\[\s*)?(?P<n>{_PAIR}(?:\s*,\s*{_PAIR})?)\s*\](?:\s*\])?"), lambda match: match["n"]),
    (re.compile(rf"\(\s*(?P<n>{_PAIR}(?:\s*,\s*{_PAIR})?)\s*\)"), lambda match: match["n"]),
)


def _points(plain: str) -> list[tuple[float, ...]]:
    """The numbers of every point and box in the text, in order."""
    found = [(match.start(), pair) for match in _ATTRIBUTES.finditer(plain) for pair in _attribute_pairs(match)]
    plain = _ATTRIBUTES.sub(lambda match: match[0] if not _attribute_pairs(match) else " " * len(match[0]), plain)
    for pattern, numbers in _NOTATIONS:

        def taken(match: re.Match[str], numbers: Callable[[re.Match[str]], str] = numbers) -> str:
            values = _numbers(numbers(match))
            if len(values) >= 2:
                found.append((match.start(), values))
            return " " * len(match[0])

        plain = pattern.sub(taken, plain)
    return [values for _, values in sorted(found)]


def _attribute_pairs(match: re.Match[str]) -> list[tuple[float, ...]]:
    """Pairs each x with its y. Numbered ones are points, never the corners of a box. `coords` has the picture's number, then each point's with x and y."""
    if (coords := _COORDS.search(match["attributes"])) is not None:
        numbers = _numbers(coords["n"])
        return list(zip(numbers[2::3], numbers[3::3], strict=False))
    axes: dict[str, list[float]] = {"x": [], "y": []}
    for one in _ATTRIBUTE.finditer(match["attributes"]):
        axes[one["axis"].lower()].append(float(one["n"]))
    return list(zip(axes["x"], axes["y"], strict=False))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in re.findall(_NUMBER, text))


def _shown(numbers: Sequence[float]) -> str:
    return f"({', '.join(f'{number:g}' for number in numbers)})"


# --- scales ----------------------------------------------------------------------------------------------------------


def shown_point(numbers: Sequence[float], coordinates: Coordinates, size: tuple[int, int]) -> tuple[float, float]:
    """The place in pixels of a picture of `size`; a box counts by its centre. Raises ReplyError `point_outside`."""
    limits = _limits(coordinates, size)
    for position, number in enumerate(numbers):
        limit = limits[position % 2]
        if not 0 <= number <= limit:
            raise ReplyError("point_outside", f"expected {'xy'[position % 2]} from 0 to {limit:g}, got {number:g}")
    x, y = _centre(numbers)
    return x / limits[0] * size[0], y / limits[1] * size[1]


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


def _centre(numbers: Sequence[float]) -> tuple[float, float]:
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
    holding = [(box.w * box.h, node) for node, box in elements if is_usable(box) and box.contains(*point)]
    # reversed, because min takes the first of equals
    return min(reversed(holding), key=lambda one: one[0], default=(0.0, None))[1]


def is_usable(box: Box) -> bool:
    """Tells whether the box has an area that can be pointed at."""
    return box.w > 0 and box.h > 0


def visible_centre(box: Box, size: tuple[int, int]) -> tuple[float, float] | None:
    """The centre of the part of the box that a page of `size` shows; None if it shows nothing of it."""
    left, top = max(box.x, 0.0), max(box.y, 0.0)
    right, bottom = min(box.right, float(size[0])), min(box.bottom, float(size[1]))
    return ((left + right) / 2, (top + bottom) / 2) if left < right and top < bottom else None
