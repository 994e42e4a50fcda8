"""A small DeBERTa-v2 classifier with random weights and its byte-pair tokenizer, to be trained from scratch on a
laptop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
PRINTABLE = [chr(code) for code in range(33, 127)]
"""Every ASCII character is a token of its own, so an unseen word is split alike in the query and in the text."""


@dataclass(frozen=True, slots=True)
class SmallModel:
    """The shape of DeBERTa-v3-base with fewer and narrower layers."""

    vocab_size: int = 4000
    """Most tokens."""
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


def train_tokenizer(texts: Iterable[str], vocab_size: int, max_tokens: int) -> Any:
    """Lower-cased BPE of words, digits and signs; pairs become `[CLS] first [SEP] second [SEP]` with token types 0 and
    1.

    The same texts, in any order and any number, give the same tokenizer. (WordPiece would not: its trainer numbers the
    tokens inside words in the order of a hash table.)
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE(unk_token=SPECIAL["unk_token"]))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(individual_digits=True)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIAL.values()), initial_alphabet=PRINTABLE, show_progress=False
    )
    core.train_from_iterator(sorted(set(texts)), trainer)
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, core.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=max_tokens,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **SPECIAL,
    )
