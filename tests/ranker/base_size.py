"""A checkpoint of DeBERTa-v3-base's shape with random weights: what speed is measured on where the published one cannot be had."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

WEIGHT_STD = 0.04
"""Twice the usual: with 0.02 attention is all but uniform, and the first token hardly knows what it has read."""
LOGIT_SCALE = 16
"""Of the classifier: the logits of a page then spread by about 2, as a trained ranker's do; it changes no order."""
MAX_TOKENS = 512
VOCABULARY = 8000


def write_base_size(folder: Path, texts: Iterable[str], seed: int = 0) -> None:
    """`texts`: what its tokenizer is learnt from."""
    make_tokenizer(texts).save_pretrained(folder)
    make_model(seed).save_pretrained(folder)


def make_tokenizer(texts: Iterable[str]) -> Any:
    """DeBERTa-v3's kind: unigram pieces that keep the case and mark where words begin; `[CLS] first [SEP] second [SEP]`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    core = Tokenizer(models.Unigram())
    core.normalizer = normalizers.NFKC()
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.train_from_iterator(
        sorted(set(texts)),
        trainers.UnigramTrainer(vocab_size=VOCABULARY, special_tokens=special, unk_token="[UNK]", show_progress=False),
    )
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "cls", "sep", "unk", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=MAX_TOKENS, **names)


def make_model(seed: int) -> Any:
    """184 million weights; the numbers of `microsoft/deberta-v3-base`'s config."""
    import torch
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    torch.manual_seed(seed)
    config = DebertaV2Config(
        vocab_size=128_100,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=MAX_TOKENS,
        type_vocab_size=0,
        relative_attention=True,
        position_buckets=256,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        layer_norm_eps=1e-7,
        num_labels=1,
        initializer_range=WEIGHT_STD,
    )
    model = DebertaV2ForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight.mul_(LOGIT_SCALE)
    return model
