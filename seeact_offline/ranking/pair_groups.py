"""Steps -> the pairs that a ranker learns from, and the training of `ranker`."""

from __future__ import annotations

from ranker.checkpoint import folder_digest, open_base
from ranker.errors import RankerError
from ranker.pairs import PairGroup
from ranker.small_model import SmallModel, build_small, train_tokenizer
from ranker.training import SMALL, TrainingResult, TrainingSettings, mark_best, stop_without_loss, train
from ranker.trial import TrialGroup
from seeact_offline.ranking.texts import ranker_input
from seeact_offline.records import Step

__all__ = [
    "SMALL",
    "PairGroup",
    "RankerError",
    "SmallModel",
    "TrainingResult",
    "TrainingSettings",
    "TrialGroup",
    "build_small",
    "folder_digest",
    "mark_best",
    "open_base",
    "stop_without_loss",
    "to_group",
    "to_trial",
    "train",
    "train_tokenizer",
]


def to_group(step: Step) -> PairGroup:
    """The texts of the step's candidates, positive and negative. Raises RowError for a page without texts of all."""
    given = ranker_input(step)
    right = [given.texts[c.backend_node_id] for c in step.candidates if c.is_positive]
    wrong = [given.texts[c.backend_node_id] for c in step.candidates if not c.is_positive]
    return PairGroup(given.query, tuple(right), tuple(wrong))


def to_trial(step: Step) -> TrialGroup:
    """The texts of the step's candidates in document order, and which are right."""
    given = ranker_input(step)
    nodes = sorted(given.texts, key=lambda node: given.places[node])
    right = frozenset(place for place, node in enumerate(nodes) if node in step.truth.positives)
    return TrialGroup(given.query, tuple(given.texts[node] for node in nodes), right)
