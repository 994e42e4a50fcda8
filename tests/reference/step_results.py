"""The two released Mind2Web evaluations of one reply, slow and obvious. Sources: njucckevin/SeeClick 0ef37ac agent_tasks/mind2web_test.py,
showlab/ShowUI 21ed7cb main/eval_mind2web.py with main/utils_aitw.py."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

CODES = {"CLICK": 4, "SELECT": 2, "TYPE": 3}
_SHOWUI = re.compile(
    r"'action':\s*'(?P<action>.*?)',\s*'value':\s*(?:None|'(?P<value>.*?)'),\s*'position':\s*(?:None|\[(?P<x>[0-9.]+),\s*(?P<y>[0-9.]+)\])"
)


class Earned(NamedTuple):
    element: float
    f1: float


def seeclick(reply: str, action: Mapping[str, Any], size: tuple[int, int]) -> Earned | None:
    """None where the step is skipped, as its answer cannot be read back."""
    right = literal(f'{{"value": "{action["operation"]["value"]}"}}')
    recorded = action["operation"]["original_op"]
    code = CODES.get(recorded, 4)
    if right is None and code != 4:
        return None
    said, element = literal(reply), 0.0
    try:
        kind, place = said["action_type"], said["click_point"]
        element = float(_inside(place, action["bbox"], size))
        words = str(kind)
        if kind in (2, 3):
            words += " " + said["value"].lower()
        wanted = str(code) if code == 4 else f"{code} {right['value'].lower()}"
        return Earned(element, _f1(words, wanted))
    except (TypeError, KeyError, AttributeError, IndexError):
        return Earned(element, 0.0)


def showui(reply: str, action: Mapping[str, Any], size: tuple[int, int], text: str) -> Earned:
    """`text`: of the action, which names the element."""
    found = _SHOWUI.search(reply.replace('"', "'"))
    if found is None or found["x"] is None:
        return Earned(0.0, 0.0)
    try:
        place = float(found["x"]), float(found["y"])
    except ValueError:
        return Earned(0.0, 0.0)
    element = float(_inside(place, action["bbox"], size))
    op = action["operation"]["op"]
    name = re.search(r"\]\s+(.*?)\s+->", text)
    right = action["operation"]["value"] if op == "TYPE" else name and name[1]
    if (
        found["action"] not in CODES
        or (found["action"] != "CLICK" and found["value"] is None)
        or (op != "CLICK" and right is None)
    ):
        return Earned(element, 0.0)
    sides = ((found["action"], found["value"]), (op, right))
    return Earned(
        element, _f1(*(str(CODES[one]) + (f" {value.lower()}" if one != "CLICK" else "") for one, value in sides))
    )


def literal(text: str) -> Any:
    with catch_warnings():
        simplefilter("ignore")
        try:
            return literal_eval(text)
        except (SyntaxError, ValueError):
            return None


def _inside(place: Any, box: Mapping[str, float], size: tuple[int, int]) -> bool:
    for at, side, name, length in zip(place[:2], size, "xy", ("width", "height"), strict=True):
        if not round(box[name] / side, 3) <= at <= round((box[name] + box[length]) / side, 3):
            return False
    return len(place) > 1


def _f1(said: str, wanted: str) -> float:
    one, other = set(said.split()), set(wanted.split())
    return 2 * len(one & other) / (len(one) + len(other))
