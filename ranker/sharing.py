"""Which words two texts have in common, said by token types, so that a small model need not find out.

Token types are what a pair's tokens are marked with before the first layer; as a rule they say which text a token is of. A
model whose config has `shared_words` is told more: in which parts of the pair the token's word stands.

A query's parts are its first line; what follows, up to its last clause (after `; `); this clause up to its ` -> `; and the
rest of it. A text's are its first line up to the last two steps (`/`) in it; these; the lines between the first and the last,
up to the last step in them; this step; and the last line. What is missing is an empty part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranker.errors import RankerError

Word = tuple[int, ...]
"""The ids of a word's tokens."""
QUERY_PARTS, TEXT_PARTS = 4, 5
TEXT_TYPES = 1
"""The first type of a text's tokens: then come its parts, and for each what parts of the query have the word too.

0 is for tokens that belong to neither text."""
QUERY_TYPES = TEXT_TYPES + TEXT_PARTS * 2**QUERY_PARTS
"""The first type of a query's tokens: then come its parts, for each whether the query has the word elsewhere (of the first part:
anywhere after it; of the others: in the first), and for each of these what parts of the text have it."""
N_TYPES = QUERY_TYPES + QUERY_PARTS * 2 * 2**TEXT_PARTS


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as a tokenizer cuts it."""

    ids: list[int]
    words: list[Word] = field(default_factory=list)
    """Of each token: the word that it is of."""
    parts: list[int] = field(default_factory=list)
    """Of each token: which it is in, from 0."""

    def cut(self, start: int | None, stop: int | None) -> Tokens:
        return Tokens(self.ids[start:stop], self.words[start:stop], self.parts[start:stop])


class WordReader:
    """Texts to tokens, and what is to be known of their words. A word is what the tokenizer cuts into pieces as one."""

    def __init__(self, tokenizer: Any, config: Any) -> None:
        """RankerError where the config asks for `shared_words` and the model has no types for them, or the tokenizer no words."""
        self.shares = bool(getattr(config, "shared_words", False))
        """Whether the model's token types say what words are shared; without, words and parts are not looked for."""
        self._tokenizer = tokenizer
        self._known: dict[Word, Word] = {}
        # so that a word read often is kept once
        if self.shares and config.type_vocab_size != N_TYPES:
            raise RankerError(
                f"model: expected type_vocab_size {N_TYPES} beside shared_words, its config.json has {config.type_vocab_size}"
            )
        if self.shares and not tokenizer.is_fast:
            raise RankerError(
                "model: expected a tokenizer.json beside shared_words, for its tokenizer must say which word a token is of"
            )

    def read(self, texts: Sequence[str], *, query: bool) -> list[Tokens]:
        """`query`: whether they are queries, whose parts are other ones."""
        if not texts:
            return []
        encoded = self._tokenizer(
            list(texts),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_offsets_mapping=self.shares,
            verbose=False,
        )
        if not self.shares:
            return [Tokens(ids) for ids in encoded["input_ids"]]
        parts = _query_parts if query else _text_parts
        found = []
        for place, (text, ids) in enumerate(zip(texts, encoded["input_ids"], strict=True)):
            starts = [start for start, _ in encoded["offset_mapping"][place]]
            found.append(Tokens(ids, self._words(ids, encoded.word_ids(place)), parts(text, starts)))
        return found

    def _words(self, ids: Sequence[int], places: Sequence[int]) -> list[Word]:
        """`places`: of each token, which word of the text it is of."""
        pieces: dict[int, Word] = {}
        for token, place in zip(ids, places, strict=True):
            pieces[place] = (*pieces.get(place, ()), token)
        words = {place: self._known.setdefault(own, own) for place, own in pieces.items()}
        return [words[place] for place in places]


def _query_parts(text: str, starts: Sequence[int]) -> list[int]:
    first = len(text.partition("\n")[0])
    clause = max(text.rfind("; "), first)
    value = _or(text.find(" -> ", clause), len(text))
    return _parts(starts, first, clause, value)


def _text_parts(text: str, starts: Sequence[int]) -> list[int]:
    first = len(text.partition("\n")[0])
    last = max(text.rfind("\n"), first)
    step = _or(text.rfind("/", 0, first), first)
    near = _or(text.rfind("/", 0, step), step)
    between = _or(text.rfind("/", first, last), last)
    return _parts(starts, near, first, between, last)


def _or(place: int, other: int) -> int:
    """`place`, or `other` where nothing was found."""
    return place if place >= 0 else other


def _parts(starts: Sequence[int], *ends: int) -> list[int]:
    """`ends`: of each part but the last."""
    return [bisect_right(ends, start) for start in starts]


def shared_types(query: Tokens, text: Tokens) -> tuple[list[int], list[int]]:
    """Token types of the query's tokens and of the text's."""
    asked, found = _where(query), _where(text)
    of_query = [
        QUERY_TYPES + (part * 2 + _elsewhere(asked[word], part)) * 2**TEXT_PARTS + found.get(word, 0)
        for word, part in zip(query.words, query.parts, strict=True)
    ]
    of_text = [
        TEXT_TYPES + part * 2**QUERY_PARTS + asked.get(word, 0)
        for word, part in zip(text.words, text.parts, strict=True)
    ]
    return of_query, of_text


def _where(tokens: Tokens) -> dict[Word, int]:
    """Each word, and a bit for each part that it stands in."""
    found: dict[Word, int] = {}
    for word, part in zip(tokens.words, tokens.parts, strict=True):
        found[word] = found.get(word, 0) | 1 << part
    return found


def _elsewhere(where: int, part: int) -> bool:
    return where > 1 if part == 0 else bool(where & 1)


def type_traits() -> np.ndarray:
    """What each type says, shape `(N_TYPES, traits)`, of 0 and 1: its text and part, and one trait for each bit of the rest.

    For embeddings that start out as the sum of what a type says, so that one seen seldom is like those it is akin to.
    """
    blocks = np.ones((1, 1)), _traits(TEXT_PARTS, QUERY_PARTS), _traits(QUERY_PARTS, 1 + TEXT_PARTS)
    found = np.zeros((N_TYPES, sum(block.shape[1] for block in blocks)), dtype=np.float32)
    row = column = 0
    for block in blocks:
        found[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return found


def _traits(n_parts: int, n_bits: int) -> np.ndarray:
    """Of `part * 2**n_bits + bits`, in the order of these numbers."""
    bits = np.arange(2**n_bits)[:, None] >> np.arange(n_bits) & 1
    return np.hstack([np.repeat(np.eye(n_parts), 2**n_bits, axis=0), np.tile(bits, (n_parts, 1))])
