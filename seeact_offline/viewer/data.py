"""The data set behind a run, of which any one step is opened without reading its split."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seeact_offline.dataset import Shard, Split, open_split
from seeact_offline.dataset.readers import ParquetFiles
from seeact_offline.dataset.rows import LIGHT_COLUMNS, RowPosition, read_step
from seeact_offline.dataset.sources import wanted_columns
from seeact_offline.records import DatasetError, InputError, Step, StepKey
from seeact_offline.sample import DATA as SAMPLE

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Data:
    """One split, of which what is small has been read."""

    split: Split
    places: Mapping[StepKey, tuple[Shard, RowPosition]]
    """Where each step's row is."""
    tasks: Mapping[str, str]
    """`annotation_id` -> what the person wanted."""

    @property
    def is_sample(self) -> bool:
        """Whether these are the rows of the bundled sample, wherever they lie."""
        try:
            return self.split.fingerprint == open_split(SAMPLE, self.split.name).fingerprint
        except InputError:
            return False

    def step(self, key: StepKey) -> Step | None:
        """None for a step that the split does not have. Raises DatasetError."""
        place = self.places.get(key)
        return None if place is None else next(_alone(*place).steps())

    def count(self, limit: int | None, tasks: Collection[str] | None) -> int:
        """How many steps so much of the split has. Raises DatasetError."""
        return len(replace(self.split, limit=limit, wanted=tasks).keys)


def open_data(settings: Mapping[str, Any], dataset: Any = None) -> Data:
    """The data of a run. `settings`: its manifest's; `dataset`: where the data are now, else where the run had them.

    Reads no page and no picture. Raises InputError, for other rows than the run's too.
    """
    named = settings.get("dataset") if dataset is None else dataset
    split = open_split(named, str(settings.get("split")))
    if split.fingerprint != settings.get("dataset_fingerprint"):
        raise DatasetError("dataset", "the data that the run was made on", f"other rows in {named}")
    parts = [replace(part, columns=tuple(wanted_columns(part.source, False))) for part in split.shards()]
    places = {place.step_key: (part, place) for part in parts for place in part.places}
    return Data(split, places, {step.annotation_id: step.task for step in _first_steps(parts)})


def _first_steps(parts: Sequence[Shard]) -> Iterator[Step]:
    """A step a task, without its page."""
    seen: set[str] = set()
    for part in parts:
        wanted: dict[int, RowPosition] = {}
        for place in part.places:
            if place.key.annotation_id not in seen:
                seen.add(place.key.annotation_id)
                wanted[place.position - part.start] = place
        for position, row in enumerate(part.source.light(LIGHT_COLUMNS) if wanted else ()):
            if position in wanted:
                yield read_step(row, wanted[position])


def _alone(part: Shard, place: RowPosition) -> Shard:
    """The one row; of a Parquet file only the row group that holds it is read."""
    source = part.source
    if not isinstance(source, ParquetFiles):
        return replace(part, places=(place,))
    import pyarrow.parquet as pq

    start = part.start
    metadata = pq.read_metadata(source.paths[0])
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if place.position < start + rows:
            return replace(
                part, source=_RowGroup(source.paths, source.name, source.folder, group), places=(place,), start=start
            )
        start += rows
    return replace(part, places=(place,))


@dataclass(frozen=True, slots=True)
class _RowGroup(ParquetFiles):
    """One row group of a file."""

    group: int = 0

    def _batches(self, columns: Any, batch_rows: int) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.paths[0], buffer_size=1 << 20, pre_buffer=False) as file:
            # row by row, so that none after the one that is wanted is read
            yield from file.iter_batches(
                batch_size=1, row_groups=[self.group], columns=list(columns), use_threads=False
            )
