"""The view of a web agent: a window onto a page, and the page's elements with their places and looks.

A `Screen` says what is known, however it was found: from a recorded row (`screen_page.screen_of`) or from a page in a browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seeact_offline.agents.screens import Rectangle, Size
from seeact_offline.records import Box

_FOREIGN = frozenset({"svg", "math"})
"""Elements whose descendants are no HTML: scripts spell their names as the page does, those of HTML in capitals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenElement:
    """One element of a page."""

    id: str
    """Several may share one: the shapes of an icon have the icon's."""
    tag: str
    """Tag name in lower case."""
    parent: int | None = None
    """Place of its parent in the sequence that holds them both; None for the root."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Attributes by their names in HTML."""
    text: str = ""
    """The text content, as scripts read it: of all text nodes inside, with their white space."""
    rects: tuple[Box, ...] = ()
    """The client rectangles, in pixels of the page; a link that is wrapped over lines has several."""
    on_top: tuple[int | None, ...] | None = None
    """Place of the element that a pointer meets at each rectangle's centre, None for no element; None where this is not known."""
    cursor: str | None = None
    """Computed value in CSS's words; None where it is not known."""
    visibility: str = "visible"
    """Computed value in CSS's words."""
    has_onclick: bool = False
    """It has a handler property `onclick`."""

    @property
    def box(self) -> Box | None:
        """The smallest rectangle around all that have any extent; None where none has an area to be drawn."""
        rects = [rect for rect in self.rects if rect.w or rect.h]
        return Box.around(rects) if rects else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A page as an agent sees it, without the picture."""

    window: Rectangle
    """The part of the page that is seen. Its upper left corner is the scroll position."""
    page_size: Size
    elements: tuple[ScreenElement, ...]
    """All of the page, in document order."""
    address: str = ""
    """Empty where it is not known, as is the following."""
    title: str = ""
    fall_backs: frozenset[str] = frozenset()
    """Names of what stands in for what is not known, as in `screen_page.FALL_BACKS`."""


class ElementTree:
    """Kinship of elements in document order, by their places in the sequence."""

    def __init__(self, elements: Sequence[ScreenElement]) -> None:
        """Raises ValueError where an element stands before its parent."""
        n = len(elements)
        self.parents = [element.parent for element in elements]
        self.ends = list(range(1, n + 1))
        """One past the last element inside."""
        self.n_children = [0] * n
        self.is_html = [True] * n
        """False inside of SVG and MathML."""
        for place, (element, parent) in enumerate(zip(elements, self.parents, strict=True)):
            if parent is not None and not 0 <= parent < place:
                raise ValueError(
                    f"elements: expected the parent of {element.id} before it, got place {parent} for {place}"
                )
            inherits = parent is None or self.is_html[parent] or elements[parent].tag == "foreignobject"
            self.is_html[place] = inherits and element.tag not in _FOREIGN
            if parent is not None:
                self.n_children[parent] += 1
        for place in range(n - 1, 0, -1):
            parent = self.parents[place]
            if parent is not None:
                self.ends[parent] = max(self.ends[parent], self.ends[place])

    def contains(self, place: int, other: int) -> bool:
        """Tells whether the other is this element or inside of it."""
        return place <= other < self.ends[place]

    def lineage(self, place: int) -> list[int]:
        """The elements around it, innermost first."""
        above: list[int] = []
        parent = self.parents[place]
        while parent is not None:
            above.append(parent)
            parent = self.parents[parent]
        return above
