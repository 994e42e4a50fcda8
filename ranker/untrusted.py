"""Reads a checkpoint's files with distrust, because anyone may have written them.

What the files say is checked by type and size before transformers sees them: anything that would run code, read a file outside
the folder, or fill the memory is refused in one sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

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
OTHER_WEIGHTS = ("adapter_config.json", "shard-*.safetensors")
"""Files that make transformers load other weights than those above, or additional ones."""

MAX_SETTINGS_BYTES = 4 * 2**20
"""For config.json and tokenizer_config.json: real ones have some thousand bytes, and with ten thousand labels under a million."""

MAX_LAYERS = 4096
"""For any setting with layer, depth or block in its name: the deepest real models have some 130, their blocks 2048 tokens."""

MAX_LABELS = 10_000
"""A ranker has one or two labels."""

MAX_NUMBER = 2**30
"""For any other whole number: real ones reach ten million positions, and 10**9 as the base of rotary embeddings."""

MAX_MODULES = 50_000
"""Modules in a model: DeBERTa-v3-large has some 500, mixtures of experts up to 30,000."""

NUMBERS_A_BYTE = 4
"""Most numbers that a model may have per byte of its weights: real weights take at least one byte each, and a shared
embedding is counted up to three times."""

EXTRA_NUMBERS = 2**22
"""Numbers (16 MB) that need not be in the weights: the head of a base that has none yet, masks, position tables."""

SAFE_FORWARDS = (None, "eager", "sdpa", "batched_mm", "grouped_mm")
"""transformers' own ways of computing; for any other name it may fetch and run code from the hub."""

OTHER_FILES = ("fast_tokenizer_files", "gguf_file", "init_inputs", "merges", "merges_file", "vocab")
"""Tokenizer settings that make transformers read other files than those above."""

Count = Annotated[int, Meta(ge=1)]


class Settings(msgspec.Struct):
    """The entries of a config.json that are read here, or that people may get wrong; the others are left to transformers."""

    model_type: str | None = None
    architectures: list[str] | None = None
    auto_map: dict[str, Any] | None = None
    tokenizer_class: str | None = None
    pair_order: str | None = None
    text_form: str | None = None
    """Not plain in checkpoints of an unreleased version: trained on texts that are no longer made."""
    shared_words: bool | None = None
    """True in the same checkpoints: trained with token types that are no longer made."""
    id2label: Annotated[dict[int, str | int | float | None], Meta(min_length=1, max_length=MAX_LABELS)] | None = None
    num_labels: Count | None = None
    hidden_size: Count | None = None
    num_hidden_layers: Count | None = None
    num_attention_heads: Count | None = None
    vocab_size: Count | None = None
    type_vocab_size: Annotated[int, Meta(ge=0)] | None = None
    max_position_embeddings: Annotated[int, Meta(ge=0)] | None = None


class TokenizerSettings(msgspec.Struct):
    """The entries of a tokenizer_config.json, or of the config.json beside it, that decide which tokenizer it is."""

    model_type: str | None = None
    auto_map: Any = None
    tokenizer_class: str | None = None
    model_max_length: int | float | None = None


class WeightIndex(msgspec.Struct):
    """Which file holds which weight."""

    weight_map: dict[str, str]


Record = TypeVar("Record", bound=msgspec.Struct)


def read_settings(folder: Path, model: str | Path) -> Settings:
    """config.json, if nothing in it is malformed, huge, or makes transformers run or read what is not in the checkpoint."""
    content = _read_json(folder / "config.json", model)
    for key, value in _entries(content):
        _refuse_huge(key, value, model)
        _refuse_elsewhere(key, value, model)
    settings = _as_record(content, Settings, "config.json", model)
    _refuse_own_code(settings, model)
    _refuse_other_texts(settings, model)
    return settings


def check_weights(folder: Path, model: str | Path) -> None:
    """Checks that there are weights, in files whose names the digest covers, and no others that transformers would load."""
    files = weight_files(folder)
    if not files:
        raise RankerError("model", f"weights in {model} (model.safetensors or pytorch_model.bin)", "none")
    for path in matching(folder, OTHER_WEIGHTS):
        raise RankerError("model", f"weights of {model} in {files[0].name} alone", f"{path.name} beside it")
    for index in files:
        whole = index.with_name(index.name.removesuffix(".index.json"))
        # If all weights are in one file too, the index is not read.
        if whole == index or whole.is_file():
            continue
        for name in _index_files(index, model) - {path.name for path in files}:
            raise RankerError("model", f"{index.name} of {model} to name files beside it", shown(repr(name)))


def check_tokenizer(folder: Path, model: str | Path) -> None:
    """Checks that a tokenizer's settings name one of transformers' tokenizers, and no files of their own."""
    content = _read_json(folder / "tokenizer_config.json", model) if (folder / "tokenizer_config.json").exists() else {}
    settings = _as_record(content, TokenizerSettings, "tokenizer_config.json", model)
    for key in OTHER_FILES:
        if content.get(key):
            raise _other_files("tokenizer_config.json", model, key)
    config = _read_json(folder / "config.json", model) if (folder / "config.json").exists() else {}
    kind = _as_record(config, TokenizerSettings, "config.json", model)
    known = _is_tokenizer(settings.tokenizer_class, model) or _is_tokenizer(kind.tokenizer_class, model)
    if settings.auto_map and not known and not _has_tokenizer(kind.model_type):
        raise _own_code("tokenizer_config.json", model)


@contextmanager
def bounded(folder: Path, model: str | Path) -> Iterator[None]:
    """Refuses a model that is made inside, before it takes memory, as soon as it is larger than its weights can fill."""
    from torch.nn.modules import module as hooks

    limit = NUMBERS_A_BYTE * sum(path.stat().st_size for path in weight_files(folder)) + EXTRA_NUMBERS
    # By owner and name, because a tensor is registered twice: when it is made, and when it is filled.
    sizes: dict[tuple[int, str], int] = {}
    n_modules = n_numbers = 0

    def count_tensor(owner: Any, name: str, tensor: Any) -> None:
        nonlocal n_numbers
        size = 0 if tensor is None else tensor.numel()
        n_numbers += size - sizes.get((id(owner), name), 0)
        sizes[id(owner), name] = size
        if n_numbers > limit:
            wanted = f"the config.json of {model} to ask for no larger model than its weights can fill"
            raise RankerError("model", wanted, f"more than {limit:,} numbers")

    def count_module(owner: Any, name: str, part: Any) -> None:
        nonlocal n_modules
        n_modules += 1
        if n_modules > MAX_MODULES:
            wanted = f"the config.json of {model} to ask for a model of at most {MAX_MODULES:,} parts"
            raise RankerError("model", wanted, "more")

    handles = [
        hooks.register_module_parameter_registration_hook(count_tensor),
        hooks.register_module_buffer_registration_hook(count_tensor),
        hooks.register_module_module_registration_hook(count_module),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights: safetensors, or pickles if there are no others."""
    return matching(folder, SAFE_WEIGHTS) or matching(folder, PICKLED_WEIGHTS)


def matching(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
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
    return shown(next(iter(str(error).strip().splitlines()), "no reason given").rstrip(".:"))


def shown(text: str) -> str:
    """A file's contents for a sentence: shortened, and without characters that a terminal obeys."""
    text = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _read_json(path: Path, model: str | Path) -> Any:
    try:
        # Not a pipe or a device: reading it might never end.
        if not path.is_file():
            raise FileNotFoundError("no such file")
        if path.stat().st_size > MAX_SETTINGS_BYTES:
            raise ValueError(f"expected at most {MAX_SETTINGS_BYTES:,} bytes, found {path.stat().st_size:,}")
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        found = f"{type(error).__name__}: {first_line(error)}"
        raise RankerError("model", f"a readable {path.name} in {model}", found) from error


def _as_record(content: object, kind: type[Record], file: str, model: str | Path) -> Record:
    try:
        return msgspec.convert(content, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise _malformed(file, model, error) from error


def _entries(content: object) -> Iterator[tuple[str, object]]:
    """Every value in an object, however deep, with the name of its entry; values in a list have the list's name."""
    rest = [("config.json", content)]
    while rest:
        key, value = rest.pop()
        yield key, value
        if isinstance(value, dict):
            rest.extend((str(name), inner) for name, inner in value.items())
        elif isinstance(value, list):
            rest.extend((key, inner) for inner in value)


def _refuse_huge(key: str, value: object, model: str | Path) -> None:
    # Most numbers are below the smallest limit.
    if not isinstance(value, int) or abs(value) <= MAX_LAYERS:
        return
    limit = MAX_NUMBER
    if key == "num_labels":
        limit = MAX_LABELS
    elif re.search("layer|depth|block", key):
        limit = MAX_LAYERS
    if abs(value) > limit:
        wanted = f"at most {limit:,} as {shown(key)} in the config.json of {model}"
        raise RankerError("model", wanted, shown(str(value)))


def _refuse_elsewhere(key: str, value: object, model: str | Path) -> None:
    """Refuses settings that lead transformers to other files, or to code that is neither its own nor this project's."""
    if key.endswith(("attn_implementation", "experts_implementation")) and value not in SAFE_FORWARDS:
        wanted = f"{shown(key)} to be eager or sdpa in the config.json of {model}"
        raise RankerError("model", wanted, shown(repr(value)))
    if key in ("configuration_files", "transformers_weights") and value is not None:
        raise _other_files("config.json", model, key)
    if key == "quantization_config" and value is not None:
        raise RankerError("model", f"weights of {model} that are not quantized", "a quantization_config")


def _refuse_own_code(settings: Settings, model: str | Path) -> None:
    """A known kind with an `auto_map` is loaded by transformers' own class; any other would need the code that it names."""
    if not settings.auto_map:
        return
    from transformers import CONFIG_MAPPING, MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

    kind = settings.model_type
    if kind not in CONFIG_MAPPING or CONFIG_MAPPING[kind] not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise _own_code("config.json", model)


def _refuse_other_texts(settings: Settings, model: str | Path) -> None:
    if settings.shared_words or settings.text_form not in (None, "plain"):
        raise RankerError(
            "model",
            "a checkpoint trained on the published texts",
            f"{model}, trained on others that are no longer made (text_form or shared_words in its config.json): "
            "train it again",
        )


def _own_code(file: str, model: str | Path) -> RankerError:
    return RankerError("model", f"{model} to need no code of its own, which is never run", f"auto_map in its {file}")


def _other_files(file: str, model: str | Path, key: str) -> RankerError:
    return RankerError("model", f"the {file} of {model} to name no other files to load, which are never read", key)


def _malformed(file: str, model: str | Path, error: Exception) -> RankerError:
    return RankerError("model", f"a well-formed {file} of {model}", f"a malformed one: {first_line(error)}")


def _index_files(index: Path, model: str | Path) -> set[str]:
    try:
        return set(msgspec.json.decode(index.read_bytes(), type=WeightIndex).weight_map.values())
    except (msgspec.DecodeError, OSError, RecursionError, UnicodeDecodeError) as error:
        raise _malformed(index.name, model, error) from error


def _is_tokenizer(name: str | None, model: str | Path) -> bool:
    """Whether transformers has a tokenizer of that name. If it has something else of that name, it would load that as a model."""
    from transformers import PreTrainedTokenizerBase
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name
    from transformers.utils import DummyObject

    if not name:
        return False
    # The names that are tried in turn.
    names = (name, name.removesuffix("Fast"), f"{name}Fast")
    with one_sentence(f"the tokenizer of {model} to load"):
        found = [tokenizer_class_from_name(tried) for tried in names]
    # A stand-in for a class whose package is missing says so itself, and opens nothing.
    classes = [one for one in found if one is not None and not isinstance(one, DummyObject)]
    if not all(isinstance(one, type) and issubclass(one, PreTrainedTokenizerBase) for one in classes):
        wanted = f"a tokenizer of transformers as tokenizer_class of {model}"
        raise RankerError("model", wanted, shown(repr(name)))
    return any(one is not None for one in found)


def _has_tokenizer(kind: str | None) -> bool:
    from transformers import CONFIG_MAPPING, TOKENIZER_MAPPING

    return kind in CONFIG_MAPPING and CONFIG_MAPPING[kind] in TOKENIZER_MAPPING
