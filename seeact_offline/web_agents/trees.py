"""Accessibility trees as web agents print them: VisualWebArena's, WebVoyager's text-only one and OpenWebVoyager's; and its HTML.

A window takes a node out when the browser gives it no box, or one without width or height, or when `overlap area * height / width` of
the box is under a threshold; its children take its place. (The released code means a share of the box, but has no brackets, so in
effect whatever touches the window stays.) The root always stays.

Source: web-arena-x/visualwebarena 89f5af2: browser_env/processors.py; MinorJerry/WebVoyager 5a78967: utils_webarena.py;
MinorJerry/OpenWebVoyager e907cef: WebVoyager/utils_webarena.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from seeact_offline.records import Box

Value = str | bool | float | None


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One node of an accessibility tree, or of a page's HTML, with all below it."""

    id: str
    """Its `backend_node_id`, which is what is printed."""
    role: str | None
    name: str | None = ""
    properties: tuple[tuple[str, Value], ...] = ()
    """Names with values, in the browser's order; None: the property has no value."""
    children: tuple[TreeNode, ...] = field(default=(), repr=False)
    box: Box | None = None
    """Page pixels."""
    has_element: bool = True
    """True if something of the page's DOM is behind it."""

    def walk(self) -> Iterator[TreeNode]:
        """This node and all below it, in document order."""
        left = [self]
        while left:
            yield (node := left.pop())
            left.extend(reversed(node.children))


@dataclass(frozen=True, slots=True)
class TreeText:
    """A printed tree."""

    text: str
    nodes: Mapping[str, TreeNode]
    """Printed id -> the node that an action on it means. Holds the ids of cleaned lines, too: the released code accepts them."""
    ends: Mapping[str, int] = field(repr=False)
    """Printed id -> the place in the text where its line ends."""

    def shows(self, printed_id: str, cut: str | None = None) -> bool:
        """Tells whether the line of an id is there, and whole in a text that is cut from this one."""
        end = self.ends.get(printed_id)
        return end is not None and (cut is None or cut[:end] == self.text[:end])

    def words(self, printed_id: str) -> str:
        """The line of an id without the id, white space collapsed; empty where there is none."""
        end = self.ends.get(printed_id, 0)
        return " ".join(self.text[self.text.rfind("\n", 0, end) + 1 : end].split()[1:])

    def below(self, head: str) -> TreeText:
        """The same below a head line and a blank one, as VisualWebArena shows its observations."""
        begin = len(head) + 2
        return TreeText(f"{head}\n\n{self.text}", self.nodes, {name: end + begin for name, end in self.ends.items()})


MAX_TOKENS = 3_840
"""Most tokens of VisualWebArena's observations."""

# --- which nodes a window shows ---

ARENA_THRESHOLD = 0.6
OPEN_THRESHOLD = 0.8


def _is_shown(node: TreeNode, root: TreeNode, window: Box | None, threshold: float) -> bool:
    """Tells whether a window keeps a node."""
    if window is None or node is root:
        return True
    box = node.box
    if box is None or not node.has_element or box.w == 0 or box.h == 0:
        return False
    x, y = box.x - window.x, box.y - window.y
    overlap = max(0, min(x + box.w, window.w) - max(x, 0)) * max(0, min(y + box.h, window.h) - max(y, 0))
    return overlap / box.w * box.h >= threshold


# --- VisualWebArena, and WebVoyager without pictures ---

_ARENA_IGNORED = frozenset({"focusable", "editable", "readonly", "level", "settable", "multiline", "invalid"})
_OPEN_IGNORED = _ARENA_IGNORED | {"hiddenRoot", "hidden", "controls", "labelledby", "describedby"}
_LEFT_OUT_BLANK = frozenset({
    "generic", "img", "list", "strong", "paragraph", "banner", "navigation", "Section", "LabelText", "Legend", "listitem",
})  # fmt: skip
_STATIC_TEXT = re.compile(r"\[\d+\] StaticText .(.*).")
"""Without the quotes, and whatever stands where they would where properties follow."""
_STATIC_TEXT_IN_SINGLE_QUOTES = re.compile(r"\[\d+\] StaticText '([^']+)'")
_PREVIOUS_LINES = 3


def print_arena(root: TreeNode, window: Box | None = None) -> TreeText:
    """VisualWebArena's tree.

    A node that has nothing of the DOM behind it is printed, but cannot be acted on, and its children are not indented.
    """
    return _cleaned(_arena_lines(root, window), _STATIC_TEXT)


def print_webvoyager(root: TreeNode, window: Box | None = None) -> TreeText:
    """WebVoyager's tree for text-only runs: the same, but texts with an apostrophe are lost."""
    return _cleaned(_arena_lines(root, window), _STATIC_TEXT_IN_SINGLE_QUOTES)


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    node: TreeNode
    can_act: bool = True
    printed_id: str = ""


def _arena_lines(root: TreeNode, window: Box | None) -> Iterator[_Line]:
    left = [(root, 0)]
    while left:
        node, depth = left.pop()
        is_valid = False
        if _is_shown(node, root, window, ARENA_THRESHOLD) and _is_printed(node):
            said = " ".join([f"[{node.id}] {node.role} {node.name!r}", *_properties(node, _ARENA_IGNORED)])
            yield _Line("\t" * depth + said, node, node.has_element, node.id)
            is_valid = node.has_element
        left.extend((child, depth + is_valid) for child in reversed(node.children))


def _is_printed(node: TreeNode) -> bool:
    if node.role is None or node.name is None:
        return False
    if node.name.strip():
        return True
    is_bare = next(_properties(node, _ARENA_IGNORED), None) is None
    return node.role not in _LEFT_OUT_BLANK if is_bare else node.role != "listitem"


def _properties(node: TreeNode, ignored: frozenset[str]) -> Iterator[str]:
    for name, value in node.properties:
        if name not in ignored and value is not None:
            # numbers are written as the browser's protocol does
            whole = isinstance(value, float) and value.is_integer()
            yield f"{name}: {int(value) if whole else value}"


def _cleaned(lines: Iterable[_Line], static_text: re.Pattern[str]) -> TreeText:
    """Drops lines of static text that say nothing, or what one of the last kept lines says, or that are no `static_text`, whose group is the text."""
    nodes: dict[str, TreeNode] = {}
    ends: dict[str, int] = {}
    kept: list[str] = []
    length = 0
    for line in lines:
        if line.can_act:
            nodes[line.printed_id] = line.node
        for number, part in enumerate(line.text.split("\n")):
            if "statictext" in part.lower():
                match = static_text.search(part)
                text = match[1] if match else ""
                if not text or any(text in previous for previous in kept[-_PREVIOUS_LINES:]):
                    continue
            length += len(part) + bool(kept)
            kept.append(part)
            if not number:
                ends[line.printed_id] = length
    return TreeText("\n".join(kept), nodes, ends)


# --- OpenWebVoyager ---

MAX_LINES = 301
"""A child is no longer looked at when more than 300 nodes have a number."""
_SAID_ABOVE = frozenset({"StaticText", "heading", "image", "generic"})
"""Roles that are left out where their name is a part of that of the printed node above."""


def print_open(root: TreeNode, window: Box | None = None) -> TreeText:
    """OpenWebVoyager's tree, numbered from 1 in the order of its lines. Nothing is cleaned."""
    lines: list[_Line] = []
    left = [(root, 0, "root")]
    while left and len(lines) < MAX_LINES:
        node, depth, above = left.pop()
        name = node.name or ""
        is_shown = _is_shown(node, root, window, OPEN_THRESHOLD)
        is_repeated = node.role in _SAID_ABOVE and name.strip() in above
        if is_shown and node.role not in (None, "gridcell") and name.strip() and not is_repeated:
            number = str(len(lines) + 1)
            said = " ".join([f"[{number}] {node.role} {name!r}", *_properties(node, _OPEN_IGNORED)])
            lines.append(_Line("\t" * depth + said, node, True, number))
            depth, above = depth + 1, name
        left.extend((child, depth, above) for child in reversed(node.children))
    return _uncleaned(lines)


def _uncleaned(lines: Sequence[_Line], end: str = "") -> TreeText:
    ends: dict[str, int] = {}
    length = -1
    for line in lines:
        length += 1 + len(line.text)
        ends[line.printed_id] = length
    text = "\n".join(line.text for line in lines)
    return TreeText(text + end * bool(lines), {line.printed_id: line.node for line in lines}, ends)


# --- VisualWebArena's HTML ---


def print_html(root: TreeNode, window: Box | None = None) -> TreeText:
    """VisualWebArena's HTML: `[index] <NAME attributes> value` a node, without nodes that have neither attributes nor a value.

    Roles are names of nodes, names their values, properties their attributes. The index counts the nodes that the window shows.
    """
    lines: list[_Line] = []
    left = [(root, 0)]
    index = 0
    while left:
        node, depth = left.pop()
        if _is_shown(node, root, window, ARENA_THRESHOLD):
            attributes = " ".join(f'{name}="{" ".join(str(value).split())}"' for name, value in node.properties)
            value = " ".join((node.name or "").split())
            if attributes or value:
                said = f"[{index}] <{node.role}{' ' * bool(attributes)}{attributes}> {value}"
                lines.append(_Line("\t" * depth + said, node, True, str(index)))
                depth += 1
            index += 1
        left.extend((child, depth) for child in reversed(node.children))
    return _uncleaned(lines, "\n")


# --- captions ---

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def caption_text(alt: str, caption: str | None) -> str:
    """The alternative text of a picture with its caption behind it, as VisualWebArena rewrites the page; recorded pages have no addresses."""
    if caption is not None and (ascii_caption := _NOT_ASCII.sub("", caption.strip())) not in alt:
        alt = f"{alt}, description: {ascii_caption}"
    return alt
