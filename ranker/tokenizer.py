"""A small byte-pair tokenizer, learnt from the texts that a ranker is trained on."""

from __future__ import annotations

from collections.abc import Iterable
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


def train_tokenizer(texts: Iterable[str], vocab_size: int, max_tokens: int) -> Any:
    """Lower-cased BPE of words, digits and signs; pairs become `[CLS] first [SEP] second [SEP]` with token types 0 and 1.

    The same texts, in any order and any number, give the same tokenizer. (WordPiece would not: its trainer numbers the
    tokens inside words in the order of a hash table.)
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE(unk_token=SPECIAL["unk_token"]))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(individual_digits=True)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=PRINTABLE,
        show_progress=False,
    )
    core.train_from_iterator(sorted(set(texts)), trainer)
    core.post_processor = _pair_template(core)
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=max_tokens,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **SPECIAL,
    )


def _pair_template(core: Any) -> Any:
    from tokenizers.processors import TemplateProcessing

    ends = [SPECIAL["cls_token"], SPECIAL["sep_token"]]
    return TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, core.token_to_id(token)) for token in ends],
    )
