"""The four ways in which rows are stored, behind one class."""

from __future__ import annotations

import hashlib
import json
import tempfile
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..files.digest import cached_digest, cached_file_digest, file_stamp
from ..records import DatasetError
from .rows import LIGHT_COLUMNS, REQUIRED_COLUMNS, Row

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 4
"""Rows a batch: one has about 2 MB, and pyarrow holds a few batches at once."""
# without pages and pictures, a row has some hundred bytes
_LIGHT_BATCH_ROWS = 1000
_BUFFER_BYTES = 1 << 20
"""Bytes read at once; else pyarrow reads a whole column chunk, 10 GB if one row group holds a split."""


@dataclass(frozen=True, slots=True)
class Source(ABC):
    """The rows of one split, as mappings, with only the columns asked for."""

    name: str
    """Its name in messages."""
    folder: Path | None
    """The folder of pictures given by a path; None if no picture may be given by a path."""
    has_pages: ClassVar[bool] = True
    """False: its rows have neither HTML nor candidates other than the right box."""

    @abstractmethod
    def columns(self) -> list[str]:
        """The names of its columns."""

    @abstractmethod
    def count(self) -> int:
        """The number of rows."""

    @abstractmethod
    def digest(self) -> str:
        """The digest of all that it holds, pages and pictures included: equal for a copy, another after any change."""

    @abstractmethod
    def light(self, columns: Sequence[str]) -> Iterator[Row]:
        """All rows as stored, with a few small columns."""

    @abstractmethod
    def rows(self, columns: Sequence[str], order: Sequence[int]) -> Iterator[Row]:
        """The rows at these positions, in this order."""

    def sizes(self) -> list[int]:
        """The sizes of its files in bytes; empty when it has none."""
        return []

    def stamp(self) -> list[object]:
        """Values of which one changes whenever one of its files does; empty where they are not known."""
        return []

    def picture_paths(self) -> Iterator[str]:
        """The paths that rows give in the place of a picture."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Files(Source):
    """Files of one format, one after another."""

    paths: tuple[Path, ...]

    def sizes(self) -> list[int]:
        return [path.stat().st_size for path in self.paths]

    def stamp(self) -> list[object]:
        return [value for path in self.paths for value in (str(path.resolve()), *file_stamp(path))]

    def digest(self) -> str:
        """Raises DatasetError for a file that cannot be read."""
        digests = []
        for path in self.paths:
            with _naming(path):
                digests.append(cached_file_digest(path))
        return " ".join(digests)


@dataclass(frozen=True, slots=True)
class ParquetFiles(Files):
    """Parquet files, read page by page; files and row groups without a row that is asked for are passed over."""

    def columns(self) -> list[str]:
        """The columns that every file has. Raises DatasetError naming a file that lacks a required one."""
        schemas = []
        for path in self.paths:
            with _naming(path):
                schemas.append(self._names(path))
            check_names(schemas[-1], REQUIRED_COLUMNS, str(path))
        return [name for name in schemas[0] if all(name in names for names in schemas)]

    def count(self) -> int:
        return sum(map(self._n_rows, self.paths))

    def picture_paths(self) -> Iterator[str]:
        for row in self.light(["screenshot.path"]):
            yield from _path_of(row.get("screenshot"))

    def light(self, columns: Sequence[str]) -> Iterator[Row]:
        for path in self.paths:
            for _, batch in self._batches(self.light_file(path, columns), columns, _LIGHT_BATCH_ROWS):
                yield from (_row_at(batch, at) for at in range(batch.num_rows))

    def rows(self, columns: Sequence[str], order: Sequence[int]) -> Iterator[Row]:
        for batch in in_order(self._wanted(columns, sorted(order)), order, self.name):
            yield _row_at(batch, 0)

    def light_file(self, path: Path, columns: Sequence[str] = LIGHT_COLUMNS) -> Path:
        """A file with these columns of the rows of `path`."""
        return path

    def expect(self, paths: Sequence[Path]) -> None:
        """Hears which files will be read, before the first. Raises DatasetError where one cannot be had."""

    def whole_file(self, path: Path, following: Path | None = None) -> Path:
        """The file with all columns. `following`: the one that will be asked for next."""
        return path

    def _names(self, path: Path) -> list[str]:
        import pyarrow.parquet as pq

        return list(pq.read_schema(path).names)

    def _n_rows(self, path: Path) -> int:
        import pyarrow.parquet as pq

        with _naming(path):
            return int(pq.read_metadata(self.light_file(path)).num_rows)

    def _wanted(self, columns: Sequence[str], positions: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The batches that hold any of these positions, in ascending order, with the position of their first row."""
        starts = [0, *accumulate(map(self._n_rows, self.paths))]
        spans = [(path, start, end) for path, (start, end) in zip(self.paths, pairwise(starts), strict=True)]
        spans = [span for span in spans if _n_held(positions, *span[1:])]
        self.expect([path for path, _, _ in spans])
        for (path, start, _), following in zip_longest(spans, spans[1:]):
            file = self.whole_file(path, following[0] if following else None)
            inside = [position - start for position in positions]
            for at, batch in self._batches(file, columns, _BATCH_ROWS, inside):
                yield start + at, batch

    def _batches(
        self, path: Path, columns: Sequence[str], batch_rows: int, wanted: Sequence[int] | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        at = 0
        with _naming(path), pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            for group in range(file.num_row_groups):
                n_rows = file.metadata.row_group(group).num_rows
                n_wanted = n_rows if wanted is None else _n_held(wanted, at, at + n_rows)
                if n_wanted == 0:
                    at += n_rows
                    continue
                if n_wanted == 1 and wanted is not None:
                    position = wanted[bisect_left(wanted, at)]
                    yield position, _read_row(file, group, columns, position - at)
                    at += n_rows
                    continue
                for batch in file.iter_batches(
                    batch_size=batch_rows, row_groups=[group], columns=list(columns), use_threads=False
                ):
                    yield at, batch
                    at += batch.num_rows
                # a row group's dictionaries of pages and pictures may take 400 MB: free them before the next group's
                pa.default_memory_pool().release_unused()


def _read_row(file: Any, group: int, columns: Sequence[str], at: int) -> pa.RecordBatch:
    """One row of a row group, read a column at a time: with all columns at once its pages and pictures are decoded
    beside each other, which takes twice the memory."""
    import pyarrow as pa

    arrays: dict[str, pa.Array] = {}
    for name in columns:
        start = 0
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group], columns=[name], use_threads=False):
            if at < start + batch.num_rows:
                arrays |= zip(batch.schema.names, batch.slice(at - start, 1).columns, strict=True)
                break
            start += batch.num_rows
        pa.default_memory_pool().release_unused()
    return pa.RecordBatch.from_arrays([*arrays.values()], [*arrays])


def _n_held(positions: Sequence[int], start: int, end: int) -> int:
    """Counts the ascending positions from `start` up to, but not at, `end`."""
    return bisect_left(positions, end) - bisect_left(positions, start)


@dataclass(frozen=True, slots=True)
class JsonlFiles(Files):
    """JSONL files. Lines are found by offset, so no row has to wait."""

    def columns(self) -> list[str]:
        """The columns of the first row; a later row that lacks one reads as null there."""
        for path in self.paths:
            for number, line in self._lines(path):
                return list(_json_row(line, path, number))
        return list(REQUIRED_COLUMNS)

    def count(self) -> int:
        return sum(1 for path in self.paths for _ in self._lines(path))

    def picture_paths(self) -> Iterator[str]:
        for path in self.paths:
            for number, line in self._lines(path):
                # most rows hold their picture, and parsing them takes long
                if b'"path"' in line:
                    yield from _path_of(_json_row(line, path, number).get("screenshot"))

    def light(self, columns: Sequence[str]) -> Iterator[Row]:
        for path in self.paths:
            for number, line in self._lines(path):
                row = _json_row(line, path, number)
                yield {name: row.get(name) for name in columns}

    def rows(self, columns: Sequence[str], order: Sequence[int]) -> Iterator[Row]:
        with _naming(self.paths[0]):
            stamp = " ".join(f"{stat.st_mtime_ns} {stat.st_size}" for stat in (path.stat() for path in self.paths))
        index = _line_offsets(self.paths, stamp)
        for position in order:
            file, number, start = index[3 * position : 3 * position + 3]
            path = self.paths[file]
            with _naming(path), path.open("rb") as stream:
                stream.seek(start)
                line = stream.readline()
            row = _json_row(line, path, number)
            yield {name: row.get(name) for name in columns}

    def _lines(self, path: Path) -> Iterator[tuple[int, bytes]]:
        with _naming(path), path.open("rb") as stream:
            yield from ((number, line) for number, line in enumerate(stream, 1) if line.strip())


@lru_cache(maxsize=8)
def _line_offsets(paths: tuple[Path, ...], stamp: str) -> array[int]:
    """File, line and byte of each row. Cached while `stamp`, times and sizes, stays the same, so that steps can be
    opened one by one."""
    index = array("q")
    for file, path in enumerate(paths):
        start = 0
        with _naming(path), path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    index.extend((file, number, start))
                start += len(line)
    return index


@dataclass(frozen=True, slots=True)
class DatasetsTable(Source):
    """A table of `datasets`."""

    table: Any

    def light(self, columns: Sequence[str]) -> Iterator[Row]:
        yield from self.table.select_columns(list(columns))


@dataclass(frozen=True, slots=True)
class MappedTable(DatasetsTable):
    """A `datasets.Dataset`: memory-mapped, any row can be read directly."""

    def columns(self) -> list[str]:
        return list(self.table.column_names)

    def count(self) -> int:
        return len(self.table)

    def digest(self) -> str:
        # the library's own fingerprint changes with the table, but is not the same for every copy
        batches = self.table.with_format("arrow").iter(batch_size=_BATCH_ROWS)
        return cached_digest(f"table {self.table._fingerprint}", [len(self.table)], lambda: _digest_batches(batches))

    def rows(self, columns: Sequence[str], order: Sequence[int]) -> Iterator[Row]:
        table = self.table.select_columns(list(columns))
        for position in order:
            yield table[position]


@dataclass(frozen=True, slots=True)
class StreamedTable(DatasetsTable):
    """A `datasets.IterableDataset`: read once for the order and once for the rows."""

    def columns(self) -> list[str]:
        return list(self.table.column_names or next(iter(self.table), REQUIRED_COLUMNS))

    def count(self) -> int:
        return sum(1 for _ in self.light(["annotation_id"]))

    def digest(self) -> str:
        return _digest_batches(self.table.with_format("arrow").iter(batch_size=1))

    def rows(self, columns: Sequence[str], order: Sequence[int]) -> Iterator[Row]:
        table = self.table.select_columns(list(columns)).with_format("arrow")
        batches = enumerate(batch for part in table.iter(batch_size=1) for batch in part.to_batches())
        for batch in in_order(batches, order, self.name):
            yield _row_at(batch, 0)


def in_order(
    batches: Iterable[tuple[int, pa.RecordBatch]], order: Sequence[int], where: str
) -> Iterator[pa.RecordBatch]:
    """Yields the rows at the positions `order` of a stream, one row a batch. Reads the stream once, no further than
    needed.

    `batches`: each with the position of its first row.

    A row that comes before its turn waits on disk, as a small Arrow stream with its own schema.
    """
    import pyarrow as pa

    wanted = set(order)
    stream = ((start + at, batch.slice(at, 1)) for start, batch in batches for at in range(batch.num_rows))
    spans: dict[int, tuple[int, int]] = {}
    # no file is made before the first row has to wait
    with tempfile.SpooledTemporaryFile(max_size=1, prefix="seeact-rows-") as waiting:
        for position in order:
            while position not in spans:
                at, row = next(stream, (-1, None))
                if row is None:
                    expected = f"row {position} in {where}, which had it a moment ago"
                    raise DatasetError("dataset", expected, "the end of its rows")
                if at == position:
                    yield row
                    break
                if at in wanted:
                    start = waiting.seek(0, 2)
                    with pa.ipc.new_stream(waiting, row.schema) as writer:
                        writer.write_batch(row)
                    spans[at] = (start, waiting.tell() - start)
            else:
                start, length = spans.pop(position)
                waiting.seek(start)
                with pa.ipc.open_stream(waiting.read(length)) as reader:
                    yield reader.read_next_batch()


def _digest_batches(tables: Iterable[pa.Table]) -> str:
    """The digest of the rows, however they are laid out in memory."""
    import pyarrow as pa

    digest = hashlib.sha256()
    for table in tables:
        for batch in table.combine_chunks().to_batches():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema.remove_metadata()) as stream:
                stream.write_batch(batch.replace_schema_metadata(None))
            digest.update(sink.getvalue())
    return digest.hexdigest()


def _path_of(screenshot: object) -> Iterator[str]:
    """Yields the path of a picture, if the row gives one."""
    path = screenshot.get("path") if isinstance(screenshot, Mapping) else None
    if isinstance(path, str) and path:
        yield path


def _row_at(batch: pa.RecordBatch, at: int) -> dict[str, object]:
    """Text that is not UTF-8 reads as null, which makes it the row's fault and does not end the run."""
    row: dict[str, object] = {}
    for column, name in zip(batch.columns, batch.schema.names, strict=True):
        try:
            row[name] = column[at].as_py()
        except UnicodeDecodeError:
            row[name] = None
    return row


def _json_row(line: bytes, path: Path, number: int) -> dict[str, object]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        wanted = f"a JSON object as line {number} of {path}"
        raise DatasetError("dataset", wanted, f"no JSON: {first_line(error)}") from error
    if not isinstance(row, dict):
        raise DatasetError("dataset", f"a JSON object as line {number} of {path}", f"a {type(row).__name__}")
    return row


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turns errors of reading into a DatasetError that names the file."""
    import pyarrow as pa

    # bound now: an iterator that is left open ends with the interpreter, when pyarrow's names may be gone
    unreadable = (pa.ArrowException, OSError)
    try:
        yield
    except unreadable as error:
        raise DatasetError("dataset", sentence=f"cannot read {path}: {first_line(error)}") from error


def check_names(present: Sequence[str], needed: Sequence[str], where: str) -> None:
    """Raises DatasetError naming the columns of `needed` that are missing."""
    missing = [name for name in needed if name not in present]
    if missing:
        raise DatasetError("dataset", f"the columns {', '.join(missing)} in {where}", ", ".join(present) or "none")


def first_line(error: BaseException) -> str:
    """The first line of an error, so that our message stays one sentence."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
