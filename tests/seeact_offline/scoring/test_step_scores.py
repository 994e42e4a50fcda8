"""One step under each protocol, its first cause of loss, and the spread over merge rules."""

from __future__ import annotations

import pytest

from seeact_offline.records import Box, Prediction, Reply, StepKey, Truth
from seeact_offline.scoring import step_scores as scoring
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.protocols import PROTOCOLS, find_protocol

KEY = StepKey("task", "step")
TRUTH = Truth(*KEY, op="TYPE", value="new york", positives=frozenset({"1", "2"}))


def predicted(
    element: str | None = "1", op: str = "TYPE", value: str = "new york", ranked=("9", "1"), **more
) -> Prediction:
    return Prediction(*KEY, element, op, value, ranked=ranked, **more)


def outcome(prediction: Prediction, truth: Truth = TRUTH, protocol: str = "seeact") -> str:
    return scoring.score_step(prediction, truth, PROTOCOLS[protocol]).outcome


def test_a_right_step_scores_one_everywhere() -> None:
    score = scoring.score_step(predicted(), TRUTH, PROTOCOLS["seeact"])
    assert (score.element, score.operation_f1, score.success, score.best_rank) == (1.0, 1.0, 1.0, 1)


def test_a_step_that_did_not_run_scores_nothing_even_where_nothing_was_right() -> None:
    score = scoring.score_step(
        predicted(None, "", "", ran=False, failure="timeout"),
        Truth(*KEY, op="", value="", positives=frozenset()),
        PROTOCOLS["seeact"],
    )
    assert score.operation_f1 == 0.0


@pytest.mark.parametrize(
    ("said", "positives", "seeact", "mindact"),
    [(predicted("1", "CLICK", "Search"), "1", 1.0, 2 / 3), (predicted(None, "CLICK", ""), "", 1.0, 0.0)],
    ids=["value of a CLICK", "no positive"],
)
def test_protocols_differ_in_special_cases(said: Prediction, positives: str, seeact: float, mindact: float) -> None:
    truth = Truth(*KEY, op="CLICK", value="", positives=frozenset(positives))
    found = [scoring.score_step(said, truth, PROTOCOLS[name]).operation_f1 for name in ("seeact", "mindact")]
    assert found == pytest.approx([seeact, mindact])


def test_the_spread_names_what_other_rules_make_of_the_same_replies() -> None:
    groups = tuple(Reply(i, (n,), ("", ""), n, "TYPE", "new york") for i, n in enumerate(("9", "1")))
    final = Reply(2, ("9", "1"), ("", ""), "1", "TYPE", "new york", is_final_round=True)
    prediction = Prediction(*KEY, "1", "TYPE", "new york", groups=(*groups, final), ranked=("9", "1"))
    spread = scoring.merge_spread(LabelledPredictions([prediction], [TRUTH]), PROTOCOLS["seeact"], "final-round")
    assert {rule: values["element_accuracy"] for rule, values in spread.items()} == {
        "final-round": 1.0,
        "first": 0.0,
        "best-rank": 0.0,
    }


def test_a_pick_that_was_never_ranked_is_behind_all_that_were() -> None:
    groups = tuple(Reply(i, (n,), ("", ""), n, "TYPE", "new york") for i, n in enumerate(("8", "1")))
    prediction = Prediction(*KEY, "8", "TYPE", "new york", groups=groups, ranked=("9", "1"))
    spread = scoring.merge_spread(LabelledPredictions([prediction], [TRUTH]), PROTOCOLS["seeact"], "first")
    assert (spread["first"]["element_accuracy"], spread["best-rank"]["element_accuracy"]) == (0.0, 1.0)


def test_a_single_group_has_no_spread() -> None:
    assert list(scoring.merge_spread(LabelledPredictions([predicted()], [TRUTH]), PROTOCOLS["seeact"], "single")) == [
        "single"
    ]


UNRANKED = {"ranked": ()}


@pytest.mark.parametrize("protocol", ["seeact", "mindact"])
@pytest.mark.parametrize("reachable", [None, False])
@pytest.mark.parametrize(("element", "expected"), [("1", "success"), ("9", "wrong_element")])
def test_where_nothing_is_ranked_neither_ranker_nor_grounding_missed(
    protocol: str, reachable: bool | None, element: str, expected: str
) -> None:
    assert outcome(predicted(element, reachable=reachable, **UNRANKED), protocol=protocol) == expected


@pytest.mark.parametrize(
    ("prediction", "reachable"),
    [
        (predicted(reachable=True, ranked=("9",)), True),
        (predicted(reachable=False), False),
        (predicted(), True),
        (predicted(ranked=("9",)), False),
        (predicted(**UNRANKED), None),
        # a call that failed takes nothing from the ceiling
        (predicted(reachable=True, ran=False), True),
        (predicted(ran=False), True),
        (predicted(reachable=False, ran=False), False),
    ],
)
def test_the_ceiling_is_the_groundings_word_or_else_what_was_ranked(prediction: Prediction, reachable) -> None:
    assert scoring.score_step(prediction, TRUTH, PROTOCOLS["seeact"]).reachable is reachable


def test_a_point_is_scored_against_the_boxes_beside_the_element() -> None:
    truth = Truth(*KEY, op="CLICK", value="", positives=frozenset({"1"}), boxes=(Box(0, 0, 10, 10),))
    inside, outside = predicted("9", "CLICK", point=(5.0, 5.0)), predicted("1", "CLICK", point=(50.0, 5.0))
    scores = [scoring.score_step(said, truth, PROTOCOLS["seeact"]) for said in (inside, outside)]
    assert [(score.element, score.point) for score in scores] == [(0.0, 1.0), (1.0, 0.0)]
    assert scoring.score_step(predicted(), truth, PROTOCOLS["seeact"]).point is None


def test_a_run_without_elements_scores_the_operation_alone() -> None:
    protocol = find_protocol("mindact", grounded=False)
    said = [
        predicted(None, **UNRANKED),
        predicted(None, op="CLICK", **UNRANKED),
        predicted(None, "", "", failure="no_operation"),
    ]
    said += [predicted(None, value="boston", **UNRANKED), predicted(None, ran=False, **UNRANKED)]
    scores = [scoring.score_step(one, TRUTH, protocol) for one in said]
    assert [score.outcome for score in scores] == [
        "success",
        "wrong_op",
        "unreadable_reply",
        "wrong_value",
        "call_failed",
    ]
    assert [score.operation_f1 for score in scores][:3] == pytest.approx([1.0, 2 / 3, 0.0])
    assert all((score.element, score.success, score.reachable) == (None, None, None) for score in scores)


def test_a_run_without_ranks_or_rule_has_no_spread() -> None:
    assert (
        scoring.merge_spread(LabelledPredictions([predicted(**UNRANKED)], [TRUTH]), PROTOCOLS["seeact"], "final-round")
        == {}
    )
    assert scoring.merge_spread(LabelledPredictions([predicted()], [TRUTH]), PROTOCOLS["seeact"], None) == {}


def test_points_and_ceilings_are_in_a_steps_line_only_where_known() -> None:
    plain, pointed = predicted(**UNRANKED), predicted(point=(5.0, 6.0), reachable=True, **UNRANKED)
    scores = [scoring.score_step(one, TRUTH, PROTOCOLS["seeact"]) for one in (plain, pointed)]
    first, second = scoring.rows(scores, [plain, pointed], [TRUTH, TRUTH])
    assert first.keys() & {"point", "point_in_box", "reachable"} == set()
    assert (second["point"], second["point_in_box"], second["reachable"]) == ((5.0, 6.0), 0.0, True)
