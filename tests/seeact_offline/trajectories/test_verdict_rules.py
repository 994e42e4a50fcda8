"""Verdicts in replies."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.records import InputError
from seeact_offline.trajectories import READERS, read_verdict
from seeact_offline.trajectories.verdict_rules import read_points


@pytest.mark.parametrize(
    ("text", "webvoyager", "strict"),
    [
        ("SUCCESS", True, True),
        ("NOT SUCCESS", False, False),
        ("The price is shown.\n\n**NOT SUCCESS**", False, False),
        ("Verdict: SUCCESS.", True, True),
        ("All is done, so the verdict is SUCCESS", True, True),
        # the released rules look for one text in another
        ("UNSUCCESSFUL", True, None),
        ("NOT A SUCCESS", True, None),
        ("I cannot call it a SUCCESS", True, None),
        ("NOT  SUCCESS", True, False),
        ("NOT\nSUCCESS", True, False),
        ("Not Success", None, None),
        ("done", None, None),
        ("", None, None),
        # a verdict on its own counts for more than a mention
        ("It would be NOT SUCCESS if it failed.\nSUCCESS", False, True),
        ("SUCCESS or NOT SUCCESS?", False, None),
        ("SUCCESS\nNOT SUCCESS", False, None),
        ("SUCCESS_RATE", True, None),
        # words behind a verdict deny it, reasons for it do not
        ("SUCCESS was not achieved", True, None),
        ("SUCCESS criteria were not met.", True, None),
        ("SUCCESS? No.", True, None),
        ("Is it a SUCCESS?", True, None),
        ("Was it done? SUCCESS", True, True),
        ("It is a SUCCESS, as no filter is missing", True, True),
        ("It is a SUCCESS because it did not stop", True, True),
        ("NOT SUCCESS because it did not finish", False, False),
        ("NOT SUCCESS or a part of it", False, None),
        # marks between the words
        ("**NOT** **SUCCESS**", True, False),
        ("NOT_SUCCESS", True, False),
        ("**SUCCESS** or **NOT SUCCESS**?", False, None),
        # a verdict of failure in other words leaves it open
        ("The banner says SUCCESS.\nVerdict: FAILURE", True, None),
        ('**Verdict:** Failure. The page showed "SUCCESS" after step 2.', True, None),
        ("Verdict: NOT SUCCESSFUL. The toast read SUCCESS.", False, None),
        ("Verdict: UNSUCCESSFUL (the toast read SUCCESS)", True, None),
        ("Verdict: not success\nThe dialog said SUCCESS.", True, None),
        ("The page then read:\nSUCCESS\n… so the verdict is failure.", True, None),
        ('The site said "SUCCESS". The size is wrong, so the task failed.', True, None),
        ("FAILED: the toast read SUCCESS", True, None),
        ('{"verdict": "FAILURE", "note": "the toast: SUCCESS"}', True, None),
        ("Verdict: SUCCESS. No step failed.", True, True),
        ("The first attempt failed, but then it was placed.\nSUCCESS", True, True),
        ("Attempt 1: failed. Attempt 2: placed.\nSUCCESS", True, True),
        ("At first the task failed.\nThen it was placed.\nSUCCESS", True, True),
        ("Failed: 0\nFailure: none\nVerdict: SUCCESS", True, True),
        ("Status: failed\nThen it was placed. Status: success\nSUCCESS", True, True),
        # so does a success that is said to be none, or one in part
        ("PARTIAL SUCCESS", True, None),
        ("Verdict: PARTIAL SUCCESS", True, None),
        ("It is a SUCCESS only partially", True, None),
        ("SUCCESS (partial)", True, None),
        ("Almost a SUCCESS at first.\nSUCCESS", True, True),
        ("Nearly all is sold, but the order is a SUCCESS", True, True),
        ("SUCCESS: no", True, None),
        ("SUCCESS: False", True, None),
        ('{"SUCCESS": false}', True, None),
        ('{"SUCCESS": true}', True, True),
        ("SUCCESS: No step failed.", True, True),
        ("Was the first try a SUCCESS? No.\nThe second was.\nSUCCESS", True, True),
        ("The task is far from a SUCCESS.", True, None),
        ("SUCCESS is impossible", True, None),
        # thoughts are no verdict
        ("<think>\nSUCCESS\nNo, the filter is missing.</think>NOT SUCCESS", False, False),
        # a model that refuses
        (None, None, None),
    ],
)
def test_each_judge_reads_by_its_own_rules(text: str | None, webvoyager: bool | None, strict: bool | None) -> None:
    assert read_verdict(text, "webvoyager") is webvoyager
    # a reply without a verdict is a failure there
    assert read_verdict(text, "openwebvoyager") is bool(webvoyager)
    assert read_verdict(text, "strict") is strict


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ('Status: "success"', True), ("**Status**: success", True), ("Status:\nsuccess", True), ("Status: failure", False),
        ("Status: unsuccessful", False), ("Status: not a success", False), ("Status: open", None), ("success", None),
        ("**Status :** *success*", True), ("Status：success", True), ("Status: failed", False), ("Status: succeeded", True),
        # reasons behind the word
        ("Status: success, there was no failure", True), ("Status: failure, though its search was a success", False),
        ("Status: success\nThe order status: pending", True), ("Status: partial success", None),
        # words that deny a success, before it or behind
        ("Status: success not achieved", None), ("Status: success is impossible", None), ("Status: success criteria were not met", None),
        ("Status: never succeeded", None), ("Status: didn't succeed", None), ("Status: lack of success", None), ("Status: success: no", None),
        ("Status: success?", None), ("Status: success (in part)", None), ("Status: success because it did not stop", True),
        ("Status: success - no step was missed", True), ("Status: <success>", True),
        ("Status: success with no error. It was not slow.", True), ("Status: complete (success)", True),
        # a success of something else
        ("Status: incomplete, though the toast said success", None), ("Status: incomplete. The toast: success", None), ("Status:\n\nThe page shows success", None),
        # one that begins its line counts for more, then the key of an object
        ("The order page shows Status: success\nFinal verdict: failure", None), ("after step 1 Status: success\nStatus: incomplete", None),
        ("Status: failure\n\nThe order page says Status: Successfully placed", False),
        ('{"status": "failure", "reason": "order status: success"}', False),
        ('{"reason": "order status: success", "status": "failure"}', False),
        ('{\n  "status": "success",\n  "reason": "order status: failed"\n}', True),
        ("1. **Final status**: success\nThe page shows status: failure", True), ("All is done. Status: success", True),
        ('The page shows "Status: success", so Status: failure', False),
        ('Status: "success" or "failure"', None), ("<think>Status: success</think>Status: failure", False),
    ],
)  # fmt: skip
def test_a_status_is_read_on_its_line_or_the_next(status: str, verdict: bool | None) -> None:
    assert read_verdict(f"Thoughts: all points were looked at.\n{status}", "webjudge") is verdict


@pytest.mark.parametrize("judge", ["agenttrek", "autonomouseval"])
@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('Thoughts: fine.\nStatus: "success"', True), ("STATUS: SUCCESS", True), ("Status: failure", False),
        # as released: the word anywhere behind the first status, up to the next
        ("Status: unsuccessful", True), ("Status: not a success", True), ("Status: failure\nStatus: success", False),
        ("Status: failure, though the search was a success", True), ("Status : success", False),
        ("success", False), ("", False), (None, False),
    ],
)  # fmt: skip
def test_released_judges_read_what_stands_behind_the_first_status(judge: str, text: str | None, verdict: bool) -> None:
    assert read_verdict(text, judge) is verdict


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("1. Size M\n2. Black", ("Size M", "Black")),
        ("**Key Points**:\n1) Size M\n\n2) Black,\n   and new", ("Size M", "Black, and new")),
        ("**1.** Size M\n**2.** 1.5 litres\n1.5 is no number", ("Size M", "1.5 litres 1.5 is no number")),
        ("- Size M\n* Black", ("Size M", "Black")),
        # bullets below a number belong to it
        ("1. Size:\n   - M\n2. Black", ("Size: - M", "Black")),
        ("Size M", ("Size M",)), ("1.\n2. Black", ("Black",)), ("", ()), ("\n ", ()), ("1.", ()),
        ("<think>1. no</think>1. yes", ("yes",)),
    ],
)  # fmt: skip
def test_points_are_the_lines_with_a_number_or_bullet(text: str, points: tuple[str, ...]) -> None:
    assert read_points(text) == points


SPOKEN = "SUCCESS NOT success failure Status: status: STATUS： ** _ \" ' ? . ! or / if not un partial ß İ <think> </think> 1. - # ```"
WORDS = st.lists(st.sampled_from([*SPOKEN.split(), " ", "\n", "\t", "\ud800", "\0"]) | st.text(max_size=3), max_size=20)
"""Replies made of what readers look for."""


@pytest.mark.slow
@given(WORDS.map("".join) | WORDS.map(" ".join))
def test_fuzzed_replies_have_a_verdict_or_none(text: str) -> None:
    for judge in READERS:
        verdict = read_verdict(text, judge)
        assert verdict in (True, False, None)
        # nothing else is ever a success
        assert verdict is not True or "succe" in text.lower()
    points = read_points(text)
    assert all(point.strip() == point != "" for point in points)


@given(WORDS.map(" ".join).filter(lambda text: "think" not in text))
def test_released_status_is_that_of_its_definition(text: str) -> None:
    behind = text.lower().split("status:")[1:2]
    assert read_verdict(text, "agenttrek") is any("success" in part for part in behind)


def test_an_unknown_judge_is_refused() -> None:
    with pytest.raises(InputError, match="one of webvoyager"):
        read_verdict("SUCCESS", "nobody")


@pytest.mark.parametrize("judge", READERS)
@pytest.mark.parametrize(
    "text", ["SUCCESS " * 20_000, "not " * 50_000, "status: " + "not " * 50_000, "status: " * 20_000]
)
def test_long_replies_are_read_in_no_time(text: str, judge: str) -> None:
    began = time.process_time()
    read_verdict(text, judge)
    assert time.process_time() - began < 2
