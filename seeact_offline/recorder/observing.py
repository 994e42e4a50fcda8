"""The recorder's own columns of a page, apart from its DOM and its picture: rectangles, and the accessibility tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seeact_offline.dataset.recorded import AccessibilityTree, AccessibleNode, ClientRect, ElementLayout, Layout
from seeact_offline.recorder.cleaning import Node, xml_text
from seeact_offline.records import Box

MEASURE = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")
"""A function of the page that returns the argument `measured` of `layout`."""
_BROWSER_OWN = frozenset({"InlineTextBox", "LineBreak"})
"""Accessibility roles of lines on the screen."""


def layout(tree: Node, measured: Sequence[Mapping[str, Any]]) -> Layout:
    """The elements that have a rectangle, in document order. Elements that no script can see (closed shadow trees) are left out."""
    below = defaultdict(list)
    for place, one in enumerate(measured):
        below[one["parent"]].append(place)
    nodes: dict[int, Node] = {}
    left = [(0, tree)]
    while left:
        place, node = left.pop()
        nodes[place] = node
        inside = [child for child in node.children if child.tag]
        # a page that changed meanwhile, or a shadow tree: what is inside cannot be told apart
        if [child.tag for child in inside] == [measured[child]["tag"] for child in below[place]]:
            left.extend(zip(below[place], inside, strict=True))
    places = {id(node): place for place, node in nodes.items()}

    def one_layout(node: Node) -> ElementLayout:
        found = measured[places[id(node)]]
        on_top = [nodes.get(rect["onTop"]) for rect in found["rects"]]
        rects = [
            ClientRect(Box(*rect["box"]), None if top is None else str(top.backend_node_id))
            for rect, top in zip(found["rects"], on_top, strict=True)
        ]
        return ElementLayout(str(node.backend_node_id), tuple(rects), found["cursor"], found["visibility"])

    known = (node for node in tree.walk() if id(node) in places)
    return Layout(tuple(one_layout(node) for node in known if measured[places[id(node)]]["rects"]))


def accessibility_tree(nodes: Sequence[Mapping[str, Any]], ids: Mapping[int, int], base: str) -> AccessibilityTree:
    """The tree of `Accessibility.getFullAXTree` without ignored nodes. `ids`: the browser's node ids -> the row's. `base`: the beginning of
    addresses that is left out."""
    by_id = {node["nodeId"]: node for node in nodes}
    kept = []
    left = [(0, nodes[0])] if nodes else []
    while left:
        depth, node = left.pop()
        role = str(node.get("role", {}).get("value", ""))
        if role in _BROWSER_OWN:
            continue
        is_kept = not node["ignored"]
        if is_kept:
            number = ids.get(node.get("backendDOMNodeId", -1))
            kept.append(
                AccessibleNode(
                    depth,
                    role,
                    None if number is None else str(number),
                    xml_text(str(node.get("name", {}).get("value", ""))),
                    xml_text(str(node.get("value", {}).get("value", ""))),
                    dict(_properties(node, base)),
                )
            )
        inside = [by_id[name] for name in node.get("childIds", ()) if name in by_id]
        left.extend((depth + is_kept, child) for child in reversed(inside))
    return AccessibilityTree(tuple(kept))


def _properties(node: Mapping[str, Any], base: str) -> Iterator[tuple[str, str | bool | float]]:
    for one in node.get("properties", ()):
        # references to other nodes have no value
        value = one["value"].get("value")
        if isinstance(value, str):
            yield one["name"], xml_text(value.removeprefix(base))
        elif value is not None:
            yield one["name"], value
