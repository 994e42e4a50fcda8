"""The screenshots of a split in one file, for training: any step's page is read without the rows around it.

A page is kept as its row stores it, once, however many parts of it are shown: a part is cut when a batch is made, by the
processes that load batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from seeact_offline.dataset import Split
from seeact_offline.files.whole import write_whole
from seeact_offline.grounding import MAX_SIDE
from seeact_offline.pages.screenshots import PagePicture, group_crop
from seeact_offline.records import Box, InputError, RowError, Step, StepKey

if TYPE_CHECKING:
    from PIL import Image


PLACE = (("annotation_id", pa.string()), ("action_uid", pa.string()), ("top", pa.float64()), ("bottom", pa.float64()))
"""Columns of a question that shows part of its page: the step, and the group's Span."""


class Span(NamedTuple):
    """From the topmost edge of some boxes to the lowest, in page pixels."""

    top: float
    bottom: float


class Pictures:
    """The pages of a file that `keep_pictures` wrote. Only its path goes to another process, which opens it anew."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[type[Pictures], tuple[Path]]:
        return Pictures, (self._path,)

    def __contains__(self, key: StepKey) -> bool:
        return str(key) in self._places

    def page(self, key: StepKey) -> PagePicture:
        """Raises KeyError for a step whose picture was not kept."""
        return PagePicture(_EncodedPicture(self._file.get_batch(self._places[str(key)])["screenshot"][0].as_py()))

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
    def _file(self) -> Any:
        try:
            return pa.ipc.open_file(pa.memory_map(str(self._path)))
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(
                "pictures", "a file of pages that was kept for training", f"{self._path}: {error}"
            ) from None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {self._file.get_batch(place)["step"][0].as_py(): place for place in range(self._file.num_record_batches)}


open_pictures = cache(Pictures)
"""A process opens a file once, however many parts it makes."""


class _EncodedPicture:
    """One encoded picture."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self) -> bytes:
        return self._content


def keep_pictures(steps: Iterable[Step], path: Path) -> Pictures:
    """Writes the screenshots of these steps, whole or not at all, one in memory at a time.

    A step without one, or with one that is cut short, is left out.
    """
    schema = pa.schema([("step", pa.string()), ("screenshot", pa.large_binary())])

    def write(draft: Path) -> None:
        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, schema) as file:
            for step in steps:
                if content := _whole(step):
                    file.write_batch(pa.record_batch([[str(step.key)], [content]], schema=schema))

    write_whole(path, write)
    return Pictures(path)


def kept_pictures(split: Split, folder: Path) -> Path:
    """The file of a split's screenshots in the folder, written unless it is there for the data as they are."""
    path = folder / f"pictures-{split.content_digest}.arrow"
    if not path.exists():
        keep_pictures(split.steps(), path)
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
