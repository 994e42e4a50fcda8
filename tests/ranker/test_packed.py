"""The packed forward pass against transformers' own, on small DeBERTa-v2 classifiers of every kind."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranker import CrossEncoderRanker, RankerError
from ranker.packed import PackedDeberta, Span, can_pack, find_spans, token_bounds
from tests.lazily import torch, transformers
from tests.ranker.test_cross_encoder import QUERY, make_checkpoint, save, tiny_config

LONGEST = 60
KINDS: dict[str, dict[str, Any]] = {
    "v3": {},
    "no buckets": {"position_buckets": -1},
    "short reach": {"position_buckets": -1, "max_relative_positions": 5},
    "buckets within a reach": {"position_buckets": 4, "max_relative_positions": 20},
    "own projections of positions": {"share_att_key": False},
    "content to position": {"pos_att_type": ["c2p"]},
    "position to content": {"pos_att_type": ["p2c"]},
    "content alone": {"pos_att_type": []},
    "no relative positions": {"relative_attention": False, "position_biased_input": True},
    "positions not normed": {"norm_rel_ebd": "none"},
    "absolute positions too": {"position_biased_input": True},
    "token types": {"type_vocab_size": 2},
    "narrow embeddings": {"embedding_size": 16},
    "one layer": {"num_hidden_layers": 1},
    "three labels": {"num_labels": 3},
    "another activation": {"hidden_act": "relu", "pooler_hidden_act": "tanh"},
}

ROW = st.integers(1, LONGEST).flatmap(lambda n: st.lists(st.integers(1, 18), min_size=n, max_size=n))


def make_model(**kind: Any) -> Any:
    torch.manual_seed(0)
    return transformers.DebertaV2ForSequenceClassification(tiny_config(**kind)).eval()


def packed(model: Any, dtype: str = "float32") -> PackedDeberta:
    with torch.inference_mode():
        return PackedDeberta(model, getattr(torch, dtype), LONGEST)


def one_by_one(model: Any, rows: list[list[int]], types: list[list[int]]) -> Any:
    with torch.no_grad():
        logits = [
            model(torch.tensor([row]), token_type_ids=torch.tensor([kinds])).logits
            for row, kinds in zip(rows, types, strict=True)
        ]
    return torch.cat(logits)


def make_rows(*lengths: int) -> list[list[int]]:
    return [[1 + (7 * place + length) % 18 for place in range(length)] for length in lengths]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_equal_those_of_transformers(kind: str) -> None:
    model = make_model(**KINDS[kind])
    rows = make_rows(60, 31, 31, 31, 9, 2, 1, 1)
    types = [[int(2 * place > len(row)) for place in range(len(row))] for row in rows]
    with torch.inference_mode():
        found = packed(model).logits(rows, types)
    torch.testing.assert_close(found, one_by_one(model, rows, types), atol=1e-4, rtol=0)


@cache
def plain() -> tuple[Any, PackedDeberta]:
    model = make_model()
    return model, packed(model)


@settings(max_examples=25)
@given(st.lists(ROW, min_size=1, max_size=6))
def test_rows_may_come_in_any_lengths(rows: list[list[int]]) -> None:
    with torch.inference_mode():
        found = plain()[1].logits(rows)
    expected = one_by_one(plain()[0], rows, [[0] * len(row) for row in rows])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_bf16_logits_are_near_and_float32() -> None:
    rows = make_rows(60, 31, 9)
    with torch.inference_mode():
        found, expected = packed(plain()[0], "bfloat16").logits(rows), plain()[1].logits(rows)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0.2, rtol=0)


def test_bf16_logits_do_not_depend_on_the_company() -> None:
    half = packed(plain()[0], "bfloat16")
    rows = make_rows(60, 31, 31, 9)
    with torch.inference_mode():
        together, alone = half.logits(rows), [half.logits([row]) for row in rows]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-3, rtol=0)


def test_the_convolution_of_the_largest_models_is_left_to_transformers() -> None:
    assert not can_pack(make_model(conv_kernel_size=3))


def test_other_architectures_are_left_to_transformers() -> None:
    config = transformers.BertConfig(
        vocab_size=19, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    assert not can_pack(transformers.BertForSequenceClassification(config))


def test_neighbours_of_one_width_make_a_span() -> None:
    assert find_spans([5, 5, 3, 5]) == [Span(0, 2, 5), Span(10, 1, 3), Span(13, 1, 5)]


@given(st.lists(st.integers(1, 60), min_size=1), st.integers(1, 200))
def test_bounds_cover_all_rows_within_the_budget(lengths: list[int], budget: int) -> None:
    bounds = token_bounds(lengths, budget)
    assert (bounds[0], bounds[-1]) == (0, len(lengths))
    for start, stop in pairwise(bounds):
        assert stop - start == 1 or sum(lengths[start:stop]) <= budget


# Through the ranker


@pytest.mark.parametrize("kind", ["v3", "token types", "three labels"])
def test_backends_agree(tmp_path: Path, kind: str) -> None:
    folder = make_checkpoint(tmp_path, **KINDS[kind] | ({"positive_label": 1} if kind == "three labels" else {}))
    texts = ["cart", "search flight button", "alpha beta ( gamma ) / one two", ""]
    ours, theirs = (
        CrossEncoderRanker(folder, device="cpu", backend=backend).score(QUERY, texts)
        for backend in ("packed", "transformers")
    )
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_packed_is_refused_where_it_cannot_be(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=19, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=1
    )
    folder = save(tmp_path, transformers.BertForSequenceClassification(config))
    with pytest.raises(
        RankerError,
        match=r"backend: expected transformers for .*BertForSequence.*, got packed, which reads DeBERTa-v2 and v3 alone",
    ):
        CrossEncoderRanker(folder, device="cpu", backend="packed")
