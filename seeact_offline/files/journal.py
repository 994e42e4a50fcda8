"""A journal: lines of JSON that are only ever appended, so that a killed program goes on from them.

A crash may tear the last line: it has no newline at its end, or holds NUL bytes where power was lost. Readers leave such a line
out; only who writes may cut it off, for to others it may be one that a live program is writing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, NamedTuple


class Line(NamedTuple):
    """One whole line of a journal."""

    number: int
    """From 1."""
    offset: int
    """Byte at which it begins."""
    text: str
    """Without its newline; bytes that are no UTF-8 are replaced."""


class Journal:
    """Use as a context manager: open for appending inside. Reading needs no opening. OSErrors are the caller's to word."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        """Makes the folder, and cuts off a torn last line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = sum(map(len, self._whole_lines()))
        if self.path.exists() and self.path.stat().st_size > whole:
            os.truncate(self.path, whole)
        self._file = self.path.open("ab")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, text: str) -> int:
        """Adds a line of this JSON text and hands it to the operating system; returns the byte at which it begins."""
        if self._file is None:
            raise RuntimeError(f"expected a journal open for appending, got {self.path} closed")
        if "\n" in text:
            raise ValueError(f"text: expected one line, got {text!r:.80}")
        offset = self._file.seek(0, os.SEEK_END)
        self._file.write(text.encode("utf-8") + b"\n")
        self._file.flush()
        return offset

    def lines(self) -> Iterator[Line]:
        """The whole lines, in order, without a torn last one; none where there is no file."""
        offset = 0
        for number, line in enumerate(self._whole_lines(), 1):
            yield Line(number, offset, _text(line))
            offset += len(line)

    def at(self, offset: int) -> str:
        """The text of the line that begins at this byte."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return _text(file.readline())

    def _whole_lines(self) -> Iterator[bytes]:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            # nothing follows the last one
            for line, following in pairwise(chain(file, [b""])):
                if following or not _is_torn(line):
                    yield line


def _is_torn(line: bytes) -> bool:
    """Whether a crash has torn this last line of a file."""
    return not line.endswith(b"\n") or b"\0" in line


def _text(line: bytes) -> str:
    return line.removesuffix(b"\n").decode(errors="replace")
