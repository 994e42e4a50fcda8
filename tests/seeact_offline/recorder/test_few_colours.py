"""Pictures of few colours: exact where there are no more, and numbered alike from picture to picture."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from seeact_offline.recorder.recording import in_few_colours

Colour = tuple[int, int, int]
colours = st.tuples(*[st.integers(0, 31).map(lambda step: 8 * step)] * 3)
"""Apart from one another, as Pillow takes those for one that are less than four steps apart."""
SAME_NUMBER = [(0, 0, 0), (0, 1, 205)]
"""7 * 0 + 31 * 1 + 101 * 205 is a multiple of 256, as 0 is."""


def picture_of(pixels: list[Colour]) -> Image.Image:
    """One row of these."""
    picture = Image.new("RGB", (len(pixels), 1))
    picture.putdata(pixels)
    return picture


def pixels_of(picture: Image.Image) -> list[Colour]:
    rgb = picture.convert("RGB")
    return [rgb.getpixel((x, 0)) for x in range(rgb.width)]


@given(st.lists(colours, min_size=1, max_size=256))
def test_a_picture_of_no_more_colours_stays_as_it_is(pixels: list[Colour]) -> None:
    assert pixels_of(in_few_colours(picture_of(pixels), 256)) == pixels


def test_what_has_a_rarer_colour_gets_the_nearest_of_those_that_are_kept() -> None:
    white, black, grey = (255, 255, 255), (0, 0, 0), (40, 40, 40)
    assert pixels_of(in_few_colours(picture_of([white, white, black, black, grey]), 2)) == [
        *[white] * 2,
        *[black] * 3,
    ]


def test_of_equally_frequent_colours_the_darker_is_kept() -> None:
    """So that the same page gives the same picture."""
    found = pixels_of(in_few_colours(picture_of([(255, 255, 255), (0, 0, 0)]), 1))
    assert found == [(0, 0, 0)] * 2


@given(st.lists(colours, min_size=1, max_size=20), colours)
def test_the_most_frequent_colour_has_the_same_number_whatever_else_is_shown(
    others: list[Colour], most: Colour
) -> None:
    pixels = [*[most] * 30, *others]
    alone = in_few_colours(picture_of([most]), 24).getpixel((0, 0))
    assert in_few_colours(picture_of(pixels), 24).getpixel((0, 0)) == alone


def test_two_colours_that_want_the_same_number_are_told_apart() -> None:
    assert {in_few_colours(picture_of([c]), 24).getpixel((0, 0)) for c in SAME_NUMBER} == {0}
    found = in_few_colours(picture_of(SAME_NUMBER), 24)
    assert pixels_of(found) == SAME_NUMBER
    assert {found.getpixel((x, 0)) for x in range(2)} == {0, 1}


@pytest.mark.parametrize("n", [2, 24])
def test_a_packed_tiff_of_it_has_the_same_pixels(n: int) -> None:
    found = in_few_colours(picture_of([(9, 9, 9), (250, 1, 1), (9, 9, 9)] * 50), n)
    out = io.BytesIO()
    found.save(out, "TIFF", compression="packbits")
    assert pixels_of(Image.open(out)) == pixels_of(found)
