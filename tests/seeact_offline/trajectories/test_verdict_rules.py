"""Verdicts in replies."""

from __future__ import annotations

import time

import pytest

from seeact_offline.records import InputError
from seeact_offline.trajectories import read_verdict


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
        ('Status: "success" or "failure"', None), ("<think>Status: success</think>Status: failure", False),
    ],
)  # fmt: skip
def test_a_status_is_read_on_its_line_or_the_next(status: str, verdict: bool | None) -> None:
    assert read_verdict(f"Thoughts: all points were looked at.\n{status}", "webjudge") is verdict


def test_an_unknown_judge_is_refused() -> None:
    with pytest.raises(InputError, match="one of webvoyager"):
        read_verdict("SUCCESS", "nobody")


@pytest.mark.parametrize("judge", ["strict", "webjudge"])
@pytest.mark.parametrize("text", ["SUCCESS " * 20_000, "not " * 50_000, "status: " + "not " * 50_000])
def test_long_replies_are_read_in_no_time(text: str, judge: str) -> None:
    began = time.process_time()
    read_verdict(text, judge)
    assert time.process_time() - began < 2
