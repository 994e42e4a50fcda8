"""Metrics of one step against the obvious ones, and against worked cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.records import Box, Operation
from seeact_offline.scoring.metrics import (
    best_rank,
    element_correct,
    operation_f1,
    point_correct,
    recall_at_k,
    step_success,
)
from tests.reference import metrics as reference

TEXTS = st.lists(st.sampled_from(["CLICK", "TYPE", "a", "A", "b", "10203", "7:30"]), max_size=6).map(" ".join)


@given(TEXTS, TEXTS)
def test_operation_f1_equals_the_slow_one(predicted: str, target: str) -> None:
    assert operation_f1(predicted, target) == pytest.approx(float(reference.operation_f1(predicted, target)))


@given(TEXTS)
def test_equal_token_sets_give_exactly_one(text: str) -> None:
    assert operation_f1(text, f"{text} {text}  ") == 1.0


def test_a_number_off_costs_half() -> None:
    assert operation_f1("SELECT 2", "SELECT 3") == 0.5


def test_operations_compare_by_their_text() -> None:
    assert operation_f1(Operation("TYPE", "new york"), "TYPE york new") == 1.0


def test_case_and_punctuation_count() -> None:
    assert operation_f1("TYPE New York.", "TYPE new York") == pytest.approx(1 / 3)


def test_an_empty_prediction_scores_nothing() -> None:
    assert operation_f1("", "CLICK") == 0.0


def test_any_positive_is_right() -> None:
    assert element_correct("2", {"1", "2"})


def test_no_element_is_never_right() -> None:
    assert not element_correct(None, {"1"})


@pytest.mark.parametrize(("element", "f1", "done"), [(True, 1.0, True), (True, 0.99, False), (False, 1.0, False)])
def test_a_step_succeeds_with_both_only(element: bool, f1: float, done: bool) -> None:
    assert step_success(element, f1) is done


def test_best_rank_is_the_first_positive() -> None:
    assert best_rank(["5", "3", "4"], {"4", "3"}) == 1


def test_best_rank_is_unknown_without_a_positive_in_the_ranking() -> None:
    assert best_rank(["5"], {"4"}) is None


@pytest.mark.parametrize(
    ("point", "boxes", "expected"),
    [
        ((15, 25), [Box(10, 20, 10, 10)], True),
        ((10, 30), [Box(10, 20, 10, 10)], True),
        ((9.9, 25), [Box(10, 20, 10, 10)], False),
        ((55, 5), [Box(10, 20, 10, 10), Box(50, 0, 10, 10)], True),
        ((10, 25), [Box(10, 20, 0, 10)], False),
        ((15, 25), [], False),
    ],
)
def test_a_point_is_right_in_any_of_the_boxes(point, boxes, expected: bool) -> None:
    assert point_correct(point, boxes) is expected


def test_recall_keeps_steps_without_a_positive_in_the_denominator() -> None:
    assert recall_at_k([0, 4, None, 5], 5) == 0.5
