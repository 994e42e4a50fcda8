"""Score files: ours in parquet, and the official pickle."""

from __future__ import annotations

import json
import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from seeact_offline.dataset import Split, open_split
from seeact_offline.files.digest import file_digest
from seeact_offline.files.formats import described
from seeact_offline.pages.dom import Page
from seeact_offline.records import DatasetError, ScoreFileError, Step, StepKey

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

SCORE_FILES = (".parquet", ".pkl", ".pickle")
"""Endings of score files."""
COLUMNS = ("annotation_id", "action_uid", "backend_node_id", "score", "rank")
KEY_COLUMNS = COLUMNS[:2]
METADATA = b"seeact_offline"
"""The key of the origin in a parquet file's metadata."""
# bounds the memory that writing takes: a split has millions of rows
ROWS_AT_ONCE = 200_000
StepScores = Mapping[str, tuple[float, int | None]]
"""backend_node_id -> (score, rank from 0 or None where ranks are not known)."""


class Scores(Protocol):
    """Ranker scores of steps: from a file, or made on request."""

    @property
    def digest(self) -> str:
        """A short text that identifies what the scores depend on."""

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        """The step's scores, or None if there are none. `page`: the step's page, if it is already parsed."""


class ScoreRow(NamedTuple):
    """One line of a score file."""

    key: StepKey
    backend_node_id: str
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a score file, according to its metadata."""

    dataset_fingerprint: str
    split: str
    limit: int | None
    """Number of tasks; None for all."""
    ranker_digest: str
    text_version: int
    ranker: str = field(default="", compare=False)
    """Its name as given; `ranker_digest` identifies it."""
    texts_truncated: int | None = field(default=None, compare=False)
    left_out: Mapping[str, tuple[str, str]] = field(default_factory=dict, compare=False)
    """Steps that could not be ranked, with the failure's name and detail."""
    parts: tuple[str, ...] = field(default=(), compare=False)
    """The names of the rankers and score files that the ranker fuses; none for any other ranker."""


class FileScores(ABC):
    """The scores of the steps in a file."""

    origin: Origin | None = None
    """The origin of the file; None if it has none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    @abstractmethod
    def keys(self) -> frozenset[str]:
        """`<annotation_id>_<action_uid>` of every step in the file."""

    @cached_property
    def digest(self) -> str:
        return file_digest(self._path)

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        return self.at(step.key)

    @abstractmethod
    def at(self, key: StepKey) -> StepScores | None:
        """The scores of a step by its key; None if there are none."""


def schema() -> pa.Schema:
    """The Arrow schema of a score file."""
    import pyarrow as pa

    types = (pa.string(), pa.string(), pa.string(), pa.float64(), pa.int32())
    return pa.schema(list(zip(COLUMNS, types, strict=True)))


def read_scores(path: str | Path) -> FileScores:
    """A score file: our `.parquet` or an official pickle. Raises ScoreFileError."""
    path = Path(path)
    if not os.path.isfile(path):
        raise ScoreFileError("scores", "a .parquet or .pkl file", f"no file at {path}")
    return PickledScores(path) if path.suffix in SCORE_FILES[1:] else ParquetScores(path)


def write_scores(path: str | Path, rows: Iterable[ScoreRow], origin: Origin | None = None) -> None:
    """Writes a score file for `read_scores`, some rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columned = schema()
    if origin is not None:
        columned = columned.with_metadata({METADATA: json.dumps(asdict(origin))})
    left = iter(rows)
    # scores of a fusion have many values: their bytes side by side take half of the room
    packed: dict[str, Any] = {"compression": "zstd", "use_byte_stream_split": ["score"]}
    packed["use_dictionary"] = [name for name in COLUMNS if name != "score"]
    with pq.ParquetWriter(path, columned, write_page_checksum=True, **packed) as writer:
        while some := list(islice(left, ROWS_AT_ONCE)):
            columns = [
                [row.key.annotation_id for row in some],
                [row.key.action_uid for row in some],
                [row.backend_node_id for row in some],
                [row.score for row in some],
                [row.rank for row in some],
            ]
            writer.write_table(pa.table(columns, schema=columned))


def write_official(path: str | Path, rows: Iterable[ScoreRow]) -> None:
    """Writes the official pickle: plain dictionaries, `{"scores"|"ranks": {step: {backend_node_id: x}}}`."""
    scores: dict[str, dict[str, float]] = {}
    ranks: dict[str, dict[str, int]] = {}
    for row in rows:
        scores.setdefault(str(row.key), {})[row.backend_node_id] = row.score
        ranks.setdefault(str(row.key), {})[row.backend_node_id] = row.rank
    with Path(path).open("wb") as file:
        pickle.dump({"scores": scores, "ranks": ranks}, file, protocol=4)


def check_dataset(scores: FileScores, split: Split, source: str) -> None:
    """Raises ScoreFileError if the file says that it was made from other data. A file that does not say is accepted."""
    if scores.origin is None:
        return
    try:
        # of the file's split: scores of all splits serve for one of them, and the other way round
        same = split.name == scores.origin.split
        fingerprint = (split if same else open_split(split.dataset, scores.origin.split)).fingerprint
    except DatasetError:
        return
    if fingerprint != scores.origin.dataset_fingerprint:
        raise ScoreFileError(
            "scores",
            f"scores of {split.dataset} ({scores.origin.split}, fingerprint {fingerprint})",
            f"{source}, made from another data set (fingerprint {scores.origin.dataset_fingerprint})",
        )


class ParquetScores(FileScores):
    """Our score file. Stays columnar in memory; a step's rows are only read when asked for."""

    def __init__(self, path: Path) -> None:
        import numpy as np

        super().__init__(path)
        table, self.origin = _read_table(path)
        tasks, uids = (table[name].combine_chunks() for name in KEY_COLUMNS)
        width = max(1, len(uids.dictionary))
        # one number per step
        numbers = _codes(tasks) * width + _codes(uids)
        begins = _run_begins(numbers)
        if len(np.unique(numbers[begins])) < len(begins):
            # the rows of a step are not all next to each other
            order = np.argsort(numbers, kind="stable")
            table, numbers = table.take(order), numbers[order]
            begins = _run_begins(numbers)
        self._columns = [table[name].combine_chunks() for name in COLUMNS[2:]]
        task_names, uid_names = tasks.dictionary.to_pylist(), uids.dictionary.to_pylist()
        keys = [StepKey(task_names[n // width], uid_names[n % width]) for n in numbers[begins].tolist()]
        spans = map(_Span, keys, begins.tolist(), np.diff(begins, append=len(numbers)).tolist())
        self._spans = {str(span.key): span for span in spans}

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(self._spans)

    def at(self, key: StepKey) -> StepScores | None:
        span = self._spans.get(str(key))
        return None if span is None else {row.backend_node_id: (row.score, row.rank) for row in self._rows(span)}

    def rows(self, without: Collection[StepKey] = ()) -> Iterator[ScoreRow]:
        """Its rows as they are stored, except those of some steps."""
        for span in self._spans.values():
            if span.key not in without:
                yield from self._rows(span)

    def _rows(self, span: _Span) -> Iterator[ScoreRow]:
        columns = (column.slice(span.begin, span.size).to_pylist() for column in self._columns)
        return (ScoreRow(span.key, *values) for values in zip(*columns, strict=True))


class _Span(NamedTuple):
    """The range of a step's rows."""

    key: StepKey
    begin: int
    size: int


def _read_table(path: Path) -> tuple[pa.Table, Origin | None]:
    """The checked columns of a score file, and its origin; keys become dictionary codes, for a tenth of the memory.

    `pq.read_table` and `to_numpy` would do, but they load pandas.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, read_dictionary=list(KEY_COLUMNS), page_checksum_verification=True) as file:
            table = file.read(columns=list(COLUMNS)).select(COLUMNS)
            origin = _origin((file.schema_arrow.metadata or {}).get(METADATA))
        table = pa.table([_typed(table[field.name], field) for field in schema()], names=COLUMNS)
        # refuses texts that are not UTF-8
        table.validate(full=True)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        from seeact_offline.ranking.score_pickles import one_line

        columns = ", ".join(COLUMNS)
        raise ScoreFileError("scores", f"parquet with columns {columns}", f"{path}: {one_line(error)}") from None
    empty = next((name for name in COLUMNS[:4] if table[name].null_count), None)
    if empty is not None:
        raise ScoreFileError("scores", "a value in every row", f"an empty {empty} in {path}")
    if not pc.all(pc.is_finite(table["score"]), min_count=0).as_py():
        raise ScoreFileError("scores", "finite scores", f"NaN or infinity in {path}")
    if pc.any(pc.less(table["rank"], 0)).as_py():
        raise ScoreFileError("scores", "ranks from 0", f"{pc.min(table['rank'])} in {path}")
    return table, origin


def _origin(text: bytes | None) -> Origin | None:
    """Fields that a later version adds are ignored; metadata that is not ours counts as none."""
    try:
        origin: Origin | None = msgspec.json.decode(text or b"null", type=described(Origin | None))
        return origin
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _typed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """The column as texts or numbers. Raises ValueError for booleans and dates, which a cast would turn into either."""
    import pyarrow as pa

    encoded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if encoded else column.type
    if pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        raise ValueError(f"{field.name} holds {kind}")
    if field.name not in KEY_COLUMNS:
        return column.cast(field.type)
    codes = column if encoded else column.cast(field.type).dictionary_encode()
    # codes of texts, also where the file only says bytes
    return codes.cast(pa.dictionary(pa.int32(), field.type))


def _codes(column: pa.DictionaryArray) -> np.ndarray:
    import numpy as np

    return np.from_dlpack(column.indices).astype(np.int64)


def _run_begins(numbers: np.ndarray) -> np.ndarray:
    """The places where a number differs from the one before it."""
    import numpy as np

    return np.flatnonzero(np.diff(numbers, prepend=-1))


class PickledScores(FileScores):
    """The official pickle: `{"scores"|"ranks": {"<annotation_id>_<action_uid>": {backend_node_id: x}}}`."""

    def __init__(self, path: Path) -> None:
        from seeact_offline.ranking.score_pickles import read_tables

        super().__init__(path)
        self._scores, self._ranks = read_tables(path)

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(self._scores)

    def at(self, key: StepKey) -> StepScores | None:
        scores = self._scores.get(str(key))
        if scores is None:
            return None
        ranks = self._ranks.get(str(key), {})
        return {node: (float(score), ranks.get(node)) for node, score in scores.items()}
