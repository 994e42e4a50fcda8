"""Small models with random weights and a tokenizer learnt from the training questions, to be trained from scratch on a laptop.

Each is of transformers' own classes. Those that see look at pictures of PICTURE_SIDE pixels, whatever a picture's proportions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
IMAGE = "<image>"
"""The token in whose places a picture's vectors go."""
PICTURE_SIDE = 32
PATCH = 8
CHAT = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""The chat template of a small LLaVA."""
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CONTEXT = 32_768
"""Tokens of a small LLaVA's longest prompt."""
SPREAD = 0.15
"""Standard deviation of its weights. LoRA trains neither embeddings nor scores of tokens: with the usual 0.02 no token could stand out."""


@dataclass(frozen=True, slots=True)
class SmallBase:
    """Its shape: FLAN-T5 (gated feed-forward layers) with fewer and narrower layers.

    A BLIP-2 holds such a T5; its other parts, and a LLaVA's, have the width and depth of the encoder.
    """

    vocab_size: int = 4000
    """Most tokens, some for roles and pictures aside."""
    d_model: int = 96
    d_kv: int = 32
    d_ff: int = 192
    heads: int = 3
    encoder_layers: int = 3
    decoder_layers: int = 2
    dropout: float = 0.0
    """None: in so short a training each question is seen once."""

    @property
    def layers(self) -> dict[str, int]:
        """Gives width, depth and heads by the names that parts for pictures, and Llama, have for them."""
        return {
            "hidden_size": self.d_model,
            "intermediate_size": self.d_ff,
            "num_hidden_layers": self.encoder_layers,
            "num_attention_heads": self.heads,
        }


# --- models: each with its tokenizer or processor; weights are random numbers from torch's generator ---


def build_t5(shape: SmallBase, tokenizer: Any) -> tuple[Any, Any]:
    """A T5ForConditionalGeneration."""
    from transformers import T5ForConditionalGeneration

    return T5ForConditionalGeneration(_t5_config(shape, tokenizer)), tokenizer


def build_blip2(shape: SmallBase, tokenizer: Any) -> tuple[Any, Any]:
    """A Blip2ForConditionalGeneration."""
    from transformers import Blip2ForConditionalGeneration

    tokenizer.add_special_tokens({"extra_special_tokens": [IMAGE]})
    config, processor = blip2_parts(_t5_config(shape, tokenizer), tokenizer, shape.layers)
    return Blip2ForConditionalGeneration(config), processor


def build_llava(shape: SmallBase, tokenizer: Any) -> tuple[Any, Any]:
    """A LlavaForConditionalGeneration."""
    from tokenizers.processors import TemplateProcessing
    from transformers import LlavaForConditionalGeneration

    tokenizer.add_special_tokens({"extra_special_tokens": [IMAGE, *ROLES]})
    # the template ends a turn; a prompt has no end
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="$A")
    text = {
        **shape.layers,
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "max_position_embeddings": CONTEXT,
        "initializer_range": SPREAD,
    }
    config, processor = llava_parts(text, tokenizer, shape.layers)
    return LlavaForConditionalGeneration(config), processor


def blip2_parts(text: Any, tokenizer: Any, layers: Mapping[str, int]) -> tuple[Any, Any]:
    """A Blip2Config with this T5's configuration, and its processor: a picture is 16 tokens and one, of which 4 are made."""
    from transformers import Blip2Config, Blip2Processor
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    config = Blip2Config(
        vision_config={**layers, "image_size": PICTURE_SIDE, "patch_size": PATCH, "initializer_range": 0.02},
        qformer_config={
            **layers,
            "vocab_size": 8,
            "cross_attention_frequency": 1,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        },
        text_config=text.to_dict(),
        num_query_tokens=4,
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
    )
    side = {"height": PICTURE_SIDE, "width": PICTURE_SIDE}
    return config, Blip2Processor(BlipImageProcessorPil(size=side), tokenizer, num_query_tokens=4)


def llava_parts(text: Mapping[str, Any], tokenizer: Any, layers: Mapping[str, int]) -> tuple[Any, Any]:
    """A LlavaConfig with this Llama, and its processor: a picture is 16 tokens."""
    from transformers import LlavaConfig, LlavaProcessor
    from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

    vision = {
        **layers,
        "model_type": "clip_vision_model",
        "image_size": PICTURE_SIDE,
        "patch_size": PATCH,
        "projection_dim": layers["hidden_size"],
    }
    config = LlavaConfig(
        vision_config=vision,
        text_config={"model_type": "llama", **text},
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=(PICTURE_SIDE // PATCH) ** 2,
        vision_feature_layer=-1,
    )
    side = {"height": PICTURE_SIDE, "width": PICTURE_SIDE}
    processor = LlavaProcessor(
        image_processor=LlavaImageProcessorPil(size=side, crop_size=side),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT,
    )
    return config, processor


def _t5_config(shape: SmallBase, tokenizer: Any) -> Any:
    from transformers import T5Config

    return T5Config(
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


# --- tokenizer ---


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
