"""The parts of `ranker` from which a ranker's training starts."""

from __future__ import annotations

from ranker.checkpoint import folder_digest, open_base
from ranker.errors import RankerError
from ranker.small_model import SmallModel, build_small, train_tokenizer
from ranker.trial import TrialGroup, model_scores, report_trial

__all__ = [
    "RankerError",
    "SmallModel",
    "TrialGroup",
    "build_small",
    "folder_digest",
    "model_scores",
    "open_base",
    "report_trial",
    "train_tokenizer",
]
