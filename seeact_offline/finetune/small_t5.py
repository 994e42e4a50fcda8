"""A small T5 with random weights and a tokenizer learnt from the training questions, to be trained from scratch on a laptop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


@dataclass(frozen=True, slots=True)
class SmallT5:
    """Its shape: FLAN-T5 (gated feed-forward layers) with fewer and narrower layers."""

    vocab_size: int = 4000
    """At most so many tokens."""
    d_model: int = 96
    d_kv: int = 32
    d_ff: int = 192
    heads: int = 3
    encoder_layers: int = 3
    decoder_layers: int = 2
    dropout: float = 0.0
    """None: in so short a training each question is seen once."""


def build_small(shape: SmallT5, tokenizer: Any) -> Any:
    """transformers' T5ForConditionalGeneration; random numbers from torch's generator."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=shape.d_model,
        d_kv=shape.d_kv,
        d_ff=shape.d_ff,
        num_layers=shape.encoder_layers,
        num_decoder_layers=shape.decoder_layers,
        num_heads=shape.heads,
        dropout_rate=shape.dropout,
        feed_forward_proj="gated-gelu",
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )
    return T5ForConditionalGeneration(config)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Any:
    """BPE over bytes: any text can be written, case and line breaks are kept, digits stand alone, `</s>` ends a text.

    The same texts, in any order and any number, give the same tokenizer.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(sorted(set(texts)), trainer)
    end = SPECIAL["eos_token"]
    core.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, core.token_to_id(end))]
    )
    return PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=["input_ids", "attention_mask"], **SPECIAL)
