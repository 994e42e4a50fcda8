"""Reads a checkpoint's files with distrust, because anyone may have written them.

transformers gets checked settings and tensors and never looks for them in the folder itself, so it finds no code,
kernels, adapters or further files there. Weights are safetensors, or pickles of tensors alone: the published ranker has
no others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ranker.errors import RankerError

MAX_SHOWN = 200
"""Characters of a file's contents that a sentence quotes."""

SETTINGS_FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "*.model",
)
VOCABULARY_FILES = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
SAFE_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")
PICKLED_WEIGHTS = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
WHOLE_OR_PART = re.compile(r"(model|pytorch_model)(-\d+-of-\d+)?\.(safetensors|bin)")
"""Names of the files that hold weights: all of them, or one of several parts."""

MAX_SETTINGS_BYTES = 4 * 2**20
"""Size limit of config.json and tokenizer_config.json: real ones have some thousand bytes, and with ten thousand labels
under a million."""
MAX_LAYERS = 4096
"""Limit of any setting with layer, depth or block in its name: the deepest real models have some 130, their blocks 2048
tokens."""
MAX_NUMBER = 2**30
"""Limit of any other whole number: real ones reach ten million positions, and 10**9 as the base of rotary
embeddings."""
MAX_LABELS = 10_000
"""A ranker has one or two labels."""
MAX_MODULES = 5_000
"""Modules in a model: DeBERTa-v3-large has some 500."""
NUMBERS_A_BYTE = 4
"""Most numbers that a model may have per byte of its weights: real weights take at least one byte each, and a shared
embedding is counted up to three times."""
EXTRA_NUMBERS = 2**22
"""Numbers (16 MB) that need not be in the weights: the head of a base that has none yet, masks, position tables."""

IGNORED = ("auto_map", "transformers_weights", "configuration_files")
"""Settings that name code or further files: none is looked for."""
REFUSED = re.compile(r"_implementation(_internal)?$|_config$")
"""Names of settings that choose another forward pass (a kernel of the hub is code), quantized weights or a model in the
model."""
SAFE_FORWARDS = (None, "eager", "sdpa", "batched_mm", "grouped_mm")
"""transformers' own ways of computing."""
TOKENIZER_FILES = ("fast_tokenizer_files", "gguf_file", "init_inputs", "merges", "merges_file", "vocab", "vocab_file")
"""Tokenizer settings that make transformers read other files than those above."""


class Settings(msgspec.Struct):
    """The entries of a config.json that are read here; the others are left to transformers."""

    model_type: str | None = None
    architectures: list[str] | None = None
    pair_order: str | None = None
    text_form: str | None = None
    """Form of the texts; not plain in checkpoints of an unreleased version: trained on texts that are no longer
    made."""
    shared_words: bool | None = None
    """True in the same checkpoints: trained with token types that are no longer made."""
    id2label: Annotated[dict[int, str | int | float | None], Meta(min_length=1, max_length=MAX_LABELS)] | None = None
    num_labels: Annotated[int, Meta(ge=1, le=MAX_LABELS)] | None = None


def read_settings(folder: Path, model: str | Path) -> tuple[Settings, dict[str, Any]]:
    """The entries of config.json that are read here, and those for transformers. Raises RankerError."""
    content = _read_json(folder / "config.json", model)
    try:
        settings = msgspec.convert(content, Settings, str_keys=True)
        _check_values("config.json", content)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise RankerError("model", f"a well-formed config.json of {model}", first_line(error)) from error
    if settings.shared_words or settings.text_form not in (None, "plain"):
        raise RankerError(
            "model",
            "a checkpoint trained on the published texts",
            f"{model}, trained on others that are no longer made (text_form or shared_words in its config.json): "
            "train it again",
        )
    return settings, {name: value for name, value in content.items() if name not in IGNORED}


def read_weights(folder: Path, model: str | Path) -> dict[str, Any]:
    """The tensors by name. Raises RankerError."""
    import torch
    from safetensors.torch import load_file

    files = [path for path in weight_files(folder) if WHOLE_OR_PART.fullmatch(path.name)]
    whole = [path for path in files if "-of-" not in path.name]
    if not files:
        raise RankerError("model", f"weights in {model} (model.safetensors or pytorch_model.bin)", "none")
    tensors: dict[str, Any] = {}
    with one_sentence(f"{model} to load as a sequence classifier"):
        for path in whole or files:
            safe = path.suffix == ".safetensors"
            content = load_file(path) if safe else torch.load(path, map_location="cpu", weights_only=True)
            if not isinstance(content, Mapping) or not all(
                isinstance(tensor, torch.Tensor) for tensor in content.values()
            ):
                raise RankerError("model", f"tensors by name in {path.name} of {model}", type(content).__name__)
            if tensors.keys() & content.keys():
                raise RankerError("model", f"each weight of {model} in one file", f"some in two, {path.name} last")
            tensors.update(content)
    return tensors


def check_size(kind: Any, config: Any, folder: Path, model: str | Path) -> None:
    """Refuses a model that is larger than its weights can fill, before it takes memory. `kind`: transformers' class."""
    import torch
    from torch.nn.modules.module import register_module_module_registration_hook

    parts = count(1)

    def count_part(owner: Any, name: str, part: Any) -> None:
        if next(parts) > MAX_MODULES:
            wanted = f"the config.json of {model} to ask for a model of at most {MAX_MODULES:,} parts"
            raise RankerError("model", wanted, "more")

    handle = register_module_module_registration_hook(count_part)
    try:
        with one_sentence(f"{model} to load as a sequence classifier"), torch.device("meta"):
            shape = kind(config)
    finally:
        handle.remove()
    limit = NUMBERS_A_BYTE * sum(path.stat().st_size for path in weight_files(folder)) + EXTRA_NUMBERS
    numbers = sum(tensor.numel() for tensor in chain(shape.parameters(), shape.buffers()))
    if numbers > limit:
        wanted = f"the config.json of {model} to ask for no larger model than its weights can fill"
        raise RankerError("model", wanted, f"{numbers:,} numbers, more than {limit:,}")


def check_tokenizer(folder: Path, model: str | Path) -> None:
    """Refuses a tokenizer whose settings name files, or a class that is not one of transformers' tokenizers."""
    from transformers import PreTrainedTokenizerBase
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name
    from transformers.utils import DummyObject

    for file in ("tokenizer_config.json", "config.json"):
        content = _read_json(folder / file, model) if (folder / file).exists() else {}
        for key in TOKENIZER_FILES if file == "tokenizer_config.json" else ():
            if content.get(key):
                wanted = f"the {file} of {model} to name no other files to load, which are never read"
                raise RankerError("model", wanted, key)
        name = content.get("tokenizer_class") or ""
        if not isinstance(name, str):
            raise RankerError("model", f"a name as tokenizer_class in the {file} of {model}", shown(repr(name)))
        # transformers tries each of them, and would open any class that it knows by such a name
        for tried in (name, name.removesuffix("Fast"), f"{name}Fast") if name else ():
            with one_sentence(f"the tokenizer of {model} to load"):
                kind = tokenizer_class_from_name(tried)
            # a stand-in for a class whose package is missing says so itself, and opens nothing
            if kind is None or isinstance(kind, DummyObject):
                continue
            if not isinstance(kind, type) or not issubclass(kind, PreTrainedTokenizerBase):
                wanted = f"a tokenizer of transformers as tokenizer_class of {model}"
                raise RankerError("model", wanted, shown(repr(name)))


def weight_files(folder: Path) -> list[Path]:
    """The files that the digest covers: safetensors and their index, or pickles if there are no others."""
    return matching(folder, SAFE_WEIGHTS) or matching(folder, PICKLED_WEIGHTS)


def matching(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The folder's files of these patterns, sorted."""
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})


@contextmanager
def one_sentence(expected: str) -> Iterator[None]:
    """Turns whatever transformers raises inside into a RankerError that says what was expected."""
    try:
        yield
    except RankerError:
        raise
    # Everything: other people's code on other people's files fails in ways that nobody has listed, and the error is raised
    # as our own. A panic of the tokenizers library is not even an Exception.
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise RankerError("model", expected, f"{type(error).__name__}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """The first line of an error's message, for a sentence."""
    return shown(next(iter(str(error).strip().splitlines()), "no reason given").rstrip(".:"))


def shown(text: str) -> str:
    """A file's contents for a sentence: shortened, and without characters that a terminal obeys."""
    text = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _read_json(path: Path, model: str | Path) -> dict[str, Any]:
    try:
        # Not a pipe or a device: reading it might never end.
        if not path.is_file():
            raise FileNotFoundError("no such file")
        if path.stat().st_size > MAX_SETTINGS_BYTES:
            raise ValueError(f"expected at most {MAX_SETTINGS_BYTES:,} bytes, found {path.stat().st_size:,}")
        content = json.loads(path.read_text("utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"expected an object, found a {type(content).__name__}")
    except (OSError, ValueError, RecursionError) as error:
        got = f"{type(error).__name__}: {first_line(error)}"
        raise RankerError("model", f"a readable {path.name} in {model}", got) from error
    return content


def _check_values(key: str, value: object) -> None:
    """Raises ValueError for a huge number, or a setting that leads elsewhere, however deep; values in a list have its
    name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_values(name, inner)
    elif isinstance(value, list):
        for inner in value:
            _check_values(key, inner)
    elif isinstance(value, int):
        limit = MAX_LAYERS if re.search("layer|depth|block", key) else MAX_NUMBER
        if abs(value) > limit:
            raise ValueError(f"{key} of {value}, more than {limit:,}")
    if REFUSED.search(key) and value is not None and not (isinstance(value, str) and value in SAFE_FORWARDS):
        raise ValueError(f"{key} {value!r}, which leads to other code, weights or settings")
