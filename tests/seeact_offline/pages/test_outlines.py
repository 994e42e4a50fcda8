"""Candidates drawn for people."""

from __future__ import annotations

import pytest
from PIL import Image

from seeact_offline.pages.outlines import BLUE, GREEN, RED, Outline, draw_outlines, visible
from seeact_offline.records import Box

WHITE = (255, 255, 255)


def drawn(*outlines: Outline) -> Image.Image:
    return draw_outlines(Image.new("RGB", (200, 100), WHITE), outlines)


def test_a_box_has_the_colour_of_its_kind_and_its_inside_stays_free() -> None:
    box = Box(50, 40, 60, 30)
    kinds = {
        GREEN: Outline(box, True), RED: Outline(box, False, rank=3), BLUE: Outline(box, False),
    }  # fmt: skip
    for colour, outline in kinds.items():
        picture = drawn(outline)
        assert picture.getpixel((100, 70)) == colour
        inside = picture.crop((50, 40, 110, 70))
        assert inside.getcolors() == [(60 * 30, WHITE)]


def test_the_right_one_lies_on_top_whatever_the_order() -> None:
    box = Box(50, 40, 60, 30)
    right, other = Outline(box, True, rank=1), Outline(box, False, rank=0)
    assert drawn(right, other).getpixel((100, 70)) == drawn(other, right).getpixel((100, 70)) == GREEN


def test_a_rank_is_written_outside_of_its_box() -> None:
    with_rank, without = drawn(Outline(Box(50, 40, 60, 30), True, rank=17)), drawn(Outline(Box(50, 40, 60, 30), True))
    assert with_rank.crop((0, 0, 200, 36)).tobytes() != without.crop((0, 0, 200, 36)).tobytes()
    assert with_rank.crop((50, 40, 110, 70)).tobytes() == without.crop((50, 40, 110, 70)).tobytes()


def test_ranks_of_equal_boxes_can_all_be_read() -> None:
    one, two, three = (drawn(*(Outline(Box(50, 40, 60, 30), False, rank=n) for n in range(k))) for k in (1, 2, 3))
    red = [sum(n for n, colour in picture.getcolors(99999) if colour == RED) for picture in (one, two, three)]
    assert red[0] < red[1] < red[2]


def test_what_lies_outside_is_left_out() -> None:
    assert drawn(Outline(Box(500, 40, 60, 30), True, rank=0), Outline(Box(5, 5, 0, 9), False)).getcolors() == [
        (200 * 100, WHITE)
    ]


def test_the_picture_given_is_not_drawn_on() -> None:
    image = Image.new("RGB", (200, 100), WHITE)
    draw_outlines(image, [Outline(Box(50, 40, 60, 30), True, rank=0)])
    assert image.getcolors() == [(200 * 100, WHITE)]


@pytest.mark.parametrize(
    "box",
    [
        *(Box(10, 10, 0, 20), Box(10, 10, 20, 0), Box(10, 10, -5, 20)),
        *(Box(-30, 10, 30, 20), Box(400, 10, 20, 20), Box(10, 300, 20, 20), Box(10, -20, 20, 20)),
    ],
)
def test_a_box_without_area_or_off_the_page_is_not_visible(box: Box) -> None:
    assert visible(box, (400, 300)) is None


def test_a_box_partly_off_the_page_is_clipped() -> None:
    assert visible(Box(-10, 290, 30, 30), (400, 300)) == Box(0, 290, 20, 10)
