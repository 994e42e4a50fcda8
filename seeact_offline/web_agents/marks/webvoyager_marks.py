"""WebVoyager's set-of-mark: elements, numbers, list and picture.

The rules are those of MinorJerry/WebVoyager 5a78967 (2024-03-04), `utils.py`, with boxes of one fixed colour. Its picture is drawn by
the browser, ours by Pillow in another font.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from seeact_offline.agents.screens import Rectangle
from seeact_offline.pages.marks import label_font
from seeact_offline.records import Box
from seeact_offline.web_agents.marks.mark import Mark, in_window
from seeact_offline.web_agents.screen_elements import ElementTree, ScreenElement

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageDraw import ImageDraw

LEAST_AREA = 20
"""Square pixels in the window."""
LONGEST_TEXT = 200
"""Characters from which a text is not listed."""
COLOUR = "#000000"
TEXT_SIZE = 12
LABEL_HEIGHT = 18
"""Pixels, as measured of the released label in DejaVu Sans."""
DASH, DASH_GAP = 6, 4
"""Pixels of Chromium's dashes 2 pixels wide; gaps are stretched so that a side ends in a dash."""

_MARKED_TAGS = frozenset({"input", "textarea", "select", "button", "a", "iframe", "video", "li", "td", "option"})
TEXT_FIELDS = frozenset({"text", "search", "password", "email", "tel", "textarea"})
"""Types of elements that a text can be typed into, a `textarea` among them."""
# the `type` that a browser answers, which for unknown words is the first
_INPUT_TYPES = (
    "text", "search", "password", "email", "tel", "hidden", "url", "date", "month", "week", "time", "datetime-local", "number", "range",
    "color", "checkbox", "radio", "file", "submit", "image", "reset", "button",
)  # fmt: skip
_TYPES = {"input": _INPUT_TYPES, "button": ("submit", "reset", "button")}
# JavaScript's, which differs from Python's
_SPACE = "[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
_AROUND = re.compile(f"^{_SPACE}+|{_SPACE}+$")
_TWO_SPACES = re.compile(f"{_SPACE}{{2,}}")


def webvoyager(elements: Sequence[ScreenElement], window: Rectangle) -> list[Mark]:
    """The marks of a window, numbered from 0 in document order.

    `elements`: all of the page, in document order. Rectangles are cut to the window. Where it is not known what covers an element,
    nothing does.
    """
    tree = ElementTree(elements)
    items: dict[int, tuple[Box, ...]] = {}
    for place, element in enumerate(elements):
        has_tag = tree.is_html[place] and element.tag in _MARKED_TAGS
        if has_tag or element.has_onclick or element.cursor == "pointer":
            rects = tuple(_seen_rects(place, element, window, tree))
            if sum(rect.w * rect.h for rect in rects) >= LEAST_AREA:
                items[place] = rects
    kept = _thin(list(items), elements, tree)
    return [
        Mark(label, elements[place].id, items[place], items[place][0].center, _entry(label, elements[place]))
        for label, place in enumerate(kept)
    ]


def webvoyager_list(marks: Sequence[Mark]) -> str:
    """The text beside the picture."""
    return "\t".join(mark.entry for mark in marks if mark.entry)


def draw_webvoyager(picture: Image.Image, marks: Sequence[Mark]) -> Image.Image:
    """A marked copy of the window's picture: a dashed outline around each rectangle, and the label at its upper left corner."""
    from PIL import ImageDraw

    marked = picture.convert("RGB") if picture.mode != "RGB" else picture.copy()
    pen, font = ImageDraw.Draw(marked), label_font(TEXT_SIZE)
    for mark in marks:
        text = str(mark.label)
        for rect in mark.rects:
            _draw_dashes(pen, rect)
            left = round(rect.x + min(math.floor(rect.w / 5), 2))
            top = round(rect.y + max(-19, -rect.y))
            right, bottom = left + 7 + math.ceil(font.getlength(text)), top + LABEL_HEIGHT - 1
            pen.rounded_rectangle((left, top, right, bottom), 2, COLOUR)
            pen.text(((left + right) / 2, (top + bottom) / 2), text, fill="white", font=font, anchor="mm")
    return marked


def _seen_rects(place: int, element: ScreenElement, window: Rectangle, tree: ElementTree) -> Iterator[Box]:
    """The rectangles whose centre lies in the window and is met by a pointer, cut to the window.

    Chromium rounds the point that it is asked about, halves away from zero.
    """
    left, top, right, bottom = window
    is_seen = element.visibility == "visible"
    for rect, on_top in zip(element.rects, element.on_top or (None,) * len(element.rects), strict=True):
        x, y = rect.center
        if element.on_top is not None:
            is_seen = on_top is not None and tree.contains(place, on_top)
        if is_seen and left - 0.5 < x < right - 0.5 and top - 0.5 < y < bottom - 0.5:
            x0, y0, x1, y1 = max(rect.x, left), max(rect.y, top), min(rect.right, right), min(rect.bottom, bottom)
            yield in_window(Box(x0, y0, x1 - x0, y1 - y0), window)


def _thin(items: list[int], elements: Sequence[ScreenElement], tree: ElementTree) -> list[int]:
    """The items that stay, in document order: no parts of buttons, then no only children of spans with a role, then only innermost."""
    buttons = {place for place in items if _is_button(elements[place])}
    items = [place for place in items if not any(above in buttons for above in tree.lineage(place))]
    known = set(items)
    items = [
        place for place in items if tree.parents[place] not in known or not _wraps(tree.parents[place], elements, tree)
    ]
    # in document order, the next item is inside of this one if any is
    return [place for place, after in pairwise([*items, len(elements)]) if after >= tree.ends[place]]


def _is_button(element: ScreenElement) -> bool:
    return (
        element.tag in ("button", "a")
        or (element.tag == "input" and element.attributes.get("type", "").lower() == "button")
        or (element.tag == "div" and element.attributes.get("role") == "button")
    )


def _wraps(place: int | None, elements: Sequence[ScreenElement], tree: ElementTree) -> bool:
    """Tells whether it is a span with a role around a single element."""
    if place is None or elements[place].tag != "span" or not tree.is_html[place]:
        return False
    return tree.n_children[place] == 1 and bool(elements[place].attributes.get("role"))


def _entry(label: int, element: ScreenElement) -> str:
    """The element's entry in the list. Quotes inside of it are not escaped; texts of pictures and long ones are left out."""
    text = _TWO_SPACES.sub(" ", _AROUND.sub("", element.text))
    name = element.attributes.get("aria-label", "")
    if not text:
        return f'[{label}]: <{element.tag}> "{name}";' if _is_listed_empty(element) else ""
    if len(text) >= LONGEST_TEXT or ("<img" in text and "src=" in text):
        return ""
    kind = f"<{element.tag}> " if element.tag in ("button", "input", "textarea") else ""
    return f'[{label}]: {kind}"{text}", "{name}";' if name and name != text else f'[{label}]: {kind}"{text}";'


def text_field_kind(element: ScreenElement) -> str:
    """The `type` that a browser answers for an input or a button; `textarea` for one; else empty."""
    kinds = _TYPES.get(element.tag)
    if kinds is None:
        return "textarea" if element.tag == "textarea" else ""
    kind = element.attributes.get("type", "").lower()
    return kind if kind in kinds else kinds[0]


def _is_listed_empty(element: ScreenElement) -> bool:
    """Tells whether an element without a text is listed all the same."""
    kind = text_field_kind(element)
    return kind in (("submit", "button") if element.tag == "button" else TEXT_FIELDS)


def _draw_dashes(pen: ImageDraw, rect: Box) -> None:
    """A dashed line of 2 pixels right outside of the rectangle."""
    left, top, right, bottom = round(rect.x) - 2, round(rect.y) - 2, round(rect.right) + 1, round(rect.bottom) + 1
    for start, end in _dashes(left, right):
        pen.rectangle((start, top, end, top + 1), COLOUR)
        pen.rectangle((start, bottom - 1, end, bottom), COLOUR)
    for start, end in _dashes(top, bottom):
        pen.rectangle((left, start, left + 1, end), COLOUR)
        pen.rectangle((right - 1, start, right, end), COLOUR)


def _dashes(first: int, last: int) -> list[tuple[int, int]]:
    """The dashes of a side: first and last pixel of each."""
    length = last - first + 1
    n = max(1, round((length + DASH_GAP) / (DASH + DASH_GAP)))
    if n == 1:
        return [(first, last)]
    step = (length - DASH) / (n - 1)
    return [(round(first + i * step), round(first + i * step) + DASH - 1) for i in range(n)]
