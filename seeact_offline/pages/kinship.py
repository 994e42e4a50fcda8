"""Finds the elements of a page that are like the right one, so that wrong picks can be told apart: see `records.Kinship`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice

from seeact_offline.pages.dom import TEXT, Page, PageNode
from seeact_offline.records import Box, Candidate, Kinship

WORDS = 100
"""Words of an element that are compared, as many as a ranker reads."""
SPOKEN = frozenset({"alt", "aria_label", "placeholder", "title", "value", "input_value", "text_value"})
"""Attributes that are read as words of the page."""
DIGITS = 3
"""Digits of a box's edges as fractions of the picture, as SeeClick rounds them."""
SAME = 12
"""Digits to which a point's fraction is one and the same number, whatever was multiplied and divided on its way."""


def find_kin(
    page: Page, candidates: Sequence[Candidate], size: tuple[int, int] | None
) -> dict[Kinship, frozenset[str]]:
    """Kinship -> ids of the candidates that are not positives and stand so to one; for `clicks_target` the positives but the
    first count among the others. `size`: of the picture, in pixels."""
    positives = [c for c in candidates if c.is_positive]
    others = [c for c in candidates if not c.is_positive]
    boxes = [c.box for c in positives if c.box is not None]
    first = positives[0].box if positives else None
    nodes = list(page.nodes())
    words, own = _Words(page, nodes), {page.position(c.backend_node_id) for c in positives}
    above = {nodes[number].parent for number in own} - {-1}
    # parents, children and siblings
    near = {
        node.backend_node_id
        for number, node in enumerate(nodes)
        if number in above or node.parent in above or node.parent in own
    }
    wanted = {text for c in positives if (text := words.of(c.backend_node_id))}
    found: dict[Kinship, Iterable[Candidate]] = {
        "same_text": (c for c in others if wanted and words.of(c.backend_node_id) in wanted),
        "overlapping": (c for c in others if c.box and any(_overlap(c.box, box) for box in boxes)),
        "neighbour": (c for c in others if c.backend_node_id in near),
        "clicks_positive": (c for c in others if c.box and any(box.contains(*_middle(c.box)) for box in boxes)),
        "clicks_target": (
            c for c in (*positives[1:], *others) if c.box and first and size and clicks(_middle(c.box), first, size)
        ),
    }
    return {kinship: frozenset(c.backend_node_id for c in ones) for kinship, ones in found.items()}


def clicks(point: tuple[float, float], box: Box, size: tuple[int, int]) -> bool:
    """Tells whether the point lies in the box as in SeeClick: edges are rounded fractions of the picture, and belong to the box."""
    (x, y), (width, height) = point, size
    left, right = (round(edge / width, DIGITS) for edge in (box.x, box.right))
    top, bottom = (round(edge / height, DIGITS) for edge in (box.y, box.bottom))
    # a fraction that was turned into pixels is got back as it was written
    across, down = round(x / width, SAME), round(y / height, SAME)
    return left <= across <= right and top <= down <= bottom


class _Words:
    """Words that each element of a page reads like: the first in it, else those of labels in it, in lower case."""

    def __init__(self, page: Page, nodes: Sequence[PageNode]) -> None:
        self._page = page
        self._texts = {n: node.text.lower().split() for n, node in enumerate(nodes) if node.tag == TEXT}
        spoken = (
            [
                word
                for name, value in node.attributes.items()
                if name.replace("-", "_") in SPOKEN
                for word in value.lower().split()
            ]
            for node in nodes
        )
        self._labels = {n: words for n, words in enumerate(spoken) if words}
        self._places = [list(self._texts), list(self._labels)]

    def of(self, backend_node_id: str) -> tuple[str, ...]:
        begin, end = self._page.span(backend_node_id)
        for places, said in zip(self._places, (self._texts, self._labels), strict=True):
            inside = range(bisect_left(places, begin), bisect_left(places, end))
            if words := tuple(islice((word for place in inside for word in said[places[place]]), WORDS)):
                return words
        return ()


def _overlap(one: Box, other: Box) -> bool:
    """Tells whether they share an area."""
    across = min(one.right, other.right) - max(one.x, other.x)
    down = min(one.bottom, other.bottom) - max(one.y, other.y)
    return across > 0 and down > 0


def _middle(box: Box) -> tuple[float, float]:
    return box.x + box.w / 2, box.y + box.h / 2
