"""The picture of `improve` says what it is of."""

from __future__ import annotations

from seeact_offline.training.improvement_report import draw_improvement


def test_a_picture_of_improvement_says_what_it_is_of() -> None:
    figure_of = {"value": 0.5, "ci95": None}
    tests = {"cross_task": {"model": {"n_steps": 6, "n_tasks": 3, "step_success_rate": figure_of}}}
    explored = {"exploration": {"n_steps": 8, "n_tasks": 4, "s_at": [figure_of]}}
    results = {
        "dataset": "sample", "test_data": "my/tests", "attempts": 1,
        "cycles": [{"cycle": 0, "tests": tests}, {"cycle": 1, "tests": tests, **explored}],
    }  # fmt: skip
    assert draw_improvement(results).get_suptitle() == (
        "bundled sample (fictional websites), train: 8 steps of 4 tasks; my/tests, cross_task: 6 steps of 3 tasks"
    )
