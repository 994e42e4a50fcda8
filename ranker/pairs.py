"""Queries with right and wrong texts -> the labelled pairs of an epoch.

Mind2Web's recipe (2306.06070; released code, src/candidate_generation/dataloader.py at 1b7c323): in each epoch, each query gives
one random right text and five wrong ones, each drawn from all of them. A query without wrong texts gives six right ones.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class PairGroup:
    """A query, the texts that belong to it, and other texts from the same page."""

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return self.positives + self.negatives

    def without_twins(self) -> PairGroup:
        """Drops negatives that read like a positive: such a pair would be labelled both ways."""
        positives = set(self.positives)
        return dataclasses.replace(self, negatives=tuple(text for text in self.negatives if text not in positives))


class Pair(NamedTuple):
    """One training example."""

    query: str
    text: str
    target: float
    """1 if the text belongs to the query, else 0."""


class EpochPairs:
    """A map-style data set whose pairs are drawn anew each epoch, only from the seed, the epoch and the group's position."""

    def __init__(self, groups: Sequence[PairGroup], negatives: int, seed: int, distinct: bool = False) -> None:
        """`negatives`: how many are drawn per group and epoch. `distinct`: none twice; a group with fewer gives all of them."""
        self._groups, self._negatives, self._seed, self._distinct = groups, negatives, seed, distinct
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """`epoch`: from 0."""
        self._pairs = [
            pair
            for place, group in enumerate(self._groups)
            for pair in self._draw(group, random.Random(f"{self._seed}/{epoch}/{place}"))
        ]

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, place: int) -> Pair:
        return self._pairs[place]

    def _draw(self, group: PairGroup, chance: random.Random) -> list[Pair]:
        right = [chance.choice(group.positives)]
        wrong: list[str] = []
        if self._distinct:
            wrong = chance.sample(group.negatives, min(self._negatives, len(group.negatives)))
        elif group.negatives:
            wrong = chance.choices(group.negatives, k=self._negatives)
        else:
            right += chance.choices(group.positives, k=self._negatives)
        return [*(Pair(group.query, text, 1.0) for text in right), *(Pair(group.query, text, 0.0) for text in wrong)]
