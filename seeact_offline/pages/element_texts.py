"""Collects the texts that an element can be called by: on it, in it and beside it.

In this order (`TEXT_SOURCES`): the words directly in it; all words in it; these with what its icons say (`alt`,
`aria_label`, `title` of `img` and `svg`, and of any element without a type that has nothing in it); its own `alt`,
`aria_label`, `placeholder`, what it holds (`value`, `input_value`, `text_value`; for a list the option selected, else
the first; the browser's own words on a button without a value), `title`, `label`; its label, or the words that stand
for one; the options of a list. A hidden value is no text: that of a checkbox or radio button is left out.

An element without any such text goes by what code calls it: the `value` of a box to tick, else its `name`; the `name`
of an icon in it, or a drawing's class; what an input of its type asks for. Values that only say that a box is ticked,
and numbers, are no texts.

Texts are read up to `MAX_WORDS` words; of an element that holds more only the words directly in it are its text.

**A label** is what `aria_labelledby` names, else the `<label>` whose `for` names the field, else the `<label>` around
it, less the field's own words. Cleaned pages keep neither `id` nor `for`, so most fields have none of these.

**Else the words beside it**: of the wrappers around the field, up to MAX_WRAPPERS, the innermost that says anything
before the field (behind it, for boxes to tick). There the nearest `<label>` is meant, else the nearest words, up to
MAX_CAPTION_WORDS, that are not all on links and buttons. What stands beyond another field belongs to that one. Where
one side says nothing, the other counts if the wrapper has no other field: words before a box, a `<label>` right behind
a text field (it floats over it).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from seeact_offline.pages.wording import MAX_WORDS, SELECTBOX, TEXTBOX, collapsed, element_type, spelt_out

if TYPE_CHECKING:
    from seeact_offline.pages.dom import PageNode

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
PRESSED = frozenset({"checkbox", "radio"})
"""Input types of boxes to tick."""
# a page does not draw them
_UNSEEN_VALUES = PRESSED | {"hidden", "image", "password", "file"}
# values that only say that a box is ticked
_NO_NAMES = frozenset({"on", "off", "true", "false", "yes", "no"})

MAX_WRAPPERS = 3
MAX_CAPTION_WORDS = 12

_FIELDS = frozenset({"select", "textarea"})
# hidden ones are not drawn, and the others bear their own words
_UNLABELLED_INPUTS = frozenset({"hidden", "button", "submit", "reset", "image"})

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


class ElementTexts:
    """The texts of a page's elements, from its nodes."""

    def __init__(self, nodes: Sequence[PageNode]) -> None:
        self._nodes = nodes
        self._page = PageWords(nodes)
        self._labels = FieldLabels(self._page).texts()

    def type_of(self, node: int) -> str:
        return self._page.types[node]

    def of(self, node: int) -> tuple[str, ...]:
        """All texts of one element, each once, in the order of TEXT_SOURCES."""
        page = self._page
        texts = [
            page.own(node),
            " ".join(page.inside(node, self._nodes[node].end) or ()),
            page.spoken(node),
            *self._written_on(node),
            *self._labels.get(node, ()),
            *(page.of_option(option) for option in self._options_of(node)),
        ]
        return _shown(texts) or (_shown(self._names(node)) if page.says_nothing(node) else ())

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


def _shown(texts: Sequence[str]) -> tuple[str, ...]:
    # most are empty, and most of the others the same
    shown = dict.fromkeys(collapsed(text) for text in dict.fromkeys(texts) if text)
    return tuple(text for text in shown if text)


def _name(written: str) -> str:
    """A name of code as words; empty when it says nothing."""
    words = spelt_out(written)
    return words if any(char.isalpha() for char in words) and words.lower() not in _NO_NAMES else ""


# --- labels ---


class _Side(Enum):
    """Content of a side of a field that has no words for it."""

    SILENT = "nothing at all"
    FOREIGN = "something else"


class FieldLabels:
    """The labels of one page's fields."""

    def __init__(self, page: PageWords) -> None:
        self._page = page
        self._nodes = page.nodes
        self._fields = [
            number
            for number, (node, kind) in enumerate(zip(page.nodes, page.types, strict=True))
            if (
                page.attributes[number].get("type", "").strip().lower() not in _UNLABELLED_INPUTS
                if node.tag == "input"
                else node.tag in _FIELDS or kind in (TEXTBOX, SELECTBOX)
            )
        ]
        self._by_id = {a["id"]: n for n, a in reversed(list(enumerate(page.attributes))) if a.get("id")}
        # the sibling right before each node, or -1
        self._before = [-1] * len(self._nodes)
        for number, node in enumerate(self._nodes):
            if node.parent >= 0 and node.end < self._nodes[node.parent].end:
                self._before[node.end] = number
        # labels of fields, in document order
        self._taken: list[int] = []

    def texts(self) -> dict[int, list[str]]:
        """Field -> texts of its label: the label's own words, and all its words."""
        labels = self._labelled()
        for field in self._fields:
            beside = None if field in labels else self._beside(field)
            if beside is not None:
                labels[field] = self._words_of(beside)
        return labels | self._named()

    # --- labels that say whose they are ---

    def _named(self) -> dict[int, list[str]]:
        named = {}
        for field, attributes in enumerate(self._page.attributes):
            if "aria_labelledby" in attributes:
                places = [self._by_id[i] for i in attributes["aria_labelledby"].split() if i in self._by_id]
                words = [word for n in places for word in self._page.inside(n, self._nodes[n].end) or ()]
                if places:
                    named[field] = [" ".join(words)]
        return named

    def _labelled(self) -> dict[int, list[str]]:
        labels: dict[int, list[str]] = {}
        for label, node in enumerate(self._nodes):
            if node.tag != "label":
                continue
            attributes = self._page.attributes[label]
            field = self._by_id.get(attributes.get("for") or attributes.get("html_for") or "")
            if field is None:
                field = self._first_field(label + 1, node.end)
            if field is not None:
                self._taken.append(label)
                labels.setdefault(field, []).extend(self._words_of(label, field))
        return labels

    def _words_of(self, label: int, field: int = -1) -> list[str]:
        """A label's own words, and all its words less those of the field inside it."""
        end = self._nodes[label].end
        whole = self._page.inside(label, end)
        if label < field < end:
            parts = self._page.inside(label, field), self._page.inside(self._nodes[field].end, end)
            whole = None if None in parts else [word for part in parts for word in part or ()]
        own = self._page.own(label)
        return [own, " ".join(whole or ())]

    # --- words beside a field ---

    def _beside(self, field: int) -> int | None:
        """The node whose words stand for the field."""
        is_pressed = self._page.attributes[field].get("type", "").strip().lower() in PRESSED
        inner = field
        for _ in range(MAX_WRAPPERS):
            wrapper = self._nodes[inner].parent
            if wrapper < 0:
                return None
            is_only = self._is_only_field(wrapper, field)
            before, after = self._previous(inner), self._after(inner)
            if is_pressed:
                sides = [self._nearest(after), *([self._nearest(before)] if is_only else [])]
            else:
                # a label right behind a text field floats over it
                behind = next(after, None) if is_only else None
                is_floating = (
                    behind is not None
                    and self._nodes[behind].tag == "label"
                    and not self._page.says_nothing(behind)
                    and not self._is_taken(behind)
                )
                sides = [self._nearest(before), behind if behind is not None and is_floating else _Side.SILENT]
            caption = next((side for side in sides if isinstance(side, int)), None)
            if caption is not None:
                return caption
            if _Side.FOREIGN in sides or (is_pressed and not is_only):
                return None
            inner = wrapper
        return None

    def _nearest(self, siblings: Iterable[int]) -> int | _Side:
        """The one of the siblings, nearest first, that speaks for the field."""
        caption: int | _Side = _Side.SILENT
        for sibling in siblings:
            if self._first_field(sibling, self._nodes[sibling].end) is not None:
                return caption if isinstance(caption, int) else _Side.FOREIGN
            if self._page.says_nothing(sibling):
                continue
            if self._nodes[sibling].tag == "label" and not self._is_taken(sibling):
                return sibling
            if caption is _Side.SILENT:
                words = self._page.inside(sibling, self._nodes[sibling].end)
                is_short = words is not None and len(words) <= MAX_CAPTION_WORDS
                is_caption = is_short and self._is_free(sibling) and not self._is_taken(sibling)
                caption = sibling if is_caption else _Side.FOREIGN
        return caption

    def _is_free(self, node: int) -> bool:
        """Tells whether some of its words are not on a link or a button."""
        place = node
        while place < self._nodes[node].end:
            if self._page.types[place]:
                place = self._nodes[place].end
            elif self._nodes[place].text.strip():
                return True
            else:
                place += 1
        return False

    # --- where things are ---

    def _first_field(self, begin: int, end: int) -> int | None:
        """The first field of the nodes from `begin` to before `end`."""
        place = bisect_left(self._fields, begin)
        return self._fields[place] if place < len(self._fields) and self._fields[place] < end else None

    def _is_only_field(self, wrapper: int, field: int) -> bool:
        place = bisect_left(self._fields, field)
        is_first = place == 0 or self._fields[place - 1] < wrapper
        following = place + 1
        return is_first and (following == len(self._fields) or self._fields[following] >= self._nodes[wrapper].end)

    def _is_taken(self, node: int) -> bool:
        place = bisect_left(self._taken, node)
        return place < len(self._taken) and self._taken[place] < self._nodes[node].end

    def _previous(self, node: int) -> Iterator[int]:
        """Siblings before it, nearest first."""
        while (node := self._before[node]) >= 0:
            yield node

    def _after(self, node: int) -> Iterator[int]:
        """Siblings behind it, nearest first."""
        parent_end = self._nodes[self._nodes[node].parent].end
        while (node := self._nodes[node].end) < parent_end:
            yield node


# --- words ---


class PageWords:
    """The words in each node of a page, what its icons say, and each node's type."""

    def __init__(self, nodes: Sequence[PageNode]) -> None:
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
        words: list[str] = []
        for number in range(node, end) if end - node <= MAX_ICON_NODES else ():
            attributes, is_drawn = self.attributes[number], self.nodes[number].tag == "svg"
            name = attributes.get("name", "") or (attributes.get("class", "") if is_drawn else "")
            if name and self._is_icon(number):
                words += [word for word in spelt_out(name).split() if word.lower() not in _ICON_WORDS]
        return " ".join(words)

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
            icon_words = self._icon_words(number) if number >= in_option else []
            self._options.add(words)
            self._plain.add(shown)
            self._spoken.add([*shown, *icon_words] if icon_words else shown)
            if icon_words:
                self._speaking.append(number)
            if words:
                self._own.setdefault(node.parent if node.tag == "text" else number, []).extend(words)

    def _icon_words(self, number: int) -> list[str]:
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
