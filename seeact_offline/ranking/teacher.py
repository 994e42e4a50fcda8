"""A teacher for small rankers: boosted trees over `pair_features`, fitted to the steps that the ranker is trained on.

A few hundred steps say too little of language for a model from scratch to find out by itself what counts, but enough for
trees over some seventy numbers. What these think of any text for any query, of real pages or mixed ones, the ranker can then
learn from as many examples as there is time for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDS = 200
SEEDS = (0, 1, 2)
OBJECTIVES = ("binary", "lambdarank")
TREES: dict[str, Any] = {
    "num_leaves": 15,
    "learning_rate": 0.05,
    "min_data_in_leaf": 30,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "lambdarank_truncation_level": 60,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A step as the trees take it."""

    features: np.ndarray
    # (texts, features)
    right: np.ndarray
    # (texts,), of bool


class Trees:
    """The mean of trees with different seeds and aims, each brought to one scale; half of the weight to each aim."""

    def __init__(self, steps: Sequence[Judged]) -> None:
        import lightgbm

        features = np.concatenate([step.features for step in steps])
        right = np.concatenate([step.right for step in steps]).astype(int)
        sizes = [len(step.right) for step in steps]
        self._models: dict[str, list[Any]] = {}
        self._scale: dict[str, tuple[float, float]] = {}
        for aim in OBJECTIVES:
            data = lightgbm.Dataset(features, right, group=sizes if aim == "lambdarank" else None)
            self._models[aim] = [
                lightgbm.train({**TREES, "objective": aim, "seed": seed}, data, ROUNDS) for seed in SEEDS
            ]
            found = self._raw(aim, features)
            self._scale[aim] = float(found.mean()), float(found.std())

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Shape `(texts,)`, float32, 0 and up. What is hopeless is all near 0: its order is of no use to a ranker."""
        parts = [(self._raw(aim, features) - mean) / spread for aim, (mean, spread) in self._scale.items()]
        found: np.ndarray = np.logaddexp(0, 1.2 * (np.mean(parts, axis=0) + 0.2)).astype(np.float32)
        return found

    def _raw(self, aim: str, features: np.ndarray) -> np.ndarray:
        found = [model.predict(features, raw_score=True, num_threads=1) for model in self._models[aim]]
        return np.asarray(np.mean(found, axis=0))
