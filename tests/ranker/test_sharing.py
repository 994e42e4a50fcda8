"""Token types that say which words a query and a text have in common."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import CanineTokenizer, DebertaV2Config

from ranker.errors import RankerError
from ranker.sharing import (
    N_TYPES,
    QUERY_PARTS,
    QUERY_TYPES,
    TEXT_PARTS,
    TEXT_TYPES,
    Tokens,
    WordReader,
    shared_types,
    type_traits,
)
from ranker.tokenizer import train_tokenizer

SHARING = DebertaV2Config(shared_words=True, type_vocab_size=N_TYPES)
WORDS = "red green blue black white small large round".split()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer([" ".join(WORDS)], 400, 64)


def _read(tokenizer: Any, query: str, text: str) -> tuple[Tokens, Tokens]:
    reader = WordReader(tokenizer, SHARING)
    return reader.read([query], query=True)[0], reader.read([text], query=False)[0]


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("red green\nblue; black; white -> small", [0, 0, 1, 1, 2, 3]),
        ("red\nblue -> black; white -> small large", [0, 1, 1, 2, 3, 3]),
        ("red; green\nblue -> black", [0, 0, 2, 3]),
        ("red; green\nblue", [0, 0, 2]),
        ("red; green -> blue", [0, 0, 0]),
    ],
)
def test_a_querys_parts_are_its_first_line_what_follows_and_its_last_clause_in_two(
    tokenizer: Any, query: str, parts: list[int]
) -> None:
    assert _parts_of_words(_read(tokenizer, query, "")[0]) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("red /green /blue /black\nwhite /small /large\nround / red", [0, 0, 1, 1, 2, 2, 3, 4, 4]),
        ("red /green\nwhite\nround", [0, 1, 2, 4]),
        ("red\n/white\nround", [0, 3, 4]),
        ("red /green /blue\nround", [0, 1, 1, 4]),
        ("red; green -> blue\nblack", [0, 0, 0, 4]),
        ("red green", [0, 0]),
    ],
)
def test_a_texts_parts_are_its_lines_with_the_first_ones_last_steps_apart(
    tokenizer: Any, text: str, parts: list[int]
) -> None:
    assert _parts_of_words(_read(tokenizer, "", text)[1]) == parts


def test_a_word_in_pieces_is_shared_as_a_whole(tokenizer: Any) -> None:
    asked, found = _read(tokenizer, "bold", "bolt\nbold")
    assert len(found.ids) > 2, "a word never seen is spelt out"
    _, types = shared_types(asked, found)
    bolt, bold = types[: found.parts.index(4)], types[found.parts.index(4) :]
    assert set(bolt) == {TEXT_TYPES}
    assert set(bold) == {TEXT_TYPES + 4 * 16 + 1}


def test_a_reader_that_is_not_asked_for_words_gives_none(tokenizer: Any) -> None:
    (found,) = WordReader(tokenizer, DebertaV2Config()).read(["red green"], query=False)
    assert found == Tokens(found.ids)


def test_a_model_without_types_for_them_is_refused(tokenizer: Any) -> None:
    with pytest.raises(RankerError, match=r"expected type_vocab_size 337 beside shared_words, its config\.json has 2"):
        WordReader(tokenizer, DebertaV2Config(shared_words=True, type_vocab_size=2))


def test_a_tokenizer_that_knows_no_words_is_refused() -> None:
    with pytest.raises(RankerError, match=r"expected a tokenizer\.json"):
        WordReader(CanineTokenizer(), SHARING)


def test_cutting_keeps_words_and_parts_with_their_tokens(tokenizer: Any) -> None:
    _, found = _read(tokenizer, "", "red green\nblue black")
    assert found.cut(1, 3) == Tokens(found.ids[1:3], found.words[1:3], [0, 4])


LINE = st.lists(st.sampled_from(WORDS), max_size=4)


@given(st.tuples(*[LINE] * QUERY_PARTS), st.tuples(*[LINE] * TEXT_PARTS))
def test_types_say_where_else_a_word_stands(asked: tuple[list[str], ...], found: tuple[list[str], ...]) -> None:
    """Against the definition, word by word; parts in the order of their numbers."""
    types = shared_types(_tokens(asked), _tokens(found))

    expected_text = [
        TEXT_TYPES + part * 16 + sum(2**other for other in range(4) if word in asked[other])
        for part, line in enumerate(found)
        for word in line
    ]
    expected_query = []
    for part, line in enumerate(asked):
        for word in line:
            again = any(word in other for other in (asked[1:] if part == 0 else asked[:1]))
            there = sum(2**other for other in range(5) if word in found[other])
            expected_query.append(QUERY_TYPES + part * 64 + again * 32 + there)
    assert types == (expected_query, expected_text)
    assert all(0 < each < N_TYPES for each in expected_query + expected_text)


def test_no_two_types_have_the_same_traits() -> None:
    assert len(np.unique(type_traits(), axis=0)) == N_TYPES


@given(st.integers(0, TEXT_PARTS - 1), st.integers(0, 2**QUERY_PARTS - 1), st.integers(0, QUERY_PARTS - 1))
def test_a_types_traits_are_its_part_and_where_the_word_stands_too(part: int, there: int, more: int) -> None:
    """A word that stands in one more part of the query has one trait more, whatever part of the text it is in."""
    traits = type_traits()
    of_type = TEXT_TYPES + part * 2**QUERY_PARTS
    there &= ~(1 << more)
    gained = traits[of_type + (there | 1 << more)] - traits[of_type + there]
    assert traits[of_type + there].sum() == 1 + there.bit_count()
    assert gained.sum() == 1
    assert np.array_equal(gained, traits[TEXT_TYPES + (1 << more)] - traits[TEXT_TYPES])


def _parts_of_words(tokens: Tokens) -> list[int]:
    """`/green` may be several tokens, but one word."""
    return [part for (_, part), _ in groupby(zip(tokens.words, tokens.parts, strict=True))]


def _tokens(lines: tuple[list[str], ...]) -> Tokens:
    ids = [WORDS.index(word) for line in lines for word in line]
    return Tokens(ids, [(each,) for each in ids], [part for part, line in enumerate(lines) for _ in line])
