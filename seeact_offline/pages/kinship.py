"""Finds the elements of a page that are like the right one, so that wrong picks can be told apart: see
`records.Kinship`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, islice

from seeact_offline.pages.dom import Page
from seeact_offline.records import Box, Candidate, ClickedBox, Kinship

WORDS = 100
"""Words of an element that are compared, as many as a ranker reads."""
SPOKEN = frozenset({"alt", "aria_label", "aria-label", "placeholder", "title", "value"}) | {
    f"{which}{between}value" for which in ("input", "text") for between in "_-"
}
"""Attributes that are read as words of the page, as cleaned pages and as browsers spell them."""


def find_kin(
    page: Page, candidates: Sequence[Candidate], size: tuple[int, int] | None
) -> dict[Kinship, frozenset[str]]:
    """Kinship -> ids of the candidates that are not positives and stand so to one; for `clicks_target` the positives
    but the first count among the others. `size`: of the picture, in pixels."""
    positives = [c for c in candidates if c.is_positive]
    others = [c for c in candidates if not c.is_positive]
    near = page.relatives(c.backend_node_id for c in positives)
    kin: dict[Kinship, Iterable[Candidate]] = {
        "same_text": _same_text(page, positives, others),
        "neighbour": (c for c in others if c.backend_node_id in near),
        "overlapping": (),
        "clicks_positive": (),
        "clicks_target": (),
    }
    if placed := [c for c in others if c.box is not None]:
        kin |= _touching(placed, [c.box for c in positives if c.box is not None])
    if size and positives and (first := positives[0].box):
        clicked = ClickedBox(first, size)
        kin["clicks_target"] = (c for c in (*positives[1:], *placed) if c.box and clicked.holds(*c.box.center))
    return {kinship: frozenset(c.backend_node_id for c in ones) for kinship, ones in kin.items()}


def _same_text(page: Page, positives: Sequence[Candidate], others: Sequence[Candidate]) -> Iterator[Candidate]:
    """The others that read like a positive: the first WORDS words in each, else those of labels in it, in lower
    case."""
    sources = [_Words(page.texts()), _Words(page.values(SPOKEN))]
    spans = (page.span(c.backend_node_id) for c in positives)
    wanted = {next((words for source in sources if (words := source.between(*span))), ()) for span in spans} - {()}
    starts = {words[0] for words in wanted}
    for candidate in others if wanted else ():
        begin, end = page.span(candidate.backend_node_id)
        for source in sources:
            if first := source.first(begin, end):
                # most differ in their first word
                if first in starts and source.between(begin, end) in wanted:
                    yield candidate
                break


class _Words:
    """Words of nodes, in document order."""

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        held = [(node, text.lower()) for node, text in texts if text and not text.isspace()]
        self._places = [node for node, _ in held]
        self._texts = [text for _, text in held]
        self._firsts = [text.split(None, 1)[0] for text in self._texts]

    def first(self, begin: int, end: int) -> str:
        """The first word of the nodes from `begin` to before `end`; empty where they have none."""
        at = bisect_left(self._places, begin)
        return self._firsts[at] if at < len(self._places) and self._places[at] < end else ""

    def between(self, begin: int, end: int) -> tuple[str, ...]:
        """Their first WORDS words."""
        inside = islice(self._texts, bisect_left(self._places, begin), bisect_left(self._places, end))
        return tuple(islice((word for text in inside for word in text.split()), WORDS))


def _touching(placed: Sequence[Candidate], boxes: Iterable[Box]) -> dict[Kinship, Iterable[Candidate]]:
    """Finds candidates that share an area with one of the boxes, and those whose middle lies in one."""
    import numpy as np

    x, y, w, h = np.array([c.box for c in placed]).T
    right, bottom, across, down = x + w, y + h, x + w / 2, y + h / 2
    overlap, centred = np.zeros((2, len(placed)), dtype=bool)
    for box in boxes:
        overlap |= (np.minimum(right, box.right) > np.maximum(x, box.x)) & (
            np.minimum(bottom, box.bottom) > np.maximum(y, box.y)
        )
        centred |= (box.x <= across) & (across <= box.right) & (box.y <= down) & (down <= box.bottom)
    return {"overlapping": compress(placed, overlap), "clicks_positive": compress(placed, centred)}
