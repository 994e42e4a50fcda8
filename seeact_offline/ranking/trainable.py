"""The parts of `ranker` from which a ranker's training starts."""

from __future__ import annotations

from ranker.checkpoint import folder_digest, open_base
from ranker.errors import RankerError
from ranker.small_model import SmallModel, build_small, train_tokenizer

__all__ = ["RankerError", "SmallModel", "build_small", "folder_digest", "open_base", "train_tokenizer"]
