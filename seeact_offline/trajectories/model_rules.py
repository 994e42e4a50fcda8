"""`fuzzy_match` and `ua_match`: a model says whether an answer means the reference (VisualWebArena 89f5af2, helper_functions.py:556-611).

The released prompts were written for gpt-4-1106-preview at temperature 0; these say the same in our words. Figures by another model or
wording are no figures of the paper.
"""

from __future__ import annotations

from collections.abc import Callable

from seeact_offline.records import Message
from seeact_offline.trajectories.unscored import Unscored

Ask = Callable[[tuple[Message, ...]], str]
"""Sends messages to a model and returns the text of its reply. Raises CallError."""
SYSTEM = "You compare answers with care."
FUZZY = """A question was answered, and the right answer is known. Decide whether the given answer means the same as the right one; other \
words for the same thing are fine. Wherever "N/A" stands, it means that the task cannot be done.
Question: {intent}
Right answer: {reference}
Given answer: {answer}
Reply with exactly one of: correct, incorrect, partially correct."""
UNACHIEVABLE = """A task cannot be done. You are given the true reason and the reason that somebody reported after trying. Decide whether \
the reported reason amounts to the true one, even if it only implies it.
Task: {intent}
True reason: {reference}
Reported reason: {answer}
Reply with "same" if it does, otherwise with "different"."""


def fuzzy_match(answer: str, reference: str, intent: str, ask: Ask) -> float:
    """Asks whether an answer means the reference. Raises Unscored `no_verdict`, and what `ask` raises."""
    return read_fuzzy(ask(_messages(FUZZY, answer, reference, intent)))


def ua_match(answer: str, reference: str, intent: str, ask: Ask) -> float:
    """Asks whether an answer gives the reason for which a task cannot be done. Raises as `fuzzy_match` does."""
    return read_ua(ask(_messages(UNACHIEVABLE, answer, reference, intent)))


def read_fuzzy(reply: str) -> float:
    """The verdict of a reply: `incorrect` or `partially correct` fail, wherever they stand; then `correct` passes. Raises Unscored."""
    return _verdict(reply, ("partially correct", "incorrect"), "correct")


def read_ua(reply: str) -> float:
    """The verdict of a reply: `different` fails; then `same` passes. Raises Unscored."""
    return _verdict(reply, ("different",), "same")


def _verdict(reply: str, failing: tuple[str, ...], passing: str) -> float:
    # a model that refuses may reply without a text
    said = (reply or "").lower()
    if any(word in said for word in failing):
        return 0.0
    if passing not in said:
        raise Unscored("no_verdict", f"expected {' or '.join((*failing, passing))}, got {reply!r:.60}")
    return 1.0


def _messages(template: str, answer: str, reference: str, intent: str) -> tuple[Message, ...]:
    return Message("system", SYSTEM), Message(
        "user", template.format(intent=intent, reference=reference, answer=answer)
    )
