"""Sizes, blocks and places against what the released functions give."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seeact_offline.agents import AGENTS
from seeact_offline.agents.screens import Frame, Resize, Shown, blocks, linear_resize
from seeact_offline.pages.screenshots import smart_resize

SIDES = st.integers(28, 12_000)


@pytest.mark.parametrize(
    ("factor", "least", "most", "expected"),
    [
        (28, 78_400, 12_845_056, (1288, 5012)),
        (32, 4_096, 16_777_216, (1280, 4992)),
        (28, 3_136, 1_003_520, (504, 1960)),
        (28, 1_053_696, 1_317_120, (560, 2268)),
        (28, 200_704, 1_053_696, (504, 2016)),
        (28, 200_704, 937_664, (476, 1904)),
        (32, 4_096, 13_107_200, (1280, 4992)),
    ],
)
def test_a_tall_page_gets_the_size_of_the_released_function(
    factor: int, least: int, most: int, expected: tuple[int, int]
) -> None:
    assert smart_resize(1280, 5000, factor, least, most) == expected


def test_the_clients_scale_linearly() -> None:
    assert linear_resize(1280, 5000, 3_136, 2_116_800) == (736, 2875)
    assert linear_resize(20, 30, 3_136, 2_116_800) == (46, 69)


@given(width=SIDES, height=SIDES, agent=st.sampled_from([*AGENTS.values()]))
def test_resizing_twice_is_resizing_once(width: int, height: int, agent: object) -> None:
    resize: Resize = agent.view.resize  # type: ignore[attr-defined]
    # a longer strip may be rounded to other sides the second time, by the released code too
    assume(max(width, height) <= 20 * min(width, height))
    once = resize.apply((width, height))
    assert resize.apply(once) == once
    if resize.rule == "smart":
        assert resize.min_pixels <= once[0] * once[1] <= resize.max_pixels


def test_a_strip_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 200 times as long as wide, got 10 x 2010"):
        smart_resize(10, 2010, 28, 3_136, 1_003_520)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1280, 1000), [(0, 0, 1280, 1000), (0, 800, 1280, 1000)]),
        ((1280, 1800), [(0, 0, 1280, 1000), (0, 800, 1280, 1800), (0, 1600, 1280, 1800)]),
        ((800, 999), [(0, 0, 800, 999)]),
        ((1920, 1100), [(0, 0, 1280, 1000), (0, 800, 1280, 1100)]),
        ((1280, 150), [(0, 0, 1280, 150)]),
    ],
)
def test_blocks_are_those_of_uground(size: tuple[int, int], expected: list[tuple[int, int, int, int]]) -> None:
    assert blocks(*size) == expected


@given(
    page=st.tuples(SIDES, SIDES), sent=st.tuples(SIDES, SIDES), x=st.floats(0, 1), y=st.floats(0, 1),
    frame=st.sampled_from([Frame(), Frame(1, 2), Frame(1, 4), Frame(1000), Frame(1000, y_first=True), Frame(y_first=True)]), top=st.floats(0, 0.9),
)  # fmt: skip
def test_a_place_survives_within_half_a_unit(
    page: tuple[int, int], sent: tuple[int, int], x: float, y: float, frame: Frame, top: float
) -> None:
    part = (0, int(top * page[1]), page[0], page[1])
    shown = Shown(page, sent, part)
    place = (x * page[0], part[1] + y * (page[1] - part[1]))
    back = shown.to_page(shown.from_page(place, frame), frame)
    extent = frame.ordered(frame.extent(sent))
    for axis, side in enumerate((part[2] - part[0], part[3] - part[1])):
        assert abs(back[axis] - place[axis]) <= 0.5 * 10**-frame.decimals * side / extent[axis] + 1e-6
