"""The columns that only our recorder writes: their names, their JSON texts as types, and lazy reading.

Any reader may ignore them. They hold parts of the answer (the check), so no model is ever shown one unless it asks for that by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import msgspec

from ..files.formats import FormatError, decoded, short
from ..records import RowError

_NotEmpty = Annotated[str, msgspec.Meta(min_length=1)]
T = TypeVar("T")


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One condition on a page: either on its address, or on the visible elements that match a selector."""

    url: _NotEmpty | None = None
    """A text inside the address after its host: path, query and fragment."""
    selector: _NotEmpty | None = None
    """A selector in Playwright's syntax."""
    text: _NotEmpty | None = None
    """A part of an element's text as shown, with white space collapsed."""
    value: str | None = None
    """The whole value of a field; of a select, the label of its option."""
    visible: bool | None = None
    """False: no visible element matches."""

    def __post_init__(self) -> None:
        given = [name for name in ("url", "text", "value", "visible") if getattr(self, name) is not None]
        if len(given) != 1 or (self.selector is None) != (self.url is not None):
            wanted = "either url, or selector and one of text, value and visible"
            raise FormatError(wanted, short(msgspec.to_builtins(self)))

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class Check(msgspec.Struct, frozen=True):
    """The conditions under which a task is finished, and which of them hold around one action."""

    conditions: tuple[Condition, ...]
    before: tuple[bool, ...]
    """On the page before the action; never all true."""
    after: tuple[bool, ...] | None = None
    """On the page after the task's last action, all true; None at its other steps."""


COLUMN_TYPES: Mapping[str, type[msgspec.Struct]] = {"check": Check}
"""Column -> the type of its JSON text."""
RECORDED_COLUMNS = tuple(COLUMN_TYPES)
"""Names of the columns; each is optional, and null in rows without it."""


@dataclass(frozen=True, slots=True)
class RecordedColumns:
    """The recorder's columns of one row, as stored."""

    columns: Mapping[str, object] = field(repr=False)
    """Name -> content, without nulls."""

    @classmethod
    def of(cls, row: Mapping[str, object]) -> RecordedColumns | None:
        """The columns of a row; None for a row without them."""
        columns = {name: row[name] for name in RECORDED_COLUMNS if row.get(name) is not None}
        return cls(columns) if columns else None

    def read(self, kind: type[T]) -> T | None:
        name = next(name for name, known in COLUMN_TYPES.items() if known is kind)
        text = self.columns.get(name)
        try:
            return None if text is None else decoded(str(text), kind)  # type: ignore[type-var]
        except FormatError as error:
            raise RowError("bad_recording", f"{name}: {error}") from None
