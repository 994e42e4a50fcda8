"""A small DeBERTa-v2 classifier with random weights, to be trained from scratch on a laptop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SmallModel:
    """Its shape: DeBERTa-v3-base with fewer and narrower layers."""

    vocab_size: int = 4000
    """At most so many tokens."""
    hidden_size: int = 128
    layers: int = 3
    heads: int = 4
    intermediate_size: int = 512
    position_buckets: int = 64
    max_tokens: int = 512
    dropout: float = 0.1


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
        type_vocab_size=2,
        relative_attention=True,
        position_buckets=shape.position_buckets,
        pos_att_type=["p2c", "c2p"],
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        position_biased_input=False,
        num_labels=1,
        pad_token_id=tokenizer.pad_token_id,
        pooler_hidden_size=shape.hidden_size,
        hidden_dropout_prob=shape.dropout,
        attention_probs_dropout_prob=shape.dropout,
        pooler_dropout=0.0,
    )
    return DebertaV2ForSequenceClassification(config)
