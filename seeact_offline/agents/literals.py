"""SeeClick and ShowUI: one Python literal with fractions of the picture.

Source: njucckevin/SeeClick 0ef37ac: agent_tasks/mind2web_test.py; showlab/ShowUI 21ed7cb: main/eval_mind2web.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from seeact_offline.agents.acts import Act, Kind, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.notations import acts_in
from seeact_offline.agents.screens import Frame, Resize
from seeact_offline.agents.writing import Template
from seeact_offline.replies.calls import escape, parse

TYPES: Mapping[str, Kind] = {"4": "click", "2": "select", "3": "type"}
STRICT_ACTIONS: Mapping[str, Kind] = {"CLICK": "click", "TYPE": "type", "SELECT": "select"}
"""The actions of ShowUI on Mind2Web; another one keeps its place."""
_BEGIN = re.compile(r"'action':\s*'")
_MIDDLE = re.compile(r"',\s*'value':\s*(?P<none>None)?")
_END = r",\s*'position':\s*(?P<place>None|\[([0-9.]+),\s*([0-9.]+)\])"
_NO_VALUE = re.compile(_END)
_VALUE = re.compile(rf"'(?:(?P<value>.*?)'{_END}|.*)")
"""A value up to the first quote that a position follows, else the rest of the line."""


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


def read_showui(text: str) -> list[Act]:
    """The call, keys in any order; where its quotes break, as the released code reads it."""
    try:
        return acts_in(text, ("json",), sign=r"[\"']action[\"']")
    except Unreadable as error:
        if error.name != Unreadable.name:
            raise
        return read_showui_strictly(text)


def read_showui_strictly(text: str) -> list[Act]:
    """The first place where action, value and position follow each other in this order."""
    action, match = _showui_parts(text.replace('"', "'"))
    kind: Kind = STRICT_ACTIONS.get(action, "other")
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


WRITE_SEECLICK = Template(
    '{"action_type": 4, "click_point": (X,Y)}',
    '{"action_type": 3, "click_point": (X,Y), "value": "VALUE"}',
    '{"action_type": 2, "click_point": (X,Y), "value": "VALUE"}',
    digits=2,
)
"""A dictionary as the training data has it: a value that holds a quote makes it unreadable, and the released evaluation leaves such steps out."""
WRITE_SHOWUI = Template(
    "{'action': 'CLICK', 'value': None, 'position': [X, Y]}",
    "{'action': 'TYPE', 'value': 'VALUE', 'position': [X, Y]}",
    "{'action': 'SELECT', 'value': 'VALUE', 'position': [X, Y]}",
    quoted=escape,
    digits=2,
)
"""A dictionary as the training data has it, a click without the element's name; the value of a SELECT is the element's name."""
SEECLICK = Agent(
    "seeclick", "njucckevin/SeeClick 0ef37ac: agent_tasks/mind2web_test.py", partial(acts_in, notations=("json",), verbs=TYPES, sign="action_type"), read_seeclick_strictly, WRITE_SEECLICK,
    verbs=TYPES, protocol="seeclick", frame=Frame(1, decimals=2, rounded_to=3), history_steps=4,
)  # fmt: skip
SHOWUI = Agent(
    "showui", "showlab/ShowUI 21ed7cb: main/eval_mind2web.py", read_showui, read_showui_strictly, WRITE_SHOWUI,
    protocol="showui", frame=Frame(1, decimals=2), view=View(resize=Resize("smart", 28, 1_053_696, 1_317_120)),
    history_steps=4, names_selected=True,
)  # fmt: skip
