"""One reader for every file that a user names: a regular file of a bounded size, so that no pipe or device can hang or fill a run."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from seeact_offline.records import InputError

SMALL = 16 << 20
"""Bytes of a file that people write."""
LARGE = 4 << 30
"""Bytes of a file that programs write."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Marks at the beginning of a file, in either order of bytes."""


def open_named(
    argument: str, path: Path, wanted: str = "a readable file", *, largest: int = LARGE, kind: type[InputError] = InputError
) -> BinaryIO:  # fmt: skip
    """Opens a regular file for reading. Raises `kind` about `argument` for anything else and for more than `largest` bytes."""
    try:
        # without O_NONBLOCK, opening a pipe waits for its writer
        file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
    except (OSError, ValueError) as error:
        raise kind(argument, wanted, f"{path}: {getattr(error, 'strerror', None) or error}") from None
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        file.close()
        raise kind(argument, wanted, f"{path}, which is no regular file")
    if found.st_size > largest:
        file.close()
        raise kind(argument, f"a file of at most {largest >> 20:,} MB", f"{path} of {found.st_size >> 20:,} MB")
    return file


def read_named(
    argument: str, path: Path, wanted: str = "a readable file", *, largest: int = SMALL, kind: type[InputError] = InputError
) -> bytes:  # fmt: skip
    """The bytes of a file, without a UTF-8 mark at its beginning. Raises `kind` as `open_named` does, and for UTF-16."""
    with open_named(argument, path, wanted, largest=largest, kind=kind) as file:
        try:
            content = file.read(largest + 1)
        except OSError as error:
            raise kind(argument, wanted, f"{path}: {error.strerror}") from None
    if len(content) > largest:
        raise kind(argument, f"a file of at most {largest >> 20:,} MB", f"{path}, which is larger")
    if content.startswith(UTF_16) or b"\0\0" in (content[:4:2], content[1:4:2]):
        raise kind(argument, "UTF-8 text", f"{path}, which is UTF-16")
    return content.removeprefix(b"\xef\xbb\xbf")
