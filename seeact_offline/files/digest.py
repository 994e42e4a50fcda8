"""Digests that identify content, and the user's folders that are used where none is named: the cache keeps digests of
large files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from seeact_offline.files.whole import replace_text

PREFIX = "SEEACT_"
"""Begins the names of our variables: SEEACT_BASE_URL is `--base-url`, and SEEACT_CACHE names the folder of all
caches."""

RUNS = Path("runs")
"""The folder in which `eval` makes a folder a run."""


def cache_folder() -> Path:
    """Returns `$SEEACT_CACHE`, or `seeact-offline` in the user's cache folder; users may delete it at any time."""
    named = os.environ.get(f"{PREFIX}CACHE")
    if named:
        return Path(named)
    # a user without a home folder keeps nothing: nothing can be written below the null device, nor be put there by others
    home = os.path.expanduser("~")
    cache = os.environ.get("XDG_CACHE_HOME") or Path(os.devnull if home == "~" else home, ".cache")
    return Path(cache) / "seeact-offline"


# --- digests ---


def file_digest(path: Path) -> str:
    """Returns the SHA-256 of a file in hex, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_file_digest(path: Path) -> str:
    """Returns `file_digest`, computed once while the file keeps its size, times and inode. Raises OSError."""
    return cached_digest(str(path.resolve()), file_stamp(path), lambda: file_digest(path))


def file_stamp(path: Path) -> tuple[int, ...]:
    """Returns values of which one changes whenever the file does. Raises OSError."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino


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
