"""Grounders: models that answer a description with one place, each a frame and a notation.

Sources: Yan98/GTA1 (README), mlfoundations/Gelato, alibaba/UI-Ins, InfiX-ai/InfiGUI-G1, QwenLM/Qwen2.5-VL, allenai/Molmo, OpenGVLab/InternVL,
xlang-ai/Jedi (OSWorld-G), bytedance/UI-TARS.
"""

from __future__ import annotations

from seeact_offline.agents.agent_record import Agent
from seeact_offline.agents.declared import FRAMES, STYLES, gui_model
from seeact_offline.records import InputError

SMART = "smart(28, 3136, 12845056)"
GTA1 = gui_model("gta1", source="Yan98/GTA1", frame="px", resize="smart(28, 3136, 8847360)", notation="point")
GELATO = gui_model("gelato", source="mlfoundations/Gelato", frame="px", resize="smart(32)", notation="point")
UI_INS = gui_model("ui-ins", source="alibaba/UI-Ins", frame="px", resize=SMART, notation="list")
INFIGUI_G1 = gui_model("infigui-g1", source="InfiX-ai/InfiGUI-G1", frame="px", resize=SMART, notation="point_2d")
MOLMO = gui_model("molmo", source="allenai/molmo", frame="100", notation="point_tag")
INTERNVL = gui_model("internvl", source="OpenGVLab/InternVL", frame="1000", notation="box_tag")
JEDI = gui_model("jedi", source="xlang-ai/OSWorld-G", frame="px", resize=SMART, notation="click")


def grounder_of(spec: str, argument: str) -> Agent | None:
    """The grounder that `FRAME:NOTATION` or `FRAME/RESIZE:NOTATION` names; None for a text of another form. Raises InputError.

    >>> grounder_of("1000:point_2d", "grounder_agent").read('{"point_2d": [500, 250]}')
    (Act(kind='click', place=(500.0, 250.0), text=None),)
    """
    counted, colon, notation = spec.rpartition(":")
    frame, _, resize = counted.partition("/")
    if not colon or (frame not in FRAMES and notation not in STYLES):
        return None
    try:
        return gui_model(spec, source="as named", frame=frame, resize=resize, notation=notation)
    except InputError as error:
        raise InputError(argument, sentence=str(error)) from None
