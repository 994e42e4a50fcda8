"""Clipped conversations: what stays at which place, and that clipping every turn equals clipping once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.agents.history import (
    OPEN_NOTE,
    OPEN_PICTURE_NOTE,
    PICTURE_NOTE,
    TREE_NOTE,
    Counted,
    clip,
    clip_open,
    shorten_lines,
)
from seeact_offline.records import PNG, ImageFormat, Message
from tests.reference import clipping

Clip = Callable[[Sequence[Message]], tuple[Message, ...]]


@dataclass(frozen=True)
class Dot:
    """A picture that nobody opens."""

    key: str

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        raise NotImplementedError


def user(text: str, picture: str = "") -> Message:
    return Message("user", text, Dot(picture) if picture else None)


def said(text: str) -> Message:
    return Message("assistant", text)


TALK = (
    Message("system", "rules"),
    user("Now given a task: x \nObservation: look\n[1]: a;", "1"),
    said("Thought: a Action: Click [1]"),
    user("Observation: look\n[1]: b;", "2"),
    said("Click"),
    user("The format is wrong."),
    said("Thought: b Action: Click [2]"),
    user("Observation: look Observation: c", "3"),
)
TASK = "Now given a task: x"


@pytest.mark.parametrize(
    ("keep", "counted", "texts"),
    [
        (3, "pictures", (None, None, None, None)),
        (2, "pictures", (TASK + PICTURE_NOTE, None, None, None)),
        (1, "pictures", (TASK + PICTURE_NOTE, PICTURE_NOTE, None, None)),
        (0, "pictures", (TASK + PICTURE_NOTE, PICTURE_NOTE, None, PICTURE_NOTE)),
        # the correction takes a place, and gets a note when it is older
        (2, "all", (TASK + TREE_NOTE, TREE_NOTE, None, None)),
        (1, "all", (TASK + TREE_NOTE, TREE_NOTE, "The format is wrong." + TREE_NOTE, None)),
        (2, "observations", (TASK + TREE_NOTE, None, None, None)),
        (1, "observations", (TASK + TREE_NOTE, TREE_NOTE, None, None)),
    ],
)
def test_what_webvoyager_still_sees(keep: int, counted: str, texts: tuple[str | None, ...]) -> None:
    """None: whole, with its picture."""
    clipped = clip(TALK, keep, counted)  # type: ignore[arg-type]
    assert [one for one in clipped if one.role != "user"] == [one for one in TALK if one.role != "user"]
    whole = [one for one in TALK if one.role == "user"]
    assert [one for one in clipped if one.role == "user"] == [
        one if text is None else Message("user", text) for one, text in zip(whole, texts, strict=True)
    ]


def test_without_its_tree_a_text_only_run_corrects_itself_blindly() -> None:
    talk = (user("task Observation: tree"), said("Click"), user("The format is wrong."))
    assert clip(talk, 1, "all")[0].text == "task" + TREE_NOTE
    assert clip(talk, 1, "observations") == talk


def test_what_openwebvoyager_still_sees() -> None:
    first = user("buy it\nOBSERVATION:\n<image>\n[1] a", "1")
    later = [user(f"{head}OBSERVATION:\n<image>\n[1] {n}", str(n)) for n, head in enumerate(["", "wrong\n", "", ""], 2)]
    talk = [first, said("a"), *(one for turn in later for one in (turn, said("b")))][:-1]
    assert [(one.text, one.picture and one.picture.key) for one in clip_open(talk) if one.role == "user"] == [
        ("buy it\n" + OPEN_NOTE, None),
        (OPEN_NOTE, None),
        ("wrong\n" + OPEN_PICTURE_NOTE, "3"),
        (OPEN_PICTURE_NOTE, "4"),
        ("OBSERVATION:\n<image>\n[1] 5", "5"),
    ]


def test_long_lines_of_the_newest_tree_are_cut() -> None:
    words = ["a"] * 600
    tree = "\n".join(
        ["\t[1] link 'x'", "\t" + " ".join(words), "\t" + " ".join(words[:500]), "a  " + " ".join(words[:498])]
    )
    lines = tree.split("\n")
    assert shorten_lines(tree).split("\n") == [lines[0], " ".join(words[:500]), lines[2], lines[3]]
    long_task = "b " * 600
    newest = clip_open([user(f"{long_task}\nOBSERVATION:\n<image>\n{tree}", "1")])[0].text
    assert newest == f"{long_task}\nOBSERVATION:\n<image>\n{shorten_lines(tree)}"


HEADS = st.sampled_from(["", "task ", "task\n", " \n", "a OBSERVATION: b\n"])
BODIES = st.sampled_from(["[1] a", "Observation: b", "x\nOBSERVATION: y", " ".join("a" * 501), "\t" + "a " * 700])
OBSERVATIONS = st.builds(
    lambda head, mark, body: user(head + mark + body, "p"),
    HEADS,
    st.sampled_from(["Observation: ", "OBSERVATION:\n"]),
    BODIES,
)
CORRECTIONS = st.just(user("The format is wrong."))


@pytest.mark.parametrize(
    "rule",
    [
        *(
            partial(clip, keep=keep, counted=counted)
            for keep in (0, 1, 3)
            for counted in ("pictures", "all", "observations")
        ),
        clip_open,
    ],
)
@given(turns=st.lists(OBSERVATIONS | CORRECTIONS, max_size=8))
def test_clipping_every_turn_equals_clipping_once(rule: Clip, turns: list[Message]) -> None:
    whole = [one for turn in turns for one in (turn, said("Thought: a Action: Click [1]"))]
    by_turn: tuple[Message, ...] = ()
    for at in range(0, len(whole), 2):
        by_turn = (*rule([*by_turn, whole[at]]), whole[at + 1])
    assert by_turn[:-1] == rule(whole[:-1])


def told(messages: Sequence[Message]) -> list[clipping.Turn]:
    return [(one.role, one.text, one.picture is not None) for one in messages]


@given(turns=st.lists(OBSERVATIONS | CORRECTIONS | st.just(said("Click [1]")), max_size=9), keep=st.integers(0, 4))
def test_clipping_equals_the_slow_one(turns: list[Message], keep: int) -> None:
    counted: Counted
    for counted, note in (("pictures", PICTURE_NOTE), ("all", TREE_NOTE), ("observations", TREE_NOTE)):
        assert told(clip(turns, keep, counted)) == clipping.webvoyager(told(turns), keep, counted, note)
    assert told(clip_open(turns, keep)) == clipping.openwebvoyager(told(turns), keep, OPEN_PICTURE_NOTE, OPEN_NOTE)
