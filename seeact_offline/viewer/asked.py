"""What a run's model was sent, put together again by what put it together then.

Nothing is shown that was not sent: the prompts must be those of the run's manifest, the program of the same version, and the
elements offered those that the run recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from seeact_offline import __version__
from seeact_offline.grounding import Grounding, PreparedStep
from seeact_offline.grounding.conversation import Question
from seeact_offline.grounding.strategies import own_options
from seeact_offline.records import InputError, Prediction, RankedCandidate, Reply, SeeActError
from seeact_offline.runs.config import UNGROUNDED, EvalConfig
from seeact_offline.runs.groundings import open_strategy

OPTIONS = (
    "model",
    "prompts",
    "seed",
    "top_k",
    "group_size",
    "merge",
    "turns",
    "no_image",
    "max_image_side",
    "batching",
)
"""Settings of a run that decide its questions, beside its grounding and that one's own options."""


def open_grounding(manifest: Mapping[str, Any]) -> Grounding:
    """The strategy that a run asked by. Raises InputError where this program would not ask the same."""
    settings, identity = manifest.get("settings") or {}, manifest.get("identity") or {}
    if "imported" in identity:
        raise InputError("run", "one that was asked here", "one that was imported")
    version = (manifest.get("packages") or {}).get("seeact-offline")
    if version != __version__:
        raise InputError("run", f"one of version {__version__}", f"one of version {version or 'unknown'}")
    opened = open_strategy(_config(settings))
    ours = json.loads(json.dumps(dict(opened.identity)))
    other = sorted(name for name, value in ours.items() if identity.get(name) != value)
    if other:
        raise InputError("run", "the prompts and options that there are now", f"others: {', '.join(other)}")
    return opened.grounding


def _config(settings: Mapping[str, Any]) -> EvalConfig:
    """Raises InputError."""
    given = {name: settings[name] for name in (*OPTIONS, *own_options()) if settings.get(name) is not None}
    grounding = settings.get("grounding")
    chosen = {"ungrounded": True} if grounding == UNGROUNDED else {"grounding": grounding}
    return EvalConfig().changed(**chosen, **given)


def ranked(prediction: Prediction) -> tuple[RankedCandidate, ...]:
    """As questions need it: the order, without the scores, which predictions do not keep."""
    return tuple(RankedCandidate(node, 0.0, rank) for rank, node in enumerate(prediction.ranked))


def questions_of(grounding: Grounding, prepared: PreparedStep, prediction: Prediction) -> dict[int, Question]:
    """Place in `prediction.groups` -> the question that was asked there; those that cannot be told are left out.

    Raises StepError for a page of which nothing can be asked.
    """
    first = {(question.index, question.offered): question for question in grounding.questions(prepared)}
    found: dict[int, Question] = {}
    for place, group in enumerate(prediction.groups):
        question = first.get((group.group, group.offered))
        if question is None:
            question = _later(grounding, prepared, prediction.groups[:place], group)
        if question is not None:
            found[place] = question
    return found


def _later(grounding: Grounding, prepared: PreparedStep, before: tuple[Reply, ...], group: Reply) -> Question | None:
    """What was asked in the light of answers: a final round, a later group of an elimination. None where it cannot be told."""
    name, told = ("final_round", _picks(before)) if group.is_final_round else ("question", list(group.offered))
    ask = getattr(grounding, name, None)
    if ask is None:
        return None
    try:
        question: Question = ask(prepared, told, group.group)
    except (SeeActError, LookupError):
        return None
    return question if question.offered == group.offered else None


def _picks(before: tuple[Reply, ...]) -> list[str]:
    return [one.element_id for one in before if one.element_id is not None]
