"""Opening what training starts from: other people's files, whose every fault is one sentence."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seeact_offline.models.hf_folder import INDEX, MAX_JSON_BYTES, find_folder, first_line, has_safetensors
from seeact_offline.models.hf_loading import LoadingOptions, nf4_weights, quiet, running_dtype
from seeact_offline.records import InputError, ModelSpecError
from seeact_offline.training.baseline import FineTuning


def base_folder(name: object, argument: str = "base") -> Path:
    """The folder of a folder's name or hub id. Raises InputError for `argument`."""
    try:
        return find_folder(str(name))
    except ModelSpecError as error:
        raise error.renamed(argument) from None


def load_part(kind: Any, folder: Path, argument: str = "base", **options: Any) -> Any:
    """Opens the folder by a class of transformers. Raises InputError."""
    # transformers takes weights in place of a folder
    source = None if "state_dict" in options else str(folder)
    try:
        with quiet():
            return kind.from_pretrained(source, trust_remote_code=False, local_files_only=True, **options)
    # transformers on other people's files: nobody has listed how it fails, and the error is raised as our own
    except Exception as error:
        raise InputError(argument, f"a {kind.__name__} in {folder}", first_line(error)) from error


def check_model(kind: Any, folder: Path, argument: str = "base", *, attention: str | None = None) -> None:
    """Raises InputError where weights are missing or cut short, or where the model has no such attention. Of safetensors the headers alone are read.

    `kind`: a class of transformers that opens the folder.
    """
    import torch
    from transformers import AutoConfig

    # on the device `meta` tensors have shapes and no numbers, so this is quick for a model of any size
    options: dict[str, Any] = {"device_map": "meta", "weights_only": True, "output_loading_info": True}
    if has_safetensors(folder):
        shapes = _shapes(folder, argument)
        weights = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
        options |= {"state_dict": weights, "config": load_part(AutoConfig, folder, argument)}
    model, report = load_part(kind, folder, argument, **options)
    _check_whole(report, folder, argument)
    if attention is not None:
        try:
            with quiet(), torch.device("meta"):
                type(model)._from_config(model.config, attn_implementation=attention)
        # as `load_part`
        except (ImportError, ValueError) as error:
            got = f"{attention} ({first_line(error)})"
            raise InputError("attention", f"one that a {type(model).__name__} has", got) from None


def _shapes(folder: Path, argument: str) -> dict[str, list[int]]:
    """The shape of each tensor, by the headers of the folder's safetensors. Raises InputError for a file that is shorter than its header
    says, and for a tensor that is not in the file where the index has it."""
    # transformers, too, takes the single file where there are both
    single, index = folder / "model.safetensors", folder / INDEX
    if single.is_file():
        return _header(single, argument)
    homes = json.loads(index.read_text("utf-8"))["weight_map"]
    found: dict[str, list[int]] = {}
    for name in sorted(set(homes.values())):
        here = _header(folder / name, argument)
        lacking = next((tensor for tensor, home in homes.items() if home == name and tensor not in here), None)
        if lacking is not None:
            raise InputError(argument, "a whole model", f"{folder / name}, which lacks {lacking}, named in {INDEX}")
        found |= here
    return found


def _header(path: Path, argument: str) -> dict[str, list[int]]:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > MAX_JSON_BYTES:
                raise ValueError(f"a header of {length} bytes")
            tensors = {name: entry for name, entry in json.loads(file.read(length)).items() if name != "__metadata__"}
        shapes = {name: [int(size) for size in entry["shape"]] for name, entry in tensors.items()}
        whole = 8 + length + max((int(entry["data_offsets"][1]) for entry in tensors.values()), default=0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as error:
        raise InputError(argument, f"a safetensors file as {path}", first_line(error)) from None
    size = path.stat().st_size
    if size < whole:
        raise InputError(argument, "a whole model", f"{path}, which ends after {size:,} of {whole:,} bytes")
    return shapes


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
    _check_whole(report, folder, argument)
    return model


def _check_whole(report: Mapping[str, Any], folder: Path, argument: str) -> None:
    missing = sorted(report["missing_keys"])
    if missing:
        got = f"{folder}, which lacks {len(missing)} of its weights, {missing[0]} first"
        raise InputError(argument, "a whole model", got)
