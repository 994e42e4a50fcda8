"""The answers of a step's groups -> one decision. Knows no page, so that scoring can read it."""

from __future__ import annotations

from collections.abc import Sequence

from seeact_offline.grounding import Decision
from seeact_offline.records import MergeRule, Reply


def merge(replies: Sequence[Reply], rule: MergeRule, ranked: Sequence[str]) -> Decision:
    """One decision from the groups' replies.

    `first` takes the first group with a pick, `best-rank` the pick that the ranker puts highest, `final-round` the answer
    of the last question where there was one, `single` the only group. When nothing is picked the operation is that of the
    first group that names one, and the step's failure is the first reply that could not be read, if any.
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
