"""The tokenizer that a small ranker is trained with."""

from __future__ import annotations

from typing import Any

import pytest

from ranker.tokenizer import train_tokenizer

WORDS = "red green blue black white small large round square flat soft hard cold warm old new find and box".split()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer([" ".join(WORDS)] * 3 + WORDS, 400, 40)


def test_same_texts_in_any_order_and_number_give_the_same_tokenizer() -> None:
    def bytes_of(texts: list[str]) -> str:
        return train_tokenizer(texts, 160, 40).backend_tokenizer.to_str()

    assert bytes_of(WORDS) == bytes_of(WORDS[::-1]) == bytes_of(WORDS * 2)


def test_it_has_no_more_tokens_than_asked_for() -> None:
    assert len(train_tokenizer(WORDS, 110, 40)) == 110


def test_words_of_the_texts_are_tokens(tokenizer: Any) -> None:
    assert tokenizer.tokenize("Find Green, BOX") == ["find", "green", ",", "box"]


def test_an_unseen_word_is_spelt_alike_in_both_texts(tokenizer: Any) -> None:
    ids = tokenizer("quizjvp", "box quizjvp")["input_ids"]
    first = ids[1 : ids.index(tokenizer.sep_token_id)]
    assert len(first) > 1
    assert tokenizer.unk_token_id not in first
    assert ids[-1 - len(first) : -1] == first


def test_every_printable_character_is_known(tokenizer: Any) -> None:
    everything = " ".join(map(chr, range(33, 127)))
    assert tokenizer.unk_token_id not in tokenizer(everything)["input_ids"]


def test_digits_are_read_one_by_one(tokenizer: Any) -> None:
    assert tokenizer.tokenize("2026") == ["2", "0", "2", "6"]


def test_a_pair_has_token_types_0_and_1(tokenizer: Any) -> None:
    pair = tokenizer("red", "green box")
    assert tokenizer.convert_ids_to_tokens(pair["input_ids"]) == ["[CLS]", "red", "[SEP]", "green", "box", "[SEP]"]
    assert pair["token_type_ids"] == [0, 0, 0, 1, 1, 1]


def test_it_states_how_long_a_pair_may_be(tokenizer: Any) -> None:
    assert tokenizer.model_max_length == 40
