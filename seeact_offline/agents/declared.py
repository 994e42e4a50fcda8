"""Agents declared by names: the numbers of their places, the rule that resizes their pictures, their notation, and verbs of their own.

A model whose answers are written in a known notation needs no code. `Agent` is the record that this makes; a language that no notation
covers brings a reader and a writer of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from seeact_offline.agents.acts import Act, Kind
from seeact_offline.agents.agent_record import Agent, Reader, View
from seeact_offline.agents.notations import acts_in, place_in_reply
from seeact_offline.agents.screens import Frame, Point, Resize
from seeact_offline.records import InputError
from seeact_offline.replies.calls import escape

FRAMES: Mapping[str, float | None] = {"px": None, "1000": 1000, "999": 999, "100": 100, "1": 1}
"""Names of frames -> the number at the right and bottom edge; None for pixels of the picture as the model sees it."""
_DECIMALS = {"1": 4, "100": 1}
_RULE = re.compile(r"(smart|linear|exact|fit|none)\s*(?:\(([\d\s,_]*)\))?")
_ARGUMENTS: Mapping[str, tuple[int, ...]] = {"smart": (1, 3), "linear": (2,), "exact": (2,), "fit": (2,), "none": (0,)}
Writer = Callable[[str, str, Point | str | None], str]


@dataclass(frozen=True, slots=True)
class Style:
    """A way to write a click and a typing, and to read them."""

    reads: str
    """The name of its notation of calls, or `place` for a reply that is a place."""
    click: str
    """`X` and `Y` stand for numbers."""
    typing: str = ""
    """`VALUE` stands for the text; without `X`, a click comes first. Empty: it has no words for typing."""
    around: str = "{}"
    joined: str = "\n"
    """Text between a click and a typing."""
    quoted: Callable[[str], str] = str
    """Writes the text as the notation does."""

    @property
    def speaks(self) -> frozenset[str]:
        return frozenset({"CLICK", "TYPE"} if self.typing else {"CLICK"})

    @property
    def asked(self) -> str:
        """The example in a prompt."""
        typing = [self.typing.replace("VALUE", self.quoted(""))] if self.typing else []
        return "\n".join(self.around.format(call) for call in [self.click, *typing])

    def write(self, op: str, value: str, place: Point | str | None) -> str:
        """A reply with this act. Without a place only what is typed is written."""
        calls = [self.click, self.typing] if op == "TYPE" else [self.click]
        if op == "TYPE" and "X" in self.typing:
            calls = [self.typing]
        numbers = {"X": str(place[0]), "Y": str(place[1])} if isinstance(place, tuple | list) else None
        if numbers is None:
            calls = [call for call in calls if "X" not in call] or ["none"]
        parts = {"VALUE": self.quoted(value), **(numbers or {})}
        return self.around.format(
            self.joined.join(_PARTS.sub(lambda part: parts.get(part[0], part[0]), call) for call in calls)
        )


_PARTS = re.compile(r"\bVALUE\b|\b[XY]\b")


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _parameters(*pairs: tuple[str, str]) -> str:
    inside = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in pairs)
    return f"<tool_call>\n<function=computer_use>\n{inside}</function>\n</tool_call>"


_NAVIGATOR = '{"thought": "", "action": {"action": "%s_element_abs", %s"element": "", "x": X, "y": Y}}'
STYLES: Mapping[str, Style] = {
    "json": Style(
        "json",
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [X, Y]}}\n</tool_call>',
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "type", "text": VALUE}}\n</tool_call>',
        quoted=_in_json,
    ),
    "xml": Style(
        "xml",
        _parameters(("action", "left_click"), ("coordinate", "[X, Y]")),
        _parameters(("action", "type"), ("text", "VALUE")),
    ),
    "seed": Style(
        "xml",
        "<function=click><parameter=point><point>X Y</point></parameter></function>",
        "<function=type><parameter=content>VALUE</parameter></function>",
        around="<seed:tool_call>{}</seed:tool_call>",
        joined="",
    ),
    "python": Style(
        "python", "click(start_box='(X,Y)')", "type(content='VALUE')", around="Action: {}", joined="\n\n", quoted=escape
    ),
    "box": Style(
        "python",
        "left_click(start_box='[X,Y]', element_info='')",
        "type(content='VALUE')",
        around="<|begin_of_box|>{}<|end_of_box|>",
        joined="; ",
        quoted=escape,
    ),
    "action": Style(
        "python", "Click(box=(X, Y))", "Type(content='VALUE')", around="<action>{}</action>", joined="; ", quoted=escape
    ),
    "operation": Style(
        "python",
        "CLICK(box=[[X,Y,X,Y]], element_info='')",
        "TYPE(box=[[X,Y,X,Y]], text='VALUE', element_info='')",
        around="Grounded Operation: {}",
        quoted=escape,
    ),
    "tabs": Style(
        "fields",
        "explain:why\taction:CLICK\tpoint:X,Y\tsummary:",
        "explain:why\taction:TYPE\tpoint:X,Y\tvalue:VALUE\tsummary:",
    ),
    "code": Style(
        "python",
        "pyautogui.click(x=X, y=Y)",
        "pyautogui.write(message='VALUE')",
        around="```python\n{}\n```",
        quoted=escape,
    ),
    "navigator": Style(
        "json", _NAVIGATOR % ("click", ""), _NAVIGATOR % ("write", '"content": VALUE, '), quoted=_in_json
    ),
    "keys": Style(
        "json", '{"thought": "", "POINT": [X, Y]}', '{"thought": "", "POINT": [X, Y], "TYPE": VALUE}', quoted=_in_json
    ),
    **{
        name: Style("place", form)
        for name, form in {
            "point": "(X, Y)",
            "list": "[X, Y]",
            "point_2d": '{"point_2d": [X, Y]}',
            "bbox_2d": '{"bbox_2d": [X, Y, X, Y]}',
            "box_tokens": "<|box_start|>(X,Y)<|box_end|>",
            "point_tag": '<point x="X" y="Y"></point>',
            "box_tag": "<box>[[X, Y, X, Y]]</box>",
            "click": '{"action": "click", "x": X, "y": Y}',
        }.items()
    },
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

    `frame`: how it counts places: `px` (pixels of the picture as its processor resized it), `1000`, `999`, `100` (percent), `1`. `resize`:
    the rule of its processor, which `px` needs: `smart(28, MIN, MAX)`, `linear(MIN, MAX)`, `exact(W, H)`, `fit(W, H)` or `none`.
    `notation`: a name of STYLES. `verbs`: verbs of its own -> kinds of acts. `prompt`: the template of its question, with `{{task}}` and
    `{{history}}`; none: one that shows the notation. `more`: other fields of `Agent`.

    Raises InputError for a name that does not exist, and for `px` without its rule.

    >>> agent = gui_model("mine", source="me/mine", frame="1000", notation="json", verbs={"poke": "click"})
    >>> agent.read('{"action": "poke", "coordinate": [500, 250]}')
    (Act(kind='click', place=(500.0, 250.0), text=None),)
    """
    if frame not in FRAMES:
        raise InputError("agent", sentence=f"{name}: no frame is called {frame!r}; use {' or '.join(FRAMES)}")
    if notation not in STYLES:
        raise InputError(
            "agent", sentence=f"{name}: no notation is called {notation!r}; use one of {', '.join(STYLES)}"
        )
    rule, style = _resize(name, resize), STYLES[notation]
    if FRAMES[frame] is None and not resize:
        raise InputError(
            "agent",
            sentence=f"{name}: the frame px needs `resize`, the rule of the model's processor, or resize='none'",
        )
    own = dict(verbs or {})
    in_pixels = FRAMES[frame] is None
    counted = Frame(FRAMES[frame], _DECIMALS.get(frame, 0), resize=rule if in_pixels else Resize())
    reads = reader
    if reads is None:
        reads = _read_place if style.reads == "place" else partial(acts_in, notations=(style.reads,), verbs=own)
    spoken = {"speaks": style.speaks, "speaks_value": style.speaks & {"TYPE"}}
    return Agent(
        name, source, reads, strict_reader or reads, writer or style.write, counted, View(view, resize=rule),
        prompt=prompt or _prompt(style, frame), verbs=own, **(spoken | more),
    )  # fmt: skip


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
    numbers = {
        "px": "pixels of the picture, which is {{width}} wide and {{height}} high",
        "1": "fractions of the picture's width and height, from 0 to 1",
        "100": "percent of the picture's width and height",
    }.get(frame, f"whole numbers from 0 to {frame}, where {frame} is the right or lower edge of the picture")
    if style.reads == "place":
        return (
            f"Point to the element of the picture that fits this description.\n\nDescription: {{{{task}}}}\n\n"
            f"Answer with its place alone, as {style.asked}, where X and Y are {numbers}.\n{{{{history_lines}}}}"
        )
    return (
        "The picture shows a web page. Give the next action of the task in this form:\n\n"
        f"{style.asked}\n\nX and Y are {numbers}. To fill a field, click on it and type in the same reply.\n\n"
        "Task: {{task}}\n\nPrevious actions:\n{{history|None}}"
    )
