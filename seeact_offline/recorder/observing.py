"""The browser's own description of a page: its DOM (DevTools protocol, `DOMSnapshot.captureSnapshot`) as a tree of
`Node`, rectangles, and the accessibility tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seeact_offline.dataset.recorded import AccessibilityTree, AccessibleNode, ClientRect, ElementLayout, Layout
from seeact_offline.recorder.cleaning import Node, xml_text
from seeact_offline.records import Box, StepError

STYLES = ("visibility",)
_ELEMENT, _TEXT = 1, 3
_LIVE = {"inputValue": "input_value", "textValue": "text_value"}
_FLAGS = {"inputChecked": "input_checked", "optionSelected": "option_selected"}


def snapshot_tree(answer: Mapping[str, Any]) -> Node:
    """The tree below `<html>` of the main document. It includes open shadow trees, but no other documents (frames).
    Raises StepError for a page that is being replaced."""
    document = answer["documents"][0]
    nodes, layout = document["nodes"], document["layout"]
    # -1 stands for an empty string
    strings = [*answer["strings"], ""]
    made: dict[int, Node] = {}
    for i, kind in enumerate(nodes["nodeType"]):
        node = _node(i, kind, nodes, strings)
        if node is None:
            continue
        made[i] = node
        parent = made.get(nodes["parentIndex"][i])
        if parent is not None:
            parent.children.append(node)
    # an element of several boxes (wrapped over lines) is listed once, a text node perhaps several times: the first
    # counts
    for i, bounds, styles in zip(layout["nodeIndex"], layout["bounds"], layout["styles"], strict=True):
        if i in made and made[i].box is None:
            made[i].box = Box(*bounds)
            made[i].visible = not styles or strings[styles[0]] == "visible"
    _add_live(made, nodes, strings)
    root = next((node for node in made.values() if node.tag == "html"), None)
    if root is None:
        raise StepError("record_failed", "the page is being replaced, and has no html element")
    return root


def _node(i: int, kind: int, nodes: Mapping[str, Any], strings: Sequence[str]) -> Node | None:
    """The node of an entry; None for doctypes, comments and documents, and for pseudo-elements, which nobody can act
    on."""
    node_id, name = nodes["backendNodeId"][i], strings[nodes["nodeName"][i]].lower()
    if kind == _TEXT:
        return Node(node_id, "", text=strings[nodes["nodeValue"][i]])
    if kind != _ELEMENT or name.startswith("::"):
        return None
    pairs = [strings[index] for index in nodes["attributes"][i]]
    return Node(node_id, name, attributes=dict(zip(pairs[::2], pairs[1::2], strict=True)))


def _add_live(made: Mapping[int, Node], nodes: Mapping[str, Any], strings: Sequence[str]) -> None:
    """Adds the current state of fields; never that of a password."""
    for source, name in _LIVE.items():
        for i, value in zip(nodes[source]["index"], nodes[source]["value"], strict=True):
            if i in made and made[i].attributes.get("type") != "password":
                made[i].live[name] = strings[value]
    for source, name in _FLAGS.items():
        for i in nodes[source]["index"]:
            if i in made:
                made[i].live[name] = "true"
    for i in nodes["isClickable"]["index"]:
        if i in made:
            made[i].clickable = True


# --- rectangles and accessibility ---

MEASURE = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")
"""A function of the page that returns the argument `measured` of `layout`."""
_BROWSER_OWN = frozenset({"InlineTextBox", "LineBreak"})
"""Accessibility roles of lines on the screen."""


def layout(tree: Node, measured: Sequence[Mapping[str, Any]]) -> Layout:
    """The elements that have a rectangle, in document order.
    Elements that no script can see (closed shadow trees) are left out."""
    below = defaultdict(list)
    for place, element in enumerate(measured):
        below[element["parent"]].append(place)
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
        element = measured[places[id(node)]]
        on_top = [nodes.get(rect["onTop"]) for rect in element["rects"]]
        rects = [
            ClientRect(Box(*rect["box"]), None if top is None else str(top.backend_node_id))
            for rect, top in zip(element["rects"], on_top, strict=True)
        ]
        return ElementLayout(str(node.backend_node_id), tuple(rects), element["cursor"], element["visibility"])

    seen = (node for node in tree.walk() if id(node) in places)
    return Layout(tuple(one_layout(node) for node in seen if measured[places[id(node)]]["rects"]))


def accessibility_tree(nodes: Sequence[Mapping[str, Any]], ids: Mapping[int, int], base: str) -> AccessibilityTree:
    """The tree of `Accessibility.getFullAXTree` without ignored nodes. `ids`: the browser's node ids -> the row's.
    `base`: the beginning of addresses that is left out."""
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
    for prop in node.get("properties", ()):
        # references to other nodes have no value
        value = prop["value"].get("value")
        if isinstance(value, str):
            yield prop["name"], xml_text(value.removeprefix(base))
        elif value is not None:
            yield prop["name"], value
