"""UI-TARS: `Action: click(start_box='(x,y)')`, in its released Mind2Web form and in that of version 1.5.

Source: bytedance/UI-TARS 582f3a7: codes/ui_tars/action_parser.py, data/training_example.json, README_coordinates.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import partial

from seeact_offline.agents.acts import Act, Kind, Place, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.notations import acts_in
from seeact_offline.agents.screens import Frame, Resize
from seeact_offline.agents.writing import Template
from seeact_offline.replies.calls import closed, escape, parse

VERBS: Mapping[str, Kind] = {
    "click": "click", "left_click": "click", "left_single": "click", "left_double": "double", "right_single": "right",
    "hover": "hover", "select": "select", "type": "type", "input": "type", "drag": "drag", "hotkey": "press", "press": "press",
    "keydown": "press", "scroll": "scroll", "wait": "wait", "finished": "stop", "call_user": "stop",
}  # fmt: skip
_BOX = re.compile(r"(start_box|end_box)='(\(\d+,\d+\))'")
_POINT = re.compile(r"<point>(\d+)\s+(\d+)</point>")
_TYPE = re.compile(r"type\(content='(?:(.*?)'\)|.*)")
SMART = Resize("smart", 28, 78_400, 12_845_056)
CLIENT = Resize("linear", 0, 3_136, 2_116_800)


_READER = partial(
    acts_in, notations=("python",), sign=r"Action\s*:|\w\((?:start_box|point|content|start_point|key)\s*="
)


def read_strictly(text: str) -> list[Act]:
    """Reads as the released parser does: the Mind2Web form of `type` gives its place as part of the text."""
    text = text.strip()
    if "<point>" in text:
        text = _POINT.sub(r"(\1,\2)", text.replace("[EOS]", "")).strip()
    for name, common in (("start_point=", "start_box="), ("end_point=", "end_box="), ("point=", "start_box=")):
        text = text.replace(name, common)
    if "Action:" not in text:
        raise Unreadable("expected Action:")
    return [_strict_act(part) for part in text.split("Action: ")[-1].split(")\n\n")]


def _strict_act(part: str) -> Act:
    if "type(content" in part:
        part = _closed(part)
        if closed(_TYPE, part) is None:
            raise Unreadable("expected type(content='...')")
        content = re.sub(r"(?<!\\)'", r"\\'", _TYPE.sub(lambda match: match[0] if match[1] is None else match[1], part))
        part = f"type(content='{content}')"
    part = _closed(part)
    try:
        call = parse(part.replace("\n", "\\n").lstrip()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unreadable("expected one Python call with keyword arguments") from None
    if not isinstance(call, ast.Call):
        raise Unreadable("expected one Python call with keyword arguments")
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    # of an argument that is given twice the last one counts
    given = {word.arg: word.value.value if isinstance(word.value, ast.Constant) else None for word in call.keywords}
    if None in given or not all(isinstance(value, str) for value in given.values()):
        raise Unreadable("expected arguments that are texts in quotes")
    arguments = {str(key): str(value).lstrip() for key, value in given.items() if value != ""}
    places = {key: _strict_place(value) for key, value in arguments.items() if "start_box" in key or "end_box" in key}
    kind = VERBS.get(name, "other")
    text = arguments.get("content", arguments.get("key"))
    return Act(kind, places.get("start_box"), text)


def _closed(part: str) -> str:
    return part if part.strip().endswith(")") else part.strip() + ")"


def _strict_place(text: str) -> Place | None:
    """Two or four numbers; None for another count, of which the parser makes no place."""
    try:
        numbers = [float(one) for one in text.replace("(", "").replace(")", "").split(",")]
    except ValueError:
        raise Unreadable("expected numbers in a box") from None
    if len(numbers) == 4:
        return numbers[0], numbers[1], numbers[2], numbers[3]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


_BOX_WRITTEN = "start_box='<|box_start|>(X,Y)<|box_end|>'"
WRITE_MIND2WEB = Template(
    f"click({_BOX_WRITTEN})",
    f"type(content='VALUE', {_BOX_WRITTEN})",
    f"select({_BOX_WRITTEN})",
    around="Action: {}",
    quoted=escape,
)
"""The form of the released training example; `select` has no value."""
WRITE_GENERAL = Template(
    "click(start_box='(X,Y)')", "type(content='VALUE')", around="Action: {}", joined="\n\n", quoted=escape
)
"""The general form of version 1.5."""


def with_box_tokens(reply: str) -> str:
    """The reply with tokens around its places, as the released history of version 1.5 has them (`add_box_token`)."""
    return _BOX.sub(r"\1='<|box_start|>\2<|box_end|>'", reply)


UITARS = Agent(
    "uitars", "bytedance/UI-TARS 582f3a7: data/training_example.json, README_v1.md", _READER, read_strictly, WRITE_MIND2WEB,
    frame=Frame(1000), view=View(resize=CLIENT),
    speaks_value=frozenset({"TYPE"}),
)  # fmt: skip
UITARS_1_5 = Agent(
    "uitars-1.5", "bytedance/UI-TARS 582f3a7: codes/ui_tars, README_coordinates.md", _READER, read_strictly, WRITE_GENERAL,
    frame=Frame(resize=SMART), view=View(resize=SMART),
    speaks=frozenset({"CLICK", "TYPE"}), speaks_value=frozenset({"TYPE"}), told=with_box_tokens,
)  # fmt: skip
