"""GUI models of 2025 and 2026, each declared by its frame, its processor's rule and its notation; sources stand in the records."""

from __future__ import annotations

from seeact_offline.agents.declared import gui_model

SMART_28, SMART_32 = "smart(28, 3136, 12845056)", "smart(32, 4096, 16777216)"
QWEN_3_5 = gui_model(
    "qwen3.5", source="QwenLM/Qwen3.8#125, vllm-project/vllm#42021, trycua/cua loops/qwen35.py", frame="1000", resize=SMART_32,
    notation="xml", history_steps=4,
)  # fmt: skip
UITARS_2 = gui_model("uitars-2", source="trycua/cua loops/uitars2.py", frame="1000", resize=SMART_28, notation="seed")
SEED_VL = gui_model("seed1.5-vl", source="trycua/cua loops/uitars.py", frame="1000", resize=SMART_28, notation="python")
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
AGENTCPM = gui_model("agentcpm-gui", source="OpenBMB/AgentCPM-GUI eval", frame="1000", notation="keys")
