"""A checkpoint folder or hub id -> a sequence classifier and its tokenizer, checked before anything is scored.

A checkpoint may come from anyone. What its files say is checked first, by type and size; code of its own is never run, and
no file is read but those that the digest covers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from ranker.errors import RankerError

PairOrder = Literal["query-text", "text-query"]

MAX_TOKENS = 512
"""No pair is longer, whatever the model could take: the published ranker was trained and run at 512."""

DTYPES = {
    "float32": "float32",
    "fp32": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
}
"""What may be asked for -> torch's name."""

MIXED = "mixed"
"""Not a number format: float32 weights, used in bfloat16 first."""

OVERFLOWS_IN_FP16 = ("deberta", "deberta-v2")
"""Model types whose attention gives NaN in fp16 (DeBERTa-v3 is of type deberta-v2)."""

MAX_SHOWN = 200
"""Characters of a file's contents in a sentence."""

POSITIVE_NAMES = ("positive", "relevant", "match", "yes", "true")
"""Names of a label that say by themselves that the pair belongs together."""

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
"""Files that make transformers load other weights than those above, or more."""

MAX_SETTINGS_BYTES = 4 * 2**20
"""Of config.json and of tokenizer_config.json: real ones have some thousand, and with ten thousand labels under a million."""

MAX_LAYERS = 4096
"""Of any setting with layer, depth or block in its name: the deepest real models have some 130, their blocks 2048 tokens."""

MAX_LABELS = 10_000
"""A ranker has one label or two."""

MAX_NUMBER = 2**30
"""Of any other whole number: real ones reach ten million positions, and 10**9 as the base of rotary ones."""

MAX_MODULES = 50_000
"""Parts that a model is made of: DeBERTa-v3-large has some 500, mixtures of experts up to 30,000."""

NUMBERS_A_BYTE = 4
"""A model has no more numbers than these for each byte of its weights: real weights take one byte or more each, and an
embedding that is shared is counted up to three times."""

EXTRA_NUMBERS = 2**22
"""So many numbers (16 MB) need not be in the weights: the head of a base that has none yet, masks, position tables."""

SAFE_FORWARDS = (None, "eager", "sdpa", "batched_mm", "grouped_mm")
"""Ways of computing that are transformers' own; by other names it may fetch and run code from the hub."""

OTHER_FILES = ("fast_tokenizer_files", "gguf_file", "init_inputs", "merges", "merges_file", "vocab")
"""Settings of a tokenizer that make transformers read other files than those above."""

TRIAL = ("alpha one", "two beta gamma")
"""A pair of texts to try a checkpoint with."""

Count = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True)
class Checkpoint:
    """A classifier ready to score pairs."""

    name: str
    """The folder or hub id, as given."""
    digest: str
    """sha256 of the names and contents of the files that decide a score, in hex."""
    model: Any
    """transformers' model, in evaluation mode, on its device."""
    tokenizer: Any
    """transformers' tokenizer."""
    pair_order: PairOrder
    """Which of the two texts comes first."""
    positive: int
    """Column of the logits that speaks for the pair."""
    max_tokens: int
    """Longest pair, special tokens included."""


class Settings(msgspec.Struct):
    """Those entries of a config.json that are read here, or that anyone would get wrong in one; the others are transformers'."""

    model_type: str | None = None
    architectures: list[str] | None = None
    auto_map: dict[str, Any] | None = None
    tokenizer_class: str | None = None
    pair_order: str | None = None
    text_form: str | None = None
    shared_words: bool | None = None
    id2label: Annotated[dict[int, str | int | float | None], Meta(min_length=1, max_length=MAX_LABELS)] | None = None
    num_labels: Count | None = None
    hidden_size: Count | None = None
    num_hidden_layers: Count | None = None
    num_attention_heads: Count | None = None
    vocab_size: Count | None = None
    type_vocab_size: Annotated[int, Meta(ge=0)] | None = None
    max_position_embeddings: Annotated[int, Meta(ge=0)] | None = None


class TokenizerSettings(msgspec.Struct):
    """Those entries of a tokenizer_config.json, or of the config.json beside it, that decide which tokenizer it is."""

    model_type: str | None = None
    auto_map: Any = None
    tokenizer_class: str | None = None
    model_max_length: int | float | None = None


class WeightIndex(msgspec.Struct):
    """Which file holds which weight."""

    weight_map: dict[str, str]


Record = TypeVar("Record", bound=msgspec.Struct)


def open_checkpoint(model: str | Path, device: str | None, dtype: str, pair_order: PairOrder | None) -> Checkpoint:
    """Load and check a checkpoint; RankerError in one sentence where it cannot score pairs."""
    folder = find_folder(model)
    settings = _read_settings(folder, model)
    _refuse_other_kinds(settings, model)
    where = _choose_device(device)
    loaded = _load_classifier(folder, model, _choose_dtype(dtype, where, str(settings.model_type), model))
    tokenizer = _load_tokenizer(folder, model)
    if tokenizer.pad_token_id is None:
        raise RankerError(f"model: the tokenizer of {model} names no padding token, so pairs cannot share a batch")
    positive = positive_label(loaded.config, model)
    _try_out(loaded.to(where), tokenizer, positive, model)
    return Checkpoint(
        name=str(model),
        digest=folder_digest(folder),
        model=loaded,
        tokenizer=tokenizer,
        pair_order=_choose_pair_order(pair_order, settings, model),
        positive=positive,
        max_tokens=_max_tokens(tokenizer, loaded.config, model),
    )


def open_base(base: str | Path) -> tuple[Any, Any]:
    """A model with one label to train from, in float32, and its tokenizer; RankerError where a folder or hub id has none."""
    folder = Path(base).expanduser()
    folder = folder if folder.is_dir() else _snapshot(str(base))
    _read_settings(folder, base)
    # The head is new where the base has none, or one for other labels.
    model, _ = _load_model(folder, base, "float32", num_labels=1, ignore_mismatched_sizes=True)
    return model, _load_tokenizer(folder, base)


def open_tokenizer(name: str) -> Any:
    """The tokenizer of a folder or hub id, of whatever model; RankerError where there is none."""
    # First, so that a missing package is an ImportError.
    from transformers import AutoTokenizer

    here = Path(name).is_dir()
    _check_tokenizer(Path(name) if here else _download(name, ["config.json", "tokenizer_config.json"]), name)
    with _one_sentence(f"the tokenizer of {name} cannot be loaded"):
        return AutoTokenizer.from_pretrained(name, trust_remote_code=False, local_files_only=here)


def find_folder(model: str | Path) -> Path:
    """The folder given, or the local snapshot of a hub id: downloaded at first use, found offline after that."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if isinstance(model, Path) or model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise RankerError(f"model: expected a checkpoint folder or a hub id OWNER/NAME, and {model} is no folder")
    return _snapshot(model)


def _snapshot(model: str) -> Path:
    snapshot = _download(model, [*SETTINGS_FILES, *SAFE_WEIGHTS])
    return snapshot if _matching(snapshot, SAFE_WEIGHTS) else _download(model, [*SETTINGS_FILES, *PICKLED_WEIGHTS])


def folder_digest(folder: Path) -> str:
    """sha256 over the weights, config and tokenizer files; a card, a log or an optimizer beside them changes nothing."""
    digest = hashlib.sha256()
    for path in [*_matching(folder, SETTINGS_FILES), *weight_files(folder)]:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.name}\0{content}\n".encode())
    return digest.hexdigest()


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights: safetensors, or pickles where there are no others."""
    return _matching(folder, SAFE_WEIGHTS) or _matching(folder, PICKLED_WEIGHTS)


def positive_label(config: Any, model: str | Path) -> int:
    """Column of the logit that speaks for a pair: the only one, the one stated, or the one whose name says so."""
    labels = {int(column): str(label) for column, label in config.id2label.items()}
    if len(labels) == 1:
        return 0
    names = _shown(", ".join(labels.values()))
    if sorted(labels) != list(range(len(labels))):
        raise RankerError(
            f"model: expected id2label to number its labels from 0 in the config.json of {model}, found {names}"
        )
    stated = getattr(config, "positive_label", None)
    if stated is not None:
        return _stated_label(stated, labels, model)
    named = [column for column, label in labels.items() if label.lower() in POSITIVE_NAMES]
    if len(named) != 1:
        raise RankerError(
            f"positive_label: {model} has {len(labels)} labels ({names}) and does not say which "
            'one is positive: add "positive_label" (name or number) to its config.json'
        )
    return named[0]


def _stated_label(stated: object, labels: dict[int, str], model: str | Path) -> int:
    columns = [column for column, label in labels.items() if stated in (column, label)]
    if len(columns) != 1 or isinstance(stated, bool):
        raise RankerError(
            f"positive_label: expected one of {_shown(', '.join(labels.values()))} or a number under {len(labels)}, "
            f"found {_shown(repr(stated))} in the config.json of {model}"
        )
    return columns[0]


def _matching(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})


def _download(model: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(snapshot_download(model, allow_patterns=patterns, ignore_patterns=["*/*"]))
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise RankerError(
            f"model: {model} is no folder here and could not be had from the hub ({type(error).__name__}: {_first_line(error)})"
        ) from error


def _read_settings(folder: Path, model: str | Path) -> Settings:
    """config.json, once nothing in it is malformed, huge, or makes transformers run or read what is not in the checkpoint."""
    content = _read_json(folder / "config.json", model)
    for key, value in _entries(content):
        _refuse_huge(key, value, model)
        _refuse_elsewhere(key, value, model)
    settings = _as_record(content, Settings, "config.json", model)
    _refuse_own_code(settings, model)
    return settings


def _read_json(path: Path, model: str | Path) -> Any:
    try:
        # Not a pipe or a device, which would be read for ever.
        if not path.is_file():
            raise FileNotFoundError("no such file")
        if path.stat().st_size > MAX_SETTINGS_BYTES:
            raise ValueError(f"expected at most {MAX_SETTINGS_BYTES:,} bytes, found {path.stat().st_size:,}")
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RankerError(
            f"model: expected a readable {path.name} in {model} ({type(error).__name__}: {_first_line(error)})"
        ) from error


def _as_record(content: object, kind: type[Record], file: str, model: str | Path) -> Record:
    try:
        return msgspec.convert(content, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise RankerError(f"model: the {file} of {model} is malformed: {_first_line(error)}") from error


def _entries(content: object) -> Iterator[tuple[str, object]]:
    """Every value in an object, however deep, with the name of its entry; that of a list for what is in it."""
    rest = [("config.json", content)]
    while rest:
        key, value = rest.pop()
        yield key, value
        if isinstance(value, dict):
            rest.extend((str(name), inner) for name, inner in value.items())
        elif isinstance(value, list):
            rest.extend((key, inner) for inner in value)


def _refuse_huge(key: str, value: object, model: str | Path) -> None:
    # Most are below the least of the limits.
    if not isinstance(value, int) or abs(value) <= MAX_LAYERS:
        return
    limit = MAX_NUMBER
    if key == "num_labels":
        limit = MAX_LABELS
    elif re.search("layer|depth|block", key):
        limit = MAX_LAYERS
    if abs(value) > limit:
        raise RankerError(
            f"model: expected at most {limit:,} as {_shown(key)} in the config.json of {model}, found {_shown(str(value))}"
        )


def _refuse_elsewhere(key: str, value: object, model: str | Path) -> None:
    """Nothing that leads transformers to other files, or to code that is neither its own nor this project's."""
    if key.endswith(("attn_implementation", "experts_implementation")) and value not in SAFE_FORWARDS:
        raise RankerError(
            f"model: expected {key} to be eager or sdpa in the config.json of {model}, found {_shown(repr(value))}"
        )
    if key in ("configuration_files", "transformers_weights") and value is not None:
        raise RankerError(f"model: the config.json of {model} names other files to load ({key}), which are never read")
    if key == "quantization_config" and value is not None:
        raise RankerError(f"model: expected weights that are not quantized, {model} has a quantization_config")


def _refuse_own_code(settings: Settings, model: str | Path) -> None:
    """A known kind with an `auto_map` is loaded by transformers' own class; others would need the code that it names."""
    if not settings.auto_map:
        return
    from transformers import CONFIG_MAPPING, MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

    kind = settings.model_type
    if kind not in CONFIG_MAPPING or CONFIG_MAPPING[kind] not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise _own_code("config.json", model)


def _own_code(file: str, model: str | Path) -> RankerError:
    return RankerError(f"model: {model} asks for code of its own (auto_map in its {file}), which is never run")


def _refuse_other_kinds(settings: Settings, model: str | Path) -> None:
    """config.json names a sequence classifier, or nothing at all (then the weights decide)."""
    names = settings.architectures or []
    if names and not any(name.endswith("ForSequenceClassification") for name in names):
        raise RankerError(f"model: expected a sequence classifier, {model} is {_shown(', '.join(names))}")


def _choose_device(device: str | None) -> str:
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.split(":")[0] == "cuda" and not torch.cuda.is_available():
        raise RankerError(f"device: {device} was asked for, and torch sees no CUDA device here")
    return device


def _choose_dtype(dtype: str, device: str, model_type: str, model: str | Path) -> str:
    if dtype == "auto":
        return "bfloat16" if device.startswith("cuda") else "float32"
    if dtype == MIXED:
        return "float32"
    if dtype not in DTYPES:
        raise RankerError(f"dtype: expected one of auto, {MIXED}, {', '.join(DTYPES)}, got {dtype!r}")
    if DTYPES[dtype] == "float16" and model_type in OVERFLOWS_IN_FP16:
        raise RankerError(
            f"dtype: {model} is of type {model_type}, which gives NaN in float16: use bfloat16 or float32"
        )
    return DTYPES[dtype]


def _choose_pair_order(stated: str | None, settings: Settings, model: str | Path) -> PairOrder:
    """The argument, else the checkpoint's config, else (query, text), the order of the published evaluation."""
    found = stated or settings.pair_order or "query-text"
    for order in get_args(PairOrder):
        if order == found:
            return order  # type: ignore[no-any-return]
    raise RankerError(f"pair_order: expected query-text or text-query for {model}, got {_shown(repr(found))}")


def _load_classifier(folder: Path, model: str | Path, dtype: str) -> Any:
    loaded, missing = _load_model(folder, model, dtype)
    # What is missing was filled with random numbers: it would score, and mean nothing.
    if missing:
        raise RankerError(
            f"model: expected a trained sequence classifier, {model} lacks {len(missing)} of its weights, {missing[0]} first"
        )
    return loaded.eval().requires_grad_(False)


def _load_model(folder: Path, model: str | Path, dtype: str, **changes: Any) -> tuple[Any, list[str]]:
    """The model, and the names of the weights that its files lack. `changes`: what `from_pretrained` is told besides."""
    from transformers import AutoModelForSequenceClassification

    _check_weights(folder, model)
    with _one_sentence(f"{model} cannot be loaded as a sequence classifier"), _quiet(), _bounded(folder, model):
        loaded, report = AutoModelForSequenceClassification.from_pretrained(
            str(folder),
            trust_remote_code=False,
            local_files_only=True,
            dtype=dtype,
            use_safetensors=bool(_matching(folder, SAFE_WEIGHTS)),
            weights_only=True,  # a pickle may hold tensors and nothing that runs
            output_loading_info=True,
            **changes,
        )
    return loaded, sorted(report["missing_keys"])


def _check_weights(folder: Path, model: str | Path) -> None:
    """There are weights, in files of the names that the digest covers, and no others that transformers would load."""
    files = weight_files(folder)
    if not files:
        raise RankerError(f"model: {model} has no weights (model.safetensors or pytorch_model.bin)")
    for path in _matching(folder, OTHER_WEIGHTS):
        raise RankerError(f"model: expected weights in {files[0].name} alone, {model} holds {path.name} beside it")
    for index in files:
        whole = index.with_name(index.name.removesuffix(".index.json"))
        # Where there is the whole in one file, the index is not read.
        if whole == index or whole.is_file():
            continue
        for name in _index_files(index, model) - {path.name for path in files}:
            raise RankerError(
                f"model: expected {index.name} to name files beside it, that of {model} names {_shown(repr(name))}"
            )


def _index_files(index: Path, model: str | Path) -> set[str]:
    try:
        return set(msgspec.json.decode(index.read_bytes(), type=WeightIndex).weight_map.values())
    except (msgspec.DecodeError, OSError, RecursionError, UnicodeDecodeError) as error:
        raise RankerError(f"model: the {index.name} of {model} is malformed: {_first_line(error)}") from error


@contextmanager
def _bounded(folder: Path, model: str | Path) -> Iterator[None]:
    """A model that is made in here is refused while it has no memory yet, once it is larger than its weights can fill."""
    from torch.nn.modules import module as hooks

    limit = NUMBERS_A_BYTE * sum(path.stat().st_size for path in weight_files(folder)) + EXTRA_NUMBERS
    # By owner and name, as a tensor gets its place twice: when it is made, and when it is filled.
    sizes: dict[tuple[int, str], int] = {}
    n_modules = n_numbers = 0

    def count_tensor(owner: Any, name: str, tensor: Any) -> None:
        nonlocal n_numbers
        size = 0 if tensor is None else tensor.numel()
        n_numbers += size - sizes.get((id(owner), name), 0)
        sizes[id(owner), name] = size
        if n_numbers > limit:
            raise RankerError(f"model: the config.json of {model} asks for a larger model than its weights can fill")

    def count_module(owner: Any, name: str, part: Any) -> None:
        nonlocal n_modules
        n_modules += 1
        if n_modules > MAX_MODULES:
            raise RankerError(f"model: the config.json of {model} asks for a model of more than {MAX_MODULES:,} parts")

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


def _load_tokenizer(folder: Path, model: str | Path) -> Any:
    from transformers import AutoTokenizer

    # Without any, transformers makes up a tokenizer that knows its special tokens only.
    if not _matching(folder, VOCABULARY_FILES):
        raise RankerError(f"model: {model} has no tokenizer ({', '.join(VOCABULARY_FILES)})")
    _check_tokenizer(folder, model)
    with _one_sentence(f"the tokenizer of {model} cannot be loaded"), _quiet():
        tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        # Some faults show at the first texts only.
        tokenizer(*TRIAL, return_token_type_ids=True)
    return tokenizer


def _try_out(loaded: Any, tokenizer: Any, positive: int, model: str | Path) -> None:
    """Scores one short pair: some settings are read at the first pair only, and must fail here rather than there."""
    import torch

    with _one_sentence(f"{model} cannot score a pair"), torch.inference_mode():
        # None where a model hashes its characters.
        n_rows = getattr(loaded.config.get_text_config(), "vocab_size", None)
        n_known = max(tokenizer.get_vocab().values()) + 1
        if n_rows is not None and n_known > n_rows:
            raise RankerError(
                f"model: expected a tokenizer of at most {n_rows} tokens, as many as {model} has embeddings, found {n_known}"
            )
        ids = torch.tensor([tokenizer(*TRIAL)["input_ids"]], device=loaded.device)
        loaded(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, positive].item()


def _check_tokenizer(folder: Path, model: str | Path) -> None:
    """The settings of a tokenizer name one of transformers', and no files of their own."""
    content = _read_json(folder / "tokenizer_config.json", model) if (folder / "tokenizer_config.json").exists() else {}
    settings = _as_record(content, TokenizerSettings, "tokenizer_config.json", model)
    for key in OTHER_FILES:
        if content.get(key):
            raise RankerError(
                f"model: the tokenizer_config.json of {model} names other files to load ({key}), which are never read"
            )
    config = _read_json(folder / "config.json", model) if (folder / "config.json").exists() else {}
    kind = _as_record(config, TokenizerSettings, "config.json", model)
    known = _is_tokenizer(settings.tokenizer_class, model) or _is_tokenizer(kind.tokenizer_class, model)
    if settings.auto_map and not known and not _has_tokenizer(kind.model_type):
        raise _own_code("tokenizer_config.json", model)


def _is_tokenizer(name: str | None, model: str | Path) -> bool:
    """Whether transformers has a tokenizer of that name. Of what else it has, it would load a model by that name instead."""
    from transformers import PreTrainedTokenizerBase
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name
    from transformers.utils import DummyObject

    if not name:
        return False
    # The names that are tried in turn.
    names = (name, name.removesuffix("Fast"), f"{name}Fast")
    with _one_sentence(f"the tokenizer of {model} cannot be loaded"):
        found = [tokenizer_class_from_name(tried) for tried in names]
    # What stands in for a class whose package is missing says so itself, and opens nothing.
    classes = [one for one in found if one is not None and not isinstance(one, DummyObject)]
    if not all(isinstance(one, type) and issubclass(one, PreTrainedTokenizerBase) for one in classes):
        raise RankerError(
            f"model: expected a tokenizer of transformers as tokenizer_class of {model}, found {_shown(repr(name))}"
        )
    return any(one is not None for one in found)


def _has_tokenizer(kind: str | None) -> bool:
    from transformers import CONFIG_MAPPING, TOKENIZER_MAPPING

    return kind in CONFIG_MAPPING and CONFIG_MAPPING[kind] in TOKENIZER_MAPPING


def _max_tokens(tokenizer: Any, config: Any, model: str | Path) -> int:
    positions = getattr(config, "max_position_embeddings", None) or MAX_TOKENS
    longest = min(tokenizer.model_max_length, positions, MAX_TOKENS)
    # Not <, which lets NaN through.
    if not longest >= 1:
        raise RankerError(f"model: expected a positive model_max_length in the tokenizer of {model}, found {longest}")
    return int(longest)


def _first_line(error: BaseException) -> str:
    return _shown(next(iter(str(error).strip().splitlines()), "no reason given").rstrip(".:"))


def _shown(text: str) -> str:
    """What a file holds, for a sentence: not too long, and without characters that a terminal obeys."""
    text = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


@contextmanager
def _one_sentence(problem: str) -> Iterator[None]:
    """Whatever transformers raises in here becomes a RankerError that begins with the problem."""
    try:
        yield
    except RankerError:
        raise
    # Everything: this is other people's code on other people's files, it fails in ways that nobody has listed, and nothing
    # is kept back. A panic of the tokenizers library is not even an Exception.
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise RankerError(f"model: {problem} ({type(error).__name__}: {_first_line(error)})") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bar and no report of missing weights from transformers: what matters of it becomes an error here."""
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
