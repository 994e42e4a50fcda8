"""Strict readers against independent re-implementations of the released parsers, on replies that are well formed, odd and broken."""

from __future__ import annotations

import random
from typing import Any

import pytest

from seeact_offline.agents import AGENTS, Unreadable
from tests.reference.replies import READERS

NUMBERS = ["0", "1", "0.49", "12", "493", "1200.5", "-5", "1.2.3", ".", "007", "1e2", "nan", "", "x", "12 3"]
TEXTS = [
    "New York",
    "it's",
    'a "b"',
    "",
    "a\\nb",
    "\\'quoted\\'",
    "x=1, y=2",
    "click",
    "é",
    " blank ",
    "a)\n\nb",
    "[US]",
    "None",
]
BLANKS = ["", "", "", " ", "  ", "\n"]
FORMS = {
    "seeclick": [
        '{{"action_type":{_}{kind}, "click_point": ({x},{_}{y})}}', '{{"action_type": {kind}, "click_point": [{x}, {y}], "value": "{text}"}}',
        "{{'action_type': \"{kind}\", 'click_point': ({x},{y},{x}), 'value': '{text}'}}", '{{"action_type": {kind}, "value": {x}}}',
        '{{"click_point": ({x}, {y})}}', '{{"action_type": {kind}, "click_point": "({x},{y})"}}', '[{{"action_type": 4}}]', "{text}",
        '{_}{{"action_type": {kind}, "click_point": ({x},{y},{x},{y})}}{_}',
    ],
    "showui": [
        "{{'action':{_}'{verb}',{_}'value':{_}'{text}',{_}'position':{_}[{x},{_}{y}]}}", "{{'action': '{verb}', 'value': None, 'position': [{x}, {y}]}}",
        '{{"action": "{verb}", "value": "{text}", "position": None}}', "{{'action': '{verb}', 'value': '{text}', 'position': ({x}, {y})}}",
        "{{'action': '{verb}'{_}, 'value': {x}, 'position': [{x}{_}, {y}]}}", "{{'value': None, 'action': '{verb}', 'position': [{x}, {y}]}}",
        "{{'action': '{verb}'}}{{'action': '{verb}', 'value': '{text}', 'position': [{x}, {y}]}}",
    ],
    "qwen": [
        '{_}<tool_call>\n{{"name": "computer_use", "arguments": {{"action": "{tool}", "coordinate": [{x}, {y}]}}}}\n</tool_call>{_}',
        '<tool_call>\n{{"name": "computer_use", "arguments": {{"action": "{tool}", "text": "{text}", "coordinate": [{x},{y}]}}}}{_}',
        '<tool_call>{_}{{"arguments": {{"action": "{tool}", "keys": ["ctrl", "a"], "coordinate": [1, 2, {x}, {y}]}}}}{_}</tool_call>',
        '<tool_call>\n{{"arguments": {{"action": "{tool}", "coordinate": [1, 2]}}}}\n</tool_call>\n<tool_call>\n{{"arguments": {{"action": "type"}}}}\n</tool_call>',
        "Thought: {text}\n<tool_call>\n{{'arguments': {{'action': '{tool}'}}}}\n</tool_call>", '{{"action": "{tool}", "coordinate": [{x}, {y}]}}',
        '<tool_call>\n{{"arguments": "{tool}"}}\n</tool_call>', '<tool_call>\n{{"arguments": {{"action": "{tool}", "coordinate": [{x}]}}}}\n</tool_call>',
    ],
    "uitars": [
        "Thought: {text}\nAction:{_}{call}(start_box='({x},{_}{y})')", "Action: {call}(start_box='<|box_start|>({x},{y})<|box_end|>')",
        "Action: {call}({_}start_box='({x},{y},{x},{y})')", "Action: type(content='{text}')", "Action: type(content='{text}', start_box='({x},{y})')",
        "Action: type(start_box='({x},{y})', content='{text}')", "Action: {call}(start_box='({x},{y})'){_}\n\ntype(content='{text}')",
        "Action: {call}(start_box='({x},{y})')\ntype(content='{text}')", "Action: {call}(point='<point>{x} {y}</point>')", "Action: {call}({x}, {y})",
        "Action: {call}()", "Action: {call}(start_box=({x},{y}))", 'Action: type(content="{text}")', "Action: {call}(start_box='({x})')",
        "Action: {call}(start_box='(1,2)', start_box='({x},{y})')", "Action: {call}(start_box='(1,2)'", "Action: hotkey(key='{text}'){_}Action: wait()",
        "Action: drag(start_point='<point>1 2</point>', end_point='<point>{x} {y}</point>')[EOS]", "Action: a.{call}(**{{'start_box': '(1,2)'}})",
        "Action: {call}(start_box='(1,2)'); {call}(start_box='(3,4)')", "Action: finished(content='{text}')\n\nDone.",
    ],
    "code": [
        "assistantos{_}\npyautogui.{python}(x={x}, y={y})", "{_}pyautogui.{python}(x{_}={_}{x},{_}y={y})", "pyautogui.{python}({x}, {y})",
        "pyautogui.{python}(y={x}, x={y})", "pyautogui.write(message='{text}')", 'pyautogui.write(message="{text}")', "pyautogui.write('{text}')",
        "Click it: pyautogui.{python}(x={x}, y={y}) or computer.wait()", "```python\npyautogui.{python}(x={x}, y={y})\npyautogui.write('{text}')\n```",
        "computer.triple_click(x={x}, y={y})", "computer.terminate(status='{text}')", "computer.terminate(status='success')", "computer.wait()",
        "pyautogui.press('{text}')", "pyautogui.hotkey('ctrl', 'a')", "pyautogui.press(keys=['enter'])", "pyautogui.hotkey(keys=['{text}', 'a'])",
        "pyautogui.scroll({x})", "pyautogui.scroll(page={x})", "pyautogui.{python}(x={x}, y={y}); pyautogui.write(message='{text}')",
        "I use pyautogui.{python}(x=1, y=2) then pyautogui.write('{text}')", "browser.select_option(x={x}, y={y}, value='{text}')",
    ],
    "osatlas": [
        "thoughts:\n{text}\nactions:{_}\n{word}{_} <point>[[{x},{_}{y}]]</point>{_}", "actions:\n{word} <point>[[{x},{y}]]</point><|im_end|>",
        "actions:\nTYPE [{text}]", "actions:\n{word} {text}", "Actions:\n{word} [[{x},{y}]]", "actions:\n{word} <point>[[{x}]]</point>\n{word} 1 2",
        "actions:\nCLICK <point>[[1,2]]</point>\nactions:\nTYPE [{text}]", "actions:\n{word}",
    ],
    "holo1": [
        "Click({x}, {y})", "Step {x}: Click({x},{_}{y})", "click {x} and {y}", "The place is ({x},{_}{y}).", "x: {x}, y: {y}", "{x}\n{y}", "{x},\n{y}", "{text}",
        "Point({x}, {y})", "<{x}, {y}> of 3",
    ],
    "holo1.5": [
        *['{{"action": "click_absolute", "x": {x}, "y": {y}}}', '{_}{{{_}"x": {x},{_}"y":{y}{_}}}{_}', '{{"x": "{x}", "y": "{_}{y}"}}'] * 8,
        '{{"x": {x}, "y": true, "z": "{text}"}}', '{{"x": {x}, "x": 7, "y": {y}.0}}', '{{"x": {x}e2, "y": {y}e19}}', '{{"action": "{call}", "x": {x}, "y": {y}}}',
        "Click({x}, {y})", '```json\n{{"x": {x}, "y": {y}}}\n```',
    ],
    "uground": [
        "{text}\nACTION: {plan}\nELEMENT: {text}\nVALUE: {text}", "ACTION:{plan}{_}ELEMENT: the {text} box{_}VALUE: None", "**ACTION:** {plan}\n**ELEMENT:** {text}\n**VALUE:** {text}",
        "ACTION: {plan}\nVALUE: {text}\nELEMENT: {text}", "action: {plan}\nelement: a\nvalue: b", "VALUE: {text}\nmore", "ACTION: {plan}\nELEMENT: None\nVALUE: none",
        "ACTION: CLICK\nELEMENT: a\nVALUE: b\nACTION: {plan}\nELEMENT: {text}\nVALUE: {text}",
    ],
    "uground-grounder": [
        "({x}, {y})", "{_}({x},{_}{y}){_}", "[{x}, {y}]", "{x}, {y}", "({x}, {y}).", "({x}, {y}, {x}, {y})", "('{x}', '{y}')", "(({x}, {y}))", "{x}",
    ],
    "screensuite": [
        "Click({x}, {y})", 'click({x},{_}{y}); type("{text}")', "click(point='<point>{x} {y}</point>')", "click(element {x} at {y})", "type({text})", 'type("")',
        "click()", "click({x}{_}", "double_click({x}, {y}) type('{text}')", "click(1, 2) click({x}, {y})",
    ],
}  # fmt: skip
FAMILIES = {
    "qwen2.5-vl": "qwen", "qwen3-vl": "qwen", "uitars-1.5": "uitars", "aguvis": "code", "opencua": "code",
}  # fmt: skip
WORDS = {
    "kind": ["4", "2", "3", "7", "4.0", "None", "'3'"], "verb": ["CLICK", "TYPE", "SELECT", "HOVER", "INPUT", "click"],
    "tool": ["left_click", "type", "mouse_move", "key", "triple_click", "terminate", "answer", "wait", "Left_Click", "jump"],
    "call": ["click", "left_double", "right_single", "select", "scroll", "Click", "tap", "drag"],
    "python": ["click", "doubleClick", "rightClick", "moveTo", "dragTo", "tripleClick", "middleClick"],
    "plan": ["CLICK", "TYPE", "SELECT", "SCROLL DOWN", "scroll down", "click", "HOVER", "DRAG", "", "TYPE text"],
    "word": ["CLICK", "TYPE", "LONG_PRESS", "SCROLL", "COMPLETE", "ENTER", "click", "**CLICK**"],
}  # fmt: skip


def replies(agent: str, n: int) -> list[str]:
    """Replies in an agent's forms with usual and unusual parts, one in three with a letter lost or gained."""
    rng = random.Random(agent)
    found = []
    for _ in range(n):
        parts = {name: rng.choice(words) for name, words in WORDS.items()}
        parts |= {"x": rng.choice(NUMBERS[:5] * 3 + NUMBERS), "y": rng.choice(NUMBERS[:5] * 3 + NUMBERS)}
        parts |= {"_": rng.choice(BLANKS), "text": rng.choice(TEXTS)}
        reply = rng.choice(FORMS[FAMILIES.get(agent, agent)]).format(**parts)
        if rng.random() < 1 / 3 and reply:
            at = rng.randrange(len(reply))
            reply = (
                reply[:at] + rng.choice(["", "'", '"', "\n", " ", ")", "\\", ",", "1"]) + reply[at + rng.randrange(2) :]
            )
        found.append(reply)
    return found


@pytest.mark.parametrize("agent", READERS)
def test_a_strict_reader_reads_as_the_released_parser(agent: str) -> None:
    def ours(reply: str) -> Any:
        try:
            return [(act.kind, act.place, act.text) for act in AGENTS[agent].read(reply, strict=True)]
        except Unreadable:
            return None

    asked = replies(agent, 1000)
    differing = [(one, ours(one), READERS[agent](one)) for one in asked if repr(ours(one)) != repr(READERS[agent](one))]
    assert not differing, f"{len(differing)} of {len(asked)}, first {differing[:5]}"
    # most forms hold an act
    assert sum(READERS[agent](one) is not None for one in asked) > len(asked) / 5
