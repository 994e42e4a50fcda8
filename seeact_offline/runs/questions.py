"""The exact questions of one step, as a model would be sent them."""

from __future__ import annotations

from typing import Any

from seeact_offline.grounding.conversation import Question
from seeact_offline.records import Step
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.strategy_opening import live_scores, open_strategy


def questions(step: Step, config: EvalConfig | None = None, **options: Any) -> list[Question]:
    """The first questions of a step, one per group: texts of their turns, pictures, and what is offered.

    `options` are fields of `EvalConfig`, which win over `config`. Raises InputError, and RowError for a step at fault.

    >>> from seeact_offline import load_steps
    >>> (question,) = questions(next(load_steps("sample", "train")), grounding="pixel")
    >>> len(question.turns), "one-way business class flight" in question.turns[0]
    (2, True)
    """
    config = EvalConfig.of(config, **options)
    grounding = open_strategy(config).grounding
    scores = live_scores(config) if grounding.needs_ranking else None
    return grounding.questions(prepare(step, scores, config.top_k, grounding.form.image))
