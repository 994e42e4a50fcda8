"""Steps that runs solve together, alone and not at all, against the slow counts."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from seeact_offline.records import StepKey
from seeact_offline.scoring.overlap import Overlap, overlap
from seeact_offline.scoring.paired import ScoredRun, compare_runs, pooled
from tests.examples import often
from tests.reference import agreement, paired
from tests.reference import overlap as slow
from tests.seeact_offline.scoring.test_paired import changed, run_of

CAUSES = ("ranker_miss", "wrong_element", "wrong_value")


def drawn(number: int) -> tuple[list[slow.Step], dict[str, set[slow.Step]], dict[str, list[str]]]:
    """Steps, what each run solves, and why it loses each: tasks of one to four steps, some runs all right or all wrong."""
    rng = random.Random(number)
    steps = [(f"t{task}", i) for task in range(rng.randint(1, 8)) for i in range(rng.randint(1, 4))]
    # tasks mixed, as steps of other data sets are
    rng.shuffle(steps)
    solved, causes = {}, {}
    for name in "abcdef"[: rng.randint(3, 6)]:
        rate = rng.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        solved[name] = {step for step in steps if rng.random() < rate}
        causes[name] = ["success" if step in solved[name] else rng.choice(CAUSES) for step in steps]
    return steps, solved, causes


def of_drawn(number: int) -> Overlap:
    steps, solved, causes = drawn(number)
    keys = [StepKey(task, str(i)) for task, i in steps]
    credits = {name: np.array([float(step in some) for step in steps]) for name, some in solved.items()}
    return overlap("step_success_rate", keys, credits, causes, 0)


@pytest.mark.slow
def test_counts_union_and_kappas_of_300_random_sets_equal_the_slow_ones() -> None:
    for number in range(often(300)):
        steps, solved, causes = drawn(number)
        found = of_drawn(number)
        assert {one.runs: one.steps for one in found.solved_by} == slow.solved_by(solved, steps)
        assert found.solved == {name: len(some) for name, some in solved.items()}
        for name, alone in found.alone.items():
            assert {(task, int(i)) for task, i in alone} == slow.alone(solved, name)
        missed = [row for row, step in enumerate(steps) if not any(step in some for some in solved.values())]
        assert [one.step for one in found.unsolved] == [StepKey(steps[row][0], str(steps[row][1])) for row in missed]
        assert [one.causes for one in found.unsolved] == [tuple(causes[name][row] for name in solved) for row in missed]
        for one in found.causes:
            assert dict(one.by_run) == {name: [causes[name][row] for row in missed].count(one.cause) for name in solved}
            assert one.shared == sum(all(causes[name][row] == one.cause for name in solved) for row in missed)
        assert found.union.macro == pytest.approx(float(slow.union_rate(solved, steps)))
        fails = {name: [step not in some for step in steps] for name, some in solved.items()}
        assert [(pair.first, pair.second) for pair in found.pairs] == [*itertools.combinations(solved, 2)]
        for pair in found.pairs:
            a, b = fails[pair.first], fails[pair.second]
            expected = agreement.kappa(a, b)
            assert pair.kappa.kappa == (None if expected is None else pytest.approx(expected))
            assert (pair.both, pair.only_first, pair.only_second, pair.neither) == tuple(
                Counter(zip(a, b, strict=True))[cell] for cell in ((False, False), (False, True), (True, False), (True, True))
            )  # fmt: skip
            tasks = sorted({task for task, _ in steps})
            gaps = [
                paired.mean([float(step in solved[pair.second]) - float(step in solved[pair.first]) for step in steps if step[0] == task])
                for task in tasks
            ]  # fmt: skip
            assert (pair.gap.macro, pair.gap.p) == pytest.approx((paired.mean(gaps), paired.sign_flip_p(gaps)))
        assert [pair.p_holm for pair in found.pairs] == pytest.approx(paired.holm([pair.gap.p for pair in found.pairs]))
        expected = agreement.fleiss([*zip(*fails.values(), strict=True)])
        assert found.kappa.kappa == (None if expected is None else pytest.approx(expected))


TASKS = [[1.0, 0.0, 1.0], [0.0], [1.0, 1.0], [0.0, 0.0, 0.0, 1.0]]
OTHERS = [[0.0, 0.0, 1.0], [0.0], [1.0, 0.0], [0.0, 0.0, 1.0, 1.0]]


def three() -> list[ScoredRun]:
    """Runs of ten steps: t0_0 is solved by the first alone, t1_0 by none."""
    return [run_of("a", TASKS), run_of("b", OTHERS), run_of("c", OTHERS)]


def test_a_comparison_of_three_runs_names_who_solves_what() -> None:
    found = compare_runs(three()).overlap
    assert [(one.runs, one.steps) for one in found.solved_by] == [(0, 4), (1, 2), (2, 1), (3, 3)]
    assert found.alone == {"a": (StepKey("t0", "0"), StepKey("t2", "1")), "b": (), "c": ()}
    assert found.union.macro == pytest.approx((2 / 3 + 0 + 1 + 2 / 4) / 4)
    assert len(found.pairs) == 3


def test_kappas_and_the_union_have_intervals_over_tasks() -> None:
    third = [[0.0, 1.0, 0.0], [0.0], [0.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
    runs = [run_of(name, tasks * 5) for name, tasks in (("a", TASKS), ("b", OTHERS), ("c", third))]
    found = compare_runs(runs).overlap
    for value, (low, high) in (
        (found.union.macro, found.union.ci95),
        (found.kappa.kappa, found.kappa.ci95),
        *((pair.kappa.kappa, pair.kappa.ci95) for pair in found.pairs),
    ):
        assert low < value < high


def test_a_persons_cause_counts_instead_of_the_computed_one() -> None:
    runs = three()
    key = StepKey("t1", "0")
    runs[0] = changed(runs[0], {key: {"outcome": "wrong_element", "person_cause": "wrong_annotation"}})
    step = next(one for one in compare_runs(runs).overlap.unsolved if one.step == key)
    assert step.causes[0] == "wrong_annotation"


def test_without_elements_a_right_operation_solves_a_step() -> None:
    bare = [changed(run, {key: {"element": None, "success": None} for key in run.steps}) for run in three()]
    found = compare_runs(bare).overlap
    assert (found.metric, found.solved) == ("operation_f1", {"a": 5, "b": 4, "c": 4})


@pytest.mark.parametrize(
    "runs", [three()[:2], [pooled(run.name, [run]) for run in three()]], ids=["two runs", "groups"]
)
def test_two_runs_and_groups_have_no_overlap(runs: list[ScoredRun]) -> None:
    found = compare_runs(runs)
    assert found.overlap is None
    assert "overlap" not in found.to_dict()
    assert "solved by" not in found.report()


def test_the_report_of_three_runs_has_a_table_a_question() -> None:
    report = compare_runs(three()).report()
    for title in (
        "Steps solved by k of 3 runs",
        "Steps solved by one run alone",
        "Steps solved by no run, by cause",
        "All pairs of runs",
    ):
        assert f"## {title}\n" in report
    assert "| a   | 5            | 50.0       | 2           | 20.0       | t0_0, t2_1 |" in report
    assert "| c - b      | +0.0   |" in report


def test_a_row_names_a_few_steps_and_counts_the_others() -> None:
    runs = [run_of("a", [[1.0]] * 9), run_of("b", [[0.0]] * 9), run_of("c", [[0.0]] * 9)]
    assert "| t0_0, t1_0, t2_0, 6 more |" in compare_runs(runs).report()
