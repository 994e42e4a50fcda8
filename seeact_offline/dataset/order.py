"""Rows in the order of their tasks, however they are stored, in memory that stays flat."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..records import DatasetError, StepKey
from .rows import Row, RowPosition, read_index, row_key

if TYPE_CHECKING:
    import pyarrow as pa


def plan_rows(
    rows: Iterable[Row], limit: int | None, where: str, seen: dict[StepKey, str], wanted: Collection[str] | None = None
) -> list[RowPosition]:
    """Plans which rows to read and in which order: tasks by first appearance (the first `limit` of them), steps by index.

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
    plan = []
    for places in tasks.values():
        # rows without a readable index come last, ties as stored
        for place in sorted(places, key=lambda place: (place.index is None, place.index or 0, place.position)):
            here = f"row {place.position} of {where}"
            earlier = seen.setdefault(place.key, here)
            plan.append(place if earlier == here else replace(place, repeats=earlier))
    return plan


def in_order(
    batches: Iterable[tuple[int, pa.RecordBatch]], order: Sequence[int], where: str
) -> Iterator[pa.RecordBatch]:
    """Yields the rows at the positions `order` of a stream, one row a batch. Reads the stream once, no further than needed.

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
