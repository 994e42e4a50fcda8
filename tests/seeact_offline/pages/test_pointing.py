"""The scales in which places are written, and the element that lies at one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.pages.pointing import COORDINATES, element_at, shown_point, visible_centre, write_point
from seeact_offline.records import Box, StepError
from seeact_offline.replies.points import read_point
from tests.reference import pointing as reference

SIZE = (1280, 7412)


@pytest.mark.parametrize(
    ("coordinates", "numbers", "expected"),
    [
        ("absolute", (640, 3706), (640, 3706)),
        ("fraction", (0.5, 0.5), (640, 3706)),
        ("per-mille", (500, 500), (640, 3706)),
        ("absolute", (1280, 7412), (1280, 7412)),
        ("per-mille", (0, 1000), (0, 7412)),
    ],
)
def test_each_scale_means_its_own(coordinates, numbers, expected) -> None:
    assert shown_point(numbers, coordinates, SIZE) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("coordinates", "numbers"),
    [
        ("absolute", (1281, 5)),
        ("absolute", (5, 7413)),
        ("fraction", (12, 0.5)),
        ("fraction", (0.5, 1.01)),
        ("per-mille", (1001, 5)),
        ("per-mille", (-1, 5)),
        ("absolute", (1270, 5, 1290, 20)),
    ],
)
def test_a_number_beyond_the_scale_is_a_named_failure(coordinates, numbers) -> None:
    with pytest.raises(StepError) as caught:
        shown_point(numbers, coordinates, SIZE)
    assert caught.value.name == "point_outside"


@given(
    st.sampled_from(COORDINATES),
    st.tuples(st.integers(1, 3000), st.integers(1, 9000)),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_a_written_point_is_read_back_to_the_same_place(coordinates, size, share) -> None:
    point = (share[0] * size[0], share[1] * size[1])
    found = read_point(f"<point>{write_point(point, coordinates, size, 6)}</point>")
    assert shown_point(found.numbers, coordinates, size) == pytest.approx(point, abs=0.01)


BOX = st.tuples(*[st.integers(0, 12)] * 4)


@given(st.lists(BOX, max_size=8), st.tuples(st.integers(0, 24), st.integers(0, 24)))
def test_the_element_under_a_point_equals_the_slow_one(boxes, point) -> None:
    named = [(str(i), *box) for i, box in enumerate(boxes)]
    assert element_at(point, [(i, Box(*rest)) for i, *rest in named]) == reference.element_at(point, named)


def test_of_equal_boxes_the_innermost_is_taken() -> None:
    outer, inner = ("1", Box(0, 0, 10, 10)), ("2", Box(0, 0, 10, 10))
    assert element_at((5, 5), [outer, inner]) == "2"


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (Box(10, 20, 30, 40), (25, 40)),
        (Box(-10, 20, 30, 40), (10, 40)),
        (Box(90, 20, 30, 40), (95, 40)),
        (Box(100, 20, 30, 40), None),
        (Box(-30, 20, 30, 40), None),
        (Box(10, 20, 0, 40), None),
    ],
)
def test_the_centre_is_that_of_what_the_page_shows(box: Box, expected: tuple[float, float] | None) -> None:
    assert visible_centre(box, (100, 100)) == expected
