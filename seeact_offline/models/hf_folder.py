"""The folder of a model in the hub's format: found or downloaded, checked before it is loaded, told from others by its
digest.

Anyone may have written such a folder. Its own code is never run (`auto_map` counts for nothing), weights are read from
safetensors or, where there are none, from a pickle that holds tensors alone, and settings that would make transformers
load further files or code are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from seeact_offline.files import hub
from seeact_offline.files.digest import cached_file_digest
from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import read_regular
from seeact_offline.records import ModelSpecError

WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors")
PICKLED = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
"""Read where there are no WEIGHTS, and tensors alone."""
SETTINGS = ("*.json", "*.jinja", "*.txt", "*.model")
INDEX = "model.safetensors.index.json"
PICKLED_INDEX = "pytorch_model.bin.index.json"
PROCESSOR, PICTURES = "processor_config.json", "preprocessor_config.json"
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""LoRA's matrices, as peft writes them beside the name of their base."""
GGUF = ".gguf"
"""The ending of llama.cpp's files."""
SAMPLE_BYTES = 4096
"""The beginning of each tensor that counts for the digest."""
MAX_JSON_BYTES = 64 * 2**20
_ELSEWHERE = ("configuration_files", "transformers_weights")


class ModelParts(NamedTuple):
    """The folders of a model."""

    folder: Path
    """Whole weights: the model's own, or those of an adapter's base."""
    adapter: Path | None = None
    """LoRA's matrices, to be added to the weights."""

    @property
    def processor(self) -> Path:
        """The folder of the tokenizer or processor: an adapter may bring its own."""
        adapter = self.adapter
        return adapter if adapter is not None and (adapter / "tokenizer_config.json").is_file() else self.folder


def find_parts(name: str) -> ModelParts:
    """The folder of a whole model, or that of an adapter with its base's. Raises ModelSpecError as `find_folder`
    does."""
    folder = _located(name)
    if not (folder / ADAPTER).is_file() or holds_weights(folder):
        return ModelParts(_checked(folder, name))
    base = _base_of(folder, name)
    try:
        return ModelParts(find_folder(base), folder)
    except ModelSpecError as error:
        raise ModelSpecError("model", sentence=f"the base of hf/{name} cannot be used: {error.problem}") from None


def find_folder(name: str) -> Path:
    """The folder of that name, or the one that keeps the hub's OWNER/NAME or OWNER/NAME@REVISION, downloaded at first
    use.

    Raises ModelSpecError where there is neither, or what is there is no whole model that may be loaded.
    """
    return _checked(_located(name), name)


def _located(name: str) -> Path:
    folder = Path(os.path.expanduser(name))
    if folder.suffix == GGUF and folder.is_file():
        raise _is_gguf(name, name)
    if name and folder.is_dir():
        return folder
    if not hub.is_spec(name):
        raise ModelSpecError(
            "model", "hf/ with a model's folder or a hub id OWNER/NAME", f"{name or 'nothing'}, which is no folder"
        )
    with hub.errors_as(ModelSpecError, "model"):
        return hub.model_folder(name, SETTINGS, WEIGHTS, PICKLED, (ADAPTER_WEIGHTS,))


def _base_of(adapter: Path, name: str) -> str:
    """The name of the base in an adapter's settings. Raises ModelSpecError for an adapter that may not be loaded."""
    entries = settings(adapter, name, ADAPTER)
    kind, base, revision = (entries.get(key) for key in ("peft_type", "base_model_name_or_path", "revision"))
    if kind != "LORA" or not (isinstance(base, str) and base):
        wanted = f"a LORA with the name of its base in the {ADAPTER} of hf/{name}"
        raise ModelSpecError("model", wanted, f"peft_type {kind!r:.80} and base_model_name_or_path {base!r:.80}")
    # peft imports the module that stands beside it
    if entries.get("megatron_config") is not None:
        raise ModelSpecError("model", f"an {ADAPTER} of hf/{name} that names no code", "megatron_config")
    if not (adapter / ADAPTER_WEIGHTS).is_file():
        raise ModelSpecError("model", f"the weights of hf/{name} as safetensors", f"no {ADAPTER_WEIGHTS}")
    return f"{base}@{revision}" if revision else base


def settings(folder: Path, name: str, file: str = "config.json") -> dict[str, Any]:
    """Reads a file of settings. Raises ModelSpecError for one that is no object of JSON."""
    try:
        content = read_json(read_regular(folder / file, MAX_JSON_BYTES))
    except (OSError, FormatError) as error:
        raise ModelSpecError("model", f"a readable {file} in hf/{name}", first_line(error)) from None
    if not isinstance(content, dict):
        raise ModelSpecError("model", f"an object in the {file} of hf/{name}", f"a {type(content).__name__}")
    return content


def picture_settings(folder: Path, name: str) -> dict[str, Any]:
    """The settings of its pictures' processor, wherever they stand; empty where there are none. Raises
    ModelSpecError."""
    whole = settings(folder, name, PROCESSOR) if (folder / PROCESSOR).is_file() else {}
    part = whole.get("image_processor")
    if not part and (folder / PICTURES).is_file():
        return settings(folder, name, PICTURES)
    return part if isinstance(part, dict) else {}


def settings_files(folder: Path) -> list[Path]:
    """Its config and the files of its tokenizer and processor."""
    return [path for path in _matching(folder, SETTINGS) if path.name not in (INDEX, PICKLED_INDEX)]


def digest(folder: Path) -> str:
    """SHA-256, in hex, of the settings' files and of each tensor's name, shape and first 4 KiB.

    Copying a folder does not change it, training does, and only some megabytes of a large model are read. Two models
    that differ nowhere in the beginning of any tensor are taken for one. A pickled file counts as a whole. Raises
    ModelSpecError for a file that is no safetensors.
    """
    content = hashlib.sha256()
    for path in _matching(folder, SETTINGS):
        content.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        content.update(path.read_bytes())
    for path in _matching(folder, (*WEIGHTS, ADAPTER_WEIGHTS)):
        try:
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                if length > MAX_JSON_BYTES:
                    raise ValueError(f"a header of {length} bytes")
                header = file.read(length)
                content.update(header)
                tensors = {name: entry for name, entry in json.loads(header).items() if name != "__metadata__"}
                for name in sorted(tensors):
                    begin, end = tensors[name]["data_offsets"]
                    file.seek(8 + length + begin)
                    content.update(file.read(min(SAMPLE_BYTES, end - begin)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as error:
            raise ModelSpecError("model", f"a safetensors file as {path}", f"{type(error).__name__}: {error}") from None
    if not has_safetensors(folder):
        for path in _matching(folder, PICKLED):
            content.update(f"{path.name}\0{cached_file_digest(path)}".encode())
    return content.hexdigest()


def _checked(folder: Path, name: str) -> Path:
    if not holds_weights(folder) and (files := _matching(folder, (f"*{GGUF}",))):
        raise _is_gguf(name, str(files[0]))
    if (folder / ADAPTER).exists():
        raise ModelSpecError("model", f"whole weights in hf/{name}", "an adapter, to be merged into its model first")
    if not (folder / "config.json").is_file():
        raise ModelSpecError("model", f"a model's folder with a config.json as hf/{name}", "a folder without one")
    for key, value in _entries(settings(folder, name)):
        # a kernel of the hub, OWNER/NAME, is code
        kernel = key.endswith(("attn_implementation", "experts_implementation")) and "/" in str(value)
        if kernel or (key in _ELSEWHERE and value is not None):
            wanted = f"a config.json of hf/{name} that names no further files or code"
            raise ModelSpecError("model", wanted, f"{key} {str(value)!r:.80}")
    if missing := _missing_weights(folder, name):
        raise ModelSpecError("model", f"weights of hf/{name} as safetensors, or as tensors in {PICKLED[0]}", missing)
    return folder


def has_safetensors(folder: Path) -> bool:
    """False for a folder whose weights are pickled."""
    return (folder / "model.safetensors").is_file() or (folder / INDEX).is_file()


def holds_weights(folder: Path) -> bool:
    """True for a folder with weights of any kind, whole or not."""
    return bool(_matching(folder, (INDEX, PICKLED_INDEX, *WEIGHTS, *PICKLED)))


def _missing_weights(folder: Path, name: str) -> str:
    """The file that is lacking, for people; empty where none is."""
    kinds, index = (WEIGHTS, INDEX) if has_safetensors(folder) else (PICKLED, PICKLED_INDEX)
    if (folder / kinds[0]).is_file():
        return ""
    if not (folder / index).is_file():
        return f"neither model.safetensors nor {INDEX} nor {PICKLED[0]}"
    homes = settings(folder, name, index).get("weight_map")
    files = {str(file) for file in homes.values()} if isinstance(homes, dict) else set()
    if not files:
        return f"an {index} that names no file"
    lacking = sorted(files - {path.name for path in _matching(folder, kinds)})
    return f"no {lacking[0]!r:.80}" if lacking else ""


def _is_gguf(name: str, file: str) -> ModelSpecError:
    asked = "ask it by --model openai/NAME --base-url http://localhost:8080/v1"
    return ModelSpecError("model", sentence=f"hf/{name} is GGUF: serve it by llama-server -m {file}, and {asked}")


def first_line(error: BaseException) -> str:
    """The error's type and first line, as a terminal can show them."""
    text = next(iter(str(error).strip().splitlines()), "no reason given").rstrip(".:")[:300]
    return f"{type(error).__name__}: " + "".join(sign if sign.isprintable() else " " for sign in text)


def _entries(content: object) -> Iterator[tuple[str, object]]:
    """Every named value, however deep."""
    if isinstance(content, dict):
        yield from content.items()
    if isinstance(content, dict | list):
        for value in content.values() if isinstance(content, dict) else content:
            yield from _entries(value)


def _matching(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
