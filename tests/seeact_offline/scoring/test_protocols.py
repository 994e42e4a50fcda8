"""Protocols as records of rules: one more is a record and a line of PROTOCOLS, and nothing else knows its name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from seeact_offline.records import InputError, Operation, Prediction, Truth
from seeact_offline.scoring import rules
from seeact_offline.scoring.assembling import ScoringInput, assemble
from seeact_offline.scoring.protocols import PROTOCOLS, SEEACT, Protocol, find_protocol
from seeact_offline.scoring.step_scores import score_step

TRUTHS = [Truth(f"t{i // 3}", f"s{i}", op="TYPE", value="York", positives=frozenset({"1"})) for i in range(4)]
SETTINGS = {"split": "cross_task", "grounding": "choice", "model": "m", "top_k": 50, "seed": 0, "merge": None}


def without_case(operation: Operation) -> str:
    """Compares without upper and lower case."""
    return operation.text.lower()


def all_alike(truth: Truth) -> str:
    """Averages the steps."""
    return ""


TOY = replace(SEEACT, name="toy", text=without_case, groups=all_alike)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Protocol:
    monkeypatch.setitem(PROTOCOLS, TOY.name, TOY)
    return find_protocol("toy")


def said(truth: Truth, value: str = "york", element: str | None = "1", ranked=("1",), **more) -> Prediction:
    return Prediction(*truth.key, element, "TYPE", value, ranked=ranked, **more)


# --- a protocol of one's own ---


def test_a_registered_protocol_is_found_by_its_name(toy: Protocol) -> None:
    assert toy == TOY


def test_a_registered_protocol_is_named_where_another_is_unknown(toy: Protocol) -> None:
    with pytest.raises(
        InputError, match=r"^protocol: expected one of seeact, mindact, .*, toy, or FILE\.py:NAME, got x"
    ):
        find_protocol("x")


def test_a_registered_protocol_scores_a_step_by_its_rules(toy: Protocol) -> None:
    scores = [score_step(said(TRUTHS[0]), TRUTHS[0], protocol) for protocol in (SEEACT, toy)]
    assert [score.operation_f1 for score in scores] == [0.5, 1.0]


def test_a_registered_protocol_names_and_averages_the_results(toy: Protocol) -> None:
    predictions = [said(truth, element="1" if i else None) for i, truth in enumerate(TRUTHS)]
    results = assemble(ScoringInput(SETTINGS, predictions, TRUTHS, complete=True), toy).results.entries
    assert results["protocol"] == "toy"
    assert results["element_accuracy"]["macro"] == 0.75


def test_where_no_element_is_asked_for_a_registered_protocol_scores_the_operation(toy: Protocol) -> None:
    prediction = said(TRUTHS[0], element=None, ranked=())
    score = score_step(prediction, TRUTHS[0], find_protocol("toy", grounded=False))
    assert (score.element, score.operation_f1) == (None, 1.0)


# --- the rules ---


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_is_listed_under_its_own_name(name: str) -> None:
    assert PROTOCOLS[name].name == name


def test_every_rule_says_in_a_sentence_what_it_does() -> None:
    assert rules.described(PROTOCOLS["mindact"]) == {
        "element": "Takes any positive that was ranked under k for the right element",
        "right_operation": "Takes the first line of the right value, and no value for a CLICK",
        "value_as_said": "Takes a predicted value as it is",
        "value_of_click": "Keeps the value of a CLICK, whose words then cost Operation F1",
        "text": "Compares operation and value as they are written",
        "f1": "Compares the sets of words",
        "unknown_op": "Scores the step by its answer all the same",
        "missing_value": "Scores the step by its answer all the same",
        "no_place": "Scores the step by its answer all the same",
        "no_pick": "Gives the step 0 on every metric, whatever was answered",
        "positive_not_ranked": "Gives the step 0 on every metric, whatever was answered",
        "no_box": "Scores the step by its answer all the same",
        "no_positive": "Gives the step 0 on every metric, whatever was answered",
        "quoted_value": "Scores the step by its answer all the same",
        "episode": "Counts every step of a task",
        "entries_of_f1": "Averages the Operation F1 of each step",
        "success": "Needs the right element and an Operation F1 of 1",
        "length": "Counts the rows that a task has",
        "groups": "Averages each task's steps, then the tasks",
        "groups_of_f1": "Averages each task's steps, then the tasks",
        "headline": "Quotes the mean of the groups' means",
        "headline_of_f1": "Quotes the mean of the groups' means",
    }


@pytest.mark.parametrize("field", rules.RULES)
def test_rules_of_one_field_that_differ_say_different_things(field: str) -> None:
    ones = {getattr(protocol, field) for protocol in PROTOCOLS.values()}
    assert len({rules.sentence(one) for one in ones}) == len(ones)


def test_a_rule_without_a_docstring_is_called_by_its_name() -> None:
    def any_id(prediction: Prediction, truth: Truth) -> bool:
        return prediction.element_id is not None

    assert rules.described(replace(SEEACT, element=any_id))["element"] == "any_id"


def test_two_protocols_differ_in_the_rules_that_their_descriptions_say() -> None:
    seeact, mindact = (rules.described(PROTOCOLS[name]) for name in ("seeact", "mindact"))
    parted = [name for name, rule in seeact.items() if rule != mindact[name]]
    assert parted == ["element", "right_operation", "value_of_click", "no_pick", "positive_not_ranked", "no_positive"]


def test_a_click_without_its_value_keeps_what_the_recorder_called_it() -> None:
    dropped = rules.drops_value_of_click(Operation("CLICK", "menu", "HOVER"))
    assert dropped == Operation("CLICK", "", "HOVER")


def test_only_a_click_loses_its_value() -> None:
    assert rules.drops_value_of_click(Operation("SELECT", "2")) == Operation("SELECT", "2")


def test_a_step_that_did_not_run_earns_nothing_whatever_the_rules() -> None:
    generous = replace(SEEACT, element=lambda prediction, truth: True)
    score = score_step(said(TRUTHS[0], "York", ran=False, failure="timeout"), TRUTHS[0], generous)
    assert (score.element, score.operation_f1, score.success) == (0.0, 0.0, 0.0)


def test_a_missing_target_is_told_apart_from_one_that_was_not_ranked() -> None:
    strict = replace(SEEACT, no_positive=rules.scores_nothing)
    unranked = score_step(said(TRUTHS[0], "York", ranked=("9",)), TRUTHS[0], strict)
    missing = score_step(said(TRUTHS[0], "York"), structs.replace(TRUTHS[0], positives=frozenset()), strict)
    assert (unranked.operation_f1, missing.operation_f1) == (1.0, 0.0)


def test_tasks_count_alike_however_many_steps_they_have() -> None:
    metric = SEEACT.averaging(TRUTHS).metric([0.0, 0.0, 0.0, 1.0])
    assert (metric.macro, metric.micro) == (0.5, 0.25)
