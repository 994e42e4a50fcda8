"""Steps -> what a ranker learns from. With `opening`, the only way from the toolkit into `ranker`."""

from __future__ import annotations

from ranker.errors import RankerError
from ranker.pairs import PairGroup
from ranker.processes import part
from ranker.training import SMALL, SmallModel, TrainingResult, TrainingSettings, check, train
from seeact_offline.ranking.lessons import TaughtStep, with_lessons
from seeact_offline.ranking.scores import PLAIN, describe
from seeact_offline.ranking.senses import SENSES
from seeact_offline.records import Step

__all__ = [
    "SENSES",
    "SMALL",
    "PairGroup",
    "RankerError",
    "SmallModel",
    "TaughtStep",
    "TrainingResult",
    "TrainingSettings",
    "check",
    "part",
    "to_group",
    "train",
    "with_lessons",
]


def to_group(step: Step, form: str = PLAIN) -> PairGroup:
    """The texts of the step's candidates, by whether they are right. `form`: one of `ranking.FORMS`."""
    described = describe(step)
    texts = described.in_form(form)
    right = [texts[c.backend_node_id] for c in step.candidates if c.is_positive]
    wrong = [texts[c.backend_node_id] for c in step.candidates if not c.is_positive]
    return PairGroup(described.query, tuple(right), tuple(wrong))
