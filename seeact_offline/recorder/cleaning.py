"""Turns a browser's snapshot of a page into the data set's `cleaned_html` and `raw_html`.

The rules come from the Mind2Web paper (arXiv 2306.06070, appendix on data cleaning) and from its released pages: only
salient attributes stay, text is in `<text>` nodes, invisible content is dropped,
and a wrapper without information is replaced by its children.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import escape, quoteattr

from seeact_offline.records import Box

SALIENT = {
    "alt": "alt", "aria-description": "aria_description", "aria-label": "aria_label", "aria-role": "aria_role",
    "label": "label", "name": "name", "placeholder": "placeholder", "role": "role", "title": "title", "type": "type",
    "value": "value",
}  # fmt: skip
DROPPED = frozenset(
    {"script", "style", "noscript", "template", "head", "meta", "link", "base", "title", "br", "wbr", "param", "track"}
)
EMBEDDED = frozenset({"canvas", "iframe", "object", "embed", "frame"})
"""Elements with content outside of the page's DOM: kept only with a salient attribute."""
ALWAYS_KEPT = frozenset(
    {"button", "input", "select", "textarea", "a", "option", "optgroup", "svg", "img", "summary", "video", "audio"}
)
"""Elements that are kept even without text or attributes."""
LISTS = frozenset({"select", "datalist"})
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
ICON_NOISE = frozenset("icon icons ico svg fa fas far fab mdi bi glyph glyphicon material symbol inline".split())
"""Words in the classes of icons that do not describe them."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_ICON_WORD = re.compile(r"[A-Z]?[a-z]+")


@dataclass
class Node:
    """One node of a snapshot, and later of the cleaned page. `tag` is empty for text."""

    backend_node_id: int
    tag: str
    text: str = ""
    """The text of a text node; empty for elements."""
    attributes: dict[str, str] = field(default_factory=dict)
    """The attributes as the page has them."""
    live: dict[str, str] = field(default_factory=dict)
    """Current state of the page: input_value, input_checked, option_selected, text_value."""
    box: Box | None = None
    """None where the browser lays nothing out."""
    visible: bool = True
    """According to CSS visibility."""
    clickable: bool = False
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, in document order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def clean(root: Node, page: Box) -> Node:
    """The cleaned copy of a snapshot's `<html>`. `page`: the rectangle that a full-page picture shows."""
    cleaned = _clean(root, page, list_box=None)
    is_root = len(cleaned) == 1 and cleaned[0].tag == root.tag
    kept = cleaned[0] if is_root else Node(root.backend_node_id, root.tag, children=cleaned)
    kept.box = kept.box or page
    return kept


def cleaned_html(root: Node) -> str:
    """Well-formed XML, one node per line, each with its `backend_node_id`."""
    lines: list[str] = []
    stack: list[tuple[Node | None, str, int]] = [(root, "", 0)]
    while stack:
        node, closing, depth = stack.pop()
        if node is None:
            lines.append(closing)
            continue
        indent, own = "  " * depth, f' backend_node_id="{node.backend_node_id}"'
        if not node.tag:
            lines.append(f"{indent}<text{own}>{escape(xml_text(node.text))}</text>")
            continue
        own += "".join(f" {name}={quoteattr(xml_text(value))}" for name, value in salient(node).items())
        lines.append(f"{indent}<{node.tag}{own}{'' if node.children else '/'}>")
        if node.children:
            stack.append((None, f"{indent}</{node.tag}>", depth))
            stack.extend((child, "", depth + 1) for child in reversed(node.children))
    return "\n".join(lines)


def raw_html(root: Node) -> str:
    """The page as HTML, each element with its `backend_node_id` and `bounding_box_rect`."""
    parts: list[str] = []
    stack: list[Node | str] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            parts.append(node)
        elif not node.tag:
            parts.append(html.escape(node.text, quote=False))
        else:
            parts.append(f"<{node.tag}{_raw_attributes(node)}>")
            if node.tag not in VOID:
                stack.append(f"</{node.tag}>")
                stack.extend(reversed(node.children))
    # half a character cannot be written to a file
    return "".join(parts).encode("utf-8", "replace").decode()


def xml_text(text: str) -> str:
    """The text with white space collapsed and without characters that XML does not allow."""
    return " ".join(_NOT_XML.sub("", text).split())


def candidate_attributes(node: Node) -> dict[str, str]:
    """A candidate's attributes as the data set lists them, with underscores in their names,
    and whether it is clickable."""
    named = {name.replace("-", "_"): value for name, value in node.attributes.items() if name != "style"}
    return named | node.live | ({"is_clickable": "true"} if node.clickable else {})


def salient(node: Node) -> dict[str, str]:
    """The attributes that are kept, by their cleaned names."""
    kept = {SALIENT[name]: value for name, value in node.attributes.items() if name in SALIENT and value.strip()}
    if node.tag == "svg":
        words = icon_words(node)
        kept |= {"class": words} if words else {}
    return kept | {name: value for name, value in node.live.items() if value.strip()}


def icon_words(svg: Node) -> str:
    """`icon icon-arrow-left` -> `arrow left`. The name of a symbol that the icon refers to counts like a class."""
    names = [svg.attributes.get("class", "")]
    names += [n.attributes.get("href", n.attributes.get("xlink:href", "")) for n in svg.walk() if n.tag == "use"]
    words = [word.lower() for name in names for word in _ICON_WORD.findall(name.rpartition("#")[2])]
    return " ".join(dict.fromkeys(word for word in words if word not in ICON_NOISE and len(word) > 1))


def _clean(node: Node, page: Box, list_box: Box | None) -> list[Node]:
    """A node after cleaning: nothing, itself, or its children in its place. `list_box`: box of the enclosing select."""
    if not node.tag:
        is_shown = list_box is not None or (node.box is not None and node.visible and _on_page(node.box, page))
        return [Node(node.backend_node_id, "", text=xml_text(node.text))] if is_shown and xml_text(node.text) else []
    if node.tag in DROPPED or not _NAME.fullmatch(node.tag):
        return []
    if node.box is None and list_box is None and all(below.box is None for below in node.walk()):
        return []
    inner = node.box if node.tag in LISTS else list_box
    children = [] if node.tag == "svg" else [kept for child in node.children for kept in _clean(child, page, inner)]
    named = next((below for below in node.walk() if below.tag == "title"), None) if node.tag == "svg" else None
    title = xml_text("".join(below.text for below in named.walk())) if named else ""
    inside = [child.box for child in children if child.box is not None]
    has_area = node.box is not None and node.box.w > 0 and node.box.h > 0
    copy = replace(
        node,
        attributes=node.attributes | ({"title": title} if title else {}),
        # an option of a closed list has the list's box; a container without an area has the box around its content
        box=node.box if has_area else list_box or (Box.around(inside) if inside else None),
        children=children,
    )
    return children if _is_dropped(copy, node, page) else [copy]


def _is_dropped(copy: Node, node: Node, page: Box) -> bool:
    """Tells whether a node gives its place to its children, if it has any."""
    if node.tag in {"html", "body"}:
        return False
    if copy.box is None or copy.box.w <= 0 or copy.box.h <= 0 or not _on_page(copy.box, page):
        return True
    if not node.visible and not copy.children:
        return True
    if node.tag in EMBEDDED:
        return not salient(copy)
    bare = not salient(copy) and not any(not child.tag for child in copy.children)
    return bare and len(copy.children) <= 1 and copy.tag not in ALWAYS_KEPT and not (copy.clickable and node.visible)


def _on_page(box: Box, page: Box) -> bool:
    """A box beside the picture counts, as in the data set: a carousel's next cards, a menu that slides in."""
    return box.bottom > page.y and box.y < page.bottom


def _raw_attributes(node: Node) -> str:
    box = node.box or Box(-1, -1, -1, -1)
    own: Mapping[str, str] = {name: value for name, value in node.attributes.items() if _NAME.fullmatch(name)}
    extra = {
        "backend_node_id": str(node.backend_node_id),
        "bounding_box_rect": f"{box.x:g},{box.y:g},{box.w:g},{box.h:g}",
    }
    return "".join(f' {name}="{html.escape(value)}"' for name, value in {**own, **node.live, **extra}.items())
