"""Set-of-mark observations of web agents: the marked elements of a page, the list of them, and the marked picture.

The rules are those of MinorJerry/WebVoyager 5a78967 (2024-03-04), `utils.py`, with boxes of one fixed colour, and of
web-arena-x/visualwebarena 89f5af2 (2024-11-08), `browser_env/processors.py`, where a script writes a table of elements
that pandas reads. Theirs are drawn by the browser; ours by Pillow in another font, in the places and colours of the
released ones.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from seeact_offline.agents.screens import Point, Rectangle, Size
from seeact_offline.pages.marks import label_font
from seeact_offline.records import Box
from seeact_offline.web_agents.screen_page import ElementTree, ScreenElement

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageDraw import ImageDraw

__all__ = [
    "Mark", "draw_visualwebarena", "draw_webvoyager", "visualwebarena", "visualwebarena_list", "webvoyager",
    "webvoyager_list",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """A label and its element; or a text that is listed without a label."""

    label: int | None
    """None: a text that is listed only, and cannot be acted on."""
    element_id: str
    rects: tuple[Box, ...]
    """Window pixels, like `center`."""
    center: Point
    """The place that an action on the mark points at."""
    entry: str
    """Entry in the list beside the picture; empty for none."""
    is_drawn: bool = True
    """False: it cannot be seen in the picture, though an action may name its label."""


def in_window(box: Box, window: Rectangle) -> Box:
    """A box of the page in pixels of the window."""
    return Box(box.x - window[0], box.y - window[1], box.w, box.h)


# --- WebVoyager ---

LEAST_AREA = 20
"""Square pixels in the window."""
LONGEST_LISTED = 200
"""Characters from which a text is not listed."""
COLOUR = "#000000"
VOYAGER_TEXT_SIZE = 12
LABEL_HEIGHT = 18
"""Pixels, as measured of the released label in DejaVu Sans."""
DASH, DASH_GAP = 6, 4
"""Pixels of Chromium's dashes 2 pixels wide; gaps are stretched so that a side ends in a dash."""

_MARKED_TAGS = frozenset({"input", "textarea", "select", "button", "a", "iframe", "video", "li", "td", "option"})
TEXT_FIELDS = frozenset({"text", "search", "password", "email", "tel", "textarea"})
"""Types of elements that a text can be typed into, a `textarea` among them."""
# the `type` that a browser answers, which for unknown words is the first
_INPUT_TYPES = (
    "text", "search", "password", "email", "tel", "hidden", "url", "date", "month", "week", "time", "datetime-local",
    "number", "range", "color", "checkbox", "radio", "file", "submit", "image", "reset", "button",
)  # fmt: skip
_TYPES = {"input": _INPUT_TYPES, "button": ("submit", "reset", "button")}
# JavaScript's, which differs from Python's
_SPACE = "[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
_AROUND = re.compile(f"^{_SPACE}+|{_SPACE}+$")
_TWO_SPACES = re.compile(f"{_SPACE}{{2,}}")


def webvoyager(elements: Sequence[ScreenElement], window: Rectangle) -> list[Mark]:
    """The marks of a window, numbered from 0 in document order.

    `elements`: all of the page, in document order. Rectangles are cut to the window. Where it is not known what covers
    an element, nothing does.
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
    """A marked copy of the window's picture: a dashed outline around each rectangle, and the label at its upper left
    corner."""
    from PIL import ImageDraw

    marked = picture.convert("RGB") if picture.mode != "RGB" else picture.copy()
    pen, font = ImageDraw.Draw(marked), label_font(VOYAGER_TEXT_SIZE)
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
    """The items that stay, in document order: no parts of buttons, then no only children of spans with a role, then
    only innermost."""
    buttons = {place for place in items if _is_button(elements[place])}
    items = [place for place in items if not any(above in buttons for above in tree.lineage(place))]
    kept = set(items)
    items = [
        place for place in items if tree.parents[place] not in kept or not _wraps(tree.parents[place], elements, tree)
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
    """The element's entry in the list. Quotes inside of it are not escaped; texts of pictures and long ones are left
    out."""
    text = _TWO_SPACES.sub(" ", _AROUND.sub("", element.text))
    name = element.attributes.get("aria-label", "")
    if not text:
        # listed all the same
        kinds = ("submit", "button") if element.tag == "button" else TEXT_FIELDS
        return f'[{label}]: <{element.tag}> "{name}";' if text_field_kind(element) in kinds else ""
    if len(text) >= LONGEST_LISTED or ("<img" in text and "src=" in text):
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


# --- VisualWebArena ---

LARGEST_SHARE = 0.8
"""Share of the window's area; larger elements are left out."""
SMALLEST_SIDE = 8
"""Pixels below which an element is neither drawn nor listed, and keeps its number."""
LONGEST_TEXT = 200
"""Characters of an element's text that are listed."""
TEXT_SIZE = 16
PADDING = 2
"""Pixels around a label's text."""
DIGIT_WIDTH = 9.59375
"""Pixels of a digit in the released font, Source Code Pro SemiBold, under Pillow's raqm layout, which its wheels have
for Linux and macOS (under the basic layout: 10)."""
COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip
"""Matplotlib's, in turn by number."""
EMPTY_WORDS = frozenset({
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL",
    "NaN", "None", "n/a", "nan", "null",
})  # fmt: skip
"""Texts that pandas reads as a missing value."""

_ROLES = frozenset({"button", "link", "checkbox", "menuitem", "tab"})
_TEXT_TAGS = frozenset({"p", "span", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "article"})
_SITE_LINKS = frozenset({"/notifications", "/submit"})
_STAR = frozenset({"fa", "fa-star", "is-rating-item"})


class Label(NamedTuple):
    """A label in the picture, in pixels of the window."""

    text: str
    corner: Point
    """Upper left corner of the text."""
    background: tuple[float, float, float, float]
    """Left, top, right, bottom."""


def visualwebarena(elements: Sequence[ScreenElement], window: Rectangle) -> list[Mark]:
    """The marks of a window, numbered from 1 in document order, among the texts that are listed without a number.

    `elements`: all of the page, in document order. Neither what covers an element nor whether it can be seen matters.
    The released code fails on a page all of whose texts are numbers; here they are listed.
    """
    tree = ElementTree(elements)
    rows = _Rows(elements, tree)
    size = window[2] - window[0], window[3] - window[1]
    marks: list[Mark] = []
    listed: set[str] = set()
    n = 0
    for place, element in enumerate(elements):
        box = element.box
        if box is None or not box.w or not box.h:
            continue
        is_interactable = rows.is_interactable(place)
        if not (is_interactable or rows.is_text(place)):
            continue
        box = in_window(box, window)
        if not (box.bottom >= 0 and box.y <= size[1] and box.right >= 0 and box.x <= size[0]):
            continue
        if box.w * box.h > LARGEST_SHARE * (size[0] * size[1]):
            continue
        n += is_interactable
        is_drawn = is_interactable and box.w >= SMALLEST_SIDE and box.h >= SMALLEST_SIDE
        name = element.tag.upper() if tree.is_html[place] else element.tag
        alt, text = _read_back(element.attributes.get("alt", "")), _read_back(element.text)
        content = (alt if name == "IMG" else "") + text.strip().replace("\n", "").replace("\t", "")[:LONGEST_TEXT]
        entry = f"[{n}] [{name}] [{content}]" if is_drawn else ""
        if not is_interactable and content and content not in listed and not (content[0] == "." and "{" in content):
            entry = f"[] [StaticText] [{content}]"
        if is_drawn and content in listed:
            # quirk: an earlier entry that is, as a whole, this content is taken out
            marks = [replace(mark, entry="") if mark.entry.strip() == content else mark for mark in marks]
        if entry:
            listed.add(content)
        marks.append(Mark(n if is_interactable else None, element.id, (box,), box.center, entry, is_drawn))
    return marks


def visualwebarena_list(marks: Sequence[Mark]) -> str:
    """The text beside the picture. Where it is empty, the released agent is shown the page's tree."""
    return "\n".join(mark.entry for mark in marks if mark.entry)


def place_labels(marks: Sequence[Mark], size: Size) -> list[Label]:
    """The labels of all marks that are drawn in a window of this size, in their order."""
    labels: list[Label] = []
    for mark in marks:
        if mark.is_drawn:
            labels.append(_place_label(str(mark.label), mark.rects[0], labels, size))
    return labels


def draw_visualwebarena(picture: Image.Image, marks: Sequence[Mark]) -> Image.Image:
    """A marked copy of the window's picture: a box in its own colour around each element, all labels on top."""
    from PIL import ImageDraw

    marked = picture.convert("RGB") if picture.mode != "RGB" else picture.copy()
    pen, font = ImageDraw.Draw(marked), label_font(TEXT_SIZE)
    drawn = [mark for mark in marks if mark.is_drawn]
    colours = [COLOURS[((mark.label or 1) - 1) % len(COLOURS)] for mark in drawn]
    for mark, colour in zip(drawn, colours, strict=True):
        box = mark.rects[0]
        pen.rectangle((box.x, box.y, box.right, box.bottom), outline=colour, width=2)
    for label, colour in zip(place_labels(marks, picture.size), colours, strict=True):
        left, top, right, bottom = label.background
        pen.rectangle(label.background, colour)
        pen.text(((left + right) / 2, (top + bottom) / 2), label.text, fill="white", font=font, anchor="mm")
    return marked


class _Rows:
    """The elements that become rows of the table, by place."""

    def __init__(self, elements: Sequence[ScreenElement], tree: ElementTree) -> None:
        self._elements, self._tree = elements, tree
        self._pictures = [place for place, element in enumerate(elements) if element.tag == "img"]

    def is_interactable(self, place: int) -> bool:
        element = self._elements[place]
        attributes = element.attributes
        classes = set(attributes.get("class", "").split())
        return (
            self._by_tag(place, element)
            or attributes.get("tabindex", "-1") != "-1"
            or attributes.get("contenteditable") == "true"
            or attributes.get("role") in _ROLES
            or attributes.get("draggable") == "true"
            or "btn" in classes
            or classes >= _STAR
        )

    def is_text(self, place: int) -> bool:
        """Tells whether it is listed as a text, unless it is interactable. Its parent then is not, nor a style
        sheet."""
        element, parent = self._elements[place], self._tree.parents[place]
        if element.tag not in _TEXT_TAGS or (element.tag == "div" and self._tree.n_children[place]):
            return False
        return parent is not None and self._elements[parent].tag != "style" and not self.is_interactable(parent)

    def _by_tag(self, place: int, element: ScreenElement) -> bool:
        if element.tag == "a":
            address = element.attributes.get("href")
            return address is not None and (address in _SITE_LINKS or not self._has_picture(place))
        if element.tag == "img":
            return any(
                self._elements[above].tag == "a" and "href" in self._elements[above].attributes
                for above in self._tree.lineage(place)
            )
        if element.tag == "input":
            return element.attributes.get("type", "").lower() != "hidden"
        return element.tag in ("button", "textarea", "select")

    def _has_picture(self, place: int) -> bool:
        after = bisect_right(self._pictures, place)
        return after < len(self._pictures) and self._tree.contains(place, self._pictures[after])


def _read_back(text: str) -> str:
    text = text.replace('"', "")
    return "" if text in EMPTY_WORDS else text


def _place_label(text: str, box: Box, earlier: Sequence[Label], size: Size) -> Label:
    """The label on the first of seven places that is in the window and clear of earlier labels; else on the last."""
    width, inner = DIGIT_WIDTH * len(text), TEXT_SIZE + 2 * PADDING
    above, below = box.y - TEXT_SIZE, box.bottom
    corners = (
        (box.x - TEXT_SIZE, above),
        (box.x, above),
        (box.right, above),
        (box.right - inner, above),
        (box.x - TEXT_SIZE, below),
        (box.x, below),
        (box.right - inner, below),
    )
    labels = [
        Label(text, (x, y), (x - PADDING, y - PADDING, x + width + PADDING, y + TEXT_SIZE + PADDING))
        for x, y in corners
    ]
    return next((label for label in labels if _is_free(label, earlier, size)), labels[-1])


def _is_free(label: Label, earlier: Sequence[Label], size: Size) -> bool:
    left, top, right, bottom = label.background
    if left < 0 or top < 0 or right > size[0] or bottom > size[1]:
        return False
    least = 2 * PADDING
    return not any(
        min(right - x0, x1 - left) >= least and min(bottom - y0, y1 - top) >= least
        for x0, y0, x1, y1 in (other.background for other in earlier)
    )
