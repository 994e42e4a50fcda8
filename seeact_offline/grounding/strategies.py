"""The grounding strategies by name, and those that people add from outside the package.

A new one here is a module that declares a `Strategy`, and a line in `STRATEGIES`. One outside is a `Strategy` in any file
(`FILE.py:NAME`), or an entry point of the group `seeact_offline.groundings`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from seeact_offline.agents import Agent
from seeact_offline.files.extensions import entry_point_names, load_named
from seeact_offline.grounding import annotation, attributes, choice, mindact, oracle, pixel, ungrounded
from seeact_offline.grounding import gui_agent as agent
from seeact_offline.grounding.conversation import NOTES
from seeact_offline.grounding.strategy import Option, Strategy
from seeact_offline.prompting import PromptPack, load_pack
from seeact_offline.records import InputError
from seeact_offline.web_agents import web_loop as web_agent

STRATEGIES: dict[str, Strategy] = {
    "choice": choice.STRATEGY,
    "annotation": annotation.STRATEGY,
    "attributes": attributes.STRATEGY,
    "pixel": pixel.STRATEGY,
    "mindact": mindact.STRATEGY,
    "oracle": oracle.STRATEGY,
    "ungrounded": ungrounded.STRATEGY,
}
AGENTS: dict[str, Strategy] = {**agent.STRATEGIES, **web_agent.STRATEGIES}
"""The agents, which bring what they are asked with."""
UNGROUNDED = ungrounded.STRATEGY.name
"""Names the strategy that asks for no element; users ask for it by an option of its own."""
ENTRY_POINTS = "seeact_offline.groundings"
"""Names the group of entry points by which installed packages add strategies."""

ADDED: dict[str, Strategy] = {}
"""Strategies from outside the package, by what named them; their options and notes are known once they are loaded."""


def find_strategy(spec: str) -> Strategy:
    """A strategy or an agent by its name here, by `FILE.py:NAME`, or by the name of an entry point. Raises InputError."""
    if spec in STRATEGIES or spec in AGENTS:
        return STRATEGIES.get(spec) or AGENTS[spec]
    extension = load_named(spec, ENTRY_POINTS, "grounding")
    if extension is None:
        raise InputError(
            "grounding",
            f"one of {', '.join([*groundings(), *entry_point_names(ENTRY_POINTS)])}, or FILE.py:NAME",
            repr(spec),
        )
    found = agent.strategy_of(extension.value) if isinstance(extension.value, Agent) else extension.value
    if not isinstance(found, Strategy):
        raise InputError("grounding", f"a Strategy or an Agent in {spec}", f"a {type(found).__name__}")
    ADDED[spec] = replace(found, label=extension.name, digest=extension.digest)
    return ADDED[spec]


def groundings() -> tuple[str, ...]:
    """Names of the strategies of this package that ask for an element."""
    return tuple(name for name in STRATEGIES if name != UNGROUNDED)


def agents() -> tuple[str, ...]:
    """Names of the agents of this package that can be asked alone."""
    return ("seeact", *(name for name in AGENTS if name != "uground-grounder"))


def open_pack(
    name_or_dir: str | Path, spec: str, *, turns: Literal[1, 2] = 2, image: bool = True, variant: str = ""
) -> PromptPack:
    """The templates of a strategy (`find_strategy`) in a shipped pack or a folder. Raises PromptError."""
    strategy = find_strategy(spec)
    return load_pack(
        name_or_dir,
        strategy.name,
        strategy.turn2,
        turn1=strategy.turn1,
        lenders=[name for name, other in STRATEGIES.items() if other.turn2 is not None],
        turns=turns,
        image=image,
        variant=variant,
        shared=strategy.shares_prompts,
    )


def own_options() -> dict[str, tuple[Option, tuple[str, ...]]]:
    """Every option that not all strategies have, and the names of the strategies that have it."""
    found: dict[str, tuple[Option, tuple[str, ...]]] = {}
    for strategy in _all():
        for option in strategy.options:
            _, owners = found.get(option.name, (option, ()))
            found[option.name] = option, (*owners, strategy.name)
    return found


def notes() -> dict[str, str]:
    """Everything that strategies count beside failures, and what each count means."""
    meanings = dict(NOTES)
    for strategy in _all():
        meanings |= strategy.notes
    return meanings


def _all() -> list[Strategy]:
    return [*STRATEGIES.values(), *AGENTS.values(), *ADDED.values()]
