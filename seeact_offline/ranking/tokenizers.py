"""Tokenizers by name, for counting: words, tiktoken's or transformers'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seeact_offline.records import InputError
from seeact_offline.tokens import count_words


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Counts the tokens of a text."""

    name: str
    """As the user names it."""
    count: Callable[[str], int]


def open_tokenizer(spec: str) -> Tokenizer:
    """`words`, `tiktoken:ENCODING_OR_MODEL` or `hf:DIR_OR_ID`. Raises InputError if it cannot be loaded."""
    kind, _, name = spec.partition(":")
    if spec == "words":
        return Tokenizer(spec, count_words)
    if name and kind in _OPENERS:
        return Tokenizer(spec, _OPENERS[kind](name))
    raise InputError("tokenizer", "words, tiktoken:NAME or hf:DIR_OR_ID", repr(spec))


def _tiktoken(name: str) -> Callable[[str], int]:
    try:
        import tiktoken
    except ImportError:
        raise InputError("tokenizer", f"the package of tiktoken:{name}", "none: pip install tiktoken") from None
    try:
        known = name in tiktoken.list_encoding_names()
        encoding = tiktoken.get_encoding(name) if known else tiktoken.encoding_for_model(name)
    except KeyError:
        names = ", ".join(tiktoken.list_encoding_names())
        raise InputError("tokenizer", f"tiktoken:NAME of {names} or of a model", repr(name)) from None
    except (OSError, ValueError) as error:
        raise InputError("tokenizer", f"tiktoken:{name}, which has to be fetched", _first_line(error)) from None
    # text that looks like a control token is still page text
    return lambda text: len(encoding.encode_ordinary(text))


def _hugging_face(name: str) -> Callable[[str], int]:
    from ranker.checkpoint import open_tokenizer as open_checked

    try:
        tokenizer = open_checked(name)
    except ImportError:
        raise InputError("tokenizer", f"the package of hf:{name}", "none: pip install transformers") from None
    except (OSError, ValueError) as error:
        raise InputError("tokenizer", "a tokenizer", f"none in {name!r}: {_first_line(error)}") from None
    # verbose: a page longer than the model's window is not a mistake here
    return lambda text: len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


_OPENERS = {"tiktoken": _tiktoken, "hf": _hugging_face}


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
