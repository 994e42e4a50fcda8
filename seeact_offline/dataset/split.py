"""One split of a data set, opened once: its keys, tasks and fingerprint, and its steps, read lazily."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from ..records import DatasetError, RowError, Step, StepKey
from .order import plan_rows
from .readers import Files, Source
from .recorded import FINAL_SCREENSHOT
from .rows import LIGHT_COLUMNS, ORDER_COLUMNS, RAW_HTML, RowPosition, StoredScreenshot, read_step, row_key
from .sources import ALL, SPLITS, TEST_SPLITS, open_sources, pinned, wanted_columns


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows of a source, or of one of its files, and which columns to read. Small, so several processes can share a split."""

    source: Source
    columns: tuple[str, ...]
    places: tuple[RowPosition, ...]
    """The rows in the order of `steps`."""
    start: int = 0
    """Position of the source's first row, in the numbering of `places`."""
    split: str = ""
    """The split of its steps."""

    def steps(self) -> Iterator[Step]:
        """Raises DatasetError when a file cannot be read, or no longer has the rows that `places` names."""
        rows = self.source.rows(self.columns, [place.position - self.start for place in self.places])
        for place, row in zip(self.places, rows, strict=True):
            # `places` come from a first reading: a stream that shuffles anew each time would give wrong histories
            if row_key(row) != place.key:
                expected = f"{place.key} as row {place.position} of {self.source.name}"
                raise DatasetError("dataset", expected, f"{row_key(row)}: it gives other rows when read again")
            step = read_step(row, place, self.source.folder, RAW_HTML in self.columns, self.source.has_pages)
            yield replace(step, split=self.split)

    def by_file(self) -> list[Shard]:
        """The same rows, one shard a file, each file's rows as they are stored. A source without files stays whole."""
        if not isinstance(self.source, Files):
            return [self]
        shards, start = [], 0
        for path in self.source.paths:
            file = replace(self.source, paths=(path,))
            stop = start + file.count()
            inside = [place for place in self.places if start <= place.position < stop]
            places = tuple(sorted(inside, key=lambda place: place.position))
            if places:
                shards.append(replace(self, source=file, places=places, start=start))
            start = stop
        return shards

    def without_pictures(self) -> Shard:
        """The same rows, each with the fault `no_screenshot`: most of a row's bytes are its picture."""
        return replace(
            self, columns=tuple(name for name in self.columns if name not in ("screenshot", FINAL_SCREENSHOT))
        )


def _shard(source: Source, places: Sequence[RowPosition], split: str, raw_html: bool = False) -> Shard:
    """All these rows, in this order."""
    return Shard(source, tuple(wanted_columns(source, raw_html)), tuple(places), split=split)


@dataclass(frozen=True)
class Split:
    """The steps of a split, or of some of its tasks, task by task. Made by `open_split`.

    Nothing is read before it is asked for; what is small is read once.
    """

    dataset: Any
    """The path, name or object that the user gave; a name on the hub with its commit, `OWNER/NAME@COMMIT`."""
    name: str
    """train, cross_task, cross_website, cross_domain or all."""
    sources: tuple[Source, ...]
    """One per split; three for `all`."""
    limit: int | None = None
    """Number of tasks to read; None for all."""
    wanted: Collection[str] | None = None
    """Ids of the tasks to choose from; None for all."""
    raw_html: bool = False

    @cached_property
    def keys(self) -> tuple[StepKey, ...]:
        """Keys of the steps, in order. Reads no page and no picture. Raises DatasetError for a split without rows."""
        found = tuple(place.step_key for _, plan in self._plans for place in plan)
        if not found and self.wanted is None:
            raise DatasetError("dataset", f"rows of {self.name}", f"none in {', '.join(s.name for s in self.sources)}")
        return found

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The `annotation_id` of each task, in order."""
        return tuple(dict.fromkeys(key.annotation_id for key in self.keys))

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that change when ids, tasks, operations, actions, their order or the files' sizes change.

        Covers the whole split, whatever `limit` and `wanted` leave of it. Reads no HTML, no candidates and no picture (JSONL
        has to be parsed whole).
        """
        digest = hashlib.sha256()
        for source in self.sources:
            digest.update(json.dumps(list(source.sizes())).encode())
            for row in source.light(LIGHT_COLUMNS):
                values = [row.get(name) for name in LIGHT_COLUMNS]
                digest.update(json.dumps(values, default=str).encode() + b"\n")
        return digest.hexdigest()[:16]

    @cached_property
    def content_digest(self) -> str:
        """16 hex digits that change whenever anything in the split changes, pages and pictures included, and only then.

        Reads every file once; later calls compare sizes and times. Raises DatasetError.
        """
        digest = hashlib.sha256(json.dumps([source.digest() for source in self.sources]).encode())
        for source in self.sources:
            for path in source.picture_paths():
                picture = StoredScreenshot(None, path, source.folder)
                # a path that cannot be read is the row's fault, counted when the row is read
                with suppress(RowError):
                    digest.update(f"{path} {picture.digest}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:16]

    def steps(self, keys: Container[StepKey] | None = None) -> Iterator[Step]:
        """Reads steps lazily, with one row in memory at a time; a row's faults are in `Step.faults`. Raises DatasetError.

        `keys`: of the steps to read; None for all.
        """
        for (source, plan), split in zip(self._plans, self._names, strict=False):
            wanted = plan if keys is None else [place for place in plan if place.step_key in keys]
            yield from _shard(source, wanted, split, self.raw_html).steps()

    def steps_by_task(self) -> Iterator[list[Step]]:
        return (list(group) for _, group in groupby(self.steps(), key=lambda step: step.annotation_id))

    def shards(self, *, pictures: bool = False) -> list[Shard]:
        """The steps in parts that can be read at the same time, even on other machines.

        Unless `pictures`, none is read, so every step has the fault `no_screenshot`. Within a part, rows come as they are stored.
        """
        named = zip(self._plans, self._names, strict=False)
        shards = [_shard(source, plan, split) for (source, plan), split in named]
        return [part for shard in shards for part in (shard if pictures else shard.without_pictures()).by_file()]

    def only(self, tasks: Collection[str]) -> Split:
        """The same split with only these tasks."""
        return replace(self, limit=None, wanted=frozenset(tasks))

    def drawn(self, n: int, seed: int) -> Split:
        """The same split with `n` of its tasks, drawn at random in equal shares by website (`draw_tasks`)."""
        from .drawing import draw_tasks

        websites: dict[str, str] = {}
        for source in self.sources:
            for row in source.light(("annotation_id", "action_uid", "website")):
                websites.setdefault(row_key(row).annotation_id, str(row.get("website") or ""))
        return self.only(draw_tasks({task: websites[task] for task in self.tasks}, n, seed))

    @cached_property
    def row_positions(self) -> dict[StepKey, int]:
        """Position at which each step's row is stored, counted over the split's files in order."""
        positions: dict[StepKey, int] = {}
        start = 0
        for source, plan in self._plans:
            positions |= {place.step_key: start + place.position for place in plan}
            start += source.count()
        return positions

    @property
    def has_pages(self) -> bool:
        """False: its steps have neither HTML nor candidates other than the right box."""
        return all(source.has_pages for source in self.sources)

    def check_pages(self, argument: str, what: str) -> None:
        """Raises DatasetError about `argument` where its steps have no pages, which `what` needs."""
        if not self.has_pages:
            raise DatasetError(
                argument,
                sentence=f"{what} needs HTML and candidates, and {self.dataset} has a picture and the right box of each step; use an agent that"
                " sees the picture alone, such as `agent` seeclick, or the rows of osunlp/Multimodal-Mind2Web",
            )

    @property
    def _names(self) -> tuple[str, ...]:
        """The split of each source; the rows of one file that is taken as `all` are of no known split."""
        return TEST_SPLITS if len(self.sources) == len(TEST_SPLITS) else (self.name,)

    @cached_property
    def _plans(self) -> list[tuple[Source, list[RowPosition]]]:
        """Each source with its rows in order; `limit` counts the tasks of all sources."""
        plans: list[tuple[Source, list[RowPosition]]] = []
        seen: dict[StepKey, str] = {}
        limit = self.limit
        for source in self.sources:
            if limit is None or limit > 0:
                plan = plan_rows(source.light(ORDER_COLUMNS), limit, source.name, seen, self.wanted)
                plans.append((source, plan))
                limit = None if limit is None else limit - len({place.key.annotation_id for place in plan})
        return plans


def open_split(
    dataset: Any,
    split: str,
    *,
    limit: int | None = None,
    tasks: Collection[str] | None = None,
    raw_html: bool = False,
) -> Split:
    """Opens the split of a data set.

    `dataset`: a folder (`data/test_domain-*.parquet`, or such files or `test_domain*.jsonl` directly in it), a
    `.parquet` or `.jsonl` file, a `datasets` object, or `OWNER/NAME` or `OWNER/NAME@REVISION` of the hub. `split`: either spelling, or `all` for
    the three test splits one after another. A file, or an object without splits, is taken as the split asked for.
    `tasks`: ids of the tasks to read; None for all. `limit`: only the first so many of them. `raw_html`: read that
    column too; it is half of a data set's bytes.

    Raises DatasetError if there is no such data, split or column; a file that cannot be read raises it only when it is
    read.
    """
    if limit is not None and limit < 1:
        raise DatasetError("limit", "a number of tasks of at least 1", str(limit))
    name = canonical_split(split)
    dataset = pinned(dataset)
    return Split(dataset, name, tuple(open_sources(dataset, name, raw_html=raw_html)), limit, tasks, raw_html)


def canonical_split(name: str) -> str:
    """`test_task` -> `cross_task` and so on; our own names and `all` stay. Raises DatasetError for any other name."""
    known = {ALL: ALL} | {hub: canonical for canonical, hub in SPLITS.items()} | {name: name for name in SPLITS}
    if name not in known:
        named = dict.fromkeys([*SPLITS, *SPLITS.values(), ALL])
        raise DatasetError("split", f"one of {', '.join(named)}", repr(name))
    return known[name]


def with_earlier(steps: Iterable[Step], most: int) -> Iterator[Step]:
    """The steps, each with up to `most` steps of its task that come right before it."""
    before: list[Step] = []
    for step in steps:
        before = [one for one in before if one.annotation_id == step.annotation_id]
        yield replace(step, earlier=tuple(before)) if before else step
        before = [*before, step][-most:] if most else []
