"""Averages over tasks against the obvious ones; properties of the interval."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seeact_offline.records import Metric, Prediction, StepKey, StepScore, Summary, Usage
from seeact_offline.scoring import aggregate
from tests.examples import often
from tests.reference import metrics as reference

VALUES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=5),
    min_size=1,
    max_size=8,
)


def score(task: str, step: str, success: float = 1.0, rank: int | None = 0) -> StepScore:
    return StepScore(StepKey(task, step), success, success, success, "success" if success else "no_element", rank)


def summary_of(scores: list[StepScore], predictions: list[Prediction], top_k: int | None = 50) -> Summary:
    """As a protocol would have it that averages over tasks."""

    def average(values: Sequence[float]) -> Metric:
        return aggregate.metric(aggregate.by_task([score.key for score in scores], values))

    return aggregate.summarise(scores, predictions, top_k, average)


@settings(max_examples=often(100))
@given(VALUES)
def test_averages_equal_the_slow_ones(values: dict[str, list[float]]) -> None:
    metric = aggregate.metric(values)
    assert metric.macro == pytest.approx(float(reference.macro(values)))
    assert metric.micro == pytest.approx(float(reference.micro(values)))


@settings(max_examples=often(100))
@given(VALUES)
def test_the_interval_holds_the_average(values: dict[str, list[float]]) -> None:
    metric = aggregate.metric(values)
    low, high = metric.ci95
    assert low - 1e-9 <= metric.macro <= high + 1e-9


@settings(max_examples=often(100))
@given(VALUES, st.integers(0, 1))
def test_whole_tasks_equal_the_slow_count(values: dict[str, list[float]], allowed: int) -> None:
    whole = {task: [1.0 if v == 1.0 else 0.0 for v in steps] for task, steps in values.items()}
    scores = {task: [score(task, str(i), v) for i, v in enumerate(steps)] for task, steps in whole.items()}
    assert aggregate.task_success(scores, allowed) == pytest.approx(float(reference.offline(whole, allowed)))


def test_one_task_gives_no_interval() -> None:
    assert aggregate.metric({"a": [1.0, 1.0]}).ci95 == (0.0, 1.0)


def test_the_effective_n_gives_the_standard_error_back() -> None:
    metric = aggregate.metric({str(i): [float(i % 3 == 0), float(i % 6 == 0)] for i in range(60)})
    assert metric.se is not None
    assert metric.n_effective is not None
    assert metric.macro * (1 - metric.macro) / metric.n_effective == pytest.approx(metric.se**2)


def test_macro_counts_tasks_and_micro_counts_steps() -> None:
    metric = aggregate.metric({"a": [1.0], "b": [0.0, 0.0, 0.0]})
    assert (metric.macro, metric.micro) == (0.5, 0.25)


def test_recall_beyond_what_was_ranked_is_not_known() -> None:
    summary = summary_of([score("a", "1")], [Prediction("a", "1", None, "", "")], top_k=10)
    assert (summary.recall_at_k["10"], summary.recall_at_k["20"]) == (1.0, None)


def test_steps_of_a_task_cluster_wherever_they_stand() -> None:
    keys = [StepKey("a", "1"), StepKey("b", "1"), StepKey("a", "2")]
    assert aggregate.by_task(keys, [1, 2, 3]) == {"a": [1, 3], "b": [2]}


def test_usage_adds_up() -> None:
    predictions = [Prediction("a", str(i), None, "", "", usage=Usage(2, 10, 3, 1, 0.5)) for i in range(2)]
    assert summary_of([score("a", "0"), score("a", "1")], predictions, 50).usage == Usage(4, 20, 6, 2, 1.0)


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    assert (Usage(1, cost_usd=None) + Usage(1, cost_usd=0.2)).cost_usd is None


def test_a_run_without_steps_is_all_zero() -> None:
    summary = summary_of([], [], 50)
    assert (summary.n_steps, summary.element_accuracy.macro, summary.task_success_rate["offline0"]) == (0, 0.0, 0.0)


def said(step: str, **more) -> Prediction:
    return Prediction("a", step, None, "", "", **more)


@pytest.mark.parametrize(
    ("field", "figure", "values", "micro"),
    [
        ("reachable", "ceiling", (True, False, None, True), 0.5),
        ("point", "point_accuracy", (1.0, 0.0, None, None), 0.25),
    ],
)
def test_ceiling_and_points_are_over_all_steps_and_unknown_ones_count_as_lost(
    field: str, figure: str, values: tuple[Any, ...], micro: float
) -> None:
    scores = [replace(score("a", str(i)), **{field: value}) for i, value in enumerate(values)]
    found = getattr(summary_of(scores, [said(str(i)) for i in range(4)], 50), figure)
    assert (found.macro, found.micro) == (micro, micro)


def test_what_no_step_says_is_not_known() -> None:
    summary = summary_of([score("a", "1")], [said("1")], 50)
    assert (summary.ceiling, summary.point_accuracy, summary.notes) == (None, None, {})


def test_notes_add_up_by_name() -> None:
    notes = [{"box_not_drawn": 2}, {"box_not_drawn": 1, "picture_resized": 1}, {}]
    predictions = [said(str(i), notes=one) for i, one in enumerate(notes)]
    summary = summary_of([score("a", str(i)) for i in range(3)], predictions, 50)
    assert summary.notes == {"box_not_drawn": 3, "picture_resized": 1}


def test_without_elements_all_that_needs_one_is_not_known() -> None:
    scores = [replace(score("a", str(i)), element=None, success=None) for i in range(2)]
    summary = summary_of(scores, [said(str(i)) for i in range(2)], None)
    assert (summary.element_accuracy, summary.step_success_rate) == (None, None)
    assert set(summary.task_success_rate.values()) == {None}
    assert summary.operation_f1.macro == 1.0


@pytest.mark.parametrize(("ran", "top_k", "expected"), [(True, 50, None), (False, 50, 0.0), (False, None, None)])
def test_recall_without_any_ranking_is_not_known(ran: bool, top_k: int | None, expected: float | None) -> None:
    summary = summary_of([score("a", "1", rank=None)], [said("1", ran=ran)], top_k)
    assert summary.recall_at_k["1"] == expected


def test_figures_do_not_depend_on_how_python_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sum` is compensated from Python 3.12 on: stored results had other digests there."""
    thirds = {f"task {n}": [k / 3 % 1.0 for k in range(n, 3 * n)] for n in range(2, 20)}
    before = aggregate.metric(thirds), aggregate.micro_interval(thirds)
    own = builtins.sum
    monkeypatch.setattr(builtins, "sum", lambda values, start=0: own(values, start) if start else math.fsum(values))
    assert (aggregate.metric(thirds), aggregate.micro_interval(thirds)) == before
