"""Finds the words that stand on a page for each of its form fields: its label, or the words beside it.

**A label** is what `aria_labelledby` names, else the `<label>` whose `for` names the field, else the `<label>` around it, less
the field's own words. Cleaned pages keep neither `id` nor `for`, so most fields have none of these.

**Else the words beside it**: of the wrappers around the field, up to MAX_WRAPPERS, the innermost that says anything before the
field (behind it, for boxes to tick). There the nearest `<label>` is meant, else the nearest words, up to MAX_CAPTION_WORDS, that
are not all on links and buttons. What stands beyond another field belongs to that one. Where one side says nothing, the other
counts if the wrapper has no other field: words before a box, a `<label>` right behind a text field (it floats over it).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import Enum

from seeact_offline.pages.element_types import SELECTBOX, TEXTBOX
from seeact_offline.pages.page_words import PageWords

MAX_WRAPPERS = 3
MAX_CAPTION_WORDS = 12

PRESSED = frozenset({"checkbox", "radio"})
"""Input types of boxes to tick."""
_FIELDS = frozenset({"select", "textarea"})
_UNLABELLED_INPUTS = frozenset({"hidden", "button", "submit", "reset", "image"})


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
        found = self._labelled()
        for field in self._fields:
            beside = None if field in found else self._beside(field)
            if beside is not None:
                found[field] = self._said(beside)
        return found | self._named()

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
        found: dict[int, list[str]] = {}
        for label, node in enumerate(self._nodes):
            if node.tag != "label":
                continue
            attributes = self._page.attributes[label]
            field = self._by_id.get(attributes.get("for") or attributes.get("html_for") or "")
            if field is None:
                field = self._first_field(label + 1, node.end)
            if field is not None:
                self._taken.append(label)
                found.setdefault(field, []).extend(self._said(label, field))
        return found

    def _said(self, label: int, field: int = -1) -> list[str]:
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
            found = next((side for side in sides if isinstance(side, int)), None)
            if found is not None:
                return found
            if _Side.FOREIGN in sides or (is_pressed and not is_only):
                return None
            inner = wrapper
        return None

    def _nearest(self, siblings: Iterable[int]) -> int | _Side:
        """The one of the siblings, nearest first, that speaks for the field."""
        found: int | _Side = _Side.SILENT
        for sibling in siblings:
            if self._first_field(sibling, self._nodes[sibling].end) is not None:
                return found if isinstance(found, int) else _Side.FOREIGN
            if self._page.says_nothing(sibling):
                continue
            if self._nodes[sibling].tag == "label" and not self._is_taken(sibling):
                return sibling
            if found is _Side.SILENT:
                words = self._page.inside(sibling, self._nodes[sibling].end)
                is_short = words is not None and len(words) <= MAX_CAPTION_WORDS
                is_caption = is_short and self._is_free(sibling) and not self._is_taken(sibling)
                found = sibling if is_caption else _Side.FOREIGN
        return found

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
