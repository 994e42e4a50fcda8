"""Groups of texts for a query -> the labelled pairs of an epoch -> batches of token ids."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ranker.checkpoint import PairOrder
from ranker.cross_encoder import MIN_TEXT_TOKENS, Row, find_template
from ranker.errors import RankerError

SWAPPED = 0.7
# share of the swappable tokens that are swapped where a group is disguised at all


@dataclass(frozen=True, slots=True)
class PairGroup:
    """A query, the texts that belong to it, and others from the same page."""

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return self.positives + self.negatives


class Draw(NamedTuple):
    """What one group gives to one epoch."""

    texts: tuple[str, ...]
    targets: tuple[float, ...]
    """1 for the positive, 0 for the others."""
    disguise: int | None
    """Seed of the token swap, None for none."""


class Example(NamedTuple):
    """One item of a batch: rows that share a query, and the target of each."""

    rows: tuple[Row, ...]
    targets: tuple[float, ...]


@dataclass
class PairEncoder:
    """Pairs as token ids, joined in the same way as `CrossEncoderRanker` does. Keeps the ids of every text it has seen."""

    tokenizer: Any
    config: Any
    pair_order: PairOrder
    max_tokens: int
    _ids: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._template = find_template(self.tokenizer, self.config, "the base model")
        self._typed = int(getattr(self.config, "type_vocab_size", 2)) > 1

    def learn(self, texts: Iterable[str]) -> None:
        """Tokenize many texts at once, which is faster than one by one."""
        new = sorted(set(texts) - self._ids.keys())
        if new:
            encoded = self.tokenizer(new, add_special_tokens=False, verbose=False)["input_ids"]
            self._ids.update(zip(new, encoded, strict=True))

    def ids(self, text: str) -> list[int]:
        self.learn([text])
        return self._ids[text]

    def row(self, query: str, text: str, swap: np.ndarray | None = None) -> Row:
        """The pair's tokens, the text cut to the room that the query leaves. RankerError where it leaves none."""
        room = self.room(query)
        return self.row_of_ids(self.ids(query), self.ids(text)[:room], swap)

    def row_of_ids(self, asked: Sequence[int], found: Sequence[int], swap: np.ndarray | None = None) -> Row:
        """The same from token ids, cut already."""
        if swap is not None:
            asked, found = swap[asked].tolist(), swap[found].tolist()
        pair = (asked, found) if self.pair_order == "query-text" else (found, asked)
        return self._template.join(*pair)

    def room(self, query: str) -> int:
        """Tokens that the query leaves for a text."""
        asked = self.ids(query)
        room = self.max_tokens - self._template.n_special - len(asked)
        if room < MIN_TEXT_TOKENS:
            raise RankerError(
                f"max_tokens: expected room for a text of {MIN_TEXT_TOKENS} tokens within {self.max_tokens}, "
                f"a query has {len(asked)}: {query[:60]!r}"
            )
        return room

    def is_special(self, row: Row) -> list[bool]:
        """Of each token: whether it belongs to the frame, not to one of the texts."""
        frame = self._template
        second = len(row.ids) - row.split - frame.n_special
        marks = (len(frame.before), row.split, len(frame.between), second, len(frame.after))
        return [place % 2 == 0 for place, count in enumerate(marks) for _ in range(count)]

    def tensors(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Rows side by side, filled up on the right to the longest."""
        import torch

        width = max(len(row.ids) for row in rows)
        ids = np.full((len(rows), width), self.tokenizer.pad_token_id or 0, dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row.ids)] = row.ids
            mask[place, : len(row.ids)] = 1
            types[place, : len(row.ids)] = self._template.token_types(row)
        found = {"input_ids": ids, "attention_mask": mask} | ({"token_type_ids": types} if self._typed else {})
        return {name: torch.from_numpy(array) for name, array in found.items()}


class TokenSwap:
    """Disguises a group: rarer tokens change places with one another, alike in the query and in its texts.

    What is left to learn from is where equal tokens stand, not which. The `kept` commonest tokens, counted by group
    (marks, tags, everyday words), keep their meaning.
    """

    def __init__(self, groups: Sequence[PairGroup], encoder: PairEncoder, kept: int) -> None:
        counts: Counter[int] = Counter()
        for group in groups:
            counts.update({i for text in (group.query, *group.texts) for i in encoder.ids(text)})
        fixed = {i for i, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:kept]}
        fixed |= set(encoder.tokenizer.all_special_ids)
        free = [i for i in range(len(encoder.tokenizer)) if i not in fixed]
        self._free = np.array(free, dtype=np.int64)
        self._size = len(encoder.tokenizer)

    def mapping(self, seed: int) -> np.ndarray:
        """New id of each id, shape (vocabulary,)."""
        chance, found = np.random.default_rng(seed), np.arange(self._size)
        moved = self._free[chance.random(len(self._free)) < SWAPPED]
        found[moved] = chance.permutation(moved)
        return found


class EpochPairs:
    """A map-style data set whose pairs are drawn anew each epoch, from the seed, the epoch and the group alone.

    `grouped`: an item is all pairs of a draw, as a loss over the group needs; else it is one pair.
    """

    def __init__(
        self,
        groups: Sequence[PairGroup],
        encoder: PairEncoder,
        *,
        negatives: int,
        seed: int,
        grouped: bool,
        swap: TokenSwap | None = None,
        swap_share: float = 0.0,
    ) -> None:
        self.groups = groups
        self._encoder, self._seed, self._swap, self._swap_share = encoder, seed, swap, swap_share
        self._negatives, self._grouped = negatives, grouped
        self._hard: dict[int, tuple[str, ...]] = {}
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """The Trainer says so at the start of each epoch."""
        self._draws = [
            self._draw(place, random.Random(f"{self._seed}/{epoch}/{place}")) for place in range(len(self.groups))
        ]
        sizes = [len(draw.texts) for draw in self._draws]
        self._items = [
            (place, member) for place, size in enumerate(sizes) for member in range(1 if self._grouped else size)
        ]

    def set_hard(self, hard: Mapping[int, tuple[str, ...]]) -> None:
        """Negatives of each group (by its place) that take the place of as many uniform ones, from the next epoch on."""
        self._hard = dict(hard)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, item: int) -> Example:
        place, member = self._items[item]
        draw = self._draws[place]
        swap = self._swap.mapping(draw.disguise) if self._swap and draw.disguise is not None else None
        chosen = range(len(draw.texts)) if self._grouped else (member,)
        rows = tuple(self._encoder.row(self.groups[place].query, draw.texts[i], swap) for i in chosen)
        return Example(rows, tuple(draw.targets[i] for i in chosen))

    def _draw(self, place: int, chance: random.Random) -> Draw:
        group = self.groups[place]
        positive = chance.choice(group.positives)
        hard = self._hard.get(place, ())[: self._negatives]
        pool = sorted(set(group.negatives)) if self._grouped else group.negatives
        others = [text for text in pool if text not in set(hard)]
        easy = chance.sample(others, min(self._negatives - len(hard), len(others)))
        texts = (positive, *hard, *easy)
        return Draw(texts, (1.0, *[0.0] * (len(texts) - 1)), self._disguise(chance))

    def _disguise(self, chance: random.Random) -> int | None:
        seed, disguised = chance.getrandbits(32), chance.random() < self._swap_share
        return seed if disguised else None
