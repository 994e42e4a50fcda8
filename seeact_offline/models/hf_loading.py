"""Opens a model of transformers and its processor, and makes prompts what they take: messages through the chat
template, pictures through the processor. Other people's files: every fault is one sentence.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.files.extras import hide_broken_torchvision, install_command, torchvision_command
from seeact_offline.models import hf_folder
from seeact_offline.models.hf_folder import first_line
from seeact_offline.records import ModelSpecError

if TYPE_CHECKING:
    from PIL import Image

DTYPES = ("auto", "float32", "bfloat16", "float16")
OVERFLOWS_IN_FLOAT16 = ("t5", "mt5", "umt5")
"""Model types whose feed-forward layers exceed the largest number of float16."""


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
    max_input_tokens: str | None = None
    """`MARKUP+REST`: most tokens of a question's page and of its rest, each cut at its end; None: nothing is cut."""


def running_dtype(loading: LoadingOptions) -> str:
    """The number format that `auto` stands for here."""
    import torch

    if loading.dtype != "auto":
        return loading.dtype
    on_gpu = torch.cuda.is_available() and loading.device_map != "cpu"
    return "bfloat16" if on_gpu else "float32"


def nf4_weights(dtype: str) -> Any:
    """transformers' option for NF4 weights, by bitsandbytes, whose products are computed in `dtype`."""
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype)


def load_model(name: str, parts: hf_folder.ModelParts, loading: LoadingOptions) -> tuple[str, Any]:
    """Its kind (image-text, causal or seq2seq) and the model, on its device."""
    import transformers

    folder = parts.folder
    spread, device = _placed(loading)
    options: dict[str, Any] = {"dtype": running_dtype(loading), "output_loading_info": True}
    if loading.load_in_4bit:
        options["quantization_config"] = nf4_weights(running_dtype(loading))
        spread = spread or {"": device}
    if spread is not None:
        options["device_map"] = spread
    with _in_one_sentence(f"hf/{name} to load as a model that generates text"):
        config = transformers.AutoConfig.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        loaders = {
            "image-text": (transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, transformers.AutoModelForImageTextToText),
            "seq2seq": (transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, transformers.AutoModelForSeq2SeqLM),
            "causal": (transformers.MODEL_FOR_CAUSAL_LM_MAPPING, transformers.AutoModelForCausalLM),
        }
        kind = next((kind for kind, (models, _) in loaders.items() if type(config) in models), None)
        if kind is None:
            wanted = "an image-text-to-text, causal or text-to-text model of transformers"
            raise ModelSpecError("model", wanted, f"hf/{name} of type {config.model_type}")
        # of a pickle, tensors alone
        options |= {
            "use_safetensors": hf_folder.has_safetensors(folder),
            "weights_only": True,
            "local_files_only": True,
        }
        model, report = loaders[kind][1].from_pretrained(str(folder), trust_remote_code=False, **options)
        if spread is None:
            model = model.to(device)
    if missing := sorted(report["missing_keys"]):
        # they were filled with random numbers, and so would be the replies
        got = f"hf/{name}, which lacks {len(missing)} of its weights, {missing[0]} first"
        raise ModelSpecError("model", "a trained model", got)
    if parts.adapter is not None:
        model = _adapted(name, model, parts.adapter, loading)
    return kind, model.eval().requires_grad_(False)


def _adapted(name: str, model: Any, adapter: Path, loading: LoadingOptions) -> Any:
    """The model with LoRA's matrices added to its weights, or beside them where those are in 4 bits."""
    with _in_one_sentence(f"hf/{name} to be an adapter of its base"), warnings.catch_warnings():
        # peft asks transformers by names that are to go
        warnings.simplefilter("ignore", FutureWarning)
        from peft import PeftConfig, PeftModel

        adapted = PeftModel(model, PeftConfig.from_pretrained(str(adapter), trust_remote_code=False))
        report = adapted.load_adapter(str(adapter), "default")
        if foreign := sorted([*report.missing_keys, *report.unexpected_keys]):
            got = f"hf/{name}, of which {len(foreign)} do not fit the base, {foreign[0]} first"
            raise ModelSpecError("model", "the matrices of an adapter", got)
        if not loading.load_in_4bit:
            adapted.merge_adapter()
        return adapted.get_base_model()


def _placed(loading: LoadingOptions) -> tuple[Any, str]:
    """The `device_map` for accelerate (None: it is not needed), or else the one device. Raises ModelSpecError."""
    import torch

    has_gpu = torch.cuda.is_available()
    if loading.device_map is None:
        return None, "cuda" if has_gpu else "cpu"
    try:
        device = torch.device(loading.device_map)
    except RuntimeError:
        _need("accelerate", "device_map", "quantised", "model_args")
        return loading.device_map, ""
    if device.type == "cuda" and not has_gpu:
        got = f"{loading.device_map}, and it sees no GPU"
        raise ModelSpecError("model_args", "a device_map that torch sees here", got)
    return None, str(device)


def check_packages(loading: LoadingOptions) -> None:
    """Raises ModelSpecError where models here, or the 4-bit weights asked for, need a package that is not installed."""
    for package in ("torch", "transformers"):
        _need(package, "hf/", "hf")
    for package in ("bitsandbytes", "accelerate") if loading.load_in_4bit else ():
        _need(package, "load_in_4bit", "quantised", "model_args")


def _need(package: str, what: str, extra: str, argument: str = "model") -> None:
    if find_spec(package) is None:
        hint = install_command(extra)
        raise ModelSpecError(argument, sentence=f"{what} needs the package {package}: run {hint}") from None


def check_parts(name: str, parts: hf_folder.ModelParts, loading: LoadingOptions) -> None:
    """Raises ModelSpecError for an adapter without peft, for float16 where it overflows, and where a model that sees
    pictures has no usable processor or chat template, or lacks torchvision.

    The processors of models of texts are not looked at: torch is loaded for the first question alone.
    """
    if parts.adapter is not None:
        _need("peft", f"hf/{name} is an adapter, which", "lora")
    config = hf_folder.settings(parts.folder, name)
    text = config.get("text_config")
    kind = (text if isinstance(text, dict) else config).get("model_type")
    if loading.dtype == "float16" and kind in OVERFLOWS_IN_FLOAT16:
        wanted = f"bfloat16 or float32 as dtype for hf/{name} of type {kind}"
        raise ModelSpecError("model_args", wanted, "float16, in which it overflows")
    if "vision_config" in config:
        with quiet():
            chat_template(name, "image-text", load_processor(name, parts.processor, "image-text"))


def load_processor(name: str, folder: Path, kind: str) -> Any:
    """A tokenizer, or for pictures the processor that has one."""
    with _in_one_sentence(f"the {'processor' if kind == 'image-text' else 'tokenizer'} of hf/{name} to load"):
        from transformers import AutoProcessor, AutoTokenizer

        loader = AutoProcessor if kind == "image-text" else AutoTokenizer
        try:
            processor = loader.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        except (ImportError, ValueError) as error:
            if "torchvision" not in str(error).lower() or find_spec("torchvision") is not None:
                raise
            needed = f"torchvision, of torch's own build: run {torchvision_command()}"
            raise ModelSpecError("model", sentence=f"the processor of hf/{name} needs {needed}") from None
    if kind == "image-text" and getattr(processor, "image_processor", None) is None:
        raise ModelSpecError("model", f"a processor of pictures in hf/{name}", type(processor).__name__)
    return processor


def chat_template(name: str, kind: str, processor: Any) -> str | None:
    """The chat template; None for the plain rendering of a model that has none. Raises ModelSpecError where the place
    of a picture is not known without one: BLIP-2's processor puts it first by itself."""
    template, sees = getattr(processor, "chat_template", None), kind == "image-text"
    if template is None and sees:
        template = processor.tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    queries = getattr(processor, "num_query_tokens", 0)
    if sees and template is None and not queries:
        wanted = f"a chat template in hf/{name}, to know where a picture goes"
        older = f"num_query_tokens in the processor of hf/{name}, as since transformers 4.46"
        raise ModelSpecError("model", older if queries is None else wanted, "none")
    return template


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


_silence = threading.Lock()
_silenced: list[tuple[int, bool]] = []
"""Verbosity and bars as they were, once for each thread that is inside `quiet`."""


@contextmanager
def quiet() -> Iterator[None]:
    """Switches off transformers' progress bars and remarks, as long as any thread is inside."""
    hide_broken_torchvision()
    from transformers.utils import logging

    with _silence:
        before = _silenced[0] if _silenced else (logging.get_verbosity(), logging.is_progress_bar_enabled())
        _silenced.append(before)
        logging.set_verbosity_error()
        logging.disable_progress_bar()
    try:
        yield
    finally:
        with _silence:
            level, bars = _silenced.pop()
            if not _silenced:
                logging.set_verbosity(level)
                if bars:
                    logging.enable_progress_bar()


# --- prompts ---


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as a chat template takes it."""

    role: str
    text: str
    picture: Image.Image | None = None
    inserted: tuple[str, ...] | None = None
    """See `Message.inserted`."""
    markup: int = 0
    """See `Message.markup`."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One conversation to be answered."""

    turns: tuple[Turn, ...]
    seed: int = 0
    """Seed of its draws, above temperature 0."""

    @property
    def pictures(self) -> list[Image.Image]:
        return [turn.picture for turn in self.turns if turn.picture is not None]


@dataclass(frozen=True, slots=True)
class EncodedPrompts:
    """Some prompts of a batch as tensors."""

    places: Sequence[int]
    """Their places in the batch."""
    inputs: Any
    """Tensors by name, padded to the longest prompt."""


class PromptEncoder:
    """Turns prompts into tensors. Its methods may be called from several threads."""

    def __init__(self, name: str, kind: str, processor: Any, loading: LoadingOptions) -> None:
        """`kind`: image-text, causal or seq2seq. Raises ModelSpecError as `chat_template`, and for a limit of tokens
        where prompts are not single texts."""
        self._limit = [int(n) for n in (loading.max_input_tokens or "").split("+") if n]
        if self._limit and kind != "seq2seq" and not hasattr(processor, "num_query_tokens"):
            wanted = "no max_input_tokens for a model that is not text-to-text; it is for T5 and BLIP-2"
            raise ModelSpecError("model_args", wanted, f"one for hf/{name}")
        self._name, self._kind, self._processor = name, kind, processor
        self._tokenizer, self._template = (
            getattr(processor, "tokenizer", processor),
            chat_template(name, kind, processor),
        )
        is_limited = loading.max_pixels is not None and limit_pixels(processor, loading.max_pixels)
        self._max_pixels = None if is_limited else loading.max_pixels
        # tokens that stand for pieces of a picture: the processor counts them, also where a text spells them
        tokens = (getattr(processor, token, None) for token in ("image_token", "video_token"))
        self._places = tuple(map(str, filter(None, tokens)))
        self._tokens = control_tokens(self._tokenizer, self._template or "", self._places)
        # a tokenizer of the package tokenizers fails where two threads use it
        self._lock = threading.Lock()

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompts]:
        """Encodes prompts with pictures apart from those without: not every processor takes both together.

        Raises ModelSpecError for pictures where the model sees none, and for messages that its template refuses.
        """
        parts = [[n for n, prompt in enumerate(prompts) if bool(prompt.pictures) == shown] for shown in (False, True)]
        return [self.encode_some(prompts, places) for places in parts if places]

    def encode_some(self, prompts: Sequence[Prompt], places: Sequence[int]) -> EncodedPrompts:
        """The prompts at these places, of which all show pictures or none does. Raises as `encode`."""
        some = [prompts[place] for place in places]
        pictures = [[fitted(picture, self._max_pixels) for picture in prompt.pictures] for prompt in some]
        if pictures[0] and self._kind != "image-text":
            raise ModelSpecError(
                "model", sentence=f"hf/{self._name} reads text alone; use `no_image`, or a model that sees pictures"
            )
        with self._lock:
            return EncodedPrompts(places, (self._cut if self._limit else self._tensors)(some, pictures))

    def _tensors(self, prompts: Sequence[Prompt], pictures: Sequence[Sequence[Image.Image]]) -> Any:
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
        return self._processor(text=texts, images=pictures if pictures[0] else None, **options)

    def _cut(self, prompts: Sequence[Prompt], pictures: Sequence[Sequence[Image.Image]]) -> Any:
        """Single texts whose markup and rest are each cut at its end, as MindAct's released code does. Raises
        ModelSpecError for conversations."""
        shown, head, rows = [picture for some in pictures for picture in some], [], []
        if shown:
            # BLIP-2's tokens of a picture come first
            token = self._tokenizer.convert_tokens_to_ids(str(self._processor.image_token))
            head = [token] * self._processor.num_query_tokens
        for prompt in prompts:
            if len(prompt.turns) != 1:
                raise ModelSpecError(
                    "model_args", "no max_input_tokens for a conversation", f"{len(prompt.turns)} messages"
                )
            turn = prompt.turns[0]
            parts = [self._defused(turn, turn.text[: turn.markup]), self._defused(turn, turn.text[turn.markup :])]
            markup, rest = self._tokenizer(parts, add_special_tokens=False)["input_ids"]
            # the token that ends a text counts as one of the rest
            most_markup, most_rest = self._limit[0], self._limit[1] - 1
            rows.append([*head, *markup[:most_markup], *rest[:most_rest], self._tokenizer.eos_token_id])
        inputs = self._tokenizer.pad({"input_ids": rows}, return_tensors="pt")
        if shown:
            inputs["pixel_values"] = self._processor.image_processor(shown, return_tensors="pt")["pixel_values"]
        return inputs

    def _defused(self, turn: Turn, text: str) -> str:
        """The turn's text, or a part of it, without control tokens that a page or a reply spells out."""
        if turn.inserted is None:
            return harmless(text, self._tokens)
        text = harmless(text, self._places)
        # the longest first, as one may be part of another
        for value in sorted(filter(None, turn.inserted), key=len, reverse=True):
            text = text.replace(harmless(value, self._places), harmless(value, self._tokens))
        return text

    def _rendered(self, turns: Sequence[Turn]) -> str:
        """Raises ModelSpecError for turns that its chat template refuses."""
        from jinja2 import TemplateError

        turns = [Turn(turn.role, self._defused(turn, turn.text), turn.picture) for turn in turns]
        if self._template is None:
            return plain(turns)
        refusal = ""
        for tried in (turns, system_merged(turns)):
            texts = [{"role": turn.role, "content": turn.text} for turn in tried]
            chat = chat_messages(tried) if self._kind == "image-text" else texts
            options = {"chat_template": self._template, "tokenize": False, "add_generation_prompt": True}
            try:
                return str(self._processor.apply_chat_template(chat, **options))
            except TemplateError as error:
                refusal = first_line(error)
        raise ModelSpecError("model", f"a chat template in hf/{self._name} that takes these messages", refusal)


# --- texts ---


def control_tokens(tokenizer: Any, template: str = "", more: Sequence[str] = ()) -> list[str]:
    """Special tokens, what else a chat template writes that is one token, and `more`; the longest first."""
    added = tokenizer.added_tokens_decoder.values()
    tokens = {*more, *(str(token.content) for token in added if token.special or token.content in template)}
    return sorted((token for token in tokens if len(token) > 1 and not token.isspace()), key=lambda t: (-len(t), t))


def harmless(text: str, tokens: Sequence[str]) -> str:
    """A page that spells out a token such as `<image>` or `<|im_end|>` says so: a space keeps it from being one."""
    # JSON rows can hold halves of surrogate pairs, which no tokenizer takes
    text = text.encode("utf-8", "replace").decode("utf-8")
    for token in tokens:
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def plain(turns: Sequence[Turn]) -> str:
    """Turns without a chat template: one alone is its text; several are named, and the last name is left to be
    answered."""
    if len(turns) == 1:
        return turns[0].text
    named = [turn.text if turn.role == "system" else f"{turn.role.capitalize()}: {turn.text}" for turn in turns]
    return "\n\n".join([*named, "Assistant:"])


def chat_messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Turns as a chat template of pictures and texts takes them: what one role says in a row is one message."""
    chat: list[dict[str, Any]] = []
    for turn in turns:
        # text, then picture, as in SeeAct's released code
        parts = [{"type": "text", "text": turn.text}, *([{"type": "image"}] if turn.picture else [])]
        if chat and chat[-1]["role"] == turn.role:
            chat[-1]["content"] += parts if turn.text else parts[1:]
        else:
            chat.append({"role": turn.role, "content": parts})
    return chat


def system_merged(turns: Sequence[Turn]) -> list[Turn]:
    """Puts the system's text in front of the user's first, for models that know no system."""
    system = "\n\n".join(turn.text for turn in turns if turn.role == "system")
    rest = [turn for turn in turns if turn.role != "system"]
    if not system or not rest:
        return rest
    return [Turn(rest[0].role, f"{system}\n\n{rest[0].text}", rest[0].picture), *rest[1:]]


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
    most, least = ("max_pixels", "min_pixels") if "max_pixels" in size else ("longest_edge", "shortest_edge")
    # the sides of a processor that takes max_pixels stand for areas
    if most not in size or "max_pixels" not in {*size, *kinds}:
        return False
    smaller = {least: min(size[least], max_pixels)} if least in size else {}
    images.size = type(images.size)(**{**size, **smaller, most: max_pixels})
    return True
