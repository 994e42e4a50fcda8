"""The model that a small ranker starts from."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ranker.small_model import SmallModel, build_small
from ranker.tokenizer import train_tokenizer

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
