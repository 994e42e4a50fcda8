"""Agents: today's GUI models, with the views of a page that they are shown and the languages that they answer in.

An agent is a record (`Agent`); a new one is one file, inside the package or outside it. The names below that agents are
made of load on first use, so that a run without an agent loads none of it.
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

_GUI_MODELS = (
    "qwen2.5-vl qwen3-vl uground uground-blind seeact-planner uground-grounder uitars uitars-1.5 aguvis opencua "
    "showui seeclick osatlas holo1 holo1.5 screensuite anthropic openai gemini qwen3.5 uitars-2 seed1.5-vl "
    "holo2 fara fara-1.5 mai-ui glm-4.5v ui-venus gui-owl evocua evocua-s1 kimi-vl cogagent gelab agentcpm-gui"
)
_GROUNDERS = "gta1 gelato ui-ins infigui-g1 molmo molmo2 internvl jedi gemini-point nova-act"
_WEB_AGENTS = "webvoyager webvoyager-text visualwebarena openwebvoyager"


def _doors(module: str, names: str) -> dict[str, str]:
    """Names -> the constants of a module that are called like them."""
    return {
        name: f"seeact_offline.{module}:{name.upper().replace('-', '_').replace('.', '_')}" for name in names.split()
    }


GUI_MODELS = Doors(_doors("agents.models", _GUI_MODELS))
"""Agents that name places, by name, in the order in which docs and help list them; each loads when it is looked up."""
GROUNDERS = Doors(_doors("agents.models", _GROUNDERS))
"""Agents that answer a description with a place, beside `uground-grounder`."""
AGENTS = Doors(GUI_MODELS.data | _doors("web_agents.systems", _WEB_AGENTS))
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
    """An agent by its name here, by `FRAME:NOTATION`, such as `px/none:point`, by `FILE.py:NAME` or the name of an
    entry point, and what identifies its code where that is not ours. Raises InputError about `argument`.

    >>> find_agent("showui")[0].protocol, find_agent("1000:point_2d")[0].frame.scale
    ('showui', 1000)
    """
    from seeact_offline.agents.agent_record import Agent

    for doors in (GUI_MODELS, GROUNDERS):
        if spec in doors:
            return doors[spec], {}
    from seeact_offline.agents.declared import framed_agent

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
