"""Collects the texts that an element can be called by: on it, in it and beside it.

In this order (`TEXT_SOURCES`): the words directly in it; all words in it; these with what its icons say (`alt`, `aria_label`,
`title` of `img` and `svg`, and of any element without a type that has nothing in it); its own `alt`, `aria_label`, `placeholder`,
what it holds (`value`, `input_value`, `text_value`; for a list the option selected, else the first; the browser's own words
on a button without a value), `title`, `label`; its label, or the words that stand for one (`field_labels`); the options of a list.
A hidden value is no text: that of a checkbox or radio button is left out.

An element without any such text goes by what code calls it: the `value` of a box to tick, else its `name`; the `name` of an icon
in it, or a drawing's class; what an input of its type asks for. Values that only say that a box is ticked, and numbers, are
no texts.

Texts are read up to `MAX_WORDS` words; of an element that holds more only the words directly in it are its text.
"""

from __future__ import annotations

from collections.abc import Sequence

from seeact_offline.pages.field_labels import PRESSED, FieldLabels
from seeact_offline.pages.page_words import Node, PageWords
from seeact_offline.pages.wording import collapsed, spelt_out

TEXT_SOURCES = (
    "own", "inner", "spoken", "alt", "aria_label", "placeholder", "value", "title", "label", "labels", "options", "names",
)  # fmt: skip
BROWSER_WORDS = {"submit": "Submit", "reset": "Reset", "file": "Choose File"}
"""Words that browsers write on inputs of these types without a value."""
ASKED_FOR = {
    "search": "Search", "email": "Email", "password": "Password", "tel": "Phone", "url": "URL", "date": "Date", "time": "Time",
    "month": "Month", "week": "Week", "color": "Color",
}  # fmt: skip
"""Purpose of an input, by its type."""
_UNSEEN_VALUES = PRESSED | {"hidden", "image", "password", "file"}
_NO_NAMES = frozenset({"on", "off", "true", "false", "yes", "no"})


class ElementTexts:
    """The texts of a page's elements, from its nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._page = PageWords(nodes)
        self._labels = FieldLabels(self._page).texts()

    def type_of(self, node: int) -> str:
        return self._page.types[node]

    def of(self, node: int) -> tuple[str, ...]:
        """All texts of one element, each once, in the order of TEXT_SOURCES."""
        page = self._page
        found = [
            page.own(node),
            " ".join(page.inside(node, self._nodes[node].end) or ()),
            page.spoken(node),
            *self._written_on(node),
            *self._labels.get(node, ()),
            *(page.of_option(option) for option in self._options_of(node)),
        ]
        return _shown(found) or (_shown(self._names(node)) if page.says_nothing(node) else ())

    def _written_on(self, node: int) -> list[str]:
        """Texts of its own attributes."""
        attributes = self._page.attributes[node]
        if len(attributes) < 2 and self._nodes[node].tag != "select":
            # the id alone, as most elements
            return []
        before = [attributes.get(name, "") for name in ("alt", "aria_label", "placeholder")]
        return [*before, *self._held(node), attributes.get("title", ""), attributes.get("label", "")]

    def _held(self, node: int) -> list[str]:
        """The visible content of a field."""
        attributes = self._page.attributes[node]
        if self._nodes[node].tag == "select":
            options = self._options_of(node)
            chosen = [o for o in options if self._page.attributes[o].get("option_selected")] or options[:1]
            return [self._page.of_option(option) for option in chosen]
        kind = self._input_type(node)
        if kind in _UNSEEN_VALUES:
            return [BROWSER_WORDS.get(kind, "")]
        held = [attributes.get(name, "") for name in ("input_value", "text_value", "value")]
        return held if any(held) else [BROWSER_WORDS.get(kind, "")]

    def _names(self, node: int) -> list[str]:
        """Names in code of an element that has no text."""
        attributes, kind = self._page.attributes[node], self._input_type(node)
        value = _name(attributes.get("value", "")) if kind in PRESSED else ""
        name = value or (_name(attributes.get("name", "")) if self._page.types[node] else "")
        return [name, self._page.icon_names(node), ASKED_FOR.get(kind, "")]

    def _input_type(self, node: int) -> str:
        """Empty for what is no input."""
        return self._page.attributes[node].get("type", "").strip().lower() if self._nodes[node].tag == "input" else ""

    def _options_of(self, node: int) -> list[int]:
        if self._nodes[node].tag != "select":
            return []
        return [n for n in range(node + 1, self._nodes[node].end) if self._nodes[n].tag == "option"]


def _shown(found: Sequence[str]) -> tuple[str, ...]:
    # most are empty, and most of the others the same
    shown = dict.fromkeys(collapsed(text) for text in dict.fromkeys(found) if text)
    return tuple(text for text in shown if text)


def _name(written: str) -> str:
    """A name of code as words; empty when it says nothing."""
    words = spelt_out(written)
    return words if any(char.isalpha() for char in words) and words.lower() not in _NO_NAMES else ""
