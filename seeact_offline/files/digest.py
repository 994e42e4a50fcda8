"""Digests that identify content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from .places import cache_folder
from .whole import replace_text


def file_digest(path: Path) -> str:
    """Returns the SHA-256 of a file in hex, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_file_digest(path: Path) -> str:
    """Returns `file_digest`, computed once while the file keeps its size, times and inode. Raises OSError."""
    found = path.stat()
    stamp = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino)
    return cached_digest(str(path.resolve()), stamp, lambda: file_digest(path))


def cached_digest(name: str, stamp: Sequence[object], compute: Callable[[], str]) -> str:
    """Returns `compute()`, stored in the user's cache folder under `name` while `stamp` stays the same."""
    record = (
        cache_folder() / "digests" / f"{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"
    )
    with suppress(OSError, ValueError, RecursionError):
        known = json.loads(record.read_text())
        if isinstance(known, list) and known[:-1] == list(stamp):
            return str(known[-1])
    value = compute()
    with suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        replace_text(record, json.dumps([*stamp, value]))
    return value
