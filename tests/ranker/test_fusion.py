"""Reciprocal rank fusion against its formula."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranker.fusion import fuse


@given(st.lists(st.permutations(range(5)), min_size=1, max_size=4))
def test_scores_equal_the_formula(rankings: list[list[int]]) -> None:
    expected = [sum(1 / (60 + 1 + ranks[text]) for ranks in rankings) for text in range(5)]
    assert fuse(rankings) == pytest.approx(expected)


def test_two_rankings_that_swap_texts_score_them_equal() -> None:
    first, second, last = fuse([[0, 7, 2], [7, 0, 9]])
    assert first == second > last
