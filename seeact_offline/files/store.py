"""The one SQLite store: texts by key, each committed at once, with a checksum.

A text that does not match its checksum, because a bit flipped on disk, is removed, counted and not returned. A file that SQLite
can no longer use is moved aside, and its readable rows are copied to a new one.

Any number of programs may use one file. On local disks it has a write-ahead log, whose shared memory does not reach other
machines; on a network file system it has a rollback journal instead, which is slower and relies on that system's locks. A
program claims a key before the costly work for its text; the claim is a locked file, and ends with the program.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from seeact_offline.records import InputError

_LOCK_WAIT_S = 30.0
"""Seconds to wait while another program writes to the same file."""
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p", "afs"}
)
"""File systems that several machines may share."""
COLUMNS = {"checksum": "TEXT", "about": "TEXT", "made": "TEXT", "used": "TEXT"}
"""Columns that later versions added."""


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """A summary of the texts of one kind in a store."""

    about: str
    texts: int
    characters: int
    first: str
    """UTC day of the oldest text; empty if unknown."""
    used: str
    """UTC day of the last use of any of them."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text of the store."""

    text: str
    made: str
    """UTC day on which it was put there; empty if unknown."""


class Store:
    """Texts by key in one SQLite file, open until `close`. A killed program loses none of the texts it put there."""

    def __init__(self, path: Path, name: str) -> None:
        """Opens or makes the file and its folder. `name`: the argument that errors name. Raises InputError."""
        self._path, self._name = path, name
        self.damaged = 0
        """Number of texts removed since opening because they did not match their checksums."""
        self.remark = ""
        """A sentence about a damaged file that was replaced; empty if there was none."""
        self._claims: dict[str, FileLock] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            raise self.unusable(error) from error
        known = {column[1] for column in self._do("PRAGMA table_info(completions)", ())}
        if missing := COLUMNS.keys() - known:
            self._db.close()
            got = f"{path} of an earlier development version, without {', '.join(sorted(missing))}; remove it, or name another"
            raise InputError(name, "a file of this version", got)

    def get(self, key: str) -> StoredText | None:
        """Returns the text of a key; None if unknown or damaged (it is then removed). Raises InputError when the file breaks."""
        # as bytes, because a damaged value may not be text
        columns = "CAST(completion AS BLOB), CAST(checksum AS BLOB), made, used"
        row = self._do(f"SELECT {columns} FROM completions WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        value, checksum, made, used = row
        if checksum != _checksum(key, value):
            self.remove(key)
            return None
        if used != _day():
            self._do("UPDATE completions SET used = ? WHERE key = ?", (_day(), key))
        return StoredText(bytes(value).decode(), made if isinstance(made, str) else "")

    def remove(self, key: str) -> None:
        """Removes a damaged text. Raises InputError."""
        self._do("DELETE FROM completions WHERE key = ?", (key,))
        self.damaged += 1

    def put(self, key: str, text: str, about: str = "") -> None:
        """Stores a text in place of an older one. `about`: its kind. Raises InputError if the file cannot be written."""
        row = key, text, _checksum(key, text.encode()).decode(), about, _day(), _day()
        self._do(f"INSERT OR REPLACE INTO completions ({', '.join(_ALL)}) VALUES (?, ?, ?, ?, ?, ?)", row)

    def claim(self, key: str) -> bool:
        """Tries to claim the key until `release`; False if another program has it. Without file locks, every claim succeeds."""
        lock = FileLock(self._path.with_name(f"{self._path.name}-{key[:32]}.lock"), thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        except (NotImplementedError, OSError):
            return True
        self._claims[key] = lock
        return True

    def release(self, key: str) -> None:
        """Gives up a claim."""
        if (lock := self._claims.pop(key, None)) is not None:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()

    def summaries(self) -> list[StoreSummary]:
        """Summarises the texts, kind by kind. Raises InputError."""
        columns = "about, count(*), sum(length(completion)), min(made), max(coalesce(used, made))"
        rows = self._do(f"SELECT {columns} FROM completions GROUP BY about ORDER BY about", ()).fetchall()
        return [
            StoreSummary(about or "", texts, size, first or "", used or "") for about, texts, size, first, used in rows
        ]

    def drop(self, before: str | None = None, about: str | None = None) -> int:
        """Removes the texts last used before this UTC day (None: any), of this kind (None: all); returns their number.

        Texts of unknown day count as old. Raises InputError.
        """
        unused = "(coalesce(used, made) IS NULL OR coalesce(used, made) < ?)"
        limits = {unused: before, "about = ?": about}
        given = tuple(value for value in limits.values() if value is not None)
        where = " AND ".join(clause for clause, value in limits.items() if value is not None) or "TRUE"
        dropped = self._do(f"DELETE FROM completions WHERE {where}", given).rowcount
        self._do("VACUUM", ())
        return dropped

    def close(self) -> None:
        """Closes the file and gives up all claims; a second call does nothing."""
        for key in [*self._claims]:
            self.release(key)
        self._db.close()

    def unusable(self, error: Exception) -> InputError:
        """Returns the error for a file that cannot be used."""
        return InputError(self._name, sentence=f"cannot use {self._path} as a SQLite file of this program: {error}")

    def _do(self, statement: str, given: tuple[str, ...]) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, given)
        except sqlite3.Error as error:
            raise self.unusable(error) from error

    def _open(self) -> sqlite3.Connection:
        """Opens the file, or a new one in place of a damaged file."""
        try:
            return _open_file(self._path)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _IN_ORDER:
                raise
            with FileLock(self._path.with_name(f"{self._path.name}.lock")):
                return self._repair()

    def _repair(self) -> sqlite3.Connection:
        with suppress(sqlite3.DatabaseError):
            # another program may have been faster
            return _open_file(self._path)
        day = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
        aside = self._path.with_name(f"{self._path.name}.damaged-{day}")
        for end in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                self._path.with_name(f"{self._path.name}{end}").replace(aside.with_name(f"{aside.name}{end}"))
        db = _open_file(self._path)
        rows = list(_salvaged(aside))
        db.executemany(f"INSERT OR REPLACE INTO completions ({', '.join(_ALL)}) VALUES (?, ?, ?, ?, ?, ?)", rows)
        self.remark = f"{self._path} was damaged: {len(rows)} replies of it are kept, the rest is in {aside}"
        return db


def texts_with(path: Path, part: str) -> Iterator[tuple[str, str]]:
    """Yields key and text of each row whose text holds this part and matches its checksum, as far as a damaged file can be read. Leaves
    the file as it is; yields nothing where there is none."""
    columns, where = "CAST(key AS BLOB), CAST(completion AS BLOB), CAST(checksum AS BLOB)", "instr(completion, ?)"
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", _LOCK_WAIT_S, uri=True)) as db,
    ):
        for key, value, checksum in db.execute(f"SELECT {columns} FROM completions WHERE {where}", (part,)):
            with suppress(UnicodeError, TypeError, AttributeError):
                if checksum == _checksum(key.decode(), value):
                    yield key.decode(), value.decode()


_ALL = ("key", "completion", *COLUMNS)
"""The columns, in the order in which rows are written."""
_SCANS = ("rowid", "rowid DESC", "key", "key DESC")
"""Orders of scanning: a damaged page ends a scan, and rows behind it are found from the other end."""
_IN_ORDER = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY),
        *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
    }
)
"""Errors that do not mean a damaged file."""


def _open_file(path: Path) -> sqlite3.Connection:
    """Opens the file in autocommit mode. Raises sqlite3.Error, also for a damaged file."""
    # opened in one thread, used in another that runs the event loop
    db = sqlite3.connect(path, timeout=_LOCK_WAIT_S, isolation_level=None, check_same_thread=False)
    db.text_factory = lambda value: value.decode(errors="replace")
    try:
        _set_journal(db, "DELETE" if _file_system(path) in NETWORK else "WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        later = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        db.execute(f"CREATE TABLE IF NOT EXISTS completions (key TEXT PRIMARY KEY, completion TEXT NOT NULL, {later})")
        # the index too: a key missing from it would be paid for again
        verdict = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    except BaseException:
        # any error is passed on, but the file must not stay open
        db.close()
        raise
    return db


def _set_journal(db: sqlite3.Connection, mode: str) -> None:
    """Sets the journal mode, waiting for programs that open the file too: SQLite itself does not wait here."""
    ends = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            db.execute(f"PRAGMA journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
        time.sleep(0.02)


def _salvaged(path: Path) -> Iterator[tuple[str | None, ...]]:
    """Yields the rows of a damaged file that match their checksums, each read by itself so that none hides another."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.text_factory = bytes
        # lets SQLite read a file that is shorter than its header says
        db.execute("PRAGMA writable_schema = ON")
        known = {column[1].decode() for column in db.execute("PRAGMA table_info(completions)")}
        columns = ", ".join(f"CAST({name} AS BLOB)" if name in known else "NULL" for name in _ALL)
        row_ids: set[int] = set()
        for order in _SCANS:
            with suppress(sqlite3.Error):
                row_ids.update(row_id for (row_id,) in db.execute(f"SELECT rowid FROM completions ORDER BY {order}"))
        for row_id in sorted(row_ids):
            with suppress(sqlite3.Error, UnicodeError, TypeError, AttributeError):
                row = db.execute(f"SELECT {columns} FROM completions WHERE rowid = ?", (row_id,)).fetchone()
                if row is not None and row[2] == _checksum(row[0].decode(), row[1]):
                    yield tuple(None if value is None else value.decode() for value in row)


def _file_system(path: Path) -> str:
    """Returns the type of the file system that holds the file; empty if unknown."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    mounts = {fields[1].replace("\\040", " "): fields[2] for line in lines if len(fields := line.split()) > 2}
    place = path.resolve()
    return next((mounts[str(above)] for above in (place, *place.parents) if str(above) in mounts), "")


def _day() -> str:
    return datetime.now(UTC).date().isoformat()


def _checksum(key: str, value: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + value).hexdigest()[:16].encode()
