"""Options of the grounding strategies."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from seeact_offline.grounding import MAX_SIDE
from seeact_offline.grounding.strategies import own_options
from seeact_offline.grounding.strategy import Option, Strategy
from seeact_offline.runs.config import BATCHINGS

MOST_NAMED = 4
"""Most strategies that the help of an option names; more are all agents, or nearly all."""


def add_arguments(asked: argparse._ActionsContainer, strategies: Sequence[Strategy] | None) -> None:
    """Adds the options of groundings; one that only some have is None unless given. `strategies`: those whose own are added; None: all."""
    asked.add_argument(
        "--turns", type=int, choices=(1, 2), default=2, help="1 sends both turns in one message (default: %(default)s)"
    )
    asked.add_argument("--no-image", action="store_true", help="send pruned HTML instead of the picture")
    add_picture_argument(asked)
    asked.add_argument(
        "--batching", choices=BATCHINGS, default=BATCHINGS[0],
        help="choice, annotation: ask turn 1 for every group, or once a step about the whole page (default: %(default)s)",
    )  # fmt: skip
    for option, owners in own_options(strategies).values():
        add_own(asked, option, ", ".join(owners) if len(owners) <= MOST_NAMED else "agents")
    asked.add_argument("--ungrounded", action="store_true", help="ask turn 1 only, and score its operation and value")


def add_own(asked: argparse._ActionsContainer, option: Option, owners: str) -> None:
    """Adds an option that only these strategies have; it is None unless given."""
    name, purpose = f"--{option.name.replace('_', '-')}", f"{owners}: {option.help}"
    if option.read is bool:
        action = asked.add_argument(name, action="store_true", default=None, help=purpose)
    elif option.choices:
        action = asked.add_argument(name, choices=option.choices, help=purpose)
    else:
        action = asked.add_argument(name, type=_reader(option), metavar=option.metavar, help=purpose)
    action.is_own = True  # type: ignore[attr-defined]


def _reader(option: Option) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return option.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def add_picture_argument(asked: argparse._ActionsContainer) -> None:
    asked.add_argument(
        "--max-image-side", type=_side, default=MAX_SIDE, metavar="N",
        help="longest side of a picture sent, in pixels; larger pictures are reduced (default: %(default)s)",
    )  # fmt: skip


def _side(text: str) -> int:
    side = int(text) if text.isdecimal() else 0
    if not 16 <= side <= 100_000:
        raise argparse.ArgumentTypeError(f"expected a whole number from 16 to 100000, got {text}")
    return side
