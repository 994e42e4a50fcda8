"""A checkpoint folder or hub id -> a sequence classifier and its tokenizer, checked before anything is scored.

A checkpoint may come from anyone, so `ranker.untrusted` reads its files. Its own code is never run, and no file is read
that the digest does not cover.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ranker.errors import RankerError
from ranker.untrusted import (
    PICKLED_WEIGHTS,
    SAFE_WEIGHTS,
    SETTINGS_FILES,
    VOCABULARY_FILES,
    check_size,
    check_tokenizer,
    first_line,
    matching,
    one_sentence,
    read_settings,
    read_weights,
    shown,
    weight_files,
)

PairOrder = Literal["query-text", "text-query"]

MAX_TOKENS = 512
"""Longest pair, even if the model takes longer ones: the published ranker was trained and run at 512."""

DTYPES = {
    "float32": "float32",
    "fp32": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
}
"""Number formats that a user may ask for -> torch's name."""

MIXED = "mixed"
"""A choice that is no number format: float32 weights, first used in bfloat16."""

OVERFLOWS_IN_FP16 = ("deberta", "deberta-v2")
"""Model types whose attention gives NaN in fp16 (DeBERTa-v3 has the type deberta-v2)."""

POSITIVE_NAMES = ("positive", "relevant", "match", "yes", "true")
"""Names of labels for a pair that belongs together."""

MIN_TEXT_TOKENS = 8
"""A query that leaves fewer tokens than this for the text is refused."""

TRIAL = ("alpha one", "two beta gamma")
"""A pair of texts to try a checkpoint with."""


@dataclass(frozen=True)
class Checkpoint:
    """A classifier ready to score pairs."""

    name: str
    """The folder or hub id, as given."""
    digest: str
    """SHA-256 of the names and contents of the files that decide a score, in hex."""
    model: Any
    """transformers' model, in evaluation mode, on its device."""
    tokenizer: Any
    """transformers' tokenizer."""
    pair_order: PairOrder
    """The text that comes first."""
    positive: int
    """Column of the logits that is high for a matching pair."""
    max_tokens: int
    """Longest pair, including special tokens."""


def open_checkpoint(model: str | Path, device: str | None, dtype: str, pair_order: PairOrder | None) -> Checkpoint:
    """Loads and checks a checkpoint. Raises RankerError, in one sentence, if it cannot score pairs."""
    folder = find_folder(model)
    settings, content = read_settings(folder, model)
    names = settings.architectures or []
    if names and not any(name.endswith("ForSequenceClassification") for name in names):
        raise RankerError("model", "a sequence classifier", f"{model}, which is {shown(', '.join(names))}")
    where = _choose_device(device)
    order = pair_order or settings.pair_order or "query-text"
    if order not in get_args(PairOrder):
        raise RankerError("pair_order", f"query-text or text-query as pair_order of {model}", shown(repr(order)))
    chosen = _choose_dtype(dtype, where, str(settings.model_type), model)
    loaded, missing = _load_model(folder, model, content, chosen)
    # Missing weights were filled with random numbers: the scores would mean nothing.
    if missing:
        got = f"{model}, which lacks {len(missing)} of its weights, {missing[0]} first"
        raise RankerError("model", "a trained sequence classifier", got)
    tokenizer = _load_tokenizer(folder, model)
    if tokenizer.pad_token_id is None:
        wanted = f"a padding token in the tokenizer of {model}, so that pairs can share a batch"
        raise RankerError("model", wanted, "none")
    positive = positive_label(loaded.config, model)
    _try_out(loaded.eval().requires_grad_(False).to(where), tokenizer, positive, model)
    return Checkpoint(
        name=str(model),
        digest=folder_digest(folder),
        model=loaded,
        tokenizer=tokenizer,
        pair_order=cast(PairOrder, order),
        positive=positive,
        max_tokens=_max_tokens(tokenizer, loaded.config, model),
    )


def open_base(base: str | Path) -> tuple[Any, Any]:
    """A model with one label to train from, in float32, and its tokenizer. Raises RankerError if there is none."""
    folder = find_folder(base)
    _, content = read_settings(folder, base)
    # The head is new if the base has none, or one for other labels.
    model, _ = _load_model(folder, base, content, "float32", num_labels=1)
    return model, _load_tokenizer(folder, base)


def open_tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder, of any kind of model. Raises RankerError if there is none."""
    # First, so that a missing package is an ImportError.
    from transformers import AutoTokenizer

    check_tokenizer(folder, folder)
    with one_sentence(f"the tokenizer of {folder} to load"):
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)


def find_folder(model: str | Path) -> Path:
    """The given folder, or that of the hub's OWNER/NAME or OWNER/NAME@REVISION, by the hub's own client."""
    folder = Path(os.path.expanduser(model))
    if folder.is_dir():
        return folder
    if isinstance(model, Path) or model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise RankerError("model", "a checkpoint folder or a hub id OWNER/NAME", f"{model}, which is no folder")
    snapshot = _download(model, [*SETTINGS_FILES, *SAFE_WEIGHTS])
    return snapshot if matching(snapshot, SAFE_WEIGHTS) else _download(model, [*SETTINGS_FILES, *PICKLED_WEIGHTS])


def folder_digest(folder: Path) -> str:
    """SHA-256 of the weights, config and tokenizer files; a card, log or optimizer beside them changes nothing."""
    digest = hashlib.sha256()
    for path in [*matching(folder, SETTINGS_FILES), *weight_files(folder)]:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.name}\0{content}\n".encode())
    return digest.hexdigest()


def positive_label(config: Any, model: str | Path) -> int:
    """Column of the logit that is high for a matching pair: the only one, the one stated, or the one whose name says
    so."""
    labels = {int(column): str(label) for column, label in config.id2label.items()}
    if len(labels) == 1:
        return 0
    names = shown(", ".join(labels.values()))
    if sorted(labels) != list(range(len(labels))):
        raise RankerError("model", f"id2label to number its labels from 0 in the config.json of {model}", names)
    stated = getattr(config, "positive_label", None)
    if stated is not None:
        columns = [column for column, label in labels.items() if stated in (column, label)]
        if len(columns) != 1 or isinstance(stated, bool):
            wanted = f"one of {names} or a number under {len(labels)} as positive_label in the config.json of {model}"
            raise RankerError("model", wanted, shown(repr(stated)))
        return columns[0]
    named = [column for column, label in labels.items() if label.lower() in POSITIVE_NAMES]
    if len(named) != 1:
        raise RankerError(
            "model",
            f"positive_label (name or number) in the config.json of {model}, which has {len(labels)} labels ({names})",
            "none",
        )
    return named[0]


def room_for_text(query: str, n_tokens: int, most: int) -> int:
    """Tokens that a query of so many leaves for a text, of the `most` that both may have. Raises RankerError if those
    are too few."""
    if most - n_tokens < MIN_TEXT_TOKENS:
        wanted = f"at most {most - MIN_TEXT_TOKENS} tokens, so that {MIN_TEXT_TOKENS} are left for a text"
        raise RankerError("query", wanted, f"{n_tokens}: {query[:60]!r}")
    return most - n_tokens


def _download(model: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    name, _, revision = model.partition("@")
    try:
        return Path(
            snapshot_download(name, revision=revision or None, allow_patterns=patterns, ignore_patterns=["*/*"])
        )
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        got = f"{model}, which is no folder here and could not be had from the hub ({reason})"
        raise RankerError("model", "a folder or hub id", got) from error


def _choose_device(device: str | None) -> str:
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.split(":")[0] == "cuda" and not torch.cuda.is_available():
        raise RankerError("device", "one that torch sees here", f"{device}, and it sees no CUDA device")
    return device


def computes_bfloat16(device: str) -> bool:
    """Tells whether bfloat16 is a device's own number format. A processor without AVX-512 or AMX emulates it, many
    times slower than float32."""
    import torch

    if not device.startswith("cpu"):
        return True
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _choose_dtype(dtype: str, device: str, model_type: str, model: str | Path) -> str:
    if dtype == "auto":
        return "bfloat16" if device.startswith("cuda") else "float32"
    if dtype == MIXED:
        return "float32"
    if dtype not in DTYPES:
        raise RankerError("dtype", f"one of auto, {MIXED}, {', '.join(DTYPES)}", repr(dtype))
    if DTYPES[dtype] == "float16" and model_type in OVERFLOWS_IN_FP16:
        wanted = f"bfloat16 or float32 for {model} of type {model_type}"
        raise RankerError("dtype", wanted, f"{dtype}, in which it gives NaN")
    return DTYPES[dtype]


def _load_model(
    folder: Path, model: str | Path, content: dict[str, Any], dtype: str, num_labels: int | None = None
) -> tuple[Any, list[str]]:
    """The model, and the names of the weights that its files lack. `num_labels`: for a head that may differ from the
    base's."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

    name = content.get("model_type")
    if name not in CONFIG_MAPPING or CONFIG_MAPPING[name] not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        wanted = f"transformers' name of a sequence classifier as model_type in the config.json of {model}"
        raise RankerError("model", wanted, shown(repr(name)))
    config_kind = CONFIG_MAPPING[name]
    kind = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING[config_kind]
    with one_sentence(f"a well-formed config.json of {model}"), _quiet():
        config = config_kind.from_dict(content, **({} if num_labels is None else {"num_labels": num_labels}))
    with _quiet():
        check_size(kind, config, folder, model)
    weights = read_weights(folder, model)
    with one_sentence(f"{model} to load as a sequence classifier"), _quiet():
        loaded, report = kind.from_pretrained(
            None,
            config=config,
            state_dict=weights,
            trust_remote_code=False,
            local_files_only=True,
            dtype=dtype,
            ignore_mismatched_sizes=num_labels is not None,
            output_loading_info=True,
        )
    return loaded, sorted(report["missing_keys"])


def _load_tokenizer(folder: Path, model: str | Path) -> Any:
    from transformers import AutoTokenizer

    # Without a vocabulary, transformers makes up a tokenizer that knows only its special tokens.
    if not matching(folder, VOCABULARY_FILES):
        raise RankerError("model", f"a tokenizer in {model} ({', '.join(VOCABULARY_FILES)})", "none")
    check_tokenizer(folder, model)
    with one_sentence(f"the tokenizer of {model} to load"), _quiet():
        tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        # Some faults only show at the first texts.
        tokenizer(*TRIAL, return_token_type_ids=True)
    return tokenizer


def _try_out(loaded: Any, tokenizer: Any, positive: int, model: str | Path) -> None:
    """Scores one short pair: some settings are only read at the first pair, and must fail here rather than later."""
    import torch

    with one_sentence(f"{model} to score a pair"), torch.inference_mode():
        # None if the model hashes its characters.
        n_rows = getattr(loaded.config.get_text_config(), "vocab_size", None)
        n_known = max(tokenizer.get_vocab().values()) + 1
        if n_rows is not None and n_known > n_rows:
            wanted = f"a tokenizer of at most {n_rows} tokens, as many as {model} has embeddings"
            raise RankerError("model", wanted, str(n_known))
        ids = torch.tensor([tokenizer(*TRIAL)["input_ids"]], device=loaded.device)
        loaded(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, positive].item()


def _max_tokens(tokenizer: Any, config: Any, model: str | Path) -> int:
    positions = getattr(config, "max_position_embeddings", None) or MAX_TOKENS
    longest = min(tokenizer.model_max_length, positions, MAX_TOKENS)
    # Not <, which lets NaN through.
    if not longest >= 1:
        raise RankerError("model", f"a positive model_max_length in the tokenizer of {model}", str(longest))
    return int(longest)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences transformers' progress bars and reports of missing weights; those that matter become errors here."""
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
