"""Opening what training starts from: other people's files, whose every fault is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seeact_offline.models.hf_folder import find_folder, first_line, has_safetensors
from seeact_offline.records import InputError, ModelSpecError


def base_folder(name: object, argument: str = "base") -> Path:
    """The folder of a folder's name or hub id. Raises InputError for `argument`."""
    try:
        return find_folder(str(name))
    except ModelSpecError as error:
        raise InputError(argument, error.expected, error.got) from None


def load_part(kind: Any, folder: Path, argument: str = "base", **options: Any) -> Any:
    """Opens the folder by a class of transformers. Raises InputError."""
    try:
        return kind.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True, **options)
    # transformers on other people's files: nobody has listed how it fails, and the error is raised as our own
    except Exception as error:
        raise InputError(argument, f"a {kind.__name__} in {folder}", first_line(error)) from error


def load_model(
    kind: Any, folder: Path, argument: str = "base", dtype: str = "float32", attention: str | None = None
) -> Any:
    """Opens a model with all its weights; missing ones would be random numbers. `attention`: as `Running.attention`. Raises InputError."""
    options: dict[str, Any] = {} if attention is None else {"attn_implementation": attention}
    options |= {"use_safetensors": has_safetensors(folder), "weights_only": True, "output_loading_info": True}
    model, report = load_part(kind, folder, argument, dtype=dtype, **options)
    missing = sorted(report["missing_keys"])
    if missing:
        got = f"{folder}, which lacks {len(missing)} of its weights, {missing[0]} first"
        raise InputError(argument, "a whole model", got)
    return model
