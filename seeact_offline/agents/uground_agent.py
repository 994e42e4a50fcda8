"""UGround's pipeline: a planner that sees blocks of the page and describes an element, and a grounder that points to it.

Source: OSU-NLP-Group/UGround 3a9b9f2: offline_evaluation/Multimodal-Mind2Web.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from seeact_offline.agents.acts import Act, Kind, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.notations import place_in_reply
from seeact_offline.agents.screens import Frame, Point
from seeact_offline.agents.verbs import Declined, Several
from seeact_offline.agents.writing import Template
from seeact_offline.replies.calls import loads, place_of
from seeact_offline.replies.decided import DECLINED
from seeact_offline.replies.fields import ACTION, ELEMENT, VALUE
from seeact_offline.replies.final_answer import final_fields
from seeact_offline.replies.operation import operation_in, value_in

ACTIONS: Mapping[str, Kind] = {
    "CLICK": "click", "TYPE": "type", "SELECT": "select", "HOVER": "hover", "SCROLL DOWN": "scroll", "SCROLL UP": "scroll",
    "SCROLL": "scroll", "STOP": "stop", "TERMINATE": "stop", "NONE": "stop", "PRESS ENTER": "press",
}  # fmt: skip
_AROUND = " .`'\""


def read_plan(text: str) -> list[Act]:
    """The final ACTION, ELEMENT and VALUE, however they are laid out; the element is the act's label."""
    block, aside = final_fields(text)
    if aside is not None:
        raise Declined("the words around the plan set it aside") if aside == DECLINED else Several("several plans")
    action = block.text(ACTION)
    if not action:
        raise Unreadable("expected a line ACTION: ...")
    return [_plan(action, block.text(ELEMENT), block.text(VALUE))]


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
    """The only place that is named."""
    return [place_in_reply(text)]


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
    "uground-grounder", "OSU-NLP-Group/UGround 3a9b9f2: grounding", read_point, read_point_strictly, Template("(X, Y)"),
    frame=Frame(1000), speaks=frozenset({"CLICK"}), speaks_value=frozenset(),
)  # fmt: skip
