"""Bases of a training: other people's files, whose every fault is one sentence, or a small model with random weights.

Small models are of transformers' own classes, with a tokenizer learnt from the training questions, to be trained from
scratch on a laptop. Those that see look at pictures of PICTURE_SIDE pixels, whatever a picture's proportions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from seeact_offline.models.hf_folder import INDEX, find_folder, first_line, has_safetensors
from seeact_offline.models.hf_loading import LoadingOptions, nf4_weights, quiet, running_dtype
from seeact_offline.records import InputError, ModelSpecError
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.recipe import SmallBase

SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
IMAGE = "<image>"
"""The token in whose places a picture's vectors go."""
PICTURE_SIDE = 32
PATCH = 8
CHAT = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""The chat template of a small LLaVA."""
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CONTEXT = 32_768
"""Tokens of a small LLaVA's longest prompt."""
SPREAD = 0.15
"""Standard deviation of its weights. LoRA trains neither embeddings nor scores of tokens:
with the usual 0.02 no token could stand out."""


# --- other people's ---


def base_folder(name: object, argument: str = "base") -> Path:
    """The folder of a folder's name or hub id. Raises InputError for `argument`."""
    try:
        return find_folder(str(name))
    except ModelSpecError as error:
        raise error.renamed(argument) from None


def load_part(kind: Any, folder: Path, argument: str = "base", **options: Any) -> Any:
    """Opens the folder by a class of transformers. Raises InputError."""
    # transformers takes weights in place of a folder
    source = None if "state_dict" in options else str(folder)
    try:
        with quiet():
            return kind.from_pretrained(source, trust_remote_code=False, local_files_only=True, **options)
    # transformers on other people's files: nobody has listed how it fails, and the error is raised as our own
    except Exception as error:
        raise InputError(argument, f"a {kind.__name__} in {folder}", first_line(error)) from error


def check_model(kind: Any, folder: Path, argument: str = "base", *, attention: str | None = None) -> None:
    """Raises InputError where weights are missing or cut short, or where the model has no such attention. Of
    safetensors the headers alone are read.

    `kind`: a class of transformers that opens the folder.
    """
    import torch
    from transformers import AutoConfig

    # on the device `meta` tensors have shapes and no numbers, so this is quick for a model of any size
    options: dict[str, Any] = {"device_map": "meta", "weights_only": True, "output_loading_info": True}
    if has_safetensors(folder):
        shapes = _shapes(folder, argument)
        weights = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
        options |= {"state_dict": weights, "config": load_part(AutoConfig, folder, argument)}
    model, report = load_part(kind, folder, argument, **options)
    _check_whole(report, folder, argument)
    if attention is not None:
        try:
            with quiet(), torch.device("meta"):
                type(model)._from_config(model.config, attn_implementation=attention)
        # as `load_part`
        except (ImportError, ValueError) as error:
            got = f"{attention} ({first_line(error)})"
            raise InputError("attention", f"one that a {type(model).__name__} has", got) from None


def _shapes(folder: Path, argument: str) -> dict[str, list[int]]:
    """The shape of each tensor, by the headers of the folder's safetensors. Raises InputError for a file that is
    shorter than its header says, and for a tensor that is not in the file where the index has it."""
    # transformers, too, takes the single file where there are both
    single, index = folder / "model.safetensors", folder / INDEX
    homes = {} if single.is_file() else json.loads(index.read_text("utf-8"))["weight_map"]
    shapes: dict[str, list[int]] = {}
    for path in [folder / name for name in sorted(set(homes.values()))] or [single]:
        try:
            with safe_open(path, "numpy") as file:
                shapes |= {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise InputError(argument, "a whole model", f"{path}, which is cut short ({first_line(error)})") from None
        lacking = next((name for name, home in homes.items() if home == path.name and name not in shapes), None)
        if lacking is not None:
            raise InputError(argument, "a whole model", f"{path}, which lacks {lacking}, named in {INDEX}")
    return shapes


def loading_options(asked: FineTuning) -> dict[str, Any]:
    """Options of `load_model` for the model to train: in float32,
    with LoRA as `hf/` runs it (bfloat16 on a GPU), quantised in 4 bits."""
    recipe = asked.resolved_recipe
    dtype = "float32" if recipe.lora is None else running_dtype(LoadingOptions())
    options: dict[str, Any] = {"dtype": dtype}
    if asked.running.attention is not None:
        options["attn_implementation"] = asked.running.attention
    if recipe.quantised:
        # bitsandbytes quantises on the GPU that it is loaded to: this process's
        options["device_map"] = {"": int(os.environ.get("LOCAL_RANK", "0"))}
        options["quantization_config"] = nf4_weights(dtype)
    return options


def load_model(kind: Any, folder: Path, argument: str = "base", **options: Any) -> Any:
    """Opens a model with all its weights; missing ones would be random numbers. `options`: of `from_pretrained`;
    float32 unless they say otherwise. Raises InputError."""
    whole = {"use_safetensors": has_safetensors(folder), "weights_only": True, "output_loading_info": True}
    model, report = load_part(kind, folder, argument, **{"dtype": "float32", **options, **whole})
    _check_whole(report, folder, argument)
    return model


def _check_whole(report: Mapping[str, Any], folder: Path, argument: str) -> None:
    missing = sorted(report["missing_keys"])
    if missing:
        got = f"{folder}, which lacks {len(missing)} of its weights, {missing[0]} first"
        raise InputError(argument, "a whole model", got)


# --- small models: each with its tokenizer or processor; weights are random numbers from torch's generator ---


def build_t5(shape: SmallBase, tokenizer: Any) -> tuple[Any, Any]:
    """A T5ForConditionalGeneration."""
    from transformers import T5ForConditionalGeneration

    return T5ForConditionalGeneration(_t5_config(shape, tokenizer)), tokenizer


def build_blip2(shape: SmallBase, tokenizer: Any) -> tuple[Any, Any]:
    """A Blip2ForConditionalGeneration: a picture is 16 tokens and one, of which 4 are made."""
    from transformers import Blip2Config, Blip2ForConditionalGeneration, Blip2Processor
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    tokenizer.add_special_tokens({"extra_special_tokens": [IMAGE]})
    bridge = {"vocab_size": 8, "cross_attention_frequency": 1}
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = Blip2Config(
        vision_config={**shape.layers, "image_size": PICTURE_SIDE, "patch_size": PATCH, "initializer_range": 0.02},
        qformer_config={**shape.layers, **bridge, **no_dropout},
        text_config=_t5_config(shape, tokenizer).to_dict(),
        num_query_tokens=4,
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
    )
    pictures = BlipImageProcessorPil(size={"height": PICTURE_SIDE, "width": PICTURE_SIDE})
    return Blip2ForConditionalGeneration(config), Blip2Processor(pictures, tokenizer, num_query_tokens=4)


def build_llava(shape: SmallBase, tokenizer: Any) -> tuple[Any, Any]:
    """A LlavaForConditionalGeneration: a picture is 16 tokens."""
    from tokenizers.processors import TemplateProcessing
    from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

    tokenizer.add_special_tokens({"extra_special_tokens": [IMAGE, *ROLES]})
    # the template ends a turn; a prompt has no end
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="$A")
    text = {
        "model_type": "llama",
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "max_position_embeddings": CONTEXT,
        "initializer_range": SPREAD,
    }
    vision = {"model_type": "clip_vision_model", "image_size": PICTURE_SIDE, "patch_size": PATCH}
    config = LlavaConfig(
        vision_config={**shape.layers, **vision, "projection_dim": shape.d_model},
        text_config={**shape.layers, **text},
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
    return LlavaForConditionalGeneration(config), processor


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
