"""OS-Atlas, ScreenSuite and Holo: verbs with a point, in a line or in JSON.

Source: OS-Copilot/OS-Atlas bad0840; huggingface/screensuite c92591b; hcompai/surfer-h-cli b054d8e.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from math import inf, isfinite
from typing import Any

from seeact_offline.agents.acts import CLICKS, Act, Kind, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.notations import acts_in, place_in_reply
from seeact_offline.agents.screens import Frame, Resize
from seeact_offline.agents.writing import Template, in_json
from seeact_offline.replies.calls import closed, escape

OSATLAS_VERBS: Mapping[str, Kind] = {
    "CLICK": "click", "LONG_PRESS": "click", "DOUBLE_CLICK": "double", "RIGHT_CLICK": "right", "HOVER": "hover", "MOVETO": "hover",
    "TYPE": "type", "SELECT": "select", "SCROLL": "scroll", "ENTER": "press", "PRESS": "press", "HOTKEY": "press", "PRESS_HOME": "goto",
    "PRESS_BACK": "back", "OPEN_APP": "goto", "WAIT": "wait", "ANSWER": "answer", "COMPLETE": "stop", "IMPOSSIBLE": "stop",
}  # fmt: skip
_BRACKETS = re.compile(r"\[(?:(.*?)\]|.*)")
_CLICK = re.compile(r"click\((?:(.*?)\)|.*)")
_TYPE = re.compile(r"type\((?:([^)]++)\)|[^)]++\Z)")
_QUOTED = re.compile(r"['\"](.+?)['\"]")
_TWO_NUMBERS = tuple(
    re.compile(pattern.replace("N", r"(\d++(?:\.\d++)?+)").replace("M", r"(\d+(?:\.\d+)?)"), flags)
    for pattern, flags in (
        (r"Click\(N,\s*N\)", 0), (r"(?<!\d)M(?!\d).*?(?<!\d)M(?!\d)", 0), (r"\(N,\s*N\)", 0),
        # where no y follows on the line, the next x that counts has its number on another one
        (r"x:\s*N(?:.*?y:\s*N|.*?(?=x:[^\S\n]*+\n|$))", re.IGNORECASE | re.MULTILINE), (r"(?<!\d)N\s*,\s*N", 0),
    )
)  # fmt: skip
"""Places in the reply of Holo1's localizer, in the order in which they are looked for."""
_WHOLE = re.compile(r"BLANK*[-+]?[0-9]++(?:_[0-9]++)*+(?:\.0++)?+BLANK*".replace("BLANK", r"(?:(?![\x1c-\x1f])\s)"))
_MOST_DECIMAL = 2.0**63
"""Decimals from here on are no whole number for the released reader, which has 64 bits for them."""
NAVIGATOR_VERBS: Mapping[str, Kind] = {
    "click_element": "click", "write_element": "type", "scroll": "scroll", "go_back": "back", "wait": "wait", "answer": "answer",
}  # fmt: skip
"""Actions of the released loop's navigator that are read strictly."""
HOLO = Resize("smart", 28, 3_136, 1_003_520)


def read_osatlas_strictly(text: str) -> list[Act]:
    """Reads what stands behind `actions:` and a line feed up to the first blank, and of a click the first two runs of digits, as the
    released scorer reads it."""
    _, found, rest = text.partition("actions:\n")
    # the scorer strips letters of the end token, too
    said = rest.partition("actions:\n")[0].strip("<|imend_>").strip()
    kind = OSATLAS_VERBS.get(said.split(" ")[0])
    if not found or kind is None:
        raise Unreadable("expected actions: and an action on the next line")
    numbers = [float(number) for number in re.findall(r"\d+", said)] if kind in CLICKS else []
    value = closed(_BRACKETS, said) if kind in ("type", "select", "answer") else None
    place = (numbers[0], numbers[1]) if len(numbers) > 1 else None
    return [Act(kind, place, value.group(1) if value else None)]


def read_screensuite_strictly(text: str) -> list[Act]:
    """The first two numbers of the first click and the quoted part of the first typing, in lower case and without signs. A click
    whose numbers cannot be read does not count."""
    text, acts = text.lower(), []
    if click := closed(_CLICK, text):
        with suppress(ValueError):
            x, y = map(float, re.findall(r"[\d.]+", click.group(1))[:2])
            acts.append(Act("click", (x, y)))
    if typed := closed(_TYPE, text):
        quoted = _QUOTED.search(typed.group(1))
        acts.append(Act("type", None, (quoted or typed).group(1).strip()))
    if not acts:
        raise Unreadable("expected click(x, y)")
    return acts


def read_holo(text: str) -> list[Act]:
    """The navigator's action, or the only place that is named, as the localizer does."""
    try:
        return acts_in(text, ("json", "python"))
    except Unreadable as error:
        if error.name != Unreadable.name:
            raise
        return [place_in_reply(text)]


def read_holo_1_strictly(text: str) -> list[Act]:
    """Reads as the released loop does with Holo1: the navigator's element, or the first two numbers of a localizer's reply."""
    if (act := _navigated(_whole_json(text))) is not None:
        return [act]
    found = next(filter(None, (closed(pattern, text) for pattern in _TWO_NUMBERS)), None)
    if found is None:
        raise Unreadable("expected the navigator's JSON, or two numbers")
    return [Act("click", (float(found.group(1)), float(found.group(2))))]


def read_holo_1_5_strictly(text: str) -> list[Act]:
    """Reads as the released loop does with Holo1.5: the navigator's element, or the localizer's JSON, whose numbers may have signs."""
    value = _whole_json(text)
    if (act := _navigated(value)) is not None:
        return [act]
    if isinstance(value, dict) and value.get("action", "click_absolute") == "click_absolute":
        x, y = _whole_number(value.get("x")), _whole_number(value.get("y"))
        if x is not None and y is not None:
            return [Act("click", (x, y))]
    raise Unreadable("expected the navigator's JSON, or action, x and y as JSON")


def _whole_json(text: str) -> Any:
    """The value that the whole reply is; None for another text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _navigated(value: Any) -> Act | None:
    """The navigator's action, without its place: the released loop throws that away and asks the localizer for the element."""
    action = value.get("action") if isinstance(value, dict) else None
    if not isinstance(action, dict) or not isinstance(verb := action.get("action"), str) or verb not in NAVIGATOR_VERBS:
        return None
    element = action.get("element") if verb.endswith("_element") else ""
    text = action.get("content", action.get("answer"))
    if not isinstance(element, str):
        return None
    return Act(NAVIGATOR_VERBS[verb], element or None, None if text is None else str(text))


def _whole_number(value: Any) -> float | None:
    """The whole number that pydantic reads in a value of JSON, which may be a decimal, a text or true; None for none."""
    if isinstance(value, str):
        value = float(value) if _WHOLE.fullmatch(value) else None
    elif isinstance(value, float) and not (value.is_integer() and abs(value) < _MOST_DECIMAL):
        return None
    try:
        number = float(value) if isinstance(value, int | float) else inf
    except OverflowError:
        return None
    # without the sign of a zero
    return number + 0.0 if isfinite(number) else None


WRITE_OSATLAS = Template(
    "CLICK <point>[[X,Y]]</point>",
    "TYPE [VALUE]",
    around="actions:\n{}",
    quoted=lambda text: " ".join(text.splitlines()),
)
WRITE_SCREENSUITE = Template("click(X, Y)", 'type("VALUE")', joined="; ", quoted=partial(escape, quote='"'))
WRITE_HOLO = Template(
    '{"action": {"action": "click_element", "x": X, "y": Y}}',
    '{"action": {"action": "write_element", "content": VALUE, "x": X, "y": Y}}',
    quoted=in_json,
)
_CLICK_TYPE: dict[str, Any] = {"speaks": frozenset({"CLICK", "TYPE"}), "speaks_value": frozenset({"TYPE"})}
OSATLAS = Agent(
    "osatlas",
    "OS-Copilot/OS-Atlas bad0840",
    partial(acts_in, notations=("lines",)),
    read_osatlas_strictly,
    WRITE_OSATLAS,
    frame=Frame(1000),
    **_CLICK_TYPE,
)
SCREENSUITE = Agent(
    "screensuite", "huggingface/screensuite c92591b", partial(acts_in, notations=("python",), sign=r"(?i)(?<![\w.])(?:click|type)\("), read_screensuite_strictly, WRITE_SCREENSUITE,
    history_steps=1, **_CLICK_TYPE,
)  # fmt: skip
HOLO1 = Agent(
    "holo1", "hcompai/surfer-h-cli b054d8e", read_holo, read_holo_1_strictly, WRITE_HOLO, frame=Frame(resize=HOLO),
    view=View(resize=HOLO), **_CLICK_TYPE,
)  # fmt: skip
HOLO1_5 = Agent(
    "holo1.5", "hcompai/surfer-h-cli b054d8e", read_holo, read_holo_1_5_strictly, WRITE_HOLO,
    frame=Frame(resize=Resize("exact", size=(1000, 500)), clamps=True), view=View(resize=Resize("exact", size=(1000, 500))),
    **_CLICK_TYPE,
)  # fmt: skip
