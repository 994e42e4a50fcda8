"""The one atomic write: a file is complete or absent, whatever interrupts the writing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Gives an OSError of a file that is open already, such as that of a full disk, the path that it lacks."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Replaces `path` at the end by the draft that was written meanwhile. If that fails, the draft is removed and the old file stays."""
    draft = path.with_name(path.name + ".tmp")
    try:
        with naming(path):
            yield draft
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(draft, path)
    except BaseException:
        # any error is passed on, but the draft must not stay
        draft.unlink(missing_ok=True)
        raise


def write_whole(path: Path, write: Callable[[Path], T]) -> T:
    """Writes `path` as `whole` does, by a function of the draft; returns its result."""
    with whole(path) as draft:
        return write(draft)


def replace_text(path: Path, text: str) -> None:
    """Writes the text of a file in UTF-8, unless it is already there. Lone surrogates become their escapes."""
    data = text.encode("utf-8", errors="backslashreplace")
    if not path.exists() or path.read_bytes() != data:
        write_whole(path, lambda draft: draft.write_bytes(data))
