"""The folder of a run's batches: files of requests for a server to carry out, and the files of replies that came back.

Each wave has a folder `wave-N`: its requests in files of limited size (`requests-001.jsonl`, ...), `index.jsonl`
with the step of each request, and `wave.json`, written last: a wave without it was never finished, and is written
anew. Replies may lie in the wave's folder or in the folder itself, as files of any other name that ends with
`.jsonl`. `imported.json` closes a wave.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec
from filelock import FileLock, Timeout

from seeact_offline.files.digest import file_digest
from seeact_offline.files.formats import decoded
from seeact_offline.files.named import read_regular
from seeact_offline.files.redaction import redact_values
from seeact_offline.files.whole import replace_text
from seeact_offline.models.batch import PendingRequest
from seeact_offline.models.http_client import MAX_REPLY_BYTES
from seeact_offline.records import InputError
from seeact_offline.runs.folder import worded

# limits of one file, as OpenAI takes it
MAX_BYTES = 200_000_000
MAX_REQUESTS = 50_000
_WAVE = re.compile(r"wave-([1-9]\d{0,5})")
_OURS = re.compile(r"requests-\d+\.jsonl|index\.jsonl")


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """The most that a file of requests may hold. A larger request has a file of its own."""

    bytes: int = MAX_BYTES
    requests: int = MAX_REQUESTS


class Shard(msgspec.Struct, frozen=True):
    """One file of requests."""

    file: str
    sha256: str
    bytes: int
    requests: int


class WaveFile(msgspec.Struct, frozen=True):
    """`wave.json`."""

    wave: int
    url: str
    identity: dict[str, Any]
    requests: int
    shards: list[Shard]
    schema: int = 1


class Closing(msgspec.Struct, frozen=True):
    """`imported.json`: the outcome of a wave."""

    failed: dict[str, tuple[str, str]]
    """Requests that are not asked again: key -> the failure's name, what the server said."""
    refused: list[str]
    """`BatchCodec.refused` of this wave and those before."""
    counts: dict[str, int]
    schema: int = 1


@dataclass(frozen=True, slots=True)
class Wave:
    """One wave, as it lies in its folder."""

    path: Path
    file: WaveFile

    @property
    def number(self) -> int:
        return self.file.wave

    @property
    def submitted(self) -> Path:
        """The record of what has been sent."""
        return self.path / "submitted.json"

    @property
    def closing(self) -> Path:
        return self.path / "imported.json"

    @property
    def is_closed(self) -> bool:
        return self.closing.exists()

    def request_keys(self) -> Iterator[str]:
        """The keys of its requests. Raises InputError."""
        index = self.path / "index.jsonl"
        with worded(str(index), "batch"), index.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                with worded(f"line {number} of {index}", "batch"):
                    yield decoded(line, _IndexLine).id

    def check(self, shard: Shard) -> Path:
        """The file as it was written. Raises InputError for one that is not."""
        path = self.path / shard.file
        # the folder may be somebody else's: no other file of this machine is to be sent
        if not _OURS.fullmatch(shard.file) or not path.is_file() or file_digest(path) != shard.sha256:
            raise InputError("batch", sentence=f"{path} is not as it was exported; export the wave again")
        return path

    def close(self, closing: Closing) -> None:
        replace_text(self.closing, _written(closing))


class _IndexLine(msgspec.Struct):
    """The part of a line of `index.jsonl` that is read."""

    id: str


class BatchFolder:
    """The folder of all waves of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Makes the folder, and keeps others out of it inside. Raises InputError where one is at work in it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / ".lock")
            lock.acquire(blocking=False)
        except Timeout:
            raise InputError("batch", sentence=f"another process is at work in {self.path}; wait for it") from None
        except (NotImplementedError, OSError) as error:
            raise InputError("batch", sentence=f"cannot write and lock {self.path}: {error}") from None
        try:
            yield
        finally:
            lock.release()

    def waves(self) -> list[Wave]:
        """The waves that were finished, oldest first. Raises InputError."""
        waves = []
        for path in self.path.glob("wave-*"):
            if _WAVE.fullmatch(path.name) and (path / "wave.json").is_file():
                with worded(str(path / "wave.json"), "batch"):
                    waves.append(Wave(path, decoded(read_regular(path / "wave.json"), WaveFile)))
        return sorted(waves, key=lambda wave: wave.number)

    def closings(self) -> list[Closing]:
        """The closings of waves, oldest first. Raises InputError."""
        closings = []
        for wave in self.waves():
            if wave.is_closed:
                with worded(str(wave.closing), "batch"):
                    closings.append(decoded(read_regular(wave.closing), Closing))
        return closings

    def results(self, waves: list[Wave]) -> list[Path]:
        """The files of replies."""
        folders = [self.path, *(wave.path for wave in waves)]
        paths = [path for folder in folders for path in sorted(folder.glob("*.jsonl"))]
        return [path for path in paths if path.is_file() and not _OURS.fullmatch(path.name)]


@dataclass
class WaveWriter:
    """Writes a wave; nothing of it is there before the first request, and no `wave.json` before `finish`."""

    path: Path
    number: int
    limits: ShardLimits
    turns: Counter[str] = field(default_factory=Counter)
    """Requests by the turn that they ask."""
    _shards: list[Shard] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _file: IO[bytes] | None = None
    _index: IO[bytes] | None = None
    _sum: Any = None
    _bytes: int = 0
    _requests: int = 0

    @property
    def requests(self) -> int:
        return len(self._seen)

    def add(self, missing: PendingRequest, line: bytes) -> None:
        """A request that is there already is left out."""
        if missing.key in self._seen:
            return
        if self._index is None:
            self.path.mkdir(parents=True, exist_ok=True)
            # a wave of this number that was not finished, or never carried out
            (self.path / "wave.json").unlink(missing_ok=True)
            for path in self.path.iterdir():
                if _OURS.fullmatch(path.name):
                    path.unlink()
            self._index = (self.path / "index.jsonl").open("wb")
        if self._file is None or self._requests >= self.limits.requests or self._bytes + len(line) > self.limits.bytes:
            self._end_shard()
            self._file, self._sum = (self.path / self._name).open("wb"), hashlib.sha256()
        self._file.write(line)
        self._sum.update(line)
        self._bytes += len(line)
        self._requests += 1
        self._seen.add(missing.key)
        request = missing.request
        whose = {"id": missing.key, **request.key._asdict(), "group": request.group, "turn": request.turn}
        self._index.write(json.dumps(whose).encode() + b"\n")
        self.turns[f"turn {request.turn}"] += 1

    def finish(self, url: str, identity: Mapping[str, object]) -> Wave | None:
        """The wave; None where there was no request."""
        if self._index is None:
            return None
        self.close()
        file = WaveFile(self.number, url, dict(identity), self.requests, self._shards)
        replace_text(self.path / "wave.json", _written(file))
        return Wave(self.path, file)

    def close(self) -> None:
        """Closes the files. Safe to call twice."""
        self._end_shard()
        if self._index is not None:
            self._index.close()

    @property
    def _name(self) -> str:
        return f"requests-{len(self._shards) + 1:03d}.jsonl"

    def _end_shard(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._shards.append(Shard(self._name, self._sum.hexdigest(), self._bytes, self._requests))
        self._file, self._bytes, self._requests = None, 0, 0


def result_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """The lines of a file of replies, numbered from 1; None for one that is longer than any reply may be."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_REPLY_BYTES + 1):
            number += 1
            if len(line) <= MAX_REPLY_BYTES:
                yield number, line
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_REPLY_BYTES)
            yield number, None


def _written(value: msgspec.Struct) -> str:
    return json.dumps(redact_values(msgspec.to_builtins(value)), indent=2) + "\n"
