"""The one SQLite store: texts by key, each kept the moment it is put there, with a checksum.

A bit that flips on disk could turn a text into another one: a text that does not match its checksum is removed and reported.
"""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

from seeact_offline.records import InputError

_LOCK_WAIT_S = 30.0
"""Seconds to wait while another program writes to the same file."""


class Store:
    """Texts by key in one SQLite file, open until `close`. A killed program loses none of the texts it put there."""

    def __init__(self, path: Path, name: str) -> None:
        """`name`: the argument that errors name. Makes the folder. Raises InputError for an unusable file."""
        self._path, self._name = path, name
        try:
            self._db = _open_file(path)
        except (OSError, sqlite3.Error) as error:
            raise self.unusable(error) from error

    def get(self, key: str) -> str | None:
        """None for an unknown key. Raises InputError for a damaged text, which is then removed."""
        try:
            # as bytes, because a damaged value may not be text
            row = self._db.execute(
                "SELECT CAST(completion AS BLOB), CAST(checksum AS BLOB) FROM completions WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            value, checksum = row
            if checksum not in (None, _checksum(key, value)):
                self._db.execute("DELETE FROM completions WHERE key = ?", (key,))
                raise ValueError("a reply is damaged; it is removed now, and the same command asks for it again")
            return bytes(value).decode()
        except (sqlite3.Error, ValueError) as error:
            raise self.unusable(error) from error

    def put(self, key: str, text: str) -> None:
        """Replaces an older text. Raises InputError if the file cannot be written."""
        row = key, text, _checksum(key, text.encode()).decode()
        try:
            self._db.execute("INSERT OR REPLACE INTO completions (key, completion, checksum) VALUES (?, ?, ?)", row)
        except sqlite3.Error as error:
            raise self.unusable(error) from error

    def close(self) -> None:
        """Safe to call twice."""
        self._db.close()

    def unusable(self, error: Exception) -> InputError:
        """The error for a file that cannot be used, also for a caller who cannot make sense of a text in it."""
        return InputError(self._name, "a SQLite file of this program that can be written", f"{self._path}: {error}")


def _open_file(path: Path) -> sqlite3.Connection:
    """Each statement commits by itself; a write-ahead log keeps the file whole when the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, timeout=_LOCK_WAIT_S, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(
            "CREATE TABLE IF NOT EXISTS completions (key TEXT PRIMARY KEY, completion TEXT NOT NULL, checksum TEXT)"
        )
        # the index too: a key missing from it would be paid for again
        verdict = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        if "checksum" not in {column[1] for column in db.execute("PRAGMA table_info(completions)")}:
            # a file of an earlier version, whose texts have no checksum
            db.execute("ALTER TABLE completions ADD COLUMN checksum TEXT")
    except BaseException:
        # any error is passed on; only the file must not stay open
        db.close()
        raise
    return db


def _checksum(key: str, value: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + value).hexdigest()[:16].encode()
