"""Which ranker a name means. `bundled` and `bm25` come with the program; any other name is a checkpoint."""

from __future__ import annotations

import re
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from ranker.errors import RankerError
from seeact_offline.ranking.scores import Ranker
from seeact_offline.records import InputError

BUNDLED = "bundled"
LEXICAL = "bm25"
DTYPES = ("auto", "float32", "bfloat16", "mixed")
BACKENDS = ("auto", "packed", "transformers")
"""Explained in `ranker.CrossEncoderRanker`."""
EXPECTED = f"{BUNDLED}, {LEXICAL}, a folder or a hub id OWNER/NAME"
_HUB_ID = re.compile(r"[\w.-]*\w[\w.-]*/[\w.-]*\w[\w.-]*")


def default_ranker() -> str:
    """The bundled ranker, if its weights are installed."""
    return LEXICAL if bundled_folder() is None else BUNDLED


def bundled_folder() -> Path | None:
    folder = Path(str(resources.files("ranker"))) / BUNDLED
    return folder if (folder / "model.safetensors").is_file() else None


def open_ranker(name: str, dtype: str = "auto", backend: str = "auto") -> Ranker:
    """The ranker of that name. Raises InputError if there is none, or if it cannot be used.

    `dtype`, `backend`: for a checkpoint's model by torch; the bundled one needs no torch unless one of them asks for it, and
    bm25 ignores them.
    """
    if name == LEXICAL:
        from ranker import LexicalRanker

        return LexicalRanker()
    checkpoint = _checkpoint(name)
    if name == BUNDLED and dtype in ("auto", "float32") and backend == "auto":
        from ranker import PlainRanker

        return PlainRanker(checkpoint)
    return _cross_encoder(name, checkpoint, dtype, backend)


def model_threads(name: str) -> int | None:
    """CPU threads that the ranker's model would take in this process; None where torch has no part in it."""
    if name in (LEXICAL, BUNDLED) or find_spec("torch") is None:
        return None
    import torch

    return int(torch.get_num_threads())


def set_model_threads(threads: int) -> None:
    """Sets the CPU threads of models from now on: their number decides the last bits of a sum."""
    import torch

    torch.set_num_threads(threads)


def _checkpoint(name: str) -> str | Path:
    if name == BUNDLED:
        folder = bundled_folder()
        if folder is None:
            found = f"{BUNDLED}, which has no weights in this installation"
            raise InputError("ranker", f"{LEXICAL}, a folder or a hub id OWNER/NAME", found)
        return folder
    if Path(name).is_dir():
        return Path(name)
    if not _HUB_ID.fullmatch(name):
        raise InputError("ranker", EXPECTED, name or "nothing")
    return name


def _cross_encoder(name: str, model: str | Path, dtype: str, backend: str) -> Ranker:
    try:
        from ranker import CrossEncoderRanker

        return CrossEncoderRanker(model, dtype=dtype, backend=backend)
    except ImportError as error:
        raise InputError(
            "ranker", f"torch and transformers, to load {name}: pip install 'seeact-offline[hf]'", str(error)
        ) from error
    except RankerError as error:
        argument = error.argument if error.argument in ("dtype", "backend") else "ranker"
        raise InputError(argument, error.expected, error.got) from error
    except (ValueError, OSError) as error:
        raise InputError("ranker", f"{name} to load", " ".join(str(error).split())[:400]) from error
