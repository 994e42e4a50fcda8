"""The answer to one question of MindAct's elimination -> an option, an operation and a value, read exactly as released.

Options are lettered from B; `A` is "none of the above". A chat model names its letter as `Answer: X`; a text-to-text
model (T5) begins with it. Nothing is tidied: a value of `None` stays a word.

Source: Mind2Web (arXiv 2306.06070) and its released evaluation, commit 1b7c323.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from seeact_offline.records import GroundingReply

Layout = Literal["chat", "seq2seq"]
"""Kind of model that the texts are for: a chat model, or a text-to-text model such as T5."""
LAYOUTS: tuple[Layout, ...] = ("chat", "seq2seq")
NONE_LETTER = "A"
BEYOND = "unknown_choice"
"""The failure of a reply whose letter was not offered."""
UNANSWERED = "no_final_answer"
"""The failure of a chat model's reply that names no letter; it counts as NONE_LETTER."""

_ANSWER = re.compile(r"Answer: ([A-F])")
_ACTION = re.compile(r"Action: (CLICK|SELECT|TYPE)")
_VALUE = re.compile(r"Value: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in a text, whatever was offered."""

    letter: str
    """One character; empty where the text names none."""
    op: str
    """One of OPERATIONS, or empty."""
    value: str


def read_answer(text: str, layout: Layout) -> Answer:
    """Reads the first letter, operation and value of the text; a text-to-text model's letter is its first character."""
    reply = text.strip()
    named_letter = _ANSWER.search(reply)
    letter = reply[:1] if layout == "seq2seq" else named_letter[1] if named_letter else ""
    action, value = _ACTION.search(reply), _VALUE.search(reply)
    return Answer(letter, action[1] if action else "", value[1].strip() if value else "")


def parse_multichoice_reply(text: str, layout: Layout, n_choices: int, *, counts_back: bool = False) -> GroundingReply:
    """The answer as a pick among `n_choices` options, lettered from B. Never raises because of `text`.

    `failure`: UNANSWERED, BEYOND or None: a missing operation or value costs the score, as released, and is no failure.
    `counts_back`: a sign before `A`, which is no letter, counts from the last option back (`@` is the last but one, `?`
    the one before), as the released code's negative index does.
    """
    answer = read_answer(text, layout)
    read = GroundingReply(None, answer.op, answer.value)
    if answer.letter == NONE_LETTER:
        return replace(read, picked_none=True)
    place = _place(answer.letter, n_choices, counts_back) if answer.letter else None
    return replace(read, choice=place, failure=(BEYOND if answer.letter else UNANSWERED) if place is None else None)


def is_counted_back(text: str, layout: Layout, n_choices: int) -> bool:
    """Tells whether the reply's letter is a sign that names an option by counting back."""
    letter = read_answer(text, layout).letter
    return letter != "" and letter < NONE_LETTER and _place(letter, n_choices, counts_back=True) is not None


def _place(letter: str, n_choices: int, counts_back: bool) -> int | None:
    index = ord(letter) - ord("B")
    if 0 <= index < n_choices:
        return index
    return index + n_choices if counts_back and -n_choices <= index < 0 else None
