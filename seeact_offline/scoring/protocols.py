"""The scoring protocols by name. To add one, write its rules here or in a module of its own, and add a line to
PROTOCOLS.

One from outside the package is a `Protocol` in any file, named as `FILE.py:NAME` or by an entry point of the group
`seeact_offline.protocols`::

    STRICT = replace(PROTOCOLS["seeact"], name="strict", success=rules.same_text)

docs/protocols.md names the source of every rule, and what is ours where a published evaluator has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from seeact_offline.files.extensions import entry_point_names, load_named
from seeact_offline.records import InputError
from seeact_offline.scoring import rules
from seeact_offline.scoring.rules import Protocol, scored_as_answered

__all__ = ["PROTOCOLS", "Protocol", "find_protocol", "headline", "known_protocols", "recorded_protocol"]

ENTRY_POINTS = "seeact_offline.protocols"
"""The entry points of protocols."""

SEEACT = Protocol("seeact")
MINDACT = Protocol(
    "mindact",
    element=rules.any_positive_ranked,
    right_operation=rules.as_mindact_writes_it,
    value_of_click=rules.keeps_value_of_click,
    no_pick=rules.scores_nothing,
    positive_not_ranked=rules.scores_nothing,
    no_positive=rules.scores_nothing,
)
UGROUND = Protocol(
    "uground",
    element=rules.point_in_any_box,
    value_as_said=rules.none_is_no_value,
    value_of_click=rules.keeps_value_of_click,
    text=rules.lower_without_punctuation,
    length=rules.actions_of_the_task,
)
SEECLICK = Protocol(
    "seeclick",
    element=rules.point_in_target_box,
    right_operation=rules.by_recorded_name_between_quotes,
    text=rules.op_as_number,
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
    unknown_op=rules.scores_no_operation,
    quoted_value=scored_as_answered,
    groups=rules.all_steps,
    groups_of_f1=rules.by_op,
    headline=rules.macro,
    unknowns={"right_operation": rules.name_of_element_unknown},
)
UIPRO = replace(
    SEECLICK,
    name="uipro",
    text=rules.without_articles,
    f1=rules.of_repeated_words,
    missing_value=scored_as_answered,
    no_place=scored_as_answered,
)
SYNAPSE = Protocol(
    "synapse",
    element=rules.first_positive,
    text=rules.known_without_punctuation,
    positive_not_ranked=rules.scores_nothing,
    no_positive=rules.scores_nothing,
    success=rules.same_text,
)
INSPECT_EVALS = Protocol(
    "inspect-evals",
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
SCREENSUITE = Protocol(
    "screensuite",
    element=rules.point_in_first_box,
    text=rules.value_in_lower_case,
    f1=rules.same_typed_text,
    no_box=rules.left_out,
    no_positive=rules.left_out,
    episode=rules.until_a_bad_page,
    entries_of_f1=rules.click_then_text,
    headline=rules.micro,
    headline_of_f1=rules.micro,
)
PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (SEEACT, MINDACT, UGROUND, SEECLICK, SHOWUI, UIPRO, SYNAPSE, INSPECT_EVALS, SCREENSUITE)
}


def known_protocols() -> list[str]:
    """The names of this package's protocols and of those that installed packages add."""
    return [*PROTOCOLS, *entry_point_names(ENTRY_POINTS)]


def find_protocol(name: str, *, grounded: bool = True) -> Protocol:
    """The protocol that a user names, also as `FILE.py:NAME`, whose code is then run. Raises InputError.

    `grounded` is False for a run that asks for no element.

    Protocols differ in the average that they quote, too:

    >>> [find_protocol(name).average_of("element_accuracy") for name in ("seeact", "seeclick")]
    ['macro', 'micro']
    """
    protocol = PROTOCOLS.get(name)
    if protocol is None:
        own = load_named(name, ENTRY_POINTS, "protocol")
        if own is None:
            raise InputError("protocol", f"one of {', '.join(known_protocols())}, or FILE.py:NAME", name)
        if not isinstance(own.value, Protocol):
            raise InputError("protocol", "a seeact_offline.scoring.rules.Protocol", f"{own.value!r:.80} of {name}")
        protocol = replace(own.value, name=own.name, code=own.digest)
    return protocol if grounded else _without_element(protocol)


def recorded_protocol(name: str, *, grounded: bool = True) -> Protocol:
    """The protocol that a file of a run names. Loads no other code than installed packages. Raises InputError."""
    if name not in known_protocols():
        raise InputError("protocol", f"one of {', '.join(known_protocols())}, or the run's own named again", name)
    return find_protocol(name, grounded=grounded)


def headline(protocol: str, metric: str, figure: Mapping[str, Any]) -> dict[str, Any]:
    """The quoted average of a figure of `results.json`: its name (`macro` or `micro`), its `value`, `ci95` and `se`.

    The last two are None where they are not known. A protocol from outside the package has its average
    noted in the figure (`quoted`); any other unknown one has the macro average.
    """
    average = figure.get("quoted") or PROTOCOLS.get(protocol, SEEACT).average_of(metric)
    prefix = "" if average == "macro" else "micro_"
    spread = {name: figure.get(f"{prefix}{name}") for name in ("ci95", "se")}
    return {"average": average, "value": figure[average], **spread}


def _without_element(protocol: Protocol) -> Protocol:
    """The same protocol for a run that asks for no element, so that a missing one costs nothing."""
    names = "no_place", "no_pick", "positive_not_ranked", "no_box", "no_positive"
    harmless: dict[str, Any] = dict.fromkeys(names, scored_as_answered)
    return replace(
        protocol,
        element=None,
        **harmless,
        episode=rules.all_count,
        entries_of_f1=rules.one_entry,
        unknowns={name: applies for name, applies in protocol.unknowns.items() if name != "element"},
    )
