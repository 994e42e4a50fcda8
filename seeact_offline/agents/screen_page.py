"""A recorded row as a `Screen`, and what stands in for what the row lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from seeact_offline.agents.screen_elements import Screen, ScreenElement, box_around
from seeact_offline.agents.screens import Rectangle
from seeact_offline.dataset.recorded import AccessibilityTree, ElementLayout, Layout, PageState
from seeact_offline.pages.dom import TEXT, Page, PageNode

if TYPE_CHECKING:
    from seeact_offline.records import Box, Step

FALL_BACKS: Mapping[str, str] = {
    "href_of_all_links": "cleaned_html has no href: every `a` counts as a link",
    "tabindex_by_clickable": (
        "cleaned_html has no tabindex, contenteditable, draggable or class: an element that is no link, picture or field is taken for"
        " focusable where the row says that it is clickable"
    ),
    "texts_by_spaces": "cleaned_html has no white space around texts: a space stands between two",
    "onclick_by_clickable": "no row tells onclick handlers: an element has one where the row says that it is clickable",
    "no_cursor": "the row has no column layout: no element is known to have the cursor of a link",
    "no_covering": "the row has no column layout: nothing covers an element, and none is wrapped over lines",
    "boxes_of_candidates": "the row has no column layout: only its candidates have boxes",
    "boxes_around_children": "an element without a box has the box around those inside of it",
    "no_address": "the row has no column page_state: the page's address is not known",
    "no_title": "the row has no column accessibility_tree: the page's title is not known",
}
"""Names of fall-backs, and what each means."""

_ALWAYS = frozenset({"href_of_all_links", "tabindex_by_clickable", "texts_by_spaces", "onclick_by_clickable"})
_WITHOUT_LAYOUT = frozenset({"no_cursor", "no_covering", "boxes_of_candidates"})
_BY_TAG = frozenset({"a", "img", "button", "input", "textarea", "select"})
"""Elements of which the tag, and what is left of the attributes, says whether one can act on them."""


def screen_of(step: Step, page: Page, window: Rectangle) -> Screen:
    """What an agent sees of a step's page through a window.

    `page`: its `cleaned_html`, parsed; `window`: in pixels of the page. The page's size is the area that the window and the boxes
    reach. The columns of our recorder are used where the row has them. Raises RowError `bad_recording` for ones that cannot be read.
    """
    nodes = list(page.nodes())
    places = {node: place for place, node in enumerate(i for i, one in enumerate(nodes) if one.tag != TEXT)}
    clickable = {one.backend_node_id for one in step.candidates if one.is_clickable}
    recorded = step.recorded
    layout = recorded.read(Layout) if recorded else None
    state = recorded.read(PageState) if recorded else None
    tree = recorded.read(AccessibilityTree) if recorded else None
    fall_backs = _ALWAYS
    known: dict[str, ElementLayout] = {}
    rects: dict[int, tuple[Box, ...]]
    if layout is not None:
        known = {one.id: one for one in layout.elements}
        on_page = _on_page(layout.elements, page.ids)
        rects = {
            i: tuple(rect.box for rect in known[nodes[i].backend_node_id].rects)
            for i in places
            if nodes[i].backend_node_id in known
        }
    else:
        on_page = {}
        boxes = {one.backend_node_id: one.box for one in step.candidates if one.box is not None}
        rects = {i: (boxes[nodes[i].backend_node_id],) for i in places if nodes[i].backend_node_id in boxes}
        around = _boxes_around(nodes, rects)
        rects |= around
        fall_backs |= _WITHOUT_LAYOUT | ({"boxes_around_children"} if around else set())
    elements = []
    for i in places:
        node = nodes[i]
        look = known.get(node.backend_node_id)
        is_clickable = node.backend_node_id in clickable
        elements.append(
            ScreenElement(
                id=node.backend_node_id,
                tag=node.tag.lower(),
                parent=places[node.parent] if node.parent >= 0 else None,
                attributes=_attributes(node, is_clickable),
                text=" ".join(one.text for one in nodes[i : node.end] if one.tag == TEXT),
                rects=rects.get(i, ()),
                on_top=tuple(on_page.get(rect.on_top or "") for rect in look.rects) if look else None,
                cursor=look.cursor if look else None,
                visibility=look.visibility if look else "visible",
                has_onclick=is_clickable,
            )
        )
    reached = [box for some in rects.values() for box in some]
    fall_backs |= ({"no_address"} if state is None else set()) | ({"no_title"} if tree is None else set())
    return Screen(
        window=window,
        page_size=(
            max([window[2], *(int(box.right) for box in reached)]),
            max([window[3], *(int(box.bottom) for box in reached)]),
        ),
        elements=tuple(elements),
        address=state.address if state else "",
        title=tree.nodes[0].name if tree and tree.nodes else "",
        fall_backs=fall_backs,
    )


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


def _boxes_around(nodes: Sequence[PageNode], rects: Mapping[int, tuple[Box, ...]]) -> dict[int, tuple[Box, ...]]:
    """The boxes around what is inside of the elements that have none, by place."""
    inside: dict[int, list[Box]] = {}
    found: dict[int, tuple[Box, ...]] = {}
    for i in range(len(nodes) - 1, -1, -1):
        own = rects.get(i)
        if own is None and i in inside:
            own = found[i] = (box_around(inside[i]),)
        if own:
            inside.setdefault(nodes[i].parent, []).append(box_around(own))
    return found


def _on_page(elements: Sequence[ElementLayout], ids: frozenset[str]) -> dict[str, str]:
    """Each element of the layout, and the element of the page that it belongs to: itself, or the last one before it.

    Cleaning takes away the insides of icons and wrappers without information.
    """
    found: dict[str, str] = {}
    last = ""
    for one in elements:
        last = one.id if one.id in ids else last
        found[one.id] = last
    return found
