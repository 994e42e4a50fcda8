"""The exact best k from rough scores, against scoring everything exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranker import CrossEncoderRanker, cross_encoder
from ranker.exact_top_k import FIRST_LOOK, rescore_near_cut
from tests.examples import often
from tests.ranker.test_cross_encoder import QUERY, WORDS, make_checkpoint

K = 5


def best(scores: np.ndarray, k: int = K) -> set[int]:
    return set(np.argsort(-scores, kind="stable")[:k].tolist())


class Exact:
    """Exact scores of rows, and which rows were asked for."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores, self.asked = scores, list[int]()

    def __call__(self, rows: list[int]) -> np.ndarray:
        self.asked += rows
        return self.scores[rows]


@settings(max_examples=often(200))
@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.floats(-2, 2))
def test_an_error_that_all_have_in_common_changes_nothing(seed: int, n: int, error: float) -> None:
    exact = np.random.default_rng(seed).permutation(n).astype(np.float32)
    (scores,) = rescore_near_cut(exact + np.float32(error), [np.arange(n)], K, Exact(exact))
    assert best(scores) == best(exact)
    assert n <= K or np.allclose(scores, exact, atol=1e-5)


def test_the_best_are_nearly_always_those_of_exact_scores() -> None:
    """Errors as measured between bfloat16 and float32: a common part, and a rest whose size differs from text to text."""
    random, pages, n = np.random.default_rng(0), 1000, 100
    wrong = asked = 0
    for _ in range(pages):
        exact = random.normal(scale=1.5, size=n)
        rough = exact + random.normal(0.1, 0.05) + random.normal(scale=0.1, size=n) * random.choice([0.5, 1, 2], n)
        rescored = Exact(exact)
        (scores,) = rescore_near_cut(rough, [np.arange(n)], 50, rescored)
        wrong, asked = wrong + (best(scores, 50) != best(exact, 50)), asked + len(rescored.asked)
    assert wrong / pages < 0.01
    assert asked / (pages * n) < 0.4


@pytest.mark.parametrize("n_rows", [1, 2])
def test_a_page_of_few_different_texts_is_ranked(n_rows: int) -> None:
    exact = np.arange(n_rows, dtype=np.float32)
    (scores,) = rescore_near_cut(exact + 1, [np.arange(20) % n_rows], K, Exact(exact))
    assert scores.tolist() == exact[np.arange(20) % n_rows].tolist()


def test_only_rows_near_the_cut_are_scored_again() -> None:
    exact = np.arange(1000, dtype=np.float32)
    asked = Exact(exact)
    rescore_near_cut(exact + 0.25, [np.arange(1000)], K, asked)
    assert sorted(asked.asked) == list(range(1000 - FIRST_LOOK, 1000))


def test_few_texts_are_not_scored_again() -> None:
    rough, asked = np.zeros(K, dtype=np.float32), Exact(np.ones(K, dtype=np.float32))
    (scores,) = rescore_near_cut(rough, [np.arange(K)], K, asked)
    assert (scores.tolist(), asked.asked) == ([0.0] * K, [])


def test_no_row_is_scored_exactly_twice() -> None:
    exact = np.random.default_rng(0).normal(size=60).astype(np.float32)
    asked = Exact(exact)
    rescore_near_cut(exact + 0.1, [np.arange(40), np.arange(20, 60)], K, asked)
    assert len(asked.asked) == len(set(asked.asked))


def test_other_queries_change_no_score() -> None:
    random = np.random.default_rng(0)
    exact = random.normal(size=60).astype(np.float32)
    rough = exact + random.normal(size=60, scale=0.1).astype(np.float32)
    places = [np.arange(40), np.arange(20, 60)]
    together = rescore_near_cut(rough, places, K, Exact(exact))
    alone = [rescore_near_cut(rough, [each], K, Exact(exact))[0] for each in places]
    assert [values.tolist() for values in together] == [values.tolist() for values in alone]


def test_equal_texts_count_as_often_as_they_occur() -> None:
    exact = np.arange(30, dtype=np.float32)
    places = np.array([29] * 4 + list(range(29)))
    (scores,) = rescore_near_cut(exact + 0.25, [places], K, Exact(exact))
    assert sorted(scores)[-K:] == [28.0, *[29.0] * 4]


# Through the ranker


TEXTS = [f"{first} {second}" for first in WORDS for second in WORDS[:6]]


@pytest.fixture
def own_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine's processor can do."""
    monkeypatch.setattr(cross_encoder, "computes_bfloat16", lambda device: True)


@pytest.mark.slow
@pytest.mark.usefixtures("own_bfloat16")
@pytest.mark.parametrize("backend", ["packed", "transformers"])
def test_mixed_gives_the_best_of_float32(tmp_path: Path, backend: str) -> None:
    folder = make_checkpoint(tmp_path)
    full = CrossEncoderRanker(folder, device="cpu", backend=backend).score(QUERY, TEXTS)
    mixed = CrossEncoderRanker(folder, device="cpu", dtype="mixed", backend=backend, exact_top=20)
    assert best(mixed.score(QUERY, TEXTS), 20) == best(full, 20)
    assert FIRST_LOOK <= mixed.rescored < len(TEXTS)


@pytest.mark.usefixtures("own_bfloat16")
def test_mixed_scores_do_not_depend_on_the_order(tmp_path: Path) -> None:
    mixed = CrossEncoderRanker(make_checkpoint(tmp_path), device="cpu", dtype="mixed", exact_top=20)
    forwards, backwards = mixed.score(QUERY, TEXTS), mixed.score(QUERY, TEXTS[::-1])
    assert forwards.tolist() == backwards[::-1].tolist()


@pytest.mark.usefixtures("own_bfloat16")
def test_mixed_names_how_many_are_exact(tmp_path: Path) -> None:
    assert CrossEncoderRanker(make_checkpoint(tmp_path), device="cpu", dtype="mixed", exact_top=20).dtype == "mixed-20"


def test_mixed_is_float32_where_bfloat16_is_emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_encoder, "computes_bfloat16", lambda device: False)
    folder = make_checkpoint(tmp_path)
    mixed = CrossEncoderRanker(folder, device="cpu", dtype="mixed", exact_top=20)
    assert mixed.dtype == "float32"
    assert mixed.score(QUERY, TEXTS).tolist() == CrossEncoderRanker(folder, device="cpu").score(QUERY, TEXTS).tolist()
    assert mixed.rescored == 0
