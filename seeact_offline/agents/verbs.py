"""Verbs of the models' languages and what they ask for, and an act from a verb and its arguments, whatever notation
they are written in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from seeact_offline.agents.acts import CLICKS, Act, Kind, Place, Unreadable
from seeact_offline.replies.calls import loads, place_of
from seeact_offline.replies.decided import DECLINED, SEVERAL

_KINDS: Mapping[Kind, str] = {
    "click": "click left_click left_single left_click_at click_at click_element click_element_abs click_absolute "
        "click_element_by_index tap single_tap middle_click middle_single long_press long_tap mouse_click",
    "double": "double_click double_tap triple_click left_double left_double_click left_triple_click double_click_at",
    "right": "right_click right_single context_click right_click_at",
    "hover": "hover hover_at mouse_move move move_to move_mouse",
    "type": "type type_text type_text_at input input_text write write_element write_element_abs write_abs typewrite "
        "fill enter_text set_text input_element type_name form_input",
    "select": "select select_option select_dropdown select_dropdown_option choose",
    "clear": "clear clear_text",
    "press": "key keys keypress press press_key key_press hotkey key_combination hold_key send_keys key_down key_up "
        "keyboard_enter enter press_enter press_recent volume_up volume_down",
    "scroll": "scroll hscroll vscroll scroll_at scroll_document scroll_up scroll_down scroll_left scroll_right swipe "
        "slide scroll_element",
    "drag": "drag left_click_drag left_drag drag_and_drop drag_to left_mouse_down left_mouse_up mouse_down mouse_up "
        "gesture",
    "wait": "wait sleep screenshot take_screenshot wait_5_seconds pause pause_and_memorize_fact memorize info note "
        "cursor_position find read_page get_page_text read_page_answer_question dropdown_options get_dropdown_options",
    "zoom": "zoom zoom_in zoom_out",
    "stop": "terminate finished finish done complete completed stop fail failed abort end status call_user ask_user "
        "ask_user_question interact take_over impossible task_complete task_impossible",
    "answer": "answer response respond submit_answer",
    "back": "back go_back go_forward history_back forward navigate_back press_back previous_page",
    "goto": "goto navigate visit_url open_url go_to_url load_url search web_search open open_app launch launch_app "
        "awake open_web_browser home press_home navigate_home refresh reload restart",
    "tab": "new_tab close_tab switch_tab tab_focus",
}  # fmt: skip
VERBS: Mapping[str, Kind] = {verb.replace("_", ""): kind for kind, verbs in _KINDS.items() for verb in verbs.split()}
"""Verbs of all these languages, in lower case without lines and blanks -> the kind of act."""
_BUTTONS: Mapping[str, Kind] = {"back": "back", "home": "goto", "menu": "goto", "recent": "goto", "recents": "goto"}
_VERB_NAMES = tuple(
    "action action_type action_name type name function tool tool_name function_name operation command".split()
)
"""Names under which a call in JSON says its verb."""
_CALLED = ("action", "action_type", "action_name", "tool_name", "function_name", "operation", "command")
"""Names that only a call has."""
_INSIDE = ("arguments", "input", "args", "parameters", "params", "action_inputs", "kwargs")
"""Names under which it has its arguments."""
_PLACES = tuple(
    "coordinate coordinates coord point point_2d position start_coordinate start_box start_point box box_2d bbox "
    "bbox_2d bounding_box bounds click_point location start point1 center coords xy from_coord".split()
)
_TEXTS = tuple(
    "text content value text_input input_text string message answer option query url app keys key status input".split()
)
_ENDS = tuple("end_coordinate end_box end_point to end point2 coordinate2 to_coord destination end_coordinates".split())
"""Names under which a call has the place where a drag ends."""
_ENTERS = ("press_enter", "press_enter_after", "enter", "submit", "press_enter_after_typing")
_DIRECTIONS = ("direction", "scroll_direction", "dir", "value", "text")
_CLICK = 100.0
"""Pixels of one click of a mouse wheel."""
_AMOUNTS: Mapping[str, float] = {
    "scroll_y": 1, "delta_y": 1, "dy": 1, "scroll_x": 1, "delta_x": 1, "dx": 1, "pixels": -1, "magnitude": 1,
    "distance": 1, "clicks": -_CLICK, "page": -8 * _CLICK, "scroll_amount": _CLICK, "num_clicks": _CLICK,
    "amount": _CLICK,
}  # fmt: skip
"""Names under which a scroll has its size -> what one of it is in pixels downwards: computer_use and pyautogui count
upwards."""
_SIDEWAYS = frozenset({"scroll_x", "delta_x", "dx"})
TYPED = frozenset("text content value text_input input_text string message answer query url".split())
"""Names of arguments that stay a text, also where they look like a list."""
_WORDY = ("element", "target")
"""Names of arguments that are an element's words, or its place."""
_NUMBERS_ALONE = re.compile(r"\s*[\[(<][\d\s.,()\[\]<>-]+")
_CORNERS = ("x1", "y1", "x2", "y2")
_DRESS = re.compile(
    r"</?(?:point|bbox|box)>|<\|box_(?:start|end)\|>|\b[xy]\d?\s*[=:]|[\"'][xy]\d?[\"']\s*:", re.IGNORECASE
)
"""Matches the signs around the numbers of a place."""
_WORDS = re.compile(r"[^\W\d_]{2}")
_PAIRS = (("x", "y"), ("coordinate_x", "coordinate_y"))
_PREFIXES = re.compile(r"^(?:browser|computer|mobile|mouse|page|web)_(?=\w)|_(?:tool|action)$", re.IGNORECASE)
_MARKS = ("label", "index", "mark", "element_index", "element_id", "target_id", "ref")
_MOST_DEPTH = 10


class UnknownAct(Unreadable):
    """A reply that asks for something which no table knows. Its text names it."""

    name = "unknown_act"


class NoMarks(Unreadable):
    """A reply that names the mark of an element, of which its picture has none."""

    name = "no_marks"


class Several(Unreadable):
    """A reply with different answers, and nothing that chooses from them."""

    name = SEVERAL


class Declined(Unreadable):
    """A reply that denies, takes back, quotes or only supposes its answer."""

    name = DECLINED


@dataclass(frozen=True, slots=True)
class WrittenAct:
    """An act as it is written, whatever the notation."""

    verb: str
    named: Mapping[str, Any] = field(default_factory=dict)
    """Arguments by name."""
    positional: Sequence[Any] = ()
    start: int = 0
    end: int = 0
    """Positions in the reply where it begins and ends."""
    stands: bool = True
    """False where it is inside a sentence."""


def plain_verb(verb: str) -> str:
    """A verb as the table has it: its last part, in lower case, without lines and blanks.

    >>> plain_verb("mobile.Long_Press")
    'longpress'
    """
    return re.sub(r"[\s_-]", "", verb.rpartition(".")[2]).lower()


def kind_of(verb: str, own: Mapping[str, Kind] | None = None) -> Kind | None:
    """The kind of act that a verb asks for; None for one that is not known. `own`: verbs of one model, as it writes
    them."""
    if own and (kind := own.get(verb) or own.get(verb.lower())):
        return kind
    kind = VERBS.get(plain_verb(verb))
    return VERBS.get(plain_verb(_PREFIXES.sub("", verb))) if kind is None else kind


def act_of(written: WrittenAct, own: Mapping[str, Kind] | None = None) -> Act | None:
    """The act; None for a verb that is not known. Raises NoMarks where it names a mark alone."""
    kind = kind_of(written.verb, own)
    if plain_verb(written.verb) in ("systembutton", "navigationbutton"):
        button = str(written.named.get("button", next(iter(written.positional), ""))).lower()
        return Act(_BUTTONS.get(button, "press"), None, button)
    if kind is None:
        return None
    button = str(written.named.get("button", "")).lower()
    if kind == "click" and button in ("back", "forward"):
        return Act("back", None, None, {"direction": "forward"} if button == "forward" else {})
    place, rest = _place(written, kind)
    text = next((written.named[name] for name in _TEXTS if name in written.named), None)
    if text is None and kind not in (*CLICKS, "wait") and rest:
        text = rest[0]
    if isinstance(text, list | tuple):
        text = "+".join(map(str, text))
    mark = next((name for name in _MARKS if written.named.get(name) not in (None, "")), None)
    if kind in (*CLICKS, "type", "select") and place is None and mark is not None:
        raise NoMarks(f"{mark} {str(written.named[mark])[:40]}, and the picture has no marks")
    typed = None if text is None or kind in (*CLICKS, "scroll", "drag") else str(text)
    return Act(kind, place, typed, _extra_of(written, kind))


def _extra_of(written: WrittenAct, kind: Kind) -> dict[str, Any]:
    """The parts of an act that only a browser needs, as `Act.extra` names them."""
    verb, named = plain_verb(written.verb), written.named
    extra: dict[str, Any] = {}
    if kind in ("scroll", "drag"):
        ends = (place_of(named[name]) for name in _ENDS if name in named)
        to = next((end for end in ends if end is not None), None)
        extra |= {} if to is None else {"to": to}
    if kind == "scroll":
        # pyautogui's only number
        clicks = {"clicks": written.positional[0]} if len(written.positional) == 1 and verb.endswith("scroll") else {}
        extra |= scroll_of(verb, {**clicks, **named})
    elif kind == "press" and "enter" in verb:
        extra["keys"] = "Enter"
    elif kind == "back" and "forward" in verb:
        extra["direction"] = "forward"
    elif kind == "type" and (enter := next((named[name] for name in _ENTERS if name in named), None)) is not None:
        extra |= {"enter": True} if str(enter).lower() in ("true", "1", "yes") else {}
    return extra


def scroll_of(verb: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """Direction and pixels of a scroll. Without a direction it goes down, the way of most.

    >>> scroll_of("scroll", {"scroll_x": 0, "scroll_y": -400}), scroll_of("scrollup", {})
    ({'direction': 'up', 'pixels': 400.0}, {'direction': 'up'})
    """
    words = [verb, *(str(named[name]).lower() for name in _DIRECTIONS if name in named)]
    direction = next(
        (candidate for candidate in ("up", "down", "left", "right") for word in words if word.endswith(candidate)), None
    )
    numbers = {name: number for name, sign in _AMOUNTS.items() if (number := _number(named.get(name), sign))}
    name = next(iter(numbers), None)
    if name is None:
        return {"direction": direction or "down"}
    number = numbers[name]
    if direction is None:
        ways = ("right", "left") if name in _SIDEWAYS else ("left", "right") if verb == "hscroll" else ("down", "up")
        direction = ways[number < 0]
    return {"direction": direction, "pixels": abs(number)}


def _number(value: Any, sign: float) -> float:
    try:
        number = float(value) * sign
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if isfinite(number) else 0.0


def _place(written: WrittenAct, kind: Kind) -> tuple[Place | None, Sequence[Any]]:
    """The place, and the positional arguments that are left. Of a text that is typed no number is a place."""
    named = written.named
    places = (_place_of(named[name]) for name in _PLACES if name in named)
    place: Place | None = next((candidate for candidate in places if candidate is not None), None)
    for x, y in _PAIRS:
        if place is None and x in named and y in named:
            place = place_of([named[x], named[y]])
    if place is None and all(name in named for name in _CORNERS):
        place = place_of([named[name] for name in _CORNERS])
    for name in _WORDY:
        argument = named.get(name)
        if place is None and (not isinstance(argument, str) or _NUMBERS_ALONE.fullmatch(argument)):
            place = place_of(argument)
    if place is None and "x" in named and "y" not in named:
        place = place_of(named["x"])
    rest = list(written.positional)
    if place is None and rest and kind in (*CLICKS, "select", "drag"):
        n_numbers = 1 if place_of(rest[0]) is not None else 2
        place = place_of(rest[0] if n_numbers == 1 else rest[:2])
        rest = rest if place is None else rest[n_numbers:]
    elif place is None and kind == "type":
        # the text comes first or last
        numbers = [n for n, value in enumerate(rest) if isinstance(value, list | tuple) and place_of(value) is not None]
        if numbers:
            place = place_of(rest.pop(numbers[0]))
    return place, rest


def _place_of(value: Any) -> Place | None:
    """The place, whose corners may be lists of their own. A text with words says none."""
    if isinstance(value, str) and _WORDS.search(_DRESS.sub("", value)):
        return None
    if (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(corner, list | tuple) for corner in value)
    ):
        value = [number for corner in value for number in corner]
    return place_of(value)


_HOLDS = re.compile(
    r"action|call|tool|function|command|operation|answer|output|response|content|message|choice|candidate"
    r"|arg|input|param|next|step|result|final|part|data",
    re.IGNORECASE,
)
"""Keys behind which a value of JSON may have the act."""
_SURE = re.compile(r"confidence|prob|score|likelihood", re.IGNORECASE)


def acts_in_value(value: Any, own: Mapping[str, Kind] | None = None, depth: int = 0) -> list[WrittenAct]:
    """The acts of a value of JSON: a call with its arguments inside or beside its verb, a verb as the only key, or all
    of those in a list or behind a key that holds acts. `own`: verbs of one model. Raises Several for acts of a list
    that say how sure each is."""
    if depth >= _MOST_DEPTH:
        return []
    if isinstance(value, list | tuple):
        rated = [item for item in value if isinstance(item, dict) and any(map(_SURE.search, map(str, item)))]
        if len(rated) > 1:
            raise Several(f"{len(rated)} answers, each with a confidence")
        return [act for item in value for act in acts_in_value(item, own, depth + 1)]
    if not isinstance(value, dict):
        return []
    if acts := _agent_cpm(value):
        return acts
    lowered = {str(key).lower(): inside for key, inside in value.items()}
    if (call := _call(value, own) or _call(lowered, own)) is not None:
        return [call]
    if len(value) == 1:
        ((verb, inside),) = value.items()
        is_verb = isinstance(verb, str) and isinstance(inside, dict) and kind_of(verb, own) is not None
        if is_verb and (verb not in ("input", "action") or _call(inside, own) is None):
            return [WrittenAct(verb, inside)]
    acts = [
        act for key, inside in value.items() if _HOLDS.search(str(key)) for act in acts_in_value(inside, own, depth + 1)
    ]
    return acts or _unknown(value)


def _unknown(value: Mapping[str, Any]) -> list[WrittenAct]:
    """The verbs under `action` that no table knows."""
    actions = value.get("action", value.get("actions"))
    acts = []
    for action in actions if isinstance(actions, list) else [actions]:
        if isinstance(action, dict) and len(action) == 1 and isinstance(inside := next(iter(action.values())), dict):
            acts.append(WrittenAct(str(next(iter(action))), inside))
        elif isinstance(action, dict) and isinstance(verb := action.get("type"), str):
            acts.append(WrittenAct(verb, action))
    return acts


def _call(value: Mapping[str, Any], own: Mapping[str, Kind] | None) -> WrittenAct | None:
    # servers give the arguments of a call as a text that is JSON
    candidates = (loads(inside) if isinstance(inside, str) else inside for inside in map(value.get, _INSIDE))
    inside = next((arguments for arguments in candidates if isinstance(arguments, dict)), None)
    named = value if inside is None else {str(key).lower(): argument for key, argument in inside.items()} | inside
    # the verb may be an argument, as of computer_use, or the function's own name
    sources = [named] if inside is None else [named, value]
    verbs = [
        (source, name, verb) for source in sources for name in _VERB_NAMES if (verb := _verb_text(source.get(name)))
    ]
    is_called = inside is not None or any(_verb_text(value.get(name)) for name in _CALLED)
    is_known = (verb for verb in verbs if kind_of(verb[2], own) or plain_verb(verb[2]) == "systembutton")
    source, name, verb = next(is_known, verbs[0] if verbs and is_called else ({}, "", ""))
    if not verb:
        return None
    return WrittenAct(verb, {key: inside for key, inside in named.items() if not (source is named and key == name)})


def _verb_text(value: Any) -> str:
    """A verb, which may be a number (SeeClick); empty for another value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}"
    return value.strip() if isinstance(value, str) else ""


def _agent_cpm(value: Mapping[str, Any]) -> list[WrittenAct]:
    """AgentCPM-GUI's object, whose keys are what is done: `POINT`, `TYPE`, `PRESS`, `STATUS`, `to`."""
    if "TYPE" in value:
        return [WrittenAct("type", {"text": value["TYPE"], **({"point": value["POINT"]} if "POINT" in value else {})})]
    if "POINT" in value:
        return [WrittenAct("scroll" if "to" in value else "click", {"point": value["POINT"]})]
    if "PRESS" in value:
        return [WrittenAct("system_button", {"button": value["PRESS"]})]
    if "STATUS" in value and str(value["STATUS"]).lower() not in ("continue", "start"):
        return [WrittenAct("finished", {"status": value["STATUS"]})]
    return []
