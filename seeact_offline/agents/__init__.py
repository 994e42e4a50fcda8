"""Agents: how today's GUI models are shown a page, and how their replies are read. One module a family.

An agent is a record (`Agent`); a new one is one file, inside the package or outside it. The names below that agents are made of load on
first use, so that a run without an agent loads none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seeact_offline.files.extensions import Doors

if TYPE_CHECKING:
    from seeact_offline.agents.acts import ENDINGS, Act, Answer, Fold, Unreadable
    from seeact_offline.agents.agent_record import Agent, View

_GUI_MODELS = {
    "qwen2.5-vl": "qwen:QWEN_2_5_VL",
    "qwen3-vl": "qwen:QWEN_3_VL",
    "uground": "uground_agent:UGROUND",
    "uground-blind": "uground_agent:UGROUND_BLIND",
    "seeact-planner": "uground_agent:SEEACT_PLANNER",
    "uground-grounder": "uground_agent:UGROUND_GROUNDER",
    "uitars": "uitars:UITARS",
    "uitars-1.5": "uitars:UITARS_1_5",
    "aguvis": "pyautogui:AGUVIS",
    "opencua": "pyautogui:OPENCUA",
    "showui": "literals:SHOWUI",
    "seeclick": "literals:SEECLICK",
    "osatlas": "point_verbs:OSATLAS",
    "holo1": "point_verbs:HOLO1",
    "holo1.5": "point_verbs:HOLO1_5",
    "screensuite": "point_verbs:SCREENSUITE",
    "anthropic": "qwen:ANTHROPIC",
    "openai": "qwen:OPENAI",
    "gemini": "qwen:GEMINI",
}
_WEB_AGENTS = ("webvoyager", "webvoyager-text", "visualwebarena", "openwebvoyager")

GUI_MODELS = Doors({name: f"seeact_offline.agents.{place}" for name, place in _GUI_MODELS.items()})
"""Agents that name places, by name, in the order in which docs and help list them; each loads when it is looked up."""
AGENTS = Doors(
    GUI_MODELS.data
    | {name: f"seeact_offline.web_agents.systems:{name.replace('-', '_').upper()}" for name in _WEB_AGENTS}
)
"""Every agent by its name; the web agents, which name labels of what they are shown, come last."""

__all__ = ["AGENTS", "ENDINGS", "GUI_MODELS", "Act", "Agent", "Answer", "Fold", "Unreadable", "View"]

_MODULES = dict.fromkeys(("ENDINGS", "Act", "Answer", "Fold", "Unreadable"), "acts") | dict.fromkeys(
    ("Agent", "View"), "agent_record"
)


def __getattr__(name: str) -> Any:
    """Fetches a public name from its module. Raises AttributeError for any other."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
