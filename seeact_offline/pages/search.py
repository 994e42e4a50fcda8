"""Find the elements that a type and a text describe, anywhere on a page.

**What is searched.** Every node of the page gives words, but only the elements named as candidates can be found: the
rest of the page is not drawn, or nothing the data set lets one act on. `<html>` and `<body>` are never found, nor is
`<option>`: the list that holds it is, by the option's text as well as by its own. `element_texts` says what an element
can be called by. Text right behind a closing tag is not looked at: pages keep their words in `<text>`.

**What can be seen** goes first: the rest is looked at only where nothing fits of what can be seen, in any tier. Of the
1,338 targets of the test_task split one has no area. An element around something that can be seen can be seen.

**Types.** `element_type` says what an element is, `asked_type` what a reply means; a type that nobody knows, or more
than one, means any. Elements of the type asked go first. Where there are none, those of a type that looks like it
(`LOOK_ALIKES`) and those without a type of their own, of which pages make buttons as they like. Others are left out.

**Tiers.** `exact` (the same characters, white space collapsed), `normalised` (NFKC, case and punctuation aside),
`contained` (the words asked stand together in the text; or the text's in those asked, when they are at least half of
them; a text asked that was cut begins the text; and, where none of these fits, the same for what `bare_text` leaves),
`fuzzy` (rapidfuzz's `ratio` of the normalised texts is at least the threshold, and they differ by typing errors alone:
`differ_by_typos`). The first tier with an element that fits is the answer.

**Not by chance.** `select` is a type and a verb: what is left without it (`without_leading_type`) must be an element's
whole text or, where it has two words, begin it. So `Select account` finds "Account" and not "Delete account", and
`Select all` never "Deselect all". A number is never part of another (`9` and `9.5`) nor like another (`10:00 AM` and
`10:00 PM`), and words are not found where a negation stands right before them.

**Nested matches** are one: of an element and one inside it the one is kept whose matching text is shorter; of equals
the one that has a type; of these the inner one, as what is done to it reaches the outer one too, which does not hold
the other way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from seeact_offline.pages.element_texts import ElementTexts
from seeact_offline.pages.wording import (
    BUTTON,
    LOOK_ALIKES,
    are_whole,
    asked_type,
    bare_text,
    collapsed,
    contains,
    differ_by_typos,
    normalised,
    without_leading_type,
)

if TYPE_CHECKING:
    from seeact_offline.pages.dom import PageNode

Tier = Literal["exact", "normalised", "contained", "fuzzy"]
TIERS: tuple[Tier, ...] = ("exact", "normalised", "contained", "fuzzy")
FUZZY_THRESHOLD = 80.0
"""Percent; two typing errors in a text of ten characters."""

# the list or the element around them is found by their words, and a whole page is no element to act on
_NEVER_FOUND = frozenset({"option", "optgroup", "text", "html", "body"})
# how a reply ends a text that it does not write whole
_CUT = ("...", "\u2026")
_Matches = list[tuple[str, list[int]]]
"""Normalised texts, and the places in `elements` of those that bear them."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The elements that fit best."""

    ids: tuple[str, ...]
    """Ids in document order, nested ones reduced."""
    tier: Tier | None = None
    """None when nothing was found."""
    seen: bool = True
    """True if they can be seen."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element that can be found."""

    node: int
    backend_node_id: str
    type: str
    """One of TYPES, or empty."""
    texts: tuple[str, ...]
    """White space collapsed, each once, in the order of TEXT_SOURCES."""
    seen: bool
    """True if it, or something in it, can be seen."""


class _Hit(NamedTuple):
    """An element that a tier found."""

    element: Element
    length: int
    """Characters of its shortest text that matches, normalised."""

    @property
    def looseness(self) -> tuple[int, bool]:
        """The least of nested hits is the one meant."""
        return self.length, not self.element.type


# --- the search ---


class PageSearch:
    """The elements of one page that can be found. Made once a page, on first use, and searched as often as one
    likes."""

    def __init__(
        self,
        nodes: Iterable[PageNode],
        candidates: Iterable[str],
        threshold: float = FUZZY_THRESHOLD,
        seen: Collection[str] | None = None,
    ) -> None:
        """`candidates`: backend_node_ids that can be found; `seen`: those of them that can be seen (None: all).

        `threshold`: of the tier `fuzzy`, in percent.
        """
        self._nodes = tuple(nodes)
        self._candidates = frozenset(candidates)
        self._threshold = threshold
        self._seen = self._candidates if seen is None else self._candidates.intersection(seen)

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The elements that can be seen, in document order."""
        texts = ElementTexts(self._nodes)
        seen = [n for n, node in enumerate(self._nodes) if node.backend_node_id in self._seen and node.tag != "text"]
        return tuple(
            Element(
                n,
                node.backend_node_id,
                texts.type_of(n),
                texts.of(n),
                bisect_left(seen, n) < bisect_left(seen, node.end),
            )
            for n, node in enumerate(self._nodes)
            if node.backend_node_id in self._candidates and node.tag not in _NEVER_FOUND
        )

    def find(self, kind: str, text: str) -> SearchResult:
        """Finds the elements that a type and a text mean, both as written in a reply. An empty text finds nothing."""
        wanted, sought = asked_type(kind), collapsed(text)
        if not sought:
            return SearchResult(())
        unseen: list[tuple[Tier, list[_Hit]]] = []
        for tier, matches in self._tiers(sought):
            lengths: dict[int, int] = {}
            for key, places in matches:
                for place in places:
                    lengths[place] = min(lengths.get(place, len(key)), len(key))
            hits = [_Hit(self.elements[place], lengths[place]) for place in sorted(lengths)]
            if fitting := _fitting([hit for hit in hits if hit.element.seen], wanted):
                return self._found(fitting, tier)
            unseen.append((tier, [hit for hit in hits if not hit.element.seen]))
        fitting_unseen = ((tier, _fitting(hits, wanted)) for tier, hits in unseen)
        return next((self._found(hits, tier, seen=False) for tier, hits in fitting_unseen if hits), SearchResult(()))

    def _found(self, hits: Sequence[_Hit], tier: Tier, seen: bool = True) -> SearchResult:
        ids = (hit.element.backend_node_id for hit in self._without_nested(hits))
        return SearchResult(tuple(dict.fromkeys(ids)), tier, seen)

    @cached_property
    def _exact(self) -> dict[str, list[int]]:
        """Text -> places in `elements`."""
        return _index((place, text) for place, element in enumerate(self.elements) for text in element.texts)

    @cached_property
    def _normalised(self) -> dict[str, str]:
        """Text -> its normalised form."""
        return {text: normalised(text) for text in self._exact}

    @cached_property
    def _keys(self) -> dict[str, list[int]]:
        """Normalised text -> places in `elements`."""
        return _index((place, key) for text, key in self._normalised.items() for place in self._exact[text])

    def _tiers(self, sought: str) -> Iterator[tuple[Tier, _Matches]]:
        """The tiers in order, each with all texts that match at it."""
        key = normalised(sought)
        yield "exact", [(key, self._exact.get(sought, []))]
        yield "normalised", [(key, self._keys.get(key, []))]
        yield "contained", self._containing(key, sought, sought.endswith(_CUT))
        if (bare := bare_text(sought)) and bare != key:
            yield "contained", [(bare, self._keys.get(bare, []))]
            yield "contained", self._containing(bare, sought)
        if (named := without_leading_type(bare)) and named != bare:
            yield "contained", [(named, self._keys.get(named, []))]
            if " " in named:
                yield "contained", [match for match in self._containing(named, sought) if match[0].startswith(named)]
        from rapidfuzz import fuzz, process

        alike = process.extract_iter(key, list(self._keys), scorer=fuzz.ratio, score_cutoff=self._threshold)
        yield "fuzzy", [(text, self._keys[text]) for text, *_ in alike if differ_by_typos(key, text)]

    def _containing(self, key: str, sought: str, is_cut: bool = False) -> _Matches:
        """The texts that share words with `key`: the text sought, normalised, or what is left of it."""
        return [
            (text, self._exact[written])
            for written, text in self._normalised.items()
            if (words := _shared(text, key, is_cut)) and are_whole(words, written, sought)
        ]

    def _without_nested(self, hits: Sequence[_Hit]) -> list[_Hit]:
        """Keeps one of nested hits: that of the shortest text, then one with a type, then the innermost."""
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
        """Places of the hits around each hit, which come before it."""
        around: list[tuple[int, ...]] = []
        open_: list[int] = []
        for place, hit in enumerate(hits):
            while open_ and self._nodes[hits[open_[-1]].element.node].end <= hit.element.node:
                open_.pop()
            around.append(tuple(open_))
            open_.append(place)
        return around


def _fitting(hits: Sequence[_Hit], wanted: str) -> list[_Hit]:
    """The hits whose type fits best, among those that fit at all. If no type is asked, every type fits."""
    if best := [hit for hit in hits if hit.element.type and wanted in ("", hit.element.type)]:
        return best
    return [hit for hit in hits if not hit.element.type or hit.element.type in LOOK_ALIKES[wanted]]


def _index(pairs: Iterable[tuple[int, str]]) -> dict[str, list[int]]:
    index: dict[str, list[int]] = {}
    for place, text in pairs:
        index.setdefault(text, []).append(place)
    return index


def _shared(text: str, key: str, is_cut: bool) -> str:
    """The words sought when they stand in the text; the text when it stands in those sought, as half of them or more;
    or none."""
    if contains(text, key) or (is_cut and text.startswith(key)):
        return key
    return text if 2 * len(text.split()) >= len(key.split()) and contains(key, text) else ""


# --- ideal descriptions ---


class Description(NamedTuple):
    """An element's type and text as this search sees them, and what they lead to."""

    type: str
    text: str
    result: SearchResult
    reaches: bool
    """True if one of the elements described is found."""


def descriptions(search: PageSearch, targets: Iterable[str], limit: int | None = None) -> list[Description]:
    """Every description of the targets by a type and a text of theirs, the surest first: a target found alone, among
    others, not.

    Equally sure ones stay in document order and in that of TEXT_SOURCES. An element without a type of its own is called
    a BUTTON. `limit`: how many of the elements found count. Empty when no target has a text.
    """
    wanted = frozenset(targets)
    described = []
    for element in search.elements:
        for text in element.texts if element.backend_node_id in wanted else ():
            result = search.find(element.type or BUTTON, text)
            reaches = not wanted.isdisjoint(result.ids[:limit])
            described.append(Description(element.type or BUTTON, text, result, reaches))
    return sorted(described, key=lambda d: (not d.reaches, len(d.result.ids) > 1))
