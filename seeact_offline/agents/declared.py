"""Agents declared by names: the numbers of their places, the rule that resizes their pictures, their notation, and
verbs of their own.

A model whose answers are written in a known notation needs no code. `Agent` is the record that this makes; a language
that no notation covers brings a reader and a writer of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from seeact_offline.agents import GROUNDERS, GUI_MODELS
from seeact_offline.agents.acts import Act, Kind
from seeact_offline.agents.agent_record import Agent, Reader, View
from seeact_offline.agents.notations import acts_in, place_in_reply
from seeact_offline.agents.screens import Frame, Resize
from seeact_offline.agents.templates import Template, Writer, in_json
from seeact_offline.records import InputError
from seeact_offline.replies.calls import escape

_FRAMES = {"px": Frame(), "1000": Frame(1000), "999": Frame(999), "100": Frame(100, 1), "1": Frame(1, 4)}
FRAMES: Mapping[str, Frame] = _FRAMES | {f"{name}yx": replace(_FRAMES[name], y_first=True) for name in _FRAMES}
"""Frames by name; `yx`: y stands before x."""
_RULE = re.compile(r"(smart|linear|exact|fit|none)\s*(?:\(([\d\s,_]*)\))?")
_ARGUMENTS: Mapping[str, tuple[int, ...]] = {"smart": (1, 3), "linear": (2,), "exact": (2,), "fit": (2,), "none": (0,)}


@dataclass(frozen=True, slots=True)
class Style:
    """A way to write acts, and to read them."""

    reads: str
    """The name of its notation of calls, or `place` for a reply that is a place."""
    write: Template
    sign: str = ""
    """A pattern that every reply in it has; without one, others that are read alike cannot be told from it."""


def _call(click: str, typing: str, around: str, joined: str = "; ") -> Style:
    return Style("python", Template(click, typing, around=around, joined=joined, quoted=escape))


def _parameters(*pairs: tuple[str, str]) -> str:
    inside = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in pairs)
    return f"<tool_call>\n<function=computer_use>\n{inside}</function>\n</tool_call>"


WRITE_QWEN = Template(
    '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [X, Y]}}\n</tool_call>',
    '<tool_call>\n{"name": "computer_use", "arguments": {"action": "type", "text": VALUE}}\n</tool_call>',
    quoted=in_json,
)
WRITE_GENERAL = Template(
    "click(start_box='(X,Y)')", "type(content='VALUE')", around="Action: {}", joined="\n\n", quoted=escape
)
"""The general form of version 1.5."""
_NAVIGATOR = '{"thought": "", "action": {"action": "%s_element_abs", %s"element": "", "x": X, "y": Y}}'
_TABS = "explain:why\taction:%s\tpoint:X,Y%s\tsummary:"
_KEYS = '{"thought": "", "POINT": [X, Y]%s}'
_PLACES = {
    "point": "(X, Y)",
    "list": "[X, Y]",
    "point_2d": '{"point_2d": [X, Y]}',
    "bbox_2d": '{"bbox_2d": [X, Y, X, Y]}',
    "box_tokens": "<|box_start|>(X,Y)<|box_end|>",
    "point_tag": '<point x="X" y="Y"></point>',
    "coords_tag": '<points coords="1 1 X Y"></points>',
    "box_tag": "<box>[[X, Y, X, Y]]</box>",
    "click": '{"action": "click", "x": X, "y": Y}',
}
STYLES: Mapping[str, Style] = {
    "json": Style("json", WRITE_QWEN),
    "xml": Style(
        "xml",
        Template(
            _parameters(("action", "left_click"), ("coordinate", "[X, Y]")),
            _parameters(("action", "type"), ("text", "VALUE")),
        ),
    ),
    "seed": Style(
        "xml",
        Template(
            "<function=click><parameter=point><point>X Y</point></parameter></function>",
            "<function=type><parameter=content>VALUE</parameter></function>",
            around="<seed:tool_call>{}</seed:tool_call>",
            joined="",
        ),
    ),
    "python": Style("python", WRITE_GENERAL),
    "box": _call(
        "left_click(start_box='[X,Y]', element_info='')", "type(content='VALUE')", "<|begin_of_box|>{}<|end_of_box|>"
    ),
    "action": _call("Click(box=(X, Y))", "Type(content='VALUE')", "<action>{}</action>"),
    "operation": _call(
        "CLICK(box=[[X,Y,X,Y]], element_info='')",
        "TYPE(box=[[X,Y,X,Y]], text='VALUE', element_info='')",
        "Grounded Operation: {}",
    ),
    "tabs": Style("fields", Template(_TABS % ("CLICK", ""), _TABS % ("TYPE", "\tvalue:VALUE"))),
    "code": _call("pyautogui.click(x=X, y=Y)", "pyautogui.write(message='VALUE')", "```python\n{}\n```", "\n"),
    "navigator": Style(
        "json",
        Template(_NAVIGATOR % ("click", ""), _NAVIGATOR % ("write", '"content": VALUE, '), quoted=in_json),
        r"_element|\"x\"\s*:",
    ),
    "keys": Style("json", Template(_KEYS % "", _KEYS % ', "TYPE": VALUE', quoted=in_json)),
    **{name: Style("place", Template(form)) for name, form in _PLACES.items()},
}
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

    `frame`: how it counts places: `px` (pixels of the picture as its processor resized it), `1000`, `999`, `100`
    (percent), `1`, or one of these with `yx` at its end, such as `1000yx`, where y stands before x. `resize`: the rule
    of its processor, which `px` needs: `smart(28, MIN, MAX)`, `linear(MIN, MAX)`, `exact(W, H)`, `fit(W, H)` or `none`.
    `notation`: a name of STYLES. `verbs`: verbs of its own -> kinds of acts. `prompt`: the template of its question,
    with `{{task}}` and `{{history}}`; none: one that shows the notation. `more`: other fields of `Agent`.

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
    reads = reader
    if reads is None:
        reads = (
            _read_place
            if style.reads == "place"
            else partial(acts_in, notations=(style.reads,), verbs=own, sign=style.sign)
        )
    speaks = frozenset({"CLICK", "TYPE"} if style.write.typing else {"CLICK"})
    spoken = {"speaks": speaks, "speaks_value": speaks & {"TYPE"}}
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
    parts = _RULE.fullmatch(text.strip() or "none")
    numbers = (
        [int(digits.replace("_", "")) for digits in (parts[2] or "").split(",") if digits.strip()] if parts else []
    )
    if parts is None or len(numbers) not in _ARGUMENTS[parts[1]] or 0 in numbers:
        raise InputError(
            "agent",
            sentence=f"{name}: no rule is called {text!r}; use smart(FACTOR, MIN, MAX), linear(MIN, MAX), exact(W, H), "
            "fit(W, H) or none",
        )
    match parts[1], numbers:
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
    scale, asked = frame.removesuffix("yx"), style.write.example
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


def framed_agent(spec: str, argument: str) -> Agent | None:
    """The agent that `FRAME:NOTATION` or `FRAME/RULE:NOTATION` names, where an agent's name may stand for NOTATION: it
    then reads as that one, in another frame. None for a text of another form. Raises InputError.

    >>> framed_agent("1000:point_2d", "grounder_agent").read('{"point_2d": [500, 250]}')
    (Act(kind='click', place=(500.0, 250.0), text=None),)
    >>> framed_agent("px/exact(640,400):qwen3-vl", "agent").frame.describe((1280, 800))
    'pixels of 640 x 400'
    """
    counted, colon, notation = spec.rpartition(":")
    frame, _, resize = counted.partition("/")
    agents: Mapping[str, Agent] = GUI_MODELS if notation in GUI_MODELS else GROUNDERS
    if not colon or counted.endswith(".py") or (frame not in FRAMES and notation not in (*STYLES, *agents)):
        return None
    try:
        if notation in agents:
            return replace(agents[notation], name=spec, frame=frame_of(spec, frame, resize))
        return gui_model(spec, source="as named", frame=frame, resize=resize, notation=notation)
    except InputError as error:
        raise InputError(argument, sentence=str(error)) from None
