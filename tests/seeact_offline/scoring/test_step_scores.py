"""One step under each protocol, its first cause of loss, and the spread over merge rules."""

from __future__ import annotations

import pytest

from seeact_offline.records import Box, InputError, Operation, Prediction, Reply, StepKey, Truth
from seeact_offline.scoring import step_scores as scoring
from seeact_offline.scoring.answers import Answers
from seeact_offline.scoring.protocols import PROTOCOLS, find_protocol

KEY = StepKey("task", "step")
TRUTH = Truth(KEY, Operation("TYPE", "new york"), frozenset({"1", "2"}))


def predicted(
    element: str | None = "1", op: str = "TYPE", value: str = "new york", ranked=("9", "1"), **more
) -> Prediction:
    return Prediction(KEY, (), element, op, value, ranked, **more)


def outcome(prediction: Prediction, truth: Truth = TRUTH, protocol: str = "seeact") -> str:
    return scoring.score_step(prediction, truth, PROTOCOLS[protocol]).outcome


def test_a_right_step_scores_one_everywhere() -> None:
    score = scoring.score_step(predicted(), TRUTH, PROTOCOLS["seeact"])
    assert (score.element, score.operation_f1, score.success, score.best_rank) == (1.0, 1.0, 1.0, 1)


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        (predicted(), "success"),
        (predicted(None, ran=False, failure="timeout"), "call_failed"),
        (predicted("9", ranked=("9",)), "ranker_miss"),
        (predicted(None, failure="no_final_answer"), "unreadable_reply"),
        (predicted(None), "no_element"),
        (predicted("9"), "wrong_element"),
        (predicted(op="CLICK"), "wrong_op"),
        (predicted(value="boston"), "wrong_value"),
    ],
)
def test_each_loss_has_its_first_cause(prediction: Prediction, expected: str) -> None:
    assert outcome(prediction) == expected


def test_a_page_without_a_right_element_is_its_own_cause() -> None:
    assert outcome(predicted(), Truth(KEY, Operation("TYPE", "new york"), frozenset())) == "no_positive"


def test_a_step_that_did_not_run_scores_nothing_even_where_nothing_was_right() -> None:
    score = scoring.score_step(
        predicted(None, "", "", ran=False, failure="timeout"),
        Truth(KEY, Operation(""), frozenset()),
        PROTOCOLS["seeact"],
    )
    assert score.operation_f1 == 0.0


def test_seeact_drops_the_value_of_a_click_and_mindact_keeps_it() -> None:
    truth = Truth(KEY, Operation("CLICK"), frozenset({"1"}))
    said = predicted("1", "CLICK", "Search")
    assert scoring.score_step(said, truth, PROTOCOLS["seeact"]).operation_f1 == 1.0
    assert scoring.score_step(said, truth, PROTOCOLS["mindact"]).operation_f1 == pytest.approx(2 / 3)


def test_seeact_scores_the_operation_of_a_step_without_positives_and_mindact_does_not() -> None:
    truth = Truth(KEY, Operation("CLICK"), frozenset())
    said = predicted(None, "CLICK", "")
    assert scoring.score_step(said, truth, PROTOCOLS["seeact"]).operation_f1 == 1.0
    assert scoring.score_step(said, truth, PROTOCOLS["mindact"]).operation_f1 == 0.0


def test_an_unknown_protocol_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^protocol: expected one of seeact, mindact.*, got x"):
        find_protocol("x")


def test_the_spread_names_what_other_rules_make_of_the_same_replies() -> None:
    groups = tuple(Reply(i, (n,), ("", ""), n, "TYPE", "new york") for i, n in enumerate(("9", "1")))
    final = Reply(2, ("9", "1"), ("", ""), "1", "TYPE", "new york", is_final_round=True)
    prediction = predicted(
        "1",
        ranked=("9", "1"),
    )
    prediction = Prediction(KEY, (*groups, final), "1", "TYPE", "new york", ("9", "1"))
    spread = scoring.merge_spread(Answers([prediction], [TRUTH]), PROTOCOLS["seeact"], "final-round")
    assert {rule: values["element_accuracy"] for rule, values in spread.items()} == {
        "final-round": 1.0,
        "first": 0.0,
        "best-rank": 0.0,
    }


def test_a_single_group_has_no_spread() -> None:
    assert list(scoring.merge_spread(Answers([predicted()], [TRUTH]), PROTOCOLS["seeact"], "single")) == ["single"]


UNRANKED = {"ranked": ()}


@pytest.mark.parametrize("protocol", ["seeact", "mindact"])
def test_where_nothing_is_ranked_no_ranker_missed(protocol: str) -> None:
    assert outcome(predicted(**UNRANKED), protocol=protocol) == "success"
    assert outcome(predicted("9", **UNRANKED), protocol=protocol) == "wrong_element"


def test_what_the_grounding_cannot_do_is_a_wrong_element_all_the_same() -> None:
    assert outcome(predicted("9", reachable=False, **UNRANKED)) == "wrong_element"
    # a lucky hit beyond the ceiling is a hit
    assert outcome(predicted("1", reachable=False, **UNRANKED)) == "success"


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
    truth = Truth(KEY, Operation("CLICK"), frozenset({"1"}), (Box(0, 0, 10, 10),))
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
    assert scoring.merge_spread(Answers([predicted(**UNRANKED)], [TRUTH]), PROTOCOLS["seeact"], "final-round") == {}
    assert scoring.merge_spread(Answers([predicted()], [TRUTH]), PROTOCOLS["seeact"], None) == {}


def test_points_and_ceilings_are_in_a_steps_line_only_where_known() -> None:
    plain, pointed = predicted(**UNRANKED), predicted(point=(5.0, 6.0), reachable=True, **UNRANKED)
    scores = [scoring.score_step(one, TRUTH, PROTOCOLS["seeact"]) for one in (plain, pointed)]
    first, second = scoring.rows(scores, [plain, pointed], [TRUTH, TRUTH])
    assert first.keys() & {"point", "point_in_box", "reachable"} == set()
    assert (second["point"], second["point_in_box"], second["reachable"]) == ((5.0, 6.0), 0.0, True)
