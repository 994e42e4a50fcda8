"""The variance of a figure by tasks, seeds and the rest, and the numbers that a wanted difference needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.scoring.noise import Parts, difference_noise, figure_noise, parts_of, seeds_needed, tasks_needed
from seeact_offline.scoring.paired import compare_runs
from tests.reference import paired
from tests.seeact_offline.scoring.test_paired import TASKS, group, run_of

Z = 1.959964 + 0.841621
"""Standard errors between 0 and a difference that is found in four of five comparisons."""
SEEDS = (
    TASKS,
    [[0.0, 0.0, 1.0], [1.0], [1.0, 0.0], [0.0, 0.0, 0.0, 1.0]],
    [[1.0, 1.0, 1.0], [0.0], [0.0, 1.0], [0.0] * 4],
)
tables = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=n, max_size=n), min_size=2, max_size=7)
)


@given(tables)
def test_parts_equal_those_of_the_textbook(table: list[list[float]]) -> None:
    found = parts_of(np.array(table))
    assert (found.tasks, found.seeds, found.rest) == pytest.approx(paired.crossed_parts(table), abs=1e-12)


def drawn(rng: np.random.Generator, tasks: float, seeds: float, rest: float, shape: tuple[int, int]) -> np.ndarray:
    n_tasks, n_seeds = shape
    return rng.normal(0, tasks, (n_tasks, 1)) + rng.normal(0, seeds, n_seeds) + rng.normal(0, rest, shape)


def test_parts_are_those_that_were_put_in() -> None:
    found = parts_of(drawn(np.random.default_rng(0), 0.3, 0.2, 0.1, (400, 300)))
    assert (found.tasks, found.seeds, found.rest) == pytest.approx((0.09, 0.04, 0.01), rel=0.15)


def test_the_variance_of_a_figure_is_that_of_many_drawn_figures() -> None:
    rng = np.random.default_rng(1)
    figures = [drawn(rng, 0.3, 0.05, 0.2, (20, 1)).mean() for _ in range(20_000)]
    assert Parts(0.09, 0.0025, 0.04).of_mean(20, 1) == pytest.approx(np.var(figures), rel=0.05)


@pytest.mark.parametrize("parts", [Parts(0.05, 0.0001, 0.03), Parts(0.0, 0.0002, 0.02), Parts(0.1, 0.0, 0.0)])
def test_the_number_needed_is_the_least_that_is_enough(parts: Parts) -> None:
    def finds(variance: float) -> bool:
        return Z * variance**0.5 * (1 - 1e-6) <= 0.05

    n = tasks_needed(parts, 0.05)
    assert n is not None
    assert (finds(parts.of_mean(n, 1)), finds(parts.of_mean(n - 1, 1))) == (True, False)
    seeds = seeds_needed(parts, 1000, 0.05)
    assert seeds is not None
    assert finds(parts.of_mean(1000, seeds))
    assert seeds == 1 or not finds(parts.of_mean(1000, seeds - 1))


def test_no_number_helps_where_the_other_source_is_too_much_alone() -> None:
    assert tasks_needed(Parts(0.05, 0.01, 0.03), 0.05) is None
    assert seeds_needed(Parts(0.05, 0.01, 0.03), 20, 0.05) is None


def test_runs_that_do_not_vary_need_one_seed() -> None:
    found = figure_noise("step_success_rate", ("a", "b"), np.ones((5, 2)), 0.05)
    assert (found.tasks, found.seeds, found.rest, found.seeds_needed) == (0.0, 0.0, 0.0, 1)


def test_the_tasks_part_of_a_difference_is_what_the_rest_does_not_explain() -> None:
    rng = np.random.default_rng(2)
    shape, shared = (600, 5), rng.normal(0, 0.4, (600, 1))
    ours = shared + drawn(rng, 0.0, 0.0, 0.1, shape)
    theirs = shared + drawn(rng, 0.2, 0.0, 0.1, shape)
    found = difference_noise("step_success_rate", "a", "b", ours, theirs, 0.05)
    # what both methods have in common cancels
    assert (600 * found.tasks, 600 * found.rest) == pytest.approx((0.04, 2 * 0.01 / 5), rel=0.2)
    assert found.tasks_needed == pytest.approx(((0.04 + 0.004) * Z**2 / 0.05**2), rel=0.2)


def test_a_comparison_of_groups_says_where_the_noise_is_and_how_much_it_takes() -> None:
    found = compare_runs([group("a", *SEEDS), group("b", *SEEDS[::-1], identity="other")], detect=10)
    noise = next(one for one in found.noise if (one.metric, one.runs[0]) == ("step_success_rate", "a1"))
    means = [[paired.mean(seed[task]) for seed in SEEDS] for task in range(4)] * 4
    tasks, seeds, rest = paired.crossed_parts(means)
    assert (noise.tasks, noise.seeds, noise.rest) == pytest.approx((tasks / 16, seeds, rest / 16))
    assert [(one.metric, one.second) for one in found.difference_noise] == [(metric, "b") for metric in found.figures]
    report = found.report()
    assert "## Order and noise: the variance of a figure" in report
    assert "tasks for 10 points" in report


def test_plain_runs_of_one_method_have_their_noise_split_and_others_none() -> None:
    alike = [replace(run_of(name, tasks), identity="same") for name, tasks in zip("abc", SEEDS, strict=True)]
    assert {one.runs for one in compare_runs(alike).noise} == {("a", "b", "c")}
    others = compare_runs([run_of("a", SEEDS[0]), run_of("b", SEEDS[1])])
    assert (others.noise, others.difference_noise) == ((), ())
    assert "Order and noise" not in others.report()
    assert "noise" not in others.to_dict()


def test_a_group_of_more_than_seeds_has_no_noise_of_a_difference() -> None:
    found = compare_runs([group("a", *SEEDS), group("b", TASKS, TASKS, identity="")])
    assert found.difference_noise == ()


def test_the_interval_of_the_seeds_part_holds_the_truth() -> None:
    """Of a part cut at 0 the estimate is 0 in half of all splits, whatever the truth."""
    rng, held, n_splits, sd = np.random.default_rng(4), 0, 400, 0.02
    for _ in range(n_splits):
        means = rng.normal(0.5, 0.2, (30, 1)) + rng.normal(0, sd, 4) + rng.normal(0, 0.1, (30, 4))
        low, high = parts_of(means).seeds_ci95
        held += low <= sd**2 <= high
    assert 0.92 <= held / n_splits <= 0.98
