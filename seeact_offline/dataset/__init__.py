"""Raw rows (the hub's parquet layout, JSONL, a hub id, a `datasets` object) -> `Step`, lazily, by split.

Rows come task by task, and a task's steps in order, however they are stored. Memory stays flat over a split: only one
row and a reader's buffers are held at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ..records import Step
from .rows import StoredScreenshot
from .split import SPLITS, TEST_SPLITS, Shard, Split, canonical_split, open_split

__all__ = [
    "SPLITS",
    "TEST_SPLITS",
    "Shard",
    "Split",
    "StoredScreenshot",
    "canonical_split",
    "load_steps",
    "open_split",
]


def load_steps(
    dataset: Any,
    split: str,
    *,
    limit: int | None = None,
    tasks: Collection[str] | None = None,
    raw_html: bool = False,
) -> Iterator[Step]:
    """The steps of a split, lazily; tasks in the order of their first row, steps by their index in the task.

    The arguments are those of `open_split`. Raises DatasetError at the call when there is no such data, split or
    column, and while iterating when a file turns out to be unreadable. What is wrong with a single row is in
    `Step.faults`.

    >>> step = next(load_steps("sample", "train"))
    >>> step.task
    'Find me a one-way business class flight from Lisbon to Vienna leaving on May 14.'
    >>> step.operation.text, len(step.candidates), [one.tag for one in step.candidates if one.is_positive]
    ('CLICK', 565, ['input'])
    """
    return open_split(dataset, split, limit=limit, tasks=tasks, raw_html=raw_html).steps()
