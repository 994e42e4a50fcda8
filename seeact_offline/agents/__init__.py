"""Agents: how today's GUI models are shown a page, and how their replies are read. One module a family.

An agent is a record (`Agent`); a new one is one file, inside the package or outside it.
"""

from __future__ import annotations

from seeact_offline.agents.acts import ENDINGS, Act, Answer, Fold, Unreadable
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.literals import SEECLICK, SHOWUI
from seeact_offline.agents.point_verbs import HOLO1, HOLO1_5, OSATLAS, SCREENSUITE
from seeact_offline.agents.pyautogui import AGUVIS, OPENCUA
from seeact_offline.agents.qwen import ANTHROPIC, GEMINI, OPENAI, QWEN_2_5_VL, QWEN_3_VL
from seeact_offline.agents.uground_agent import SEEACT_PLANNER, UGROUND, UGROUND_BLIND, UGROUND_GROUNDER
from seeact_offline.agents.uitars import UITARS, UITARS_1_5
from seeact_offline.web_agents.systems import OPENWEBVOYAGER, VISUALWEBARENA, WEBVOYAGER, WEBVOYAGER_TEXT

GUI_MODELS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        QWEN_2_5_VL, QWEN_3_VL, UGROUND, UGROUND_BLIND, SEEACT_PLANNER, UGROUND_GROUNDER, UITARS, UITARS_1_5, AGUVIS, OPENCUA, SHOWUI, SEECLICK, OSATLAS, HOLO1,
        HOLO1_5, SCREENSUITE, ANTHROPIC, OPENAI, GEMINI,
    )
}  # fmt: skip
"""Agents that name places, by name, in the order in which docs and help list them."""
AGENTS: dict[str, Agent] = GUI_MODELS | {
    agent.name: agent for agent in (WEBVOYAGER, WEBVOYAGER_TEXT, VISUALWEBARENA, OPENWEBVOYAGER)
}
"""Every agent by its name; the web agents, which name labels of what they are shown, come last."""

__all__ = ["AGENTS", "ENDINGS", "GUI_MODELS", "Act", "Agent", "Answer", "Fold", "Unreadable", "View"]
