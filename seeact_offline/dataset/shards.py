"""Rows that are read together: a whole source, or one of its files, so that several readers can share a split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..records import DatasetError, Step
from .readers import Files, Source
from .recorded import FINAL_SCREENSHOT
from .rows import RAW_HTML, RowPosition, read_step, row_key
from .sources import wanted_columns


@dataclass(frozen=True, slots=True)
class Shard:
    """Some rows of a source, and which columns to read. Small, so it can be sent to another process."""

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


def whole(source: Source, places: Sequence[RowPosition], raw_html: bool = False, split: str = "") -> Shard:
    """All these rows, in this order."""
    return Shard(source, tuple(wanted_columns(source, raw_html)), tuple(places), split=split)
