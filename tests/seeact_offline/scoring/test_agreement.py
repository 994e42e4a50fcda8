"""Kappas, and two people's answers against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.records import OPERATIONS, StepKey
from seeact_offline.scoring.agreement import ElementLabel, agreement, cohen_kappa, differ, fleiss_kappa
from seeact_offline.scoring.inference import draws
from tests.reference.agreement import fleiss, kappa, resampled_kappas

meanings = st.builds(ElementLabel, st.sampled_from([None, "1", "2"]), st.sampled_from(["", *OPERATIONS]), st.just(""))
answered = st.lists(st.tuples(st.integers(0, 3), meanings, meanings), min_size=1, max_size=12)


def of(pairs) -> tuple[dict[StepKey, ElementLabel], dict[StepKey, ElementLabel]]:
    """Two people's answers from (task, one's, the other's)."""
    keys = [StepKey(f"t{task}", f"s{i}") for i, (task, _, _) in enumerate(pairs)]
    return dict(zip(keys, (a for _, a, _ in pairs), strict=True)), dict(
        zip(keys, (b for _, _, b in pairs), strict=True)
    )


def labels(answers: dict[StepKey, ElementLabel], name: str) -> list[object]:
    if name == "operation":
        return [meant.op for meant in answers.values()]
    if name == "found":
        return [meant.element_id is None for meant in answers.values()]
    return [(key, meant.element_id) if meant.element_id else "none" for key, meant in answers.items()]


labelled = st.sampled_from([True, False, "x", None, ("a", 1)])


@given(st.lists(st.tuples(labelled, labelled), min_size=1, max_size=20))
def test_cohens_kappa_is_that_of_its_definition(pairs) -> None:
    a, b = zip(*pairs, strict=True)
    wanted = kappa(a, b)
    assert cohen_kappa(a, b) == (None if wanted is None else pytest.approx(wanted, abs=1e-9))


@given(
    st.integers(2, 5).flatmap(lambda n: st.lists(st.lists(st.sampled_from("abc"), min_size=n, max_size=n), min_size=1))
)
def test_fleiss_kappa_is_that_of_its_definition(items: list[list[str]]) -> None:
    wanted = fleiss(items)
    found = fleiss_kappa([[labels.count(one) for one in "abc"] for labels in items])
    assert found == (None if wanted is None else pytest.approx(wanted, abs=1e-9))


def test_fleiss_kappa_of_the_published_example() -> None:
    """Of 14 judges and 10 subjects, 0.210 (Wikipedia's table)."""
    table = [[0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1], [7, 7, 0, 0, 0], [3, 2, 6, 3, 0],
             [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]]  # fmt: skip
    assert fleiss_kappa(table) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: cohen_kappa([1], [1, 0]), "as many labels"),
        (lambda: fleiss_kappa([[1, 1], [2, 1]]), "got 3 of item 1"),
        (lambda: fleiss_kappa([[1, 0]]), "got 1 of item 0"),
        (lambda: fleiss_kappa([2, 0]), "shape"),
        (lambda: fleiss_kappa([[2, 0], [2]]), "as many of each item"),
        (lambda: fleiss_kappa([[float("nan"), 2]]), "expected counts"),
    ],
)
def test_kappas_refuse_what_they_cannot_count(call, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        call()


def test_nothing_to_agree_on_has_no_kappa() -> None:
    assert (cohen_kappa([], []), fleiss_kappa([]), cohen_kappa([1, 1], [1, 1])) == (None, None, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["element", "found", "operation"])
@given(pairs=answered)
def test_kappa_is_that_of_its_definition(name: str, pairs) -> None:
    first, second = of(pairs)
    found, wanted = getattr(agreement(first, second), name), kappa(labels(first, name), labels(second, name))
    assert found.kappa == (None if wanted is None else pytest.approx(wanted))


@pytest.mark.slow
@given(answered)
def test_who_is_first_does_not_matter(pairs) -> None:
    first, second = of(pairs)
    one, other = agreement(first, second), agreement(second, first)
    assert one.disagreements == other.disagreements
    for name in ("element", "found", "operation"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a.agreement, a.kappa) == (b.agreement, b.kappa if b.kappa is None else pytest.approx(b.kappa))


def test_the_interval_is_that_of_tasks_drawn_with_their_steps() -> None:
    pairs = [(0, ElementLabel("1"), ElementLabel("1")), (0, ElementLabel(None), ElementLabel("1")), (1, ElementLabel("2"), ElementLabel("2")),
             (1, ElementLabel(None), ElementLabel(None)), (2, ElementLabel("1"), ElementLabel("2")), (2, ElementLabel("1"), ElementLabel("1"))]  # fmt: skip
    first, second = of(pairs)
    tasks: list[list[tuple[object, object]]] = [[], [], []]
    for (task, _, _), a, b in zip(pairs, labels(first, "element"), labels(second, "element"), strict=True):
        tasks[task].append((a, b))
    kappas = [one for one in resampled_kappas(tasks, draws(3, 0).tolist()) if one is not None]
    assert agreement(first, second).element.ci95 == pytest.approx(np.quantile(kappas, [0.025, 0.975]), abs=1e-8)


def test_steps_of_one_alone_are_in_no_figure() -> None:
    first, second = of([(0, ElementLabel("1"), ElementLabel("1")), (1, ElementLabel("1"), ElementLabel("2"))])
    alone = StepKey("t9", "s9")
    found = agreement(first | {alone: ElementLabel("1")}, second | {StepKey("t8", "s8"): ElementLabel("1")})
    assert (found.n_both, found.n_tasks, found.element.agreement) == (2, 2, 0.5)


def test_no_common_step_has_no_figures() -> None:
    found = agreement({StepKey("t", "a"): ElementLabel("1")}, {StepKey("t", "b"): ElementLabel("1")})
    assert (found.n_both, found.element, found.found, found.operation, found.disagreements) == (0, None, None, None, ())


def test_one_task_has_no_interval() -> None:
    assert agreement(*of([(0, ElementLabel("1"), ElementLabel("2"))])).element.ci95 is None


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (ElementLabel("1", "TYPE", "New York"), ElementLabel("1", "TYPE", " new  york"), False),
        (ElementLabel("1", "TYPE", "New York"), ElementLabel("1", "TYPE", "York"), True),
        (ElementLabel("1", "TYPE", "x"), ElementLabel("1", "CLICK", "x"), True),
        (ElementLabel(None), ElementLabel("1"), True),
    ],
)
def test_answers_differ_by_element_operation_or_value(one: ElementLabel, other: ElementLabel, wanted: bool) -> None:
    assert differ(one, other) is wanted
    found = agreement(*of([(0, one, other)]))
    assert bool(found.disagreements) is wanted
