"""A model of transformers in this process: prompts in, texts out, many at once. Everything here runs in one thread.

Three kinds: image-text-to-text, text-only causal, and text-to-text (encoder and decoder, such as T5). Decoding is greedy;
above temperature 0 each prompt draws with a seed of its own, so that its text does not depend on who shares its batch.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.models import hf_folder
from seeact_offline.models.failures import truncated
from seeact_offline.records import CallError, Completion, ModelSpecError, Usage

if TYPE_CHECKING:
    from PIL import Image

DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class LoadingOptions:
    """The `model_args` of `hf/`: how a model is loaded and run."""

    batch_size: int = 8
    """Most prompts in one pass."""
    dtype: str = "auto"
    """One of DTYPES; auto: bfloat16 on a GPU, float32 without one."""
    device_map: str | None = None
    """A device (`cpu`, `cuda:1`), or how accelerate spreads the model (`auto`); None: the GPU where there is one."""
    load_in_4bit: bool = False
    """NF4 weights, by bitsandbytes."""
    max_pixels: int | None = None
    """Most pixels of a picture; None: whatever the model's own processor takes."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as a chat template takes it."""

    role: str
    text: str
    picture: Image.Image | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """One conversation to be answered."""

    turns: tuple[Turn, ...]
    seed: int = 0
    """Seed of its draws, above temperature 0."""

    @property
    def length(self) -> int:
        """Characters, a stand-in for tokens before there are any."""
        return sum(len(turn.text) for turn in self.turns)

    @property
    def pictures(self) -> list[Image.Image]:
        return [turn.picture for turn in self.turns if turn.picture is not None]


Answer = Completion | CallError
"""The outcome of a prompt: a text, or the reason for none."""


class Generator:
    """One loaded model."""

    def __init__(
        self,
        name: str,
        folder: Path,
        loading: LoadingOptions,
        max_tokens: int,
        temperature: float,
        stop: threading.Event,
    ) -> None:
        """`temperature`: 0 for greedy decoding. `stop`: once set, what is being generated ends with the next token.

        Raises ModelSpecError for what cannot be loaded.
        """
        self.batch_size = loading.batch_size
        """Halved for good when a batch did not fit in memory."""
        self._stop = stop
        self._name, self._max_tokens, self._temperature = name, max_tokens, temperature
        with _quiet():
            self._kind, self._model = _load_model(name, folder, loading)
            self._processor = _load_processor(name, folder, self._kind)
        self._tokenizer = getattr(self._processor, "tokenizer", self._processor)
        self._tokenizer.padding_side = "right" if self._model.config.is_encoder_decoder else "left"
        ends = self._model.generation_config.eos_token_id
        ends = self._tokenizer.eos_token_id if ends is None else ends
        # tokens that end a text
        self._ends = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token_id = min(self._ends, default=0)
        self._template = _template(name, self._kind, self._processor)
        self._tokens = control_tokens(self._tokenizer, self._template or "")
        self._max_pixels = loading.max_pixels
        if loading.max_pixels is not None and limit_pixels(self._processor, loading.max_pixels):
            self._max_pixels = None

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """One answer a prompt, in order. A batch that does not fit in memory is asked again in two halves, once.

        Raises ModelSpecError for pictures where the model sees none, and for messages that its template refuses.
        """
        with _quiet():
            answers = self._tried(prompts)
            if answers is None and len(prompts) > 1:
                self.batch_size = half = (len(prompts) + 1) // 2
                parts = (prompts[:half], prompts[half:])
                return [one for part in parts for one in self._tried(part) or _out_of_memory(part)]
            return answers or _out_of_memory(prompts)

    def _tried(self, prompts: Sequence[Prompt]) -> list[Answer] | None:
        """None where memory did not suffice. The error is let go of here, with the tensors that its frames hold."""
        import torch

        try:
            answers: dict[int, Answer] = {}
            # in a batch either all prompts show pictures or none does: not every processor takes both together
            for shown in (False, True):
                places = [place for place, prompt in enumerate(prompts) if bool(prompt.pictures) == shown]
                while places:
                    with torch.inference_mode():
                        found = self._pass([prompts[place] for place in places])
                    answers.update((place, one) for place, one in zip(places, found, strict=True) if one is not None)
                    places = [place for place, one in zip(places, found, strict=True) if one is None]
            return [answers[place] for place in range(len(prompts))]
        except (torch.OutOfMemoryError, MemoryError):
            pass
        except RuntimeError as error:
            # what PyTorch raises where the computer's own memory is too small
            if "DefaultCPUAllocator" not in str(error):
                raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _pass(self, prompts: Sequence[Prompt]) -> list[Answer | None]:
        """Answers at least one of the prompts; None for those to be asked again, without the ones that are done.

        No text may be longer than the tightest prompt leaves room for. One that is not at its end by then, of a prompt
        that has more room, starts again.
        """
        inputs = self._encoded(prompts)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        # tokens of prompt and reply together (of each, for an encoder and decoder); not bounded in T5
        context = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        rooms = [self._max_tokens] * len(lengths)
        if context is not None and self._model.config.is_encoder_decoder:
            rooms = [min(self._max_tokens, context - 1) if length <= context else 0 for length in lengths]
        elif context is not None:
            rooms = [min(self._max_tokens, context - length) for length in lengths]
        if min(rooms) < 1:
            said = f"tokens, the model takes {context}: nothing is cut off"
            too_long = [CallError("too_long", f"the prompt has {length} {said}") for length in lengths]
            return [error if room < 1 else None for error, room in zip(too_long, rooms, strict=True)]
        # the token that stands for a piece of a picture; -1 is no token
        token = getattr(self._model.config, "image_token_id", None)
        images = [int(n) for n in (inputs["input_ids"] == (-1 if token is None else int(token))).sum(dim=1)]
        answers: list[Answer | None] = []
        rows = self._generated(inputs, min(rooms), prompts)
        for row, length, room, image in zip(rows, lengths, rooms, images, strict=True):
            end = next((place for place, token in enumerate(row) if token in self._ends), None)
            text, ended = row[:end], end is not None
            usage = Usage(1, length, len(text) + ended, image, 0.0)
            answers.append(self._read(text, ended, room, usage) if ended or room == min(rooms) else None)
        return answers

    def _generated(self, inputs: Any, most: int, prompts: Sequence[Prompt]) -> list[list[int]]:
        """The new tokens of each prompt, at most so many; after its end a row is filled up."""
        import torch

        def is_stopped(ids: Any, scores: Any, **_: Any) -> Any:
            return torch.full((len(ids),), self._stop.is_set(), device=ids.device)

        inputs = inputs.to(self._model.device)
        if self._kind == "image-text":
            inputs = inputs.to(self._model.dtype)
        config = copy.deepcopy(self._settings)
        config.max_new_tokens = most
        if config.min_new_tokens is not None:
            config.min_new_tokens = min(config.min_new_tokens, most)
        draws = [GumbelNoise([prompt.seed for prompt in prompts], self._temperature)] if self._temperature else []
        out = self._model.generate(
            **inputs, generation_config=config, logits_processor=draws, stopping_criteria=[is_stopped]
        )
        # an encoder's prompt is not repeated, the decoder's first token is
        start = 1 if self._model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        rows: list[list[int]] = out[:, start:].tolist()
        return rows

    def _read(self, tokens: list[int], ended: bool, room: int, usage: Usage) -> Answer:
        text = self._tokenizer.decode(tokens, skip_special_tokens=True)
        if not ended:
            of_what = f"max_tokens {room}" if room == self._max_tokens else f"the {room} tokens that the model has left"
            return CallError("truncated", truncated(text, of_what), usage)
        if not text.strip():
            return CallError("empty_reply", "the model ended its reply before it said anything", usage)
        return Completion(text, usage)

    @cached_property
    def _settings(self) -> Any:
        """The model's own generation settings, without their sampling: one text, the most likely token each time."""
        config = copy.deepcopy(self._model.generation_config)
        config.update(
            do_sample=False, num_beams=1, temperature=None, top_p=None, top_k=None, max_length=None, min_p=None
        )
        config.update(
            typical_p=None, pad_token_id=self._tokenizer.pad_token_id, eos_token_id=sorted(self._ends) or None
        )
        return config

    # --- prompts ---

    def _encoded(self, prompts: Sequence[Prompt]) -> Any:
        """Tensors by name, padded to the longest prompt."""
        texts = [self._rendered(prompt.turns) for prompt in prompts]
        options: dict[str, Any] = {"padding": True, "return_tensors": "pt"}
        if self._kind != "image-text":
            # a chat template writes the special tokens itself
            return self._tokenizer(
                texts, add_special_tokens=self._template is None, return_token_type_ids=False, **options
            )
        begin = self._tokenizer.bos_token
        if begin is not None and texts[0].startswith(begin):
            options["add_special_tokens"] = False
        pictures = [[fitted(picture, self._max_pixels) for picture in prompt.pictures] for prompt in prompts]
        return self._processor(text=texts, images=pictures if pictures[0] else None, **options)

    def _rendered(self, turns: Sequence[Turn]) -> str:
        """Raises ModelSpecError for pictures where the model sees none, and for turns that its chat template refuses."""
        from jinja2 import TemplateError

        if self._kind != "image-text" and any(turn.picture for turn in turns):
            got = f"hf/{self._name}, which reads text alone"
            raise ModelSpecError("model", "one that sees pictures, or no_image so that none is shown", got)
        turns = [Turn(turn.role, harmless(turn.text, self._tokens), turn.picture) for turn in turns]
        if self._template is None:
            return plain(turns)
        try:
            return self._chat(turns)
        except TemplateError:
            merged = system_merged(turns)
        try:
            return self._chat(merged)
        except TemplateError as error:
            wanted = f"a chat template in hf/{self._name} that takes these messages"
            raise ModelSpecError("model", wanted, hf_folder.first_line(error)) from None

    def _chat(self, turns: Sequence[Turn]) -> str:
        chat: list[dict[str, Any]] = []
        for turn in turns:
            # text, then picture, as in SeeAct's released code
            parts = [{"type": "text", "text": turn.text}, *([{"type": "image"}] if turn.picture else [])]
            chat.append({"role": turn.role, "content": parts if self._kind == "image-text" else turn.text})
        text: str = self._processor.apply_chat_template(
            chat, chat_template=self._template, tokenize=False, add_generation_prompt=True
        )
        return text


# --- rendering ---


def control_tokens(tokenizer: Any, template: str = "") -> list[str]:
    """Special tokens, and what else a chat template writes that is one token; the longest first."""
    added = tokenizer.added_tokens_decoder.values()
    found = {str(token.content) for token in added if token.special or token.content in template}
    return sorted((token for token in found if len(token) > 1 and not token.isspace()), key=lambda t: (-len(t), t))


def harmless(text: str, tokens: Sequence[str]) -> str:
    """A page that spells out a token such as `<image>` or `<|im_end|>` says so: a space keeps it from being one."""
    # JSON rows can hold halves of surrogate pairs, which no tokenizer takes
    text = text.encode("utf-8", "replace").decode("utf-8")
    for token in tokens:
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def plain(turns: Sequence[Turn]) -> str:
    """Turns without a chat template: one alone is its text; several are named, and the last name is left to be answered."""
    if len(turns) == 1:
        return turns[0].text
    said = [turn.text if turn.role == "system" else f"{turn.role.capitalize()}: {turn.text}" for turn in turns]
    return "\n\n".join([*said, "Assistant:"])


def system_merged(turns: Sequence[Turn]) -> list[Turn]:
    """Puts the system's text in front of the user's first, for models that know no system."""
    told = "\n\n".join(turn.text for turn in turns if turn.role == "system")
    rest = [turn for turn in turns if turn.role != "system"]
    if not told or not rest:
        return rest
    return [Turn(rest[0].role, f"{told}\n\n{rest[0].text}", rest[0].picture), *rest[1:]]


# --- pictures ---


def fitted(picture: Image.Image, max_pixels: int | None) -> Image.Image:
    """The picture, made smaller where it has more pixels."""
    from PIL import Image

    width, height = picture.size
    if max_pixels is None or width * height <= max_pixels:
        return picture
    scale = (max_pixels / (width * height)) ** 0.5
    # a side is at least one pixel, and then the other may not use up more than all
    width, height = max(1, int(width * scale)), max(1, int(height * scale))
    return picture.resize((min(width, max_pixels), min(height, max_pixels)), Image.Resampling.LANCZOS)


def limit_pixels(processor: Any, max_pixels: int) -> bool:
    """Gives the budget to a processor that has one of its own, such as Qwen2-VL's; False where it has none."""
    images: Any = getattr(processor, "image_processor", None)
    size = dict(getattr(images, "size", None) or {})
    kinds = getattr(getattr(images, "valid_kwargs", None), "__annotations__", {})
    if "max_pixels" in size:
        most, least = "max_pixels", "min_pixels"
    elif "max_pixels" in kinds and "longest_edge" in size:
        # there, sides stand for areas
        most, least = "longest_edge", "shortest_edge"
    else:
        return False
    smaller = {least: min(size[least], max_pixels)} if least in size else {}
    images.size = type(images.size)(**{**size, **smaller, most: max_pixels})
    return True


# --- drawing ---


class GumbelNoise:
    """Adds Gumbel noise to scores at a temperature: the most likely token afterwards is one drawn at that temperature.

    Each row has a generator of its own, on the CPU, so that it draws the same in every batch and on every device.
    """

    def __init__(self, seeds: Sequence[int], temperature: float) -> None:
        import torch

        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._temperature = temperature

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        noise = torch.stack([torch.empty(scores.shape[1]).exponential_(generator=one) for one in self._generators])
        return scores.float() / self._temperature - noise.clamp_min(1e-20).log().to(scores.device)


# --- loading ---


def running_dtype(loading: LoadingOptions) -> str:
    """The number format that `auto` stands for here."""
    import torch

    if loading.dtype != "auto":
        return loading.dtype
    on_gpu = torch.cuda.is_available() and loading.device_map != "cpu"
    return "bfloat16" if on_gpu else "float32"


def _load_model(name: str, folder: Path, loading: LoadingOptions) -> tuple[str, Any]:
    """Its kind (image-text, causal or seq2seq) and the model, on its device."""
    import torch
    import transformers

    spread, device = _placed(loading, torch.cuda.is_available())
    options: dict[str, Any] = {"dtype": running_dtype(loading), "output_loading_info": True}
    if loading.load_in_4bit:
        options["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=running_dtype(loading)
        )
        spread = spread or {"": device}
    if spread is not None:
        options["device_map"] = spread
    with _in_one_sentence(f"hf/{name} to load as a model that generates text"):
        config = transformers.AutoConfig.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        loaders: dict[str, tuple[Any, Any]] = {
            "image-text": (transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, transformers.AutoModelForImageTextToText),
            "seq2seq": (transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, transformers.AutoModelForSeq2SeqLM),
            "causal": (transformers.MODEL_FOR_CAUSAL_LM_MAPPING, transformers.AutoModelForCausalLM),
        }
        kind = next((kind for kind, (models, _) in loaders.items() if type(config) in models), None)
        if kind is None:
            wanted = "an image-text-to-text, causal or text-to-text model of transformers"
            raise ModelSpecError("model", wanted, f"hf/{name} of type {config.model_type}")
        loader = loaders[kind][1]
        model, report = loader.from_pretrained(
            str(folder), use_safetensors=True, trust_remote_code=False, local_files_only=True, **options
        )
        if spread is None:
            model = model.to(device)
    missing = sorted(report["missing_keys"])
    if missing:
        # they were filled with random numbers, and so would be the replies
        got = f"hf/{name}, which lacks {len(missing)} of its weights, {missing[0]} first"
        raise ModelSpecError("model", "a trained model", got)
    return kind, model.eval().requires_grad_(False)


def _placed(loading: LoadingOptions, has_gpu: bool) -> tuple[Any, str]:
    """The `device_map` for accelerate (None: it is not needed), or else the one device. Raises ModelSpecError."""
    import torch

    if loading.device_map is None:
        return None, "cuda" if has_gpu else "cpu"
    try:
        device = torch.device(loading.device_map)
    except RuntimeError:
        if find_spec("accelerate") is None:
            raise _needs("accelerate", "device_map") from None
        return loading.device_map, ""
    if device.type == "cuda" and not has_gpu:
        raise ModelSpecError(
            "model_args", "a device_map that torch sees here", f"{loading.device_map}, and it sees no GPU"
        )
    return None, str(device)


def check_packages(loading: LoadingOptions) -> None:
    """Raises ModelSpecError where models here, or the 4-bit weights asked for, need a package that is not installed."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            got = "an installation without it: pip install 'seeact-offline[hf]'"
            raise ModelSpecError("model", f"the package {package} for hf/", got)
    for package in ("bitsandbytes", "accelerate") if loading.load_in_4bit else ():
        if find_spec(package) is None:
            raise _needs(package, "load_in_4bit")


def check_processor(name: str, folder: Path) -> None:
    """Raises ModelSpecError where the processor of a model that sees pictures cannot be loaded without torchvision.

    Only loading tells which processors need it, so nothing is loaded where it is installed.
    """
    if find_spec("torchvision") is None and "vision_config" in hf_folder.settings(folder, name):
        with _quiet():
            _load_processor(name, folder, "image-text")


def _needs(package: str, option: str) -> ModelSpecError:
    wanted = f"the package {package} for {option}, from seeact-offline[quantised]"
    return ModelSpecError("model_args", wanted, "an installation without it")


def _load_processor(name: str, folder: Path, kind: str) -> Any:
    """A tokenizer, or for pictures the processor that has one."""
    from transformers import AutoProcessor, AutoTokenizer

    loader = AutoProcessor if kind == "image-text" else AutoTokenizer
    with _in_one_sentence(f"the {'processor' if kind == 'image-text' else 'tokenizer'} of hf/{name} to load"):
        try:
            processor = loader.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        except (ImportError, ValueError) as error:
            if "torchvision" not in str(error).lower() or find_spec("torchvision") is not None:
                raise
            got = "an installation without it: pip install torchvision, of the build that torch is of"
            raise ModelSpecError("model", f"the package torchvision for the processor of hf/{name}", got) from None
    if kind == "image-text" and getattr(processor, "image_processor", None) is None:
        raise ModelSpecError("model", f"a processor of pictures in hf/{name}", type(processor).__name__)
    return processor


def _template(name: str, kind: str, processor: Any) -> str | None:
    """The chat template; None for the plain rendering of a model of texts that has none."""
    found = getattr(processor, "chat_template", None)
    if found is None and kind == "image-text":
        found = processor.tokenizer.chat_template
    if isinstance(found, dict):
        found = found.get("default")
    if found is None and kind == "image-text":
        raise ModelSpecError("model", f"a chat template in hf/{name}, to know where a picture goes", "none")
    return found


def _out_of_memory(prompts: Sequence[Prompt]) -> list[Answer]:
    detail = f"{len(prompts)} at once did not fit in memory: a smaller batch_size or max_pixels may"
    return [CallError("out_of_memory", detail) for _ in prompts]


@contextmanager
def _in_one_sentence(expected: str) -> Iterator[None]:
    """Turns everything that transformers raises inside into a ModelSpecError."""
    try:
        yield
    except ModelSpecError:
        raise
    # other people's code on other people's files: nobody has listed how it fails, and the error is raised as our own
    except Exception as error:
        raise ModelSpecError("model", expected, hf_folder.first_line(error)) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Switches off transformers' progress bars and remarks inside."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
