"""Grounders: models that answer a description with one place, each a frame and a notation.

Sources: Yan98/GTA1 (README), mlfoundations/Gelato, alibaba/UI-Ins, InfiX-ai/InfiGUI-G1, QwenLM/Qwen2.5-VL, allenai/Molmo, OpenGVLab/InternVL,
xlang-ai/Jedi (OSWorld-G), bytedance/UI-TARS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from seeact_offline.agents import GROUNDERS, GUI_MODELS
from seeact_offline.agents.agent_record import Agent
from seeact_offline.agents.declared import FRAMES, STYLES, frame_of, gui_model
from seeact_offline.records import InputError

SMART = "smart(28, 3136, 12845056)"
GTA1 = gui_model("gta1", source="Yan98/GTA1", frame="px", resize="smart(28, 3136, 8847360)", notation="point")
GELATO = gui_model("gelato", source="mlfoundations/Gelato", frame="px", resize="smart(32)", notation="point")
UI_INS = gui_model("ui-ins", source="alibaba/UI-Ins", frame="px", resize=SMART, notation="list")
INFIGUI_G1 = gui_model("infigui-g1", source="InfiX-ai/InfiGUI-G1", frame="px", resize=SMART, notation="point_2d")
MOLMO = gui_model("molmo", source="allenai/molmo", frame="100", notation="point_tag")
INTERNVL = gui_model("internvl", source="OpenGVLab/InternVL", frame="1000", notation="box_tag")
MOLMO_2 = gui_model("molmo2", source="allenai/molmo2", frame="1000", notation="coords_tag")
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
JEDI = gui_model("jedi", source="xlang-ai/OSWorld-G", frame="px", resize=SMART, notation="click")


def framed_agent(spec: str, argument: str) -> Agent | None:
    """The agent that `FRAME:NOTATION` or `FRAME/RULE:NOTATION` names, where an agent's name may stand for NOTATION: it then reads as that one,
    in another frame. None for a text of another form. Raises InputError.

    >>> framed_agent("1000:point_2d", "grounder_agent").read('{"point_2d": [500, 250]}')
    (Act(kind='click', place=(500.0, 250.0), text=None),)
    >>> framed_agent("px/exact(640,400):qwen3-vl", "agent").frame.describe((1280, 800))
    'pixels of 640 x 400'
    """
    counted, colon, notation = spec.rpartition(":")
    frame, _, resize = counted.partition("/")
    known: Mapping[str, Agent] = GUI_MODELS if notation in GUI_MODELS else GROUNDERS
    if not colon or counted.endswith(".py") or (frame not in FRAMES and notation not in (*STYLES, *known)):
        return None
    try:
        if notation in known:
            return replace(known[notation], name=spec, frame=frame_of(spec, frame, resize))
        return gui_model(spec, source="as named", frame=frame, resize=resize, notation=notation)
    except InputError as error:
        raise InputError(argument, sentence=str(error)) from None
