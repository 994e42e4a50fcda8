"""Rows that are read together: a whole source, or one of its files, so that several readers can share a split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..records import DatasetError, Step
from .readers import JsonlFiles, ParquetFiles, Source
from .rows import RAW_HTML, Row, RowPosition, read_step, row_key
from .sources import wanted_columns


@dataclass(frozen=True, slots=True)
class Shard:
    """Some rows of a source, and which columns to read. Small, so it can be sent to another process."""

    source: Source
    columns: tuple[str, ...]
    places: tuple[RowPosition, ...]
    """In the order in which `steps` gives them."""
    start: int = 0
    """Position of the source's first row, in the numbering of `places`."""
    split: str = ""
    """What its steps are of."""

    def steps(self) -> Iterator[Step]:
        """Raises DatasetError when a file cannot be read, or no longer has the rows that `places` names."""
        rows = self.source.rows(self.columns, [place.position - self.start for place in self.places])
        for place, row in zip(self.places, rows, strict=True):
            _check_same(place, row, self.source)
            yield replace(read_step(row, place, self.source.folder, RAW_HTML in self.columns), split=self.split)


def whole(source: Source, places: Sequence[RowPosition], raw_html: bool = False, split: str = "") -> Shard:
    """All these rows, in this order."""
    return Shard(source, tuple(wanted_columns(source, raw_html)), tuple(places), split=split)


def by_file(part: Shard) -> list[Shard]:
    """The same rows, file by file, each file's in the order in which they are stored. A source without files stays whole."""
    source = part.source
    if not isinstance(source, ParquetFiles | JsonlFiles):
        return [part]
    parts, start = [], 0
    for path in source.paths:
        file = replace(source, paths=(path,))
        stop = start + file.count()
        inside = (place for place in part.places if start <= place.position < stop)
        places = tuple(sorted(inside, key=lambda place: place.position))
        parts.append(replace(part, source=file, places=places, start=start))
        start = stop
    return [some for some in parts if some.places]


def without_pictures(part: Shard) -> Shard:
    """The same rows, each with the fault `no_screenshot`: most of a row's bytes are its picture."""
    return replace(part, columns=tuple(name for name in part.columns if name != "screenshot"))


def _check_same(place: RowPosition, row: Row, source: Source) -> None:
    """`places` come from a first reading: a stream that shuffles anew each time would give wrong histories."""
    if row_key(row) != place.key:
        raise DatasetError(
            "dataset",
            f"{place.key} as row {place.position} of {source.name}",
            f"{row_key(row)}: it gives other rows when read again",
        )
