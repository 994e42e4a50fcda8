"""Tiny models of transformers' own classes with random weights, saved as the hub has them: config, safetensors, tokenizer.

They answer nonsense, the same for the same prompt, and end it after some tokens: `exponential_decay_length_penalty` of their
generation settings raises the end of the text with every token.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TEXTS = (
    "What is the next target element? ELEMENT: A ACTION: CLICK VALUE: None of them (button) Search <input id=3> type text",
    "TASK: Find a flight from New York to London. ELEMENT: B ACTION: TYPE VALUE: 12 previous actions, page, screenshot",
)
"""What the tokenizers are trained on; bytes that are not in them are tokens of their own."""
SPECIAL = ("<pad>", "<s>", "</s>", "<image>", "<|system|>", "<|user|>", "<|assistant|>")
CHAT = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""A chat template with a place for pictures."""
QWEN_TOKENS = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
QWEN_CHAT = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN_PICTURES = {
    "min_pixels": 3_136,
    "max_pixels": 12_845_056,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_processor_type": "Qwen2VLImageProcessor",
    "processor_class": "Qwen2_5_VLProcessor",
}
"""The `preprocessor_config.json` of Qwen2.5-VL, without means and deviations of colours."""
ENDS_SOON = {"min_new_tokens": 3, "exponential_decay_length_penalty": (4, 1.5)}
SIDE, PATCH = 32, 8
"""Pixels of the pictures that LLaVA and BLIP-2 look at, and of their parts."""
SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}


def save_llava(folder: Path, seed: int = 0, context: int = 100_000, says: str | None = None) -> Path:
    """LLaVA: looks at pictures of 32 x 32 pixels as 16 tokens. `says`: its reply to everything; None: nonsense."""
    from transformers import LlavaForConditionalGeneration

    tokenizer = _tokenizer()
    generation = _generation(tokenizer, says)
    config, processor = _llava_parts(_text(tokenizer, context), tokenizer)
    return _saved(LlavaForConditionalGeneration, config, processor, folder, seed, generation)


def save_qwen2_5_vl(folder: Path, seed: int = 0, says: str | None = None) -> Path:
    """Qwen2.5-VL: looks at pictures of any size, a token each 28 x 28 pixels. Made without torchvision; its processor needs it.

    `says`: its reply to everything; None: nonsense.
    """
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    tokenizer = _tokenizer(QWEN_TOKENS)
    tokenizer.chat_template, tokenizer.eos_token = QWEN_CHAT, "<|im_end|>"
    generation = _generation(tokenizer, says)
    start, end, image, video = tokenizer.convert_tokens_to_ids(list(QWEN_TOKENS[2:]))
    places = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 1e6}
    config = Qwen2_5_VLConfig(
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_heads": 2,
            "out_hidden_size": 32,
            "fullatt_block_indexes": [1],
        },
        text_config={**_text(tokenizer, 100_000), "num_key_value_heads": 2, "rope_parameters": places},
        vision_start_token_id=start,
        vision_end_token_id=end,
        image_token_id=image,
        video_token_id=video,
    )
    _saved(Qwen2_5_VLForConditionalGeneration, config, tokenizer, folder, seed, generation)
    (folder / "preprocessor_config.json").write_text(json.dumps(QWEN_PICTURES))
    return folder


def save_llama(folder: Path, seed: int = 0, context: int = 100_000, chat: str | None = CHAT) -> Path:
    """A text-only causal model. `chat`: its template; None: none."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer()
    tokenizer.chat_template = chat
    return _saved(LlamaForCausalLM, LlamaConfig(**_text(tokenizer, context)), tokenizer, folder, seed)


def save_t5(folder: Path, seed: int = 0) -> Path:
    """T5, a text-to-text model without a chat template, whose tokenizer ends a text with `</s>`."""
    from transformers import T5ForConditionalGeneration

    tokenizer = _ending_tokenizer()
    return _saved(T5ForConditionalGeneration, _t5_config(tokenizer), tokenizer, folder, seed)


def save_blip2(folder: Path, seed: int = 0) -> Path:
    """BLIP-2 with the T5 of `save_t5`: looks at pictures of 32 x 32 pixels as 16 tokens and one, and passes 4 of them on.

    As on the hub, it has no chat template.
    """
    from transformers import Blip2ForConditionalGeneration

    tokenizer = _ending_tokenizer()
    config, processor = _blip2_parts(_t5_config(tokenizer), tokenizer)
    return _saved(Blip2ForConditionalGeneration, config, processor, folder, seed)


def as_on_hub(folder: Path) -> Path:
    """The folder as transformers 4 wrote the hub's: a T5, a BLIP-2's too, has weights of its own for its scores (`lm_head`), and a Llama
    other turns of places than the default. What transformers 5 calls otherwise, or infers, is not there."""
    from safetensors.numpy import load_file, save_file

    config = json.loads((folder / "config.json").read_text())
    text, weights = config.get("text_config", config), load_file(folder / "model.safetensors")
    if text["model_type"] == "t5":
        shared = next(name for name in weights if name.endswith("shared.weight"))
        weights[shared.replace("shared", "lm_head")] = weights[shared][::-1].copy()
        del text["scale_decoder_outputs"]
        config["tie_word_embeddings"] = text["tie_word_embeddings"] = False
    else:
        text["rope_theta"] = 10 * text.pop("rope_parameters")["rope_theta"]
        weights = {
            name.replace("vision_tower.", "vision_tower.vision_model."): array for name, array in weights.items()
        }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config |= {"torch_dtype": config.pop("dtype"), "transformers_version": "4.23.1"}
    (folder / "config.json").write_text(json.dumps(config))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    settings["additional_special_tokens"] = settings.pop("extra_special_tokens")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def _generation(tokenizer: Any, says: str | None) -> dict[str, Any]:
    """Generation settings by which a model always says a text, which becomes a token; None: it says nonsense, and ends soon."""
    if says is None:
        return ENDS_SOON
    tokenizer.add_tokens([says])
    token, end_of_text = tokenizer.convert_tokens_to_ids(says), tokenizer.eos_token_id
    return {"sequence_bias": [[[token], 1000.0], [[token, end_of_text], 2000.0]]}


def _ending_tokenizer() -> Any:
    """Ends a text with `</s>`, as T5's does."""
    from tokenizers.processors import TemplateProcessing

    tokenizer = _tokenizer()
    ends = [("</s>", tokenizer.eos_token_id)]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="$A </s>", special_tokens=ends)
    return tokenizer


def _t5_config(tokenizer: Any) -> Any:
    from transformers import T5Config

    return T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=16,
        d_ff=48,
        num_layers=2,
        num_heads=2,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )


def _blip2_parts(text: Any, tokenizer: Any) -> tuple[Any, Any]:
    """A Blip2Config with this T5's configuration, and its processor: a picture is 16 tokens and one, of which 4 are made."""
    from transformers import Blip2Config, Blip2Processor
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    config = Blip2Config(
        vision_config={**SHAPE, "image_size": SIDE, "patch_size": PATCH, "initializer_range": 0.02},
        qformer_config={
            **SHAPE,
            "vocab_size": 8,
            "cross_attention_frequency": 1,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        },
        text_config=text.to_dict(),
        num_query_tokens=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    side = {"height": SIDE, "width": SIDE}
    return config, Blip2Processor(BlipImageProcessorPil(size=side), tokenizer, num_query_tokens=4)


def _llava_parts(text: dict[str, Any], tokenizer: Any) -> tuple[Any, Any]:
    """A LlavaConfig with this Llama, and its processor: a picture is 16 tokens."""
    from transformers import LlavaConfig, LlavaProcessor
    from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

    vision = {
        **SHAPE,
        "model_type": "clip_vision_model",
        "image_size": SIDE,
        "patch_size": PATCH,
        "projection_dim": SHAPE["hidden_size"],
    }
    config = LlavaConfig(
        vision_config=vision,
        text_config={"model_type": "llama", **text},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=(SIDE // PATCH) ** 2,
        vision_feature_layer=-1,
    )
    side = {"height": SIDE, "width": SIDE}
    processor = LlavaProcessor(
        image_processor=LlavaImageProcessorPil(size=side, crop_size=side),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT,
    )
    return config, processor


def _text(tokenizer: Any, context: int) -> dict[str, Any]:
    special = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    return {**SHAPE, **special, "vocab_size": len(tokenizer), "max_position_embeddings": context}


def _tokenizer(more: tuple[str, ...] = ()) -> Any:
    """`more`: special tokens besides SPECIAL."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=[*SPECIAL, *more], initial_alphabet=alphabet, show_progress=False
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens=[token for token in (*SPECIAL, *more) if token.startswith(("<|", "<i"))],
    )


def _saved(
    kind: Any, config: Any, processor: Any, folder: Path, seed: int, generation: dict[str, Any] = ENDS_SOON
) -> Path:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(config)
        # as they are made, weights are so small that every prompt gets nearly the same answer
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.data.normal_(0.0, 0.3)
    for name, value in generation.items():
        setattr(model.generation_config, name, value)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
