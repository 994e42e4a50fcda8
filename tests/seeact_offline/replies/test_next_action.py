"""The operation that a first turn's free text decides on."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.replies.next_action import NEXT_ACTION_FAILURES, parse_next_action
from tests.conftest import SHARED_DATA

PLANS = SHARED_DATA / "uground" / "gpt4o_cross_task_plan.jsonl"

LABELLED = [
    ("ACTION: TYPE\nVALUE: New York", "TYPE", "New York"),
    ("The next action is known.\nACTION: CLICK\nVALUE: None", "CLICK", ""),
    ("Element: the field\n**Action:** TYPE\n**Value:** 10203", "TYPE", "10203"),
    ("- Element: button\n- **Operation:** CLICK", "CLICK", ""),
    ('Operation: SELECT\nValue: "2 guests"', "SELECT", "2 guests"),
    ("ACTION: \nCLICK\n\nELEMENT: \nThe date 5\n\nVALUE: \nNone", "CLICK", ""),
    ('{"action": "TYPE", "value": "abc"}', "TYPE", "abc"),
    ('{\n  "action": "TYPE",\n  "value": "abc"\n}', "TYPE", "abc"),
    ("ACTION: TYPE\nVALUE: a\n\nNo, rather:\nACTION: SELECT\nVALUE: b", "SELECT", "b"),
    ("Action: CLICK on the Search button", "CLICK", ""),
    ('Action: TYPE "New York" into the field', "TYPE", "New York"),
    ("Next action: CLICK", "CLICK", ""),
]
PROSE = [
    ("CLICK", "CLICK", ""),
    ('TYPE "New York" into the "Where" field.', "TYPE", "New York"),
    ("Type New York into the destination field.", "TYPE", "New York"),
    ("I will TYPE \u201cSt. Louis, MO\u201d in the origin box.", "TYPE", "St. Louis, MO"),
    ('4. What comes next. TYPE the text "Boston" into the From field at the top.', "TYPE", "Boston"),
    ("The next step is to type 'O'Hare Airport' into the box.", "TYPE", "O'Hare Airport"),
    ('The next action is to enter the zip code "10203" into the Zip code text field.', "TYPE", "10203"),
    ("The next action is to enter 10203 into the zip code field.", "TYPE", "10203"),
    ('The next action is to input "jazz" in the search bar.', "TYPE", "jazz"),
    ('The next action is to fill in the "Email" field with "a@b.com".', "TYPE", "a@b.com"),
    ('The operation is TYPE.\nThe value to type is "New York".', "TYPE", "New York"),
    ('The corresponding operation is TYPE with the value "10001".', "TYPE", "10001"),
    ('SELECT the option "2" from the Guests drop-down.', "SELECT", "2"),
    ('In the "Guests" dropdown, select "2".', "SELECT", "2"),
    ("Next step: select 2 from the list.", "SELECT", "2"),
    ('The next action is to select the "Economy" option in the Cabin class dropdown menu.', "SELECT", "Economy"),
    ("The **next action** would be clicking the `Add to cart` button.", "CLICK", ""),
    ("The type of the element is a button. I will press the Go button.", "CLICK", ""),
    ('I should choose the "Round trip" radio button.', "CLICK", ""),
    ("We need to select the check-in date April 13 in the calendar.", "CLICK", ""),
]
SEVERAL = [
    ("The next step is to click Search\nThen type x into it.", "CLICK", ""),
    # the last decision counts
    ('I would click it or maybe type. Decision: TYPE "a b c" into the field.', "TYPE", "a b c"),
    ('I could click Search.\n\nNext Action:\nType "x" into the field.', "TYPE", "x"),
    # what was done is no decision
    (
        'The user has already typed "a" and clicked Go. The next step is to select "3" from the "Hours" dropdown.',
        "SELECT",
        "3",
    ),
    # nor is what comes after the next action
    ('### Next Action\nI would type "wedding" in the search box, then click Search.', "TYPE", "wedding"),
    ('The next step is to click on the field. After that, type "x".', "CLICK", ""),
    ('Next Action:\nClick the field.\nThen type "x" into it.', "CLICK", ""),
]


@pytest.mark.parametrize(("text", "op", "value"), [*LABELLED, *PROSE, *SEVERAL])
def test_the_decision_is_read(text: str, op: str, value: str) -> None:
    plan = parse_next_action(text)
    assert (plan.op, plan.value, plan.failure) == (op, value, None)


@pytest.mark.parametrize(("text", "op", "value"), PROSE)
def test_an_analysis_before_the_decision_changes_nothing(text: str, op: str, value: str) -> None:
    before = "The page is a start page with a menu.\n\nThe first action was typing a city, then a click. It worked.\n\n"
    plan = parse_next_action(f"{before}### Next action\n{text}")
    assert (plan.op, plan.value) == (op, value)


@pytest.mark.parametrize(
    ("text", "op", "failure"),
    [
        ("", "", "no_operation"),
        ("The page shows a form.", "", "no_operation"),
        ("The next step would be to scroll down to find the button.", "", "unknown_action"),
        ("ACTION: SCROLL DOWN\nELEMENT: None\nVALUE: None", "", "unknown_action"),
        ("ACTION: TYPE\nVALUE: None", "TYPE", "missing_value"),
        ("I will type the confirmation number into the field.", "TYPE", "missing_value"),
        ("SELECT an entry of the list.", "SELECT", "missing_value"),
    ],
)
def test_what_is_not_said_is_named_and_not_guessed(text: str, op: str, failure: str) -> None:
    plan = parse_next_action(text)
    assert (plan.op, plan.value, plan.failure) == (op, "", failure)
    assert failure in NEXT_ACTION_FAILURES


def test_the_recorded_first_turns_of_the_real_step(shared_step) -> None:
    lines = (shared_step / "replies_choice.jsonl").read_text().splitlines()
    plans = [parse_next_action(json.loads(line)["replies"][0]) for line in lines]
    # the third group does not show the target, and its reply wants to scroll
    assert [(plan.op, plan.failure) for plan in plans] == [("CLICK", None), ("CLICK", None), ("", "unknown_action")]


@pytest.fixture(scope="module")
def published() -> list[dict[str, str]]:
    if not PLANS.is_file():
        pytest.skip("the published plans are not here: ../shared/data/uground, beside the checkout, does not exist")
    return [json.loads(line) for line in PLANS.read_text().splitlines()]


def test_published_plans_with_labelled_lines_are_all_read(published) -> None:
    known = ("CLICK", "TYPE", "SELECT")
    plans = [(parse_next_action(row["response"]), row) for row in published]
    wrong = [
        row["action_uid"] for plan, row in plans if plan.op != (row["gpt_action"] if row["gpt_action"] in known else "")
    ]
    assert wrong == []
    values = [(plan.value, row["gpt_value"]) for plan, row in plans if plan.op in ("TYPE", "SELECT")]
    assert [pair for pair in values if pair[0] != pair[1] and (pair[0], pair[1]) != ("", "None")][1:] == []


def test_published_plans_without_their_lines_are_seldom_read_as_another_operation(published) -> None:
    pairs = [(parse_next_action(row["response"].split("ACTION")[0]).op, row["gpt_action"]) for row in published]
    read = [(op, truth) for op, truth in pairs if op and truth in ("CLICK", "TYPE", "SELECT")]
    assert len(read) > 600
    assert sum(op == truth for op, truth in read) / len(read) > 0.9


@pytest.mark.parametrize(
    "bit", ["the next step is to select ", "click. ", '"', "'a ", "ACTION: TYPE foo\n", "will ", "the value is "]
)
def test_long_texts_of_one_kind_are_read_in_no_time(bit: str) -> None:
    began = time.process_time()
    parse_next_action(bit * 5_000)
    assert time.process_time() - began < 2


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    plan = parse_next_action(text)
    assert plan.failure is None or plan.failure in NEXT_ACTION_FAILURES
    assert plan.op or plan.failure
