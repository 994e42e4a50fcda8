"""A teacher for small rankers: trees and a network over `pair_features`, fitted to the steps that the ranker is trained on.

A few hundred steps say too little of language for a model from scratch to find out by itself what counts, but enough for
what reads some eighty numbers. What these think of any text for any query, of real pages or mixed ones, the ranker can then
learn from as many examples as there is time for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ranker.processes import share_out
from seeact_offline.ranking.feature_network import FeatureNetwork

ROUNDS = 200
SEEDS = (0, 1, 2)
OBJECTIVES = ("binary", "lambdarank")
WEIGHTS = (0.25, 0.25, 0.5)
"""Of the trees with each objective and of the network."""
LEAST_SPREAD = 1e-3
"""So that what has learnt nothing is not blown up to the size of what has."""
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


class Teacher:
    """Half a network, a quarter trees that tell right from wrong, a quarter trees that put a page in order; each on one scale."""

    def __init__(self, steps: Sequence[Judged], naming: Sequence[int] = ()) -> None:
        """`naming`: see `FeatureNetwork`."""
        features = [step.features for step in steps]
        network = FeatureNetwork(features, [step.right for step in steps], naming)
        self._parts = [*_trees(steps), network.scores]
        together = np.concatenate(features)
        found = [part(together) for part in self._parts]
        self._scales = [(float(each.mean()), float(each.std()) + LEAST_SPREAD) for each in found]

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Shape `(texts,)`, float32, 0 and up. What is hopeless is all near 0: its order is of no use to a ranker."""
        scaled = [
            (part(features) - mean) / spread for part, (mean, spread) in zip(self._parts, self._scales, strict=True)
        ]
        found: np.ndarray = np.logaddexp(0, 1.2 * (np.average(scaled, axis=0, weights=WEIGHTS) + 0.2)).astype(
            np.float32
        )
        return found


def _trees(steps: Sequence[Judged]) -> list[Callable[[np.ndarray], np.ndarray]]:
    """For each objective, features to scores: the mean of trees with different seeds."""
    import lightgbm

    data = lightgbm.Dataset(
        np.concatenate([step.features for step in steps]),
        np.concatenate([step.right for step in steps]).astype(int),
        group=[len(step.right) for step in steps],
    )
    aims = list(itertools.product(OBJECTIVES, SEEDS))
    found = share_out(lambda aim: lightgbm.train({**TREES, "objective": aim[0], "seed": aim[1]}, data, ROUNDS), aims)
    return [partial(_mean_score, found[place : place + len(SEEDS)]) for place in range(0, len(aims), len(SEEDS))]


def _mean_score(models: Sequence[Any], features: np.ndarray) -> np.ndarray:
    return np.asarray(np.mean([model.predict(features, raw_score=True, num_threads=1) for model in models], axis=0))
