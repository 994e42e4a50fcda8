"""Find the elements that a type and a text describe, anywhere on a page.

**What is searched.** Every node of the page gives words, but only the elements named as candidates can be found: the rest
of the page is not drawn, or nothing the data set lets one act on. `<html>` and `<body>` are never found, nor is `<option>`:
the list that holds it is, by the option's text as well as by its own.

**An element's texts** (`TEXT_SOURCES`, in this order): the words directly in it; all words in it; these with what its
pictures say (`alt`, `aria_label`, `title` of `img` and `svg`); its own `alt`, `aria_label`, `placeholder`, what it holds
(`value`, `input_value`, `text_value`; for a list the option selected, else the first), `title`, `label`; its label; the options
of a list. A hidden value is no text: that of a checkbox or radio button is left out. A field's label is what `aria_labelledby`
names, else the `<label>` whose `for` names it, else the `<label>` around it, less the field's own words, else the `<label>`
right before it (right after it, for checkboxes and radio buttons), as long as that label has no field of its own:
cleaned pages seldom keep `id` and `for`. Text right behind a closing tag is not looked at: pages keep their words in `<text>`.
Texts are read up to `MAX_WORDS` words; of an element that holds more only the words directly in it are its text.

**Types.** `element_type` says what an element is, `asked_type` what a reply means; a type that nobody knows, or more than one,
means any. Elements of the type asked go first. Where there are none, those of a type that looks like it (`LOOK_ALIKES`) and
those without a type of their own, of which pages make buttons as they like. Others are left out.

**Tiers.** `exact` (the same characters, white space collapsed), `normalised` (NFKC, case and punctuation aside), `contained`
(the words asked stand together in the text; or the text's in those asked, when they are at least half of them), `fuzzy`
(rapidfuzz's `ratio` of the normalised texts is at least the threshold). The first tier with an element that fits is the answer.

**Nested matches** are one: of an element and one inside it the one is kept whose matching text is shorter; of equals the one
that has a type; of these the inner one, as what is done to it reaches the outer one too, which does not hold the other way.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol

BUTTON, TEXTBOX, SELECTBOX, LINK = "BUTTON", "TEXTBOX", "SELECTBOX", "LINK"
TYPES = (BUTTON, TEXTBOX, SELECTBOX, LINK)
Tier = Literal["exact", "normalised", "contained", "fuzzy"]
TIERS: tuple[Tier, ...] = ("exact", "normalised", "contained", "fuzzy")
FUZZY_THRESHOLD = 80.0
"""Percent; two typing errors in a text of ten characters."""
MAX_WORDS = 60
MAX_LENGTH = 1000
"""Characters of a text."""
TEXT_SOURCES = ("own", "inner", "spoken", "alt", "aria_label", "placeholder", "value", "title", "label", "options")

LOOK_ALIKES = {
    BUTTON: (LINK, SELECTBOX),
    LINK: (BUTTON,),
    TEXTBOX: (SELECTBOX,),
    SELECTBOX: (BUTTON, TEXTBOX),
}
"""What a picture does not tell apart: links drawn as buttons, lists opened by one, fields that suggest entries."""
TAG_TYPES = {
    "button": BUTTON, "summary": BUTTON, "a": LINK, "area": LINK, "select": SELECTBOX, "textarea": TEXTBOX,
}  # fmt: skip
INPUT_TYPES = {
    "button": BUTTON, "submit": BUTTON, "reset": BUTTON, "image": BUTTON, "checkbox": BUTTON, "radio": BUTTON, "file": BUTTON,
    "color": BUTTON, "range": "", "hidden": "",
}  # fmt: skip
"""Any other is a TEXTBOX, as in browsers."""
ROLE_TYPES = {
    "button": BUTTON, "tab": BUTTON, "menuitem": BUTTON, "menuitemcheckbox": BUTTON, "menuitemradio": BUTTON, "option": BUTTON,
    "checkbox": BUTTON, "radio": BUTTON, "switch": BUTTON, "treeitem": BUTTON, "gridcell": BUTTON, "textbox": TEXTBOX,
    "searchbox": TEXTBOX, "spinbutton": TEXTBOX, "combobox": SELECTBOX, "listbox": SELECTBOX, "link": LINK,
}  # fmt: skip
ASKED_TYPES = {
    BUTTON: (
        "BUTTON", "BTN", "SUBMIT", "ICON", "CHECKBOX", "CHECK", "RADIO", "RADIOBUTTON", "TAB", "TOGGLE", "SWITCH", "OPTION",
        "MENUITEM", "LISTITEM", "TREEITEM", "GRIDCELL", "CHIP", "PILL",
    ),
    TEXTBOX: (
        "TEXTBOX", "INPUT", "INPUTBOX", "FIELD", "TEXTAREA", "TEXTFIELD", "SEARCHBOX", "SEARCHBAR", "SEARCHFIELD", "SPINBUTTON",
        "TEXTINPUT", "INPUTFIELD",
    ),
    SELECTBOX: (
        "SELECTBOX", "SELECT", "DROPDOWN", "DROPDOWNLIST", "COMBOBOX", "COMBO", "LISTBOX", "PICKER", "SELECTLIST", "SELECTOR",
    ),
    LINK: ("LINK", "HYPERLINK", "ANCHOR", "A"),
}  # fmt: skip
_ASKED = {word: kind for kind, words in ASKED_TYPES.items() for word in words}

_FIELDS = frozenset({"input", "select", "textarea"})
_PRESSED = frozenset({"checkbox", "radio"})
_PICTURES = frozenset({"img", "svg", "image"})
_NEVER_FOUND = frozenset({"option", "optgroup", "text", "html", "body"})
_UNSEEN_VALUES = _PRESSED | {"hidden", "image", "password", "file"}
_UNLABELLED_INPUTS = frozenset({"hidden", "button", "submit", "reset", "image"})
_JOINED = str.maketrans(dict.fromkeys("'`\u2018\u2019\u02bc\u00b4\u00ad\u200b\u200c\u200d\ufeff", ""))
"""Apostrophes and invisible characters part no words."""
_SIGNS = re.compile(r"[\W_]+")


class Node(Protocol):
    """What is read of a page's node: `dom.PageNode`."""

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


@dataclass(frozen=True, slots=True)
class Found:
    """The elements that fit best."""

    ids: tuple[str, ...]
    """In document order, nested ones reduced."""
    tier: Tier | None = None
    # None when nothing was found


@dataclass(frozen=True, slots=True)
class Element:
    """One element that can be found."""

    node: int
    backend_node_id: str
    type: str
    """One of TYPES, or empty."""
    texts: tuple[str, ...]
    """White space collapsed, each once, in the order of TEXT_SOURCES."""


class _Hit(NamedTuple):
    """An element that a tier found."""

    element: Element
    length: int
    """Characters of its shortest text that matches, normalised."""

    @property
    def looseness(self) -> tuple[int, bool]:
        """The least of nested hits is the one meant."""
        return self.length, not self.element.type


# --- types ---


def element_type(tag: str, attributes: Mapping[str, str]) -> str:
    """One of TYPES, or empty for an element without a type of its own.

    Form fields are what their tag says, whatever their role: a text box that suggests entries is written into.
    """
    tag = tag.lower()
    if tag == "input":
        return INPUT_TYPES.get(attributes.get("type", "").strip().lower(), TEXTBOX)
    if tag in _FIELDS:
        return TAG_TYPES[tag]
    role = (attributes.get("role") or attributes.get("aria_role") or "").lower().split()
    return ROLE_TYPES.get(role[0], "") if role and role[0] in ROLE_TYPES else TAG_TYPES.get(tag, "")


def asked_type(text: str) -> str:
    """The type that a reply's words name: one of TYPES, or empty for any (none known, or more than one).

    Each word counts, and two words as one: `Drop-down list`, `input field`, `RADIO BUTTON`.
    """
    words = [word.upper() for word in normalised(text[:200]).split()]
    names = [word for word in (*words, *(a + b for a, b in pairwise(words))) if len(word) > 1]
    whole = _ASKED.get("".join(words))
    kinds = {whole} if whole else {_ASKED[name] for name in names if name in _ASKED}
    return kinds.pop() if len(kinds) == 1 else ""


# --- texts ---


def collapsed(text: str) -> str:
    """The first words, with single spaces between them."""
    # cut early: a reply may hold megabytes, with or without spaces
    return " ".join(text.split(maxsplit=MAX_WORDS)[:MAX_WORDS])[:MAX_LENGTH].rstrip()


def normalised(text: str) -> str:
    """The words in their plain form, with single spaces; a text of signs alone stays itself, in NFKC."""
    if text.isascii():
        plain = text.lower().replace("'", "").replace("`", "")
        words = " ".join(_SIGNS.sub(" ", plain).split())
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        plain = folded.translate(_JOINED)
        words = " ".join("".join(c if _is_of_word(c) else " " for c in plain).split())
    return words or " ".join(unicodedata.normalize("NFKC", text).split())


def _is_of_word(char: str) -> bool:
    """Marks belong to words: in Hindi or Thai they are the vowels."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"


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
        """Those of the nodes from `begin` to before `end`; None when they are too many."""
        first, last = self._start(begin), self._start(end)
        return self._words[first:last] if last - first <= MAX_WORDS else None

    def _start(self, node: int) -> int:
        return self._starts[node] if node < len(self._starts) else len(self._words)


class _Texts:
    """The texts of a page's elements, from its nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._attributes = [_underscored(node.attributes) for node in nodes]
        self._own: dict[int, list[str]] = {}
        self._plain, self._spoken, self._options = _Flow(), _Flow(), _Flow()
        self._read()
        self._by_id = {a["id"]: i for i, a in reversed(list(enumerate(self._attributes))) if a.get("id")}
        self._labels = self._find_labels()

    def of(self, node: int) -> tuple[str, ...]:
        """All texts of one element, each once, in the order of TEXT_SOURCES."""
        attributes, end = self._attributes[node], self._nodes[node].end
        found = [
            " ".join(self._own.get(node, ())),
            " ".join(self._plain.inside(node, end) or ()),
            " ".join(self._spoken.inside(node, end) or ()),
            *(attributes.get(name, "") for name in ("alt", "aria_label", "placeholder")),
            *self._held(node),
            *(attributes.get(name, "") for name in ("title", "label")),
            *self._labels.get(node, ()),
            *(self._option(option) for option in self._options_of(node)),
        ]
        # most are empty, and most of the others the same
        shown = dict.fromkeys(collapsed(text) for text in dict.fromkeys(found) if text)
        return tuple(text for text in shown if text)

    def type_of(self, node: int) -> str:
        return element_type(self._nodes[node].tag, self._attributes[node])

    def _read(self) -> None:
        in_option = -1
        # one past the option that the node is in
        for number, node in enumerate(self._nodes):
            words = node.text.split() if node.text else []
            if node.tag == "option":
                in_option = max(in_option, node.end)
            inside = number < in_option
            self._options.add(words)
            self._plain.add(() if inside else words)
            self._spoken.add(() if inside else [*words, *self._pictured(number)])
            if words:
                self._own.setdefault(node.parent if node.tag == "text" else number, []).extend(words)

    def _pictured(self, node: int) -> list[str]:
        if self._nodes[node].tag not in _PICTURES:
            return []
        attributes = self._attributes[node]
        said = next((attributes[name] for name in ("aria_label", "alt", "title") if attributes.get(name)), "")
        return said.split()

    def _held(self, node: int) -> list[str]:
        """What a field holds, as far as it can be seen."""
        attributes = self._attributes[node]
        if self._nodes[node].tag == "select":
            options = self._options_of(node)
            chosen = [o for o in options if self._attributes[o].get("option_selected")] or options[:1]
            return [self._option(option) for option in chosen]
        if attributes.get("type", "").strip().lower() in _UNSEEN_VALUES:
            return []
        return [attributes.get(name, "") for name in ("input_value", "text_value", "value")]

    def _options_of(self, node: int) -> list[int]:
        if self._nodes[node].tag != "select":
            return []
        return [n for n in range(node + 1, self._nodes[node].end) if self._nodes[n].tag == "option"]

    def _option(self, option: int) -> str:
        words = self._options.inside(option, self._nodes[option].end)
        return " ".join(words or ()) or self._attributes[option].get("label", "")

    # --- labels ---

    def _find_labels(self) -> dict[int, list[str]]:
        """Field -> what its label says."""
        found: dict[int, list[str]] = {}
        fields = [n for n in range(len(self._nodes)) if self._is_field(n)]
        for label, node in enumerate(self._nodes):
            if node.tag != "label":
                continue
            field = self._field_of(label, fields)
            if field is not None:
                found.setdefault(field, []).extend(self._said(label, field))
        for field, attributes in enumerate(self._attributes):
            named = [self._by_id[i] for i in attributes.get("aria_labelledby", "").split() if i in self._by_id]
            if named:
                words = [word for n in named for word in self._plain.inside(n, self._nodes[n].end) or ()]
                found[field] = [" ".join(words)]
        return found

    def _field_of(self, label: int, fields: Sequence[int]) -> int | None:
        """The field that a label names, around which it stands, or beside which."""
        named = self._attributes[label].get("for") or self._attributes[label].get("html_for")
        if named:
            return self._by_id.get(named)
        after = bisect_right(fields, label)
        if after < len(fields) and fields[after] < self._nodes[label].end:
            return fields[after]
        return self._neighbour(label)

    def _neighbour(self, label: int) -> int | None:
        """The field right after a label, or the box right before it that is to be ticked."""
        before, after = self._beside(label)
        if before is not None and self._attributes[before].get("type", "").lower() in _PRESSED:
            return before
        if after is None or not self._is_field(after):
            return None
        return after

    def _beside(self, node: int) -> tuple[int | None, int | None]:
        """The elements right before and after, with nothing but white space between."""
        parent = self._nodes[node].parent
        after = self._nodes[node].end
        has_after = parent >= 0 and after < self._nodes[parent].end
        before: int | None = None
        child = parent + 1
        while parent >= 0 and child < node:
            before, child = child, self._nodes[child].end
        return before, after if has_after else None

    def _is_field(self, node: int) -> bool:
        if self._nodes[node].tag == "input":
            return self._attributes[node].get("type", "").strip().lower() not in _UNLABELLED_INPUTS
        return self._nodes[node].tag in _FIELDS or self.type_of(node) in (TEXTBOX, SELECTBOX)

    def _said(self, label: int, field: int) -> list[str]:
        """A label's own words, and all its words less those of the field inside it."""
        end = self._nodes[label].end
        whole = self._plain.inside(label, end)
        if label < field < end:
            parts = self._plain.inside(label, field), self._plain.inside(self._nodes[field].end, end)
            whole = None if None in parts else [word for part in parts for word in part or ()]
        return [" ".join(self._own.get(label, ())), " ".join(whole or ())]


def _underscored(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Cleaned pages write `aria_label`, others `aria-label`."""
    if not any("-" in name for name in attributes):
        return attributes
    return {name.replace("-", "_"): value for name, value in attributes.items()}


# --- the search ---


class PageSearch:
    """The elements of one page that can be found. Made once a page, on first use, and searched as often as one likes."""

    def __init__(self, nodes: Iterable[Node], candidates: Iterable[str], threshold: float = FUZZY_THRESHOLD) -> None:
        """`candidates`: backend_node_ids that can be found. `threshold`: of the tier `fuzzy`, in percent."""
        self._nodes = tuple(nodes)
        self._candidates = frozenset(candidates)
        self._threshold = threshold

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """In document order."""
        texts = _Texts(self._nodes)
        return tuple(
            Element(n, node.backend_node_id, texts.type_of(n), texts.of(n))
            for n, node in enumerate(self._nodes)
            if node.backend_node_id in self._candidates and node.tag not in _NEVER_FOUND
        )

    def find(self, kind: str, text: str) -> Found:
        """What a type and a text mean, both as written in a reply. Nothing is found for an empty text."""
        wanted, sought = asked_type(kind), collapsed(text)
        if not sought:
            return Found(())
        for tier in TIERS:
            hits = _fitting(list(self._hits(tier, sought)), wanted)
            if hits:
                ids = (hit.element.backend_node_id for hit in self._without_nested(hits))
                return Found(tuple(dict.fromkeys(ids)), tier)
        return Found(())

    @cached_property
    def _exact(self) -> dict[str, list[int]]:
        """Text -> places in `elements`."""
        return _index((place, text) for place, element in enumerate(self.elements) for text in element.texts)

    @cached_property
    def _keys(self) -> dict[str, list[int]]:
        """Normalised text -> places in `elements`."""
        return _index((place, normalised(text)) for text, places in self._exact.items() for place in places)

    def _hits(self, tier: Tier, sought: str) -> list[_Hit]:
        """The elements whose texts match at this tier, in document order, each with its shortest text that does."""
        lengths: dict[int, int] = {}
        for key, places in self._matching(tier, sought):
            for place in places:
                lengths[place] = min(lengths.get(place, len(key)), len(key))
        return [_Hit(self.elements[place], lengths[place]) for place in sorted(lengths)]

    def _matching(self, tier: Tier, sought: str) -> list[tuple[str, list[int]]]:
        key = normalised(sought)
        if tier == "exact":
            return [(key, self._exact.get(sought, []))]
        if tier == "normalised":
            return [(key, self._keys.get(key, []))]
        if tier == "contained":
            return [(text, places) for text, places in self._keys.items() if _contains(text, key)]
        from rapidfuzz import fuzz, process

        found = process.extract_iter(key, list(self._keys), scorer=fuzz.ratio, score_cutoff=self._threshold)
        return [(text, self._keys[text]) for text, *_ in found]

    def _without_nested(self, hits: Sequence[_Hit]) -> list[_Hit]:
        """Of hits inside one another the one that matches by the shortest text, has a type, is innermost: in this order."""
        around = self._around(hits)
        dropped = {
            o for hit, outer in zip(hits, around, strict=True) for o in outer if hits[o].looseness >= hit.looseness
        }
        return [
            hit
            for place, (hit, outer) in enumerate(zip(hits, around, strict=True))
            if place not in dropped and dropped.issuperset(outer)
        ]

    def _around(self, hits: Sequence[_Hit]) -> list[tuple[int, ...]]:
        """For each hit the places of those around it, which come before it."""
        around: list[tuple[int, ...]] = []
        open_: list[int] = []
        for place, hit in enumerate(hits):
            while open_ and self._nodes[hits[open_[-1]].element.node].end <= hit.element.node:
                open_.pop()
            around.append(tuple(open_))
            open_.append(place)
        return around


def _fitting(hits: Sequence[_Hit], wanted: str) -> list[_Hit]:
    """Those whose type fits best, among those that fit at all."""
    fits = [(_fit(hit.element.type, wanted), hit) for hit in hits]
    best = min((fit for fit, _ in fits), default=_NO_FIT)
    return [hit for fit, hit in fits if fit == best] if best < _NO_FIT else []


_NO_FIT = 2


def _fit(kind: str, wanted: str) -> int:
    """0 is best. Without a type asked, every type is as good as the others."""
    if kind and wanted in ("", kind):
        return 0
    return 1 if not kind or kind in LOOK_ALIKES[wanted] else _NO_FIT


def _index(pairs: Iterable[tuple[int, str]]) -> dict[str, list[int]]:
    index: dict[str, list[int]] = {}
    for place, text in pairs:
        index.setdefault(text, []).append(place)
    return index


def _contains(text: str, sought: str) -> bool:
    """Whether the words sought stand in the text, or the text in those sought, being at least half of them."""
    if f" {sought} " in f" {text} ":
        return True
    return f" {text} " in f" {sought} " and 2 * len(text.split()) >= len(sought.split())


# --- what one who knows the answer would say ---


class Description(NamedTuple):
    """An element's type and text as this search sees them, and what they lead to."""

    type: str
    text: str
    found: Found
    reaches: bool
    """Whether one of the elements described is found."""


def descriptions(search: PageSearch, targets: Iterable[str], limit: int | None = None) -> list[Description]:
    """Every way to name the targets by a type and a text of theirs, the surest first: a target found alone, among others, not.

    Equally sure ones stay in document order and in that of TEXT_SOURCES. An element without a type of its own is called a
    BUTTON. `limit`: how many of the elements found count. Empty when no target has a text.
    """
    wanted = frozenset(targets)
    described = [
        _described(search, wanted, element.type or BUTTON, text, limit)
        for element in search.elements
        if element.backend_node_id in wanted
        for text in element.texts
    ]
    return sorted(described, key=lambda d: (not d.reaches, len(d.found.ids) > 1))


def _described(search: PageSearch, targets: frozenset[str], kind: str, text: str, limit: int | None) -> Description:
    found = search.find(kind, text)
    return Description(kind, text, found, not targets.isdisjoint(found.ids[:limit]))
