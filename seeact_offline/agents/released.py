"""Strict readers: replies as each model's released code reads them, with its accidents. They raise Unreadable.

Sources stand in the records (`models`), with their commits.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from math import inf, isfinite
from typing import Any

from seeact_offline.agents.acts import CLICKS, Act, Kind, Place, Unreadable
from seeact_offline.agents.verbs import WrittenAct, act_of, acts_in_value
from seeact_offline.replies.calls import closed, json_in, loads, parse, place_of

# --- QwenLM/Qwen3-VL, and the vendors of computer tools ---

COMPUTER_ACTIONS = frozenset(
    "key type mouse_move left_click left_click_drag right_click middle_click double_click triple_click scroll hscroll "
    "wait terminate answer".split()
)
"""The actions of `computer_use`."""


def read_tool_calls(text: str) -> list[Act]:
    """Every call that the text holds as JSON, wherever it stands."""
    calls = [call for value in json_in(text) for call in acts_in_value(value)]
    if not calls:
        raise Unreadable("expected the JSON of a computer_use call")
    return [act for call in calls if (act := act_of(call)) is not None]


def read_first_call(text: str) -> list[Act]:
    """The first call between tags on lines of their own, which must be JSON, as the cookbook reads it. Its end may be
    missing."""
    _, tag, rest = text.partition("<tool_call>\n")
    if not tag:
        raise Unreadable("expected <tool_call> on a line of its own")
    try:
        arguments = json.loads(rest.partition("<tool_call>\n")[0].partition("\n</tool_call>")[0])["arguments"]
        action = arguments["action"]
        is_known = action in COMPUTER_ACTIONS
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable("expected JSON with arguments and an action between the tags") from None
    named = {name: arguments[name] for name in ("coordinate", "text", "keys") if name in arguments}
    act = act_of(WrittenAct(action, named)) if is_known else None
    if act is None:
        raise Unreadable("expected an action of computer_use")
    return [act]


# --- UI-TARS: codes/ui_tars/action_parser.py ---

UITARS_VERBS: Mapping[str, Kind] = {
    "click": "click", "left_click": "click", "left_single": "click", "left_double": "double", "right_single": "right",
    "hover": "hover", "select": "select", "type": "type", "input": "type", "drag": "drag", "hotkey": "press",
    "press": "press", "keydown": "press", "scroll": "scroll", "wait": "wait", "finished": "stop", "call_user": "stop",
}  # fmt: skip
_TAGGED_POINT = re.compile(r"<point>(\d+)\s+(\d+)</point>")
_TYPED_CONTENT = re.compile(r"type\(content='(?:(.*?)'\)|.*)")


def read_uitars_strictly(text: str) -> list[Act]:
    """Reads as the released parser does: the Mind2Web form of `type` gives its place as part of the text."""
    text = text.strip()
    if "<point>" in text:
        text = _TAGGED_POINT.sub(r"(\1,\2)", text.replace("[EOS]", "")).strip()
    for name, common in (("start_point=", "start_box="), ("end_point=", "end_box="), ("point=", "start_box=")):
        text = text.replace(name, common)
    if "Action:" not in text:
        raise Unreadable("expected Action:")
    return [_uitars_act(part) for part in text.split("Action: ")[-1].split(")\n\n")]


def _uitars_act(part: str) -> Act:
    if "type(content" in part:
        part = _with_bracket(part)
        if closed(_TYPED_CONTENT, part) is None:
            raise Unreadable("expected type(content='...')")
        content = re.sub(
            r"(?<!\\)'", r"\\'", _TYPED_CONTENT.sub(lambda match: match[0] if match[1] is None else match[1], part)
        )
        part = f"type(content='{content}')"
    part = _with_bracket(part)
    try:
        call = parse(part.replace("\n", "\\n").lstrip()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unreadable("expected one Python call with keyword arguments") from None
    if not isinstance(call, ast.Call):
        raise Unreadable("expected one Python call with keyword arguments")
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    # of an argument that is given twice the last one counts
    keywords = {word.arg: word.value.value if isinstance(word.value, ast.Constant) else None for word in call.keywords}
    if None in keywords or not all(isinstance(value, str) for value in keywords.values()):
        raise Unreadable("expected arguments that are texts in quotes")
    arguments = {str(key): str(value).lstrip() for key, value in keywords.items() if value != ""}
    places = {key: _uitars_place(value) for key, value in arguments.items() if "start_box" in key or "end_box" in key}
    kind = UITARS_VERBS.get(name, "other")
    text = arguments.get("content", arguments.get("key"))
    return Act(kind, places.get("start_box"), text)


def _with_bracket(part: str) -> str:
    return part if part.strip().endswith(")") else part.strip() + ")"


def _uitars_place(text: str) -> Place | None:
    """Two or four numbers; None for another count, of which the parser makes no place."""
    try:
        numbers = [float(number) for number in text.replace("(", "").replace(")", "").split(",")]
    except ValueError:
        raise Unreadable("expected numbers in a box") from None
    if len(numbers) == 4:
        return numbers[0], numbers[1], numbers[2], numbers[3]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


# --- Aguvis and OpenCUA: OpenCUA's evaluation/agentnetbench ---

_XY = re.compile(r"x=([\d.]+),\s*y=([\d.]+)")
_LOOSE_XY = re.compile(r"x\s*=\s*([\d.]+)\s*,\s*y\s*=\s*([\d.]+)")
_MESSAGE = re.compile(r"message=['\"](.+?)['\"]")
_WRITTEN = tuple(re.compile(rf"pyautogui\.write\({quote}(?:(.*?){quote}\)|.*)") for quote in "'\"")
_STATUS = re.compile(r"status=['\"](\w+)['\"]")
_KEYS = re.compile(r"keys=\[(?:(.*?)\]|.*)")
_PRESSED = re.compile(r"pyautogui\.(?:hotkey|press)\((?:(.*)\)|.*)")
_QUOTED_KEY = re.compile(r"['\"][^'\"]+['\"]")
_PAGES = re.compile(r"scroll\(page=([-\d.]+)\)")
_SCROLL_CLICKS = re.compile(r"pyautogui\.scroll\(([-\d]+)\)")
MIDDLE = (0.5, 0.5)
"""The pointer's place while AgentNetBench's Aguvis agent scrolls."""


def read_aguvis_strictly(text: str) -> list[Act]:
    """The first line that begins with pyautogui or computer, as AgentNetBench's Aguvis agent reads it: a word anywhere
    in the line says what is done, and a call without a named place does nothing."""
    lines = (line.strip() for line in text.split("\n"))
    line = next((candidate for candidate in lines if candidate.startswith(("pyautogui", "computer."))), "")
    if line.startswith("computer."):
        return _ended(line)
    if not line.startswith("pyautogui."):
        raise Unreadable("expected a line that begins with pyautogui or computer")
    acts = _pointed(line, _LOOSE_XY, {"click": "click", "moveTo": "hover", "doubleClick": "double"})
    if pages := _PAGES.search(line):
        _floats(pages)
        acts += [Act("hover", MIDDLE), Act("scroll")]
    if message := _MESSAGE.search(line):
        acts.append(Act("type", None, message.group(1)))
    if keys := closed(_KEYS, line):
        acts.append(Act("press", None, keys.group(1)))
    return acts


def read_opencua_strictly(text: str) -> list[Act]:
    """All lines that begin with pyautogui or computer, else in each line what follows the first such word, as
    AgentNetBench's OpenCUA agent reads them."""
    lines = [line.strip() for line in text.split("\n")]
    code_lines = [line for line in lines if line.startswith(("pyautogui.", "computer."))]
    if not code_lines:
        words = [next((word for word in ("pyautogui.", "computer.") if word in line), None) for line in lines]
        code_lines = [word + line.split(word)[1].strip() for word, line in zip(words, lines, strict=True) if word]
    return [act for line in code_lines for act in _acts_of_line(line)]


def _acts_of_line(line: str) -> list[Act]:
    if line.startswith("computer.triple_click"):
        return _pointed(line, _XY, {"": "double"})
    if line.startswith("computer."):
        return _ended(line)
    # a small "click" beside another click is not looked at
    seen = line.replace("click", "") if "doubleClick" in line or "rightClick" in line else line
    verbs: Mapping[str, Kind] = {
        "click": "click",
        "moveTo": "hover",
        "doubleClick": "double",
        "rightClick": "right",
        "dragTo": "drag",
    }
    acts = _pointed(seen, _XY, verbs)
    written = filter(None, (closed(pattern, line) for pattern in _WRITTEN))
    message = _MESSAGE.search(line) or min(written, key=lambda match: match.start(), default=None)
    if message:
        acts.append(Act("type", None, message.group(1)))
    keys = closed(_KEYS if "keys=" in line else _PRESSED, line)
    if keys and ("keys=" in line or _QUOTED_KEY.search(keys.group(1))):
        acts.append(Act("press", None, keys.group(1)))
    if clicks := _SCROLL_CLICKS.search(line):
        _floats(clicks)
        acts.append(Act("scroll"))
    return acts


def _pointed(line: str, point: re.Pattern[str], verbs: Mapping[str, Kind]) -> list[Act]:
    """The first of these words that is in the line, at the line's first place; nothing without either."""
    kind = next((kind for word, kind in verbs.items() if word in line), None)
    if (match := point.search(line)) is None:
        return []
    x, y = _floats(match)
    return [Act(kind, (x, y))] if kind else []


def _floats(match: re.Match[str]) -> list[float]:
    try:
        return [float(group) for group in match.groups()]
    except ValueError:
        raise Unreadable(f"expected numbers, got {match.group()[:40]!r}") from None


def _ended(line: str) -> list[Act]:
    status = _STATUS.search(line) if line.startswith("computer.terminate") else None
    return [Act("stop", None, status.group(1))] if status else []


# --- SeeClick: agent_tasks/mind2web_test.py; ShowUI: main/eval_mind2web.py ---

SEECLICK_TYPES: Mapping[str, Kind] = {"4": "click", "2": "select", "3": "type"}
SHOWUI_ACTIONS: Mapping[str, Kind] = {"CLICK": "click", "TYPE": "type", "SELECT": "select"}
"""The actions of ShowUI on Mind2Web; another one keeps its place."""
_SHOWUI_BEGIN = re.compile(r"'action':\s*'")
_SHOWUI_MIDDLE = re.compile(r"',\s*'value':\s*(?P<none>None)?")
_SHOWUI_END = r",\s*'position':\s*(?P<place>None|\[([0-9.]+),\s*([0-9.]+)\])"
_SHOWUI_NO_VALUE = re.compile(_SHOWUI_END)
_SHOWUI_VALUE = re.compile(rf"'(?:(?P<value>.*?)'{_SHOWUI_END}|.*)")
"""A value up to the first quote that a position follows, else the rest of the line."""


def read_seeclick_strictly(reply: str) -> list[Act]:
    """The whole reply as one Python literal. A number in quotes has an empty value; another type is compared as it is
    written."""
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
    kind = SEECLICK_TYPES.get(str(code).strip(), "other")
    # such as 7, or 3.0 with its value in lower case, as it is compared
    name = f"{code} {(text or '').lower()}".strip()
    place = _first_two(value.get("click_point"))
    return [Act(kind, place, text if kind in ("type", "select") else None, {"name": name})]


def _first_two(point: Any) -> tuple[float, float] | None:
    """The first two of a list of numbers, which the released code looks at; None for a text."""
    if (
        not isinstance(point, list | tuple)
        or len(point) < 2
        or not all(isinstance(number, int | float) for number in point[:2])
    ):
        return None
    with suppress(OverflowError):
        return float(point[0]), float(point[1])
    return None


def read_showui_strictly(text: str) -> list[Act]:
    """The first place where action, value and position follow each other in this order."""
    action, match = _showui_parts(text.replace('"', "'"))
    kind: Kind = SHOWUI_ACTIONS.get(action, "other")
    *_, x, y = match.groups()
    try:
        place = None if x is None else (float(x), float(y))
    except ValueError:
        raise Unreadable(f"expected two numbers, got {x}, {y}") from None
    return [Act(kind, place, None if kind == "click" else match.groupdict().get("value"))]


def _showui_parts(text: str) -> tuple[str, re.Match[str]]:
    """The name of the action, and what holds value and position: the first of each kind that the next follows, neither
    broken by the end of a line. Each is looked for once on a line, as one pattern for all three takes time cubic in the
    text."""
    middles, n_middle = list(_SHOWUI_MIDDLE.finditer(text)), 0
    line_end = value_end = -1
    at = 0
    while begun := _SHOWUI_BEGIN.search(text, at):
        # the quote that ends one may begin the next
        at = begun.end() - 1
        if begun.end() <= line_end:
            continue
        newline = text.find("\n", begun.end())
        line_end = newline if newline >= 0 else len(text)
        while n_middle < len(middles) and middles[n_middle].start() < line_end:
            middle = middles[n_middle]
            n_middle += 1
            if middle.start() < begun.end():
                continue
            if middle["none"]:
                match = _SHOWUI_NO_VALUE.match(text, middle.end())
            elif middle.end() < value_end:
                continue
            else:
                match = _SHOWUI_VALUE.match(text, middle.end())
                value_end = match.end() if match else value_end
            if match and match["place"]:
                return text[begun.end() : middle.start()], match
    raise Unreadable("expected {'action': ..., 'value': ..., 'position': [x, y]}")


# --- OS-Atlas, ScreenSuite, Holo (Surfer-H) ---

OSATLAS_VERBS: Mapping[str, Kind] = {
    "CLICK": "click", "LONG_PRESS": "click", "DOUBLE_CLICK": "double", "RIGHT_CLICK": "right", "HOVER": "hover",
    "MOVETO": "hover", "TYPE": "type", "SELECT": "select", "SCROLL": "scroll", "ENTER": "press", "PRESS": "press",
    "HOTKEY": "press", "PRESS_HOME": "goto", "PRESS_BACK": "back", "OPEN_APP": "goto", "WAIT": "wait",
    "ANSWER": "answer", "COMPLETE": "stop", "IMPOSSIBLE": "stop",
}  # fmt: skip
_BRACKETS = re.compile(r"\[(?:(.*?)\]|.*)")
_CALLED_CLICK = re.compile(r"click\((?:(.*?)\)|.*)")
_CALLED_TYPE = re.compile(r"type\((?:([^)]++)\)|[^)]++\Z)")
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
    "click_element": "click", "write_element": "type", "scroll": "scroll", "go_back": "back", "wait": "wait",
    "answer": "answer",
}  # fmt: skip
"""Actions of the released loop's navigator that are read strictly."""


def read_osatlas_strictly(text: str) -> list[Act]:
    """Reads what stands behind `actions:` and a line feed up to the first blank, and of a click the first two runs of
    digits, as the released scorer reads it."""
    _, marker, rest = text.partition("actions:\n")
    # the scorer strips letters of the end token, too
    action = rest.partition("actions:\n")[0].strip("<|imend_>").strip()
    kind = OSATLAS_VERBS.get(action.split(" ")[0])
    if not marker or kind is None:
        raise Unreadable("expected actions: and an action on the next line")
    numbers = [float(number) for number in re.findall(r"\d+", action)] if kind in CLICKS else []
    value = closed(_BRACKETS, action) if kind in ("type", "select", "answer") else None
    place = (numbers[0], numbers[1]) if len(numbers) > 1 else None
    return [Act(kind, place, value.group(1) if value else None)]


def read_screensuite_strictly(text: str) -> list[Act]:
    """The first two numbers of the first click and the quoted part of the first typing, in lower case and without
    signs. A click whose numbers cannot be read does not count."""
    text, acts = text.lower(), []
    if click := closed(_CALLED_CLICK, text):
        with suppress(ValueError):
            x, y = map(float, re.findall(r"[\d.]+", click.group(1))[:2])
            acts.append(Act("click", (x, y)))
    if typed := closed(_CALLED_TYPE, text):
        quoted = _QUOTED.search(typed.group(1))
        acts.append(Act("type", None, (quoted or typed).group(1).strip()))
    if not acts:
        raise Unreadable("expected click(x, y)")
    return acts


def read_holo_1_strictly(text: str) -> list[Act]:
    """Reads as the released loop does with Holo1: the navigator's element, or the first two numbers of a localizer's
    reply."""
    if (act := _navigated(_whole_json(text))) is not None:
        return [act]
    match = next(filter(None, (closed(pattern, text) for pattern in _TWO_NUMBERS)), None)
    if match is None:
        raise Unreadable("expected the navigator's JSON, or two numbers")
    return [Act("click", (float(match.group(1)), float(match.group(2))))]


def read_holo_1_5_strictly(text: str) -> list[Act]:
    """Reads as the released loop does with Holo1.5: the navigator's element, or the localizer's JSON, whose numbers may
    have signs."""
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
    """The navigator's action, without its place: the released loop throws that away and asks the localizer for the
    element."""
    action = value.get("action") if isinstance(value, dict) else None
    if not isinstance(action, dict) or not isinstance(verb := action.get("action"), str) or verb not in NAVIGATOR_VERBS:
        return None
    element = action.get("element") if verb.endswith("_element") else ""
    text = action.get("content", action.get("answer"))
    if not isinstance(element, str):
        return None
    return Act(NAVIGATOR_VERBS[verb], element or None, None if text is None else str(text))


def _whole_number(value: Any) -> float | None:
    """The whole number that pydantic reads in a value of JSON, which may be a decimal, a text or true; None for
    none."""
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


# --- UGround: offline_evaluation/Multimodal-Mind2Web ---

PLAN_ACTIONS: Mapping[str, Kind] = {
    "CLICK": "click", "TYPE": "type", "SELECT": "select", "HOVER": "hover", "SCROLL DOWN": "scroll",
    "SCROLL UP": "scroll", "SCROLL": "scroll", "STOP": "stop", "TERMINATE": "stop", "NONE": "stop",
    "PRESS ENTER": "press",
}  # fmt: skip


def read_plan_strictly(text: str) -> list[Act]:
    """ACTION up to ELEMENT, ELEMENT up to VALUE, VALUE to the end, as the released patterns read them. An action of
    another name keeps its element."""
    action, element = _between(text, "ACTION:", "ELEMENT:"), _between(text, "ELEMENT:", "VALUE:")
    value = text.partition("VALUE:")[2].strip()
    # the scorer ignores the case, and the loop that scrolls does not
    if action.upper() != "SCROLL DOWN":
        action = action.upper()
    if not any((action, element, value)):
        raise Unreadable("expected ACTION:, ELEMENT: and VALUE:")
    kind = PLAN_ACTIONS.get(action, "other")
    act_text = value if kind in ("type", "select") and value.lower() != "none" else None
    return [Act(kind, None if element in ("", "None") else element, act_text or None)]


def _between(text: str, begin: str, end: str) -> str:
    content, closed, _ = text.partition(begin)[2].partition(end)
    return content.strip() if closed else ""


def read_uground_point_strictly(text: str) -> list[Act]:
    """The whole reply as two numbers in Python."""
    value = loads(text.strip())
    place = (
        place_of(value)
        if isinstance(value, list | tuple) and all(isinstance(number, int | float) for number in value)
        else None
    )
    if place is None or len(place) != 2:
        raise Unreadable("expected (x, y) and nothing else")
    return [Act("click", place)]
