"""Agents: how today's GUI models are shown a page, and how their replies are read. One module a family.

An agent is a record (`Agent`); a new one is one file, inside the package or outside it. The names below that agents are made of load on
first use, so that a run without an agent loads none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seeact_offline.files.extensions import Doors, load_named
from seeact_offline.records import InputError

if TYPE_CHECKING:
    from seeact_offline.agents.acts import ENDINGS, Act, Answer, Fold, Unreadable
    from seeact_offline.agents.agent_record import Agent, View
    from seeact_offline.agents.declared import gui_model

_GUI_MODELS = {
    "qwen2.5-vl": "qwen:QWEN_2_5_VL", "qwen3-vl": "qwen:QWEN_3_VL", "uground": "uground_agent:UGROUND",
    "uground-blind": "uground_agent:UGROUND_BLIND", "seeact-planner": "uground_agent:SEEACT_PLANNER",
    "uground-grounder": "uground_agent:UGROUND_GROUNDER", "uitars": "uitars:UITARS",
    "uitars-1.5": "uitars:UITARS_1_5", "aguvis": "pyautogui:AGUVIS", "opencua": "pyautogui:OPENCUA",
    "showui": "literals:SHOWUI", "seeclick": "literals:SEECLICK", "osatlas": "point_verbs:OSATLAS",
    "holo1": "point_verbs:HOLO1", "holo1.5": "point_verbs:HOLO1_5", "screensuite": "point_verbs:SCREENSUITE",
    "anthropic": "qwen:ANTHROPIC", "openai": "qwen:OPENAI", "gemini": "qwen:GEMINI", "qwen3.5": "recent:QWEN_3_5",
    "uitars-2": "recent:UITARS_2", "seed1.5-vl": "recent:SEED_VL", "holo2": "recent:HOLO2", "fara": "recent:FARA",
    "fara-1.5": "recent:FARA_1_5",
    "mai-ui": "recent:MAI_UI", "glm-4.5v": "recent:GLM_4_5V", "ui-venus": "recent:UI_VENUS",
    "gui-owl": "recent:GUI_OWL", "evocua": "recent:EVOCUA", "evocua-s1": "recent:EVOCUA_S1",
    "kimi-vl": "recent:KIMI_VL", "cogagent": "recent:COGAGENT", "gelab": "recent:GELAB",
    "agentcpm-gui": "recent:AGENTCPM",
}  # fmt: skip
_GROUNDERS = {
    "gta1": "grounders:GTA1", "gelato": "grounders:GELATO", "ui-ins": "grounders:UI_INS",
    "infigui-g1": "grounders:INFIGUI_G1", "molmo": "grounders:MOLMO", "molmo2": "grounders:MOLMO_2",
    "internvl": "grounders:INTERNVL", "jedi": "grounders:JEDI", "gemini-point": "grounders:GEMINI_POINT",
    "nova-act": "grounders:NOVA_ACT",
}  # fmt: skip
_WEB_AGENTS = ("webvoyager", "webvoyager-text", "visualwebarena", "openwebvoyager")

GUI_MODELS = Doors({name: f"seeact_offline.agents.{place}" for name, place in _GUI_MODELS.items()})
"""Agents that name places, by name, in the order in which docs and help list them; each loads when it is looked up."""
GROUNDERS = Doors({name: f"seeact_offline.agents.{place}" for name, place in _GROUNDERS.items()})
"""Agents that answer a description with a place, beside `uground-grounder`."""
AGENTS = Doors(
    GUI_MODELS.data
    | {name: f"seeact_offline.web_agents.systems:{name.replace('-', '_').upper()}" for name in _WEB_AGENTS}
)
"""Every agent by its name; the web agents, which name labels of what they are shown, come last."""

__all__ = [
    "AGENTS",
    "ENDINGS",
    "GROUNDERS",
    "GUI_MODELS",
    "Act",
    "Agent",
    "Answer",
    "Fold",
    "Unreadable",
    "View",
    "find_agent",
    "gui_model",
]

_MODULES = dict.fromkeys(("ENDINGS", "Act", "Answer", "Fold", "Unreadable"), "acts") | dict.fromkeys(
    ("Agent", "View"), "agent_record"
)
_MODULES["gui_model"] = "declared"
ENTRY_POINTS = "seeact_offline.groundings"
"""The group of entry points by which installed packages add agents; strategies of grounding share it."""


def find_agent(spec: str, argument: str = "agent") -> tuple[Agent, dict[str, str]]:
    """An agent by its name here, by `FRAME:NOTATION`, such as `px/none:point`, by `FILE.py:NAME` or the name of an entry point, and what identifies
    its code where that is not ours. Raises InputError about `argument`."""
    from seeact_offline.agents.agent_record import Agent

    for known in (GUI_MODELS, GROUNDERS):
        if spec in known:
            return known[spec], {}
    from seeact_offline.agents.grounders import framed_agent

    if (made := framed_agent(spec, argument)) is not None:
        return made, {}
    extension = load_named(spec, ENTRY_POINTS, argument)
    if extension is None:
        names = ", ".join([*GUI_MODELS, *GROUNDERS])
        raise InputError(argument, f"one of {names}, FRAME:NOTATION, or FILE.py:NAME", repr(spec))
    if not isinstance(extension.value, Agent):
        raise InputError(argument, f"an Agent in {spec}", f"a {type(extension.value).__name__}")
    return extension.value, {"name": extension.name, "digest": extension.digest}


def __getattr__(name: str) -> Any:
    """Fetches a public name from its module. Raises AttributeError for any other."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
