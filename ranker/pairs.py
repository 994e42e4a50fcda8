"""Queries with right and wrong texts -> the labelled pairs of an epoch.

Mind2Web's recipe (2306.06070; released code, src/candidate_generation/dataloader.py at 1b7c323): in each epoch, each query gives
one random right text and five wrong ones, each drawn from all of them. A query without wrong texts gives six right ones.
"""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class PairGroup:
    """A query, the texts that belong to it, and other texts from the same page."""

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return self.positives + self.negatives

    def trainable(self, distinct: bool) -> PairGroup | None:
        """The group that pairs are drawn from; None where it gives none.

        `distinct`: without negatives that read like a positive, whose pairs would be labelled both ways, and with at least one other.
        """
        if not distinct or not self.positives:
            return self if self.positives else None
        positives = set(self.positives)
        negatives = tuple(text for text in self.negatives if text not in positives)
        return dataclasses.replace(self, negatives=negatives) if negatives else None


class Groups(Protocol):
    """A sequence of groups, which may be read one at a time."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> PairGroup: ...


class Pair(NamedTuple):
    """One training example."""

    query: str
    text: str
    target: float
    """1 if the text belongs to the query, else 0."""


class EpochPairs:
    """A map-style data set whose pairs are drawn anew each epoch, only from the seed, the epoch and the group's position."""

    def __init__(self, groups: Groups, negatives: int, seed: int, distinct: bool = False) -> None:
        """`negatives`: how many are drawn per group and epoch. `distinct`: none twice; a group with fewer gives all of them."""
        self._groups, self._negatives, self._seed, self._distinct = groups, negatives, seed, distinct
        self._epoch = -1
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """`epoch`: from 0."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._pairs = [
                pair
                for place in range(len(self._groups))
                for pair in self._draw(self._groups[place], random.Random(f"{self._seed}/{epoch}/{place}"))
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
