"""Qwen-VL's `computer_use` function, called in the text of a reply, and the vendors' computer tools as JSON.

Source: QwenLM/Qwen3-VL 9658872 (cookbooks), QwenLM/Qwen-Agent 31a4d36; anthropics/anthropic-quickstarts 44c2b5c,
openai/openai-cua-sample-app eb2d58b, google-gemini/computer-use-preview c93bb2d.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from seeact_offline.agents.acts import Act, Kind, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.notations import acts_in
from seeact_offline.agents.screens import Frame, Point, Resize
from seeact_offline.replies.calls import json_in, loads, place_of

VERBS: Mapping[str, Kind] = {
    "left_click": "click", "click": "click", "click_at": "click", "middle_click": "click", "click_element": "click",
    "double_click": "double", "triple_click": "double", "left_double": "double", "right_click": "right",
    "mouse_move": "hover", "move": "hover", "hover": "hover", "hover_at": "hover",
    "type": "type", "type_text": "type", "type_text_at": "type", "write": "type", "write_element": "type",
    "select": "select", "select_option": "select",
    "key": "press", "keypress": "press", "hotkey": "press", "key_combination": "press", "hold_key": "press", "press": "press",
    "scroll": "scroll", "hscroll": "scroll", "scroll_at": "scroll", "scroll_document": "scroll",
    "left_click_drag": "drag", "drag": "drag", "drag_and_drop": "drag",
    "wait": "wait", "screenshot": "wait", "wait_5_seconds": "wait", "zoom": "zoom",
    "terminate": "stop", "finished": "stop", "done": "stop", "answer": "answer",
    "go_back": "back", "back": "back", "go_forward": "back", "navigate": "goto", "goto": "goto", "search": "goto",
    "open_web_browser": "goto",
}  # fmt: skip
"""Actions of all these tools, in lower case -> the kind of act."""
_INSIDE = ("arguments", "input", "args", "parameters")
_PLACES = ("coordinate", "coordinates", "point", "position", "start_coordinate", "start_box", "box")
_TEXTS = ("text", "content", "value", "answer", "option", "keys")
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
    """Every call that the text holds, in any of these tools' JSON, with these tools' own actions alone."""
    acts = [act for value in json_in(text) for act in _acts_in(value)]
    if not acts:
        raise Unreadable("expected the JSON of a computer_use call")
    return acts


def read_first_call(text: str) -> list[Act]:
    """The first call between tags on lines of their own, which must be JSON, as the cookbook reads it. Its end may be missing."""
    _, found, rest = text.partition("<tool_call>\n")
    if not found:
        raise Unreadable("expected <tool_call> on a line of its own")
    try:
        arguments = json.loads(rest.partition("<tool_call>\n")[0].partition("\n</tool_call>")[0])["arguments"]
        kind = VERBS.get(arguments["action"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable("expected JSON with arguments and an action between the tags") from None
    if kind is None:
        raise Unreadable("expected an action of computer_use")
    act = _act({name: value for name, value in arguments.items() if name in ("action", "coordinate", "text", "keys")})
    assert act is not None
    return [act]


def _acts_in(value: Any, depth: int = 0) -> Iterator[Act]:
    """Yields the act of a call, or those of all calls inside."""
    if isinstance(value, list | tuple) and depth < 10:
        for one in value:
            yield from _acts_in(one, depth + 1)
    elif isinstance(value, dict) and depth < 10:
        act = _act(value)
        if act is not None:
            yield act
        else:
            for one in value.values():
                yield from _acts_in(one, depth + 1)


def _act(value: Any) -> Act | None:
    """The act of a call whose arguments may be inside, or beside the name of its action."""
    if not isinstance(value, dict):
        return None
    # servers give the arguments of a call as a text that is JSON
    given = (loads(one) if isinstance(one, str) else one for one in map(value.get, _INSIDE))
    inside = next((one for one in given if isinstance(one, dict)), value)
    named = (inside.get("action"), value.get("action"), inside.get("type"), value.get("name"))
    verb = next((one.lower() for one in named if isinstance(one, str) and one.lower() in VERBS), None)
    if verb is None:
        return None
    kind, place = VERBS[verb], next((place_of(inside[name]) for name in _PLACES if name in inside), None)
    if place is None and "x" in inside and "y" in inside:
        place = place_of([inside["x"], inside["y"]])
    text = next((inside[name] for name in _TEXTS if name in inside), None)
    if isinstance(text, list):
        text = "+".join(map(str, text))
    assert kind in get_args(Kind)
    return Act(kind, place, None if text is None or kind in ("click", "double", "right", "hover") else str(text))


def write_qwen(op: str, value: str, place: Point | str | None) -> str:
    """One call; for TYPE a click, then the typing."""
    calls: list[dict[str, Any]] = [{"action": "left_click", "coordinate": place}] if place is not None else []
    if op == "TYPE":
        calls.append({"action": "type", "text": value})
    texts = [json.dumps({"name": "computer_use", "arguments": call}, ensure_ascii=False) for call in calls]
    return "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)


def write_anthropic(op: str, value: str, place: Point | str | None) -> str:
    """Blocks of tool use."""
    inputs: list[dict[str, Any]] = [{"action": "left_click", "coordinate": place}] if place is not None else []
    if op == "TYPE":
        inputs.append({"action": "type", "text": value})
    blocks = [{"type": "tool_use", "name": "computer", "input": one} for one in inputs]
    return json.dumps(blocks, ensure_ascii=False)


def write_openai(op: str, value: str, place: Point | str | None) -> str:
    """A `computer_call` with its list of actions."""
    actions: list[dict[str, Any]] = []
    if place is not None:
        actions.append({"type": "click", "button": "left", "x": place[0], "y": place[1]})
    if op == "TYPE":
        actions.append({"type": "type", "text": value})
    return json.dumps({"type": "computer_call", "actions": actions}, ensure_ascii=False)


def write_gemini(op: str, value: str, place: Point | str | None) -> str:
    """One function call, `type_text_at` for TYPE."""
    args: dict[str, Any] = {} if place is None else {"x": place[0], "y": place[1]}
    if op == "TYPE":
        args |= {"text": value, "press_enter": False}
    return json.dumps({"name": "type_text_at" if op == "TYPE" else "click_at", "args": args}, ensure_ascii=False)


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
    "qwen2.5-vl", "QwenLM/Qwen3-VL 9658872: cookbooks/computer_use", strict_reader=read_first_call, writer=write_qwen,
    frame=Frame(resize=SMART), view=View(resize=SMART), history_steps=4, act_writer=say_qwen, **_COMMON,
)  # fmt: skip
QWEN_3_VL = Agent(
    "qwen3-vl", "QwenLM/Qwen3-VL 9658872: cookbooks/computer_use", strict_reader=read_first_call, writer=write_qwen,
    frame=Frame(1000), view=View(resize=Resize("smart", 32, 4_096, 16_777_216)), history_steps=4, act_writer=say_qwen, **_COMMON,
)  # fmt: skip
ANTHROPIC = Agent(
    "anthropic", "anthropics/anthropic-quickstarts 44c2b5c", strict_reader=read_tool_calls, writer=write_anthropic,
    view=View("window"), scroll='[{"type": "tool_use", "name": "computer", "input": {"action": "scroll", "scroll_direction": "down"}}]', **_COMMON,
)  # fmt: skip
OPENAI = Agent(
    "openai", "openai/openai-cua-sample-app eb2d58b", strict_reader=read_tool_calls, writer=write_openai,
    view=View("window"), scroll='{"type": "computer_call", "actions": [{"type": "scroll", "scroll_y": 800}]}', **_COMMON,
)  # fmt: skip
GEMINI = Agent(
    "gemini", "google-gemini/computer-use-preview c93bb2d", strict_reader=read_tool_calls, writer=write_gemini,
    frame=Frame(1000), view=View("window"), scroll='{"name": "scroll_document", "args": {"direction": "down"}}', **(_COMMON | {"reader": read_gemini}),
)  # fmt: skip
