"""The predictions of a run read again from its stored replies: by the code that read them first, without a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from seeact_offline.grounding import Grounding
from seeact_offline.grounding.conversation import Question, build_reply
from seeact_offline.grounding.groups import GroupStrategy
from seeact_offline.merging import merge
from seeact_offline.ranking import Scores
from seeact_offline.records import (
    CallError,
    Completion,
    GroundingReply,
    Model,
    Prediction,
    RankedCandidate,
    Reply,
    Request,
    Step,
    Usage,
)
from seeact_offline.runs.ask import predict
from seeact_offline.runs.folder import prediction_line, read_prediction
from seeact_offline.runs.prepare import prepare

NOTES_OF_CALLS = frozenset({"reply_reused", "unknown_finish_reason"})
"""Notes on how replies came, which replies do not tell."""
GROUP_FIELDS = ("element_id", "op", "value", "failure")
"""Fields of a group that its last reply decides."""
PREDICTION_FIELDS = (
    "ranked", "groups", "element_id", "op", "value", "point", "failure", "detail", "ran", "reachable", "element_text", "notes", "stage",
)  # fmt: skip
"""Fields of a prediction that its replies and its page decide."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A field that is not what the replies say."""

    field: str
    """Its name, with the group where it is one's."""
    stored: Any
    read: Any


def reread_groups(prediction: Prediction, grounding: Grounding) -> list[Mismatch]:
    """Compares a prediction with its replies, without its page. `grounding`: a GroupStrategy; of others nothing is compared, as
    they look elements up on the page."""
    if not isinstance(grounding, GroupStrategy):
        return []
    found: list[Mismatch] = []
    again: list[Reply] = []
    for group in prediction.groups:
        meant = _read(group, grounding)
        found += [
            Mismatch(f"group {group.group}: {name}", getattr(group, name), getattr(meant, name))
            for name in GROUP_FIELDS
            if getattr(group, name) != getattr(meant, name)
        ]
        again.append(meant)
    if not prediction.ran:
        decided: Mapping[str, Any] = {"element_id": None, "op": "", "value": "", "failure": prediction.failure}
    else:
        merged = merge(again, grounding.merge_rule, prediction.ranked)
        decided = {name: getattr(merged, name) for name in GROUP_FIELDS}
    found += [
        Mismatch(name, getattr(prediction, name), one)
        for name, one in decided.items()
        if getattr(prediction, name) != one
    ]
    return found


def _read(group: Reply, grounding: GroupStrategy) -> Reply:
    """The group as its last reply says; as it is where the model declined, of which no reply tells."""
    if not group.replies or group.failure in CallError.ANSWERED:
        declined = GroundingReply(None, failure=group.failure)
        return build_reply(_question(group), group.replies, declined, group.detail)
    question = _question(group)
    return build_reply(question, group.replies, grounding.read(question)(group.replies[-1]))


def _question(group: Reply) -> Question:
    """Rebuilds as much of a group's question as readers use."""
    return Question(group.group, group.offered, "", (), (), is_final_round=group.is_final_round)


class StoredReplies(Model):
    """A model that answers a step with the replies that its prediction holds."""

    def __init__(self, prediction: Prediction) -> None:
        self._groups = {group.group: group for group in prediction.groups}

    async def complete(self, request: Request) -> Completion:
        """Raises CallError: as the model declined, or `no_recorded_reply`."""
        group = self._groups.get(request.group)
        if group is not None and request.turn <= len(group.replies):
            return Completion(group.replies[request.turn - 1], Usage(calls=1))
        if group is not None and group.failure in CallError.ANSWERED:
            raise CallError(group.failure, group.detail)
        raise CallError("no_recorded_reply", f"the run holds no reply of group {request.group}, turn {request.turn}")


async def reread(
    prediction: Prediction, step: Step, grounding: Grounding, scores: Scores | None, top_k: int
) -> list[Mismatch]:
    """Compares a prediction with its replies and its page. `scores`: the ranker's; None: the stored ranks are taken as they are."""
    ranked = tuple(RankedCandidate(node, 0.0, rank) for rank, node in enumerate(prediction.ranked))

    @cache
    def ready() -> Any:
        prepared = prepare(step, scores, top_k, grounding.form.image)
        return prepared if scores is not None else replace(prepared, ranked=ranked)

    again = read_prediction(prediction_line(await predict(step, ready, grounding, StoredReplies(prediction))))
    names = tuple(name for name in PREDICTION_FIELDS if name != "ranked" or scores is not None)
    if prediction.has_failed:
        # which call failed and why, replies do not tell
        names = tuple(name for name in names if name not in ("failure", "detail", "notes", "stage", "reachable"))
    found: list[Mismatch] = []
    for name in names:
        was, now = getattr(prediction, name), getattr(again, name)
        if name == "notes":
            was, now = ({key: n for key, n in some if key not in NOTES_OF_CALLS} for some in (was, now))
        if name == "groups" and was != now:
            found += _group_mismatches(was, now)
        elif was != now:
            found.append(Mismatch(name, was, now))
    return found


def _group_mismatches(was: Sequence[Reply], now: Sequence[Reply]) -> Iterator[Mismatch]:
    if len(was) != len(now):
        yield Mismatch("groups", len(was), len(now))
    for one, other in zip(was, now, strict=False):
        for name in Reply.__slots__:
            if getattr(one, name) != getattr(other, name):
                yield Mismatch(f"group {one.group}: {name}", getattr(one, name), getattr(other, name))
