"""BM25 against its formula, and the contract that every ranker keeps."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranker import LexicalRanker
from tests.examples import often

WORDS = st.sampled_from(["search", "flight", "hotel", "cheap", "blue", "shoes", "cart", "zip"])
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=6)


def slow_bm25(query: list[str], texts: list[list[str]], k1: float = 1.5, b: float = 0.75) -> list[float]:
    """Lucene's BM25, written out."""
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        counts, score = Counter(text), 0.0
        for word in query:
            holding = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            score += idf * counts[word] / (counts[word] + k1 * (1 - b + b * len(text) / mean)) if counts[word] else 0.0
        scores.append(score)
    return scores


@settings(max_examples=often(60))
@given(st.lists(WORDS, min_size=1, max_size=3, unique=True), TEXTS)
def test_scores_equal_the_formula(query: list[str], texts: list[str]) -> None:
    split = [text.split() for text in texts]
    expected = slow_bm25(query, split) if any(split) else [0.0] * len(texts)
    assert LexicalRanker().score(" ".join(query), texts) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=often(60))
@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=5))
def test_any_texts_get_one_finite_score_each(query: str, texts: list[str]) -> None:
    scores = LexicalRanker().score(query, texts)
    assert scores.shape == (len(texts),)
    assert np.isfinite(scores).all()


def test_equal_texts_score_equal() -> None:
    scores = LexicalRanker().score("blue shoes", ["blue shoes", "cart", "blue shoes"])
    assert scores[0] == scores[2] > scores[1]
