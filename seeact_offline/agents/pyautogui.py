"""Agents that answer in pyautogui's calls: Aguvis in shares of the picture, OpenCUA in its pixels.

Source: xlang-ai/aguvis 178c418: src/aguvis/constants.py; xlang-ai/OpenCUA 1d70f20: evaluation/agentnetbench, model/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from seeact_offline.agents.acts import Act, Fold, Kind, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.calls import Call, calls_in, escape, number, place_in
from seeact_offline.agents.screens import Frame, Point, Resize

VERBS: Mapping[str, Kind] = {
    "click": "click", "leftclick": "click", "middleclick": "click", "doubleclick": "double", "tripleclick": "double",
    "triple_click": "double", "rightclick": "right", "moveto": "hover", "dragto": "drag", "drag": "drag",
    "write": "type", "typewrite": "type", "select_option": "select",
    "press": "press", "hotkey": "press", "keydown": "press", "keyup": "press", "scroll": "scroll", "hscroll": "scroll",
    "vscroll": "scroll", "wait": "wait", "sleep": "wait", "terminate": "stop", "answer": "answer",
}  # fmt: skip
MODULES = frozenset({"pyautogui", "computer", "browser", "mobile", "time"})
_FENCE = re.compile(r"```(?:python|code)?\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_STRICT_POINT = re.compile(r"x\s*=\s*([0-9.]+)\s*,\s*y\s*=\s*([0-9.]+)")
_STRICT_TIGHT_POINT = re.compile(r"x=([0-9.]+),\s*y=([0-9.]+)")
_STRICT_TEXT = re.compile(r"message=['\"](.*?)['\"]")
_STRICT_LOOSE_TEXT = re.compile(r"\((?:message=)?['\"](.*?)['\"]")
_STRICT_WORDS = re.compile(r"(?:pyautogui|computer)\.(\w+)")
STRICT_NOTHING = frozenset({"rightclick", "dragto"})
"""Calls of which Aguvis' released reader makes nothing."""
SMART = Resize("smart", 28, 3_136, 12_845_056)


def read_code(text: str) -> list[Act]:
    """The calls of pyautogui, computer and browser, in the last fenced block where one has any."""
    blocks = [*_FENCE.findall(text)[::-1], text.partition("<|diff_marker|>")[0]]
    for block in blocks:
        acts = [act for call in calls_in(block) if (act := _act(call)) is not None]
        if acts:
            return acts
    raise Unreadable("expected a call such as pyautogui.click(x=0.5, y=0.5)")


def _act(call: Call) -> Act | None:
    kind = VERBS.get(call.verb)
    if kind is None or call.name.split(".")[0].lower() not in MODULES:
        return None
    if kind in ("type", "press", "stop", "answer"):
        return Act(kind, None, call.text("message", "text", "status", "keys", "answer"))
    x, y = number(call.text("x", at=0)), number(call.text("y", at=1))
    place = (x, y) if x is not None and y is not None else place_in(call.text("x", "point") or "")
    return Act(kind, place, call.text("value", "text", at=2) if kind == "select" else None)


def read_first_line(text: str) -> list[Act]:
    """The first line that begins with pyautogui or computer, as AgentNetBench's Aguvis agent reads it."""
    lines = [line.strip() for line in text.splitlines()]
    line = next((one for one in lines if one.startswith(("pyautogui", "computer."))), None)
    if line is None:
        raise Unreadable("expected a line that begins with pyautogui or computer")
    return [_strict_act(line, _STRICT_POINT, _STRICT_TEXT)]


def read_lines(text: str) -> list[Act]:
    """All lines that begin with pyautogui or computer, else what follows the first such word of a line, as AgentNetBench's OpenCUA
    agent reads them."""
    words, lines = ("pyautogui.", "computer."), text.splitlines()
    found = [line.strip() for line in lines if line.strip().startswith(words)]
    if not found:
        starts = [min((line.find(word) for word in words if word in line), default=-1) for line in lines]
        found = [line[start:] for line, start in zip(lines, starts, strict=True) if start >= 0]
    if not found:
        raise Unreadable("expected pyautogui or computer")
    return [_strict_act(line, _STRICT_TIGHT_POINT, _STRICT_LOOSE_TEXT) for line in found]


def _strict_act(line: str, point: re.Pattern[str], message: re.Pattern[str]) -> Act:
    word = _STRICT_WORDS.match(line)
    verb = word.group(1).lower() if word else ""
    kind = VERBS.get(verb)
    if kind is None or verb in STRICT_NOTHING:
        raise Unreadable("expected an action of pyautogui")
    numbers = [number(one) for one in found.groups()] if (found := point.search(line)) else []
    place = (numbers[0], numbers[1]) if len(numbers) == 2 and None not in numbers else None
    text = message.search(line)
    return Act(kind, place, text.group(1) if text and kind == "type" else None)  # type: ignore[arg-type]


def write_aguvis(op: str, value: str, place: Point | str | None) -> str:
    """One line; typing has no place."""
    return _written(op, value, "" if place is None else f"x={place[0]:.4f}, y={place[1]:.4f}")


def write_opencua(op: str, value: str, place: Point | str | None) -> str:
    """A fenced block."""
    at = "" if place is None else f"x={place[0]}, y={place[1]}"
    return f"## Code:\n```python\n{_written(op, value, at)}\n```"


def _written(op: str, value: str, at: str) -> str:
    if op == "TYPE":
        return f"pyautogui.write(message='{escape(value)}')"
    if op == "SELECT":
        return f"browser.select_option({at}{', ' * bool(at)}value='{escape(value)}')"
    return f"pyautogui.click({at})"


_PLACED = frozenset({"CLICK", "SELECT"})
AGUVIS = Agent(
    "aguvis", "xlang-ai/aguvis 178c418: src/aguvis/constants.py, serve/cli.py", read_code, read_first_line, write_aguvis,
    frame=Frame(1, decimals=4), view=View(resize=Resize("smart", 28, 200_704, 937_664)),
    fold=Fold(), speaks_place=_PLACED,
)  # fmt: skip
OPENCUA = Agent(
    "opencua", "xlang-ai/OpenCUA 1d70f20: evaluation/agentnetbench, model/README.md", read_code, read_lines, write_opencua,
    frame=Frame(reads_fractions=True, resize=SMART), view=View(resize=SMART), history_steps=10, speaks_place=_PLACED,
)  # fmt: skip
