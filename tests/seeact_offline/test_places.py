"""Words that say where a candidate lies and whether it takes clicks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.ranking.places import place_words, split_place
from seeact_offline.records import Box, Candidate

anywhere = st.floats(allow_nan=False, allow_infinity=False)
boxes = st.builds(Box, anywhere, anywhere, anywhere, anywhere)
candidates = st.builds(
    Candidate, st.just("1"), st.sampled_from(["a", "div"]), st.none() | boxes, st.booleans(), st.booleans()
)


def words(x: float = 0, y: float = 0, w: float = 64, h: float = 16, *, clickable: bool = False) -> str:
    return place_words(Candidate("1", "div", Box(x, y, w, h), False, clickable))


def band(letter: str, pixels: float) -> int:
    """Of one number, found by counting bands up from the smallest."""
    edges = {
        "x": [160.0 * n for n in range(9)],
        "y": [0.0, 100.0, *(100 * 2 ** (n / 2) for n in range(1, 12))],
        "w": [8 * 2 ** (n + 0.5) for n in range(8)],
    }
    return sum(pixels >= edge for edge in edges["w" if letter == "h" else letter])


def test_the_words_of_an_example() -> None:
    assert words(500, 900, 64, 16, clickable=True) == "[x4] [y8] [w3] [h1] [click] "


def test_nothing_known_is_nothing_said() -> None:
    assert place_words(Candidate("1", "div", None, True)) == ""


def test_clicks_are_told_without_a_box() -> None:
    assert place_words(Candidate("1", "div", None, True, is_clickable=True)) == "[click] "


@pytest.mark.parametrize("tag", "a button input select summary textarea".split())
def test_a_control_takes_clicks_whatever_the_row_says(tag: str) -> None:
    assert place_words(Candidate("1", tag, None, True)) == "[click] "


@pytest.mark.parametrize("letter", "xywh")
@given(pixels=st.floats(-5000, 50_000))
def test_a_number_is_in_the_band_that_counting_gives(letter: str, pixels: float) -> None:
    if any(abs(pixels - edge) < 1e-6 for edge in (100 * 2 ** (n / 2) for n in range(12))):
        return
    # on an edge of no round number the last bits decide
    assert f"[{letter}{band(letter, pixels)}] " in words(**{letter: pixels})


@given(candidates, st.text(max_size=40))
def test_words_and_text_come_apart_again(candidate: Candidate, text: str) -> None:
    place = place_words(candidate)
    assert split_place(f"{place}ancestors: {text}") == (place, f"ancestors: {text}")


@pytest.mark.parametrize("text", ["", "[click]", "[x1] [y1] [w1] ancestors: ", "ancestors: [x1] [y1] [w1] [h1] "])
def test_other_texts_have_no_place(text: str) -> None:
    assert split_place(text) == ("", text)
