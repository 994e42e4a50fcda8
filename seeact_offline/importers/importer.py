"""Importers, and the contents of other people's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seeact_offline.records import Prediction, Truth

NOTES = {
    "unknown_step": "rows of a step that the data do not have; left out",
    "duplicate_step": "further rows of a step that has one; the first counts",
    "bad_row": "rows that cannot be read or name no step; left out",
    "not_utf8": "rows with bytes that are not UTF-8, which are replaced",
    "torn_line": "a last line that was cut off; left out",
    "unknown_column": "columns that mean nothing here; left out",
    "unknown_element": "steps whose answer names an element that the page does not have",
    "negative_point": "steps whose point has a coordinate below 0",
    "other_operation": "steps whose operation is none of CLICK, TYPE and SELECT; it stays as it is written",
}
"""The counts of any import, with their meanings."""

Answer = Callable[[Truth], Prediction]
"""The prediction of a file for a step, once the step is known."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder that the user named."""

    argument: str
    """The argument that named it, for errors."""
    path: Path


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was left out."""

    name: str
    """The name that it is counted by: one of the notes."""
    where: str
    """The line, the file or the step, for people."""
    of_step: bool = True
    """True if it concerns a row or a step, and no column or task."""


@dataclass(frozen=True, slots=True)
class ImportedAnswers:
    """The content of the files of one import."""

    answers: Mapping[str, Answer]
    """Step, as `ANNOTATION-ID_ACTION-UID` -> its answer."""
    problems: Sequence[Problem]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the run beyond those of every import."""
    truths: Sequence[Truth] | None = None
    """The steps in order, where the files hold the right answers. None: a data set does."""
    is_grounded: bool = True
    """False: the answers name no element and no place, so that only the operation is scored."""


@dataclass(frozen=True, slots=True)
class Importer:
    """The declaration of a format."""

    name: str
    what: str
    """Its name in words, as in "expected ..., got ..."."""
    protocol: str
    """The protocol that scores it unless another is named."""
    read: Callable[..., ImportedAnswers]
    """Reads the sources by argument, with `options` by name. Raises InputError for a file that cannot be read, WrongFormat for
    one of another kind."""
    looks: Callable[[Any], bool]
    """True if a file's beginning is of this format: its first JSON value, its header as a tuple, or a folder's names as a set."""
    needs: tuple[str, ...] = ("run",)
    """Arguments that name its required files."""
    takes: tuple[str, ...] = ()
    """Arguments that name its optional files."""
    options: tuple[str, ...] = ()
    """Names of the options of `read`."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Its counts beyond NOTES, with their meanings."""


class WrongFormat(Exception):
    """A file without anything that the format is read for."""

    def __init__(self, source: Source, wanted: str, found: str = "") -> None:
        """`found`: the file's content, as in "a.csv with ..."; empty: only what it looks like is told."""
        super().__init__(source, wanted, found)
        self.source, self.wanted, self.found = source, wanted, found
