"""Runs with their data sets. Any one step is opened without reading its split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from seeact_offline.dataset import Shard, Split, open_split
from seeact_offline.dataset.rows import LIGHT_COLUMNS, RowPosition, read_step
from seeact_offline.grounding import Grounding
from seeact_offline.ranking.stage import kept_before
from seeact_offline.records import DatasetError, InputError, SeeActError, Step, StepKey
from seeact_offline.runs.rebuilding import open_grounding
from seeact_offline.sample import DATA as SAMPLE
from seeact_offline.viewer.run_snapshots import RunSnapshot

if TYPE_CHECKING:
    from seeact_offline.ranking import FileScores


@dataclass(frozen=True, slots=True)
class RunData:
    """One split, without its pages and pictures."""

    split: Split
    places: Mapping[StepKey, tuple[Shard, RowPosition]]
    """Place of each step's row."""
    tasks: Mapping[str, str]
    """`annotation_id` -> the task in words."""

    @property
    def is_sample(self) -> bool:
        """True for the rows of the bundled sample, also in another folder."""
        try:
            return self.split.fingerprint == open_split(SAMPLE, self.split.name).fingerprint
        except InputError:
            return False

    def step(self, key: StepKey) -> Step | None:
        """None for a step that the split does not have. Raises DatasetError."""
        place = self.places.get(key)
        return None if place is None else _step_at(*place)

    def earlier(self, key: StepKey, most: int) -> tuple[Step, ...]:
        """Up to `most` steps of the task that come right before this one. Raises DatasetError."""
        task = [one for one in self.places if one.annotation_id == key.annotation_id]
        before = task[: task.index(key)] if key in task and most else []
        return tuple(_step_at(*self.places[one]) for one in before[-most:])

    def selected(self, settings: Mapping[str, Any]) -> Split:
        """The split under a run's limit or choice of tasks."""
        return replace(self.split, limit=settings.get("limit"), wanted=settings.get("tasks"))


def open_data(settings: Mapping[str, Any], dataset: Any = None) -> RunData:
    """The data of a run. `settings`: its manifest's; `dataset`: path or id of the data, else the one in the settings.

    Reads no page and no picture. Raises InputError, also for other rows than the run's.
    """
    named = settings.get("dataset") if dataset is None else dataset
    split = open_split(named, str(settings.get("split")))
    if split.fingerprint != settings.get("dataset_fingerprint"):
        raise DatasetError("dataset", "the data that the run was made on", f"other rows in {named}")
    shards = split.shards(pictures=True)
    places = {place.step_key: (shard, place) for shard in shards for place in shard.places}
    return RunData(split, places, {step.annotation_id: step.task for step in _first_steps(shards)})


def _first_steps(shards: Sequence[Shard]) -> Iterator[Step]:
    """One step of each task, without its page."""
    seen: set[str] = set()
    for shard in shards:
        wanted: dict[int, RowPosition] = {}
        for place in shard.places:
            if place.key.annotation_id not in seen:
                seen.add(place.key.annotation_id)
                wanted[place.position - shard.start] = place
        for position, row in enumerate(shard.source.light(LIGHT_COLUMNS) if wanted else ()):
            if position in wanted:
                yield read_step(row, wanted[position])


def _step_at(shard: Shard, place: RowPosition) -> Step:
    """Reads one row."""
    return next(replace(shard, places=(place,)).steps())


# --- runs ---


@dataclass(frozen=True)
class RunEntry:
    """A run, and its data set."""

    name: str
    run: RunSnapshot
    data: RunData | None = None
    data_problem: str | None = None
    """The reason why there are no data, in a sentence."""

    @property
    def n_steps(self) -> int | None:
        """Steps that an unfinished run is to have; None where that is not known."""
        if self.run.progress is None or self.data is None:
            return None
        return len(self.data.selected(self.run.settings).keys)

    @cached_property
    def grounding(self) -> Grounding | str:
        """The strategy that asked; or why its questions cannot be rebuilt."""
        try:
            return open_grounding(self.run.manifest, self.run.path / "captions.jsonl")
        except Exception as error:
            # a manifest that another program wrote must not keep the step from being looked at
            return reason_of(error)

    @cached_property
    def scores(self) -> FileScores | None:
        """The ranker's score of each candidate, where this machine still has them."""
        digest = (self.run.manifest.get("identity") or {}).get("scores_digest")
        return None if self.data is None or not isinstance(digest, str) else kept_before(self.data.split, digest)


def reason_of(error: Exception) -> str:
    """A sentence on an error, which names the type of an unforeseen one."""
    return str(error) if isinstance(error, SeeActError) else f"{type(error).__name__}: {error}"


class DataSets:
    """The data sets of runs, each opened once."""

    def __init__(self, dataset: Any) -> None:
        """`dataset`: path or id of the data of all runs; None: those in their manifests."""
        self._dataset = dataset
        self._opened: dict[tuple[str, ...], RunData | str] = {}

    def entry(self, run: RunSnapshot, name: str) -> RunEntry:
        """The run with its data, or the reason why it has none."""
        if not run.is_readable:
            return RunEntry(name, run)
        about = tuple(str(run.settings.get(one)) for one in ("dataset", "split", "dataset_fingerprint"))
        if about not in self._opened:
            try:
                self._opened[about] = open_data(run.settings, self._dataset)
            except InputError as error:
                self._opened[about] = str(error)
            except OSError as error:
                self._opened[about] = error.strerror or "it cannot be opened"
        found = self._opened[about]
        if isinstance(found, str):
            problem = f"Pages, pictures, prompts and earlier actions of {name} cannot be shown: {found}; name the data with --dataset."
            return RunEntry(name, run, None, problem)
        return RunEntry(name, run, found)
