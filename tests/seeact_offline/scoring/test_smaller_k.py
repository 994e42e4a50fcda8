"""What a smaller k would have allowed and cost, from one run with a larger one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from seeact_offline.records import Prediction, StepKey, Truth, Usage
from seeact_offline.scoring.averaging import Averages
from seeact_offline.scoring.smaller_k import ranker_budget

SETTINGS = {"top_k": 50, "group_size": 17, "merge": "final-round"}
PAID = Usage(6, 3000, 60, 0, 0.3)


def average(values: Sequence[float]) -> Averages:
    mean = sum(values) / len(values)
    return Averages(mean, mean)


def ranked(n: int, right: int | None, usage: Usage = PAID) -> tuple[Prediction, Truth]:
    """A step with n candidates offered, of which that at place `right` is a positive."""
    key = StepKey("t", f"{n}-{right}")
    positives = frozenset() if right is None else frozenset({str(right)})
    nodes = tuple(map(str, range(n)))
    return Prediction(*key, None, "", "", ranked=nodes, usage=usage), Truth(
        *key, op="CLICK", value="", positives=positives
    )


def budgets(steps: Sequence[tuple[Prediction, Truth]], **settings: Any) -> dict[int, dict[str, Any]] | None:
    predictions, truths = zip(*steps, strict=True)
    made = ranker_budget(predictions, truths, SETTINGS | settings, average)
    return None if made is None else {one["k"]: one for one in made}


def test_the_bound_is_the_share_of_steps_with_a_right_element_among_the_k_best() -> None:
    made = budgets([ranked(50, 0), ranked(50, 5), ranked(50, 29), ranked(50, None), ranked(50, 60)])
    assert made is not None
    assert {k: one["bound"]["macro"] for k, one in made.items()} == {5: 0.2, 10: 0.4, 20: 0.4, 30: 0.6, 50: 0.6}


def test_cost_goes_by_the_groups_that_so_many_candidates_make() -> None:
    made = budgets([ranked(50, 0)])
    assert made is not None
    # a first group of 16, then 17s: 5 and 10 are one group, 20 is 16 and 4, 30 is 16 and 14, 50 is 16, 17 and 17
    assert {k: one["groups"] for k, one in made.items()} == {5: 1, 10: 1, 20: 2, 30: 2, 50: 3}
    assert {k: one["calls"] for k, one in made.items()} == {5: 2, 10: 2, 20: 4, 30: 4, 50: 6}
    assert (made[20]["prompt_tokens"], made[20]["cost_usd"]) == (2000, pytest.approx(0.2))


def test_a_lone_candidate_that_no_group_holds_costs_what_it_did() -> None:
    made = budgets([ranked(1, 0), ranked(50, 0)], group_size=20)
    assert made is not None
    assert {k: (one["groups"], one["calls"]) for k, one in made.items()} == {
        5: (1, 8), 10: (1, 8), 20: (1, 8), 30: (2, 10), 50: (3, 12),
    }  # fmt: skip


def test_at_the_runs_own_k_it_is_what_the_run_paid() -> None:
    steps = [ranked(50, 0), ranked(40, 1), ranked(3, 1), (replace(ranked(0, None)[0]), ranked(0, None)[1])]
    made = budgets(steps)
    assert made is not None
    assert (made[50]["calls"], made[50]["prompt_tokens"]) == (24, 12_000)
    assert made[50]["cost_usd"] == pytest.approx(1.2)


def test_a_short_page_costs_no_less_with_a_smaller_k_that_still_holds_it() -> None:
    made = budgets([ranked(10, 0)])
    assert made is not None
    assert made[10] | {"k": 50} == made[50]


def test_a_single_group_stays_one() -> None:
    made = budgets([ranked(50, 0)], merge="single")
    assert made is not None
    assert {one["groups"] for one in made.values()} == {1}


def test_a_price_that_is_not_known_stays_so() -> None:
    made = budgets([ranked(50, 0), ranked(50, 0, replace(PAID, cost_usd=None))])
    assert made is not None
    assert made[5]["cost_usd"] is None


def test_no_k_beyond_the_runs_is_told_of() -> None:
    made = budgets([ranked(20, 0)], top_k=20)
    assert made is not None
    assert list(made) == [5, 10, 20]


@pytest.mark.parametrize("settings", [{"top_k": 9}, {"top_k": None}, {"merge": None}, {"group_size": None}])
def test_a_run_that_ranked_little_or_nothing_has_no_budget(settings: dict[str, Any]) -> None:
    assert budgets([ranked(9, 0)], **settings) is None


def test_a_run_without_ranks_has_no_budget() -> None:
    assert budgets([ranked(0, None)]) is None
