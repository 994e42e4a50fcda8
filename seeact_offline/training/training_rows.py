"""The training questions and the screenshots of a split, made once by several processes,
as Arrow files that are read map-style.

A part is a fixed range of the data set's rows, so that any number of processes leaves the same files. Each row of a
file of questions has an epoch; `EpochRows` reads those of one epoch at a time. A page's picture is kept as its row
stores it, once, however many parts of it are shown: a part is cut when a batch is made,
by the processes that load batches.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seeact_offline.dataset import Shard, Split
from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.files.whole import replace_text, write_whole
from seeact_offline.grounding import MAX_SIDE
from seeact_offline.pages.screenshots import PagePicture, group_crop
from seeact_offline.ranking import read_scores
from seeact_offline.ranking.score_files import check_dataset
from seeact_offline.records import Box, InputError, RowError, ScoreFileError, Step, StepKey
from seeact_offline.runs.watch import RankListener
from seeact_offline.training.recipe import Recipe

if TYPE_CHECKING:
    from PIL import Image

PART_ROWS = 256
"""Rows of the data set that a process works on at a time."""
READY = "ready.json"
HELD_OUT = -1
"""Stands for the epoch in questions of the tasks that are held out."""
EPOCH = ("epoch", pa.int16())
"""The column with a question's epoch: from 0, or HELD_OUT."""
CUTS = {
    "contexts_cut": "page's markup cut at its limit",
    "questions_cut": "rest of the question cut at its limit",
    "targets_lost_in_context": "the cut took the right element out of the markup",
    "targets_lost_in_question": "the cut took the right option out of the question",
}
"""Kinds of cuts -> their meaning."""
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Counts of the steps and questions that were made."""

    steps: int = 0
    """Steps that are trained on."""
    held_out_steps: int = 0
    questions: int = 0
    """Questions of all epochs, without those held out."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Unusable steps, by the reason's name."""
    cuts: Counter[str] = field(default_factory=Counter)
    """Questions that were cut, by the names of CUTS."""

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(*(getattr(self, count.name) + getattr(other, count.name) for count in fields(self)))

    @property
    def reasons(self) -> str:
        """The reasons of steps left out, in words."""
        return ", ".join(f"{number} {name}" for name, number in sorted(self.left_out.items())) or "none"

    def to_dict(self) -> dict[str, Any]:
        counted = {"steps": self.steps, "held_out_steps": self.held_out_steps, "questions": self.questions}
        return counted | {"left_out": dict(sorted(self.left_out.items())), "cuts": {n: self.cuts[n] for n in CUTS}}

    @classmethod
    def from_dict(cls, named: Mapping[str, Any]) -> RowCounts:
        return cls(**{**named, "left_out": Counter(named["left_out"]), "cuts": +Counter(named["cuts"])})


@dataclass(frozen=True, slots=True)
class StepRows:
    """The questions of one step."""

    made: RowCounts
    batch: pa.RecordBatch | None = None
    """None if the step is left out."""


def left_out(reason: str) -> StepRows:
    """The rows of a step that nothing can be learnt from."""
    return StepRows(RowCounts(left_out=Counter([reason])))


class QuestionMaker(Protocol):
    """Makes the rows of a part: its questions, or its pictures. Can be sent to another process."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of its rows; the first column of questions is EPOCH."""

    def steps(self, part: Shard) -> Iterator[StepRows]:
        """The rows of each of the part's steps, in order."""


# --- before ---


def check_scores(path: Path, split: Split) -> None:
    """Raises ScoreFileError for a file without scores of the split's steps, or of another data set."""
    scores = read_scores(path)
    matched = sum(str(key) in scores.keys for key in split.keys)
    if matched < len(split.keys):
        raise ScoreFileError("scores", f"scores of all {len(split.keys)} steps of {split.name}", f"{matched} in {path}")
    check_dataset(scores, split, str(path))


open_scores = cache(read_scores)
"""A process reads a file once, however many parts it makes."""


def held_out_tasks(split: Split, recipe: Recipe) -> frozenset[str]:
    """Draws tasks by the seed, at least one if the share is above 0.
    Raises InputError if none would be left to train on."""
    tasks = sorted(split.tasks)
    number = -int(-len(tasks) * recipe.held_out // 1)
    if number >= len(tasks):
        raise InputError(
            "held_out", "a share that leaves tasks to train on", f"{recipe.held_out} of {len(tasks)} tasks"
        )
    return frozenset(random.Random(f"{recipe.seed}\nheld out").sample(tasks, number))


def parts_of(split: Split, *, pictures: bool = False) -> list[Shard]:
    """The split's rows, PART_ROWS at most in each, with or without pictures."""
    shards = split.shards(pictures=pictures)
    cuts = [(shard, at) for shard in shards for at in range(0, len(shard.places), PART_ROWS)]
    return [replace(shard, places=shard.places[at : at + PART_ROWS]) for shard, at in cuts]


# --- making ---


def prepare(
    parts: Sequence[Shard],
    maker: QuestionMaker,
    folder: Path,
    identity: Mapping[str, Any],
    processes: int,
    listener: RankListener | None = None,
) -> RowCounts:
    """Writes the rows into `folder`, unless they are there. `identity`: all that they depend on, as JSON can hold it.

    `listener`: hears of each step of the data.
    """
    made = prepared(folder, identity)
    if made is None:
        folder.mkdir(parents=True, exist_ok=True)
        for old in (folder / READY, *folder.glob("*.arrow")):
            old.unlink(missing_ok=True)
        jobs = [(part, maker, folder / f"part-{number:05d}.arrow") for number, part in enumerate(parts)]
        made = RowCounts()
        for part, counts in zip(parts, map_in_order(_write_part, jobs, processes), strict=True):
            made += counts
            if listener is not None:
                listener.advance(f"{made.questions:,} questions" if made.questions else "", n=len(part.places))
        ready = {"identity": identity, "made": made.to_dict()}
        replace_text(folder / READY, json.dumps(ready, indent=2) + "\n")
    return made


def prepared(folder: Path, identity: Mapping[str, Any]) -> RowCounts | None:
    """The counts of what `prepare` wrote into the folder for this identity; None if it did not, or not to the end."""
    if not (folder / READY).exists():
        return None
    ready = json.loads((folder / READY).read_text("utf-8"))
    return RowCounts.from_dict(ready["made"]) if ready["identity"] == json.loads(json.dumps(identity)) else None


def _write_part(job: tuple[Shard, QuestionMaker, Path]) -> RowCounts:
    part, maker, path = job
    made = []

    def write(draft: Path) -> None:
        with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_stream(file, maker.schema) as stream:
            for step in maker.steps(part):
                made.append(step.made)
                if step.batch is not None:
                    stream.write_batch(step.batch)

    write_whole(path, write)
    return sum(made, RowCounts())


def map_in_order(work: Callable[[T], U], jobs: Sequence[T], processes: int) -> Iterable[U]:
    """Works on jobs in processes; results come in order. Processes are spawned: torch's threads must not be copied."""
    if processes == 1 or len(jobs) < 2:
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(min(processes, len(jobs)), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(work, jobs)


# --- reading ---


class EpochRows:
    """The questions of one epoch, map-style."""

    def __init__(self, table: Any, epoch: int = 0, batch: int = 1) -> None:
        """`table`: a `datasets.Dataset` of rows with an epoch. `batch`: see `places_of`."""
        self._epochs, self._batch = epochs_of(table), batch
        self._table = table.remove_columns(EPOCH[0])
        self.begin_epoch(epoch)

    def begin_epoch(self, epoch: int) -> None:
        """Selects the rows of an epoch: from 0, or HELD_OUT."""
        self.epoch, self._places = epoch, places_of(self._epochs, epoch, self._batch)

    def lengths(self) -> list[int]:
        """The number of tokens of each question of the epoch, without reading its tokens."""
        of_all = np.asarray(pc.list_value_length(self._table.data.column("input_ids")))
        lengths: list[int] = of_all[self._places].tolist()
        return lengths

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> dict[str, Any]:
        row: dict[str, Any] = self._table[int(self._places[place])]
        return row


class LengthGroupedOrder:
    """A sampler: each epoch's places in a random order whose batches hold questions of like length,
    the same after a resumption."""

    def __init__(self, rows: EpochRows, batch: int, seed: int) -> None:
        """`batch`: questions of one step of the optimizer over all devices,
        so that their number does not change a step."""
        self._rows, self._batch, self._seed = rows, batch, seed

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        import torch
        from transformers.trainer_pt_utils import get_length_grouped_indices

        generator = torch.Generator().manual_seed(random.Random(f"{self._seed}\n{self._rows.epoch}").getrandbits(63))
        return iter(get_length_grouped_indices(self._rows.lengths(), self._batch, generator=generator))


def epochs_of(table: Any) -> np.ndarray[Any, Any]:
    """The epoch of each row."""
    return np.asarray(table.data.column(EPOCH[0]))


def places_of(epochs: np.ndarray[Any, Any], epoch: int, batch: int = 1) -> np.ndarray[Any, Any]:
    """The rows of an epoch. The first come again until whole batches are full.

    Several devices would otherwise share out the last batch, which is smaller, in another way than one device.
    """
    places = np.flatnonzero(epochs == epoch)
    return np.resize(places, -(-len(places) // batch) * batch)


def open_rows(folder: Path) -> Any:
    """All rows of a prepared folder, as a memory-mapped `datasets.Dataset`."""
    from datasets import Dataset, concatenate_datasets
    from datasets.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    rows = concatenate_datasets([Dataset.from_file(str(path)) for path in sorted(folder.glob("part-*.arrow"))])
    logging.set_verbosity(level)
    return rows


# --- pictures ---


PLACE = (("annotation_id", pa.string()), ("action_uid", pa.string()), ("top", pa.float64()), ("bottom", pa.float64()))
"""Columns of a question that shows part of its page: the step, and the group's Span."""


class Span(NamedTuple):
    """Range from the topmost edge of some boxes to the lowest, in page pixels."""

    top: float
    bottom: float


class Pictures:
    """The pages of a folder of `kept_pictures`. Only its path goes to another process, which opens it anew."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[type[Pictures], tuple[Path]]:
        return Pictures, (self._path,)

    def __contains__(self, key: StepKey) -> bool:
        return str(key) in self._places

    def page(self, key: StepKey) -> PagePicture:
        """The picture of a step's page. Raises KeyError where it was not kept."""
        return PagePicture(StoredScreenshot(self._table["screenshot"][self._places[str(key)]].as_py()))

    def group(self, key: StepKey, span: Span) -> Image.Image:
        """The picture of a group, as a model gets it, pixel for pixel. Raises RowError `bad_screenshot`."""
        page = self.page(key)
        # of its boxes, only the upper edge of the topmost and the bottom edge of the lowest count
        edges = [Box(0, edge, 0, 0) for edge in span]
        return page.crop(group_crop(edges, page.size), MAX_SIDE).image()

    def of_row(self, row: Mapping[str, Any]) -> Image.Image:
        """The picture of a row with the columns of PLACE."""
        return self.group(StepKey(row["annotation_id"], row["action_uid"]), Span(row["top"], row["bottom"]))

    @cached_property
    def _table(self) -> pa.Table:
        """All pages, which stay in their files."""
        paths = sorted(self._path.glob("*.arrow"))
        try:
            parts = [pa.ipc.open_stream(pa.memory_map(str(path))).read_all() for path in paths]
            return pa.concat_tables([PagePictures().schema.empty_table(), *parts])
        except (OSError, pa.ArrowInvalid) as error:
            wanted = "a folder of pages that was kept for training"
            raise InputError("pictures", wanted, f"{self._path}: {error}") from None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {key: place for place, key in enumerate(self._table["step"].to_pylist())}


open_pictures = cache(Pictures)
"""A process opens a file once, however many parts it makes."""


@dataclass(frozen=True, slots=True)
class PagePictures:
    """Makes the rows of a part's screenshots, one in memory at a time.

    A step without one, or with one that is cut short, is left out.
    """

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("step", pa.string()), ("screenshot", pa.large_binary())])

    def steps(self, part: Shard) -> Iterator[StepRows]:
        for step in part.steps():
            content = b""
            # a picture that cannot be shown counts as none
            with suppress(RowError):
                if step.screenshot is not None:
                    PagePicture(step.screenshot).check_whole()
                    content = step.screenshot.read()
            if content:
                yield StepRows(RowCounts(), pa.record_batch([[str(step.key)], [content]], schema=self.schema))


def kept_pictures(split: Split, folder: Path, processes: int = 1) -> Path:
    """The folder of a split's screenshots in `folder`, written unless it is there for the data as they are."""
    path = folder / f"pictures-{split.content_digest}"
    prepare(parts_of(split, pictures=True), PagePictures(), path, {}, processes)
    return path


def span_of(step: Step, ids: Sequence[str]) -> Span:
    """The span of a group of candidates on its page. Raises RowError `missing_box`."""
    boxes = {candidate.backend_node_id: candidate.box for candidate in step.candidates}
    of_group = [box for node in ids if (box := boxes[node]) is not None]
    if len(of_group) < len(ids):
        missing = next(node for node in ids if boxes[node] is None)
        raise RowError("missing_box", f"candidate {missing} has no bounding_box_rect")
    return Span(min(box.y for box in of_group), max(box.bottom for box in of_group))


def place_columns(step: Step, groups: Sequence[Sequence[str]]) -> list[list[Any]]:
    """The columns of PLACE, with one question a group. Raises RowError `missing_box`."""
    spans = [span_of(step, ids) for ids in groups]
    keys = [[name] * len(spans) for name in (step.key.annotation_id, step.key.action_uid)]
    return [*keys, [span.top for span in spans], [span.bottom for span in spans]]
