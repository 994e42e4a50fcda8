"""A small DeBERTa-v2 classifier from scratch, told which words are shared and started so that equal ones find one another.

A classifier with random weights has to learn from a few hundred steps that a word of the query matters when it stands in
the text too, and rather learns the words themselves. So its token types say which words are shared (`ranker.sharing`); and
queries and keys start out equal, which makes attention strongest between equal tokens, with embeddings of length 1, so that
this is more than noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ranker.sharing import N_TYPES, type_traits


@dataclass(frozen=True, slots=True)
class SmallModel:
    """The shape of a classifier trained from scratch."""

    vocab_size: int = 4000
    hidden_size: int = 64
    layers: int = 3
    heads: int = 4
    intermediate_size: int = 256
    position_buckets: int = 32
    max_tokens: int = 512
    dropout: float = 0.0
    shared_words: bool = True
    # told by token types, see `ranker.sharing`; without, these say which text a token is of


def build_small(shape: SmallModel, tokenizer: Any) -> Any:
    """transformers' DebertaV2ForSequenceClassification with one logit; random numbers from torch's generator."""
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    config = DebertaV2Config(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.intermediate_size,
        max_position_embeddings=shape.max_tokens,
        type_vocab_size=N_TYPES if shape.shared_words else 2,
        shared_words=shape.shared_words,
        relative_attention=True,
        position_buckets=shape.position_buckets,
        pos_att_type=["c2p"],
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        position_biased_input=False,
        num_labels=1,
        pad_token_id=tokenizer.pad_token_id,
        pooler_hidden_size=shape.hidden_size,
        hidden_dropout_prob=shape.dropout,
        attention_probs_dropout_prob=0.0,
        pooler_dropout=0.0,
    )
    model = DebertaV2ForSequenceClassification(config)
    _start_matching(model, shape)
    return model


def _start_matching(model: Any, shape: SmallModel) -> None:
    import torch

    unit = 1 / math.sqrt(shape.hidden_size)
    encoder = model.deberta.encoder
    with torch.no_grad():
        model.deberta.embeddings.word_embeddings.weight.normal_(0, unit)[0] = 0
        model.deberta.embeddings.token_type_embeddings.weight.copy_(_start_types(shape))
        encoder.rel_embeddings.weight.normal_(0, 0.3 * unit)
        model.pooler.dense.weight.normal_(0, unit)
        for layer in encoder.layer:
            attention = layer.attention.self
            attention.query_proj.weight.normal_(0, 1.3 * unit)
            attention.key_proj.weight.copy_(attention.query_proj.weight)
            attention.value_proj.weight.normal_(0, unit)
            layer.attention.output.dense.weight.normal_(0, unit)
            layer.intermediate.dense.weight.normal_(0, unit)
            layer.output.dense.weight.normal_(0, 0.5 / math.sqrt(shape.intermediate_size))


def _start_types(shape: SmallModel) -> Any:
    """Embeddings of the token types, of length 1 or thereabouts; where they say what is shared, sums of what they say."""
    import torch

    if not shape.shared_words:
        return torch.randn(2, shape.hidden_size) / math.sqrt(shape.hidden_size)
    traits = torch.from_numpy(type_traits())
    types = traits @ torch.randn(traits.shape[1], shape.hidden_size)
    return types / types.norm(dim=1, keepdim=True)
