"""The agents of this package, one record each: the view, the numbers for places and the language of a model.

Their strict readers are in `released`. A model whose answers are in a known notation is declared by names
(`declared.gui_model`).
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from typing import Any

from seeact_offline.agents import released
from seeact_offline.agents.acts import Act, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.declared import WRITE_GENERAL, WRITE_QWEN, gui_model
from seeact_offline.agents.notations import acts_in, place_in_reply
from seeact_offline.agents.screens import Frame, Point, Resize
from seeact_offline.agents.templates import Template, in_json
from seeact_offline.agents.verbs import Declined, Several
from seeact_offline.replies.calls import escape, json_in, place_of
from seeact_offline.replies.decided import DECLINED
from seeact_offline.replies.field_values import operation_in, value_in
from seeact_offline.replies.fields import ACTION, ELEMENT, VALUE
from seeact_offline.replies.final_answer import final_fields

SMART = Resize("smart", 28, 3_136, 12_845_056)
_CLICK_TYPE: dict[str, Any] = {"speaks": frozenset({"CLICK", "TYPE"}), "speaks_value": frozenset({"TYPE"})}
_PLACED = frozenset({"CLICK", "SELECT"})

# --- Qwen-VL's `computer_use`, and the vendors' computer tools ---


def read_json_calls(text: str) -> list[Act]:
    """Every call that the text holds as JSON. Raises UnknownAct and NoMarks among others."""
    return acts_in(text, ("json",))


def read_gemini(text: str) -> list[Act]:
    """Every call that the text holds as JSON, or the only place: Gemini's `point` and `box_2d` have y before x, its
    calls name both."""
    try:
        return read_json_calls(text)
    except Unreadable as error:
        for value in json_in(text) if error.name == Unreadable.name else ():
            entry = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
            numbers = place_of(entry.get("box_2d", entry.get("point"))) if isinstance(entry, dict) else None
            if numbers is not None:
                # y and x, or top, left, bottom and right
                return [Act("click", place_of([numbers[n ^ 1] for n in range(len(numbers))]))]
        raise


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
QWEN2_5_VL = Agent(
    "qwen2.5-vl", "QwenLM/Qwen3-VL 9658872: cookbooks/computer_use", strict_reader=released.read_first_call,
    writer=WRITE_QWEN, frame=Frame(resize=SMART), view=View(resize=SMART), history_steps=4, act_writer=say_qwen,
    **_COMMON,
)  # fmt: skip
QWEN3_VL = Agent(
    "qwen3-vl", "QwenLM/Qwen3-VL 9658872: cookbooks/computer_use", strict_reader=released.read_first_call,
    writer=WRITE_QWEN, frame=Frame(1000), view=View(resize=Resize("smart", 32, 4_096, 16_777_216)), history_steps=4,
    act_writer=say_qwen, **_COMMON,
)  # fmt: skip
ANTHROPIC = Agent(
    "anthropic", "anthropics/anthropic-quickstarts 44c2b5c", strict_reader=released.read_tool_calls,
    writer=WRITE_ANTHROPIC, view=View("window"),
    scroll='[{"type": "tool_use", "name": "computer", "input": {"action": "scroll", "scroll_direction": "down"}}]',
    **_COMMON,
)  # fmt: skip
OPENAI = Agent(
    "openai", "openai/openai-cua-sample-app eb2d58b", strict_reader=released.read_tool_calls, writer=WRITE_OPENAI,
    view=View("window"), scroll='{"type": "computer_call", "actions": [{"type": "scroll", "scroll_y": 800}]}',
    **_COMMON,
)  # fmt: skip
GEMINI = Agent(
    "gemini", "google-gemini/computer-use-preview c93bb2d", strict_reader=released.read_tool_calls, writer=WRITE_GEMINI,
    frame=Frame(1000), view=View("window"), scroll='{"name": "scroll_document", "args": {"direction": "down"}}',
    **(_COMMON | {"reader": read_gemini}),
)  # fmt: skip


# --- UI-TARS ---

_BOX = re.compile(r"(start_box|end_box)='(\(\d+,\d+\))'")
UITARS_SMART = Resize("smart", 28, 78_400, 12_845_056)
CLIENT = Resize("linear", 0, 3_136, 2_116_800)
_UITARS_READER = partial(
    acts_in, notations=("python",), sign=r"Action\s*:|\w\((?:start_box|point|content|start_point|key)\s*="
)
_BOX_WRITTEN = "start_box='<|box_start|>(X,Y)<|box_end|>'"
WRITE_MIND2WEB = Template(
    f"click({_BOX_WRITTEN})",
    f"type(content='VALUE', {_BOX_WRITTEN})",
    f"select({_BOX_WRITTEN})",
    around="Action: {}",
    quoted=escape,
)
"""The form of the released training example; `select` has no value."""


def with_box_tokens(reply: str) -> str:
    """The reply with tokens around its places, as the released history of version 1.5 has them (`add_box_token`)."""
    return _BOX.sub(r"\1='<|box_start|>\2<|box_end|>'", reply)


UITARS = Agent(
    "uitars", "bytedance/UI-TARS 582f3a7: data/training_example.json, README_v1.md", _UITARS_READER,
    released.read_uitars_strictly, WRITE_MIND2WEB,
    frame=Frame(1000), view=View(resize=CLIENT),
    speaks_value=frozenset({"TYPE"}),
)  # fmt: skip
UITARS_1_5 = Agent(
    "uitars-1.5", "bytedance/UI-TARS 582f3a7: codes/ui_tars, README_coordinates.md", _UITARS_READER,
    released.read_uitars_strictly, WRITE_GENERAL,
    frame=Frame(resize=UITARS_SMART), view=View(resize=UITARS_SMART),
    speaks=frozenset({"CLICK", "TYPE"}), speaks_value=frozenset({"TYPE"}), told=with_box_tokens,
)  # fmt: skip


# --- Aguvis and OpenCUA ---

_CODE_READER = partial(acts_in, notations=("python",), sign=r"\b(?:pyautogui|computer|browser|mobile)\.\w")
WRITE_AGUVIS = Template(
    "pyautogui.click(x=X, y=Y)",
    "pyautogui.write(message='VALUE')",
    "browser.select_option(x=X, y=Y, value='VALUE')",
    joined=None,
    quoted=escape,
    digits=4,
)
WRITE_OPENCUA = replace(WRITE_AGUVIS, around="## Code:\n```python\n{}\n```", digits=None)
AGUVIS = Agent(
    "aguvis", "xlang-ai/aguvis 178c418: src/aguvis/constants.py, serve/cli.py", _CODE_READER,
    released.read_aguvis_strictly, WRITE_AGUVIS, frame=Frame(1, decimals=4),
    view=View(resize=Resize("smart", 28, 200_704, 937_664)), speaks_place=_PLACED,
)  # fmt: skip
OPENCUA = Agent(
    "opencua", "xlang-ai/OpenCUA 1d70f20: evaluation/agentnetbench, model/README.md", _CODE_READER,
    released.read_opencua_strictly, WRITE_OPENCUA, frame=Frame(reads_fractions=True, resize=SMART),
    view=View(resize=SMART), history_steps=10, speaks_place=_PLACED,
)  # fmt: skip


# --- SeeClick and ShowUI ---


def read_showui(text: str) -> list[Act]:
    """The call, keys in any order; where its quotes break, as the released code reads it."""
    try:
        return acts_in(text, ("json",), sign=r"[\"']action[\"']")
    except Unreadable as error:
        if error.name != Unreadable.name:
            raise
        return released.read_showui_strictly(text)


WRITE_SEECLICK = Template(
    '{"action_type": 4, "click_point": (X,Y)}',
    '{"action_type": 3, "click_point": (X,Y), "value": "VALUE"}',
    '{"action_type": 2, "click_point": (X,Y), "value": "VALUE"}',
    digits=2,
)
"""A dictionary as the training data has it: a value that holds a quote makes it unreadable, and the released evaluation
leaves such steps out."""
WRITE_SHOWUI = Template(
    "{'action': 'CLICK', 'value': None, 'position': [X, Y]}",
    "{'action': 'TYPE', 'value': 'VALUE', 'position': [X, Y]}",
    "{'action': 'SELECT', 'value': 'VALUE', 'position': [X, Y]}",
    quoted=escape,
    digits=2,
)
"""A dictionary as the training data has it, a click without the element's name; the value of a SELECT is the element's
name."""
SEECLICK = Agent(
    "seeclick", "njucckevin/SeeClick 0ef37ac: agent_tasks/mind2web_test.py",
    partial(acts_in, notations=("json",), verbs=released.SEECLICK_TYPES, sign="action_type"),
    released.read_seeclick_strictly, WRITE_SEECLICK, verbs=released.SEECLICK_TYPES, protocol="seeclick",
    frame=Frame(1, decimals=2, rounded_to=3), history_steps=4,
)  # fmt: skip
SHOWUI = Agent(
    "showui", "showlab/ShowUI 21ed7cb: main/eval_mind2web.py", read_showui, released.read_showui_strictly, WRITE_SHOWUI,
    protocol="showui", frame=Frame(1, decimals=2), view=View(resize=Resize("smart", 28, 1_053_696, 1_317_120)),
    history_steps=4, names_selected=True,
)  # fmt: skip


# --- OS-Atlas, ScreenSuite and Holo ---

HOLO = Resize("smart", 28, 3_136, 1_003_520)


def read_holo(text: str) -> list[Act]:
    """The navigator's action, or the only place that is named, as the localizer does."""
    try:
        return acts_in(text, ("json", "python"))
    except Unreadable as error:
        if error.name != Unreadable.name:
            raise
        return [place_in_reply(text)]


WRITE_OSATLAS = Template(
    "CLICK <point>[[X,Y]]</point>",
    "TYPE [VALUE]",
    around="actions:\n{}",
    quoted=lambda text: " ".join(text.splitlines()),
)
WRITE_SCREENSUITE = Template("click(X, Y)", 'type("VALUE")', joined="; ", quoted=partial(escape, quote='"'))
WRITE_HOLO = Template(
    '{"action": {"action": "click_element", "x": X, "y": Y}}',
    '{"action": {"action": "write_element", "content": VALUE, "x": X, "y": Y}}',
    quoted=in_json,
)
OSATLAS = Agent(
    "osatlas",
    "OS-Copilot/OS-Atlas bad0840",
    partial(acts_in, notations=("lines",)),
    released.read_osatlas_strictly,
    WRITE_OSATLAS,
    frame=Frame(1000),
    **_CLICK_TYPE,
)
SCREENSUITE = Agent(
    "screensuite", "huggingface/screensuite c92591b",
    partial(acts_in, notations=("python",), sign=r"(?i)(?<![\w.])(?:click|type)\("), released.read_screensuite_strictly,
    WRITE_SCREENSUITE, history_steps=1, **_CLICK_TYPE,
)  # fmt: skip
HOLO1 = Agent(
    "holo1", "hcompai/surfer-h-cli b054d8e", read_holo, released.read_holo_1_strictly, WRITE_HOLO,
    frame=Frame(resize=HOLO), view=View(resize=HOLO), **_CLICK_TYPE,
)  # fmt: skip
HOLO1_5 = Agent(
    "holo1.5", "hcompai/surfer-h-cli b054d8e", read_holo, released.read_holo_1_5_strictly, WRITE_HOLO,
    frame=Frame(resize=Resize("exact", size=(1000, 500)), clamps=True),
    view=View(resize=Resize("exact", size=(1000, 500))), **_CLICK_TYPE,
)  # fmt: skip


# --- UGround's pipeline ---

_AROUND = " .`'\""


def read_plan(text: str) -> list[Act]:
    """The final ACTION, ELEMENT and VALUE, however they are laid out; the element is the act's label."""
    block, aside = final_fields(text)
    if aside is not None:
        raise Declined("the words around the plan set it aside") if aside == DECLINED else Several("several plans")
    action = block.text(ACTION)
    if not action:
        raise Unreadable("expected a line ACTION: ...")
    return [_plan(action, block.text(ELEMENT), block.text(VALUE))]


def _plan(action: str, element: str, value: str) -> Act:
    name = action.upper().strip(_AROUND)
    kind = released.PLAN_ACTIONS.get(name) or released.PLAN_ACTIONS.get(operation_in(action))
    if kind is None:
        raise Unreadable(f"expected ACTION: CLICK, TYPE, SELECT or SCROLL DOWN, got {name[:40]!r}")
    extra = {"keys": "Enter"} if kind == "press" else {}
    if kind == "scroll":
        extra = {"direction": "up" if name.endswith("UP") else "down"}
    text = value_in(value) if kind in ("type", "select") else ""
    return Act(kind, value_in(element) or None, text or None, extra)


def read_point(text: str) -> list[Act]:
    """The only place that is named."""
    return [place_in_reply(text)]


def write_plan(op: str, value: str, place: Point | str | None) -> str:
    """Three lines; `place` is the element's description."""
    element = place if isinstance(place, str) else "None"
    return f"ACTION: {op}\nELEMENT: {element}\nVALUE: {value if op != 'CLICK' and value else 'None'}"


UGROUND = Agent(
    "uground", "OSU-NLP-Group/UGround 3a9b9f2: offline_evaluation/Multimodal-Mind2Web", read_plan,
    released.read_plan_strictly, write_plan,
    view=View("blocks", stops_at_truth=True), grounder="uground-grounder",
    scroll="ACTION: SCROLL DOWN\nELEMENT: None\nVALUE: None", reads_others=False,
)  # fmt: skip
"""The agent as released: the blocks that hold the right element decide how far it may scroll, and whether the grounder
is asked."""
UGROUND_BLIND = replace(UGROUND, name="uground-blind", view=View("blocks"))
"""The same without the truth: it may scroll to the end of the page."""
SEEACT_PLANNER = replace(UGROUND, name="seeact-planner", view=View(), scroll="")
"""A plan on the whole page, as in SeeAct's first turn, whose element a grounder finds."""
UGROUND_GROUNDER = Agent(
    "uground-grounder", "OSU-NLP-Group/UGround 3a9b9f2: grounding", read_point, released.read_uground_point_strictly,
    Template("(X, Y)"), frame=Frame(1000), speaks=frozenset({"CLICK"}), speaks_value=frozenset(),
)  # fmt: skip


# --- models of 2025 and 2026, and grounders ---

SMART_28, SMART_32 = "smart(28, 3136, 12845056)", "smart(32, 4096, 16777216)"
QWEN3_5 = gui_model(
    "qwen3.5", source="QwenLM/Qwen3.8#125, vllm-project/vllm#42021, trycua/cua loops/qwen35.py", frame="1000",
    resize=SMART_32, notation="xml", history_steps=4,
)  # fmt: skip
UITARS_2 = gui_model("uitars-2", source="trycua/cua loops/uitars2.py", frame="1000", resize=SMART_28, notation="seed")
SEED1_5_VL = gui_model(
    "seed1.5-vl", source="trycua/cua loops/uitars.py", frame="1000", resize=SMART_28, notation="python"
)
HOLO2 = gui_model(
    "holo2", source="hcompai/hai-cookbook utils/navigation.py", frame="1000", resize=SMART_32, notation="navigator"
)
FARA = gui_model("fara", source="microsoft/fara src/fara/_prompts.py", frame="px", resize=SMART_28, notation="json")
FARA_1_5 = gui_model(
    "fara-1.5",
    source="microsoft/fara src/fara/agents/fara/fara15_agent.py",
    frame="1000",
    resize="smart(32, 3136, 12845056)",
    notation="json",
)
MAI_UI = gui_model("mai-ui", source="Tongyi-MAI/MAI-UI src/prompt.py", frame="1000", resize=SMART_32, notation="json")
GLM_4_5V = gui_model("glm-4.5v", source="trycua/cua loops/glm45v.py", frame="1000", notation="box")
UI_VENUS = gui_model(
    "ui-venus", source="inclusionAI/UI-Venus navigation/utils.py", frame="1000", resize=SMART_28, notation="action"
)
GUI_OWL = gui_model(
    "gui-owl",
    source="X-PLUG/MobileAgent GUI-Owl-1.5 browser_use/prompts.py",
    frame="1000",
    resize=SMART_32,
    notation="json",
)
EVOCUA = gui_model("evocua", source="meituan/EvoCUA prompts.py: S2", frame="1000", resize=SMART_32, notation="json")
EVOCUA_S1 = gui_model("evocua-s1", source="meituan/EvoCUA prompts.py: S1", frame="px", resize=SMART_28, notation="code")
KIMI_VL = gui_model("kimi-vl", source="likaixin2000/ScreenSpot-Pro models/kimivl.py", frame="1", notation="code")
COGAGENT = gui_model(
    "cogagent", source="likaixin2000/ScreenSpot-Pro models/cogagent24.py", frame="1000", notation="operation"
)
GELAB = gui_model("gelab", source="stepfun-ai/gelab-zero parser_0920_summary.py", frame="1000", notation="tabs")
AGENTCPM_GUI = gui_model("agentcpm-gui", source="OpenBMB/AgentCPM-GUI eval", frame="1000", notation="keys")
GTA1 = gui_model("gta1", source="Yan98/GTA1", frame="px", resize="smart(28, 3136, 8847360)", notation="point")
GELATO = gui_model("gelato", source="mlfoundations/Gelato", frame="px", resize="smart(32)", notation="point")
UI_INS = gui_model("ui-ins", source="alibaba/UI-Ins", frame="px", resize=SMART_28, notation="list")
INFIGUI_G1 = gui_model("infigui-g1", source="InfiX-ai/InfiGUI-G1", frame="px", resize=SMART_28, notation="point_2d")
MOLMO = gui_model("molmo", source="allenai/molmo", frame="100", notation="point_tag")
INTERNVL = gui_model("internvl", source="OpenGVLab/InternVL", frame="1000", notation="box_tag")
MOLMO2 = gui_model("molmo2", source="allenai/molmo2", frame="1000", notation="coords_tag")
GEMINI_POINT = gui_model(
    "gemini-point", source="google-gemini/cookbook: Spatial_understanding", frame="1000yx", notation="point_2d"
)
NOVA_ACT = gui_model(
    "nova-act",
    source="aws/nova-act tools/browser/default/util/bbox_parser.py",
    frame="pxyx",
    resize="none",
    notation="box_tag",
)
JEDI = gui_model("jedi", source="xlang-ai/OSWorld-G", frame="px", resize=SMART_28, notation="click")
