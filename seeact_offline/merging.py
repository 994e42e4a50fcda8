"""Cuts ranked candidates into groups, and merges the groups' replies into one decision. Knows no page and
no model: scoring uses it too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from seeact_offline.records import MergeRule, Reply, Stage

RELEASED_SIZE = 17
"""The group size with a rule of its own."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The element and operation that a step's replies add up to."""

    element_id: str | None
    op: str
    value: str
    failure: str | None = None
    """None, or why a part is missing."""
    detail: str = ""
    failed_in: Stage | None = None
    """The stage of an error that ended the step."""


def split_groups(ids: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Cuts at least one id into groups, as SeeAct's released code does.

    It has two rules. One is for 17: first 16, then 17 each, then the rest (50 become 16, 17, 17; 34 become 16, 17, 1).
    Any other size makes equal groups and drops a last group of a single element (41 by 20 become 20, 20).

    >>> [len(group) for group in split_groups([str(n) for n in range(50)], 17)]
    [16, 17, 17]
    >>> split_groups(["a", "b", "c"], 2)
    [('a', 'b')]
    """
    is_released = size == RELEASED_SIZE
    cuts = [0, *range(size - is_released, len(ids), size), len(ids)]
    groups = [tuple(ids[begin:end]) for begin, end in pairwise(cuts)]
    return groups if is_released or len(groups[-1]) > 1 else groups[:-1]


def merge(replies: Sequence[Reply], rule: MergeRule, ranked: Sequence[str]) -> Decision:
    """One decision from the groups' replies.

    `first` takes the first group with a pick, `best-rank` the pick that the ranker puts highest, `final-round` the
    answer of the last question where there was one, `single` the only group. When nothing is picked the operation is
    that of the first group that names one, and the step's failure is the first reply that could not be read, if any.

    >>> none = Reply(0, ("a", "b"), ("ELEMENT: C",), None, "CLICK", "")
    >>> pick = Reply(1, ("c", "d"), ("ELEMENT: B",), "d", "CLICK", "")
    >>> merge([none, pick], "first", ranked=["a", "b", "c", "d"]).element_id
    'd'
    """
    final = [r for r in replies if r.is_final_round]
    if rule == "final-round" and final:
        return decision(final[-1])
    asked = [r for r in replies if not r.is_final_round]
    picked = [r for r in asked if r.element_id is not None]
    if picked:
        place = {node: i for i, node in enumerate(ranked)}
        return decision(
            min(picked, key=lambda r: place.get(str(r.element_id), len(place))) if rule == "best-rank" else picked[0]
        )
    unread = next((r for r in asked if r.failure), None)
    named = next((r for r in asked if r.op), None)
    failure, detail = (unread.failure, unread.detail) if unread else (None, "")
    return Decision(None, named.op if named else "", named.value if named else "", failure, detail)


def decision(reply: Reply) -> Decision:
    """The decision of one reply, taken as the step's answer."""
    return Decision(reply.element_id, reply.op, reply.value, reply.failure, reply.detail)
