"""Agents that answer in pyautogui's calls: Aguvis in shares of the picture, OpenCUA in its pixels.

Source: xlang-ai/aguvis 178c418: src/aguvis/constants.py; xlang-ai/OpenCUA 1d70f20: evaluation/agentnetbench, model/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from seeact_offline.agents.acts import Act, Kind, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.notations import acts_in
from seeact_offline.agents.screens import Frame, Resize
from seeact_offline.agents.writing import Template
from seeact_offline.replies.calls import closed, escape

_POINT = re.compile(r"x=([\d.]+),\s*y=([\d.]+)")
_LOOSE_POINT = re.compile(r"x\s*=\s*([\d.]+)\s*,\s*y\s*=\s*([\d.]+)")
_MESSAGE = re.compile(r"message=['\"](.+?)['\"]")
_WRITTEN = tuple(re.compile(rf"pyautogui\.write\({quote}(?:(.*?){quote}\)|.*)") for quote in "'\"")
_STATUS = re.compile(r"status=['\"](\w+)['\"]")
_KEYS = re.compile(r"keys=\[(?:(.*?)\]|.*)")
_PRESSED = re.compile(r"pyautogui\.(?:hotkey|press)\((?:(.*)\)|.*)")
_QUOTED = re.compile(r"['\"][^'\"]+['\"]")
_PAGES = re.compile(r"scroll\(page=([-\d.]+)\)")
_CLICKS = re.compile(r"pyautogui\.scroll\(([-\d]+)\)")
MIDDLE = (0.5, 0.5)
"""The pointer's place while AgentNetBench's Aguvis agent scrolls."""
SMART = Resize("smart", 28, 3_136, 12_845_056)


_READER = partial(acts_in, notations=("python",), sign=r"\b(?:pyautogui|computer|browser|mobile)\.\w")


def read_first_line(text: str) -> list[Act]:
    """The first line that begins with pyautogui or computer, as AgentNetBench's Aguvis agent reads it: a word anywhere in the line
    says what is done, and a call without a named place does nothing."""
    lines = (line.strip() for line in text.split("\n"))
    line = next((one for one in lines if one.startswith(("pyautogui", "computer."))), "")
    if line.startswith("computer."):
        return _ended(line)
    if not line.startswith("pyautogui."):
        raise Unreadable("expected a line that begins with pyautogui or computer")
    acts = _pointed(line, _LOOSE_POINT, {"click": "click", "moveTo": "hover", "doubleClick": "double"})
    if pages := _PAGES.search(line):
        _floats(pages)
        acts += [Act("hover", MIDDLE), Act("scroll")]
    if message := _MESSAGE.search(line):
        acts.append(Act("type", None, message.group(1)))
    if keys := closed(_KEYS, line):
        acts.append(Act("press", None, keys.group(1)))
    return acts


def read_lines(text: str) -> list[Act]:
    """All lines that begin with pyautogui or computer, else in each line what follows the first such word, as AgentNetBench's OpenCUA
    agent reads them."""
    lines = [line.strip() for line in text.split("\n")]
    found = [line for line in lines if line.startswith(("pyautogui.", "computer."))]
    if not found:
        words = [next((word for word in ("pyautogui.", "computer.") if word in line), None) for line in lines]
        found = [word + line.split(word)[1].strip() for word, line in zip(words, lines, strict=True) if word]
    return [act for line in found for act in _acts_of_line(line)]


def _acts_of_line(line: str) -> list[Act]:
    if line.startswith("computer.triple_click"):
        return _pointed(line, _POINT, {"": "double"})
    if line.startswith("computer."):
        return _ended(line)
    # a small "click" beside another click is not looked at
    seen = line.replace("click", "") if "doubleClick" in line or "rightClick" in line else line
    verbs: Mapping[str, Kind] = {"click": "click", "moveTo": "hover", "doubleClick": "double", "rightClick": "right", "dragTo": "drag"}  # fmt: skip
    acts = _pointed(seen, _POINT, verbs)
    written = filter(None, (closed(pattern, line) for pattern in _WRITTEN))
    message = _MESSAGE.search(line) or min(written, key=lambda match: match.start(), default=None)
    if message:
        acts.append(Act("type", None, message.group(1)))
    keys = closed(_KEYS if "keys=" in line else _PRESSED, line)
    if keys and ("keys=" in line or _QUOTED.search(keys.group(1))):
        acts.append(Act("press", None, keys.group(1)))
    if clicks := _CLICKS.search(line):
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
        return [float(one) for one in match.groups()]
    except ValueError:
        raise Unreadable(f"expected numbers, got {match.group()[:40]!r}") from None


def _ended(line: str) -> list[Act]:
    status = _STATUS.search(line) if line.startswith("computer.terminate") else None
    return [Act("stop", None, status.group(1))] if status else []


WRITE_AGUVIS = Template(
    "pyautogui.click(x=X, y=Y)",
    "pyautogui.write(message='VALUE')",
    "browser.select_option(x=X, y=Y, value='VALUE')",
    joined=None,
    quoted=escape,
    digits=4,
)
WRITE_OPENCUA = replace(WRITE_AGUVIS, around="## Code:\n```python\n{}\n```", digits=None)
_PLACED = frozenset({"CLICK", "SELECT"})
AGUVIS = Agent(
    "aguvis", "xlang-ai/aguvis 178c418: src/aguvis/constants.py, serve/cli.py", _READER, read_first_line, WRITE_AGUVIS,
    frame=Frame(1, decimals=4), view=View(resize=Resize("smart", 28, 200_704, 937_664)),
    speaks_place=_PLACED,
)  # fmt: skip
OPENCUA = Agent(
    "opencua", "xlang-ai/OpenCUA 1d70f20: evaluation/agentnetbench, model/README.md", _READER, read_lines, WRITE_OPENCUA,
    frame=Frame(reads_fractions=True, resize=SMART), view=View(resize=SMART), history_steps=10, speaks_place=_PLACED,
)  # fmt: skip
