"""A run's questions built again, and its replies read again, by the code that did it first: without a model.

Nothing is shown that was not sent: the prompts must be those of the run's manifest, the package of the same version,
and the elements offered those that the run recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from seeact_offline import __version__
from seeact_offline.files.options import words_of
from seeact_offline.grounding import Grounding, Order, PreparedStep
from seeact_offline.grounding.conversation import PastQuestion, Question, build_reply
from seeact_offline.grounding.groups import GroupStrategy
from seeact_offline.grounding.strategies import STRATEGIES, UNGROUNDED, agents, find_strategy
from seeact_offline.merging import merge
from seeact_offline.ranking import Scores
from seeact_offline.records import (
    CallError,
    Completion,
    GroundingReply,
    InputError,
    Model,
    Prediction,
    RankedCandidate,
    Reply,
    Request,
    SeeActError,
    Step,
    Usage,
)
from seeact_offline.runs.ask import predict
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import prediction_line, read_prediction
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.strategy_opening import open_strategy

OPTIONS = tuple(name for name, words in words_of(EvalConfig).items() if words.decides_questions)
"""Settings that decide a run's questions, besides its grounding and the options of that one alone. The model is not one
of them: to look at a run must not load the code of a model."""


def open_grounding(manifest: Mapping[str, Any], captions: Path) -> Grounding:
    """The strategy of a run. `captions`: its file of those that were shown, which may not exist. Raises InputError
    where this program would ask other questions."""
    settings, identity = manifest.get("settings") or {}, manifest.get("identity") or {}
    if "imported" in identity:
        raise InputError("run", "one that was asked here", "one that was imported")
    version = (manifest.get("packages") or {}).get("seeact-offline")
    if version != __version__:
        raise InputError("run", f"one of version {__version__}", f"one of version {version or 'unknown'}")
    grounding = str(settings.get("grounding"))
    if grounding not in STRATEGIES and grounding not in agents():
        # a manifest may be from another person: to look at a run must not load code that it names
        raise InputError("run", "a grounding of this package", f"{grounding}")
    own = [option.name for option in find_strategy(grounding).options]
    given_options = {name: settings[name] for name in (*OPTIONS, *own) if settings.get(name) is not None}
    if str(given_options.get("cut_by", "")).startswith("hf:"):
        # a manifest may be from another person: to look at a run must not load a model's files
        raise InputError(
            "run", "observations that are cut without a local model's files", f"cut by {given_options['cut_by']}"
        )
    if given_options.pop("thoughts", "none") != "none":
        raise InputError(
            "run", "questions that no other step's replies are told in", f"thoughts {settings['thoughts']}"
        )
    # a run without captions of its own leaves no file of them
    if given_options.pop("captions", None) and captions.is_file():
        given_options["captions"] = captions
    chosen = {"ungrounded": True} if grounding == UNGROUNDED else {"grounding": grounding}
    if grounding in agents():
        chosen = {"agent": grounding}
    number = settings.get("shuffled")
    order = Order(int(settings.get("seed") or 0), int(number)) if number else None
    opened = open_strategy(EvalConfig().changed(**chosen, **given_options), order)
    ours = json.loads(json.dumps(dict(opened.identity)))
    other = sorted(name for name, value in ours.items() if name != "captions" and identity.get(name) != value)
    if other:
        raise InputError("run", "the prompts and options that there are now", f"others: {', '.join(other)}")
    return opened.grounding


def rebuild_questions(grounding: Grounding, prepared: PreparedStep, prediction: Prediction) -> dict[int, PastQuestion]:
    """Place in `prediction.groups` -> the question of that group. Those that cannot be rebuilt are left out.

    Raises StepError for a page that no question can be built from.
    """
    dialogue = grounding.past_questions(prepared, [group.replies for group in prediction.groups])
    if dialogue is not None:
        rebuilt = enumerate(dialogue)
        offered = [group.offered for group in prediction.groups]
        return {
            place: past_question for place, past_question in rebuilt if past_question.question.offered == offered[place]
        }
    first = {(question.index, question.offered): question for question in grounding.questions(prepared)}
    questions: dict[int, PastQuestion] = {}
    for place, group in enumerate(prediction.groups):
        question = first.get((group.group, group.offered))
        if question is None:
            question = _later_question(grounding, prepared, prediction.groups[:place], group)
        if question is not None:
            questions[place] = PastQuestion(question)
    return questions


def _later_question(
    grounding: Grounding, prepared: PreparedStep, before: tuple[Reply, ...], group: Reply
) -> Question | None:
    """A question that depends on answers: a final round, a later group of an elimination.
    None where it cannot be rebuilt."""
    picks = [reply.element_id for reply in before if reply.element_id is not None]
    try:
        if group.is_final_round:
            question = grounding.final_round(prepared, picks, group.group)
        else:
            question = grounding.question(prepared, group.offered, group.group)
    except (SeeActError, LookupError):
        return None
    return question if question is not None and question.offered == group.offered else None


# --- replies ---

NOTES_OF_CALLS = frozenset({"reply_reused", "unknown_finish_reason"})
"""Notes on how replies came, which replies do not tell."""
GROUP_FIELDS = ("element_id", "op", "value", "failure")
"""Fields of a group that its last reply decides."""
OF_CALLS = frozenset({"annotation_id", "action_uid", "usage", "calls", "captions", "failed_in"})
"""Fields of a prediction that its replies and its page do not decide."""
PREDICTION_FIELDS = (*(name for name in Prediction.__struct_fields__ if name not in OF_CALLS), "stage")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A field that is not what the replies say."""

    field: str
    """Its name, with the group where it is one's."""
    stored: Any
    read: Any


def reread_groups(prediction: Prediction, grounding: Grounding) -> list[Mismatch]:
    """Compares a prediction with its replies, without its page. `grounding`: a GroupStrategy; of others nothing is
    compared, as they look elements up on the page."""
    if not isinstance(grounding, GroupStrategy):
        return []
    again = [_read(group, grounding) for group in prediction.groups]
    mismatches = [*_of_groups(prediction.groups, again, GROUP_FIELDS)]
    decided: object = Prediction(*prediction.key, None, "", "", failure=prediction.failure)
    if prediction.ran:
        decided = merge(again, grounding.merge_rule, prediction.ranked)
    return [*mismatches, *_mismatches(prediction, decided, GROUP_FIELDS)]


def _read(group: Reply, grounding: GroupStrategy) -> Reply:
    """The group as its last reply says; as it is where the model declined, of which no reply tells."""
    # as much of its question as readers use
    question = Question(group.group, group.offered, "", (), (), is_final_round=group.is_final_round)
    if not group.replies or group.failure in CallError.ANSWERED:
        return build_reply(question, group.replies, GroundingReply(None, failure=group.failure), group.detail)
    return build_reply(question, group.replies, grounding.read(question)(group.replies[-1]))


class StoredReplies(Model):
    """A model that answers a step with the replies that its prediction holds."""

    def __init__(self, prediction: Prediction) -> None:
        self._groups = {group.group: group for group in prediction.groups}

    async def complete(self, request: Request) -> Completion:
        """Answers with the stored reply. Raises CallError: as the model declined, or `no_recorded_reply`."""
        group = self._groups.get(request.group)
        if group is not None and request.turn <= len(group.replies):
            return Completion(group.replies[request.turn - 1], Usage(calls=1))
        if group is not None and group.failure in CallError.ANSWERED:
            raise CallError(group.failure, group.detail)
        raise CallError("no_recorded_reply", f"the run holds no reply of group {request.group}, turn {request.turn}")


async def reread(
    prediction: Prediction, step: Step, grounding: Grounding, scores: Scores | None, top_k: int
) -> list[Mismatch]:
    """Compares a prediction with its replies and its page. `scores`: the ranker's; None: the
    stored ranks are taken as they are."""
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
    mismatches: list[Mismatch] = []
    for name in names:
        was, now = getattr(prediction, name), getattr(again, name)
        if name == "notes":
            was, now = ({key: n for key, n in some.items() if key not in NOTES_OF_CALLS} for some in (was, now))
        if name == "groups" and was != now:
            mismatches += _of_groups(was, now, Reply.__struct_fields__)
        elif was != now:
            mismatches.append(Mismatch(name, was, now))
    return mismatches


def _of_groups(was: Sequence[Reply], now: Sequence[Reply], names: Sequence[str]) -> Iterator[Mismatch]:
    if len(was) != len(now):
        yield Mismatch("groups", len(was), len(now))
    for stored, read in zip(was, now, strict=False):
        yield from _mismatches(stored, read, names, f"group {stored.group}: ")


def _mismatches(stored: object, read: object, names: Sequence[str], place: str = "") -> Iterator[Mismatch]:
    for name in names:
        if (was := getattr(stored, name)) != (now := getattr(read, name)):
            yield Mismatch(f"{place}{name}", was, now)
