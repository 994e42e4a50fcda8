"""Files that `show` writes: pictures as they are sent, and the page with the boxes of all candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from seeact_offline.grounding import PreparedStep
from seeact_offline.grounding.conversation import Question
from seeact_offline.pages.outlines import Outline, draw_outlines, visible
from seeact_offline.pages.screenshots import encode
from seeact_offline.records import JPEG_95, PNG, ImageFormat, InputError, Picture

BOXES = (PNG, JPEG_95)
"""Formats of the page with the boxes."""
_KNOWN = (*BOXES, ImageFormat("webp", 90))
"""A format for each ending, to suggest."""


@dataclass(frozen=True, slots=True)
class SentPicture:
    """A turn's picture as it is sent, and the file that holds it."""

    picture: Picture
    path: Path
    n_bytes: int


Pictures = list[tuple[SentPicture | None, ...]]
"""The pictures of each question, turn by turn."""


@dataclass(frozen=True, slots=True)
class PicturePaths:
    """Paths of pictures: `group-0.jpg` in a folder, FILE, or both. Turn 2 adds `-turn2`."""

    folder: Path | None
    file: Path | None
    image_format: ImageFormat

    def __post_init__(self) -> None:
        """Raises InputError for a file of another ending than the format has."""
        expected = self.image_format.endings
        if self.file is not None and self.file.suffix.lower() not in expected:
            other = next(
                (image_format for image_format in _KNOWN if self.file.suffix.lower() in image_format.endings), None
            )
            hint = "" if other is None else f" (--image-format {other} sends {self.file.suffix})"
            wanted = f"a file ending in {' or '.join(expected)}, as pictures are sent as {self.image_format}{hint}"
            raise InputError("picture", wanted, str(self.file))

    def of(self, group: int, turn: int, n_groups: int) -> list[Path]:
        """The paths of one picture. FILE gets the group's number where there are several."""
        later = f"-turn{turn}" if turn > 1 else ""
        paths = []
        if self.folder is not None:
            paths.append(self.folder / f"group-{group}{later}{self.image_format.endings[0]}")
        if self.file is not None:
            number = f"-{group}" if n_groups > 1 else ""
            paths.append(self.file.with_stem(f"{self.file.stem}{number}{later}"))
        return paths


def write_pictures(questions: Sequence[Question], paths: PicturePaths) -> Pictures:
    """Writes the pictures of all questions, encoded as they are sent; makes the folder even for
    none. Raises InputError, RowError."""
    if paths.folder is not None:
        with _writable("out", paths.folder):
            paths.folder.mkdir(parents=True, exist_ok=True)
    return [
        tuple(
            None if picture is None else _write(picture, paths.of(question.index, turn, len(questions)), paths)
            for turn, picture in enumerate(question.pictures, 1)
        )
        for question in questions
    ]


def _write(picture: Picture, targets: Sequence[Path], paths: PicturePaths) -> SentPicture:
    content = picture.encoded(paths.image_format)
    for path in targets:
        with _writable("out" if path.parent == paths.folder else "picture", path):
            path.write_bytes(content)
    return SentPicture(picture, targets[0], len(content))


def boxes_format(path: Path) -> ImageFormat:
    """The format of a file by its ending. Raises InputError."""
    chosen = next((image_format for image_format in BOXES if path.suffix.lower() in image_format.endings), None)
    if chosen is None:
        endings = ", ".join(ending for image_format in BOXES for ending in image_format.endings)
        raise InputError("boxes", f"a file ending in one of {endings}", str(path))
    return chosen


def write_boxes(prepared: PreparedStep, path: Path) -> int:
    """Writes the recorded page with every candidate's box, and returns how many cannot be
    seen. Raises InputError, RowError."""
    ranks = {candidate.backend_node_id: candidate.rank for candidate in prepared.ranked}
    outlines = [
        Outline(candidate.box, candidate.is_positive, ranks.get(candidate.backend_node_id))
        for candidate in prepared.step.candidates
        if candidate.box is not None
    ]
    drawn = draw_outlines(prepared.picture.pixels, outlines)
    with _writable("boxes", path):
        path.write_bytes(encode(drawn, boxes_format(path)))
    shown = sum(visible(outline.box, prepared.picture.size) is not None for outline in outlines)
    return len(prepared.step.candidates) - shown


@contextmanager
def _writable(option: str, path: Path) -> Iterator[None]:
    """Makes the file's folder, and turns an OSError inside into an InputError of the option."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(
            option, sentence=f"cannot write {path}: {error.strerror or error}; name another place for `{option}`"
        ) from None
