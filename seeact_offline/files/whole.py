"""The one atomic write: a file is there whole or not at all, whatever interrupts its writing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def write_whole(path: Path, write: Callable[[Path], T]) -> T:
    """Puts what `write` writes to the path it is given in the place of `path`; returns what `write` returns.

    Until then it is a draft beside it. When writing fails, the draft goes and what was there before stays.
    """
    draft = path.with_name(path.name + ".tmp")
    try:
        written = write(draft)
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return written


def replace_text(path: Path, text: str) -> None:
    """Makes this the text of a file, in UTF-8; one that holds it already is left alone. Lone surrogates become their escapes."""
    data = text.encode("utf-8", errors="backslashreplace")
    if not path.exists() or path.read_bytes() != data:
        write_whole(path, lambda draft: draft.write_bytes(data))
