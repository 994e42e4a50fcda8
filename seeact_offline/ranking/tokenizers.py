"""Tokenizers by name, for counting and cutting texts: words, characters, tiktoken's or transformers'."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seeact_offline.dataset.readers import first_line
from seeact_offline.files.extras import hide_broken_torchvision, install_command
from seeact_offline.models import model_name
from seeact_offline.models.tokens import count_words, cut_words
from seeact_offline.ranking.rankers import checkpoint_folder
from seeact_offline.records import InputError

ENCODING_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
"""Address of an encoding, whose digest names the file that tiktoken has fetched."""
CHARACTERS_A_TOKEN = 4
"""VisualWebArena cuts texts for Gemini at 15,360 characters in place of 3,840 tokens."""
WORDS = "words"
"""The fall-back where a model's tokenizer is not known, or not on this machine."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Counts the tokens of a text, and cuts it after the first of them."""

    name: str
    """The user's name for it."""
    count: Callable[[str], int]
    cut: Callable[[str, int], str] = cut_words
    """A text and a number of tokens -> the text up to there."""


@lru_cache(8)
def open_tokenizer(spec: str) -> Tokenizer:
    """`words`, `characters` (four are a token), `tiktoken:ENCODING_OR_MODEL` or `hf:DIR_OR_ID`. Raises InputError if it
    cannot be loaded."""
    kind, _, name = spec.partition(":")
    if spec == WORDS:
        return Tokenizer(spec, count_words)
    if spec == "characters":
        return Tokenizer(
            spec,
            lambda text: -(-len(text) // CHARACTERS_A_TOKEN),
            lambda text, limit: text[: CHARACTERS_A_TOKEN * limit],
        )
    if name and kind in _OPENERS:
        return _OPENERS[kind](spec, name)
    raise InputError("tokenizer", "words, characters, tiktoken:NAME or hf:DIR_OR_ID", repr(spec))


def tokenizer_of(model: Any) -> str:
    """The tokenizer of a model as users name it, as `open_tokenizer` takes it: tiktoken's encoding where it is on this
    machine, that of a local model, characters for Gemini as VisualWebArena counts; else words. Fetches nothing for a
    server's model."""
    provider, _, name = model_name(model).partition("/")
    own = name.rpartition("/")[2]
    if provider == "hf":
        return _usable(f"hf:{name}")
    if own.startswith("gemini"):
        return "characters"
    if provider != "openai" or find_spec("tiktoken") is None:
        return WORDS
    import tiktoken

    try:
        encoding = tiktoken.encoding_name_for_model(own)
    except KeyError:
        return WORDS
    return _usable(f"tiktoken:{encoding}") if is_fetched(encoding) else WORDS


def is_fetched(encoding: str) -> bool:
    """Tells whether tiktoken is installed and has fetched this encoding before."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    place = Path(tempfile.gettempdir()) / "data-gym-cache" if folder is None else Path(folder)
    # gpt-oss's encoding is this one with more control tokens, from the same file
    address = ENCODING_URL.format(encoding.replace("o200k_harmony", "o200k_base"))
    file = place / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    # a folder named "" keeps nothing
    return folder != "" and find_spec("tiktoken") is not None and file.is_file()


def _usable(spec: str) -> str:
    try:
        open_tokenizer(spec)
    except InputError:
        return WORDS
    return spec


def _tiktoken(spec: str, name: str) -> Tokenizer:
    try:
        import tiktoken
    except ImportError:
        hint = install_command("stats")
        raise InputError("tokenizer", sentence=f"tiktoken:{name} needs the package tiktoken: run {hint}") from None
    try:
        is_encoding = name in tiktoken.list_encoding_names()
        encoding = tiktoken.get_encoding(name) if is_encoding else tiktoken.encoding_for_model(name)
    except KeyError:
        names = ", ".join(tiktoken.list_encoding_names())
        raise InputError("tokenizer", f"tiktoken:NAME of {names} or of a model", repr(name)) from None
    except (OSError, ValueError) as error:
        raise InputError("tokenizer", sentence=f"cannot fetch tiktoken:{name}: {first_line(error)}") from None
    # text that looks like a control token is still page text
    encode = encoding.encode_ordinary
    return Tokenizer(
        spec, lambda text: len(encode(text)), lambda text, limit: encoding.decode(encode(text)[: max(0, limit)])
    )


def _hugging_face(spec: str, name: str) -> Tokenizer:
    from ranker.checkpoint import open_tokenizer as open_checked

    try:
        hide_broken_torchvision()
        # first, so that nothing is fetched where it is missing
        import transformers  # noqa: F401

        tokenizer = open_checked(Path(name) if Path(name).is_dir() else checkpoint_folder(name))
    except ImportError:
        hint = install_command("hf")
        raise InputError("tokenizer", sentence=f"hf:{name} needs the package transformers: run {hint}") from None
    except (OSError, ValueError, InputError) as error:
        raise InputError("tokenizer", sentence=f"cannot load a tokenizer from {name!r}: {first_line(error)}") from None

    def encoded(text: str, **more: Any) -> Any:
        # verbose: a page longer than the model's window is not a mistake here
        return tokenizer(text, add_special_tokens=False, verbose=False, **more)

    def cut(text: str, limit: int) -> str:
        if not tokenizer.is_fast:
            return str(tokenizer.decode(encoded(text)["input_ids"][:limit]))
        # by place: decoding may give other white space than the text has
        ends = [end for _, end in encoded(text, return_offsets_mapping=True)["offset_mapping"]]
        return text if len(ends) <= limit else text[: max(ends[:limit], default=0)]

    return Tokenizer(spec, lambda text: len(encoded(text)["input_ids"]), cut)


_OPENERS: dict[str, Callable[[str, str], Tokenizer]] = {"tiktoken": _tiktoken, "hf": _hugging_face}
