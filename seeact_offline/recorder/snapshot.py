"""The browser's own description of a page (DevTools protocol, `DOMSnapshot.captureSnapshot`) as a tree of `Node`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seeact_offline.recorder.cleaning import Node
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
    # an element of several boxes (wrapped over lines) is listed once, a text node perhaps several times: the first counts
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
    """None for doctypes, comments and documents, and for pseudo-elements, which nobody can act on."""
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
