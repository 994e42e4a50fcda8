"""The accessibility tree of a page, by recursion over XML elements, each fact looked up anew: nothing shared with the package.

Of the subset of HTML that the package reads, the tags and attributes in ROLES, INPUTS and the functions below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

Rect = tuple[float, float, float, float]
"""Left, top, width and height."""
Node = dict[str, Any]
"""id, role, name, properties as pairs, box, children."""
ROLES = {
    "a": "link", "button": "button", "h2": "heading", "header": "banner", "img": "image", "label": "LabelText", "li": "listitem", "main": "main",
    "nav": "navigation", "option": "option", "p": "paragraph", "section": "region", "select": "combobox", "ul": "list",
}  # fmt: skip
INPUTS = {
    "": "textbox",
    "search": "searchbox",
    "password": "textbox",
    "checkbox": "checkbox",
    "submit": "button",
    "hidden": "",
}
BY_CONTENT = "button checkbox heading link option tab".split()


class Page:
    def __init__(self, html: str, boxes: Mapping[str, Rect]) -> None:
        self.root = ElementTree.fromstring(html)
        self.boxes = boxes
        self.parents = {child: parent for parent in self.root.iter() for child in parent}

    def above(self, element: Element) -> list[Element]:
        parent = self.parents.get(element)
        return [] if parent is None else [parent, *self.above(parent)]

    def tree(self, title: str) -> Node:
        properties = [("focused", True)]
        children = [node for child in self.root for node in self.nodes(child)]
        return {
            **self.known(self.root),
            "role": "RootWebArea",
            "name": title,
            "properties": properties,
            "children": children,
        }

    def known(self, element: Element) -> Node:
        return {"id": element.get("backend_node_id"), "box": self.box(element)}

    def nodes(self, element: Element) -> list[Node]:
        """The node of an element with its children; without a node, those of the children."""
        is_silent = any(self.names_a_box(one) for one in self.above(element))
        if element.tag == "text":
            words = " ".join((element.text or "").split())
            found = {**self.known(element), "role": "StaticText", "name": words, "properties": [], "children": []}
            return [found] if words and not is_silent else []
        role = self.role(element)
        name = self.name(element, role)
        if role == "region" and not name:
            role = ""
        below = [] if role in ("image", "option") else [node for child in element for node in self.nodes(child)]
        if not role and name and element.tag not in ("input", "select"):
            role = "generic"
        if not role or self.names_a_box(element):
            return below
        held = self.held(element, role, name)
        if held:
            text = {
                "id": None,
                "box": self.box(element),
                "role": "StaticText",
                "name": held,
                "properties": [],
                "children": [],
            }
            below = [text, *below]
        return [
            {
                **self.known(element),
                "role": role,
                "name": name,
                "properties": self.properties(element, role),
                "children": below,
            }
        ]

    def role(self, element: Element) -> str:
        given = element.get("role", "")
        if given:
            return {"presentation": "", "tab": "tab", "button": "button"}[given]
        if element.tag == "input":
            return INPUTS[element.get("type", "")]
        if element.tag == "img" and element.get("alt") == "":
            return ""
        if element.tag == "header" and any(one.tag in ("nav", "main", "section") for one in self.above(element)):
            return "sectionheader"
        return ROLES.get(element.tag, "")

    def name(self, element: Element, role: str) -> str:
        if element.get("aria_label"):
            return element.get("aria_label", "")
        if not role:
            return ""
        title = element.get("title", "")
        if element.tag == "img":
            return element.get("alt") or title
        if element.tag == "input" and role == "button":
            return element.get("value") or ("Submit" if element.get("type") == "submit" else "") or title
        if element.tag in ("input", "select"):
            label = next((one for one in self.root.iter("label") if self.field(one) is element), None)
            return title or element.get("placeholder", "") if label is None else self.content(label)
        return (self.content(element) if role in BY_CONTENT else "") or title

    def field(self, label: Element) -> Element | None:
        """What a label names: the first field in it."""
        return next((one for one in label.iter() if one.tag in ("input", "select")), None)

    def names_a_box(self, element: Element) -> bool:
        field = self.field(element) if element.tag == "label" else None
        return field is not None and field.get("type") == "checkbox"

    def content(self, element: Element) -> str:
        def said(one: Element) -> str:
            label = one.get("aria_label") if one is not element else ""
            label = label or (one.get("alt", "") if one.tag == "img" else "")
            if label or one.tag == "select":
                return label or ""
            own = one.text or "" if one.tag == "text" else ""
            return " ".join([own, *(said(child) for child in one)])

        return " ".join(said(element).split())

    def properties(self, element: Element, role: str) -> list[tuple[str, Any]]:
        if role == "combobox":
            return [("hasPopup", "menu"), ("expanded", False)]
        if role == "checkbox":
            return [("checked", element.get("input_checked", "false"))]
        return {
            "option": [("selected", element.get("option_selected") == "true")],
            "textbox": [("required", False)],
            "tab": [("selected", False)],
        }.get(role, [])

    def held(self, element: Element, role: str, name: str) -> str:
        if element.tag != "input":
            return ""
        if role == "button":
            return name
        is_secret = element.get("type") == "password"
        return element.get("value", "") if role in ("textbox", "searchbox") and not is_secret else ""

    def box(self, element: Element) -> Rect | None:
        if element.tag == "option" or any(one.tag == "option" for one in self.above(element)):
            return None
        return self.around(element) or next(filter(None, map(self.around, self.above(element))), None)

    def around(self, element: Element) -> Rect | None:
        """Its own box, or that around those below."""
        if element.tag == "option":
            return None
        own = self.boxes.get(element.get("backend_node_id", ""))
        if own is not None:
            return own
        below = [box for child in element if (box := self.around(child)) is not None]
        if not below:
            return None
        left, top = min(box[0] for box in below), min(box[1] for box in below)
        return left, top, max(box[0] + box[2] for box in below) - left, max(box[1] + box[3] for box in below) - top
