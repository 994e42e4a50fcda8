"""A folder, a file, a `datasets` object or a hub id -> one split, opened once: its keys, tasks and fingerprint, and its
steps, read lazily."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from .. import __version__
from ..files import hub
from ..files.digest import cached_digest
from ..files.extensions import Doors
from ..records import DatasetError, RowError, Step, StepKey
from .readers import Files, JsonlFiles, MappedTable, ParquetFiles, Source, StreamedTable, check_names
from .recorded import FINAL_SCREENSHOT, RECORDED_COLUMNS
from .rows import (
    ALSO_RIGHT,
    LIGHT_COLUMNS,
    OPTIONAL_COLUMNS,
    ORDER_COLUMNS,
    RAW_HTML,
    REQUIRED_COLUMNS,
    Row,
    RowPosition,
    StoredScreenshot,
    read_index,
    read_step,
    row_key,
)

SPLITS = {
    "train": "train",
    "cross_task": "test_task",
    "cross_website": "test_website",
    "cross_domain": "test_domain",
}
"""Name of a split -> name of its files on the hub."""
TEST_SPLITS = ("cross_task", "cross_website", "cross_domain")
ALL = "all"
# `test_task-00000-of-00001.parquet`, `cross_task.jsonl`
_FILE_NAME = re.compile(rf"({'|'.join([*SPLITS, *SPLITS.values()])})(?:[-_.].*)?\.(parquet|jsonl)")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")
# the paths of pictures in a `datasets` object are whole ones, wherever its caller keeps them
_ANYWHERE = Path("/")
_RECUT = Doors({name: f"seeact_offline.agents.recut:{name}" for name in ("find_recut", "open_recut")})
"""Finds and opens SeeClick's and ShowUI's files, pictures and boxes alone; empty where the room of their agents was
deleted."""
_FILES = ".parquet, .jsonl or .json" if _RECUT else ".parquet or .jsonl"


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows of a source, or of one of its files, and which columns to read. Small, so several processes can share a
    split."""

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
    """All these rows, in this order. `raw_html`, half of a data set's bytes, is read on request only."""
    present = set(source.columns())
    optional = [name for name in (*OPTIONAL_COLUMNS, ALSO_RIGHT, *RECORDED_COLUMNS) if name in present]
    return Shard(source, (*REQUIRED_COLUMNS, *optional, *([RAW_HTML] if raw_html else [])), tuple(places), split=split)


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
        keys = tuple(place.step_key for _, plan in self._plans for place in plan)
        if not keys and self.wanted is None:
            raise DatasetError("dataset", f"rows of {self.name}", f"none in {', '.join(s.name for s in self.sources)}")
        return keys

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The `annotation_id` of each task, in order."""
        return tuple(dict.fromkeys(key.annotation_id for key in self.keys))

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that change when ids, tasks, operations, actions, their order or the files' sizes change.

        Covers the whole split, whatever `limit` and `wanted` leave of it. Reads no HTML, no candidates and no picture
        (JSONL has to be parsed whole); later calls compare sizes and times.
        """
        stamps = [source.stamp() for source in self.sources]
        if not all(stamps):
            return self._compute_fingerprint()
        name = f"fingerprint of {', '.join(source.name for source in self.sources)}"
        return cached_digest(name, [__version__, *chain.from_iterable(stamps)], self._compute_fingerprint)

    def _compute_fingerprint(self) -> str:
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
        """Reads steps lazily, with one row in memory at a time; a row's faults are in `Step.faults`. Raises
        DatasetError.

        `keys`: of the steps to read; None for all.
        """
        for (source, plan), split in zip(self._plans, self._names, strict=False):
            wanted = plan if keys is None else [place for place in plan if place.step_key in keys]
            yield from _shard(source, wanted, split, self.raw_html).steps()

    def steps_by_task(self) -> Iterator[list[Step]]:
        return (list(group) for _, group in groupby(self.steps(), key=lambda step: step.annotation_id))

    def shards(self, *, pictures: bool = False) -> list[Shard]:
        """The steps in parts that can be read at the same time, even on other machines.

        Unless `pictures`, none is read, so every step has the fault `no_screenshot`. Within a part, rows come as they
        are stored.
        """
        named = zip(self._plans, self._names, strict=False)
        shards = [_shard(source, plan, split) for (source, plan), split in named]
        return [part for shard in shards for part in (shard if pictures else shard.without_pictures()).by_file()]

    def only(self, tasks: Collection[str]) -> Split:
        """The same split with only these tasks."""
        return replace(self, limit=None, wanted=frozenset(tasks))

    def drawn(self, n: int, seed: int) -> Split:
        """The same split with `n` of its tasks, drawn at random in equal shares by website (`draw_tasks`)."""
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
    `.parquet` or `.jsonl` file, a `datasets` object, or `OWNER/NAME` or `OWNER/NAME@REVISION` of the hub. `split`:
    either spelling, or `all` for the three test splits one after another. A file, or an object without splits, is taken
    as the split asked for. `tasks`: ids of the tasks to read; None for all. `limit`: only the first so many of them.
    `raw_html`: read that column too; it is half of a data set's bytes.

    Raises DatasetError if there is no such data, split or column; a file that cannot be read raises it only when it is
    read.
    """
    if limit is not None and limit < 1:
        raise DatasetError("limit", "a number of tasks of at least 1", str(limit))
    found = find_split(dataset, split)
    _check_columns(found.sources, raw_html)
    return replace(found, limit=limit, wanted=tasks, raw_html=raw_html)


def find_split(dataset: Any, split: str) -> Split:
    """Finds the whole split of a data set, as `open_split` does, and reads no file: its columns are not checked."""
    name = canonical_split(split)
    dataset = pinned(dataset)
    return Split(dataset, name, tuple(_find_sources(dataset, name)))


def canonical_split(name: str) -> str:
    """`test_task` -> `cross_task` and so on; our own names and `all` stay. Raises DatasetError for any other name."""
    canonical_names = (
        {ALL: ALL} | {hub: canonical for canonical, hub in SPLITS.items()} | {name: name for name in SPLITS}
    )
    if name not in canonical_names:
        named = dict.fromkeys([*SPLITS, *SPLITS.values(), ALL])
        raise DatasetError("split", f"one of {', '.join(named)}", repr(name))
    return canonical_names[name]


def with_earlier(steps: Iterable[Step], most: int) -> Iterator[Step]:
    """The steps, each with up to `most` steps of its task that come right before it."""
    before: list[Step] = []
    for step in steps:
        before = [earlier for earlier in before if earlier.annotation_id == step.annotation_id]
        yield replace(step, earlier=tuple(before)) if before else step
        before = [*before, step][-most:] if most else []


def plan_rows(
    rows: Iterable[Row], limit: int | None, where: str, seen: dict[StepKey, str], wanted: Collection[str] | None = None
) -> list[RowPosition]:
    """Plans which rows to read and in which order: tasks by first appearance (the first `limit` of them), steps by
    index.

    `wanted`: ids of the tasks to choose from; None for all. `rows` need only `ORDER_COLUMNS`. `seen`: where each key
    was first met; new keys are added to it.
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


def draw_tasks(websites: Mapping[str, str], n: int, seed: int) -> list[str]:
    """Draws `n` tasks, or all where there are fewer, in the order of `websites`: the website of each task by its id.

    Each website gives one task, then each that has more gives a second, and so on; chance decides which of them the
    last round leaves out. Every draw follows from the seed and the task's id alone. A larger `n` adds tasks to those of
    a smaller one.

    >>> draw_tasks({"a": "shop", "b": "shop", "c": "shop", "d": "news"}, 2, seed=0)
    ['b', 'd']
    """

    def lot(task: str) -> bytes:
        return hashlib.sha256(f"{seed} {task}".encode(errors="backslashreplace")).digest()

    rounds: dict[str, int] = {}
    turns: dict[str, int] = {}
    for task in sorted(websites, key=lot):
        turns[task] = rounds[websites[task]] = rounds.get(websites[task], -1) + 1
    drawn = set(sorted(turns, key=lambda task: (turns[task], lot(task)))[:n])
    return [task for task in websites if task in drawn]


# --- where the rows are stored ---


def open_sources(dataset: Any, split: str, *, raw_html: bool = False) -> list[Source]:
    """The sources of a canonical split, several for `all`. A file or a single table is taken as the split asked for."""
    sources = _find_sources(dataset, split)
    _check_columns(sources, raw_html)
    return sources


def _find_sources(dataset: Any, split: str) -> list[Source]:
    splits = TEST_SPLITS if split == ALL else (split,)
    is_named = isinstance(dataset, (str, os.PathLike))
    return _open_named(dataset, splits) if is_named else _open_object(dataset, splits)


def _check_columns(sources: Iterable[Source], raw_html: bool) -> None:
    needed = [*REQUIRED_COLUMNS, *([RAW_HTML] if raw_html else [])]
    for source in sources:
        check_names(source.columns(), needed, source.name)


def _open_named(dataset: Any, splits: Sequence[str]) -> list[Source]:
    if dataset == "sample":
        from ..sample import DATA

        dataset = DATA
    path = Path(dataset)
    if dataset and path.is_dir():
        return [_open_folder(path, split) for split in splits]
    if dataset and path.exists():
        # a pipe can be read only once
        if path.suffix not in (".parquet", ".jsonl", *([".json"] if _RECUT else [])) or not path.is_file():
            raise DatasetError("dataset", f"a {_FILES} file", repr(str(path)))
        if path.suffix == ".json":
            return [_RECUT["open_recut"](path, SPLITS[splits[0]] if len(splits) == 1 else "")]
        return [_files([path], str(path), path.parent)]
    if is_on_hub(dataset):
        return [_open_hub(dataset, split) for split in splits]
    raise DatasetError(
        "dataset",
        f"sample, a folder, a {_FILES} file, or OWNER/NAME of the hub",
        f"{str(dataset)!r}: there is no such folder or file",
    )


def is_on_hub(dataset: Any) -> bool:
    """Tells, without opening it, whether a data set is one of the hub: nothing here has its name."""
    return isinstance(dataset, str) and hub.is_spec(dataset) and not os.path.exists(dataset)


def pinned(dataset: Any) -> Any:
    """The data set, of the hub with the commit that it means now. Raises DatasetError."""
    with hub.errors_as(DatasetError, "dataset"):
        return hub.pinned("dataset", dataset) if is_on_hub(dataset) else dataset


def is_recut(dataset: Any) -> bool:
    """Tells, without opening it, whether a data set holds pictures and boxes alone, as SeeClick's and ShowUI's do."""
    if not isinstance(dataset, str | os.PathLike) or not dataset:
        return False
    path = Path(dataset)
    if not path.is_dir():
        return path.suffix == ".json" and path.is_file()
    return not _split_files(path) and any(_find_recut(path, split) for split in SPLITS.values())


def _find_recut(folder: Path, split: str) -> Path | None:
    return _RECUT["find_recut"](folder, split) if _RECUT else None


def _open_folder(folder: Path, split: str) -> Source:
    files = _split_files(folder)
    paths = files.get(split)
    if not paths:
        if recut := _find_recut(folder, SPLITS[split]):
            source: Source = _RECUT["open_recut"](recut, SPLITS[split])
            return source
        raise _no_split(
            split, str(folder), [*files, *(name for name, hub in SPLITS.items() if _find_recut(folder, hub))]
        )
    if len({path.suffix for path in paths}) > 1:
        raise DatasetError(
            "dataset", sentence=f"{folder} has {split} as .parquet and as .jsonl; keep one, or name the file"
        )
    _check_whole([path.name for path in paths], split, str(paths[0].parent))
    return _files(paths, f"{split} of {folder}", folder)


def _check_whole(names: Sequence[str], split: str, where: str) -> None:
    """Raises DatasetError for half a split: scored as a whole one it would give a wrong figure that looks right."""
    totals = {int(match[2]) for match in map(_SHARD.search, names) if match}
    if totals and len(names) != max(totals):
        raise DatasetError(
            "dataset",
            sentence=f"{where} has {len(names)} of {max(totals)} files of {split}; fetch the others, or name one file to use it alone",
        )


def split_of_file(name: str) -> str | None:
    """The canonical split that a file's name says it holds; None for any other name."""
    match = _FILE_NAME.fullmatch(name)
    of_files = {hub: split for split, hub in SPLITS.items()}
    return None if match is None else of_files.get(match[1], match[1])


def _split_files(folder: Path) -> dict[str, list[Path]]:
    """Canonical split -> its files, those in `data/` if there are any, as on the hub."""
    files: dict[str, list[Path]] = {}
    for place in (folder, folder / "data"):
        here: dict[str, list[Path]] = {}
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            split = split_of_file(path.name)
            if split is not None and path.is_file():
                here.setdefault(split, []).append(path)
        files.update(here)
    return files


def _files(paths: Sequence[Path], name: str, folder: Path) -> Source:
    kind = ParquetFiles if paths[0].suffix == ".parquet" else JsonlFiles
    return kind(name, folder, tuple(paths))


def _open_object(dataset: Any, splits: Sequence[str]) -> list[Source]:
    import datasets

    if isinstance(dataset, (datasets.DatasetDict, datasets.IterableDatasetDict)):
        named = {split: name for split in splits for name in (SPLITS[split], split) if name in dataset}
        for split in splits:
            if split not in named:
                raise _no_split(split, "the DatasetDict", dataset)
        return [_table(dataset[named[split]], split, _ANYWHERE) for split in splits]
    if isinstance(dataset, (datasets.Dataset, datasets.IterableDataset)):
        return [_table(dataset, f"the {type(dataset).__name__}", _ANYWHERE)]
    raise DatasetError("dataset", "a path, a hub id or a `datasets` object", f"a {type(dataset).__name__}")


def _open_hub(spec: str, split: str) -> Source:
    """The files of this one split. Raises DatasetError."""
    from .hub_files import HubFiles

    with hub.errors_as(DatasetError, "dataset"):
        repo = hub.open_repo("dataset", spec)
    of_splits: dict[str, list[hub.HubFile]] = {}
    for file in repo.files:
        name = file.name.rpartition("/")[2]
        if name.endswith(".parquet") and (split_of_name := split_of_file(name)):
            of_splits.setdefault(split_of_name, []).append(file)
    files = sorted(of_splits.get(split, ()), key=lambda file: file.name)
    try:
        if not files:
            raise _no_split(split, f"{repo.name} at {repo.commit[:12]}", of_splits)
        _check_whole([Path(file.name).name for file in files], split, repo.name)
    except DatasetError as error:
        if repo.is_listed:
            raise
        lacking = f"{split} of {repo.name} was not downloaded whole, and {hub.unreachable()}; fetch it where there is a network:"
        raise DatasetError("split", sentence=f"{lacking} {repo.command(f'--include *{SPLITS[split]}-*')}") from error
    return HubFiles(f"{split} of {spec}", None, tuple(map(repo.place, files)), repo)


def _table(table: Any, name: str, folder: Path | None) -> Source:
    import datasets

    table = table.with_format(None)
    for name, feature in (table.features or {}).items():
        if isinstance(feature, datasets.Image):
            table = table.cast_column(name, datasets.Image(decode=False))
    kind = MappedTable if isinstance(table, datasets.Dataset) else StreamedTable
    return kind(name, folder, table)


def _no_split(split: str, where: str, others: Collection[str]) -> DatasetError:
    got = (
        f"only {', '.join(others)}" if others else f"no file with a name such as {SPLITS[split]}-00000-of-00001.parquet"
    )
    return DatasetError("split", f"{split} ({SPLITS[split]}) in {where}", got)
