"""Points as models write them, the scales they are in, and the element that lies there."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.records import Box, StepError
from seeact_offline.replies import points as pointing
from seeact_offline.replies.points import COORDINATES, element_at, read_point, shown_point, visible_centre, write_point
from tests.reference import pointing as reference

SIZE = (1280, 7412)
POINTS = [
    "<point>12 34</point>",
    "<point>12,34</point>",
    "<point>12, 34</point>",
    "<point> 12  34 ",
    "<point>x=12, y=34</point>",
    '<point x="12" y="34" alt="Search">Search</point>',
    "<points x='12' y='34'/>",
    "<|box_start|>(12,34)<|box_end|>",
    "<|point_start|>(12,34)<|point_end|>",
    "[[12, 34]]",
    "[12, 34]",
    "(12, 34)",
    "(12.0,34.0)",
    "\uff0812, 34\uff09",
    '{"x": 12, "y": 34}',
    '{"point": [12, 34]}',
    '{"point_2d": [12, 34], "label": "Search"}',
    '{"point": {"x": "12", "y": "34"}}',
    "x=12, y=34",
    "x: 12px and y: 34px",
    "start_box='(12,34)'",
    "click(x=12, y=34)",
    "ELEMENT: 12, 34",
    "POINT: 12 34",
]
BOXES = [
    "<box>10 20 14 48</box>",
    "<box>(10,20),(14,48)</box>",
    "<|box_start|>(10,20),(14,48)<|box_end|>",
    "<bbox>10, 20, 14, 48</bbox>",
    "[10, 20, 14, 48]",
    "[[10,20,14,48]]",
    "(10, 20, 14, 48)",
    '{"bbox_2d": [10, 20, 14, 48]}',
    "x1=10, y1=20, x2=14, y2=48",
    "ELEMENT: 10, 20, 14, 48",
]


@pytest.mark.parametrize("text", POINTS)
@pytest.mark.parametrize("around", ["{}", "I point at it: {} as asked.", "ELEMENT: {}\nACTION: CLICK\nVALUE: None"])
def test_every_notation_of_a_point_is_read(text: str, around: str) -> None:
    if text[:1] in "EP" and around != "{}":
        around = "I looked at it.\n{}\nACTION: CLICK"
    assert read_point(around.format(text)).numbers == (12.0, 34.0)


@pytest.mark.parametrize("text", BOXES)
def test_every_notation_of_a_box_is_read_and_counts_by_its_centre(text: str) -> None:
    found = read_point(f"{text}\nACTION: CLICK")
    assert found.numbers == (10.0, 20.0, 14.0, 48.0)
    assert shown_point(found.numbers, "absolute", SIZE) == (12.0, 34.0)


def test_the_last_answer_line_counts() -> None:
    text = "Options are (1, 2) and (3, 4).\nELEMENT: (5, 6)\nNo, rather:\nELEMENT: <point>7 8</point>\nACTION: CLICK"
    assert read_point(text).numbers == (7.0, 8.0)


def test_an_answer_under_its_label_is_read() -> None:
    assert read_point("**ELEMENT:**\n<point>7 8</point>\n**ACTION:** CLICK").numbers == (7.0, 8.0)


def test_a_point_line_beside_an_element_in_words_is_read() -> None:
    assert read_point("ELEMENT: the Search button\nPOINT: [[3,4]]\nACTION: CLICK").numbers == (3.0, 4.0)


def test_what_follows_the_answer_line_is_no_part_of_it() -> None:
    assert read_point("ELEMENT: (1, 2)\nI chose this and not (3, 4).").numbers == (1.0, 2.0)


def test_a_place_named_twice_is_one_place() -> None:
    assert read_point("It is at (5, 6). I would press [5, 6].").numbers == (5.0, 6.0)


def test_a_box_beside_its_own_centre_is_one_place() -> None:
    assert read_point("ELEMENT: <box>10 20 14 48</box>, that is (12, 34)").numbers == (10.0, 20.0, 14.0, 48.0)


@pytest.mark.parametrize("none", ["NA", "N/A", "**NA**", "none", "None of them", '"NA"', "not on the page", "null"])
def test_no_element_can_be_said(none: str) -> None:
    found = read_point(f"I looked at (1, 2) first.\nELEMENT: {none}\nACTION: CLICK\nVALUE: None")
    assert (found.says_none, found.failure, found.numbers) == (True, None, ())


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("", "no_point"),
        ("The Search button.", "no_point"),
        ("It is at (50%, 20%).", "no_point"),
        ("<point>12</point>", "no_point"),
        ("<point>1 2 3</point>", "no_point"),
        ("(1, 2) and then (3, 4)", "several"),
        ("ELEMENT: (1, 2) or (3, 4)\nACTION: CLICK", "several"),
        ('<points x1="1" y1="2" x2="3" y2="4">both</points>', "several"),
        ('[{"bbox_2d": [1, 2, 3, 4]}, {"bbox_2d": [5, 6, 7, 8]}]', "several"),
        ("ELEMENT: [500, 300, 100, 40]", "reversed_box"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, failure: str) -> None:
    found = read_point(text)
    assert (found.failure, found.numbers, found.says_none) == (failure, (), False)
    assert failure in pointing.POINT_FAILURES


@pytest.mark.parametrize("bit", ["[1,", "(1,2", "<point", "x:", "ELEMENT:\n", "1,", '"', "<point x='1' ", "(1, 2) "])
def test_long_texts_of_one_kind_are_read_in_no_time(bit: str) -> None:
    began = time.process_time()
    read_point(bit * 20_000)
    assert time.process_time() - began < 1


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = read_point(text)
    assert bool(found.numbers) + found.says_none + (found.failure is not None) == 1


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
