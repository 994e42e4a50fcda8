"""Steps -> what a ranker learns from. With `opening`, the only way from the toolkit into `ranker`."""

from __future__ import annotations

from ranker.errors import RankerError
from ranker.pairs import PairGroup
from ranker.training import SMALL, SmallModel, TrainingResult, TrainingSettings, train
from seeact_offline.ranking.scores import describe
from seeact_offline.records import Step

__all__ = ["SMALL", "PairGroup", "RankerError", "SmallModel", "TrainingResult", "TrainingSettings", "to_group", "train"]


def to_group(step: Step) -> PairGroup:
    """The texts of the step's candidates, right ones and wrong ones."""
    described = describe(step)
    right = [described.texts[c.backend_node_id] for c in step.candidates if c.is_positive]
    wrong = [described.texts[c.backend_node_id] for c in step.candidates if not c.is_positive]
    return PairGroup(described.query, tuple(right), tuple(wrong))
