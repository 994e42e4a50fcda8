"""Raw rows (the hub's parquet layout, JSONL, a hub id, a `datasets` object) -> `Step`, lazily, by split.

Rows come out task by task, the steps of a task in order, however they are stored. Memory stays flat over a split:
only one row and a reader's buffers are held at a time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any

from ..records import DatasetError, Step, StepKey
from .order import plan_rows
from .readers import Source
from .rows import LIGHT_COLUMNS, ORDER_COLUMNS, RowPosition, StoredScreenshot
from .shards import Shard, by_file, whole, without_pictures
from .sources import ALL, SPLITS, TEST_SPLITS, open_sources

__all__ = [
    "SPLITS",
    "TEST_SPLITS",
    "Shard",
    "StoredScreenshot",
    "canonical_split",
    "count_steps",
    "fingerprint",
    "load_steps",
    "load_tasks",
    "row_positions",
    "step_keys",
    "step_shards",
]


def canonical_split(name: str) -> str:
    """`test_task` -> `cross_task` and so on; our own names and `all` stay. Raises DatasetError for any other."""
    if name in SPLITS or name == ALL:
        return name
    for canonical, hub in SPLITS.items():
        if name == hub:
            return canonical
    known = ", ".join(dict.fromkeys([*SPLITS, *SPLITS.values(), ALL]))
    raise DatasetError(f"split: expected one of {known}; got {name!r}")


def load_steps(
    dataset: Any,
    split: str,
    *,
    limit: int | None = None,
    tasks: Collection[str] | None = None,
    raw_html: bool = False,
) -> Iterator[Step]:
    """The steps of a split, lazily; tasks in the order of their first row, steps by their index in the task.

    `dataset`: a folder (`data/test_domain-*.parquet`, or such files or `test_domain*.jsonl` directly in it), a
    `.parquet` or `.jsonl` file, a `datasets` object, or a hub id `owner/name`. `split`: either spelling, or `all` for
    the three test splits one after another. A file, or an object without splits, is taken as the split asked for.
    `tasks`: ids of the tasks to read; None for all. `limit`: the first so many of them. `raw_html` is not even read from disk unless asked for.

    Raises DatasetError at the call when there is no such data, split or column, and while iterating when a file
    turns out to be unreadable. What is wrong with a single row is in `Step.faults`.
    """
    _check_limit(limit)
    sources = open_sources(dataset, canonical_split(split), raw_html=raw_html)
    return _steps(sources, limit, tasks, raw_html)


def load_tasks(dataset: Any, split: str, *, limit: int | None = None, raw_html: bool = False) -> Iterator[list[Step]]:
    """As `load_steps`, one list of steps a task."""
    steps = load_steps(dataset, split, limit=limit, raw_html=raw_html)
    return (list(group) for _, group in groupby(steps, key=lambda step: step.annotation_id))


def count_steps(dataset: Any, split: str, *, limit: int | None = None) -> int:
    """How many steps `load_steps` would give. Reads no page and no picture where the format allows."""
    _check_limit(limit)
    sources = open_sources(dataset, canonical_split(split))
    if limit is None:
        return sum(source.count() for source in sources)
    return sum(len(plan) for _, plan in _plans(sources, limit))


def step_keys(
    dataset: Any, split: str, *, limit: int | None = None, tasks: Collection[str] | None = None
) -> list[StepKey]:
    """The keys of the steps that `load_steps` would give, in its order. Reads no page and no picture."""
    _check_limit(limit)
    return [
        place.step_key
        for _, plan in _plans(open_sources(dataset, canonical_split(split)), limit, tasks)
        for place in plan
    ]


def step_shards(dataset: Any, split: str, *, limit: int | None = None) -> list[Shard]:
    """The steps that `load_steps` would give, in parts that can be read at the same time, on other machines too.

    No picture is read: every step has the fault `no_screenshot`. Within a part, rows come as they are stored.
    """
    _check_limit(limit)
    plans = _plans(open_sources(dataset, canonical_split(split)), limit)
    return [part for source, plan in plans for part in by_file(without_pictures(whole(source, plan)))]


def row_positions(dataset: Any, split: str) -> dict[StepKey, int]:
    """Where the rows of the steps are stored, counted over the split's files in their order."""
    positions: dict[StepKey, int] = {}
    start = 0
    for _, plan in _plans(open_sources(dataset, canonical_split(split)), None):
        positions |= {place.step_key: start + place.position for place in plan}
        start += len(plan)
    return positions


def fingerprint(dataset: Any, split: str) -> str:
    """16 hex digits that change when ids, tasks, operations, actions, their order or the files' sizes change.

    Reads no HTML, no candidates and no picture (JSONL has to be parsed whole for that).
    """
    digest = hashlib.sha256()
    for source in open_sources(dataset, canonical_split(split)):
        digest.update(json.dumps(list(source.sizes())).encode())
        for row in source.light(LIGHT_COLUMNS):
            values = [row.get(name) for name in LIGHT_COLUMNS]
            digest.update(json.dumps(values, default=str).encode() + b"\n")
    return digest.hexdigest()[:16]


def _steps(sources: list[Source], limit: int | None, tasks: Collection[str] | None, raw_html: bool) -> Iterator[Step]:
    for source, plan in _plans(sources, limit, tasks):
        yield from whole(source, plan, raw_html).steps()


def _plans(
    sources: list[Source], limit: int | None, tasks: Collection[str] | None = None
) -> Iterator[tuple[Source, list[RowPosition]]]:
    """For each source its rows in order, `limit` of the `tasks` over all of them."""
    seen: dict[StepKey, str] = {}
    for source in sources:
        if limit is None or limit > 0:
            plan = plan_rows(source.light(ORDER_COLUMNS), limit, source.name, seen, tasks)
            yield source, plan
            limit = None if limit is None else limit - len({place.key.annotation_id for place in plan})


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise DatasetError(f"limit: expected a number of tasks of at least 1, got {limit}")
