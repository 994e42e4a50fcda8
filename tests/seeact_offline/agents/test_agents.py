"""Every agent reads what it writes, and nothing that a model says raises anything but Unreadable."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.agents import AGENTS, GUI_MODELS, Agent, Unreadable
from seeact_offline.agents.notations import _BOXES
from seeact_offline.agents.screens import Shown

PLACED = [agent for agent in GUI_MODELS.values() if agent.grounder is None]
SIDES = st.integers(300, 12_000)
MARKS = ("<|", *(begin for begin, _ in _BOXES))
"""Marks of chat templates and of answers, with which a model ends its text or frames it."""
TEXTS = (
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="\x85"), min_size=1)
    .map(str.strip)
    # hypothesis also tries texts that stand in our code
    .filter(lambda text: text and not any(mark in text.lower() for mark in MARKS))
)


def shown_to(agent: Agent, width: int, height: int) -> Shown:
    return Shown.whole((width, height), agent.view.resize.apply((width, height)))


@pytest.mark.parametrize("agent", PLACED, ids=lambda agent: agent.name)
@given(width=SIDES, height=SIDES, x=st.floats(0, 1), y=st.floats(0, 1), value=TEXTS)
def test_what_an_agent_writes_it_reads(agent: Agent, width: int, height: int, x: float, y: float, value: str) -> None:
    shown, place = shown_to(agent, width, height), (x * width, y * height)
    if agent.name == "seeclick":
        # as released, values stand as they are
        value = value.replace('"', "").replace("\\", "") or "x"
    for op in sorted(agent.speaks):
        answer = agent.answer(agent.read(agent.write(op, value, place, shown)), shown)
        assert (answer.failure, answer.op) == (None, op), answer
        assert answer.value == (value if op in agent.speaks_value else "")
        if op in agent.speaks_place:
            assert answer.place is not None
            unit = [side / edge for side, edge in zip((width, height), agent.frame.extent(shown.sent), strict=True)]
            digits = agent.frame.decimals, agent.frame.rounded_to
            error = sum(0.5 * 10**-n for n in digits if n is not None)
            half = [error * one + 1e-6 for one in unit]
            assert abs(answer.place[0] - place[0]) <= half[0]
            assert abs(answer.place[1] - place[1]) <= half[1]


@pytest.mark.parametrize("name", sorted(AGENTS.keys() - GUI_MODELS.keys()))
@given(label=st.integers(0, 10**6).map(str), value=TEXTS.filter(lambda text: not set(text) & set("[]`")))
def test_a_web_agent_reads_the_labels_that_it_writes(name: str, label: str, value: str) -> None:
    agent, shown = AGENTS[name], Shown.whole((1280, 800))
    for op, said in (("CLICK", "CLICK"), ("TYPE", "TYPE"), ("SELECT", "TYPE")):
        answer = agent.answer(agent.read(agent.write(op, value, label, shown)), shown)
        assert (answer.op, answer.label, answer.failure) == (said, label, None)
        assert answer.value == ("" if op == "CLICK" else value)


@pytest.mark.parametrize("n_replies", [100, pytest.param(1500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("agent", AGENTS.values(), ids=lambda agent: agent.name)
def test_no_reply_raises_anything_but_unreadable(agent: Agent, n_replies: int) -> None:
    # other replies for each agent
    rng, shown = random.Random(agent.name), Shown.whole((1280, 5000))
    samples = [one.write(op, "New 'York'", (500.0, 900.0), shown) for one in PLACED for op in sorted(one.speaks)]
    samples += [
        "ACTION: TYPE\nELEMENT: a box\nVALUE: x",
        "Thought: a\nAction: wait()",
        "```python\npyautogui.press('enter')\n```",
    ]
    for _ in range(n_replies):
        text = list(rng.choice(samples))
        for _ in range(rng.randrange(6)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randrange(4)] = rng.choice(
                ["(", ")", "[", "{", "'", '"', "\\", "\n", "9" * 400, "-", "NaN", "é", ",", "="]
            )
        for strict in (False, True):
            try:
                answer = agent.answer(agent.read("".join(text), shown, strict), shown)
            except Unreadable:
                continue
            assert answer.failure or answer.op


@pytest.mark.parametrize(
    ("name", "op", "value", "written"),
    [
        # 0.4446 is 0.445, and that 0.45
        ("seeclick", "CLICK", "", '{"action_type": 4, "click_point": (0.45,0.10)}'),
        ("seeclick", "TYPE", "a\\b's", '{"action_type": 3, "click_point": (0.45,0.10), "value": "a\\b\'s"}'),
        ("showui", "SELECT", "Sort by", "{'action': 'SELECT', 'value': 'Sort by', 'position': [0.44, 0.10]}"),
    ],
)
def test_a_reply_is_written_as_the_training_data_has_it(name: str, op: str, value: str, written: str) -> None:
    assert AGENTS[name].write(op, value, (4446.0, 1000.0), Shown.whole((10_000, 10_000))) == written
