"""The web agents WebVoyager, VisualWebArena and OpenWebVoyager as agents: their windows and languages. They name
labels, and no places."""

from __future__ import annotations

from functools import partial

from seeact_offline.agents.acts import Act
from seeact_offline.agents.agent_record import Agent, View
from seeact_offline.agents.screens import Size
from seeact_offline.web_agents.web_actions import GRAMMARS, Grammar

THOUGHT = "This is the next step."
"""Stands for the thoughts that a recording lacks, and for those of the ideal replies."""
WIDEST = 100_000
"""Wider than any page: WebVoyager's and OpenWebVoyager's windows are as wide as the page was recorded."""
STRATEGY = "seeact_offline.web_agents.web_loop:strategy_of"
_VOYAGER = "MinorJerry/WebVoyager 5a78967"


def _write(grammar: Grammar, op: str, value: str, place: object) -> str:
    """A choice in a list is typed, which is read as a choice again."""
    return grammar.reply(Act("click" if op == "CLICK" else "type", str(place), value), THOUGHT)


def _agent(name: str, source: str, size: Size, step: int) -> Agent:
    grammar = GRAMMARS[name]
    view = View("window", size, step)
    scroll = grammar.reply(Act("scroll", None, "down"), THOUGHT)
    return Agent(
        name,
        source,
        grammar.read,
        grammar.read_strictly,
        partial(_write, grammar),
        view=view,
        scroll=scroll,
        act_writer=partial(grammar.reply, thought=THOUGHT),
        strategy=STRATEGY,
        reads_others=False,
    )


WEBVOYAGER = _agent("webvoyager", _VOYAGER, (WIDEST, 768), 512)
WEBVOYAGER_TEXT = _agent("webvoyager-text", _VOYAGER, (WIDEST, 768), 512)
VISUALWEBARENA = _agent("visualwebarena", "web-arena-x/visualwebarena 89f5af2", (1280, 2048), 2048)
OPENWEBVOYAGER = _agent("openwebvoyager", "MinorJerry/OpenWebVoyager e907cef", (WIDEST, 768), 512)
