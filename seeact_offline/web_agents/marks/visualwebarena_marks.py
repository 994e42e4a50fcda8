"""VisualWebArena's set-of-mark: elements, numbers, list and picture.

The rules are those of web-arena-x/visualwebarena 89f5af2 (2024-11-08), `browser_env/processors.py`, where a script writes a table of
elements that pandas reads. Ours draws labels in another font, in the places and colours of the released one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from seeact_offline.agents.screens import Point, Rectangle, Size
from seeact_offline.pages.marks import label_font
from seeact_offline.records import Box
from seeact_offline.web_agents.marks.mark import Mark, in_window
from seeact_offline.web_agents.screen_elements import ElementTree, ScreenElement

if TYPE_CHECKING:
    from PIL import Image

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
"""Pixels of a digit in the released font, Source Code Pro SemiBold, under Pillow's raqm layout, which its wheels have for Linux and macOS (under
the basic layout: 10)."""
COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip
"""Matplotlib's, in turn by number."""
EMPTY_WORDS = frozenset({
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None",
    "n/a", "nan", "null",
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

    `elements`: all of the page, in document order. Neither what covers an element nor whether it can be seen matters. The released code
    fails on a page all of whose texts are numbers; here they are listed.
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
        """Tells whether it is listed as a text, unless it is interactable. Its parent then is not, nor a style sheet."""
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
