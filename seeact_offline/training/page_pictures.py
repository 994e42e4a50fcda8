"""The screenshots of a split in one folder, for training: any step's page is read without the rows around it.

A page is kept as its row stores it, once, however many parts of it are shown: a part is cut when a batch is made, by the
processes that load batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from seeact_offline.dataset import Shard, Split
from seeact_offline.grounding import MAX_SIDE
from seeact_offline.pages.screenshots import PagePicture, group_crop
from seeact_offline.records import Box, InputError, RowError, Step, StepKey
from seeact_offline.training.training_rows import RowCounts, StepRows, parts_of, prepare

if TYPE_CHECKING:
    from PIL import Image


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
        """Raises KeyError for a step whose picture was not kept."""
        return PagePicture(_EncodedPicture(self._table["screenshot"][self._places[str(key)]].as_py()))

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


class _EncodedPicture:
    """One encoded picture."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self) -> bytes:
        return self._content


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
            if content := _whole(step):
                yield StepRows(RowCounts(), pa.record_batch([[str(step.key)], [content]], schema=self.schema))


def kept_pictures(split: Split, folder: Path, processes: int = 1) -> Path:
    """The folder of a split's screenshots in `folder`, written unless it is there for the data as they are."""
    path = folder / f"pictures-{split.content_digest}"
    prepare(parts_of(split, pictures=True), PagePictures(), path, {}, processes)
    return path


def _whole(step: Step) -> bytes:
    """The encoded picture; empty if there is none that can be shown."""
    if step.screenshot is None:
        return b""
    try:
        PagePicture(step.screenshot).check_whole()
        return step.screenshot.read()
    except RowError:
        return b""


def span_of(step: Step, ids: Sequence[str]) -> Span:
    """The span of a group of candidates on its page. Raises RowError `missing_box`."""
    boxes = {candidate.backend_node_id: candidate.box for candidate in step.candidates}
    found = [box for node in ids if (box := boxes[node]) is not None]
    if len(found) < len(ids):
        missing = next(node for node in ids if boxes[node] is None)
        raise RowError("missing_box", f"candidate {missing} has no bounding_box_rect")
    return Span(min(box.y for box in found), max(box.bottom for box in found))


def place_columns(step: Step, groups: Sequence[Sequence[str]]) -> list[list[Any]]:
    """The columns of PLACE, with one question a group. Raises RowError `missing_box`."""
    spans = [span_of(step, ids) for ids in groups]
    keys = [[name] * len(spans) for name in (step.key.annotation_id, step.key.action_uid)]
    return [*keys, [span.top for span in spans], [span.bottom for span in spans]]
