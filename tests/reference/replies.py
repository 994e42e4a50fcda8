"""What the released parsers make of a reply, written again from what they are documented and seen to do, without our readers.

Each gives kind, place and text of every act, or None where the released code raises or finds nothing. Sources: see
`seeact_offline.agents`.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Literal

Acts = list[tuple[str, Any, str | None]]
DIGITS = "0123456789"


def seeclick(text: str) -> Acts | None:
    """The reply is one Python dictionary; element and text count where the released comparisons do not raise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reply = ast.literal_eval(text)
        kind = {"4": "click", "2": "select", "3": "type"}.get(str(reply["action_type"]).strip(), "other")
    except Exception:
        return None
    if not isinstance(reply, dict):
        return None
    place = None
    with suppress(Exception):
        point = reply["click_point"]
        assert not isinstance(point, dict)
        _ = (point[0] >= 0.0, point[1] >= 0.0)
        place = (float(point[0]), float(point[1]))
    # looked at where the number equals 2 or 3, which one in quotes does not: no word follows it
    value = reply.get("value") if reply["action_type"] in (2, 3) else ""
    return [(kind, place, value if isinstance(value, str) and kind in ("select", "type") else None)]


def showui(text: str) -> Acts | None:
    """Reads on from each place that begins well, letter by letter, and takes the first that gets to its end."""
    text = text.replace('"', "'")
    for start in range(len(text)):
        found = next(_showui_from(text, start), None)
        if found is not None:
            action, value, place = found
            if place is not None:
                try:
                    place = float(place[0]), float(place[1])
                except ValueError:
                    return None
            kind = {"CLICK": "click", "TYPE": "type", "SELECT": "select"}.get(action, "other")
            return [(kind, place, None if kind == "click" else value)]
    return None


def _showui_from(text: str, start: int) -> Iterator[tuple[str, str | None, tuple[str, str] | None]]:
    for action, after_action in _quoted(text, _after(text, start, "'action':")):
        at = _after(text, _after(text, after_action, ","), "'value':")
        values: list[tuple[str | None, int]] = []
        if at is not None:
            blank = _blanks(text, at)
            if text.startswith("None", blank):
                values.append((None, blank + 4))
            values += list(_quoted(text, at))
        for value, after_value in values:
            at = _after(text, _after(text, after_value, ","), "'position':")
            if at is None:
                continue
            at = _blanks(text, at)
            if text.startswith("None", at):
                yield action, value, None
            elif text[at : at + 1] == "[":
                x, after = _number(text, at + 1)
                if x and text[after : after + 1] == ",":
                    y, after = _number(text, _blanks(text, after + 1))
                    if y and text[after : after + 1] == "]":
                        yield action, value, (x, y)


def _blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _after(text: str, at: int | None, word: str) -> int | None:
    """Behind a word; blanks may stand before a key."""
    if at is None:
        return None
    at = _blanks(text, at) if word.startswith("'") and word != "'action':" else at
    return at + len(word) if text.startswith(word, at) else None


def _quoted(text: str, at: int | None) -> Iterator[tuple[str, int]]:
    """Every text of one line that a quote opens here and another one ends, shortest first."""
    if at is None:
        return
    at = _blanks(text, at)
    if text[at : at + 1] != "'":
        return
    for end in range(at + 1, len(text)):
        if text[end] == "'":
            yield text[at + 1 : end], end + 1
        if text[end] == "\n":
            return


def _number(text: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(text) and text[end] in DIGITS + ".":
        end += 1
    return text[at:end], end


QWEN = {
    "left_click": "click", "middle_click": "click", "double_click": "double", "triple_click": "double", "right_click": "right",
    "mouse_move": "hover", "type": "type", "key": "press", "scroll": "scroll", "hscroll": "scroll", "left_click_drag": "drag",
    "wait": "wait", "terminate": "stop", "answer": "answer",
}  # fmt: skip


def qwen(text: str) -> Acts | None:
    """The text behind the first opening tag and its line feed, up to a line feed and the closing tag, is JSON."""
    try:
        arguments = json.loads(text.split("<tool_call>\n")[1].split("\n</tool_call>")[0])["arguments"]
        kind = QWEN[arguments["action"]]
    except Exception:
        return None
    point, said = arguments.get("coordinate"), arguments.get("text")
    numbers = isinstance(point, list) and len(point) in (2, 4) and all(isinstance(one, int | float) for one in point)
    place = tuple(float(one) for one in point) if numbers else None
    if said is None and isinstance(arguments.get("keys"), list):
        said = "+".join(map(str, arguments["keys"]))
    return [(kind, place, None if kind in ("click", "double", "right", "hover") else said)]


UITARS = {
    "click": "click", "left_single": "click", "left_double": "double", "right_single": "right", "hover": "hover", "select": "select",
    "type": "type", "drag": "drag", "hotkey": "press", "press": "press", "keydown": "press", "scroll": "scroll", "wait": "wait",
    "finished": "stop", "call_user": "stop",
}  # fmt: skip


def uitars(text: str) -> Acts | None:
    """Splits behind the last "Action: " and between empty lines; each part is a Python call of texts by name."""
    try:
        return _uitars(text.strip())
    except Exception:
        return None


def _uitars(text: str) -> Acts:
    if "<point>" in text:
        text = text.replace("[EOS]", "")
        text = re.sub(r"<point>(\d+)\s+(\d+)</point>", lambda found: f"({int(found[1])},{int(found[2])})", text).strip()
    text = text.replace("start_point=", "start_box=").replace("end_point=", "end_box=").replace("point=", "start_box=")
    assert "Action:" in text
    acts: Acts = []
    for part in text[text.rfind("Action: ") + len("Action: ") if "Action: " in text else 0 :].split(")\n\n"):
        if "type(content" in part:
            part = part if part.strip().endswith(")") else part.strip() + ")"
            pattern = r"type\(content='(.*?)'\)"
            assert re.search(pattern, part)
            inside = re.sub(pattern, lambda found: found[1], part)
            escaped = "".join(
                "\\'" if one == "'" and inside[at - 1 : at] != "\\" else one for at, one in enumerate(inside)
            )
            part = f"type(content='{escaped}')"
        part = part if part.strip().endswith(")") else part.strip() + ")"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = ast.parse(part.replace("\n", "\\n").lstrip(), mode="eval").body
        assert isinstance(call, ast.Call)
        name = getattr(call.func, "id", None) or getattr(call.func, "attr", "")
        place, said = None, {}
        given = {keyword.arg: getattr(keyword.value, "value", None) for keyword in call.keywords}
        for key, value in given.items():
            if value == "":
                continue
            assert isinstance(value, str)
            assert key
            said[key] = value.lstrip()
            if "start_box" in key or "end_box" in key:
                numbers = [float(one) for one in value.replace("(", "").replace(")", "").split(",")]
                if key == "start_box":
                    place = tuple(numbers) if len(numbers) in (2, 4) else None
        acts.append((UITARS.get(name, "other"), place, said.get("content", said.get("key"))))
    return acts


def aguvis(text: str) -> Acts | None:
    """The first line that begins well; every pattern is tried on all of it."""
    line = next((x.strip() for x in text.split("\n") if x.strip().startswith(("pyautogui", "computer."))), "")
    try:
        if line.startswith("computer."):
            return _terminated(line) or None
        if not line.startswith("pyautogui."):
            return None
        acts: Acts = []
        place = _named_point(line, " ")
        if place:
            if "click" in line:
                acts.append(("click", place, None))
            elif "moveTo" in line:
                acts.append(("hover", place, None))
            elif "doubleClick" in line:
                acts.append(("double", place, None))
        pages = re.search(r"scroll\(page=([-\d.]+)\)", line)
        if pages:
            float(pages[1])
            acts += [("hover", (0.5, 0.5), None), ("scroll", None, None)]
        acts += _message(line)
        keys = re.findall(r"keys=\[(.*?)\]", line)
        if keys:
            acts.append(("press", None, keys[0]))
        return acts or None
    except ValueError:
        return None


def opencua(text: str) -> Acts | None:
    """All lines that begin well, or what stands behind the first command word of each line."""
    lines = [line.strip() for line in text.split("\n")]
    commands = [line for line in lines if line.startswith("pyautogui.") or line.startswith("computer.")]
    if not commands:
        for line in lines:
            for word in ("pyautogui.", "computer."):
                if word in line:
                    commands.append(word + line.split(word)[1].strip())
                    break
    acts: Acts = []
    try:
        for line in commands:
            acts += _opencua_line(line)
    except ValueError:
        return None
    return acts or None


def _opencua_line(line: str) -> Acts:
    place = _named_point(line, "")
    if line.startswith("computer."):
        if line.startswith("computer.triple_click"):
            return [("double", place, None)] if place else []
        return _terminated(line)
    acts: Acts = []
    if place:
        if "click" in line and "doubleClick" not in line and "rightClick" not in line:
            acts.append(("click", place, None))
        else:
            for word, kind in (
                ("moveTo", "hover"),
                ("doubleClick", "double"),
                ("rightClick", "right"),
                ("dragTo", "drag"),
            ):
                if word in line:
                    acts.append((kind, place, None))
                    break
    message = _message(line)
    if not message:
        for quote in "'\"":
            head = f"pyautogui.write({quote}"
            if head in line and quote + ")" in line.split(head, 1)[1]:
                message = [("type", None, line.split(head, 1)[1].split(quote + ")", 1)[0])]
                break
    acts += message
    if "keys=" in line:
        acts += [("press", None, one) for one in re.findall(r"keys=\[(.*?)\]", line)[:1]]
    else:
        called = re.search(r"pyautogui\.(?:hotkey|press)\((.*)\)", line)
        if called and re.search(r"['\"][^'\"]+['\"]", called[1]):
            acts.append(("press", None, called[1]))
    clicks = re.search(r"pyautogui\.scroll\(([-\d]+)\)", line)
    if clicks:
        int(clicks[1])
        acts.append(("scroll", None, None))
    return acts


def _terminated(line: str) -> Acts:
    if line.startswith("computer.terminate"):
        for one in re.findall(r"status=['\"](\w+)['\"]", line)[:1]:
            return [("stop", None, one)]
    return []


def _message(line: str) -> Acts:
    """The text behind `message=`, of one letter or more, to the next quote of either kind."""
    at = line.find("message=")
    while at >= 0:
        begin = at + len("message=")
        if line[begin : begin + 1] in ("'", '"'):
            ends = [end for end in range(begin + 2, len(line)) if line[end] in "'\""]
            if ends:
                return [("type", None, line[begin + 1 : ends[0]])]
        at = line.find("message=", at + 1)
    return []


def _named_point(line: str, blank: str) -> tuple[float, float] | None:
    """x and y by name, in this order, perhaps with blanks around their signs. Raises ValueError for numbers of several points."""
    for start in range(len(line)):
        at, numbers = start, []
        for name in "xy":
            if line[at : at + 1] != name:
                break
            at = _blanks(line, at + 1) if blank else at + 1
            if line[at : at + 1] != "=":
                break
            at = _blanks(line, at + 1) if blank else at + 1
            end = at
            while end < len(line) and (line[end].isdecimal() or line[end] == "."):
                end += 1
            if end == at:
                break
            numbers.append(line[at:end])
            at = _blanks(line, end) if blank else end
            if name == "x":
                if line[at : at + 1] != ",":
                    break
                at = _blanks(line, at + 1)
        if len(numbers) == 2:
            return float(numbers[0]), float(numbers[1])
    return None


def osatlas(text: str) -> Acts | None:
    """Behind `actions:` and a line feed; the word up to the first blank, and runs of digits anywhere behind it."""
    if "actions:\n" not in text:
        return None
    said = text.split("actions:\n")[1].strip("<|imend_>").strip()
    word = said.split(" ")[0]
    kinds = {
        "CLICK": "click", "LONG_PRESS": "click", "TYPE": "type", "SCROLL": "scroll", "ENTER": "press", "COMPLETE": "stop", "WAIT": "wait",
        "PRESS_BACK": "back", "PRESS_HOME": "goto", "OPEN_APP": "goto",
    }  # fmt: skip
    if word not in kinds:
        return None
    runs = "".join(one if one.isdecimal() else " " for one in said).split()
    place = (float(runs[0]), float(runs[1])) if kinds[word] == "click" and len(runs) > 1 else None
    inside = None
    if word == "TYPE" and (found := re.search(r"\[(.*?)\]", said)):
        inside = found[1]
    return [(kinds[word], place, inside)]


def screensuite(text: str) -> Acts | None:
    """The first click and the first typing of the text in lower case."""
    text = text.lower()
    acts: Acts = []
    clicks = re.findall(r"click\((.*?)\)", text)
    if clicks:
        runs = re.findall(r"[\d.]+", clicks[0])
        with suppress(ValueError, IndexError):
            acts.append(("click", (float(runs[0]), float(runs[1])), None))
    typed = re.findall(r"type\(([^)]+)\)", text)
    if typed:
        quoted = re.findall(r"[\"'](.+?)[\"']", typed[0])
        acts.append(("type", None, (quoted or typed)[0].strip()))
    return acts or None


def uground(text: str) -> Acts | None:
    """The words between the three marks, each looked for from the start of the reply."""

    def between(mark: str, end: str | None) -> str:
        at = text.find(mark)
        until = len(text) if end is None else text.find(end, at + len(mark))
        return text[at + len(mark) : until].strip() if at >= 0 and until >= 0 else ""

    action, element, value = between("ACTION:", "ELEMENT:"), between("ELEMENT:", "VALUE:"), between("VALUE:", None)
    if not (action or element or value):
        return None
    kind = {"CLICK": "click", "TYPE": "type", "SELECT": "select", "HOVER": "hover"}.get(action.upper(), "other")
    if action == "SCROLL DOWN":
        kind = "scroll"
    said = value if kind in ("type", "select") and value and value.lower() != "none" else None
    return [(kind, element if element not in ("", "None") else None, said)]


def uground_grounder(text: str) -> Acts | None:
    """Python's own reading of the whole reply, if it is two numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, y = ast.literal_eval(text.strip())
        return [("click", (float(x + 0), float(y + 0)), None)]
    except Exception:
        return None


def holo(text: str) -> Acts | None:
    """A localizer's place: behind `Click(`, else the first line with two numbers, else two numbers with a comma between."""
    number = r"\d+(?:\.\d+)?"
    for pattern in (
        rf"Click\(({number}),\s*({number})\)",
        None,
        rf"(?i)x:\s*({number}).*?y:\s*({number})",
        rf"({number})\s*,\s*({number})",
    ):
        if pattern is None:
            for line in text.split("\n"):
                found = re.findall(number, line)
                # a decimal number alone is two
                found = found[0].split(".") if len(found) == 1 else found
                if len(found) > 1:
                    return [("click", (float(found[0]), float(found[1])), None)]
        elif match := re.search(pattern, text):
            return [("click", (float(match[1]), float(match[2])), None)]
    return None


def holo15(text: str) -> Acts | None:
    """The whole reply is JSON of the released loop's one model of data; the navigator's JSON is not tried here."""
    model = _click_absolute()
    try:
        click = model.model_validate_json(text)
        return [("click", (float(click.x), float(click.y)), None)]
    except (ValueError, OverflowError):
        return None


@cache
def _click_absolute() -> Any:
    from pydantic import create_model

    fields: dict[str, Any] = {"action": (Literal["click_absolute"], "click_absolute"), "x": int, "y": int}
    return create_model("ClickAbsoluteAction", **fields)


READERS = {
    "seeclick": seeclick, "showui": showui, "qwen2.5-vl": qwen, "qwen3-vl": qwen, "uitars": uitars, "uitars-1.5": uitars,
    "holo1": holo, "holo1.5": holo15, "uground": uground, "uground-grounder": uground_grounder, "aguvis": aguvis, "opencua": opencua, "osatlas": osatlas, "screensuite": screensuite,
}  # fmt: skip
