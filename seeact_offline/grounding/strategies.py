"""The grounding strategies by name, and those that people add from outside the package.

A new one here is a module that declares a `Strategy`, and a line in `STRATEGIES`. One outside is a `Strategy` in any
file (`FILE.py:NAME`), or an entry point of the group `seeact_offline.groundings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from seeact_offline.files.extensions import Doors, entry_point_names, load_named
from seeact_offline.grounding.conversation import NOTES
from seeact_offline.grounding.strategy import HasStrategy, Option, Strategy
from seeact_offline.prompting import PromptPack, load_pack
from seeact_offline.records import InputError

UNGROUNDED = "ungrounded"
"""Names the strategy that asks for no element; users ask for it by an option of its own."""
STRATEGIES = Doors(
    {
        name: f"seeact_offline.grounding.{name}:STRATEGY"
        for name in ("choice", "annotation", "attributes", "pixel", "mindact", "oracle", UNGROUNDED)
    }
)
"""SeeAct's strategies. Agents bring theirs."""
_ROOM_OF_AGENTS = Doors({"agents": "seeact_offline.agents:AGENTS"})
ENTRY_POINTS = "seeact_offline.groundings"
"""Names the group of entry points by which installed packages add strategies."""

ADDED: dict[str, Strategy] = {}
"""Strategies from outside the package, by what named them; their options and notes are known once they are loaded."""


def find_strategy(spec: str) -> Strategy:
    """A strategy or an agent by its name here, by `FILE.py:NAME`, or by the name of an
    entry point. Raises InputError."""
    if spec in STRATEGIES:
        strategy: Strategy = STRATEGIES[spec]
        return strategy
    if spec in _agents():
        return _strategy_of_agent(spec)
    extension = load_named(spec, ENTRY_POINTS, "grounding")
    if extension is None:
        raise InputError(
            "grounding",
            f"one of {', '.join([*groundings(), *entry_point_names(ENTRY_POINTS)])}, or FILE.py:NAME",
            repr(spec),
        )
    value = extension.value.as_strategy() if isinstance(extension.value, HasStrategy) else extension.value
    if not isinstance(value, Strategy):
        raise InputError("grounding", f"a Strategy or an Agent in {spec}", f"a {type(value).__name__}")
    ADDED[spec] = replace(value, label=extension.name, digest=extension.digest)
    return ADDED[spec]


def _agents() -> Mapping[str, HasStrategy]:
    """The agents by name, which load when they are looked up; empty where their room was deleted."""
    agents: Mapping[str, HasStrategy] = _ROOM_OF_AGENTS.get("agents", {})
    return agents


@cache
def _strategy_of_agent(name: str) -> Strategy:
    return _agents()[name].as_strategy()


def groundings() -> tuple[str, ...]:
    """Names of the strategies of this package that ask for an element."""
    return tuple(name for name in STRATEGIES if name != UNGROUNDED)


def agents() -> tuple[str, ...]:
    """Names of the agents of this package that can be asked alone."""
    return ("seeact", *(name for name in _agents() if name != "uground-grounder"))


def open_pack(
    name_or_dir: str | Path, spec: str | Strategy, *, turns: Literal[1, 2] = 2, image: bool = True, variant: str = ""
) -> PromptPack:
    """The templates of a strategy (`find_strategy`) in a shipped pack or a folder. Raises PromptError."""
    strategy = find_strategy(spec) if isinstance(spec, str) else spec
    return load_pack(
        name_or_dir,
        strategy.name,
        strategy.turn2,
        turn1=strategy.turn1,
        lenders=lambda: [name for name, other in STRATEGIES.items() if other.turn2 is not None],
        turns=turns,
        image=image,
        variant=variant,
        shared=strategy.shares_prompts,
        own=strategy.prompt,
    )


def own_options(strategies: Iterable[Strategy] | None = None) -> dict[str, tuple[Option, tuple[str, ...]]]:
    """Every option that not all strategies have, and the names of the strategies that have it.

    `strategies`: those to look at; None: all, which loads them, for help and errors.
    """
    options: dict[str, tuple[Option, tuple[str, ...]]] = {}
    if strategies is None:
        strategies = [*STRATEGIES.values(), *map(_strategy_of_agent, _agents()), *ADDED.values()]
    for strategy in strategies:
        for option in strategy.options:
            _, owners = options.get(option.name, (option, ()))
            options[option.name] = option, (*owners, strategy.name)
    return options


def notes(grounding: str) -> dict[str, str]:
    """Everything that a strategy counts beside failures, and what each count means. `grounding`: its name in results,
    which may be of one that is not here."""
    meanings = dict(NOTES)
    if grounding in STRATEGIES or grounding in _agents():
        meanings |= find_strategy(grounding).notes
    for strategy in ADDED.values():
        meanings |= strategy.notes
    return meanings
