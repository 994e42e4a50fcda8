"""The columns that only our recorder writes: their names, their JSON texts as types, and lazy reading.

Any reader may ignore them. They hold parts of the answer (the check), so no model is ever shown one unless it asks for
that by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import msgspec

from ..files.formats import FormatError, decoded, short
from ..records import Box, RowError, Screenshot

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
        kinds = [name for name in ("url", "text", "value", "visible") if getattr(self, name) is not None]
        if len(kinds) != 1 or (self.selector is None) != (self.url is not None):
            wanted = "either url, or selector and one of text, value and visible"
            raise FormatError(wanted, short(msgspec.to_builtins(self)))

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class Check(msgspec.Struct, frozen=True):
    """The conditions under which a task is finished, and which of them hold around one action."""

    conditions: tuple[Condition, ...]
    before: tuple[bool, ...]
    """True where a condition holds on the page before the action; never all true."""
    after: tuple[bool, ...] | None = None
    """The same on the page after the task's last action, all true; None at its other steps."""


class PageState(msgspec.Struct, frozen=True):
    """The address of a page and the part of it that its window shows."""

    address: str
    """A URL; from a folder that was served while recording, the part of it after the host."""
    window: tuple[int, int]
    """Width and height of the window in pixels."""
    scroll: tuple[float, float]
    """The page's pixel in the window's upper left corner."""


class ClientRect(msgspec.Struct, frozen=True, array_like=True):
    """One rectangle of an element; one that is wrapped over lines has several."""

    box: Box
    """Page pixels, to 0.01."""
    on_top: str | None
    """Id of the element that a pointer at the centre meets; None for none, and outside of the page."""


class ElementLayout(msgspec.Struct, frozen=True, omit_defaults=True):
    """The place and look of an element that has at least one rectangle."""

    id: str
    """Its `backend_node_id`."""
    rects: tuple[ClientRect, ...]
    cursor: str = "auto"
    """Computed value in CSS's words, like the following."""
    visibility: str = "visible"


class Layout(msgspec.Struct, frozen=True):
    """All elements of a page that have a rectangle, in document order."""

    elements: tuple[ElementLayout, ...]


class AccessibleNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """One node of the accessibility tree, in the browser's words."""

    depth: int
    """Its children are the following nodes of depth + 1, up to the next node that is no deeper than itself."""
    role: str
    id: str | None = None
    """`backend_node_id` of its element or text; None for the page itself and the insides of the browser's own
    controls."""
    name: str = ""
    value: str = ""
    properties: Mapping[str, str | bool | float] = {}
    """Properties such as focusable, checked or expanded."""


class AccessibilityTree(msgspec.Struct, frozen=True):
    """The nodes of a page that are exposed to assistive technology, parents before children."""

    nodes: tuple[AccessibleNode, ...]


class FinalState(msgspec.Struct, frozen=True):
    """The page after a task's last action, and the answer that the task asks for."""

    address: str
    """See `PageState`."""
    cleaned_html: str
    answer: str | None = None


COLUMN_TYPES: Mapping[str, type[msgspec.Struct]] = {
    "page_state": PageState,
    "layout": Layout,
    "accessibility_tree": AccessibilityTree,
    "check": Check,
    "final_state": FinalState,
}
"""Column -> the type of its JSON text."""
FINAL_SCREENSHOT = "final_screenshot"
"""The column of the picture that belongs to `FinalState`, stored as `screenshot` is."""
RECORDED_COLUMNS = (*COLUMN_TYPES, FINAL_SCREENSHOT)
"""Names of the columns; each is optional, and null in rows without it."""


@dataclass(frozen=True, slots=True)
class RecordedColumns:
    """The recorder's columns of one row, as stored."""

    columns: Mapping[str, object] = field(repr=False)
    """Name -> JSON text, without nulls."""
    final_screenshot: Screenshot | None = None

    @classmethod
    def of(cls, row: Mapping[str, object], final_screenshot: Screenshot | None) -> RecordedColumns | None:
        """The columns of a row; None for a row without them. `final_screenshot`: its picture of the page after the last
        action."""
        columns = {name: row[name] for name in COLUMN_TYPES if row.get(name) is not None}
        return cls(columns, final_screenshot) if columns or final_screenshot else None

    def read(self, kind: type[T]) -> T | None:
        name = next(name for name, column_type in COLUMN_TYPES.items() if column_type is kind)
        text = self.columns.get(name)
        try:
            return None if text is None else decoded(str(text), kind)  # type: ignore[type-var]
        except FormatError as error:
            raise RowError("bad_recording", f"{name}: {error}") from None
