"""The model and the tokenizer that a small ranker starts from."""

from __future__ import annotations

from typing import Any

import pytest

from ranker.small_model import SmallModel, build_small, train_tokenizer
from tests.lazily import torch

SHAPE = SmallModel(vocab_size=200, hidden_size=32, layers=2, heads=2, intermediate_size=48, max_tokens=64)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer(["one two three"], 200, 64)


def start(tokenizer: Any, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return build_small(SHAPE, tokenizer).eval()


def test_it_has_the_shape_asked_for(tokenizer: Any) -> None:
    config = start(tokenizer).config
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (32, 2, 2)
    assert (config.intermediate_size, config.max_position_embeddings) == (48, 64)
    assert (config.vocab_size, config.pad_token_id) == (len(tokenizer), tokenizer.pad_token_id)


def test_it_gives_a_pair_one_logit(tokenizer: Any) -> None:
    with torch.no_grad():
        assert start(tokenizer)(**tokenizer("one", "two three", return_tensors="pt")).logits.shape == (1, 1)


def test_it_tells_the_two_texts_of_a_pair_apart(tokenizer: Any) -> None:
    assert start(tokenizer).deberta.embeddings.token_type_embeddings.weight.shape == (2, 32)


def test_its_weights_follow_from_torchs_seed(tokenizer: Any) -> None:
    def first(seed: int) -> list[float]:
        return start(tokenizer, seed).pooler.dense.weight[0].tolist()

    assert first(0) == first(0) != first(1)


# The tokenizer

WORDS = "red green blue black white small large round square flat soft hard cold warm old new find and box".split()


@pytest.fixture(scope="module")
def word_tokenizer() -> Any:
    return train_tokenizer([" ".join(WORDS)] * 3 + WORDS, 400, 40)


def test_same_texts_in_any_order_and_number_give_the_same_tokenizer() -> None:
    def bytes_of(texts: list[str]) -> str:
        return train_tokenizer(texts, 160, 40).backend_tokenizer.to_str()

    assert bytes_of(WORDS) == bytes_of(WORDS[::-1]) == bytes_of(WORDS * 2)


def test_it_has_no_more_tokens_than_asked_for() -> None:
    assert len(train_tokenizer(WORDS, 110, 40)) == 110


def test_words_of_the_texts_are_tokens(word_tokenizer: Any) -> None:
    assert word_tokenizer.tokenize("Find Green, BOX") == ["find", "green", ",", "box"]


def test_an_unseen_word_is_spelt_alike_in_both_texts(word_tokenizer: Any) -> None:
    ids = word_tokenizer("quizjvp", "box quizjvp")["input_ids"]
    first = ids[1 : ids.index(word_tokenizer.sep_token_id)]
    assert len(first) > 1
    assert word_tokenizer.unk_token_id not in first
    assert ids[-1 - len(first) : -1] == first


def test_every_printable_character_is_known(word_tokenizer: Any) -> None:
    everything = " ".join(map(chr, range(33, 127)))
    assert word_tokenizer.unk_token_id not in word_tokenizer(everything)["input_ids"]


def test_digits_are_read_one_by_one(word_tokenizer: Any) -> None:
    assert word_tokenizer.tokenize("2026") == ["2", "0", "2", "6"]


def test_a_pair_has_token_types_0_and_1(word_tokenizer: Any) -> None:
    pair = word_tokenizer("red", "green box")
    assert word_tokenizer.convert_ids_to_tokens(pair["input_ids"]) == ["[CLS]", "red", "[SEP]", "green", "box", "[SEP]"]
    assert pair["token_type_ids"] == [0, 0, 0, 1, 1, 1]


def test_it_states_how_long_a_pair_may_be(word_tokenizer: Any) -> None:
    assert word_tokenizer.model_max_length == 40
