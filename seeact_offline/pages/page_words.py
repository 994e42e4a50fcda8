"""Reads the words on a page, node by node, once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Protocol

from seeact_offline.pages.element_types import element_type
from seeact_offline.pages.wording import MAX_WORDS, spelt_out

MAX_ICON_NODES = 20
"""Nodes of an element that may be an icon; the drawing's own parts are among them."""
PICTURES = frozenset({"img", "svg", "image"})
_NO_ICONS = frozenset(
    {
        "text", "option", "optgroup", "input", "select", "textarea", "iframe", "frame", "embed", "object", "source", "param",
    }
)  # fmt: skip

_ICON_WORDS = frozenset({"icon", "icons", "ico", "ic", "svg", "img", "image", "glyph"})
"""They say no more than that it is one."""


class Node(Protocol):
    """The part of `dom.PageNode` that is read here."""

    @property
    def backend_node_id(self) -> str: ...

    @property
    def tag(self) -> str: ...

    @property
    def parent(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def attributes(self) -> Mapping[str, str]: ...

    @property
    def text(self) -> str: ...


class PageWords:
    """The words in each node of a page, what its icons say, and each node's type."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        # cleaned pages write `aria_label`, others `aria-label`
        self.attributes: list[Mapping[str, str]] = [
            {name.replace("-", "_"): value for name, value in node.attributes.items()}
            if any("-" in name for name in node.attributes)
            else node.attributes
            for node in nodes
        ]
        """Attributes by node, with underscores in their names."""
        self.types = [element_type(node.tag, self.attributes[n]) for n, node in enumerate(nodes)]
        self._own: dict[int, list[str]] = {}
        self._plain, self._spoken, self._options = _Flow(), _Flow(), _Flow()
        # icons that say something, in document order
        self._speaking: list[int] = []
        self._read()

    def own(self, node: int) -> str:
        """The words directly in a node."""
        return " ".join(self._own.get(node, ()))

    def inside(self, begin: int, end: int) -> list[str] | None:
        """The words in the nodes from `begin` to before `end`, less those of options; None when they are too many."""
        return self._plain.inside(begin, end)

    def says_nothing(self, node: int) -> bool:
        """Tells whether no word is in it."""
        return self._plain.is_empty(node, self.nodes[node].end)

    def spoken(self, node: int) -> str:
        """All words in a node, with what its icons say; empty where they say nothing."""
        end = self.nodes[node].end
        first = bisect_left(self._speaking, node)
        if first == len(self._speaking) or self._speaking[first] >= end:
            return ""
        return " ".join(self._spoken.inside(node, end) or ())

    def icon_names(self, node: int) -> str:
        """Names that code gives the icons in a node; empty where it holds too much."""
        end = self.nodes[node].end
        said: list[str] = []
        for number in range(node, end) if end - node <= MAX_ICON_NODES else ():
            attributes, is_drawn = self.attributes[number], self.nodes[number].tag == "svg"
            name = attributes.get("name", "") or (attributes.get("class", "") if is_drawn else "")
            if name and self._is_icon(number):
                said += [word for word in spelt_out(name).split() if word.lower() not in _ICON_WORDS]
        return " ".join(said)

    def of_option(self, option: int) -> str:
        words = self._options.inside(option, self.nodes[option].end)
        return " ".join(words or ()) or self.attributes[option].get("label", "")

    def _read(self) -> None:
        # one past the option that the node is in
        in_option = -1
        for number, node in enumerate(self.nodes):
            words = node.text.split() if node.text else []
            if node.tag == "option":
                in_option = max(in_option, node.end)
            shown = () if number < in_option else words
            said = self._said(number) if number >= in_option else []
            self._options.add(words)
            self._plain.add(shown)
            self._spoken.add([*shown, *said] if said else shown)
            if said:
                self._speaking.append(number)
            if words:
                self._own.setdefault(node.parent if node.tag == "text" else number, []).extend(words)

    def _said(self, number: int) -> list[str]:
        """Words of an icon; empty for any other node."""
        attributes = self.attributes[number]
        if len(attributes) <= ("backend_node_id" in attributes) or not self._is_icon(number):
            return []
        return next((attributes[name] for name in ("aria_label", "alt", "title") if attributes.get(name)), "").split()

    def _is_icon(self, number: int) -> bool:
        """A picture, or an element of no type with nothing in it."""
        node = self.nodes[number]
        if node.tag in PICTURES:
            return True
        return node.end == number + 1 and not node.text and not self.types[number] and node.tag not in _NO_ICONS


class _Flow:
    """Words in document order, and where each node's begin."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._starts: list[int] = []

    def add(self, words: Sequence[str]) -> None:
        """The words right inside the next node."""
        self._starts.append(len(self._words))
        self._words += words

    def inside(self, begin: int, end: int) -> list[str] | None:
        """The words of the nodes from `begin` to before `end`; None when they are too many."""
        first, last = self._start(begin), self._start(end)
        return self._words[first:last] if last - first <= MAX_WORDS else None

    def is_empty(self, begin: int, end: int) -> bool:
        return self._start(begin) == self._start(end)

    def _start(self, node: int) -> int:
        return self._starts[node] if node < len(self._starts) else len(self._words)
