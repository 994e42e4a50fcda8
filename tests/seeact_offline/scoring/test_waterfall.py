"""Each failing step has one cause, the causes' shares add up, and wrong elements and marks are told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from seeact_offline.records import ROW_FAILURES, Box, Prediction, Reply, StepKey, StepScore, Truth
from seeact_offline.scoring import waterfall as w
from seeact_offline.scoring.assembling import ScoringInput, assemble
from seeact_offline.scoring.averaging import Averages
from seeact_offline.scoring.protocols import PROTOCOLS

KEY = StepKey("task", "step")
SETTINGS = {"split": "cross_task", "grounding": "choice", "model": "m", "top_k": 50, "seed": 0, "merge": None}
TRUTH = Truth(*KEY, op="TYPE", value="new york", positives=frozenset({"1", "2"}))
CLICK = structs.replace(TRUTH, op="CLICK", value="")


def said(element: str | None = "1", op: str = "TYPE", value: str = "new york", ranked=("9", "1"), **more) -> Prediction:
    return Prediction(*KEY, element, op, value, ranked=ranked, **more)


def loss(prediction: Prediction, truth: Truth = TRUTH) -> str:
    """As a protocol scores it that takes any positive, compares tokens and gives a step that did not run nothing."""
    element = prediction.ran and prediction.element_id in truth.positives
    same = (prediction.op, prediction.value.split()) == (truth.operation.op, truth.operation.value.split())
    f1 = float(prediction.ran and same)
    rank = next((i for i, node in enumerate(prediction.ranked) if node in truth.positives), None)
    return w.first_loss(prediction, truth, element, f1, element and f1 == 1.0, rank)


# --- one cause a step ---


NO_POSITIVE = structs.replace(TRUTH, positives=frozenset())


def offering(prediction: Prediction, *offered: str) -> Prediction:
    """The same with one group that offered these."""
    return structs.replace(prediction, groups=(Reply(0, offered, ("B",), "9", "CLICK", ""),))


def asking_which(prediction: Prediction, *offered: str) -> Prediction:
    """The same of a description that several elements fit, which the final round offered."""
    final = Reply(1, offered, ("B",), prediction.element_id, "CLICK", "", is_final_round=True)
    return structs.replace(prediction, groups=(Reply(0, (), ("",), None, "CLICK", ""), final))


LOSSES = [
    (said(), TRUTH, "success"),
    (said(None, ran=False, failure="bad_box", ranked=()), TRUTH, "data_fault"),
    (said("9", ranked=("9",)), TRUTH, "ranker_miss"),
    (said("9", reachable=False), TRUTH, "not_offered"),
    (said(None, ran=False, failure="timeout"), TRUTH, "call_failed"),
    (said(None, failure="no_final_answer"), TRUTH, "unreadable_reply"),
    (said(None), TRUTH, "no_element"),
    (said("9"), TRUTH, "wrong_element"),
    # agents that leave, and web agents, which rank nothing and offer the labels in their windows
    (said(None, failure="left_page"), TRUTH, "left_page"),
    (said(None, failure="answered_early", ranked=()), TRUTH, "answered_early"),
    (offering(said("9", ranked=()), "9", "1"), TRUTH, "wrong_mark"),
    (offering(said("9", ranked=()), "9", "8"), TRUTH, "never_scrolled_to"),
    (asking_which(said("9", ranked=()), "9", "8"), TRUTH, "wrong_element"),
    (asking_which(said(None, ranked=()), "9", "8"), TRUTH, "no_element"),
    (offering(said(None, ranked=(), failure="scrolled"), "9"), TRUTH, "never_scrolled_to"),
    (offering(said(None, ranked=(), failure="scrolled"), "9", "1"), TRUTH, "did_not_act"),
    (offering(said(None, ranked=(), failure="stopped_early"), "9"), TRUTH, "did_not_act"),
    # a reply that was read and does not act, or points beside the picture, is not unreadable
    *(
        (said(None, ranked=(), failure=failure), TRUTH, "did_not_act")
        for failure in ("scrolled", "waited", "stopped_early", "other_act")
    ),
    (said(None, ranked=(), failure="point_outside"), TRUTH, "place_outside"),
    # the right element's box may reach there too
    (said(value="", failure="point_outside"), TRUTH, "missing_value"),
    (said(None, failure="scrolled", ranked=("9",)), TRUTH, "ranker_miss"),
    (offering(said(None, ranked=(), failure="bad_label"), "9"), TRUTH, "unreadable_reply"),
    (offering(said(op="CLICK", ranked=()), "9", "1"), TRUTH, "wrong_op"),
    (said("9", ranked=(), notes={"not_marked": 1}), TRUTH, "not_marked"),
    (said(None, ran=False, failure="timeout", ranked=(), notes={"target_cut_off": 1}), TRUTH, "target_cut_off"),
    (said(op="CLICK", value=""), TRUTH, "wrong_op"),
    (said(value=""), TRUTH, "missing_value"),
    (said(value="boston"), TRUTH, "wrong_value"),
    # a page without a right element comes before all that the model did, though not before a fault of the data
    (said(), NO_POSITIVE, "no_positive"),
    (said(None, ran=False, failure="timeout"), NO_POSITIVE, "no_positive"),
    (said(None, ran=False, failure="bad_box"), NO_POSITIVE, "data_fault"),
    # a miss of the ranker comes before a call that failed
    (said(None, ran=False, failure="timeout", ranked=("9",)), TRUTH, "ranker_miss"),
    # an element that was ranked and never offered is lost before the call
    (said(None, ran=False, failure="timeout", reachable=False), TRUTH, "not_offered"),
    (said(None, failure="no_final_answer", reachable=False), TRUTH, "not_offered"),
    (said(None, ran=False, failure="nothing_to_show", reachable=False), TRUTH, "data_fault"),
    (said("9", ranked=("9",), reachable=False), TRUTH, "ranker_miss"),
    # an elimination can offer to a model that errs what it offers to no perfect one
    (offering(said("9", reachable=False), "9", "1"), TRUTH, "wrong_element"),
    (offering(said("9", reachable=False), "9", "8"), TRUTH, "not_offered"),
    (said(reachable=False), TRUTH, "success"),
    # where nothing is ranked, no ranker missed
    (said("9", ranked=()), TRUTH, "wrong_element"),
    (said("9", ranked=(), reachable=False), TRUTH, "wrong_element"),
    # an unknown failure is the call's; its error's stage decides
    (said(None, ran=False, failure="my_server_is_asleep"), TRUTH, "call_failed"),
    (said(None, ran=False, failure="my_row_is_torn", failed_in="row"), TRUTH, "data_fault"),
    (said(None, ran=False, failure="bad_box", failed_in="call"), TRUTH, "call_failed"),
    # a reply that names the right element without its type or a value counts as read; one without an operation does not
    (said(value="boston", failure="missing_element_type"), TRUTH, "wrong_value"),
    (said(value="", failure="missing_value"), TRUTH, "missing_value"),
    (said("9", value="", failure="missing_value"), TRUTH, "wrong_element"),
    (said(op="SELECT", value="", failure="missing_value"), TRUTH, "wrong_op"),
    (said(op="", value="", failure="unknown_action"), TRUTH, "unreadable_reply"),
    # the word None is no value
    (said(value="None"), TRUTH, "missing_value"),
    (said("1", "CLICK", "None"), CLICK, "wrong_value"),
    # a point where no element is, is a wrong element and no refusal
    (said(None, ranked=(), point=(3.0, 4.0)), TRUTH, "wrong_element"),
    # upper and lower case of an operation do not matter
    (said(op="type", value="boston"), TRUTH, "wrong_value"),
]


@pytest.mark.parametrize(("prediction", "truth", "cause"), LOSSES)
def test_each_loss_has_its_first_cause(prediction: Prediction, truth: Truth, cause: str) -> None:
    assert loss(prediction, truth) == cause


def test_the_failures_of_data_are_those_of_the_docs(repo: Path) -> None:
    glossary = (repo / "docs" / "glossary.md").read_text()
    _, *parts = re.split(r"^### ", glossary, flags=re.MULTILINE)
    named = {part.splitlines()[0]: set(re.findall(r"^\| `([a-z_]+)`", part, re.MULTILINE)) for part in parts}
    assert named["Of the row"] | named["Of the scores or the oracle file"] == ROW_FAILURES
    assert not (named["Of the call"] | named["Of the reply"]) & ROW_FAILURES


def test_an_operation_that_needs_a_value_lacks_it_even_where_the_right_one_is_empty() -> None:
    # SeeClick gives a TYPE without value no Operation F1, whatever was right
    empty = structs.replace(TRUTH, op="TYPE", value="")
    assert w.first_loss(said(value=""), empty, True, 0.0, False, 1) == "missing_value"


@pytest.mark.parametrize(
    ("prediction", "f1", "cause"),
    [
        (said(None), 1.0, "success"),
        (said(None, op="CLICK"), 0.5, "wrong_op"),
        (said(None, value=""), 0.5, "missing_value"),
        (said(None, value="boston"), 0.5, "wrong_value"),
        (said(None, "", "", failure="no_operation"), 0.0, "unreadable_reply"),
        (said(None, ran=False, failure="timeout"), 0.0, "call_failed"),
        (said(None, ran=False, failure="bad_html"), 0.0, "data_fault"),
    ],
)
def test_without_elements_only_the_operation_can_be_lost(prediction: Prediction, f1: float, cause: str) -> None:
    for truth in (TRUTH, structs.replace(TRUTH, positives=frozenset())):
        assert w.first_loss(prediction, truth, None, f1, None, None) == cause


# --- shares ---

FAILING = [cause for cause in w.CAUSES if cause != w.NO_ROW]
OUTCOMES = ["success", *FAILING]


def scored(task: str, outcome: str, f1: float | None = None) -> StepScore:
    done = float(outcome == "success")
    return StepScore(StepKey(task, "s"), done, done if f1 is None else f1, done, outcome)


def mean_over_tasks(scores: Sequence[StepScore], lengths: dict[str, int] | None = None) -> w.Average:
    """The slow, obvious way; with `lengths` tasks are padded with zeros."""

    def average(values: Sequence[float]) -> Averages:
        tasks: dict[str, list[float]] = {}
        for score, value in zip(scores, values, strict=True):
            tasks.setdefault(score.key.annotation_id, []).append(value)
        for task, own in tasks.items():
            own += [0.0] * ((lengths or {}).get(task, 0) - len(own))
        steps = [value for own in tasks.values() for value in own]
        macro = sum(sum(own) / len(own) for own in tasks.values()) / len(tasks)
        return Averages(macro, sum(steps) / len(steps))

    return average


some_steps = st.lists(
    st.builds(scored, st.sampled_from("abcde"), st.sampled_from(OUTCOMES), st.sampled_from([0.0, 0.5, 1.0])),
    min_size=1,
    max_size=40,
)
some_lengths = st.none() | st.dictionaries(st.sampled_from("abcde"), st.integers(0, 30))


@given(some_steps, some_lengths)
def test_the_shares_add_up_to_what_is_missing_of_step_sr(scores: list[StepScore], lengths) -> None:
    average = mean_over_tasks(scores, lengths)
    lost, done = w.waterfall(scores, average), average([score.success or 0.0 for score in scores])
    assert sum(one["macro"] for one in lost.values()) == pytest.approx(1 - done.macro, abs=1e-12)
    assert sum(one["micro"] for one in lost.values()) == pytest.approx(1 - done.micro, abs=1e-12)
    padded = sum(max(0, n - sum(s.key.annotation_id == task for s in scores)) for task, n in (lengths or {}).items()
                 if any(s.key.annotation_id == task for s in scores))  # fmt: skip
    assert lost.get(w.NO_ROW, {"steps": 0})["steps"] == padded
    assert sum(one["steps"] for one in lost.values()) == padded + sum(not s.success for s in scores)


answers = st.tuples(
    # task, element picked (None: none; a number: of the candidate), its operation, whether it ran, what was ranked
    st.sampled_from("abc"),
    st.none() | st.sampled_from("123"),
    st.sampled_from([("CLICK", ""), ("TYPE", ""), ("TYPE", "new york"), ("TYPE", "York new"), ("HOVER", "")]),
    st.sampled_from([None, "missing_value", "no_final_answer", "timeout", "bad_box"]),
    st.sampled_from([(), ("1", "2", "3"), ("2", "3")]),
    # what is right: positives, whether the page has a picture
    st.sampled_from([frozenset(), frozenset("1"), frozenset("12")]),
    st.booleans(),
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(steps=st.lists(answers, min_size=1, max_size=20), n_actions=st.integers(0, 9))
@settings(max_examples=30)
def test_under_every_protocol_what_is_lost_is_what_is_missing_of_step_sr(
    protocol: str, steps: list[Any], n_actions: int
) -> None:
    predictions, truths = [], []
    for number, (task, element, (op, value), failure, ranked, positives, has_picture) in enumerate(steps):
        key, ran = StepKey(task, str(number)), failure not in ("timeout", "bad_box")
        boxes, size = ((Box(0, 0, 9, 9),), (100, 100)) if has_picture and positives else ((), None)
        target = min(positives, default=None)
        predictions.append(
            Prediction(*key, element if ran else None, op, value, ranked=ranked, failure=failure, ran=ran)
        )
        truths.append(
            structs.replace(
                TRUTH,
                **key._asdict(),
                positives=positives,
                target=target,
                boxes=boxes,
                picture_size=size,
                n_actions=n_actions,
            )
        )
    made = assemble(ScoringInput(SETTINGS, predictions, truths, complete=True), PROTOCOLS[protocol])
    lost = made.results.waterfall.values()
    for kind in ("macro", "micro"):
        done = getattr(made.results.step_success_rate, kind)
        assert sum(one[kind] for one in lost) == pytest.approx(1 - done if made.results.n_steps else 0, abs=1e-12)
    assert made.results.n_succeeded + made.results.left_out + sum(
        one["steps"] for cause, one in made.results.waterfall.items() if cause != w.NO_ROW
    ) == len(steps)


def test_macro_shares_weigh_tasks_alike_and_micro_shares_steps() -> None:
    scores = [scored("a", "wrong_op"), *(scored("b", one) for one in ("success", "no_element", "no_element"))]
    assert w.waterfall(scores, mean_over_tasks(scores)) == {
        "no_element": {"steps": 2, "macro": pytest.approx(1 / 3), "micro": 0.5},
        "wrong_op": {"steps": 1, "macro": 0.5, "micro": 0.25},
    }


def test_causes_stand_in_their_order() -> None:
    scores = [scored("a", cause) for cause in reversed(FAILING)]
    assert list(w.waterfall(scores, mean_over_tasks(scores))) == FAILING


def test_no_steps_have_no_losses() -> None:
    assert w.waterfall([], mean_over_tasks([])) == {} == w.what_if([], mean_over_tasks([]))


# --- what if ---


def test_what_a_perfect_ranker_grounding_and_perfect_values_would_give() -> None:
    # one task of eleven steps; two of the eight steps whose target was offered succeed
    scores = [
        *(
            scored("a", one)
            for one in ("success", "success", "ranker_miss", "no_positive", "not_offered", "call_failed")
        ),
        scored("a", "wrong_element", f1=1.0),
        scored("a", "unreadable_reply", f1=0.5),
        scored("a", "did_not_act", f1=0.5),
        scored("a", "place_outside", f1=0.5),
        scored("a", "missing_value", f1=0.5),
    ]
    figures = w.what_if(scores, mean_over_tasks(scores))
    assert {name: (one["steps"], one["micro"]) for name, one in figures.items()} == {
        "ranker_perfect_bound": (1, 3 / 11),
        "ranker_perfect": (1, pytest.approx((2 + 2 / 8) / 11)),
        "offering_perfect": (1, pytest.approx((2 + 2 / 8) / 11)),
        "grounding_perfect": (4, 3 / 11),
        "values_perfect": (1, 3 / 11),
    }
    assert list(figures) == list(w.WHAT_IF)


def test_what_concerns_no_step_is_not_supposed() -> None:
    scores = [scored("a", "success"), scored("a", "wrong_op")]
    assert w.what_if(scores, mean_over_tasks(scores)) == {}


def test_without_elements_only_values_could_be_better() -> None:
    scores = [
        replace(scored("a", one, f1=0.5), element=None, success=None) for one in ("unreadable_reply", "wrong_value")
    ]
    assert w.what_if(scores, mean_over_tasks(scores)) == {"values_perfect": {"steps": 1, "macro": 0.5, "micro": 0.5}}


@given(some_steps)
def test_no_supposition_makes_a_run_worse_or_better_than_its_losses_allow(scores: list[StepScore]) -> None:
    average = mean_over_tasks(scores)
    done, lost = average([score.success or 0.0 for score in scores]), w.waterfall(scores, average)
    for one in w.what_if(scores, average).values():
        assert done.macro - 1e-12 <= one["macro"] <= 1 + 1e-12
    bound = w.what_if(scores, average).get("ranker_perfect_bound")
    if bound is not None:
        assert bound["macro"] == pytest.approx(done.macro + lost["ranker_miss"]["macro"], abs=1e-12)


# --- wrong elements ---

KIN: dict[Any, frozenset[str]] = {
    "same_text": frozenset({"3"}),
    "overlapping": frozenset({"3", "4"}),
    "neighbour": frozenset({"3", "4", "5"}),
    "clicks_positive": frozenset({"4"}),
    "clicks_target": frozenset(),
}


@pytest.mark.parametrize(
    ("prediction", "kin", "kind"),
    [
        (said("3"), KIN, "same_text"),
        (said("4"), KIN, "overlapping"),
        (said("5"), KIN, "neighbour"),
        (said("5", reachable=False), KIN, "neighbour"),
        (said("6", reachable=False), KIN, "out_of_reach"),
        (said("6", reachable=True), KIN, "other"),
        (said(None, point=(1.0, 1.0)), KIN, "other"),
        (said("3"), {}, "page_not_read"),
    ],
)
def test_a_wrong_element_is_of_the_first_kind_that_it_fits(prediction: Prediction, kin: Any, kind: str) -> None:
    assert w.kind_of_wrong_element(prediction, structs.replace(TRUTH, kin=kin)) == kind


def test_only_steps_lost_to_a_wrong_element_have_a_kind() -> None:
    scores = [scored("a", one) for one in ("wrong_element", "ranker_miss", "wrong_element", "success")]
    truths = [structs.replace(TRUTH, kin=KIN)] * 4
    assert w.wrong_elements([said("6"), said("3"), said("3"), said("3")], truths, scores) == {
        "same_text": 1,
        "other": 1,
    }


# --- errors of annotation ---


def group(offered: str, picked: str | None, failure: str | None = None, **more) -> Reply:
    return Reply(0, tuple(offered), ("plan", "answer"), picked, "CLICK", "", failure, **more)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (group("89", "8"), "made_up"),
        (group("189", "8"), "mislinked"),
        (group("189", None), "na_although_marked"),
        (group("189", None, "unknown_choice"), "unread"),
        (group("189", "1"), "no_error"),
        (group("89", None), "no_error"),
        # any positive is right, whichever of them is marked
        (group("289", "2"), "no_error"),
    ],
)
def test_a_picture_has_one_error(reply: Reply, error: str) -> None:
    assert w.annotation_error(reply, TRUTH) == error


@pytest.mark.parametrize(
    ("x", "picked", "error"),
    [(1280, None, "no_error"), (1279.5, None, "na_although_marked"), (-40.5, "8", "mislinked"), (-41, "8", "made_up")],
)
def test_a_mark_that_is_not_drawn_is_not_there(x: float, picked: str | None, error: str) -> None:
    """An answer that none is right was held against the model though nobody could see the right element's mark."""
    boxes = (Box(x, 10, 40, 10), Box(0, 900, 40, 10))
    truth = structs.replace(TRUTH, boxes=boxes, picture_size=(1280, 800), positives_in_order=("1", "2"))
    assert w.annotation_error(group("1289", picked), truth) == error


def annotated(uid: str, element: str | None, *groups: Reply, **more) -> tuple[Prediction, Truth]:
    key = StepKey("task", uid)
    return Prediction(*key, element, "CLICK", "", groups=groups, **more), structs.replace(TRUTH, action_uid=uid)


PLANTED = [
    annotated("wrong", "8", group("89", "8"), group("167", "6"), group("2", None)),
    annotated("right", "1", group("89", "8"), group("167", "1")),
    annotated("hard", "9", group("89", "9"), group("17", None)),
    annotated("final", None, group("89", None), group("17", "1"), group("18", None, is_final_round=True)),
    annotated("not run", None, group("18", None), ran=False, failure="timeout"),
]


def errors(oracle: dict[str, bool] | None) -> dict[str, Any]:
    predictions, truths = zip(*PLANTED, strict=True)
    told = None if oracle is None else {StepKey("task", uid): right for uid, right in oracle.items()}
    return w.annotation_errors(predictions, truths, told)


def test_errors_are_counted_by_picture_before_merging_over_steps_that_the_oracle_gets_right() -> None:
    # of "wrong" three pictures, of "final" two: the final round is no picture of the page's own groups
    assert errors({"wrong": True, "right": True, "hard": False, "final": True, "not run": True}) == {
        "population": "oracle_right",
        "n_steps": 2,
        "n_groups": 5,
        "made_up": 1,
        "mislinked": 1,
        "na_although_marked": 1,
        "unread": 0,
        "no_error": 2,
    }


def test_without_an_oracle_all_wrong_steps_count_and_the_result_says_so() -> None:
    made = errors(None)
    assert (made["population"], made["n_steps"], made["n_groups"], made["made_up"]) == ("wrong", 3, 7, 2)


def test_a_step_without_a_right_element_shows_no_error_of_annotation() -> None:
    prediction, truth = annotated("none", "8", group("89", "8"))
    assert w.annotation_errors([prediction], [structs.replace(truth, positives=frozenset())])["n_groups"] == 0
