"""A file of what a person says, one line of JSON a key: what a method has returned from is on disk, and no crash leaves half a file.

The whole file is written anew for each change and put in the place of the old one. With 15,000 lines that takes less than a
person's next thought, and readers see a whole file at any moment.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from filelock import FileLock, Timeout

from seeact_offline.files.whole import write_whole
from seeact_offline.records import InputError

K = TypeVar("K", bound=Hashable)


class DurableLines(Generic[K]):
    """Lines in the order in which they were last changed. Keeps other programs of this kind off the file until it is closed."""

    def __init__(self, path: Path, argument: str) -> None:
        """`argument`: what the path is called in errors. Raises InputError where the file cannot be written, or is in use."""
        # a link stays a link: what it leads to is written anew
        self.path = path.resolve()
        self._lines: dict[K, str] = {}
        self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
        except Timeout:
            raise InputError(
                argument, "a file that nobody else is writing", f"{path}, which another program is"
            ) from None
        except (NotImplementedError, OSError) as error:
            raise InputError(argument, "a file that can be written", f"{path}: {error}") from None

    def load(self, lines: Mapping[K, str]) -> None:
        """What the file holds."""
        self._lines = dict(lines)

    def put(self, key: K, line: str) -> None:
        """Adds a line, or moves one to the end. Raises OSError, and then nothing has changed."""
        self._write({**{k: text for k, text in self._lines.items() if k != key}, key: line})

    def drop(self, key: K) -> None:
        """Raises OSError, and then nothing has changed."""
        self._write({k: text for k, text in self._lines.items() if k != key})

    @property
    def lines(self) -> Mapping[K, str]:
        return self._lines

    def close(self) -> None:
        self._lock.release()

    def _write(self, lines: dict[K, str]) -> None:
        data = "".join(f"{line}\n" for line in lines.values()).encode()
        write_whole(self.path, lambda draft: draft.write_bytes(data))
        _sync_folder(self.path.parent)
        self._lines = lines


def _sync_folder(folder: Path) -> None:
    """Without this a power cut could bring the old file back."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        # folders of some systems cannot be opened; they keep names on their own
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
