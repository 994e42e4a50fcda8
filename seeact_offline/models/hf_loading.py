"""Opens a model of transformers and its processor. Other people's files: every fault is one sentence."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seeact_offline.files.extras import hide_broken_torchvision, install_command, torchvision_command
from seeact_offline.models import hf_folder
from seeact_offline.records import ModelSpecError

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
    """Raises ModelSpecError for an adapter without peft, for float16 where it overflows, and where a model that sees pictures has no usable
    processor or chat template, or lacks torchvision.

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
    """The chat template; None for the plain rendering of a model that has none. Raises ModelSpecError where the place of a picture
    is not known without one: BLIP-2's processor puts it first by itself."""
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
