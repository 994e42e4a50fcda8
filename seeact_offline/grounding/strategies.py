"""The grounding strategies by name. A new one is a module that declares a `Strategy`, and a line here."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from seeact_offline.grounding import annotation, attributes, choice, mindact, oracle, pixel, ungrounded
from seeact_offline.grounding.conversation import NOTES
from seeact_offline.grounding.strategy import Option, Strategy
from seeact_offline.prompting import PromptPack, load_pack

STRATEGIES: dict[str, Strategy] = {
    "choice": choice.STRATEGY,
    "annotation": annotation.STRATEGY,
    "attributes": attributes.STRATEGY,
    "pixel": pixel.STRATEGY,
    "mindact": mindact.STRATEGY,
    "oracle": oracle.STRATEGY,
    "ungrounded": ungrounded.STRATEGY,
}


def open_pack(
    name_or_dir: str | Path, strategy: str, *, turns: Literal[1, 2] = 2, image: bool = True, variant: str = ""
) -> PromptPack:
    """The templates of a strategy in a shipped pack or a folder. Raises PromptError."""
    declared = STRATEGIES[strategy]
    return load_pack(
        name_or_dir,
        strategy,
        declared.turn2,
        turn1=declared.turn1,
        lenders=[name for name, other in STRATEGIES.items() if other.turn2 is not None],
        turns=turns,
        image=image,
        variant=variant,
    )


def own_options() -> dict[str, tuple[Option, tuple[str, ...]]]:
    """Every option that not all strategies have, and the strategies that have it."""
    found: dict[str, tuple[Option, tuple[str, ...]]] = {}
    for name, strategy in STRATEGIES.items():
        for option in strategy.options:
            _, owners = found.get(option.name, (option, ()))
            found[option.name] = option, (*owners, name)
    return found


def notes() -> dict[str, str]:
    """What strategies count beside failures, and what each count means."""
    meanings = dict(NOTES)
    for strategy in STRATEGIES.values():
        meanings |= strategy.notes
    return meanings
