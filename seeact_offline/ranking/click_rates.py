"""How often what reads like a candidate was the right element elsewhere: what one can know of a site seen before.

A count would give the answer away if the step itself were in it, so a step is told of other tasks only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from seeact_offline.ranking.pair_features import OPENING, RUNNING_NUMBER, stems
from seeact_offline.ranking.placed_texts import split_text

EXPECTED = 0.006
"""Share of candidates that are right, where nothing else is known."""
DOUBT_TEXT, DOUBT_WORD = 10, 20
"""So many sightings at that rate are added to those counted."""
WORDS = 12
NAMES = ("text_seen", "text_rate", "text_right", "word_best", "word_worst", "word_mean", "place_rate", "place_seen")


class JudgedTexts(Protocol):
    """A step's texts and which of them are right."""

    @property
    def task(self) -> str: ...

    @property
    def texts(self) -> Sequence[str]: ...

    @property
    def right(self) -> frozenset[str]: ...


class Count(NamedTuple):
    """Of one key."""

    seen: int
    right: int

    def __sub__(self, other: Count) -> Count:
        return Count(self.seen - other.seen, self.right - other.right)

    def rate(self, doubt: int) -> float:
        """How many times more often right than candidates are on the whole, as a logarithm."""
        return math.log((self.right + doubt * EXPECTED) / (self.seen + doubt) / EXPECTED)


class Keys(NamedTuple):
    """What a candidate's text is counted under."""

    text: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    place: tuple[str, ...]


class ClickRates:
    """Counts of texts, of their words beside their tag, and of what stands around them."""

    def __init__(self, steps: Iterable[JudgedTexts]) -> None:
        self._all: dict[tuple[str, ...], Count] = {}
        self._by_task: dict[str, dict[tuple[str, ...], Count]] = defaultdict(dict)
        for step in steps:
            for text in sorted(set(step.texts)):
                keys = _keys(text)
                for key in (keys.text, *keys.words, keys.place):
                    for counts in (self._all, self._by_task[step.task]):
                        seen, right = counts.get(key, (0, 0))
                        counts[key] = Count(seen + 1, right + (text in step.right))

    def features(self, texts: Sequence[str], task: str | None = None) -> np.ndarray:
        """Shape `(len(texts), len(NAMES))`, float32. `task`: the one that the texts come from, whose counts are left out."""
        known = {text: self._features(_keys(text), task) for text in set(texts)}
        return np.array([known[text] for text in texts], dtype=np.float32).reshape(len(texts), len(NAMES))

    def _features(self, keys: Keys, task: str | None) -> list[float]:
        text, place = self._count(keys.text, task), self._count(keys.place, task)
        rates = [self._count(key, task).rate(DOUBT_WORD) for key in keys.words]
        return [
            math.log1p(text.seen),
            text.rate(DOUBT_TEXT),
            text.right,
            max(rates, default=0.0),
            min(rates, default=0.0),
            sum(rates) / max(1, len(rates)),
            place.rate(DOUBT_TEXT),
            math.log1p(place.seen),
        ]

    def _count(self, key: tuple[str, ...], task: str | None) -> Count:
        none = Count(0, 0)
        return self._all.get(key, none) - self._by_task.get(task or "", {}).get(key, none)


def _keys(text: str) -> Keys:
    parts = split_text(text)
    target = RUNNING_NUMBER.sub("", parts.target).lower()
    tag = OPENING.match(target)
    name = tag[1] if tag else ""
    found = sorted(set(stems(OPENING.sub(" ", target))[:WORDS]))
    return Keys(("text", target), tuple(("word", name, stem) for stem in found), ("place", parts.ancestors, name))
