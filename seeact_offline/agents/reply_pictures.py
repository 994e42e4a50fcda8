"""The picture that a reply of another program is about, as columns say or the agent's own rule makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seeact_offline.agents import Agent
from seeact_offline.agents.screens import Rectangle, Shown
from seeact_offline.files.formats import as_number

SIZES = ("width", "height")
PARTS = ("left", "top", "right", "bottom")


def shown_of(values: Mapping[str, Any], agent: Agent, page: tuple[int, int] | None) -> tuple[Shown, dict[str, int]]:
    """Returns the picture that the reply is about, and counts of what is odd about it."""
    page = page or (1000, 1000)
    sent, part = _numbers(values, SIZES), _numbers(values, PARTS)
    given = {name for name in (*SIZES, *PARTS) if values.get(name) not in (None, "")}
    # blocks and windows begin at the left
    corner = _numbers(values if "left" in given else {**values, "left": 0}, PARTS[:2])
    is_bad = (given & {*SIZES} and sent is None) or (given & {*PARTS} and part is None and corner is None)
    notes = ["bad_geometry"] if is_bad else []
    if part is None and corner is not None:
        width, height = sent or (page[0] - corner[0], page[1] - corner[1])
        part = (*corner, corner[0] + width, corner[1] + height)
    if part is None and agent.view.part != "page":
        notes.append("no_offset")
        part = (0, 0, *(sent or page))
    rectangle: Rectangle = (0, 0, *page) if part is None else (part[0], part[1], part[2], part[3])
    if rectangle[2] <= rectangle[0] or rectangle[3] <= rectangle[1]:
        rectangle, notes = (0, 0, *page), ["bad_geometry"]
    size = (rectangle[2] - rectangle[0], rectangle[3] - rectangle[1])
    try:
        shown = Shown(page, (sent[0], sent[1]) if sent else agent.view.resize.apply(size), rectangle)
    except ValueError:
        shown = Shown(page, size, rectangle)
    return shown, dict.fromkeys(notes, 1)


def _numbers(values: Mapping[str, Any], names: tuple[str, ...]) -> tuple[int, ...] | None:
    """The whole numbers of these columns; None where one is missing or is no number."""
    found = [as_number(values.get(name)) for name in names]
    known = [int(one) for one in found if one is not None and 0 <= one < 1_000_000]
    return tuple(known) if len(known) == len(names) and (names != SIZES or min(known) > 0) else None
