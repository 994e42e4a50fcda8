"""Named sets of scoring rules. Variation is data: one line a rule (PROTOCOLS: metrics and scoring profiles)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from seeact_offline.records import InputError


@dataclass(frozen=True, slots=True)
class Protocol:
    """What one published evaluator does where evaluators differ."""

    name: str
    drops_value_of_click: bool
    """A CLICK is compared without its value."""
    needs_positive_in_top_k: bool
    """A step whose positives are not ranked under k (or that has none) scores 0 on every metric; where nothing is
    ranked, only one that has none."""
    scores_elements: bool = True
    # False for runs that ask for no element: what needs one is not applicable


PROTOCOLS = {
    p.name: p
    for p in (
        Protocol("seeact", drops_value_of_click=True, needs_positive_in_top_k=False),
        Protocol("mindact", drops_value_of_click=False, needs_positive_in_top_k=True),
    )
}


def find_protocol(name: str, *, grounded: bool = True) -> Protocol:
    """The protocol of that name; `grounded` is False for a run that asks for no element. Raises InputError naming those
    that exist."""
    if name not in PROTOCOLS:
        raise InputError(f"--protocol: expected one of {', '.join(PROTOCOLS)}, got {name}")
    return PROTOCOLS[name] if grounded else replace(PROTOCOLS[name], scores_elements=False)
