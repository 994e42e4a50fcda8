"""UGround's pipeline: a planner that sees blocks of the page and describes an element, and a grounder that points to it.

Source: OSU-NLP-Group/UGround 3a9b9f2: offline_evaluation/Multimodal-Mind2Web.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from seeact_offline.agents.acts import Act, Kind, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.calls import json_in, loads, place_of
from seeact_offline.agents.screens import Frame, Point
from seeact_offline.replies.operation import operation_in, value_in
from seeact_offline.replies.points import read_point as find_point

ACTIONS: Mapping[str, Kind] = {
    "CLICK": "click", "TYPE": "type", "SELECT": "select", "HOVER": "hover", "SCROLL DOWN": "scroll", "SCROLL UP": "scroll",
    "SCROLL": "scroll", "STOP": "stop", "TERMINATE": "stop", "NONE": "stop", "PRESS ENTER": "press",
}  # fmt: skip
_BEFORE, _NAMES, _COLON = r"[ \t>#*-]*(?:\d{1,2}[.)][ \t*]*)?", "action|element|value", r"\**[ \t]*[:\uff1a]"
_FIELD = re.compile(rf"(?im)^{_BEFORE}({_NAMES}){_COLON}(?!\s*\n{_BEFORE}(?:{_NAMES}){_COLON})\s*\**[ \t]*(.*)$")
"""A line's name and what it says, which may stand on the next line unless that has a name too."""
_AROUND = " .`'\""
_POINT = re.compile(r"[(\[]([^()\[\]]*+)[)\]]")


def read_plan(text: str) -> list[Act]:
    """The last ACTION, ELEMENT and VALUE lines, whatever their case and emphasis; the element is the act's label."""
    fields = {name.lower(): said.rstrip(" \t").rstrip("*").strip() for name, said in _FIELD.findall(text)}
    if not fields:
        written = next((value for value in json_in(text) if isinstance(value, dict)), {})
        fields = {str(name).lower(): str(said) for name, said in written.items()}
    action = fields.get("action", "")
    # all fields may stand on one line
    with suppress(Unreadable):
        if action.upper().strip(_AROUND) not in ACTIONS and (acts := read_plan_strictly(text))[0].kind != "other":
            return acts
    if "action" not in fields:
        raise Unreadable("expected a line ACTION: ...")
    return [_plan(action, fields.get("element", ""), fields.get("value", ""))]


def read_plan_strictly(text: str) -> list[Act]:
    """ACTION up to ELEMENT, ELEMENT up to VALUE, VALUE to the end, as the released patterns read them. An action of another name
    keeps its element."""
    action, element = _between(text, "ACTION:", "ELEMENT:"), _between(text, "ELEMENT:", "VALUE:")
    value = text.partition("VALUE:")[2].strip()
    # the scorer ignores the case, and the loop that scrolls does not
    if action.upper() != "SCROLL DOWN":
        action = action.upper()
    if not any((action, element, value)):
        raise Unreadable("expected ACTION:, ELEMENT: and VALUE:")
    kind = ACTIONS.get(action, "other")
    said = value if kind in ("type", "select") and value.lower() != "none" else None
    return [Act(kind, None if element in ("", "None") else element, said or None)]


def _between(text: str, begin: str, end: str) -> str:
    said, closed, _ = text.partition(begin)[2].partition(end)
    return said.strip() if closed else ""


def _plan(action: str, element: str, value: str) -> Act:
    name = action.upper().strip(_AROUND)
    kind = ACTIONS.get(name) or ACTIONS.get(operation_in(action))
    if kind is None:
        raise Unreadable(f"expected ACTION: CLICK, TYPE, SELECT or SCROLL DOWN, got {name[:40]!r}")
    extra = {"keys": "Enter"} if kind == "press" else {}
    if kind == "scroll":
        extra = {"direction": "up" if name.endswith("UP") else "down"}
    text = value_in(value) if kind in ("type", "select") else ""
    return Act(kind, value_in(element) or None, text or None, extra)


def read_point(text: str) -> list[Act]:
    """The last point in brackets, else the only place that is named."""
    for found in reversed(_POINT.findall(text)):
        if (place := place_of([part.strip() for part in found.split(",")])) is not None:
            return [Act("click", place)]
    pointed = find_point(text)
    if (place := place_of(pointed.numbers)) is not None and pointed.failure is None:
        return [Act("click", place)]
    return read_point_strictly(text)


def read_point_strictly(text: str) -> list[Act]:
    """The whole reply as two numbers in Python."""
    value = loads(text.strip())
    place = (
        place_of(value)
        if isinstance(value, list | tuple) and all(isinstance(one, int | float) for one in value)
        else None
    )
    if place is None or len(place) != 2:
        raise Unreadable("expected (x, y) and nothing else")
    return [Act("click", place)]


def write_plan(op: str, value: str, place: Point | str | None) -> str:
    """Three lines; `place` is the element's description."""
    said = place if isinstance(place, str) else "None"
    return f"ACTION: {op}\nELEMENT: {said}\nVALUE: {value if op != 'CLICK' and value else 'None'}"


def write_point(op: str, value: str, place: Point | str | None) -> str:
    """The point alone: a grounder says no operation."""
    return "(None, None)" if place is None else f"({place[0]}, {place[1]})"


UGROUND = Agent(
    "uground", "OSU-NLP-Group/UGround 3a9b9f2: offline_evaluation/Multimodal-Mind2Web", read_plan, read_plan_strictly, write_plan,
    view=View("blocks", stops_at_truth=True), grounder="uground-grounder",
    scroll="ACTION: SCROLL DOWN\nELEMENT: None\nVALUE: None", reads_others=False,
)  # fmt: skip
"""The agent as released: the blocks that hold the right element decide how far it may scroll, and whether the grounder is asked."""
UGROUND_BLIND = replace(UGROUND, name="uground-blind", view=View("blocks"))
"""The same without the truth: it may scroll to the end of the page."""
SEEACT_PLANNER = replace(UGROUND, name="seeact-planner", view=View(), scroll="")
"""A plan on the whole page, as in SeeAct's first turn, whose element a grounder finds."""
UGROUND_GROUNDER = Agent(
    "uground-grounder", "OSU-NLP-Group/UGround 3a9b9f2: grounding", read_point, read_point_strictly, write_point,
    frame=Frame(1000), speaks=frozenset({"CLICK"}), speaks_value=frozenset(),
)  # fmt: skip
