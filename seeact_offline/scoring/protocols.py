"""The scoring protocols by name. To add one, write its rules here or in a module of its own, and add a line to PROTOCOLS."""

from __future__ import annotations

from dataclasses import replace

from seeact_offline.records import InputError
from seeact_offline.scoring.rules import (
    Protocol,
    any_positive,
    as_written,
    drops_value_of_click,
    keeps_value_of_click,
    mean_over_tasks,
    scored_as_answered,
    scores_nothing,
)

__all__ = ["PROTOCOLS", "Protocol", "find_protocol"]

SEEACT = Protocol(
    "seeact",
    element=any_positive,
    value_of_click=drops_value_of_click,
    text=as_written,
    positive_not_ranked=scored_as_answered,
    no_positive=scored_as_answered,
    average=mean_over_tasks,
)
MINDACT = Protocol(
    "mindact",
    element=any_positive,
    value_of_click=keeps_value_of_click,
    text=as_written,
    positive_not_ranked=scores_nothing,
    no_positive=scores_nothing,
    average=mean_over_tasks,
)
PROTOCOLS: dict[str, Protocol] = {
    SEEACT.name: SEEACT,
    MINDACT.name: MINDACT,
}


def find_protocol(name: str, *, grounded: bool = True) -> Protocol:
    """The protocol of that name; `grounded` is False for a run that asks for no element. Raises InputError listing the
    names."""
    if name not in PROTOCOLS:
        raise InputError("protocol", f"one of {', '.join(PROTOCOLS)}", name)
    return PROTOCOLS[name] if grounded else _without_element(PROTOCOLS[name])


def _without_element(protocol: Protocol) -> Protocol:
    """The same protocol for a run that asks for no element, so that a missing one costs nothing."""
    return replace(protocol, element=None, positive_not_ranked=scored_as_answered, no_positive=scored_as_answered)
