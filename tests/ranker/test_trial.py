"""Recall of a ranker in training, alone and fused with BM25."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ranker.trial import TrialGroup, report_trial

pytestmark = pytest.mark.slow

FILLER = tuple(f"filler {place}" for place in range(60))


def test_the_fused_recall_stands_beside_those_of_the_parts() -> None:
    def first_word(query: str, texts: Sequence[str]) -> np.ndarray:
        return np.array([text.startswith("model") for text in texts], dtype=float)

    by_model = TrialGroup("blue shoes", (*FILLER, "model knows"), frozenset({60}))
    by_words = TrialGroup("blue shoes", (*FILLER, "shoes in blue"), frozenset({60}))
    by_none = TrialGroup("blue shoes", (*FILLER, "other"), frozenset())
    assert report_trial(first_word, [by_model, by_words, by_none, by_none]) == (
        "recall@10/50 over 4 steps: own 25.0/25.0, own+bm25 0.0/50.0, bm25 25.0/25.0"
    )


def test_equal_scores_rank_in_the_order_of_the_texts() -> None:
    groups = [TrialGroup("", FILLER, frozenset({place})) for place in (9, 10)]
    said = report_trial(lambda query, texts: np.zeros(len(texts)), groups)
    assert said == "recall@10/50 over 2 steps: own 50.0/100.0, own+bm25 50.0/100.0, bm25 50.0/100.0"
