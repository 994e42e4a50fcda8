"""Token types that say which words a query and a text have in common."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import CanineTokenizer, DebertaV2Config

from ranker.errors import RankerError
from ranker.sharing import N_TYPES, QUERY_TYPES, TEXT_TYPES, Tokens, WordReader, shared_types
from ranker.tokenizer import train_tokenizer

SHARING = DebertaV2Config(shared_words=True, type_vocab_size=N_TYPES)
WORDS = "red green blue black white small large round".split()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer([" ".join(WORDS)], 400, 64)


def _read(tokenizer: Any, query: str, text: str) -> tuple[Tokens, Tokens]:
    reader = WordReader(tokenizer, SHARING)
    return reader.read([query], query=True)[0], reader.read([text], query=False)[0]


def test_a_querys_parts_are_its_first_line_the_last_clause_and_what_is_between(tokenizer: Any) -> None:
    asked, _ = _read(tokenizer, "red green\nblue; black; white small", "")
    assert tokenizer.convert_ids_to_tokens(asked.ids) == "red green blu black whit small".split()
    assert asked.parts == [0, 0, 2, 2, 1, 1]


def test_one_clause_after_the_first_line_is_the_last(tokenizer: Any) -> None:
    asked, _ = _read(tokenizer, "red; green\nblue", "")
    assert asked.parts == [0, 0, 1]


def test_a_query_of_one_line_is_all_first(tokenizer: Any) -> None:
    asked, _ = _read(tokenizer, "red; green", "")
    assert asked.parts == [0, 0]


def test_a_texts_parts_are_its_first_line_the_last_and_what_is_between(tokenizer: Any) -> None:
    _, found = _read(tokenizer, "", "red; green\nblue; black\nwhite\nsmall")
    assert found.parts == [0, 0, 2, 2, 2, 1]


def test_the_second_of_two_lines_is_the_last(tokenizer: Any) -> None:
    _, found = _read(tokenizer, "", "red green\nblue")
    assert found.parts == [0, 0, 1]


def test_a_text_of_one_line_is_all_first(tokenizer: Any) -> None:
    _, found = _read(tokenizer, "", "red green")
    assert found.parts == [0, 0]


def test_a_word_in_pieces_is_shared_as_a_whole(tokenizer: Any) -> None:
    asked, found = _read(tokenizer, "bold", "bolt\nbold")
    assert len(found.ids) > 2, "a word never seen is spelt out"
    _, types = shared_types(asked, found)
    bolt, bold = types[: found.parts.index(1)], types[found.parts.index(1) :]
    assert set(bolt) == {TEXT_TYPES}
    assert set(bold) == {TEXT_TYPES + 8 + 1}


def test_a_reader_that_is_not_asked_for_words_gives_none(tokenizer: Any) -> None:
    (found,) = WordReader(tokenizer, DebertaV2Config()).read(["red green"], query=False)
    assert found == Tokens(found.ids)


def test_a_model_without_types_for_them_is_refused(tokenizer: Any) -> None:
    with pytest.raises(RankerError, match=r"expected type_vocab_size 73 beside shared_words, its config\.json has 2"):
        WordReader(tokenizer, DebertaV2Config(shared_words=True, type_vocab_size=2))


def test_a_tokenizer_that_knows_no_words_is_refused() -> None:
    with pytest.raises(RankerError, match=r"expected a tokenizer\.json"):
        WordReader(CanineTokenizer(), SHARING)


def test_cutting_keeps_words_and_parts_with_their_tokens(tokenizer: Any) -> None:
    _, found = _read(tokenizer, "", "red green\nblue black")
    assert found.cut(1, 3) == Tokens(found.ids[1:3], found.words[1:3], [0, 1])


LINE = st.lists(st.sampled_from(WORDS), max_size=4)


@given(st.tuples(LINE, LINE, LINE), st.tuples(LINE, LINE, LINE))
def test_types_say_where_else_a_word_stands(asked: tuple[list[str], ...], found: tuple[list[str], ...]) -> None:
    """Against the definition, word by word; parts in the order of their numbers."""
    types = shared_types(_tokens(asked), _tokens(found))

    expected_text = [
        TEXT_TYPES + part * 8 + sum(2**other for other in range(3) if word in asked[other])
        for part, line in enumerate(found)
        for word in line
    ]
    expected_query = []
    for part, line in enumerate(asked):
        for word in line:
            again = word in (asked[1] + asked[2] if part == 0 else asked[0])
            there = sum(2**other for other in range(3) if word in found[other])
            expected_query.append(QUERY_TYPES + part * 16 + again * 8 + there)
    assert types == (expected_query, expected_text)
    assert all(0 < each < N_TYPES for each in expected_query + expected_text)


def _tokens(lines: tuple[list[str], ...]) -> Tokens:
    ids = [WORDS.index(word) for line in lines for word in line]
    return Tokens(ids, [(each,) for each in ids], [part for part, line in enumerate(lines) for _ in line])
