"""One mark of a set-of-mark observation."""

from __future__ import annotations

from dataclasses import dataclass

from seeact_offline.agents.screens import Point, Rectangle
from seeact_offline.records import Box


@dataclass(frozen=True, slots=True)
class Mark:
    """A label and its element; or a text that is listed without a label."""

    label: int | None
    """None: a text that is listed only, and cannot be acted on."""
    element_id: str
    rects: tuple[Box, ...]
    """Window pixels, like `center`."""
    center: Point
    """The place that an action on the mark points at."""
    entry: str
    """Its entry in the list beside the picture; empty for none."""
    is_drawn: bool = True
    """False: it cannot be seen in the picture, though an action may name its label."""


def in_window(box: Box, window: Rectangle) -> Box:
    """A box of the page in pixels of the window."""
    return Box(box.x - window[0], box.y - window[1], box.w, box.h)
