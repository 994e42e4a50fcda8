"""Cutting a text by its words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.tokens import count_words, cut_words


@given(st.text("ab1 .\n", max_size=30), st.integers(0, 20))
def test_a_cut_keeps_the_beginning_and_as_many_words_as_it_may(text: str, limit: int) -> None:
    cut = cut_words(text, limit)
    assert text.startswith(cut)
    assert count_words(cut) == min(limit, count_words(text))
    assert cut == text or count_words(text) > limit
