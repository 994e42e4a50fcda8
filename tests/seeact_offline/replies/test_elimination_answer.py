"""Answers of MindAct's elimination, read as released."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.records import GroundingReply
from seeact_offline.replies.elimination_answer import (
    LAYOUTS,
    Answer,
    Layout,
    is_counted_back,
    parse_multichoice_reply,
    read_answer,
)
from tests.reference.elimination import read

PIECES = ("Answer: ", "Answer:", "Action: ", "Value: ", "CLICK", "TYPE", "SELECT", "A", "B", "F", "G", ".", "\n", " ", "\r", "@", "None", "x y")  # fmt: skip
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=20).map("".join))


def picked(place: int, op: str = "CLICK", value: str = "") -> GroundingReply:
    return GroundingReply(place, op, value)


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("Answer: C.\nAction: SELECT\nValue: Text message", Answer("C", "SELECT", "Text message")),
        ("Let me see.\nAnswer: B.\nAction: CLICK", Answer("B", "CLICK", "")),
        ("Answer: B. Answer: C.", Answer("B", "", "")),
        ("Answer: None", Answer("", "", "")),
        ("Answer: Button", Answer("B", "", "")),
        ("answer: B", Answer("", "", "")),
        ("B.\nAction: CLICK", Answer("", "CLICK", "")),
        ("Answer: G", Answer("", "", "")),
        ("Answer: D.\nAction: HOVER\nAction: TYPE\nValue:  two words \nmore", Answer("D", "TYPE", "two words")),
        ("Answer: D.\nAction: CLICK\nValue: None", Answer("D", "CLICK", "None")),
    ],
)
def test_of_a_chat_model_the_first_answer_action_and_value_count(text: str, read_as: Answer) -> None:
    assert read_answer(text, "chat") == read_as


@pytest.mark.parametrize(
    ("text", "letter"), [("B.\nAction: CLICK", "B"), (" \nF.", "F"), ("Answer: C.", "A"), ("b.", "b"), ("", "")]
)
def test_of_a_text_to_text_model_the_first_character_counts(text: str, letter: str) -> None:
    assert read_answer(text, "seq2seq").letter == letter


@pytest.mark.parametrize(
    ("text", "n_choices", "reply"),
    [
        ("Answer: A.", 5, GroundingReply(None, picked_none=True)),
        ("Answer: F.\nAction: CLICK", 5, picked(4)),
        ("Answer: F.\nAction: CLICK", 4, GroundingReply(None, "CLICK", "", "unknown_choice")),
        ("I cannot tell.", 5, GroundingReply(None, failure="no_final_answer")),
        ("Answer: B.", 5, picked(0, "")),
        ("Answer: B.\nAction: TYPE", 5, picked(0, "TYPE")),
        ("Answer: B.\nAction: TYPE\nValue: None", 5, picked(0, "TYPE", "None")),
    ],
)
def test_a_letter_becomes_an_option_or_a_named_failure(text: str, n_choices: int, reply: GroundingReply) -> None:
    assert parse_multichoice_reply(text, "chat", n_choices) == reply


@pytest.mark.parametrize(("sign", "place"), [("@", 3), ("?", 2), ("=", 0), ("<", None), ("1", None), ("b", None)])
def test_a_sign_before_a_counts_from_the_last_option_back_as_released(sign: str, place: int | None) -> None:
    text = f"{sign}.\nAction: CLICK"
    assert parse_multichoice_reply(text, "seq2seq", 5, counts_back=True).choice == place
    assert parse_multichoice_reply(text, "seq2seq", 5).failure == "unknown_choice"
    assert is_counted_back(text, "seq2seq", 5) == (place is not None)


@given(texts, st.sampled_from(LAYOUTS))
def test_any_text_is_read_as_the_slow_reader_does(text: str, layout: Layout) -> None:
    said = read_answer(text, layout)
    assert (said.letter or "A", said.op, said.value) == read(text, layout == "chat")


@given(texts, st.sampled_from(LAYOUTS), st.integers(0, 7), st.booleans())
def test_no_text_names_an_option_that_is_not_there(text: str, layout: Layout, n: int, counts_back: bool) -> None:
    reply = parse_multichoice_reply(text, layout, n, counts_back=counts_back)
    assert reply.choice is None or 0 <= reply.choice < n
    assert reply.choice is not None or reply.picked_none or reply.failure
