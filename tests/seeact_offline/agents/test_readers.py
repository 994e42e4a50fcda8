"""Replies as models write them, read in the agent's language and, strictly, as the released parsers read them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest

from seeact_offline.agents import AGENTS, Answer, Unreadable
from seeact_offline.agents.screens import Shown

PAGE = Shown.whole((1280, 5000))


def read(agent: str, text: str, strict: bool = False) -> tuple[Any, ...]:
    """Kind, place and text of each act; the name of the failure for none."""
    try:
        return tuple((act.kind, act.place, act.text) for act in AGENTS[agent].read(text, PAGE, strict))
    except Unreadable as error:
        return (error.name,)


def answered(agent: str, text: str, shown: Shown = PAGE, strict: bool = False) -> Answer:
    try:
        acts = AGENTS[agent].read(text, shown, strict)
    except Unreadable as error:
        return Answer(failure=error.name, detail=str(error))
    return AGENTS[agent].answer(acts, shown, strict=strict)


NOTHING = ("no_act",)
BOX = "start_box='<|box_start|>(10,20)<|box_end|>'"


@pytest.mark.parametrize(
    ("agent", "text", "expected", "strictly"),
    [
        # one literal and nothing else
        ("seeclick", '{"action_type": 4, "click_point": (0.49,0.38)}', (("click", (0.49, 0.38), None),), None),
        ("seeclick", 'Sure: {"action_type": 4, "click_point": (0.49,0.38)}.', (("click", (0.49, 0.38), None),), NOTHING),
        ("seeclick", '{"action_type": "4", "click_point": [0.5, 0.5]}', (("click", (0.5, 0.5), None),), None),
        ("seeclick", '{"action_type": "3", "click_point": (0.1,0.2), "value": "x"}', (("type", (0.1, 0.2), "x"),), (("type", (0.1, 0.2), ""),)),
        ("seeclick", '{"action_type": 3, "click_point": (0.1,0.2), "value": 5}', (("type", (0.1, 0.2), "5"),), (("type", (0.1, 0.2), None),)),
        ("seeclick", '{"action_type": 7, "click_point": (0.1,0.2)}', ("unknown_act",), (("other", (0.1, 0.2), None),)),
        ("seeclick", '{"action_type": 3, "value": "x"}', (("type", None, "x"),), None),
        # keys in order, no blank before a bracket
        ("showui", "{'action': 'CLICK', 'value': 'Search', 'position': [0.49, 0.42]}", (("click", (0.49, 0.42), None),), None),
        ("showui", '{"action": "TYPE", "value": "it\'s", "position": [0.1,0.2]}', (("type", (0.1, 0.2), "it's"),), None),
        ("showui", "{'action': 'CLICK', 'position': [0.4, 0.4], 'value': None}", (("click", (0.4, 0.4), None),), NOTHING),
        ("showui", "{'action': 'CLICK', 'value': None, 'position': (0.4, 0.4)}", (("click", (0.4, 0.4), None),), NOTHING),
        ("showui", "{'action': 'CLICK', 'value': None, 'position': [0.4, -0.4]}", (("click", (0.4, -0.4), None),), NOTHING),
        ("showui", "{'action': 'INPUT', 'value': 'a', 'position': [0.4, 0.4]}", (("type", (0.4, 0.4), "a"),), (("other", (0.4, 0.4), "a"),)),
        # the released parser loses the place of its own Mind2Web form
        ("uitars", f"Action: click({BOX})", (("click", (10.0, 20.0), None),), NOTHING),
        ("uitars", "Action: click(start_box='(10,20)')", (("click", (10.0, 20.0), None),), None),
        ("uitars", "Thought: a\nAction: type(content='a', start_box='(1,2)')", (("type", (1.0, 2.0), "a"),), (("type", None, "a', start_box='(1,2)"),)),
        ("uitars", "Action: type(start_box='(1,2)', content='a')", (("type", (1.0, 2.0), "a"),), None),
        ("uitars", "Action:click(start_box='(1,2)')", (("click", (1.0, 2.0), None),), NOTHING),
        ("uitars", "Action: click(start_box=(1,2))", (("click", (1.0, 2.0), None),), NOTHING),
        ("uitars", 'Action: type(content="a")', (("type", None, "a"),), NOTHING),
        ("uitars", "Action: type(content='it's here')", (("type", None, "it's here"),), None),
        ("uitars", "Action: click(start_box='(1,2)')\n\ntype(content='a')", (("click", (1.0, 2.0), None), ("type", None, "a")), None),
        ("uitars", "Action: click(start_box='(1,2)')\ntype(content='a')", (("click", (1.0, 2.0), None), ("type", None, "a")), (("type", None, "click(start_box='(1,2)')\na"),)),
        ("uitars", "Action: click(start_box='(1,2,3,4)')", (("click", (1.0, 2.0, 3.0, 4.0), None),), None),
        ("uitars-1.5", "Action: click(point='<point>100 200</point>')", (("click", (100.0, 200.0), None),), None),
        ("uitars-1.5", "Action: click(point='<point>100, 200</point>')", (("click", (100.0, 200.0), None),), NOTHING),
        ("uitars", "Action: finished(content='done')", (("stop", None, "done"),), None),
        # one line, x before y
        ("aguvis", "assistantos\npyautogui.click(x=0.49, y=0.42)", (("click", (0.49, 0.42), None),), None),
        ("aguvis", "pyautogui.click(0.49, 0.42)", (("click", (0.49, 0.42), None),), NOTHING),
        ("aguvis", "pyautogui.click(y=0.4, x=0.5)", (("click", (0.5, 0.4), None),), NOTHING),
        ("aguvis", "pyautogui.write(message='it's')", (("type", None, "it's"),), (("type", None, "it"),)),
        ("aguvis", "pyautogui.rightClick(x=0.4, y=0.4)", (("right", (0.4, 0.4), None),), NOTHING),
        ("opencua", "## Code:\n```python\npyautogui.click(x=10, y=20)\npyautogui.write('a')\n```", (("click", (10.0, 20.0), None), ("type", None, "a")), None),
        ("opencua", "```code\ncomputer.terminate(status='success')\n```", (("stop", None, "success"),), None),
        ("opencua", "pyautogui.click(x=1.2.3, y=20)", (("click", None, None),), NOTHING),
        # every call, or the first one between tags on lines of their own
        ("qwen3-vl", '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [1, 2]}}\n</tool_call>', (("click", (1.0, 2.0), None),), None),
        ("qwen3-vl", "<tool_call>{'name': 'computer_use', 'arguments': {'action': 'left_click', 'coordinate': [1, 2],}}", (("click", (1.0, 2.0), None),), NOTHING),
        ("qwen3-vl", '<think>{"action": "wait"}</think>{"arguments": {"action": "type", "text": "a\\"b"}}', (("type", None, 'a"b'),), NOTHING),
        ("qwen2.5-vl", '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": "[1, 2]"', (("click", (1.0, 2.0), None),), NOTHING),
        ("qwen2.5-vl", '{"action": "left_click", "coordinate": [1, 2, 3, 4]}', (("click", (1.0, 2.0, 3.0, 4.0), None),), NOTHING),
        ("qwen2.5-vl", '<tool_call>\n{"arguments": {"action": "left_click", "coordinate": [1, 2]}}', (("click", (1.0, 2.0), None),), None),
        # arguments as a server's text, places by name, keys without quotes, lines broken inside a text, thoughts opened by the prompt
        ("qwen3-vl", '{"name": "computer_use", "arguments": "{\\"action\\": \\"left_click\\", \\"coordinate\\": [1, 2]}"}', (("click", (1.0, 2.0), None),), NOTHING),
        ("qwen3-vl", '[{"type": "function", "function": {"name": "computer_use", "arguments": "{\\"action\\": \\"type\\", \\"text\\": \\"a\\"}"}}]', (("type", None, "a"),), NOTHING),
        ("qwen3-vl", '{"action": "left_click", "coordinate": {"x": 1, "y": "2"}}', (("click", (1.0, 2.0), None),), NOTHING),
        ("qwen3-vl", '{action: "left_click", coordinate: [1, 2]}', (("click", (1.0, 2.0), None),), NOTHING),
        ("qwen3-vl", '{"action": "type", "text": "a\nb"}', (("type", None, "a\nb"),), NOTHING),
        ("qwen3-vl", 'Not {"action": "wait"}.</think>{"action": "left_click", "coordinate": [1, 2]}', (("click", (1.0, 2.0), None),), NOTHING),
        ("seeclick", '{"action_type": 2, "click_point": (0.1,0.2), "value": "a\nb"}', (("select", (0.1, 0.2), "a b"),), NOTHING),
        ("seeclick", '{"action_type": 4.0, "click_point": (0.1,0.2)}', (("click", (0.1, 0.2), None),), (("other", (0.1, 0.2), None),)),
        ("opencua", "pyautogui.write(message='''it's 'a''')", (("type", None, "it's 'a"),), (("type", None, "'"),)),
        ("uitars", "Action: click(start_box='(1,2)')\nAction: type(content='a')\nAction: hotkey(key='enter')", (("click", (1.0, 2.0), None), ("type", None, "a"), ("press", None, "enter")), (("press", None, "enter"),)),
        ("uitars", "Action: click(start_box='(1,2)')\n\nThought: b\nAction: click(start_box='(3,4)')", (("click", (3.0, 4.0), None),), None),
        # fields without a text, or in one line; bare numbers; verbs in small letters
        ("uground", "ACTION: CLICK\nELEMENT:\nVALUE: None", (("click", None, None),), None),
        ("uground", "ACTION: TYPE ELEMENT: the box VALUE: a", (("type", "the box", "a"),), None),
        ("uground-grounder", "500, 250", (("click", (500.0, 250.0), None),), None),
        ("uground-grounder", "<point>500 250</point>", (("click", (500.0, 250.0), None),), NOTHING),
        ("holo1.5", '{"x": 500, "y": 250}', (("click", (500.0, 250.0), None),), None),
        ("osatlas", "Actions:\n1. Click <point>[[4,5]]</point>", (("click", (4.0, 5.0), None),), NOTHING),
        ("osatlas", "Click here.\nTYPE [a]", (("type", None, "a"),), NOTHING),
        ("osatlas", "actions:\nSELECT <point>[[4,5]]</point> [Blue]", (("select", (4.0, 5.0), "Blue"),), (("select", None, "[4,5"),)),
        ("screensuite", "I click (the box): click(3, 4)", (("click", (3.0, 4.0), None),), None),
        ("holo1", "The place is (352, 348).", (("click", (352.0, 348.0), None),), None),
        ("webvoyager", "<think>\nAction: Click [9]\n</think>\nThought: a\nAction: Click [3]", (("click", "3", None),), NOTHING),
        ("visualwebarena", "Not ```click [9]```.</think>```click [3]```", (("click", "3", None),), (("click", "9", None),)),
        ("visualwebarena", "```type [3] [x] [press_enter_after=0]```", (("type", "3", "x"),), (("type", "3", "x] [press_enter_after=0\n"),)),
        # numbers without their sign, in lower case
        ("screensuite", "Click(100, 200)", (("click", (100.0, 200.0), None),), None),
        ("screensuite", 'click(-5, 20); type("New York")', (("click", (-5.0, 20.0), None), ("type", None, "New York")), (("click", (5.0, 20.0), None), ("type", None, "new york"))),
        ("screensuite", "click(point='<point>3 4</point>')", (("click", (3.0, 4.0), None),), None),
        ("osatlas", "thoughts:\nx\nactions:\nCLICK <point>[[493,102]]</point>", (("click", (493.0, 102.0), None),), None),
        ("osatlas", "actions:\nTYPE [New York [US]]", (("type", None, "New York [US]"),), (("type", None, "New York [US"),)),
        ("osatlas", "actions:\nCLICK <point>[[49.5,102]]</point>", (("click", (49.5, 102.0), None),), (("click", (49.0, 5.0), None),)),
        ("osatlas", "actions:\n**CLICK** <point>[[4,5]]</point><|im_end|>", (("click", (4.0, 5.0), None),), NOTHING),
        ("osatlas", "actions:\nCOMPLETE [done]<|im_end|>", (("stop", None, "done"),), (("stop", None, None),)),
        ("screensuite", "double_click(3, 4)", (("double", (3.0, 4.0), None),), (("click", (3.0, 4.0), None),)),
        ("screensuite", 'type("")', (("type", None, ""),), (("type", None, '""'),)),
        ("seeclick", '{"action_type": 4, "click_point": (0.1,0.2,0.3,0.4)}', (("click", (0.1, 0.2, 0.3, 0.4), None),), (("click", (0.1, 0.2), None),)),
        ("holo1", "Step 1: Click(150, 200)", (("click", (150.0, 200.0), None),), None),
        ("holo1", "step 1, click 150 and 200", NOTHING, (("click", (1.0, 150.0), None),)),
        ("uground", "ACTION: click\nELEMENT: the n/a box\nVALUE: None", (("click", "the n/a box", None),), None),
        ("holo1", "Click(352, 348)", (("click", (352.0, 348.0), None),), None),
        ("holo1", '{"action": {"action": "write_element", "content": "a", "element": "box", "x": 1, "y": 2}}', (("type", (1.0, 2.0), "a"),), (("type", "box", "a"),)),
        ("holo1.5", '{"action": "click_absolute", "x": 500, "y": 250}', (("click", (500.0, 250.0), None),), None),
        ("holo1.5", '{"action": "click_absolute", "x": -5, "y": 250}', (("click", (-5.0, 250.0), None),), None),
        ("holo1.5", '{"action": {"action": "click_element", "element": "box", "x": 1, "y": 2}}', (("click", (1.0, 2.0), None),), (("click", "box", None),)),
        # the localizer of Holo1.5 has no other patterns, that of Holo1 takes two numbers
        ("holo1.5", "Click(500, 250)", (("click", (500.0, 250.0), None),), NOTHING),
        ("holo1.5", '```json\n{"x": 500, "y": 250}\n```', (("click", (500.0, 250.0), None),), NOTHING),
        ("holo1.5", '{"x": 500.5, "y": 250}', (("click", (500.5, 250.0), None),), NOTHING),
        ("holo1", '{"action": "wait"}', (("wait", None, None),), NOTHING),
        ("holo1", "150, 200", (("click", (150.0, 200.0), None),), None),
        ("holo1", "I click at x 150 and y 200.", NOTHING, (("click", (150.0, 200.0), None),)),
        ("holo1", "150, 200 or 300, 400", NOTHING, (("click", (150.0, 200.0), None),)),
        ("holo1", "-150, 200", (("click", (-150.0, 200.0), None),), (("click", (150.0, 200.0), None),)),
        ("uground", "ACTION: TYPE\nELEMENT: the box\nVALUE: New York", (("type", "the box", "New York"),), None),
        ("uground", "**ACTION:** CLICK\n**ELEMENT:** the box\n**VALUE:** None", (("click", "the box", None),), (("other", "** the box\n**", None),)),
        ("uground-grounder", "The place is (12, 34).", (("click", (12.0, 34.0), None),), NOTHING),
        ("uground-grounder", "(12, 34)", (("click", (12.0, 34.0), None),), None),
        ("anthropic", '[{"type": "tool_use", "input": {"action": "left_click", "coordinate": [1, 2]}}]', (("click", (1.0, 2.0), None),), None),
        ("openai", '{"type": "computer_call", "action": {"type": "click", "button": "left", "x": 1, "y": 2}}', (("click", (1.0, 2.0), None),), None),
        ("gemini", '{"name": "type_text_at", "args": {"x": 1, "y": 2, "text": "a"}}', (("type", (1.0, 2.0), "a"),), None),
    ],
)  # fmt: skip
def test_a_reply_is_read(agent: str, text: str, expected: tuple[Any, ...], strictly: tuple[Any, ...] | None) -> None:
    strict = read(agent, text, strict=True)
    assert read(agent, text) == expected
    assert strict == (expected if strictly is None else strictly)


@pytest.mark.parametrize(
    ("agent", "text", "expected"),
    [
        ("anthropic", '[{"action": "mouse_move", "coordinate": [10, 20]}, {"action": "left_click"}]', Answer("CLICK", "", (10, 20))),
        ("anthropic", '[{"action": "left_click", "coordinate": [10, 20]}, {"action": "key", "text": "ctrl+a"}, {"action": "type", "text": "a\\n"}]', Answer("TYPE", "a", (10, 20))),
        ("anthropic", '[{"action": "type", "text": "a"}]', Answer("TYPE", "a")),
        ("anthropic", '[{"action": "left_click", "coordinate": [10, 20]}, {"action": "left_click", "coordinate": [30, 40]}]', Answer("CLICK", "", (10, 20))),
        ("anthropic", '[{"action": "wait"}]', Answer(failure="waited")),
        ("anthropic", '[{"action": "key", "text": "Return"}]', Answer(failure="other_act", detail="Return")),
        ("gemini", '{"name": "navigate", "args": {"url": "x"}}', Answer(failure="left_page", detail="x")),
        ("uitars", "Action: select(start_box='(500,500)')", Answer("SELECT", "", (640, 2500))),
        ("opencua", "pyautogui.click(x=0.5, y=0.5)", Answer("CLICK", "", (640, 2500))),
        ("holo1.5", '{"action": "click_absolute", "x": 1200, "y": 250}', Answer("CLICK", failure="point_outside", detail="(1200, 250) is beyond pixels of 1000 x 500; it would fit pixels as sent")),
    ],
)  # fmt: skip
def test_acts_become_one_answer(agent: str, text: str, expected: Answer) -> None:
    assert answered(agent, text) == expected


BEYOND = "(1.02, 0.5) is beyond 0 to 1; it would fit 0 to 1000"


@pytest.mark.parametrize(
    ("agent", "text", "expected", "strictly"),
    [
        # what is said of a place beyond the picture is read; read strictly, the place too
        ("showui", "{'action': 'TYPE', 'value': 'x', 'position': [1.02, 0.5]}", Answer("TYPE", "x", failure="point_outside", detail=BEYOND), Answer("TYPE", "x", (1305.6, 2500), failure="point_outside", detail=BEYOND)),
        # a value that is there and empty is a blank, none is empty
        ("showui", "{'action': 'SELECT', 'value': '', 'position': [0.5, 0.5]}", Answer("SELECT", " ", (640, 2500)), None),
        ("showui", "{'action': 'SELECT', 'value': None, 'position': [0.5, 0.5]}", Answer("SELECT", "", (640, 2500)), None),
        ("seeclick", '{"action_type": "3", "click_point": (0.5,0.5), "value": "x"}', Answer("TYPE", "x", (640, 2500)), Answer("TYPE", " ", (640, 2500))),
        # another action read strictly is an answer
        ("seeclick", '{"action_type": 7, "click_point": (0.5,0.5)}', Answer(failure="unknown_act", detail="no table knows '7'"), Answer("7", "", (640, 2500))),
        ("showui", "{'action': 'JUMP', 'value': 'x', 'position': [0.5, 0.5]}", Answer(failure="unknown_act", detail="no table knows 'JUMP'"), Answer("", "", (640, 2500))),
    ],
)  # fmt: skip
def test_an_answer_keeps_what_its_reply_says(agent: str, text: str, expected: Answer, strictly: Answer | None) -> None:
    assert answered(agent, text) == expected
    assert answered(agent, text, strict=True) == (expected if strictly is None else strictly)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "f" * 5000, "0b" + "1" * 5000])
def test_a_number_of_thousands_of_digits_is_read_or_not_but_is_no_error(agent: str, digits: str) -> None:
    ours = AGENTS[agent].writer("TYPE", "a", "3" if "web" in agent else (1, 2))
    for text in (
        re.sub(r"\d+(\.\d+)?", digits, ours),
        f"{{'action': {digits}, 'action_type': {digits}, 'coordinate': [{digits}]}}",
    ):
        for read in (AGENTS[agent].reader, AGENTS[agent].strict_reader):
            with suppress(Unreadable):
                read(text)
