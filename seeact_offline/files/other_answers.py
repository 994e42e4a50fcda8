"""The JSON of another right answer to a step: in the column `also_right` of a data set, in a file of the user's, and in a run's targets."""

from __future__ import annotations

import msgspec

from seeact_offline.files.formats import FormatError
from seeact_offline.records import OPERATIONS, Box, OtherAnswer


class OtherAnswerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One other right answer; see `OtherAnswer`."""

    element_ids: tuple[str, ...] = ()
    op: str | None = None
    value: str = ""
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    """Each `[x, y, width, height]` in pixels of the page."""

    def __post_init__(self) -> None:
        if self.op is not None and self.op not in OPERATIONS:
            raise FormatError(f"op to be one of {', '.join(OPERATIONS)}", repr(self.op)[:40])
        if not self.element_ids and self.op is None:
            raise FormatError("element_ids, op or both", "neither")
        if self.value and self.op is None:
            raise FormatError("the op of a value", "none")

    @property
    def answer(self) -> OtherAnswer:
        return OtherAnswer(self.element_ids, self.op, self.value, tuple(Box(*box) for box in self.boxes))
