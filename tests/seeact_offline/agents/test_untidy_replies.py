"""Replies beside their documented form: prose that looks like a call, several acts, special tokens, brackets that do not match."""

from __future__ import annotations

from typing import Any

import pytest

from seeact_offline.agents import AGENTS
from seeact_offline.agents.acts import Unreadable

CLICK = "\nAction: click(point='<point>500 250</point>')"
FAR = ("click", (640.0, 360.0), None)
NEAR = ("click", (500.0, 250.0), None)


def answered(agent: str, reply: str) -> Any:
    """Kind, place and text of the act that counts, or the name of the failure."""
    try:
        act, failure = AGENTS[agent].fold.fold(AGENTS[agent].read(reply))
    except Unreadable as error:
        return error.name
    return failure or (act.kind, act.place, act.text)


def tool_calls(*arguments: str) -> str:
    return "\n".join(f'<tool_call>\n{{"name": "computer_use", "arguments": {one}}}\n</tool_call>' for one in arguments)


def code(*lines: str) -> str:
    return "\n".join(["```python", *lines, "```"])


@pytest.mark.parametrize(
    "agent", ["seed1.5-vl", "uitars-2", "glm-4.5v", "ui-venus", "evocua-s1", "kimi-vl", "uitars-1.5"]
)
@pytest.mark.parametrize(
    "thought",
    [
        "The page has loaded. Search (top right) is where I need to click.",
        "The filter shows: Open (5).",
        "Status: Completed (3). I click.",
        "The next step is clear: type (or paste) the zip code.",
        "Now choose a size. Select (M) from the list.",
        "I could use scroll(direction='down'), but no.",
        "Earlier I used: scroll(direction='down')",
        "I could have used type(content='x') but a click is first.",
        "e.g. click(point='<point>1 2</point>') is wrong.",
    ],
)
def test_words_of_a_thought_are_no_act(agent: str, thought: str) -> None:
    assert answered(agent, f"Thought: {thought}{CLICK}") == NEAR


@pytest.mark.parametrize("agent", ["qwen2.5-vl", "qwen3-vl", "evocua", "gui-owl", "fara", "opencua", "aguvis"])
@pytest.mark.parametrize("rest", ["", "\n<tool_call>", '\n<tool_call>\n{"name": "computer_use", "arguments": {"act'])
@pytest.mark.parametrize(
    "sentence",
    [
        "Open the menu.",
        "Search for hotels.",
        "Complete the form by clicking Submit.",
        "End date: click May 5.",
        'Press the "Search" button to go on.',
        "Select the second option (2, 3).",
        'Type "New York" into the search box.',
    ],
)
def test_a_sentence_behind_action_is_no_act(agent: str, sentence: str, rest: str) -> None:
    assert answered(agent, f"Thought: x\nAction: {sentence}{rest}") == "no_act"


@pytest.mark.parametrize(
    ("agent", "reply", "expected"),
    [
        # a pointer that is moved to where something else than a click is done
        ("qwen2.5-vl", tool_calls('{"action": "mouse_move", "coordinate": [640, 360]}', '{"action": "scroll", "pixels": -5}'), "scrolled"),
        ("opencua", code("pyautogui.moveTo(640, 360)", "pyautogui.scroll(-5)"), "scrolled"),
        ("aguvis", code("pyautogui.moveTo(0.4, 0.6)", "pyautogui.dragTo(0.5, 0.6)"), "other_act"),
        ("opencua", code("pyautogui.moveTo(640, 360)", "pyautogui.click()"), FAR),
        # what is in a field is selected or emptied before it is typed over
        (
            "qwen2.5-vl",
            tool_calls('{"action": "left_click", "coordinate": [640, 360]}', '{"action": "triple_click", "coordinate": [640, 360]}', '{"action": "type", "text": "abc"}'),
            ("type", (640.0, 360.0), "abc"),
        ),
        ("opencua", code("pyautogui.click(x=640, y=360)", "pyautogui.doubleClick()", "pyautogui.write('abc')"), ("type", (640.0, 360.0), "abc")),
        ("qwen3-vl", tool_calls('{"action": "click", "coordinate": [640, 360]}', '{"action": "clear_text"}', '{"action": "type", "text": "abc"}'), ("type", (640.0, 360.0), "abc")),
        ("qwen3-vl", tool_calls('{"action": "clear_text"}', '{"action": "type", "text": "abc"}'), ("type", None, "abc")),
        ("qwen3-vl", tool_calls('{"action": "clear_text"}'), "other_act"),
        ("qwen3-vl", tool_calls('{"action": "click", "coordinate": [640, 360]}', '{"action": "click", "coordinate": [1, 2]}', '{"action": "type", "text": "abc"}'), FAR),
        # a click without the name of its box
        *(("uitars-1.5", f"Action: click({one})", FAR) for one in ("640, 360", "x=640, y=360", "coordinate=[640, 360]", "position='(640, 360)'")),
        # special tokens
        ("osatlas", "actions:\nTYPE [New York]</s>", ("type", None, "New York")),
        ("osatlas", "actions:\nTYPE [New York][EOS]", ("type", None, "New York")),
        ("gelab", "action:TYPE\tvalue:abc<|im_end|>", ("type", None, "abc")),
        ("ui-venus", "[500, 250]<|im_end|>", NEAR),
        ("showui", "[0.5, 0.25]</s>", ("click", (0.5, 0.25), None)),
        ("uground", "ACTION: TYPE\nELEMENT: the box\nVALUE: New York<|im_end|>\n<|endoftext|>", ("type", "the box", "New York")),
        ("qwen3.5", "<tool_call>\n<function=computer_use>\n<parameter=action>\nleft_click\n</parameter>\n<parameter=coordinate>\n[500, 250]<|im_end|>", NEAR),
        # quotes, words for none, numbers of lines, full-width colons
        ("uground", 'ACTION: TYPE\nELEMENT: `the box`\nVALUE: "New York"', ("type", "the box", "New York")),
        ("uground", "1. ACTION: CLICK\n2. ELEMENT: the box\n3. VALUE: None.", ("click", "the box", None)),
        ("uground", "ACTION\uff1aTYPE (the text)\nELEMENT: the box\nVALUE: (none)", ("type", "the box", None)),
        ("uground", '```json\n{"ACTION": "TYPE", "ELEMENT": "the box", "VALUE": "New York"}\n```', ("type", "the box", "New York")),
        ("uitars-1.5", "Action: type(content=\u201cRome, Italy\u201d)", ("type", None, "Rome, Italy")),
        ("osatlas", 'actions:\nTYPE ["abc"]', ("type", None, "abc")),
        ("osatlas", "actions:\nTYPE [abc] <point>[[500,250]]</point>", ("type", (500.0, 250.0), "abc")),
        ("opencua", code("pyautogui.write(f'abc')"), ("type", None, "abc")),
        ("qwen2.5-vl", "<tool_call>\n{'action': 'type', 'text': 'is it true?', 'press_enter': true}\n</tool_call>", ("type", None, "is it true?")),
        # shares in per cent, which no frame has
        ("qwen3-vl", tool_calls('{"action": "left_click", "coordinate": "50%, 25%"}'), ("click", None, None)),
        ("uitars-1.5", "Action: click(start_box='(64%,36%)')", ("click", None, None)),
        # closing brackets that are others than those that were opened
        ("qwen2.5-vl", 'Action: Open the menu.\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [640, 360}}\n</tool_call>', FAR),
        ("qwen2.5-vl", '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [640, 360]]}}\n</tool_call>', FAR),
        ("openai", '{"type": "click", "button": "back", "x": 1, "y": 2}', "left_page"),
        ("qwen3-vl", tool_calls('{"action": "type", "input": "abc"}'), ("type", None, "abc")),
        ("opencua", "## Thought: pyautogui.click(x=1, y=2) missed.\n## Code:\n```py\npyautogui.click(x=640, y=360)\n```", FAR),
    ],
)  # fmt: skip
def test_a_reply_is_read_as_it_is_meant(agent: str, reply: str, expected: Any) -> None:
    assert answered(agent, reply) == expected


@pytest.mark.parametrize(
    ("agent", "reply", "direction"),
    [
        ("osatlas", "actions:\nSCROLL [UP]</s>", "up"),
        ("osatlas", "actions:\nSCROLL [UP].", "up"),
        ("evocua-s1", code("pyautogui.scroll(10)"), "up"),
        ("kimi-vl", code("pyautogui.scroll(-10)"), "down"),
        ("opencua", code("pyautogui.hscroll(10)"), "right"),
    ],
)
def test_a_scroll_has_the_direction_that_it_says(agent: str, reply: str, direction: str) -> None:
    assert AGENTS[agent].read(reply)[0].extra["direction"] == direction
