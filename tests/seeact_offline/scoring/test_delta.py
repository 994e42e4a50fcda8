"""The delta table: what each rule moves between protocols, adding up to the whole difference."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from seeact_offline.records import Box, Prediction, Reply, ShownPicture, StepKey, Truth
from seeact_offline.scoring import rules
from seeact_offline.scoring.delta import delta, delta_tables
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import MINDACT, PROTOCOLS, SEEACT, SEECLICK, SYNAPSE, UGROUND, find_protocol
from seeact_offline.scoring.step_scores import summarise
from tests.examples import often
from tests.seeact_offline.scoring.test_profiles import some_steps

ALL = list(PROTOCOLS.values())
STEPS = st.integers(0, 10**6).map(some_steps)


def key(task: str, step: int) -> StepKey:
    return StepKey(task, str(step))


# Task a: a CLICK answered with a value, and one with no pick. Task b: a TYPE all right, and one whose target was not ranked.
TRUTHS = [
    Truth(*key("a", 0), op="CLICK", value="", positives=frozenset({"1"}), target="1"),
    Truth(*key("a", 1), op="CLICK", value="", positives=frozenset({"1"}), target="1"),
    Truth(*key("b", 0), op="TYPE", value="x", positives=frozenset({"1"}), target="1"),
    Truth(*key("b", 1), op="TYPE", value="x", positives=frozenset({"1"}), target="1"),
]
PREDICTIONS = [
    Prediction(*key("a", 0), "1", "CLICK", "Menu", ranked=("1",)),
    Prediction(*key("a", 1), None, "CLICK", "", ranked=("1",)),
    Prediction(*key("b", 0), "1", "TYPE", "x", ranked=("1",)),
    Prediction(*key("b", 1), "7", "TYPE", "x", ranked=("7",)),
]


def path(*protocols: rules.Protocol) -> dict:
    (only,) = delta(PREDICTIONS, TRUTHS, protocols)["paths"]
    return only


def test_places_on_a_part_of_the_page_are_also_read_without_its_corner() -> None:
    def pointing(step: int, top: int, y: float) -> Prediction:
        shown = ShownPicture((0, top, 1280, top + 1000), (1280, 1000), (1280, 1000))
        group = Reply(0, (), ("",), "1", "CLICK", "", shown=shown)
        return Prediction(*key("a", step), "1", "CLICK", "", groups=(group,), point=(5.0, y))

    truths = [
        structs.replace(TRUTHS[0], **key("a", step)._asdict(), boxes=(Box(0, 1000, 10, 10),), picture_size=(1280, 5000))
        for step in range(5)
    ]
    # lost, won, the same in the first block, no hit either way, no point
    predictions = [pointing(0, 800, 1005), pointing(1, 800, 1805), pointing(2, 0, 1005), pointing(3, 1600, 1700)]
    predictions.append(structs.replace(pointing(4, 800, 0), point=None))
    found = delta(predictions, truths, [SEEACT, MINDACT])
    assert found["no_offset"] == {"of": 4, "lost": 1, "won": 1}
    assert "1 hits lost, 1 won." in delta_tables(found)[0].markdown()
    assert "no_offset" not in delta(PREDICTIONS, TRUTHS, [SEEACT])


def test_each_rule_moves_what_was_worked_out_by_hand() -> None:
    found = path(SEEACT, MINDACT)
    moves = {one["rule"]: (one["steps"], one["moves"]) for one in found["rules"]}
    # every element picked was ranked, and every page has a positive
    nothing = dict.fromkeys(METRICS, 0.0)
    assert moves["element"] == (0, nothing)
    assert moves["no_positive"] == (0, nothing)
    # step a0: F1 from 1 to 2/3 (CLICK Menu against CLICK), no success any more; a quarter of the macro average each
    assert moves["value_of_click"][0] == 1
    assert moves["value_of_click"][1] == pytest.approx(
        {"element_accuracy": 0.0, "operation_f1": -1 / 12, "step_success_rate": -1 / 4}
    )
    # step a1 loses its F1 of 1, step b1 too
    for rule in ("no_pick", "positive_not_ranked"):
        assert moves[rule][0] == 1
        assert moves[rule][1] == pytest.approx(nothing | {"operation_f1": -1 / 4})
    assert found["difference"] == pytest.approx(
        {"element_accuracy": 0.0, "operation_f1": -7 / 12, "step_success_rate": -1 / 4}
    )


def test_a_rule_is_named_by_its_sentence_on_both_sides() -> None:
    (one,) = [one for one in path(SEEACT, MINDACT)["rules"] if one["rule"] == "value_of_click"]
    assert (one["from"], one["to"]) == (
        "Drops the value of a CLICK",
        "Keeps the value of a CLICK, whose words then cost Operation F1",
    )


def test_rules_are_exchanged_in_the_order_of_the_record_and_only_those_that_differ() -> None:
    exchanged = [one["rule"] for one in path(SEEACT, UGROUND)["rules"]]
    assert exchanged == ["element", "value_as_said", "value_of_click", "text", "length"]
    assert exchanged == [name for name in rules.RULES if name in exchanged]


def test_a_rule_of_averaging_moves_figures_and_no_steps() -> None:
    long = [structs.replace(truth, n_actions=4 if truth.key.annotation_id == "a" else 2) for truth in TRUTHS]
    padded = replace(SEEACT, name="padded", length=rules.actions_of_the_task)
    (only,) = delta(PREDICTIONS, long, [SEEACT, padded])["paths"]
    (one,) = only["rules"]
    # task a from 1/2 to 1/4
    assert (one["rule"], one["steps"]) == ("length", 0)
    assert one["moves"]["element_accuracy"] == pytest.approx(-1 / 8)


def test_a_step_that_is_left_out_is_moved() -> None:
    # none of them has a picture
    (one,) = [one for one in path(SEEACT, SEECLICK)["rules"] if one["rule"] == "no_box"]
    assert one["steps"] == 4
    assert delta(PREDICTIONS, TRUTHS, [SEECLICK])["protocols"]["seeclick"]["left_out"] == 4


def test_a_page_without_target_is_left_out_for_that_and_not_for_its_missing_box() -> None:
    bare = [structs.replace(truth, positives=frozenset(), target=None) for truth in TRUTHS]
    (only,) = delta(PREDICTIONS, bare, [SEEACT, SEECLICK])["paths"]
    steps = {one["rule"]: one["steps"] for one in only["rules"]}
    assert (steps["no_box"], steps["no_positive"]) == (0, 4)


def test_two_protocols_of_the_same_rules_part_in_nothing() -> None:
    assert path(SEEACT, replace(SEEACT, name="twin"))["rules"] == []


@pytest.mark.slow
@settings(max_examples=often(60), deadline=None)
@given(steps=STEPS)
def test_the_moves_add_up_to_the_difference(steps: list[tuple[Prediction, Truth]]) -> None:
    for first in (SEEACT, SEECLICK):
        found = delta([p for p, _ in steps], [t for _, t in steps], [first, *ALL])
        for one in found["paths"]:
            begin, end = (found["protocols"][one[side]]["figures"] for side in ("from", "to"))
            for metric in METRICS:
                whole = end[metric]["headline"] - begin[metric]["headline"]
                assert one["difference"][metric] == whole
                assert math.fsum(rule["moves"][metric] for rule in one["rules"]) == pytest.approx(whole, abs=1e-12)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(steps=STEPS)
def test_the_figures_are_those_of_the_results(steps: list[tuple[Prediction, Truth]]) -> None:
    predictions, truths = [p for p, _ in steps], [t for _, t in steps]
    found = delta(predictions, truths, ALL)["protocols"]
    for protocol in ALL:
        summary = summarise(LabelledPredictions(predictions, truths), protocol, 50)[1]
        for metric, figure in found[protocol.name]["figures"].items():
            average = getattr(summary, metric)
            assert (figure["macro"], figure["micro"]) == pytest.approx((average.macro, average.micro), abs=1e-12)


def test_without_elements_only_the_operation_is_compared() -> None:
    ungrounded = [find_protocol(name, grounded=False) for name in ("seeact", "mindact")]
    (only,) = delta(PREDICTIONS, TRUTHS, ungrounded)["paths"]
    assert only["difference"]["element_accuracy"] is None
    assert [one["rule"] for one in only["rules"]] == ["right_operation", "value_of_click"]
    assert "| -" in delta_tables(delta(PREDICTIONS, TRUTHS, ungrounded))[0].markdown()


def test_it_can_be_written_as_json() -> None:
    found = delta(PREDICTIONS, TRUTHS, ALL)
    assert json.loads(json.dumps(found)) == found


def test_the_tables_show_the_rules_that_move_something_and_name_the_others() -> None:
    first, second = delta_tables(delta(PREDICTIONS, TRUTHS, [SEEACT, MINDACT]))
    assert [row[0] for row in first.rows] == ["seeact", "mindact"]
    assert [row[0] for row in second.rows] == ["value of click", "no pick", "positive not ranked", "all"]
    assert second.rows[-1][4:] == ["+0.00", "-58.33", "-25.00"]
    assert second.notes == ["Differ without moving anything here: element, right operation, no positive."]


def test_the_figures_say_which_average_is_quoted() -> None:
    pictured = [structs.replace(truth, picture_size=(10, 10), boxes=((0, 0, 5, 5),)) for truth in TRUTHS]
    (table, *_) = delta_tables(delta(PREDICTIONS, pictured, [SEECLICK, SYNAPSE]))
    # the element of a0 and b0 is right; the operations of TYPE all are, and that of the CLICK that names a place
    assert table.rows[0] == ["seeclick", "50.00 micro", "75.00 macro", "50.00 micro", None]
    assert table.rows[1][1] == "50.00 macro"
