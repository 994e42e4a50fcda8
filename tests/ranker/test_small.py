"""The model that a small ranker starts from."""

from __future__ import annotations

import pytest
import torch

from ranker.sharing import N_TYPES, QUERY_TYPES, TEXT_TYPES
from ranker.small import SmallModel, build_small
from ranker.tokenizer import train_tokenizer


def start_types(shape: SmallModel) -> torch.Tensor:
    torch.manual_seed(0)
    model = build_small(shape, train_tokenizer(["one two three"], 200, 64))
    found: torch.Tensor = model.deberta.embeddings.token_type_embeddings.weight.detach()
    return found


def test_token_types_that_say_nearly_the_same_start_alike() -> None:
    types = start_types(SmallModel())
    assert types.norm(dim=1).tolist() == [pytest.approx(1)] * N_TYPES
    word, shared_too, of_query = types[TEXT_TYPES + 3], types[TEXT_TYPES + 7], types[QUERY_TYPES + 3]
    assert word @ shared_too > 0.5 > word @ of_query


def test_without_shared_words_token_types_are_two() -> None:
    assert start_types(SmallModel(shared_words=False)).shape == (2, 64)
