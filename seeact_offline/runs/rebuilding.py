"""Questions that a run's model was sent, rebuilt by the code that built them.

Nothing is shown that was not sent: the prompts must be those of the run's manifest, the package of the same version, and the elements
offered those that the run recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seeact_offline import __version__
from seeact_offline.grounding import Grounding, Order, PreparedStep
from seeact_offline.grounding.conversation import PastQuestion, Question
from seeact_offline.grounding.strategies import STRATEGIES, UNGROUNDED, agents, find_strategy
from seeact_offline.records import InputError, Prediction, Reply, SeeActError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.groundings import open_strategy

OPTIONS = (
    "prompts", "seed", "top_k", "group_size", "merge", "turns", "no_image", "max_image_side", "batching",
)  # fmt: skip
"""Settings that decide a run's questions, besides its grounding and the options of that one alone. The model is not one of them:
to look at a run must not load the code of a model."""


def open_grounding(manifest: Mapping[str, Any], captions: Path) -> Grounding:
    """The strategy of a run. `captions`: its file of those that were shown, which may not exist. Raises InputError where this program would ask other questions."""
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
    given = {name: settings[name] for name in (*OPTIONS, *own) if settings.get(name) is not None}
    if str(given.get("cut_by", "")).startswith("hf:"):
        # a manifest may be from another person: to look at a run must not load a model's files
        raise InputError("run", "observations that are cut without a local model's files", f"cut by {given['cut_by']}")
    if given.pop("thoughts", "none") != "none":
        raise InputError(
            "run", "questions that no other step's replies are told in", f"thoughts {settings['thoughts']}"
        )
    # a run without captions of its own leaves no file of them
    if given.pop("captions", None) and captions.is_file():
        given["captions"] = captions
    chosen = {"ungrounded": True} if grounding == UNGROUNDED else {"grounding": grounding}
    if grounding in agents():
        chosen = {"agent": grounding}
    number = settings.get("shuffled")
    order = Order(int(settings.get("seed") or 0), int(number)) if number else None
    opened = open_strategy(EvalConfig().changed(**chosen, **given), order)
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
        return {place: one for place, one in rebuilt if one.question.offered == offered[place]}
    first = {(question.index, question.offered): question for question in grounding.questions(prepared)}
    found: dict[int, PastQuestion] = {}
    for place, group in enumerate(prediction.groups):
        question = first.get((group.group, group.offered))
        if question is None:
            question = _later_question(grounding, prepared, prediction.groups[:place], group)
        if question is not None:
            found[place] = PastQuestion(question)
    return found


def _later_question(
    grounding: Grounding, prepared: PreparedStep, before: tuple[Reply, ...], group: Reply
) -> Question | None:
    """A question that depends on answers: a final round, a later group of an elimination. None where it cannot be rebuilt."""
    picks = [one.element_id for one in before if one.element_id is not None]
    try:
        if group.is_final_round:
            question = grounding.final_round(prepared, picks, group.group)
        else:
            question = grounding.question(prepared, group.offered, group.group)
    except (SeeActError, LookupError):
        return None
    return question if question is not None and question.offered == group.offered else None
