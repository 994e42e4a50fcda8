"""The scoring protocols by name. To add one, write its rules here or in a module of its own, and add a line to PROTOCOLS.

Sources, and our choice where a published evaluator has no rule: docs/protocols.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from seeact_offline.records import InputError
from seeact_offline.scoring import rules
from seeact_offline.scoring.rules import Protocol, scored_as_answered

__all__ = ["PROTOCOLS", "Protocol", "find_protocol", "headline"]

SEEACT = Protocol(
    "seeact",
    element=rules.any_positive,
    right_operation=rules.as_annotated,
    value_as_said=rules.as_said,
    value_of_click=rules.drops_value_of_click,
    text=rules.as_written,
    f1=rules.of_words,
    unknown_op=scored_as_answered,
    missing_value=scored_as_answered,
    no_place=scored_as_answered,
    no_pick=scored_as_answered,
    positive_not_ranked=scored_as_answered,
    no_box=scored_as_answered,
    no_positive=scored_as_answered,
    quoted_value=scored_as_answered,
    success=rules.same_tokens,
    length=rules.rows_of_the_task,
    groups=rules.by_task,
    groups_of_f1=rules.by_task,
    headline=rules.macro,
    headline_of_f1=rules.macro,
)
MINDACT = replace(
    SEEACT,
    name="mindact",
    element=rules.any_positive_ranked,
    right_operation=rules.as_mindact_writes_it,
    value_of_click=rules.keeps_value_of_click,
    no_pick=rules.scores_nothing,
    positive_not_ranked=rules.scores_nothing,
    no_positive=rules.scores_nothing,
)
UGROUND = replace(
    SEEACT,
    name="uground",
    element=rules.point_in_any_box,
    value_as_said=rules.none_is_no_value,
    value_of_click=rules.keeps_value_of_click,
    text=rules.lower_without_punctuation,
    length=rules.actions_of_the_task,
)
SEECLICK = replace(
    SEEACT,
    name="seeclick",
    element=rules.point_in_target_box,
    right_operation=rules.by_recorded_name,
    text=rules.op_as_number,
    unknown_op=rules.scores_no_operation,
    missing_value=rules.scores_no_operation,
    no_place=rules.scores_nothing,
    no_box=rules.left_out,
    no_positive=rules.left_out,
    quoted_value=rules.left_out,
    groups_of_f1=rules.by_recorded_op,
    headline=rules.micro,
)
SHOWUI = replace(
    SEECLICK,
    name="showui",
    right_operation=rules.element_for_select,
    quoted_value=scored_as_answered,
    groups=rules.all_steps,
    groups_of_f1=rules.by_op,
    headline=rules.macro,
    unknowns={"right_operation": rules.name_of_element_unknown},
)
SYNAPSE = replace(
    SEEACT,
    name="synapse",
    element=rules.first_positive,
    text=rules.known_without_punctuation,
    positive_not_ranked=rules.scores_nothing,
    no_positive=rules.scores_nothing,
    success=rules.same_text,
)
INSPECT_EVALS = replace(
    SEEACT,
    name="inspect-evals",
    element=rules.last_of_five,
    right_operation=rules.blank_is_none,
    value_of_click=rules.keeps_value_of_click,
    text=rules.without_punctuation,
    f1=rules.by_right_operation,
    no_pick=rules.right_with_its_element,
    no_positive=rules.right_with_its_element,
    headline=rules.micro,
    headline_of_f1=rules.micro,
    unknowns={"element": rules.order_of_positives_unknown},
)
PROTOCOLS: dict[str, Protocol] = {
    one.name: one for one in (SEEACT, MINDACT, UGROUND, SEECLICK, SHOWUI, SYNAPSE, INSPECT_EVALS)
}


def find_protocol(name: str, *, grounded: bool = True) -> Protocol:
    """The protocol of that name; `grounded` is False for a run that asks for no element. Raises InputError listing the
    names."""
    if name not in PROTOCOLS:
        raise InputError("protocol", f"one of {', '.join(PROTOCOLS)}", name)
    return PROTOCOLS[name] if grounded else _without_element(PROTOCOLS[name])


def headline(protocol: str, metric: str, figure: Mapping[str, Any]) -> dict[str, Any]:
    """What the protocol quotes of a figure of `results.json`: the `average` (`macro` or `micro`), its `value`, `ci95` and `se`.

    The last two are None where the results are from before they were kept. Of an unknown protocol it is the macro average.
    """
    average = PROTOCOLS.get(protocol, SEEACT).average_of(metric)
    prefix = "" if average == "macro" else "micro_"
    spread = {name: figure.get(f"{prefix}{name}") for name in ("ci95", "se")}
    return {"average": average, "value": figure[average], **spread}


def _without_element(protocol: Protocol) -> Protocol:
    """The same protocol for a run that asks for no element, so that a missing one costs nothing."""
    return replace(
        protocol,
        element=None,
        no_place=scored_as_answered,
        no_pick=scored_as_answered,
        positive_not_ranked=scored_as_answered,
        no_box=scored_as_answered,
        no_positive=scored_as_answered,
        unknowns={name: one for name, one in protocol.unknowns.items() if name != "element"},
    )
