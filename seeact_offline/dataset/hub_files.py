"""The published layout on the hub: the parquet files of one split at one commit, each fetched when a row of it is read.

Order, fingerprint and numbers of rows need a few small columns, which are read from the files in parts and kept. So a
run of some tasks fetches the files that hold them and no others, and begins when the first one is there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from ..files import hub
from ..files.digest import cache_folder, cached_file_digest
from ..records import DatasetError
from .readers import ParquetFiles, first_line
from .rows import LIGHT_COLUMNS

_AT_ONCE = 8
"""Files whose small columns are read at the same time."""
_NAMES = b"seeact_columns"
"""Key under which a file of small columns has the names of all columns."""


@dataclass(frozen=True, slots=True)
class HubFiles(ParquetFiles):
    """Parquet files of a data set on the hub. `paths`: where they lie once they are fetched."""

    repo: hub.HubRepo

    def columns(self) -> list[str]:
        # a file takes some twenty requests, whose answers are small and slow to come
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._keep_light, self.paths))
        return ParquetFiles.columns(self)

    def sizes(self) -> list[int]:
        return [self._file(path).size for path in self.paths]

    def stamp(self) -> list[object]:
        return []

    def digest(self) -> str:
        with hub.errors_as(DatasetError, "dataset"):
            return " ".join(self._file(path).sha256 or cached_file_digest(self.whole_file(path)) for path in self.paths)

    def picture_paths(self) -> Iterator[str]:
        """None: no picture of the hub is given by a path."""
        yield from ()

    def expect(self, paths: Sequence[Path]) -> None:
        # not hours later, when the others are read
        if hub.unreachable():
            for path in paths:
                self.whole_file(path)

    def whole_file(self, path: Path, following: Path | None = None) -> Path:
        with hub.errors_as(DatasetError, "dataset"):
            self.repo.fetch(self._file(path))
        if following is not None and not hub.unreachable():
            # while the rows of this one are read; what goes wrong is met again when it is needed
            Thread(target=self._fetch_silently, args=(following,), daemon=True).start()
        return path

    def _fetch_silently(self, path: Path) -> None:
        with suppress(hub.HubError):
            self.repo.fetch(self._file(path), is_ahead=True)

    def light_file(self, path: Path, columns: Sequence[str] = LIGHT_COLUMNS) -> Path:
        if not set(columns) <= set(LIGHT_COLUMNS):
            return self.whole_file(path)
        kept = self._kept(path)
        # a user without a cache folder reads the file itself
        return kept if kept.is_file() else self.whole_file(path)

    def _kept(self, path: Path) -> Path:
        """The place of a file's small columns."""
        file = self._file(path)
        named = file.sha256 or hashlib.sha256(f"{self.repo.name}@{self.repo.commit}/{file.name}".encode()).hexdigest()
        return cache_folder() / "hub" / "rows" / f"{named}.parquet"

    def _keep_light(self, path: Path) -> None:
        """Keeps the small columns of a file, read in parts where it is not here. Raises DatasetError."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, kept = self._file(path), self._kept(path)
        with suppress(OSError, pa.ArrowException):
            pq.read_schema(kept)
            return

        def light(source: Any) -> tuple[list[str], pa.Table]:
            try:
                with pq.ParquetFile(source, pre_buffer=True) as parquet:
                    names = parquet.schema_arrow.names
                    return names, parquet.read([name for name in LIGHT_COLUMNS if name in names])
            except pa.ArrowException as error:
                sentence = f"cannot read {file.name} of {self.repo.name}: {first_line(error)}"
                raise DatasetError("dataset", sentence=sentence) from error

        with hub.errors_as(DatasetError, "dataset"):
            local = self.repo.fetch(file) if hub.unreachable() else self.repo.local(file)
            names, table = self.repo.read_parts(file, light) if local is None else light(local)
        table = table.replace_schema_metadata({_NAMES: json.dumps(names)})
        hub.put(kept, lambda draft: pq.write_table(table, draft))

    def _names(self, path: Path) -> list[str]:
        import pyarrow.parquet as pq

        light = self.light_file(path)
        return list(
            json.loads((pq.read_schema(light).metadata or {}).get(_NAMES, "null")) or pq.read_schema(light).names
        )

    def _file(self, path: Path) -> hub.HubFile:
        return next(file for file in self.repo.files if self.repo.place(file) == path)
