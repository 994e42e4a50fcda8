"""UI-TARS: `Action: click(start_box='(x,y)')`, in its released Mind2Web form and in that of version 1.5.

Source: bytedance/UI-TARS 582f3a7: codes/ui_tars/action_parser.py, data/training_example.json, README_coordinates.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from seeact_offline.agents.acts import CLICKS, Act, Kind, Place, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.calls import Call, calls_in, closed, escape, parse, place_in
from seeact_offline.agents.screens import Frame, Point, Resize
from seeact_offline.agents.verbs import Said, act_of, scroll_of

VERBS: Mapping[str, Kind] = {
    "click": "click", "left_click": "click", "left_single": "click", "left_double": "double", "right_single": "right",
    "hover": "hover", "select": "select", "type": "type", "input": "type", "drag": "drag", "hotkey": "press", "press": "press",
    "keydown": "press", "scroll": "scroll", "wait": "wait", "finished": "stop", "call_user": "stop",
}  # fmt: skip
_BOX_TOKENS = re.compile(r"<\|box_(?:start|end)\|>")
_BOX = re.compile(r"(start_box|end_box)='(\(\d+,\d+\))'")
_POINT = re.compile(r"<point>(\d+)\s+(\d+)</point>")
_TYPE = re.compile(r"type\(content='(?:(.*?)'\)|.*)")
_ONLY_CALLS = re.compile(r"(?s)\s*\w+\(.*\)\s*")
SMART = Resize("smart", 28, 78_400, 12_845_056)
CLIENT = Resize("linear", 0, 3_136, 2_116_800)


def read_uitars(text: str) -> list[Act]:
    """The calls after the last `Action:` that has one, arguments in any order, with those of the `Action:` lines right before it."""
    parts: list[list[Act]] = []
    for part in reversed(_BOX_TOKENS.sub("", text).split("Action:")):
        if parts and not _ONLY_CALLS.fullmatch(part):
            break
        if acts := [act for call in calls_in(part) if (act := _act(call)) is not None]:
            parts.append(acts)
    if parts:
        return [act for acts in reversed(parts) for act in acts]
    raise Unreadable("expected Action: and a call such as click(start_box='(x,y)')")


def _act(call: Call) -> Act | None:
    kind = VERBS.get(call.verb)
    if kind is None:
        return None
    given = (
        call.text("start_box", "point", "start_point", "box")
        if kind != "type"
        else call.text("start_box", "point", at=1)
    )
    place: Place | None = place_in(given) if given is not None else None
    if place is None and kind in CLICKS and (act := act_of(Said("click", call.named, call.positional))) is not None:
        # written without the box's name
        place = act.place
    text = call.text("content", "text", "value", "key", "keys", at=0 if kind == "type" else 1)
    to = place_in(call.text("end_box", "end_point", at=9) or "") if kind in ("drag", "scroll") else None
    extra = ({} if to is None else {"to": to}) | (scroll_of(call.verb, call.named) if kind == "scroll" else {})
    return Act(kind, place, text if kind in ("type", "select", "stop", "press") else None, extra)


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


def write_mind2web(op: str, value: str, place: Point | str | None) -> str:
    """The form of the released training example; `select` has no value."""
    box = "" if place is None else f"start_box='<|box_start|>({place[0]},{place[1]})<|box_end|>'"
    if op == "TYPE":
        return f"Action: type(content='{escape(value)}'{', ' * bool(box)}{box})"
    return f"Action: {op.lower()}({box})"


def write_general(op: str, value: str, place: Point | str | None) -> str:
    """The general form of version 1.5: for TYPE a click, then the typing."""
    calls = [] if place is None else [f"click(start_box='({place[0]},{place[1]})')"]
    if op == "TYPE":
        calls.append(f"type(content='{escape(value)}')")
    return "Action: " + "\n\n".join(calls)


def with_box_tokens(reply: str) -> str:
    """The reply with tokens around its places, as the released history of version 1.5 has them (`add_box_token`)."""
    return _BOX.sub(r"\1='<|box_start|>\2<|box_end|>'", reply)


UITARS = Agent(
    "uitars", "bytedance/UI-TARS 582f3a7: data/training_example.json, README_v1.md", read_uitars, read_strictly, write_mind2web,
    frame=Frame(1000), view=View(resize=CLIENT),
    speaks_value=frozenset({"TYPE"}),
)  # fmt: skip
UITARS_1_5 = Agent(
    "uitars-1.5", "bytedance/UI-TARS 582f3a7: codes/ui_tars, README_coordinates.md", read_uitars, read_strictly, write_general,
    frame=Frame(resize=SMART), view=View(resize=SMART),
    speaks=frozenset({"CLICK", "TYPE"}), speaks_value=frozenset({"TYPE"}), told=with_box_tokens,
)  # fmt: skip
