"""Intervals, tests and quantiles against scipy and the slow ones; coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from seeact_offline.scoring import aggregate, inference
from tests.examples import often
from tests.lazily import stats
from tests.reference import paired
from tests.reference import statistics as reference

SHARES = st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=6), min_size=2, max_size=8)
FRACTIONS = st.lists(st.lists(st.sampled_from([0.0, 0.5, 0.8, 1.0]), min_size=1, max_size=6), min_size=2, max_size=8)
DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=9)


def named(values: list[list[float]]) -> dict[str, list[float]]:
    """Task -> values of its steps."""
    return {str(task): steps for task, steps in enumerate(values)}


# --- drawing tasks ---


def test_every_resample_draws_as_many_tasks_as_there_are() -> None:
    drawn = inference.draws(37, 0)
    assert drawn.shape == (inference.RESAMPLES, 37)
    assert (drawn.sum(axis=1) == 37).all()


def test_resamples_are_those_of_numpy_and_of_scipy_on_the_same_draws() -> None:
    means = np.random.default_rng(5).random(23)
    ours = np.quantile(inference.resampled(means, 4), [0.025, 0.975])
    slow = reference.resampled_means(means.tolist(), inference.RESAMPLES, seed=4)
    assert ours == pytest.approx(np.quantile(slow, [0.025, 0.975]), abs=1e-9)
    # scipy draws in one piece what ours draws in chunks, from the same stream
    theirs = stats.bootstrap(
        (means,), np.mean, n_resamples=inference.RESAMPLES, method="percentile", rng=np.random.default_rng(4)
    )
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=1e-9)


def test_several_figures_share_the_draws() -> None:
    means = np.random.default_rng(1).random((30, 2))
    together = inference.resampled(means, 2)
    for column in range(2):
        assert together[:, column] == pytest.approx(inference.resampled(means[:, column], 2))


# --- standard error and effective n ---


@settings(max_examples=often(100))
@given(SHARES)
def test_the_standard_error_is_the_clustered_one(values: list[list[float]]) -> None:
    found = inference.standard_error(aggregate.task_means(values))
    assert found == pytest.approx(reference.clustered_standard_error(values), abs=1e-7)


@settings(max_examples=often(100))
@given(FRACTIONS)
def test_the_standard_error_of_the_micro_average_is_the_clustered_one(values: list[list[float]]) -> None:
    found = aggregate.micro_interval(named(values))
    assert found.se == pytest.approx(reference.clustered_standard_error(values, micro=True), abs=1e-7)


def test_tasks_of_one_step_have_about_as_many_independent_steps() -> None:
    found = aggregate.metric(named([[float(i % 4 == 0)] for i in range(100)]))
    assert found.n_effective == pytest.approx(99)


def test_steps_that_repeat_their_task_add_nothing_to_the_effective_n() -> None:
    short = [[float(i % 2)] for i in range(40)]
    long = [steps * 10 for steps in short]
    assert aggregate.metric(named(long)).n_effective == pytest.approx(aggregate.metric(named(short)).n_effective)


@settings(max_examples=often(100))
@given(SHARES)
def test_the_effective_n_lies_between_tasks_and_steps(values: list[list[float]]) -> None:
    found, n_steps = aggregate.metric(named(values)).n_effective, sum(map(len, values))
    assert found is not None
    assert min(len(values) - 1, n_steps) - 1e-9 <= found <= n_steps + 1e-9


# --- intervals of averages ---


@settings(max_examples=often(100))
@given(FRACTIONS)
def test_averages_have_the_exact_interval_of_as_many_trials_as_have_their_variance(values: list[list[float]]) -> None:
    metric, n_steps = aggregate.metric(named(values)), sum(map(len, values))
    assume(0 < metric.macro < 1)
    n = (
        reference.independent_trials(values)
        * (
            stats.t.ppf(0.975, max(n_steps - 1, reference.degrees_of_freedom(values)))
            / stats.t.ppf(0.975, reference.degrees_of_freedom(values))
        )
        ** 2
    )
    hits = metric.macro * n
    expected = stats.beta.ppf(0.025, hits, n - hits + 1), stats.beta.ppf(0.975, hits + 1, n - hits)
    assert metric.ci95 == pytest.approx(expected, abs=1e-6)
    assert metric.ci95[0] < metric.macro < metric.ci95[1]


def test_tasks_that_are_all_the_same_have_an_interval() -> None:
    low, high = aggregate.metric(named([[0.5, 0.5]] * 14)).ci95
    exact = stats.binomtest(7, 14).proportion_ci(method="exact")
    assert low < 0.3 < 0.7 < high
    assert (low, high) == pytest.approx((exact.low, exact.high), abs=0.05)


def test_few_tasks_of_the_rare_kind_leave_few_degrees_of_freedom() -> None:
    rare = [1.0] * 3 + [0.0] * 97
    assert inference.degrees_of_freedom(np.array(rare)) == pytest.approx(2 * 3, abs=1)
    assert inference.degrees_of_freedom(np.array([0.0, 1.0] * 50)) == 99


def test_the_macro_and_the_micro_average_of_tasks_of_one_length_are_equally_sure() -> None:
    values = named([[float(i % 3 == 0), float(i % 2)] for i in range(20)])
    macro, micro = aggregate.metric(values), aggregate.micro_interval(values)
    assert micro.ci95 == macro.ci95
    assert (micro.se, micro.n_effective, micro.method) == (
        pytest.approx(macro.se), pytest.approx(macro.n_effective), "korn-graubard",
    )  # fmt: skip


# --- intervals of shares ---


def test_korn_graubard_is_clopper_pearson_on_the_shrunk_effective_n() -> None:
    share, n_effective, n_steps, df = 0.08, 70.0, 120, 4.5
    n = n_effective * (stats.t.ppf(0.975, n_steps - 1) / stats.t.ppf(0.975, df)) ** 2
    low = stats.beta.ppf(0.025, share * n, n - share * n + 1)
    high = stats.beta.ppf(0.975, share * n + 1, n - share * n)
    assert inference.korn_graubard(share, n_effective, n_steps, df) == pytest.approx((low, high), abs=1e-9)


def test_korn_graubard_of_independent_steps_is_clopper_pearson() -> None:
    exact = stats.binomtest(7, 20).proportion_ci(method="exact")
    assert inference.korn_graubard(0.35, 20.0, 20, 19) == pytest.approx((exact.low, exact.high), abs=1e-9)


@pytest.mark.parametrize(("hits", "n"), [(0, 14), (1, 14), (7, 30), (177, 177)])
def test_wilson_is_that_of_scipy(hits: int, n: int) -> None:
    theirs = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert inference.wilson(hits / n, n) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@pytest.mark.parametrize("n_tasks", [2, 14, 30, 177])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_nothing_and_everything_take_the_steps_of_a_task_to_be_alike(share: float, n_tasks: int) -> None:
    found = aggregate.metric(named([[share] * 4, [share] * 6] * (n_tasks // 2) + [[share] * 5] * (n_tasks % 2)))
    n = 5 * n_tasks / (1 + 4 * 0.3)
    # Clopper and Pearson of no hit in n trials
    bound = 1 - 0.025 ** (1 / n)
    assert found.ci95 == pytest.approx((0.0, bound) if share == 0 else (1 - bound, 1.0), abs=1e-9)
    assert found.method == "korn-graubard"


def test_one_task_says_nothing() -> None:
    assert aggregate.micro_interval({"t": [1.0, 0.5]}).ci95 == (0.0, 1.0)
    assert inference.wilson(1.0, 1) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("n_tasks", "share"),
    [
        pytest.param(n_tasks, share, marks=[] if (n_tasks, share) == (100, 0.02) else pytest.mark.nightly)
        for n_tasks in (5, 14, 32, 100, 177)
        for share in (0.02, 0.1, 0.4)
    ],
)
def test_intervals_hold_the_truth(n_tasks: int, share: float) -> None:
    """A bootstrap held 2 % over 100 tasks, half alike, in 91 of 100 splits. Exact intervals may hold it in nearly all."""
    rng, splits = np.random.default_rng(n_tasks), 400
    held = 0
    for _ in range(splits):
        values = reference.steps_of_tasks(rng, share, n_tasks, alike=0.5)
        low, high = aggregate.metric({str(i): steps for i, steps in enumerate(values)}).ci95
        held += low <= share <= high
    # 400 splits leave a standard error of 1.1 points; this is one of them below 94 %
    assert held / splits >= 0.929


# --- differences ---


@settings(max_examples=often(60))
@given(DIFFERENCES)
def test_few_tasks_have_every_pattern_of_signs_tried(differences: list[float]) -> None:
    assert inference.sign_flip_p(np.array(differences)) == pytest.approx(paired.sign_flip_p(differences))


def test_many_tasks_come_close_to_every_pattern() -> None:
    differences = np.random.default_rng(3).normal(0.3, 1, 16)
    assert inference.sign_flip_p(differences) == pytest.approx(paired.sign_flip_p(differences.tolist()), abs=0.02)


def test_p_is_never_zero() -> None:
    assert inference.sign_flip_p(np.ones(200)) == 1 / (inference.RESAMPLES + 1)
    assert inference.sign_flip_p(np.ones(5)) == 2 / 2**5


def test_no_difference_anywhere_is_no_sign_of_one() -> None:
    assert inference.sign_flip_p(np.zeros(200)) == 1.0


@settings(max_examples=40)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1 / 3, 1.0]), min_size=1, max_size=8))
def test_the_interval_of_a_difference_inverts_the_test(differences: list[float]) -> None:
    assert inference.sign_flip_intervals([np.array(differences)])[0] == pytest.approx(
        paired.interval(differences), abs=1e-8
    )


@settings(max_examples=20)
@given(st.integers(14, 60), st.integers(0, 99))
def test_the_bounds_are_where_the_random_signs_begin_to_reject(n_tasks: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.1, 0.4, n_tasks)
    # a flip of no sign is among the patterns
    signs = np.vstack([np.ones(n_tasks), inference._signs(n_tasks, seed)[: inference.RESAMPLES]])

    def p(supposed: float) -> float:
        moved = differences - supposed
        return float(np.mean(np.abs(signs @ moved) >= abs(moved.sum()) - 1e-12))

    low, high = inference.sign_flip_intervals([differences], seed)[0] or (0.0, 0.0)
    assert p(low + 1e-6) >= 0.05 > p(low - 1e-6)
    assert p(high - 1e-6) >= 0.05 > p(high + 1e-6)


KINDS_OF_DIFFERENCES = [
    lambda rng, n: rng.choice([-1, 0, 0, 0, 1, 1], n).astype(float),
    lambda rng, n: rng.choice([0, 0, 0, 0.25, 0.5, -0.5, 1], n),
    lambda rng, n: rng.integers(-3, 5, n) / rng.integers(3, 12, n),
    lambda rng, n: rng.normal(0.2, 1, n),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(len(KINDS_OF_DIFFERENCES)))
def test_p_is_below_5_percent_just_where_the_interval_leaves_0_out(kind: int) -> None:
    rng = np.random.default_rng(kind)
    n_parted = n_significant = 0
    for _ in range(800):
        differences = KINDS_OF_DIFFERENCES[kind](rng, int(rng.integers(6, 60)))
        found, raw = inference.gaps([differences])[0], inference.sign_flip_intervals([differences])[0]
        assert found.ci95 is not None
        assert raw is not None
        assert (found.p < 0.05) == (found.ci95[0] > 0 or found.ci95[1] < 0)
        n_significant += found.p < 0.05
        parted = (found.p < 0.05) != (raw[0] > 0 or raw[1] < 0)
        # signs drawn at random alone may part them, and p is near 5 % there
        assert not parted or (len(differences) > inference.EXACT_UP_TO and 0.04 < found.p < 0.06)
        n_parted += parted
    assert n_significant > 50
    assert n_parted < 16


@pytest.mark.parametrize(
    ("moved", "n_tasks", "bound"),
    [([-0.5] * 3 + [0.5] * 4 + [1.0] * 5, 27, 0.0), ([-0.5, 0.5] + [1.0] * 5, 22, 1e-9)],
)
def test_p_decides_at_0_where_random_signs_part_it_from_the_interval(
    moved: list[float], n_tasks: int, bound: float
) -> None:
    # p tries all patterns of the tasks that differ, the interval 10,001 of those of all tasks
    differences = np.array(moved + [0.0] * (n_tasks - len(moved)))
    found, raw = inference.gaps([differences])[0], inference.sign_flip_intervals([differences])[0]
    assert raw is not None
    assert (raw[0] > 0) == (found.p >= 0.05)
    assert found.ci95 == (bound, raw[1])


def test_under_chance_alone_p_is_below_5_percent_5_times_in_100() -> None:
    rng = np.random.default_rng(8)
    below = [inference.sign_flip_p(rng.normal(0, 1, 30), seed) < 0.05 for seed in range(400)]
    assert 0.025 <= np.mean(below) <= 0.075


@settings(max_examples=often(60))
@given(st.lists(st.sampled_from([0.001, 0.01, 0.02, 0.2, 0.9]), max_size=6, unique=True))
def test_holm_equals_the_slow_one(p_values: list[float]) -> None:
    assert inference.holm(p_values) == pytest.approx(paired.holm(p_values))


def test_holm_by_hand() -> None:
    assert inference.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


# --- planning ---


@pytest.mark.slow
def test_a_detectable_difference_is_found_in_four_of_five_tries() -> None:
    sd, n = 0.4, 40
    size = inference.detectable(sd, n)
    assert size is not None
    rng = np.random.default_rng(2)
    found = [stats.ttest_1samp(rng.normal(size, sd, n), 0).pvalue < 0.05 for _ in range(1000)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize("difference", [0.01, 0.05, 0.2, 0.9])
def test_the_tasks_needed_are_the_fewest_that_detect_it(difference: float) -> None:
    n = inference.tasks_to_detect(0.3, difference)
    now, before = inference.detectable(0.3, n), inference.detectable(0.3, n - 1)
    assert now is not None
    assert now <= difference
    assert n == 6 or (before is not None and before > difference)


# --- quantiles ---


@pytest.mark.slow
@settings(max_examples=often(200))
@given(st.floats(0.03, 3000), st.floats(0.03, 3000), st.sampled_from([0.025, 0.2, 0.5, 0.975]))
def test_beta_quantiles_are_those_of_scipy(a: float, b: float, p: float) -> None:
    assert inference.beta_quantile(p, a, b) == pytest.approx(stats.beta.ppf(p, a, b), abs=1e-9)


@pytest.mark.parametrize("df", [1, 2, 3, 13, 29, 176, 5000])
@pytest.mark.parametrize("p", [0.5, 0.8, 0.975])
def test_t_quantiles_are_those_of_scipy(p: float, df: int) -> None:
    assert inference.t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9, abs=1e-12)
