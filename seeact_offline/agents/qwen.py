"""Qwen-VL's `computer_use` function, called in the text of a reply, and the vendors' computer tools as JSON.

Source: QwenLM/Qwen3-VL 9658872 (cookbooks), QwenLM/Qwen-Agent 31a4d36; anthropics/anthropic-quickstarts 44c2b5c,
openai/openai-cua-sample-app eb2d58b, google-gemini/computer-use-preview c93bb2d.
"""

from __future__ import annotations

import json
from typing import Any

from seeact_offline.agents.acts import Act, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.notations import acts_in
from seeact_offline.agents.screens import Frame, Resize
from seeact_offline.agents.verbs import WrittenAct, act_of, acts_in_value
from seeact_offline.agents.writing import Template, in_json
from seeact_offline.replies.calls import json_in, place_of

ACTIONS = frozenset(
    "key type mouse_move left_click left_click_drag right_click middle_click double_click triple_click scroll hscroll wait terminate answer".split()
)
"""The actions of `computer_use`."""
SMART = Resize("smart", 28, 3_136, 12_845_056)


def read_json_calls(text: str) -> list[Act]:
    """Every call that the text holds as JSON. Raises UnknownAct and NoMarks among others."""
    return acts_in(text, ("json",))


def read_gemini(text: str) -> list[Act]:
    """Every call that the text holds as JSON, or the only place: Gemini's `point` and `box_2d` have y before x, its calls name both."""
    try:
        return read_json_calls(text)
    except Unreadable as error:
        for value in json_in(text) if error.name == Unreadable.name else ():
            one = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
            numbers = place_of(one.get("box_2d", one.get("point"))) if isinstance(one, dict) else None
            if numbers is not None:
                # y and x, or top, left, bottom and right
                return [Act("click", place_of([numbers[n ^ 1] for n in range(len(numbers))]))]
        raise


def read_tool_calls(text: str) -> list[Act]:
    """Every call that the text holds as JSON, wherever it stands."""
    calls = [call for value in json_in(text) for call in acts_in_value(value)]
    if not calls:
        raise Unreadable("expected the JSON of a computer_use call")
    return [act for call in calls if (act := act_of(call)) is not None]


def read_first_call(text: str) -> list[Act]:
    """The first call between tags on lines of their own, which must be JSON, as the cookbook reads it. Its end may be missing."""
    _, tag, rest = text.partition("<tool_call>\n")
    if not tag:
        raise Unreadable("expected <tool_call> on a line of its own")
    try:
        arguments = json.loads(rest.partition("<tool_call>\n")[0].partition("\n</tool_call>")[0])["arguments"]
        action = arguments["action"]
        is_known = action in ACTIONS
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable("expected JSON with arguments and an action between the tags") from None
    named = {name: arguments[name] for name in ("coordinate", "text", "keys") if name in arguments}
    act = act_of(WrittenAct(action, named)) if is_known else None
    if act is None:
        raise Unreadable("expected an action of computer_use")
    return [act]


WRITE_QWEN = Template(
    '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [X, Y]}}\n</tool_call>',
    '<tool_call>\n{"name": "computer_use", "arguments": {"action": "type", "text": VALUE}}\n</tool_call>',
    quoted=in_json,
)
_BLOCK = '{"type": "tool_use", "name": "computer", "input": {"action": %s}}'
WRITE_ANTHROPIC = Template(
    _BLOCK % '"left_click", "coordinate": [X, Y]',
    _BLOCK % '"type", "text": VALUE',
    around="[{}]",
    joined=", ",
    quoted=in_json,
)
WRITE_OPENAI = Template(
    '{"type": "click", "button": "left", "x": X, "y": Y}',
    '{"type": "type", "text": VALUE}',
    around='{"type": "computer_call", "actions": [{}]}',
    joined=", ",
    quoted=in_json,
)
WRITE_GEMINI = Template(
    '{"name": "click_at", "args": {"x": X, "y": Y}}',
    '{"name": "type_text_at", "args": {"x": X, "y": Y, "text": VALUE, "press_enter": false}}',
    quoted=in_json,
)


def say_qwen(act: Act) -> str:
    """A call without a place. Raises ValueError."""
    calls: dict[str, dict[str, Any]] = {
        # negative pixels scroll down
        "scroll": {"action": "scroll", "pixels": 500 if act.text == "up" else -500},
        "stop": {"action": "terminate", "status": "success"},
        "press": {"action": "key", "keys": [act.text]},
        "wait": {"action": "wait", "time": 1},
    }
    if act.kind not in calls:
        raise ValueError(f"no words for {act}")
    return f"<tool_call>\n{json.dumps({'name': 'computer_use', 'arguments': calls[act.kind]})}\n</tool_call>"


_COMMON: dict[str, Any] = {
    "reader": read_json_calls,
    "speaks": frozenset({"CLICK", "TYPE"}),
    "speaks_value": frozenset({"TYPE"}),
}
QWEN_2_5_VL = Agent(
    "qwen2.5-vl", "QwenLM/Qwen3-VL 9658872: cookbooks/computer_use", strict_reader=read_first_call, writer=WRITE_QWEN,
    frame=Frame(resize=SMART), view=View(resize=SMART), history_steps=4, act_writer=say_qwen, **_COMMON,
)  # fmt: skip
QWEN_3_VL = Agent(
    "qwen3-vl", "QwenLM/Qwen3-VL 9658872: cookbooks/computer_use", strict_reader=read_first_call, writer=WRITE_QWEN,
    frame=Frame(1000), view=View(resize=Resize("smart", 32, 4_096, 16_777_216)), history_steps=4, act_writer=say_qwen, **_COMMON,
)  # fmt: skip
ANTHROPIC = Agent(
    "anthropic", "anthropics/anthropic-quickstarts 44c2b5c", strict_reader=read_tool_calls, writer=WRITE_ANTHROPIC,
    view=View("window"), scroll='[{"type": "tool_use", "name": "computer", "input": {"action": "scroll", "scroll_direction": "down"}}]', **_COMMON,
)  # fmt: skip
OPENAI = Agent(
    "openai", "openai/openai-cua-sample-app eb2d58b", strict_reader=read_tool_calls, writer=WRITE_OPENAI,
    view=View("window"), scroll='{"type": "computer_call", "actions": [{"type": "scroll", "scroll_y": 800}]}', **_COMMON,
)  # fmt: skip
GEMINI = Agent(
    "gemini", "google-gemini/computer-use-preview c93bb2d", strict_reader=read_tool_calls, writer=WRITE_GEMINI,
    frame=Frame(1000), view=View("window"), scroll='{"name": "scroll_document", "args": {"direction": "down"}}', **(_COMMON | {"reader": read_gemini}),
)  # fmt: skip
