"""No reader of others' texts takes more than linear time, whatever is repeated in them; see `growth`."""

from __future__ import annotations

import random

import pytest

from seeact_offline.trajectories import foreign_folders
from tests.growth import FILES, MOST, growth, readers, seconds, texts

READERS = readers()
DRAWS = [
    pytest.param(2, 1 << 14, marks=pytest.mark.slow),
    pytest.param(30, 1 << 14, marks=pytest.mark.nightly),
    pytest.param(10, 1 << 20, marks=[pytest.mark.nightly, pytest.mark.timeout(1200)]),
]
"""Texts a reader, of some hundreds or thousands and others for each reader, and the characters of the longest."""


@pytest.mark.parametrize(("n_texts", "largest"), DRAWS)
@pytest.mark.parametrize("name", READERS)
def test_a_text_of_twice_the_size_takes_twice_the_time(name: str, n_texts: int, largest: int) -> None:
    slow = grown(name, n_texts, largest)
    assert slow == {}


def grown(name: str, n_texts: int, largest: int) -> dict[object, float]:
    """The texts over which a reader takes too long, and how much the time grows."""
    of_reader = texts(READERS[name])
    drawn = random.Random(f"{name} {largest}").sample(of_reader, min(n_texts, len(of_reader)))
    ratios = {text: growth(READERS[name].read, text, largest) for text in drawn}
    return {text: ratio for text, ratio in ratios.items() if ratio > MOST}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("locator", "lambda:() =>" + " " * 500 + "{"),
        ("locator", "document.querySelector('" + "\\" * 40),
        ("folder of interact_messages.json", "\n" * 50_000),
        ("opencua strictly", "pyautogui.hotkey(a'" * 1_000),
        ("uitars", "a" * 20_000),
        ("holo1", "click" * 4_000),
        ("holo1 strictly", "1" * 20_000),
        ("holo1.5 strictly", '{"x": "' + "1_" * 10_000),
        ("showui strictly", "'action': 'a', 'value': '" * 800),
        ("showui", "{'action': '" * 1_600),
        ("screensuite strictly", "click(" * 4_000),
        ("uground strictly", "ACTION:" * 3_000),
        ("uground-grounder", "(" + " " * 20_000),
        ("webvoyager", "ACTION:" * 20_000),
        ("webvoyager", "Action:" + "\n" * 20_000),
        ("visualwebarena strictly", "```" + "press [" * 20_000 + "```"),
        ("visualwebarena", "click [" + "]" * 20_000 + "x"),
        ("lexical model, rules", "\n" * 20_000),
        ("lexical model, page", "\n" * 20_000),
        ("lexical model, history", "Previous action: click [1] where [2] is a. " * 2_000 + "where [3]"),
        ("lexical model, history", "\t" * 20_000),
    ],
)
def test_a_text_that_was_slow_is_read_at_once(name: str, text: str) -> None:
    assert min(seconds(READERS[name].read, text) for _ in range(3)) < 1


def test_each_format_of_trajectories_has_a_file_here() -> None:
    assert FILES.keys() == foreign_folders.READERS.keys()
