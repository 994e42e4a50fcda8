"""BLIP-2 with a T5 as its language part, made ready for training on multiple-choice questions with a part of the page.

Trained are the language part and the bridge (query tokens, Q-Former, projection), with LoRA matrices beside the
language part's attention alone; the vision encoder is frozen. It is the checkpoint's own (EVA ViT-g/14), not the
paper's CLIP ViT-L/14, which transformers' BLIP-2 cannot hold: CLIP's encoder norms the embeddings before its first
layer (`pre_layrnorm`), and BLIP-2's has no such layer. See docs/finetuning.md.

The folder that training leaves is one of transformers' own: `hf/` asks it as it is. Hence the positions are
interpolated once, before training, and saved.

Source: SeeAct (arXiv 2401.01614v2), section 4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seeact_offline.dataset import Split
from seeact_offline.models.hf_folder import digest
from seeact_offline.records import InputError
from seeact_offline.runs.watch import Watch
from seeact_offline.training.baseline import Baseline, FineTuning, TrainedSettings
from seeact_offline.training.bases import base_folder, build_blip2, check_model, load_model, load_part, loading_options
from seeact_offline.training.flan_t5 import IGNORED, seq2seq_trainer
from seeact_offline.training.mindact_rows import (
    CUT,
    LEARNS,
    MultiChoice,
    check_tokenizer,
    evaluation_fields,
    open_multichoice,
)
from seeact_offline.training.recipe import NEW_TOKENS
from seeact_offline.training.training_rows import Pictures, kept_pictures

TEMPLATE = (
    "{% for message in messages %}"
    "{% if messages|length > 1 and message.role != 'system' %}{{ message.role|capitalize + ': ' }}{% endif %}"
    "{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
    "{% if not loop.last %}{{ '\\n\\n' }}{% endif %}"
    "{% endfor %}"
    "{% if messages|length > 1 and add_generation_prompt %}{{ '\\n\\nAssistant:' }}{% endif %}"
)
"""One message alone is its text, as in training. The processor puts the picture's tokens before it,
so none stands here."""
SHAPED_BY = ("feed_forward_proj", "scale_decoder_outputs", "relative_attention_max_distance", "layer_norm_epsilon")
"""Settings of a T5 that its weights' shapes do not tell, by transformers' names:
a config.json with untied embeddings does not scale outputs."""


@dataclass(frozen=True, slots=True)
class Blip2:
    """A model with its processor, ready to be trained."""

    model: Any
    """A Blip2ForConditionalGeneration whose vision encoder takes no gradient."""
    processor: Any
    """A Blip2Processor that makes square pictures of `side`."""

    @property
    def side(self) -> int:
        """Pixels."""
        return int(self.model.config.vision_config.image_size)

    @property
    def picture_tokens(self) -> int:
        """Tokens of the vision encoder for a picture, before the bridge makes `num_query_tokens` of them."""
        return vision_tokens(self.side, self.model.config.vision_config.patch_size)


def vision_tokens(side: int, patch: int) -> int:
    """Tokens of a square picture: one a whole patch, and one for the class. 2,048 pixels in patches of 14: 21,317."""
    return (side // patch) ** 2 + 1


# --- opening ---


def open_blip2(
    base: str | Path, *, side: int | None = None, language: str | Path | None = None, **loading: Any
) -> Blip2:
    """The model to start from.

    `base`: a folder in the hub's format, or a hub id. `side`: pixels that pictures are brought to, both ways; None: as
    the checkpoint has it. `language`: a T5 of the same shape and tokenizer, such as a FLAN-T5 fine-tuned before, whose
    weights replace those of the language part. `loading`: options of `load_model`;
    without any it is in float32 on the CPU.

    Raises InputError (`base`, `side`, `language`).
    """
    from transformers import Blip2ForConditionalGeneration, Blip2Processor

    folder = _blip2_folder(base)
    model = load_model(Blip2ForConditionalGeneration, folder, **loading)
    processor = load_part(Blip2Processor, folder)
    _check_pictures(model, processor, base)
    if side is not None:
        _bring_to(model, processor, side)
    if language is not None:
        _take_language(model, processor, _language_folder(language), loading)
    processor.tokenizer.chat_template = TEMPLATE
    processor.tokenizer.padding_side = "right"
    # the Trainer pads answers that it generates while it evaluates; they are the language part's
    model.config.pad_token_id = processor.tokenizer.pad_token_id
    model.language_model.generation_config.max_new_tokens = NEW_TOKENS
    model.vision_model.requires_grad_(False)
    return Blip2(model, processor)


def _blip2_folder(base: object) -> Path:
    """Raises InputError for what is no BLIP-2 with a T5."""
    from transformers import AutoConfig, Blip2Config

    folder = base_folder(base)
    config = load_part(AutoConfig, folder)
    text = getattr(config, "text_config", None)
    if not isinstance(config, Blip2Config) or getattr(text, "model_type", None) != "t5":
        got = f"{base}, of type {config.model_type}" + (f" with {text.model_type}" if text is not None else "")
        raise InputError("base", "a BLIP-2 with a T5 as its language part", got)
    return folder


def _check_pictures(model: Any, processor: Any, base: str | Path) -> None:
    """Checkpoints of before transformers 4.46 do not say where a picture's tokens go."""
    queries, token = processor.num_query_tokens, model.config.image_token_index
    # the processor gives its tokenizer this token, but does not list it among those that no page may spell out
    processor.tokenizer.add_special_tokens(
        {"extra_special_tokens": [str(processor.image_token)]}, replace_extra_special_tokens=False
    )
    named = processor.tokenizer.convert_tokens_to_ids(str(processor.image_token))
    if queries != model.config.num_query_tokens or token != named:
        wanted = (
            f"num_query_tokens {model.config.num_query_tokens} and image token {named} in processor and config alike"
        )
        raise InputError("base", wanted, f"{queries} and {token} in {base}")


def _bring_to(model: Any, processor: Any, side: int) -> None:
    """Interpolates the positions of the vision encoder by its own rule, for good."""
    import torch

    config, embeddings = model.config.vision_config, model.vision_model.embeddings
    if side < config.patch_size:
        raise InputError("side", f"at least a patch, {config.patch_size} pixels", str(side))
    n_tokens = vision_tokens(side, config.patch_size)
    if n_tokens != embeddings.position_embedding.shape[1]:
        with torch.no_grad():
            wanted = torch.empty(1, n_tokens, config.hidden_size)
            positions = embeddings.interpolate_pos_encoding(wanted, side, side)
        embeddings.position_embedding = torch.nn.Parameter(positions.contiguous())
    embeddings.image_size = config.image_size = side
    embeddings.num_positions, embeddings.num_patches = n_tokens, n_tokens - 1
    processor.image_processor.size = {"height": side, "width": side}


def _language_folder(language: object) -> Path:
    """The folder of a T5. Raises InputError for another model."""
    from transformers import AutoConfig

    folder = base_folder(language, "language")
    kind = load_part(AutoConfig, folder, "language").model_type
    if kind != "t5":
        raise InputError("language", "a T5", f"{folder}, of type {kind}")
    return folder


def _take_language(model: Any, processor: Any, folder: Path, loading: Mapping[str, Any]) -> None:
    from transformers import AutoConfig, AutoTokenizer, T5ForConditionalGeneration

    config, own = load_part(AutoConfig, folder, "language"), model.config.text_config
    for name in SHAPED_BY:
        wanted, got = getattr(own, name, None), getattr(config, name, None)
        if got != wanted:
            raise InputError("language", f"{name} {wanted}, as in the base", f"{got} in {folder}")
    vocabulary = processor.tokenizer.get_vocab()
    tokens = load_part(AutoTokenizer, folder, "language").get_vocab()
    foreign = next((token for token in sorted(tokens) if vocabulary.get(token) != tokens[token]), None)
    if foreign is not None:
        raise InputError("language", "the tokenizer of the base", f"{folder}, which has {foreign!r} at another place")
    taken = load_model(T5ForConditionalGeneration, folder, "language", **loading)
    if config.vocab_size < own.vocab_size:
        _add_rows(taken, model.language_model)
    weights = taken.state_dict()
    for name, old in model.language_model.state_dict().items():
        shape = tuple(weights[name].shape) if name in weights else None
        if shape != tuple(old.shape):
            raise InputError("language", f"{name} of shape {tuple(old.shape)}, as in the base", f"{shape} in {folder}")
    # not its state: weights in 4 bits cannot be copied
    model.language_model = taken


def _add_rows(taken: Any, own: Any) -> None:
    """Gives a T5 the base's rows of tokens that it lacks, such as that of a picture."""
    import torch

    n_tokens = taken.config.vocab_size
    taken.resize_token_embeddings(own.config.vocab_size, mean_resizing=False)
    with torch.no_grad():
        for part in ("get_input_embeddings", "get_output_embeddings"):
            getattr(taken, part)().weight[n_tokens:] = getattr(own, part)().weight[n_tokens:]


# --- batches ---


@dataclass(frozen=True, slots=True)
class Collator:
    """Rows -> the model's inputs: tokens padded on the right, the picture's before the question's, and pixels.

    A token for a token what the processor makes of the same text and picture, and so what `hf/` asks.
    """

    processor: Any
    pictures: Pictures

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Collates rows of `MultiChoice` with pictures. Raises RowError `bad_screenshot`."""
        import torch

        tokenizer = self.processor.tokenizer
        shown = tokenizer.convert_tokens_to_ids([str(self.processor.image_token)]) * self.processor.num_query_tokens
        asked = tokenizer.pad({"input_ids": [shown + row["input_ids"] for row in rows]}, return_tensors="pt")
        longest = max(len(row["labels"]) for row in rows)
        labels = [row["labels"] + [IGNORED] * (longest - len(row["labels"])) for row in rows]
        pixels = self.processor.image_processor([self.pictures.of_row(row) for row in rows], return_tensors="pt")
        return {
            "input_ids": asked["input_ids"],
            "attention_mask": asked["attention_mask"],
            "pixel_values": pixels["pixel_values"],
            "labels": torch.tensor(labels),
        }


# --- the baseline ---


class Blip2Tuning:
    """A BLIP-2 ready to be trained."""

    def __init__(self, asked: FineTuning, split: Split) -> None:
        """Raises InputError for a base that is not a BLIP-2 with a T5, or that lacks weights, and PromptError."""
        from transformers import Blip2ForConditionalGeneration, T5ForConditionalGeneration

        self._asked, self._split, self._language = asked, split, asked.own.get("language")
        self._questions = open_multichoice(asked, split)
        # weights are not read yet, as they may be many
        folder = _blip2_folder(asked.resolved_base)
        check_model(Blip2ForConditionalGeneration, folder, attention=asked.running.attention)
        if self._language is not None:
            check_model(T5ForConditionalGeneration, _language_folder(self._language), "language")
        self._opened = _open(asked)
        check_tokenizer(self._opened.processor.tokenizer)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "base": digest(base_folder(self._asked.resolved_base)),
            "side": self._opened.side,
            "language": None if self._language is None else digest(base_folder(self._language, "language")),
            "prompts_digest": self._questions.pack.digest,
        }

    @property
    def settings(self) -> TrainedSettings:
        side, size = self._opened.side, self._opened.processor.image_processor.size
        return TrainedSettings(
            base_folder(self._asked.resolved_base),
            "" if self._asked.own.get("side") or self._language else str(self._asked.resolved_base),
            config={"vision_config": {"image_size": side}},
            pictures={"size": {"height": size["height"], "width": size["width"]}},
            chat_template=TEMPLATE,
        )

    def maker(self, held_out: frozenset[str], watch: Watch) -> MultiChoice:
        side, tokens = self._opened.side, self._opened.picture_tokens
        watch.note(f"a picture of {side} x {side} pixels is {tokens:,} tokens of the vision encoder")
        return dataclasses.replace(
            self._questions,
            tokenizer=self._opened.processor.tokenizer,
            held_out=held_out,
            pictures=kept_pictures(self._split, self._asked.out, self._asked.processes),
        )

    def trainer(self, maker: MultiChoice, table: Any) -> Any:
        model, processor = self._opened.model, self._opened.processor
        assert maker.pictures is not None
        collator = Collator(processor, Pictures(maker.pictures))
        return seq2seq_trainer(model, processor, collator, table, self._asked)


def _evaluation(asked: FineTuning) -> dict[str, Any]:
    """Fields of `EvalConfig` with which the trained model is asked."""
    how = evaluation_fields(asked)
    # JPEG would change the pixels that were trained on
    return {**how, "grounding_options": {**how["grounding_options"], "group_picture": True}, "image_format": "png"}


def _open(asked: FineTuning) -> Blip2:
    own = {name: asked.own.get(name) for name in ("side", "language")}
    return open_blip2(str(asked.resolved_base), **own, **loading_options(asked))


BASELINE = Baseline(
    title="BLIP-2 baseline",
    base="Salesforce/blip2-flan-t5-xl",
    open=Blip2Tuning,
    load=lambda asked: _open(asked).model,
    evaluation=_evaluation,
    small=build_blip2,
    learns=LEARNS.replace("choose", "look at a part of a page, choose"),
    limits=CUT,
    tag="image-text-to-text",
    own=("side", "language"),
    remarks=(
        "Its vision encoder is the base's own, frozen. It is not the paper's CLIP ViT-L/14, which transformers' BLIP-2"
        " cannot hold: figures are not the paper's for that reason too.",
        "Where the recipe is not told otherwise, it is MindAct's for FLAN-T5, as none is published for BLIP-2.",
    ),
)
