"""Runs against each other: differences against the slow ones, ties, what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seeact_offline.records import InputError, StepKey
from seeact_offline.scoring import aggregate, inference
from seeact_offline.scoring.comparison import Comparison
from seeact_offline.scoring.paired import BREAKDOWNS, ScoredRun, compare_runs, pooled, split_variance
from seeact_offline.scoring.results import StepRow, TargetEntry
from tests.reference import paired

CREDIT = st.sampled_from([0.0, 0.5, 1.0])
PAIRS = st.lists(st.lists(st.tuples(CREDIT, CREDIT), min_size=1, max_size=4), min_size=2, max_size=8)
TASKS = [[1.0, 0.0, 1.0], [0.0], [1.0, 1.0], [0.0, 0.0, 0.0, 1.0]]


def step(task: str, number: int, credit: float | None, **more) -> StepRow:
    values = {"element": credit, "operation_f1": credit, "success": credit} | more
    return StepRow(task, str(number), **{"outcome": "success", "target": TargetEntry("CLICK")} | values)


def run_of(name: str, tasks: Sequence[Sequence[float | None]], **more) -> ScoredRun:
    steps = [step(f"t{t}", i, credit, **more) for t, credits in enumerate(tasks) for i, credit in enumerate(credits)]
    return ScoredRun(name, "seeact", {one.key: one for one in steps})


def changed(run: ScoredRun, changes: Mapping[StepKey, Mapping[str, object]]) -> ScoredRun:
    return replace(
        run, steps={key: msgspec.structs.replace(one, **changes.get(key, {})) for key, one in run.steps.items()}
    )


def two(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], **options) -> Comparison:
    return compare_runs([run_of("a", ours), run_of("b", theirs)], **options)


# --- differences ---


@settings(max_examples=20)
@given(PAIRS)
def test_a_difference_equals_the_slow_one(pairs: list[list[tuple[float, float]]]) -> None:
    ours, theirs = ([[pair[side] for pair in steps] for steps in pairs] for side in (0, 1))
    found = two(ours, theirs).pairs[0]
    gaps = [paired.mean(b) - paired.mean(a) for a, b in zip(ours, theirs, strict=True)]
    assert found.gap.macro == pytest.approx(paired.macro(theirs) - paired.macro(ours))
    assert (found.gap.ci95 is None) == (len(pairs) < 6)
    assert found.gap.ci95 == pytest.approx(paired.interval(gaps), abs=1e-8)
    assert found.gap.p == pytest.approx(paired.sign_flip_p(gaps))


def test_a_difference_is_the_other_run_minus_the_first_in_numbers_and_headings() -> None:
    found = two([[0.0]] * 6, [[1.0]] * 6, by=["operation"])
    assert [pair.gap.macro for pair in found.pairs] == [1.0, 1.0, 1.0]
    assert found.breakdowns["operation"][0].gaps["step_success_rate"]["b"].macro == 1.0
    report = found.report()
    assert "## b against a, the baseline" in report
    assert "## Differences: other run minus a\n" in report
    assert report.count("| b - a ") == 3 + 1
    assert "a - b" not in report
    assert [found.pairs[0].first_better, found.pairs[0].second_better] == [0, 6]


def test_turning_the_runs_round_turns_the_difference_round() -> None:
    ours, theirs = TASKS * 4, [[0.0, 0.0, 1.0], [1.0], [0.0, 1.0], [0.0, 1.0, 0.0, 0.0]] * 4
    there, back = two(ours, theirs).pairs[0].gap, two(theirs, ours).pairs[0].gap
    assert (back.macro, back.p) == pytest.approx((-there.macro, there.p))
    assert back.ci95 == pytest.approx((-there.ci95[1], -there.ci95[0]), abs=1e-8)


def test_the_order_of_steps_in_a_file_changes_nothing() -> None:
    a, b = run_of("a", TASKS), run_of("b", [[0.0] * len(steps) for steps in TASKS])
    shuffled = replace(b, steps=dict(reversed(b.steps.items())))
    assert compare_runs([a, shuffled]) == compare_runs([a, b])


def test_fewer_than_six_tasks_have_no_interval_and_say_why() -> None:
    five, six = ([[1.0, 1.0]] * n for n in (5, 6))
    assert two(five, [[0.0, 0.0]] * 5).pairs[0].gap.ci95 is None
    assert two(six, [[0.0, 0.0]] * 6).pairs[0].gap.ci95 == (-1.0, -1.0)
    report = two(TASKS, TASKS, by=["operation"]).report()
    assert report.count("-, fewer than 6 tasks") == 3 + 2 + 1


def test_p_is_adjusted_for_the_runs_compared() -> None:
    base = [[1.0]] * 10
    runs = [run_of("a", base), run_of("b", [[0.0]] * 7 + [[1.0]] * 3), run_of("c", [[0.0]] * 2 + [[1.0]] * 8)]
    pairs = [pair for pair in compare_runs(runs).pairs if pair.metric == "step_success_rate"]
    assert [pair.p_holm for pair in pairs] == pytest.approx([2 * 2 / 2**7, 2 / 2**2])


def test_what_could_be_found_and_how_many_tasks_would_find_it() -> None:
    theirs = [[0.0, 0.0, 1.0], [1.0], [0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
    comparison = two(TASKS * 2, theirs * 2, detect=10.0)
    found, sd = comparison.pairs[0], float(np.std([1 / 3, -1.0, 0.5, 0.0] * 2, ddof=1))
    assert found.detectable == pytest.approx(inference.detectable(sd, 8))
    assert found.tasks_needed == inference.tasks_to_detect(sd, 0.1)
    assert f" about {found.tasks_needed} " in comparison.report()


@pytest.mark.parametrize(("n_tasks", "n_differ", "known"), [(5, 5, False), (40, 5, False), (6, 6, True), (40, 6, True)])
def test_where_fewer_than_six_tasks_differ_what_could_be_found_is_not_known(
    n_tasks: int, n_differ: int, known: bool
) -> None:
    ours = [[1.0, float(i % 2)] if i < n_differ else [0.0, 0.0] for i in range(n_tasks)]
    found = two(ours, [[0.0, 0.0]] * n_tasks).pairs[0]
    assert (found.detectable is not None, found.tasks_needed is not None) == (known, known)
    report = two(ours, [[0.0, 0.0]] * n_tasks).report()
    assert ("detectable" in report, "tasks for 5 points" in report) == (known, known)


def test_runs_that_do_not_differ_say_nothing_of_what_could_be_found() -> None:
    found = two(TASKS, TASKS).pairs[0]
    assert (found.gap.p, found.detectable, found.tasks_needed) == (1.0, None, None)


# --- ties ---


def test_ties_are_counted_and_do_not_move_p() -> None:
    ours, theirs = [[1.0, 0.0]] * 6, [[0.0, 0.0]] * 6
    tied = [[1.0, 0.0, 0.5]] * 50
    short, long = two(ours, theirs).pairs[0], two([*ours, *tied], [*theirs, *tied]).pairs[0]
    assert (long.same, long.first_better, long.second_better, long.n_tasks_that_differ) == (6 + 150, 6, 0, 6)
    assert long.gap.p == short.gap.p == 2 / 2**6


def test_a_constant_answer_has_nothing_beyond_itself() -> None:
    constant = run_of("constant", [[1.0, 1.0, 0.0], [1.0, 0.0]])
    ops = {key: {"target": TargetEntry("CLICK" if one.operation_f1 else "TYPE")} for key, one in constant.steps.items()}
    constant, perfect = changed(constant, ops), changed(run_of("perfect", [[1.0] * 3, [1.0] * 2]), ops)
    found = compare_runs([constant, perfect])
    assert found.always_click.macro == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert (found.over_always_click["constant"].macro, found.over_always_click["constant"].p) == (0.0, 1.0)
    assert found.over_always_click["perfect"].macro == pytest.approx(1 - found.always_click.macro)


def test_rows_that_cannot_be_told_from_the_best_are_tied_with_it() -> None:
    best, near, far = [[1.0]] * 20, [[1.0]] * 19 + [[0.0]], [[0.0]] * 20
    found = compare_runs([run_of("far", far), run_of("near", near), run_of("best", best)])
    assert found.best["step_success_rate"] == "best"
    assert found.tied["step_success_rate"] == ("near",)


# --- what is compared ---


def test_other_steps_are_refused_by_number_and_name() -> None:
    with pytest.raises(InputError, match=r"a has 1 of 10 steps .* such as t3_3"):
        compare_runs([run_of("a", TASKS), run_of("b", [*TASKS[:3], TASKS[3][:3]])])


def test_steps_that_only_the_second_has_are_refused_too() -> None:
    with pytest.raises(InputError, match=r"b has 4 of 10 steps .* such as t3_0"):
        compare_runs([run_of("a", TASKS[:3]), run_of("b", TASKS)])


def test_with_intersect_the_shared_steps_are_compared() -> None:
    found = compare_runs([run_of("a", TASKS), run_of("b", TASKS[:3])], intersect=True)
    assert (found.n_tasks, found.n_steps, found.dropped) == (3, 6, {"a": 4, "b": 0})
    assert found.figures["step_success_rate"]["a"].macro == pytest.approx(paired.macro(TASKS[:3]))


def test_no_shared_step_is_refused() -> None:
    other = run_of("b", TASKS)
    moved = {StepKey("x", str(i)): one for i, one in enumerate(other.steps.values())}
    with pytest.raises(InputError, match="steps in common"):
        compare_runs([run_of("a", TASKS), replace(other, steps=moved)], intersect=True)


def test_other_protocols_are_refused() -> None:
    with pytest.raises(InputError, match=r"several protocols .*b under mindact\); score RUN --protocol NAME"):
        compare_runs([run_of("a", TASKS), replace(run_of("b", TASKS), protocol="mindact")])


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"by": ["colour"]}, "by"), ({"detect": 0.0}, "detect"), ({"detect": float("nan")}, "detect")],
)
def test_wrong_options_are_refused_by_name(options: dict[str, object], argument: str) -> None:
    with pytest.raises(InputError) as refused:
        two(TASKS, TASKS, **options)
    assert refused.value.argument == argument


def test_a_figure_that_a_run_lacks_is_not_compared() -> None:
    bare = replace(run_of("b", TASKS))
    bare = changed(bare, {key: {"element": None, "success": None} for key in bare.steps})
    assert set(compare_runs([run_of("a", TASKS), bare]).figures) == {"operation_f1"}


def test_figures_that_a_run_itself_gives_otherwise_are_named() -> None:
    macro = paired.macro(TASKS)
    own = replace(run_of("a", TASKS), headline={"step_success_rate": macro})
    other = replace(run_of("b", TASKS), headline={"step_success_rate": macro + 0.01})
    assert compare_runs([own, other]).averaged_otherwise == ("b",)


# --- breakdowns ---


@pytest.mark.parametrize(
    ("name", "field", "labels"),
    [
        ("difficulty", "n_actions", {0: "not known", 1: "1-4", 4: "1-4", 5: "5-9", 9: "5-9", 10: "10-18", 18: "10-18", 19: "above 18"}),
        ("history", "n_before", {0: "0", 1: "1-2", 2: "1-2", 3: "3-5", 10: "6-10", 11: "above 10"}),
        ("candidates", "n_candidates", {0: "not known", 100: "1-100", 101: "101-250", 1000: "501-1000", 1001: "above 1000"}),
    ],
)  # fmt: skip
def test_bands_end_where_they_say(name: str, field: str, labels: dict[int, str]) -> None:
    assert {n: BREAKDOWNS[name].label(step("t", 0, 1.0, **{field: n})) for n in labels} == labels


def test_a_cell_is_the_comparison_of_its_steps_alone() -> None:
    ours, theirs = run_of("a", TASKS), run_of("b", [[0.0] * len(steps) for steps in TASKS])
    ops = {key: {"target": TargetEntry("TYPE" if key.action_uid == "0" else "CLICK")} for key in ours.steps}
    cells = compare_runs([changed(ours, ops), changed(theirs, ops)], by=["operation"]).breakdowns["operation"]
    assert [(cell.label, cell.n_tasks, cell.n_steps) for cell in cells] == [("CLICK", 3, 6), ("TYPE", 4, 4)]
    alone = two([[steps[0]] for steps in TASKS], [[0.0]] * 4)
    assert cells[1].gaps["step_success_rate"]["b"] == alone.pairs[2].gap
    assert cells[1].figures["step_success_rate"]["a"] == pytest.approx(alone.figures["step_success_rate"]["a"].macro)


# --- repeats ---


def test_variance_parts_equal_those_of_the_textbook() -> None:
    credit = np.random.default_rng(6).random((5, 4, 3)) + np.arange(5)[:, None, None] / 3
    found = split_variance(credit.reshape(20, 3), np.repeat(np.arange(5), 4))
    assert (found.tasks, found.steps, found.repeats) == pytest.approx(paired.variance_parts(credit.tolist()))


def test_variance_parts_are_those_that_were_put_in() -> None:
    rng = np.random.default_rng(7)
    task_of = np.repeat(np.arange(400), rng.integers(3, 16, 400))
    credit = (
        rng.normal(0, 0.3, 400)[task_of][:, None]
        + rng.normal(0, 0.5, (len(task_of), 1))
        + rng.normal(0, 0.2, (len(task_of), 3))
    )
    found = split_variance(credit, task_of)
    assert (found.tasks, found.steps, found.repeats) == pytest.approx((0.09, 0.25, 0.04), rel=0.15)


def test_runs_of_one_identity_are_repeats_of_each_other() -> None:
    again = [replace(run_of(name, TASKS), identity="same") for name in ("a", "b")]
    found = compare_runs([*again, replace(run_of("c", TASKS), identity="other"), run_of("d", TASKS)])
    assert {one.runs for one in found.repeats} == {("a", "b")}
    assert {one.variance.repeats for one in found.repeats} == {0.0}


# --- groups ---

SEEDS = ([[1.0, 0.0], [0.0]], [[1.0, 1.0], [0.0]], [[0.0, 0.0], [1.0]])
"""The credit of two tasks under three seeds."""


def group(name: str, *seeds: Sequence[Sequence[float]], identity: str = "same", times: int = 4) -> ScoredRun:
    runs = [run_of(f"{name}{n}", [*credits] * times) for n, credits in enumerate(seeds, 1)]
    return pooled(name, [replace(run, identity=identity) for run in runs])


def test_a_group_is_compared_as_the_mean_of_its_runs_over_tasks() -> None:
    found = compare_runs([group("a", *SEEDS), group("b", [[1.0, 1.0], [1.0]])])
    pair, figure = found.pairs[-1], found.figures["step_success_rate"]["a"]
    means = [[2 / 3, 1 / 3], [1 / 3]] * 4
    assert figure == aggregate.metric({f"t{n}": steps for n, steps in enumerate(means)})
    assert pair.gap.macro == pytest.approx(1 - figure.macro)
    assert pair.gap.p == pytest.approx(paired.sign_flip_p([1 - paired.mean(steps) for steps in means]))
    assert (found.n_tasks, found.n_steps) == (8, 12)


def test_the_spread_of_a_groups_runs_stands_in_a_column() -> None:
    found = compare_runs([group("a", *SEEDS), group("b", [[1.0, 1.0], [1.0]])])
    macros = [paired.macro([*seed] * 4) for seed in SEEDS]
    assert found.sd["step_success_rate"] == {"a": pytest.approx(np.std(macros, ddof=1)), "b": None}
    assert found.groups == {"a": ("a1", "a2", "a3"), "b": ("b1",)}
    report = found.report()
    header = next(line for line in report.splitlines() if line.startswith("| metric"))
    assert [cell.strip() for cell in header.split("|")[6:9]] == ["standard error", "sd", "runs"]
    assert "a: a1, a2, a3." in report
    assert {one.runs for one in found.repeats} == {("a1", "a2", "a3")}


def test_a_group_of_more_than_seeds_says_so() -> None:
    runs = [replace(run_of(f"a{n}", TASKS), identity=str(n)) for n in (1, 2)]
    found = compare_runs([pooled("a", runs), group("b", TASKS, times=1)])
    assert (found.mixed, found.repeats) == (("a",), ())
    assert "a: a1, a2, which differ in more than their seed." in found.report()


@pytest.mark.parametrize(
    ("other", "expected"),
    [(run_of("b", TASKS[:3]), "steps that another run lacks"), (replace(run_of("b", TASKS), protocol="mindact"), "under several protocols")],
)  # fmt: skip
def test_a_group_of_other_steps_or_protocols_is_refused(other: ScoredRun, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        pooled("a", [run_of("a", TASKS), other])


# --- for people ---


def test_names_of_runs_and_sites_are_shown_as_text() -> None:
    a, b = run_of("<b>a|b", TASKS, website="[x](y)|"), run_of("`b`", TASKS, website="[x](y)|")
    report = compare_runs([a, b], by=["website"]).report()
    assert "<b>" not in report
    assert "[x](y)" not in report
    rows = [line for line in report.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_the_same_runs_give_the_same_bytes() -> None:
    theirs = [[0.0] * len(steps) for steps in TASKS]
    assert two(TASKS, theirs).report() == two(TASKS, theirs).report()
    many = [two(TASKS * 5, theirs * 5, seed=seed).pairs[0].gap.ci95 for seed in (0, 1)]
    assert many[0] == pytest.approx(many[1], abs=0.1)
    assert many[0] != many[1]
