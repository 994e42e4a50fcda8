"""The acts that a reply asks for, in one form for all agents, and their folding into one answer.

An agent's reader turns a reply into acts; `fold` turns the acts into one operation, value and place, the answer to a
step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal

from seeact_offline.agents.screens import Frame, Point, Shown
from seeact_offline.pages.pointing import is_everything
from seeact_offline.records import EMPTY_VALUE

Kind = Literal[
    "click", "double", "right", "hover", "type", "select", "clear", "press", "scroll", "drag", "wait", "zoom", "stop",
    "answer", "back", "goto", "tab", "other",
]  # fmt: skip
Place = tuple[float, float] | tuple[float, float, float, float] | str
"""A point, a box of left, top, right and bottom, or a label."""
CLICKS = frozenset({"click", "double", "right", "hover"})
ENDINGS: Mapping[str, str] = MappingProxyType(
    {
        "scroll": "scrolled",
        "wait": "waited",
        "zoom": "waited",
        "stop": "stopped_early",
        "answer": "answered_early",
        "back": "left_page",
        "goto": "left_page",
        "tab": "left_page",
        "drag": "other_act",
        "press": "other_act",
        "clear": "other_act",
    }
)
"""Acts that answer no step -> the name of the failure; docs/glossary.md says what each means."""
IDLE = frozenset({"press", "wait", "zoom", "clear"})
"""Acts that are passed over where others follow."""
FARTHEST = 1e9
"""The largest number of a place, in those of its frame."""


class Unreadable(Exception):
    """A reply that holds no act. Its text says what was missing."""

    name = "no_act"


class NoPlace(Unreadable):
    """A click that does not say where, in a form that is read."""

    name = "no_place"


class MissingPart(Unreadable):
    """A reply without the words that an action is looked for behind."""

    name = "format_error"


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that a reply asks for."""

    kind: Kind
    place: Place | None = None
    """Place in the numbers of the agent's frame, or a label."""
    text: str | None = None
    """Text that is typed, chosen, pressed or answered."""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Further parts. What only a browser needs: `direction` (up, down, left, right, forward) and `pixels` of a scroll,
    `to` (the place where a drag ends), `enter` (True: pressed after typing), `keys` that the verb itself names; and
    `name` of an act of another kind, where a protocol compares it. Empty for none."""

    @property
    def point(self) -> Point | None:
        """The point, or the centre of a box; None for a label or where there is no place."""
        if self.place is None or isinstance(self.place, str):
            return None
        if len(self.place) == 2:
            return self.place
        left, top, right, bottom = self.place
        return (left + right) / 2, (top + bottom) / 2


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a step, before it is known which element lies at its place."""

    op: str = ""
    """CLICK, TYPE or SELECT; empty where the reply has none of them, or where it answers no step."""
    value: str = ""
    """EMPTY_VALUE for one that is there and empty; empty for none."""
    place: Point | None = None
    """Page pixels; None where the reply has no place. Beyond the picture only where replies are read strictly."""
    label: str | None = None
    """The label in place of a point."""
    failure: str | None = None
    """The name of what is wrong."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Turns the acts of a reply into one answer: the first counts, and a click followed by typing is a TYPE at the
    click's place."""

    type_place: Literal["none", "last-click", "ask-again"] = "none"
    """The place of a TYPE that names none: none, that of the step before if it was a click, or that of a further
    question."""
    endings: Mapping[str, str] = field(default_factory=lambda: ENDINGS)

    def fold(self, acts: Sequence[Act], last_click: Point | None = None) -> tuple[Act, str | None]:
        """The act that counts, and the failure's name where it answers no step. Raises Unreadable where there is no
        act."""
        if not acts:
            raise Unreadable("no act")
        busy = [act for act in acts if act.kind not in IDLE] or acts[:1]
        first = _joined(busy[0], busy[1:])
        return first, self.endings.get(first.kind)


def _joined(first: Act, later: Sequence[Act]) -> Act:
    """The first act with what the next adds: a click's place to typing, a pointer's place to what is done there."""
    for act in later:
        if first.kind == "hover" and act.kind in ("scroll", "drag"):
            return act
        if first.kind not in CLICKS or first.place is None or (act.place is not None and act.place != first.place):
            break
        if act.kind in ("type", "select"):
            return replace(act, place=first.place)
        if act.kind not in CLICKS:
            break
        # clicked again, to select what is in a field before it is typed over
        first = replace(act, place=first.place) if first.kind == "hover" else first
    return first


def answer_of(
    acts: Sequence[Act],
    shown: Shown,
    frame: Frame,
    fold: Fold,
    last_click: Point | None = None,
    strict: bool = False,
    needs_place: bool = True,
) -> Answer:
    """The one answer that these acts are. `last_click`: where the step before was clicked, in pixels of the page.
    `strict`: keep a place beyond the picture, moved to its edge where the released code does, and take an action of
    another name for an answer. `needs_place`: False for acts whose element another agent finds."""
    try:
        act, failure = fold.fold(acts)
    except Unreadable as error:
        return Answer(failure=Unreadable.name, detail=str(error))
    if failure is not None:
        return Answer(failure=failure, detail=act.text or "")
    op = "CLICK" if act.kind in CLICKS else act.extra.get("name", "") if act.kind == "other" else act.kind.upper()
    value = "" if op in ("", "CLICK") or act.text is None else act.text.removesuffix("\n") or EMPTY_VALUE
    answer = Answer(op, value, failure="unknown_action" if act.kind == "other" and not strict else None)
    if isinstance(act.place, str):
        return replace(answer, label=act.place)
    point = act.point
    if point is None and act.kind in CLICKS and not strict and needs_place:
        return replace(answer, failure=NoPlace.name, detail=f"{act.kind} without a place that can be read")
    if point is None or act.place is None:
        return replace(answer, place=last_click if op == "TYPE" and fold.type_place == "last-click" else None)
    return _placed(answer, act.place, point, shown, frame, strict)


def _placed(answer: Answer, place: tuple[float, ...], point: Point, shown: Shown, frame: Frame, strict: bool) -> Answer:
    try:
        extent = frame.extent(shown.sent)
    except ValueError as error:
        return replace(answer, failure="point_outside", detail=str(error))
    if not strict and is_everything(place, extent):
        return replace(answer, failure=NoPlace.name, detail="a box around the whole picture")
    # whole numbers are pixels, 0 and 1 too
    if frame.reads_fractions and all(0 <= number <= 1 for number in point) and any(number % 1 for number in point):
        point = point[0] * extent[0], point[1] * extent[1]
    if strict and frame.clamps and all(map(isfinite, point)):
        point = min(max(point[0], 0), extent[0]), min(max(point[1], 0), extent[1])
    if all(0 <= number <= edge for number, edge in zip(point, extent, strict=True)):
        return replace(answer, place=shown.to_page(point, frame))
    detail = f"({point[0]:.10g}, {point[1]:.10g}) is beyond {frame.describe(shown.sent)}{_fitting(point, shown)}"
    # finite, as a number of JSON is
    x, y = (min(FARTHEST, max(-FARTHEST, number)) for number in point)
    on_page = shown.to_page((x, y), frame) if strict else None
    return replace(answer, place=on_page, failure="point_outside", detail=detail)


def _fitting(point: Point, shown: Shown) -> str:
    """The frames that would hold the point, in words."""
    frames = {
        "0 to 1": (1, 1),
        "0 to 1000": (1000, 1000),
        "pixels as sent": shown.sent,
        "pixels of the page": shown.page,
    }
    fitting = [name for name, (width, height) in frames.items() if 0 <= point[0] <= width and 0 <= point[1] <= height]
    return f"; it would fit {fitting[0]}" if fitting else ""
