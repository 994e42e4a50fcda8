"""Writing that survives a kill: a file is complete or absent, and a journal loses its last line at most.

A journal is lines of JSON that are only appended, so that an interrupted program can resume from them. A crash may tear
the last line: it has no newline at its end, or holds NUL bytes after a power cut. Readers skip such a line; only the
writer cuts it off, because a reader may see a line that a live program is still writing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

from seeact_offline.files.named import open_regular

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
    """Replaces `path` at the end by the draft that was written meanwhile. If that fails, the draft is removed and the
    old file stays."""
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


# --- journals ---


class Line(NamedTuple):
    """One whole line of a journal."""

    number: int
    """Line number from 1."""
    offset: int
    """Position of its first byte."""
    text: str
    """The line without its newline; bytes that are not UTF-8 are replaced."""


class Journal:
    """A context manager, open for appending inside. Reading needs no opening. Callers handle OSErrors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        """Makes the folder and cuts off a torn last line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = sum(map(len, self._whole_lines()))
        if self.path.exists() and self.path.stat().st_size > whole:
            os.truncate(self.path, whole)
        self._file = self.path.open("ab")
        return self

    @property
    def is_open(self) -> bool:
        """True while it is open for appending."""
        return self._file is not None

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with naming(self.path):
                self._file.close()
            self._file = None

    def append(self, text: str, is_durable: bool = False) -> int:
        """Appends this JSON text as one line and hands it to the operating system; returns the position of its first
        byte.

        `is_durable`: it is on disk when this returns, with all lines before it, and outlives a power cut.
        """
        if self._file is None:
            raise RuntimeError(f"expected a journal open for appending, got {self.path} closed")
        if "\n" in text:
            raise ValueError(f"text: expected one line, got {text!r:.80}")
        with naming(self.path):
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(text.encode("utf-8") + b"\n")
            self._file.flush()
            if is_durable:
                os.fsync(self._file.fileno())
                # it has the name of a new file
                _sync_folder(self.path.parent)
        return offset

    def lines(self) -> Iterator[Line]:
        """Yields the whole lines in order, without a torn last one; none if there is no file."""
        offset = 0
        for number, line in enumerate(self._whole_lines(), 1):
            yield Line(number, offset, _text(line))
            offset += len(line)

    def at(self, offset: int) -> str:
        """Returns the text of the line that begins at this byte."""
        with open_regular(self.path) as file:
            file.seek(offset)
            return _text(file.readline())

    def _whole_lines(self) -> Iterator[bytes]:
        try:
            file = open_regular(self.path)
        except FileNotFoundError:
            return
        with file:
            # only the last line, which nothing follows, can be torn
            for line, following in pairwise(chain(file, [b""])):
                if following or (line.endswith(b"\n") and b"\0" not in line):
                    yield line


def _sync_folder(folder: Path) -> None:
    # some systems open no folders, and some network disks sync none
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\n").decode(errors="replace")
