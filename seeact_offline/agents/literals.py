"""SeeClick and ShowUI: one Python literal with fractions of the picture.

Source: njucckevin/SeeClick 0ef37ac: agent_tasks/mind2web_test.py; showlab/ShowUI 21ed7cb: main/eval_mind2web.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from seeact_offline.agents.acts import Act, Kind, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.calls import escape, json_in, parse, place_of
from seeact_offline.agents.screens import Frame, Point, Resize
from seeact_offline.agents.verbs import scroll_of

TYPES: Mapping[str, Kind] = {"4": "click", "2": "select", "3": "type"}
CODES = {"CLICK": 4, "SELECT": 2, "TYPE": 3}
ACTIONS: Mapping[str, Kind] = {
    "CLICK": "click", "TAP": "click", "INPUT": "type", "TYPE": "type", "SELECT": "select", "HOVER": "hover", "ENTER": "press",
    "SCROLL": "scroll", "ANSWER": "answer", "STOP": "stop",
}  # fmt: skip
STRICT_ACTIONS = frozenset({"CLICK", "TYPE", "SELECT"})
"""The actions of ShowUI on Mind2Web; another one keeps its place."""
_BEGIN = re.compile(r"'action':\s*'")
_MIDDLE = re.compile(r"',\s*'value':\s*(?P<none>None)?")
_END = r",\s*'position':\s*(?P<place>None|\[([0-9.]+),\s*([0-9.]+)\])"
_NO_VALUE = re.compile(_END)
_VALUE = re.compile(rf"'(?:(?P<value>.*?)'{_END}|.*)")
"""A value up to the first quote that a position follows, else the rest of the line."""


def read_seeclick(text: str) -> list[Act]:
    """The first dictionary with an `action_type`, whatever stands around it."""
    value = _first_with(text, "action_type")
    return [_seeclick_act({**value, "action_type": str(value["action_type"]).removesuffix(".0")})]


def read_seeclick_strictly(reply: str) -> list[Act]:
    """The whole reply as one Python literal. A number in quotes has an empty value; another type is compared as it is written."""
    try:
        value = ast.literal_eval(parse(reply))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise Unreadable("expected one Python dictionary and nothing else") from None
    if not isinstance(value, dict) or "action_type" not in value:
        raise Unreadable("expected a dictionary with action_type")
    code = value["action_type"]
    # the released code looks at the value of the numbers 2 and 3 alone, and stops where it is no text
    words = value.get("value") if code in (2, 3) else ""
    text = words if isinstance(words, str) else None
    kind = TYPES.get(str(code).strip(), "other")
    # such as 7, or 3.0 with its value in lower case, as it is compared
    name = f"{code} {(text or '').lower()}".strip()
    place = _first_two(value.get("click_point"))
    return [Act(kind, place, text if kind in ("type", "select") else None, {"name": name})]


def _first_two(point: Any) -> tuple[float, float] | None:
    """The first two of a list of numbers, which the released code looks at; None for a text."""
    if (
        not isinstance(point, list | tuple)
        or len(point) < 2
        or not all(isinstance(one, int | float) for one in point[:2])
    ):
        return None
    with suppress(OverflowError):
        return float(point[0]), float(point[1])
    return None


def _seeclick_act(value: Mapping[str, Any]) -> Act:
    kind = TYPES.get(str(value["action_type"]).strip(), "other")
    text = value.get("value")
    return Act(kind, place_of(value.get("click_point")), None if text is None or kind == "click" else str(text))


def read_showui(text: str) -> list[Act]:
    """The first dictionary with an `action`, keys in any order; else as the released code reads it."""
    try:
        value = _first_with(text, "action")
    except Unreadable:
        return read_showui_strictly(text)
    kind = ACTIONS.get(str(value["action"]).strip().upper(), "other")
    said = value.get("value")
    extra = scroll_of("scroll", {"direction": said}) if kind == "scroll" else {}
    extra |= {"keys": "Enter"} if kind == "press" else {}
    return [Act(kind, place_of(value.get("position")), None if said is None or kind == "click" else str(said), extra)]


def read_showui_strictly(text: str) -> list[Act]:
    """The first place where action, value and position follow each other in this order."""
    action, match = _showui_parts(text.replace('"', "'"))
    kind: Kind = ACTIONS[action] if action in STRICT_ACTIONS else "other"
    *_, x, y = match.groups()
    try:
        place = None if x is None else (float(x), float(y))
    except ValueError:
        raise Unreadable(f"expected two numbers, got {x}, {y}") from None
    return [Act(kind, place, None if kind == "click" else match.groupdict().get("value"))]


def _showui_parts(text: str) -> tuple[str, re.Match[str]]:
    """The name of the action, and what holds value and position: the first of each kind that the next follows, neither broken by the end of
    a line. Each is looked for once on a line, as one pattern for all three takes time cubic in the text."""
    middles, n_middle = list(_MIDDLE.finditer(text)), 0
    line_end = value_end = -1
    at = 0
    while begun := _BEGIN.search(text, at):
        # the quote that ends one may begin the next
        at = begun.end() - 1
        if begun.end() <= line_end:
            continue
        line_end = _line_end(text, begun.end())
        while n_middle < len(middles) and middles[n_middle].start() < line_end:
            middle = middles[n_middle]
            n_middle += 1
            if middle.start() < begun.end():
                continue
            if middle["none"]:
                match = _NO_VALUE.match(text, middle.end())
            elif middle.end() < value_end:
                continue
            else:
                match = _VALUE.match(text, middle.end())
                value_end = match.end() if match else value_end
            if match and match["place"]:
                return text[begun.end() : middle.start()], match
    raise Unreadable("expected {'action': ..., 'value': ..., 'position': [x, y]}")


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return found if found >= 0 else len(text)


def _first_with(text: str, key: str) -> dict[str, Any]:
    for value in json_in(text):
        if isinstance(value, list | tuple):
            value = next((one for one in value if isinstance(one, dict)), None)
        if isinstance(value, dict) and key in value:
            return value
    raise Unreadable(f"expected a dictionary with {key}")


def write_seeclick(op: str, value: str, place: Point | str | None) -> str:
    """A dictionary as the training data has it: a value that holds a quote makes it unreadable, and the released evaluation leaves such
    steps out."""
    point = "" if place is None else f', "click_point": ({place[0]:.2f},{place[1]:.2f})'
    said = "" if op == "CLICK" else f', "value": "{value}"'
    return f'{{"action_type": {CODES[op]}{point}{said}}}'


def write_showui(op: str, value: str, place: Point | str | None) -> str:
    """A dictionary as the training data has it, a click without the element's name. `value`: of a SELECT the element's name."""
    point = "None" if place is None else f"[{place[0]:.2f}, {place[1]:.2f}]"
    said = "None" if op == "CLICK" else f"'{escape(value)}'"
    return f"{{'action': '{op}', 'value': {said}, 'position': {point}}}"


SEECLICK = Agent(
    "seeclick", "njucckevin/SeeClick 0ef37ac: agent_tasks/mind2web_test.py", read_seeclick, read_seeclick_strictly, write_seeclick,
    protocol="seeclick", frame=Frame(1, decimals=2, rounded_to=3), history_steps=4,
)  # fmt: skip
SHOWUI = Agent(
    "showui", "showlab/ShowUI 21ed7cb: main/eval_mind2web.py", read_showui, read_showui_strictly, write_showui,
    protocol="showui", frame=Frame(1, decimals=2), view=View(resize=Resize("smart", 28, 1_053_696, 1_317_120)),
    history_steps=4, names_selected=True,
)  # fmt: skip
