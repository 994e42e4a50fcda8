"""A recorded row as the page that a web agent sees: its elements with their places and looks, and what stands in for what the row lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from seeact_offline.dataset.recorded import AccessibilityTree, Layout, PageState
from seeact_offline.pages.dom import TEXT, Page, PageNode
from seeact_offline.records import Box, Step

FALL_BACKS: Mapping[str, str] = {
    "href_of_all_links": "cleaned_html has no href: every `a` counts as a link",
    "tabindex_by_clickable": (
        "cleaned_html has no tabindex, contenteditable, draggable or class: an element that is no link, picture, field or"
        " label is taken for focusable where the row says that it is clickable"
    ),
    "texts_without_space": "cleaned_html has no white space around texts: they are joined without any",
    "onclick_by_clickable": "no row tells onclick handlers: an element but a label has one where the row says that it is clickable",
    "no_cursor": "the row has no column layout: no element is known to have the cursor of a link",
    "no_covering": "the row has no column layout: nothing covers an element, and none is wrapped over lines",
    "boxes_of_candidates": "the row has no column layout: only its candidates have boxes",
    "options_hidden": "an option whose box is that of its list is one of a closed list, and has no box",
    "boxes_around_children": "an element without a box has the box around those inside of it",
    "no_address": "the row has no column page_state: the page's address is not known",
    "no_title": "the row has no column accessibility_tree: the page's title is not known, and trees are made from the HTML",
}
"""Names of fall-backs, and what each means."""

OF_EVERY_ROW = frozenset({"href_of_all_links", "tabindex_by_clickable", "texts_without_space", "onclick_by_clickable"})
"""Fall-backs that no row does without."""
_WITHOUT_LAYOUT = frozenset({"no_cursor", "no_covering", "boxes_of_candidates"})
_BY_TAG = frozenset({"a", "img", "button", "input", "textarea", "select"})
"""Elements of which the tag, and what is left of the attributes, says whether one can act on them."""
_LISTS = frozenset({"select", "datalist"})
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
    """A page as an agent sees it, without the picture, however it was found."""

    elements: tuple[ScreenElement, ...]
    """All of the page, in document order."""
    address: str = ""
    """Empty where it is not known, as is the following."""
    title: str = ""
    fall_backs: frozenset[str] = frozenset()
    """Names of what stands in for what is not known, as in `FALL_BACKS`."""


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


# --- from a row ---


def screen_of(step: Step, page: Page) -> Screen:
    """The page of a step. `page`: its `cleaned_html`, parsed. The columns of our recorder are used where the row has them. Raises RowError
    `bad_recording` for ones that cannot be read."""
    recorded = step.recorded
    layout = recorded.read(Layout) if recorded else None
    state = recorded.read(PageState) if recorded else None
    tree = recorded.read(AccessibilityTree) if recorded else None
    nodes = list(page.nodes())
    measured = _Measured.of_candidates(step, nodes) if layout is None else _Measured.of_layout(layout, nodes)
    # the browser takes every label for clickable
    clickable = {one.backend_node_id for one in step.candidates if one.is_clickable and one.tag.lower() != "label"}
    elements: list[ScreenElement] = []
    names: list[str] = []
    places: dict[int, int] = {}
    for i, node in enumerate(nodes):
        if node.tag == TEXT:
            continue
        places[i] = len(elements)
        is_clickable = node.backend_node_id in clickable
        bare = ScreenElement(
            id=node.backend_node_id,
            tag=node.tag.lower(),
            parent=places.get(node.parent),
            attributes=_attributes(node, is_clickable),
            text="".join(one.text for one in nodes[i : node.end] if one.tag == TEXT),
            has_onclick=is_clickable,
        )
        elements.append(measured.looks.get(node.backend_node_id, _NOTHING).on(bare))
        names.append(node.backend_node_id)
        # under its icon's id, by which an answer is judged
        inside = ScreenElement(id=node.backend_node_id, tag="path", parent=places[i])
        for name in measured.icon_parts.get(node.backend_node_id, ()):
            elements.append(measured.looks[name].on(inside))
            names.append(name)
    elements = measured.with_tops(elements, names)
    return Screen(
        elements=tuple(elements),
        address=state.address if state else "",
        title=tree.nodes[0].name if tree and tree.nodes else "",
        fall_backs=OF_EVERY_ROW
        | measured.fall_backs
        | ({"no_address"} if state is None else set())
        | ({"no_title"} if tree is None else set()),
    )


class _Look(NamedTuple):
    """Place and look of one element."""

    rects: tuple[Box, ...] = ()
    cursor: str | None = None
    visibility: str = "visible"

    def on(self, element: ScreenElement) -> ScreenElement:
        return replace(element, **self._asdict())


_NOTHING = _Look()


@dataclass(frozen=True, slots=True)
class _Measured:
    """The looks of elements, by id."""

    looks: Mapping[str, _Look]
    fall_backs: frozenset[str] = frozenset()
    tops: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """Ids of what a pointer meets at the centre of each rectangle; empty where this is not known."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Elements that cleaning took away, and the last one of the page before each: most are inside of it."""
    icon_parts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Ids of the shapes inside an icon, which cleaning takes away."""

    @classmethod
    def of_layout(cls, layout: Layout, page: Sequence[PageNode]) -> _Measured:
        tags = {node.backend_node_id: node.tag for node in page}
        looks = {
            one.id: _Look(tuple(rect.box for rect in one.rects), one.cursor, one.visibility) for one in layout.elements
        }
        owners: dict[str, str] = {}
        parts: dict[str, list[str]] = {}
        last = ""
        for one in layout.elements:
            if one.id in tags:
                last = one.id
                continue
            owners[one.id] = last
            around = looks.get(last, _NOTHING).rects
            if tags.get(last) == "svg" and Box.around(around).contains(*Box.around(looks[one.id].rects).center):
                parts.setdefault(last, []).append(one.id)
        tops = {one.id: tuple(rect.on_top for rect in one.rects) for one in layout.elements}
        return cls(looks, tops=tops, owners=owners, icon_parts=parts)

    def with_tops(self, elements: Sequence[ScreenElement], names: Sequence[str]) -> list[ScreenElement]:
        """The elements with what lies on top of them. `names`: their own ids, by which they are measured."""
        places = {name: place for place, name in reversed(list(enumerate(names)))}

        def place_of(name: str | None) -> int | None:
            return None if name is None else places.get(name, places.get(self.owners.get(name, "")))

        return [
            replace(element, on_top=tuple(map(place_of, self.tops[name]))) if name in self.tops else element
            for element, name in zip(elements, names, strict=True)
        ]

    @classmethod
    def of_candidates(cls, step: Step, nodes: Sequence[PageNode]) -> _Measured:
        boxes = {one.backend_node_id: one.box for one in step.candidates if one.box is not None}
        hidden = _hidden_options(nodes, boxes)
        around = _boxes_around(nodes, boxes, hidden)
        looks = {name: _Look((box,)) for name, box in (boxes | around).items() if name not in hidden}
        used = ({"options_hidden"} if hidden else set()) | ({"boxes_around_children"} if around else set())
        return cls(looks, _WITHOUT_LAYOUT | used)


def _attributes(node: PageNode, is_clickable: bool) -> dict[str, str]:
    """A node's attributes by their names in HTML, with stand-ins for those that cleaning took away."""
    named = {f"aria-{name[5:]}" if name.startswith("aria_") else name: value for name, value in node.attributes.items()}
    tag = node.tag.lower()
    # an icon's class is words that describe it
    return (
        {name: value for name, value in named.items() if name != "class"}
        | ({"href": named.get("href", "")} if tag == "a" else {})
        | ({"tabindex": "0"} if is_clickable and tag not in _BY_TAG else {})
    )


def _hidden_options(nodes: Sequence[PageNode], boxes: Mapping[str, Box]) -> set[str]:
    """The elements in a list that have its box."""
    found = set()
    for i, node in enumerate(nodes):
        box = boxes.get(node.backend_node_id)
        if node.tag.lower() in _LISTS and box is not None:
            inside = (one.backend_node_id for one in nodes[i + 1 : node.end])
            found |= {name for name in inside if boxes.get(name) == box}
    return found


def _boxes_around(nodes: Sequence[PageNode], boxes: Mapping[str, Box], hidden: set[str]) -> dict[str, Box]:
    """The boxes around what is inside of the elements that have none."""
    inside: dict[int, list[Box]] = {}
    found: dict[str, Box] = {}
    for i in range(len(nodes) - 1, -1, -1):
        name = nodes[i].backend_node_id
        box = boxes.get(name)
        if box is None and i in inside:
            box = found[name] = Box.around(inside[i])
        if box is not None and name not in hidden:
            inside.setdefault(nodes[i].parent, []).append(box)
    return found
