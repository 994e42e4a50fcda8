"""Rows in the order of their tasks, however they are stored, in memory that stays flat."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..records import DatasetError, StepKey
from .rows import Row, RowPosition, read_index, row_key

if TYPE_CHECKING:
    import pyarrow as pa


def plan_rows(
    rows: Iterable[Row], limit: int | None, where: str, seen: dict[StepKey, str], wanted: Collection[str] | None = None
) -> list[RowPosition]:
    """Which rows to read, in which order: tasks by first appearance (the first `limit` of them), steps by index.

    `wanted`: ids of the tasks to choose from; None for all. `rows` need only `ORDER_COLUMNS`. `seen`: where each key was first
    met; new keys are added to it.
    """
    tasks: dict[str, list[RowPosition]] = {}
    for position, row in enumerate(rows):
        key = row_key(row)
        if wanted is not None and key.annotation_id not in wanted:
            continue
        if key.annotation_id in tasks or limit is None or len(tasks) < limit:
            place = RowPosition(key, read_index(row.get("target_action_index")), position)
            tasks.setdefault(key.annotation_id, []).append(place)
    ordered = (place for places in tasks.values() for place in sorted(places, key=_step_order))
    return [_mark_repeat(place, where, seen) for place in ordered]


def in_order(batches: Iterable[pa.RecordBatch], order: Sequence[int], where: str) -> Iterator[pa.RecordBatch]:
    """The rows at the positions `order` of a stream, one row per batch. The stream is read once, and no further than needed.

    A row that comes before its turn waits on disk.
    """
    wanted = set(order)
    stream = enumerate(batch.slice(at, 1) for batch in batches for at in range(batch.num_rows))
    with Spill() as spill:
        for position in order:
            while position not in spill:
                at, row = next(stream, (-1, None))
                if row is None:
                    raise DatasetError(
                        "dataset", f"row {position} in {where}, which had it a moment ago", "the end of its rows"
                    )
                if at == position:
                    yield row
                    break
                if at in wanted:
                    spill.put(at, row)
            else:
                yield spill.take(position)


class Spill:
    """Rows set aside in a temporary file, each as a small Arrow stream with its own schema."""

    def __init__(self) -> None:
        self._file: Any = None
        self._spans: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def __contains__(self, position: int) -> bool:
        return position in self._spans

    def put(self, position: int, row: pa.RecordBatch) -> None:
        import pyarrow as pa

        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="seeact-rows-")  # noqa: SIM115 (closed by __exit__)
        start = self._file.seek(0, 2)
        with pa.ipc.new_stream(self._file, row.schema) as writer:
            writer.write_batch(row)
        self._spans[position] = (start, self._file.tell() - start)

    def take(self, position: int) -> pa.RecordBatch:
        import pyarrow as pa

        start, length = self._spans.pop(position)
        self._file.seek(start)
        with pa.ipc.open_stream(self._file.read(length)) as reader:
            return reader.read_next_batch()


def _step_order(place: RowPosition) -> tuple[bool, int, int]:
    """By index; rows without a readable index last; ties as stored."""
    return place.index is None, place.index or 0, place.position


def _mark_repeat(place: RowPosition, where: str, seen: dict[StepKey, str]) -> RowPosition:
    here = f"row {place.position} of {where}"
    earlier = seen.setdefault(place.key, here)
    return place if earlier == here else replace(place, repeats=earlier)
