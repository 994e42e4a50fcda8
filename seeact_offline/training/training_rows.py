"""The training questions, made once by several processes, as Arrow files that are read map-style.

A part is a fixed range of the data set's rows, so that any number of processes leaves the same files. Each row of
a file has an epoch; `EpochRows` reads those of one epoch at a time.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seeact_offline.dataset import Shard, Split
from seeact_offline.files.whole import replace_text, write_whole
from seeact_offline.ranking import read_scores
from seeact_offline.ranking.score_files import check_dataset
from seeact_offline.records import InputError, ScoreFileError
from seeact_offline.runs.watch import RankListener
from seeact_offline.training.examples import CUTS
from seeact_offline.training.recipe import Recipe

PART_ROWS = 256
"""Rows of the data set that a process works on at a time."""
READY = "ready.json"
EPOCH = ("epoch", pa.int16())
"""The column with a question's epoch: from 0, or `draws.HELD_OUT`."""
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
        return RowCounts(
            self.steps + other.steps,
            self.held_out_steps + other.held_out_steps,
            self.questions + other.questions,
            self.left_out + other.left_out,
            self.cuts + other.cuts,
        )

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
    """Draws tasks by the seed, at least one if the share is above 0. Raises InputError if none would be left to train on."""
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
    told: RankListener | None = None,
) -> RowCounts:
    """Writes the rows into `folder`, unless they are there. `identity`: all that they depend on, as JSON can hold it.

    `told`: hears of each step of the data.
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
            if told is not None:
                told.advance(f"{made.questions:,} questions" if made.questions else "", n=len(part.places))
        ready = {"identity": identity, "made": made.to_dict()}
        replace_text(folder / READY, json.dumps(ready, indent=2) + "\n")
    return made


def prepared(folder: Path, identity: Mapping[str, Any]) -> RowCounts | None:
    """The counts of what `prepare` wrote into the folder for this identity; None if it did not, or not to the end."""
    try:
        found = json.loads((folder / READY).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or not {"identity", "made"} <= found.keys():
        return None
    return RowCounts.from_dict(found["made"]) if found["identity"] == json.loads(json.dumps(identity)) else None


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
        """`epoch`: from 0, or HELD_OUT."""
        self.epoch, self._places = epoch, places_of(self._epochs, epoch, self._batch)

    def lengths(self) -> list[int]:
        """The number of tokens of each question of the epoch, without reading its tokens."""
        of_all = np.asarray(pc.list_value_length(self._table.data.column("input_ids")))
        found: list[int] = of_all[self._places].tolist()
        return found

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> dict[str, Any]:
        found: dict[str, Any] = self._table[int(self._places[place])]
        return found


class LengthGroupedOrder:
    """A sampler: each epoch's places in a random order whose batches hold questions of like length, the same after a resumption."""

    def __init__(self, rows: EpochRows, batch: int, seed: int) -> None:
        """`batch`: questions of one step of the optimizer over all devices, so that their number does not change a step."""
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

    with _quiet():
        return concatenate_datasets([Dataset.from_file(str(path)) for path in sorted(folder.glob("part-*.arrow"))])


@contextmanager
def _quiet() -> Iterator[None]:
    from datasets.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
