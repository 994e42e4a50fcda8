"""Slow, obvious placing of labels: every place of every line is tried, pixel sets say what covers what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Rect = tuple[int, int, int, int]
"""Left, top, right, bottom; right and bottom exclusive."""
LINE, GAP, STEPS = 1, 2, 4


def pixels(rect: Rect) -> set[tuple[int, int]]:
    return {(x, y) for x in range(rect[0], rect[2]) for y in range(rect[1], rect[3])}


def grown(rect: Rect, by: int) -> Rect:
    return rect[0] - by, rect[1] - by, rect[2] + by, rect[3] + by


def share_overlapping(rects: Sequence[Rect]) -> float:
    """Of the rectangles, how many have a pixel that another has too."""
    covered = Counter(pixel for rect in rects for pixel in pixels(rect))
    return sum(any(covered[pixel] > 1 for pixel in pixels(rect)) for rect in rects) / len(rects)


def lines(box: Rect, width: int, height: int, picture: tuple[int, int], position: str) -> list[list[Rect]]:
    """All places of a label line by line, on each line those nearest to the anchor first."""
    left, top, right, bottom = box
    edge, other = ("top", "bottom") if position.startswith("top") else ("bottom", "top")
    anchor_x = (left + right - width) // 2
    anchor_x = left - LINE if position.endswith("left") else anchor_x
    anchor_x = right + LINE - width if position.endswith("right") else anchor_x
    anchor_y = top - LINE if edge == "top" else bottom + LINE - height
    inside = {"top": top + LINE + 1, "bottom": bottom - LINE - 1 - height, "middle": (top + bottom - height) // 2}

    def sliding(across: bool, fixed: int, longer: int = 0) -> list[Rect]:
        begin, end, span, anchor = (left, right, width, anchor_x) if across else (top, bottom, height, anchor_y)
        last = max(0, picture[0 if across else 1] - span)
        fixed = max(0, min(fixed, picture[1] - height if across else picture[0] - width))
        flush = [begin, end - span]
        low, high = min(anchor, *flush, min(flush) - longer), max(anchor, *flush, max(flush) + longer)
        low, high, start = (max(0, min(place, last)) for place in (low, high, anchor))
        ways = sorted(range(low, high + 1), key=lambda place: (abs(place - start), -place))
        corners = [(place, fixed) if across else (fixed, place) for place in ways]
        return [(x, y, x + width, y + height) for x, y in corners]

    def outside(side: str, steps: int = 0) -> list[Rect]:
        away = steps * (height + GAP)
        beyond = LINE + away
        places = {"top": top - beyond - height, "bottom": bottom + beyond}
        places |= {"left": left - beyond - width, "right": right + beyond}
        return sliding(side in ("top", "bottom"), places[side], away)

    hiding = [sliding(True, inside[where]) for where in (edge, other, "middle")]
    roomy = 1 if 2 * (bottom - top) >= 5 * height else 0
    found = [sliding(True, inside["middle"])] if position == "center" else []
    found += [outside(edge), *hiding[:roomy], outside(other), outside("right"), outside("left"), *hiding[roomy:]]
    for steps in range(1, STEPS + 1):
        found += [outside(side, steps) for side in (edge, other, "right", "left")]
    return found


def at_corner(box: Rect, width: int, height: int, picture: tuple[int, int], position: str) -> list[Rect]:
    """The label on every side of the named corner, the released one first."""
    left, top, right, bottom = box
    if position == "center":
        places = [((left + right - width) // 2, (top + bottom - height) // 2)]
    else:
        edge, side = position.split("-")
        out_y, in_y = (
            (top - LINE - height, top + LINE + 1) if edge == "top" else (bottom + LINE, bottom - LINE - 1 - height)
        )
        in_x = {"left": left - LINE, "right": right + LINE - width, "center": (left + right - width) // 2}[side]
        out_x = {"left": left - LINE - width, "right": right + LINE, "center": in_x}[side]
        places = [(in_x, out_y), (in_x, in_y), (out_x, in_y), (out_x, out_y)][: 2 if side == "center" else 4]
    kept = [(max(0, min(x, picture[0] - width)), max(0, min(y, picture[1] - height))) for x, y in places]
    return [(x, y, x + width, y + height) for x, y in kept]


def place(
    boxes: Sequence[Rect], sizes: Sequence[tuple[int, int]], picture: tuple[int, int], position: str
) -> dict[int, Rect]:
    """The labels' places by the number of the box, up to the first label that has no free one."""
    corners = [at_corner(box, *size, picture, position) for box, size in zip(boxes, sizes, strict=True)]
    areas = [len(pixels(box)) for box in boxes]
    # a box that is under two labels large may not be covered
    small = [pixels(box) if area < 2 * w * h else set() for box, area, (w, h) in zip(boxes, areas, sizes, strict=True)]
    placed: dict[int, Rect] = {}

    def covered(by: int) -> set[tuple[int, int]]:
        return {pixel for label in placed.values() for pixel in pixels(grown(label, by))}

    for number, corner in enumerate(corners):
        if not pixels(corner[0]) & (covered(0) | small[number]):
            placed[number] = corner[0]
    for number, corner in enumerate(corners):
        clear = [spot for spot in corner[1:] if not pixels(spot) & covered(0).union(*small)]
        if number not in placed and clear:
            placed[number] = clear[0]
    for number, (box, (width, height)) in enumerate(zip(boxes, sizes, strict=True)):
        if number in placed:
            continue
        others = [other for other in boxes if not pixels(box) <= pixels(other)]
        foreign = {pixel for other in others for pixel in pixels(grown(other, LINE))}
        tried = [spot for line in lines(box, width, height, picture, position) for spot in line]
        tried = [spot for spot in tried if not pixels(spot) & small[number]]
        clear = [spot for spot in tried if not pixels(spot) & (covered(GAP) | foreign)]
        clear = clear or [spot for spot in tried if not pixels(spot) & covered(GAP)]
        clear = clear or [spot for spot in tried if not pixels(spot) & covered(0)]
        if not clear:
            break
        placed[number] = clear[0]
    return placed
