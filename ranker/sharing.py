"""Which words two texts have in common, said by token types, so that a small model need not find out.

Token types are what a pair's tokens are marked with before the first layer; as a rule they say which text a token is of. A
model whose config has `shared_words` is told more: in which parts of the pair the token's word stands. A query's parts are
its first line, the last clause (after `; `) of what follows, and what is between; a text's are its first line, its last one
and what is between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ranker.errors import RankerError

Word = tuple[int, ...]
"""The ids of a word's tokens."""
FIRST, LAST, BETWEEN = range(3)
QUERY_PARTS, TEXT_PARTS = 3, 3
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
    """Of each token: `FIRST`, `LAST` or `BETWEEN`."""

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
    first = _first_line(text)
    last = max(text.rfind("; "), first)
    return [FIRST if start < first else LAST if start >= last else BETWEEN for start in starts]


def _text_parts(text: str, starts: Sequence[int]) -> list[int]:
    first = _first_line(text)
    last = max(text.rfind("\n"), first)
    return [FIRST if start < first else LAST if start >= last else BETWEEN for start in starts]


def _first_line(text: str) -> int:
    """Its length."""
    return len(text.partition("\n")[0])


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
    first = 1 << FIRST
    return where > first if part == FIRST else bool(where & first)
