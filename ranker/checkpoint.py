"""A checkpoint folder or hub id -> a sequence classifier and its tokenizer, checked before anything is scored."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

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


def open_checkpoint(model: str | Path, device: str | None, dtype: str, pair_order: PairOrder | None) -> Checkpoint:
    """Load and check a checkpoint; RankerError in one sentence where it cannot score pairs."""
    folder = find_folder(model)
    settings = _read_settings(folder, model)
    where = _choose_device(device)
    loaded = _load_model(folder, model, _choose_dtype(dtype, where, str(settings.get("model_type")), model))
    tokenizer = _load_tokenizer(folder, model)
    return Checkpoint(
        name=str(model),
        digest=folder_digest(folder),
        model=loaded.to(where),
        tokenizer=tokenizer,
        pair_order=_choose_pair_order(pair_order, settings, model),
        positive=positive_label(loaded.config, model),
        max_tokens=_max_tokens(tokenizer, loaded.config),
    )


def find_folder(model: str | Path) -> Path:
    """The folder given, or the local snapshot of a hub id: downloaded at first use, found offline after that."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if isinstance(model, Path) or model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise RankerError(f"model: expected a checkpoint folder or a hub id OWNER/NAME, and {model} is no folder")
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
    stated = getattr(config, "positive_label", None)
    if stated is not None:
        return _stated_label(stated, labels, model)
    named = [column for column, label in labels.items() if label.lower() in POSITIVE_NAMES]
    if len(named) != 1:
        raise RankerError(
            f"positive_label: {model} has {len(labels)} labels ({', '.join(labels.values())}) and does not say which "
            'one is positive: add "positive_label" (name or number) to its config.json'
        )
    return named[0]


def _stated_label(stated: object, labels: dict[int, str], model: str | Path) -> int:
    columns = [column for column, label in labels.items() if stated in (column, label)]
    if len(columns) != 1 or isinstance(stated, bool):
        raise RankerError(
            f"positive_label: expected one of {', '.join(labels.values())} or a number under {len(labels)}, "
            f"found {stated!r} in the config.json of {model}"
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


def _read_settings(folder: Path, model: str | Path) -> dict[str, Any]:
    """config.json, once it names a sequence classifier or nothing at all (then the weights decide)."""
    try:
        settings = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RankerError(
            f"model: expected a readable config.json in {model} ({type(error).__name__}: {_first_line(error)})"
        ) from error
    names = (settings.get("architectures") or []) if isinstance(settings, dict) else ["no JSON object"]
    if names and not any(str(name).endswith("ForSequenceClassification") for name in names):
        raise RankerError(f"model: expected a sequence classifier, {model} is {', '.join(map(str, names))}")
    return dict(settings)


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


def _choose_pair_order(stated: str | None, settings: dict[str, Any], model: str | Path) -> PairOrder:
    """The argument, else the checkpoint's config, else (query, text), the order of the published evaluation."""
    for order in get_args(PairOrder):
        if order == (stated or settings.get("pair_order") or "query-text"):
            return order  # type: ignore[no-any-return]
    raise RankerError(
        f"pair_order: expected query-text or text-query for {model}, got {stated or settings['pair_order']!r}"
    )


def _load_model(folder: Path, model: str | Path, dtype: str) -> Any:
    from safetensors import SafetensorError
    from transformers import AutoModelForSequenceClassification

    if not weight_files(folder):
        raise RankerError(f"model: {model} has no weights (model.safetensors or pytorch_model.bin)")
    try:
        with _quiet():
            loaded, report = AutoModelForSequenceClassification.from_pretrained(
                str(folder),
                local_files_only=True,
                dtype=dtype,
                use_safetensors=bool(_matching(folder, SAFE_WEIGHTS)),
                weights_only=True,  # a pickle may hold tensors and nothing that runs
                output_loading_info=True,
            )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError, pickle.UnpicklingError) as error:
        raise RankerError(
            f"model: {model} cannot be loaded as a sequence classifier ({type(error).__name__}: {_first_line(error)})"
        ) from error
    # What is missing was filled with random numbers: it would score, and mean nothing.
    missing = sorted(report["missing_keys"])
    if missing:
        raise RankerError(
            f"model: expected a trained sequence classifier, {model} lacks {len(missing)} of its weights, {missing[0]} first"
        )
    return loaded.eval().requires_grad_(False)


def _load_tokenizer(folder: Path, model: str | Path) -> Any:
    from transformers import AutoTokenizer

    # Without any, transformers makes up a tokenizer that knows its special tokens only.
    if not _matching(folder, VOCABULARY_FILES):
        raise RankerError(f"model: {model} has no tokenizer ({', '.join(VOCABULARY_FILES)})")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, ImportError) as error:
        raise RankerError(
            f"model: the tokenizer of {model} cannot be loaded ({type(error).__name__}: {_first_line(error)})"
        ) from error
    if tokenizer.pad_token_id is None:
        raise RankerError(f"model: the tokenizer of {model} names no padding token, so pairs cannot share a batch")
    return tokenizer


def _max_tokens(tokenizer: Any, config: Any) -> int:
    positions = getattr(config, "max_position_embeddings", None) or MAX_TOKENS
    return int(min(tokenizer.model_max_length, positions, MAX_TOKENS))


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "no reason given").rstrip(".:")


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
