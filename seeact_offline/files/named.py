"""One reader for all files that users name: regular and of bounded size, so that no pipe or device can hang or fill a run."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seeact_offline.files.formats import FormatError, read_json, read_yaml, short, typed
from seeact_offline.records import InputError, StepKey

SMALL = 16 << 20
"""Largest file, in bytes, that people write."""
LARGE = 4 << 30
"""Largest file, in bytes, that programs write."""
LARGEST_SETTINGS = 1 << 20
"""Largest YAML file, in bytes; YAML is read slowly."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks at the beginning of a file."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""O_NONBLOCK, because opening a pipe waits for its writer otherwise."""
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
READABLE = "a readable file"
"""A file of no particular format."""
T = TypeVar("T", bound=msgspec.Struct)


def open_regular(path: Path, largest: int = LARGE) -> BufferedReader:
    """Opens a regular file for reading. Raises OSError, also for a folder, a pipe, a device and more than `largest` bytes."""
    try:
        file = os.open(path, _FLAGS)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_size <= largest:
        return os.fdopen(file, "rb")
    os.close(file)
    why = f"more than {largest:,} bytes" if stat.S_ISREG(found.st_mode) else "not a regular file"
    raise OSError(errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL, why, str(path))


def read_regular(path: Path, largest: int = LARGE) -> bytes:
    """Reads a regular file. Raises OSError as `open_regular` does."""
    with open_regular(path, largest) as file:
        # some kernel files have neither size nor end
        return file.read(max(os.fstat(file.fileno()).st_size, SMALL))


def read_named(
    argument: str, path: Path, wanted: str = READABLE, *, largest: int = SMALL, kind: type[InputError] = InputError
) -> bytes:  # fmt: skip
    """Reads a file, without a UTF-8 mark at its beginning. Raises `kind` about `argument`, also for UTF-16."""
    try:
        content = read_regular(path, largest)
    except OSError as error:
        raise (
            kind(argument, sentence=f"cannot read {path}: {error.strerror}")
            if wanted == READABLE
            else kind(argument, wanted, f"{path}: {error.strerror}")
        ) from None
    if content.startswith(UTF_16) or b"\0\0" in (content[:4:2], content[1:4:2]):
        raise kind(argument, "UTF-8 text", f"{path}, which is UTF-16")
    return content.removeprefix(b"\xef\xbb\xbf")


def read_text(
    argument: str, path: Path, wanted: str = READABLE, *, largest: int = SMALL, kind: type[InputError] = InputError
) -> str:  # fmt: skip
    """Reads the text of a file in UTF-8. Raises `kind` as `read_named` does."""
    try:
        return read_named(argument, path, wanted, largest=largest, kind=kind).decode()
    except UnicodeDecodeError as error:
        raise kind(argument, "UTF-8 text", f"the byte {error.object[error.start]:#04x} in {path}") from None


def read_rows(argument: str, path: Path, kind: type[T]) -> Iterator[tuple[T, str]]:
    """Yields each non-empty line of a JSONL file as this type, with its place. Raises InputError naming the line."""
    # other characters that end a line for Python occur inside texts
    for number, line in enumerate(read_text(argument, path, largest=LARGE).split("\n"), 1):
        if line.strip():
            where, row = f"line {number} of {path}", None
            try:
                row = read_json(line)
                yield typed(row, kind), where
            except FormatError as error:
                ids = [row.get(name) for name in StepKey._fields] if isinstance(row, dict) else [None]
                step = f", step {StepKey(*ids)}" if all(isinstance(name, str) and name for name in ids) else ""
                raise InputError(argument, error.expected, f"{error.got} in {where}{step}") from None


def read_settings(argument: str, path: Path) -> dict[Any, Any]:
    """Reads names and values from a YAML or `.json` file. Raises InputError, also for texts that cannot be file names."""
    values = read_values(argument, path)
    if not isinstance(values, dict):
        raise InputError(argument, "names and values", f"a {type(values).__name__} in {path}")
    return values


def read_values(argument: str, path: Path) -> Any:
    """Reads what a YAML or `.json` file holds. Raises InputError as `read_settings` does."""
    text = read_text(argument, path, "a YAML or JSON file", largest=LARGEST_SETTINGS)
    try:
        values = read_json(text) if path.suffix == ".json" else read_yaml(text)
    except FormatError as error:
        raise InputError(argument, error.expected, f"{error.got} in {path}") from None
    if found := next(filter(_UNWRITABLE.search, _texts(values)), None):
        raise InputError(argument, "texts without NUL and lone surrogates", f"{short(found)} in {path}")
    return values


def _texts(value: Any) -> Iterator[str]:
    """Yields all texts inside a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in chain.from_iterable(value.items()) if isinstance(value, dict) else value:
            yield from _texts(inner)
