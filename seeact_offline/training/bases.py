"""Opening what training starts from: other people's files, whose every fault is one sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from seeact_offline.models.hf_folder import find_folder, first_line, has_safetensors
from seeact_offline.models.hf_loading import LoadingOptions, nf4_weights, quiet, running_dtype
from seeact_offline.records import InputError, ModelSpecError
from seeact_offline.training.baseline import FineTuning


def base_folder(name: object, argument: str = "base") -> Path:
    """The folder of a folder's name or hub id. Raises InputError for `argument`."""
    try:
        return find_folder(str(name))
    except ModelSpecError as error:
        raise InputError(argument, error.expected, error.got) from None


def load_part(kind: Any, folder: Path, argument: str = "base", **options: Any) -> Any:
    """Opens the folder by a class of transformers. Raises InputError."""
    try:
        with quiet():
            return kind.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True, **options)
    # transformers on other people's files: nobody has listed how it fails, and the error is raised as our own
    except Exception as error:
        raise InputError(argument, f"a {kind.__name__} in {folder}", first_line(error)) from error


def loading_options(asked: FineTuning) -> dict[str, Any]:
    """Options of `load_model` for the model to train: in float32, with LoRA as `hf/` runs it (bfloat16 on a GPU), quantised in 4 bits."""
    recipe = asked.resolved_recipe
    dtype = "float32" if recipe.lora is None else running_dtype(LoadingOptions())
    options: dict[str, Any] = {"dtype": dtype}
    if asked.running.attention is not None:
        options["attn_implementation"] = asked.running.attention
    if recipe.quantised:
        # bitsandbytes quantises on the GPU that it is loaded to: this process's
        options["device_map"] = {"": int(os.environ.get("LOCAL_RANK", "0"))}
        options["quantization_config"] = nf4_weights(dtype)
    return options


def load_model(kind: Any, folder: Path, argument: str = "base", **options: Any) -> Any:
    """Opens a model with all its weights; missing ones would be random numbers. `options`: of `from_pretrained`; float32 unless
    they say otherwise. Raises InputError."""
    whole = {"use_safetensors": has_safetensors(folder), "weights_only": True, "output_loading_info": True}
    model, report = load_part(kind, folder, argument, **{"dtype": "float32", **options, **whole})
    missing = sorted(report["missing_keys"])
    if missing:
        got = f"{folder}, which lacks {len(missing)} of its weights, {missing[0]} first"
        raise InputError(argument, "a whole model", got)
    return model
