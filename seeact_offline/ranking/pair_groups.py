"""Steps -> the pairs that a ranker learns from, and the training of `ranker`."""

from __future__ import annotations

from ranker.checkpoint import folder_digest, open_base
from ranker.errors import RankerError
from ranker.small_model import SmallModel, build_small, train_tokenizer
from ranker.training import SMALL, PairGroup, TrainingResult, TrainingSettings, mark_best, stop_without_loss, train
from seeact_offline.ranking.texts import ranker_input
from seeact_offline.records import Step

__all__ = [
    "SMALL",
    "PairGroup",
    "RankerError",
    "SmallModel",
    "TrainingResult",
    "TrainingSettings",
    "build_small",
    "folder_digest",
    "mark_best",
    "open_base",
    "stop_without_loss",
    "to_group",
    "train",
    "train_tokenizer",
]


def to_group(step: Step) -> PairGroup:
    """The texts of the step's candidates, positive and negative. Raises RowError for a page without texts of all."""
    given = ranker_input(step)
    right = [given.texts[c.backend_node_id] for c in step.candidates if c.is_positive]
    wrong = [given.texts[c.backend_node_id] for c in step.candidates if not c.is_positive]
    return PairGroup(given.query, tuple(right), tuple(wrong))
