"""Agents declared by names: the numbers of their places, the rule that resizes their pictures, their notation, and verbs of their own.

A model whose answers are written in a known notation needs no code. `Agent` is the record that this makes; a language that no notation
covers brings a reader and a writer of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from seeact_offline.agents.acts import Act, Kind
from seeact_offline.agents.agent_record import Agent, Reader, View
from seeact_offline.agents.calls import escape
from seeact_offline.agents.notations import acts_in, place_in_reply
from seeact_offline.agents.point_verbs import read_holo, write_holo_abs
from seeact_offline.agents.screens import Frame, Point, Resize
from seeact_offline.records import InputError

_FRAMES = {"px": Frame(), "1000": Frame(1000), "999": Frame(999), "100": Frame(100, 1), "1": Frame(1, 4)}
FRAMES: Mapping[str, Frame] = _FRAMES | {f"{name}yx": replace(_FRAMES[name], y_first=True) for name in _FRAMES}
"""Frames by name; `yx`: y stands before x."""
_RULE = re.compile(r"(smart|linear|exact|fit|none)\s*(?:\(([\d\s,_]*)\))?")
_ARGUMENTS: Mapping[str, tuple[int, ...]] = {"smart": (1, 3), "linear": (2,), "exact": (2,), "fit": (2,), "none": (0,)}
Writer = Callable[[str, str, Point | str | None], str]


@dataclass(frozen=True, slots=True)
class Style:
    """A way to write a click and a typing, and to read them."""

    reads: str
    """The name of its notation of calls, or `place` for a reply that is a place."""
    write: Writer
    asked: str
    """The example of it in a prompt; `X` and `Y` stand for numbers."""
    speaks: frozenset[str] = frozenset({"CLICK", "TYPE"})
    read: Reader | None = None
    """Its own reader, where the notation of calls does not cover it."""


def _json(op: str, value: str, place: Point | str | None) -> str:
    calls: list[dict[str, Any]] = [] if place is None else [{"action": "left_click", "coordinate": place}]
    if op == "TYPE":
        calls.append({"action": "type", "text": value})
    texts = [json.dumps({"name": "computer_use", "arguments": call}, ensure_ascii=False) for call in calls]
    return "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)


def _xml(op: str, value: str, place: Point | str | None) -> str:
    calls = [] if place is None else [("left_click", "coordinate", json.dumps(place))]
    if op == "TYPE":
        calls.append(("type", "text", value))
    return "\n".join(
        f"<tool_call>\n<function=computer_use>\n<parameter=action>\n{verb}\n</parameter>\n<parameter={name}>\n{said}\n</parameter>\n</function>\n</tool_call>"
        for verb, name, said in calls
    )


def _seed(op: str, value: str, place: Point | str | None) -> str:
    calls = [] if place is None else [("click", "point", f"<point>{place[0]} {place[1]}</point>")]
    if op == "TYPE":
        calls.append(("type", "content", value))
    texts = (f"<function={verb}><parameter={name}>{said}</parameter></function>" for verb, name, said in calls)
    return f"<seed:tool_call>{''.join(texts)}</seed:tool_call>"


def _box(op: str, value: str, place: Point | str | None) -> str:
    calls = [] if place is None else [f"left_click(start_box='[{place[0]},{place[1]}]', element_info='')"]
    if op == "TYPE":
        calls.append(f"type(content='{escape(value)}')")
    return "\n".join(f"<|begin_of_box|>{call}<|end_of_box|>" for call in ["; ".join(calls)])


def _tagged(op: str, value: str, place: Point | str | None) -> str:
    calls = [] if place is None else [f"Click(box=({place[0]}, {place[1]}))"]
    if op == "TYPE":
        calls.append(f"Type(content='{escape(value)}')")
    return f"<action>{'; '.join(calls)}</action>"


def _operation(op: str, value: str, place: Point | str | None) -> str:
    box = "" if place is None else f"box=[[{place[0]},{place[1]},{place[0]},{place[1]}]], "
    said = f"text='{escape(value)}', " if op == "TYPE" else ""
    return f"Grounded Operation: {op}({box}{said}element_info='')"


def _tabs(op: str, value: str, place: Point | str | None) -> str:
    parts = [f"action:{op}", *([] if place is None else [f"point:{place[0]},{place[1]}"])]
    return "\t".join(["explain:", *parts, *([f"value:{value}"] if op == "TYPE" else []), "summary:"])


def _code(op: str, value: str, place: Point | str | None) -> str:
    lines = [] if place is None else [f"pyautogui.click(x={place[0]}, y={place[1]})"]
    if op == "TYPE":
        lines.append(f"pyautogui.write(message='{escape(value)}')")
    return "```python\n" + "\n".join(lines) + "\n```"


def _keys(op: str, value: str, place: Point | str | None) -> str:
    point: dict[str, Any] = {} if place is None else {"POINT": place}
    return json.dumps(point | ({"TYPE": value} if op == "TYPE" else {}), ensure_ascii=False)


def _calls(op: str, value: str, place: Point | str | None) -> str:
    calls = [] if place is None else [f"click(start_box='({place[0]},{place[1]})')"]
    if op == "TYPE":
        calls.append(f"type(content='{escape(value)}')")
    return "Action: " + "\n\n".join(calls)


def _place(form: str, op: str, value: str, place: Point | str | None) -> str:
    if place is None:
        return "none"
    return form.replace("X", str(place[0])).replace("Y", str(place[1]))


def _places(form: str) -> Style:
    return Style("place", partial(_place, form), form, frozenset({"CLICK"}))


STYLES: Mapping[str, Style] = {
    "json": Style(
        "json", _json, '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [X, Y]}}\n</tool_call>\n'
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "type", "text": ""}}\n</tool_call>',
    ),
    "xml": Style(
        "xml", _xml, "<tool_call>\n<function=computer_use>\n<parameter=action>\nleft_click\n</parameter>\n<parameter=coordinate>\n[X, Y]\n</parameter>\n"
        "</function>\n</tool_call>\n(to type, the action type with the parameter text)",
    ),
    "seed": Style(
        "xml", _seed, "<seed:tool_call><function=click><parameter=point><point>X Y</point></parameter></function></seed:tool_call>\n"
        "<seed:tool_call><function=type><parameter=content></parameter></function></seed:tool_call>",
    ),
    "python": Style("python", _calls, "Action: click(start_box='(X,Y)')\nAction: type(content='')"),
    "box": Style("python", _box, "<|begin_of_box|>left_click(start_box='[X,Y]', element_info='')<|end_of_box|>\n<|begin_of_box|>type(content='')<|end_of_box|>"),
    "action": Style("python", _tagged, "<action>Click(box=(X, Y))</action>\n<action>Type(content='')</action>"),
    "operation": Style(
        "python", _operation, "Grounded Operation: CLICK(box=[[X,Y,X,Y]], element_info='')\nGrounded Operation: TYPE(box=[[X,Y,X,Y]], text='', element_info='')",
    ),
    "tabs": Style("fields", _tabs, "explain:why\taction:CLICK\tpoint:X,Y\tsummary:\nexplain:why\taction:TYPE\tpoint:X,Y\tvalue:text\tsummary:"),
    "code": Style("python", _code, "```python\npyautogui.click(x=X, y=Y)\npyautogui.write(message='')\n```"),
    "navigator": Style(
        "json", write_holo_abs, '{"thought": "", "action": {"action": "click_element_abs", "element": "the element in words", "x": X, "y": Y}}\n'
        '{"thought": "", "action": {"action": "write_element_abs", "content": "text", "element": "the element in words", "x": X, "y": Y}}',
        read=read_holo,
    ),
    "keys": Style("json", _keys, '{"thought": "", "POINT": [X, Y]}\n{"thought": "", "POINT": [X, Y], "TYPE": "text"}'),
    "point": _places("(X, Y)"),
    "list": _places("[X, Y]"),
    "point_2d": _places('{"point_2d": [X, Y]}'),
    "bbox_2d": _places('{"bbox_2d": [X, Y, X, Y]}'),
    "box_tokens": _places("<|box_start|>(X,Y)<|box_end|>"),
    "point_tag": _places('<point x="X" y="Y"></point>'),
    "coords_tag": _places('<points coords="1 1 X Y"></points>'),
    "box_tag": _places("<box>[[X, Y, X, Y]]</box>"),
    "click": _places('{"action": "click", "x": X, "y": Y}'),
}  # fmt: skip
"""Notations by the names under which agents are declared."""


def gui_model(
    name: str,
    *,
    source: str,
    frame: str,
    notation: str,
    resize: str = "",
    verbs: Mapping[str, Kind] | None = None,
    prompt: str = "",
    view: Literal["page", "blocks", "window"] = "page",
    reader: Reader | None = None,
    writer: Writer | None = None,
    strict_reader: Reader | None = None,
    **more: Any,
) -> Agent:
    """Declares an agent by names.

    `frame`: how it counts places: `px` (pixels of the picture as its processor resized it), `1000`, `999`, `100` (percent), `1`, or one of
    these with `yx` at its end, such as `1000yx`, where y stands before x. `resize`: the rule of its processor, which `px` needs:
    `smart(28, MIN, MAX)`, `linear(MIN, MAX)`, `exact(W, H)`, `fit(W, H)` or `none`.
    `notation`: a name of STYLES. `verbs`: verbs of its own -> kinds of acts. `prompt`: the template of its question, with `{{task}}` and
    `{{history}}`; none: one that shows the notation. `more`: other fields of `Agent`.

    Raises InputError for a name that does not exist, and for `px` without its rule.

    >>> agent = gui_model("mine", source="me/mine", frame="1000", notation="json", verbs={"poke": "click"})
    >>> agent.read('{"action": "poke", "coordinate": [500, 250]}')
    (Act(kind='click', place=(500.0, 250.0), text=None),)
    """
    if notation not in STYLES:
        raise InputError(
            "agent", sentence=f"{name}: no notation is called {notation!r}; use one of {', '.join(STYLES)}"
        )
    counted, rule, style = frame_of(name, frame, resize), _resize(name, resize), STYLES[notation]
    own = dict(verbs or {})
    reads = reader or style.read
    if reads is None:
        reads = _read_place if style.reads == "place" else partial(acts_in, notations=(style.reads,), verbs=own)
    spoken = {"speaks": style.speaks, "speaks_value": style.speaks & {"TYPE"}}
    return Agent(
        name, source, reads, strict_reader or reads, writer or style.write, counted, View(view, resize=rule),
        prompt=prompt or _prompt(style, frame), verbs=own, **(spoken | more),
    )  # fmt: skip


def frame_of(name: str, frame: str, resize: str) -> Frame:
    """The frame of these names, as `gui_model` has them. Raises InputError."""
    if frame not in FRAMES:
        raise InputError("agent", sentence=f"{name}: no frame is called {frame!r}; use {' or '.join(FRAMES)}")
    if FRAMES[frame].scale is not None:
        return FRAMES[frame]
    if not resize:
        raise InputError(
            "agent",
            sentence=f"{name}: the frame {frame} needs `resize`, the rule of the model's processor, or resize='none'",
        )
    return replace(FRAMES[frame], resize=_resize(name, resize))


def _read_place(text: str) -> list[Act]:
    return [place_in_reply(text)]


def _resize(name: str, text: str) -> Resize:
    """The rule that a text names. Raises InputError."""
    found = _RULE.fullmatch(text.strip() or "none")
    numbers = [int(one.replace("_", "")) for one in (found[2] or "").split(",") if one.strip()] if found else []
    if found is None or len(numbers) not in _ARGUMENTS[found[1]] or 0 in numbers:
        raise InputError(
            "agent",
            sentence=f"{name}: no rule is called {text!r}; use smart(FACTOR, MIN, MAX), linear(MIN, MAX), exact(W, H), fit(W, H) or none",
        )
    match found[1], numbers:
        case "smart", [factor]:
            return Resize("smart", factor, 4 * factor * factor, 16_384 * factor * factor)
        case "smart", [factor, least, most]:
            return Resize("smart", factor, least, most)
        case "linear", [least, most]:
            return Resize("linear", 0, least, most)
        case "exact" | "fit" as rule, [width, height]:
            return Resize(rule, size=(width, height))
    return Resize()


def _prompt(style: Style, frame: str) -> str:
    """A question that shows the notation."""
    scale, asked = frame.removesuffix("yx"), style.asked
    if scale != frame:
        asked = re.sub(r"\b[XY]\b", lambda axis: {"X": "Y", "Y": "X"}[axis[0]], asked)
    numbers = {
        "px": "pixels of the picture, which is {{width}} wide and {{height}} high",
        "1": "fractions of the picture's width and height, from 0 to 1",
        "100": "percent of the picture's width and height",
    }.get(scale, f"whole numbers from 0 to {scale}, where {scale} is the right or lower edge of the picture")
    if style.reads == "place":
        return (
            f"Point to the element of the picture that fits this description.\n\nDescription: {{{{task}}}}\n\n"
            f"Answer with its place alone, as {asked}, where X and Y are {numbers}.\n{{{{history_lines}}}}"
        )
    return (
        "The picture shows a web page. Give the next action of the task in this form:\n\n"
        f"{asked}\n\nX and Y are {numbers}. To fill a field, click on it and type in the same reply.\n\n"
        "Task: {{task}}\n\nPrevious actions:\n{{history|None}}"
    )
