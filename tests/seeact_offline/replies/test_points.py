"""Points as models write them, the scales they are in, and the element that lies there."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.pages.pointing import shown_point
from seeact_offline.replies import points as pointing
from seeact_offline.replies.points import read_point

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
