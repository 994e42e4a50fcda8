"""Set-of-mark observations against slow re-implementations, and tables of their texts' quirks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from seeact_offline.records import Box
from seeact_offline.web_agents.marks import (
    EMPTY_WORDS,
    Mark,
    draw_visualwebarena,
    draw_webvoyager,
    place_labels,
    visualwebarena,
    visualwebarena_list,
    webvoyager,
    webvoyager_list,
)
from seeact_offline.web_agents.screen_page import ScreenElement
from tests.reference import web_marks as reference

WINDOW = (10, 20, 110, 100)
TAGS = "a button input textarea select img svg foreignobject p span div h2 li td option style video article".split()
ATTRIBUTES = {
    "type": ["hidden", "HIDDEN", "button", "Button", "email", "checkbox", "submit", "reset", "odd"],
    "role": ["button", "tab", "", "note"],
    "href": ["", "#x", "/submit"],
    "tabindex": ["-1", "0", ""],
    "contenteditable": ["true", ""],
    "draggable": ["true", "false"],
    "class": ["btn", "fa fa-star is-rating-item", "fa fa-star", "btns"],
    "alt": ["", "A cat", 'A "cat"', "NA"],
    "aria-label": ["", "Close", "Name"],
}
TEXTS = [
    "", " ", "Name", "Close", "Two  words", "a\nb", "\ta \t b\n", "\ufeffx\x1c", 'say "hi"', "NA", ' "NA"', "null", "12", "1.5", ".a { b }", ".a",
    '<img src="x">', "x" * 199, "x" * 200, "y" * 150 + " " * 60 + "z", "[1] [A] [Name]", "[] [StaticText] [Name]", "a,b", "\u00a0n\u00a0",
]  # fmt: skip


@st.composite
def pages(draw: st.DrawFn) -> list[ScreenElement]:
    """Elements of a random page in document order, in and around the window."""
    elements: list[ScreenElement] = []
    path: list[int] = []
    n = draw(st.integers(1, 14))
    corner, side = st.integers(-10, 240).map(lambda n: n / 2), st.sampled_from([0, 0.5, 4, 7.5, 8, 20, 60, 99])
    for place in range(n):
        path = path[: draw(st.integers(1, len(path)))] if path else []
        names = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), max_size=3, unique=True))
        rects = tuple(
            Box(*draw(st.tuples(corner, corner, side, side))) for _ in range(draw(st.sampled_from([1, 1, 1, 0, 2])))
        )
        tops = st.sampled_from([place, place, draw(st.integers(0, n - 1)), None])
        element = ScreenElement(
            id=str(place),
            tag=draw(st.sampled_from(TAGS)),
            parent=path[-1] if path else None,
            attributes={name: draw(st.sampled_from(ATTRIBUTES[name])) for name in names},
            text=draw(st.sampled_from(TEXTS)),
            rects=rects,
            on_top=tuple(draw(tops) for _ in rects) if draw(st.booleans()) else None,
            cursor=draw(st.sampled_from([None, "auto", "pointer"])),
            visibility=draw(st.sampled_from(["visible", "visible", "hidden"])),
            has_onclick=draw(st.sampled_from([False, False, True])),
        )
        elements.append(element)
        path = [*path, place]
    return elements


def corners(rects: tuple[Box, ...]) -> list[tuple[float, float, float, float]]:
    return [(x, y, x + w, y + h) for x, y, w, h in rects]


def found(marks: list[Mark]) -> list[tuple[int | None, int, list[tuple[float, float, float, float]], str]]:
    return [(mark.label, int(mark.element_id), corners(mark.rects), mark.entry) for mark in marks]


@pytest.mark.slow
@given(pages())
def test_webvoyagers_marks_are_those_of_the_slow_rules(page: list[ScreenElement]) -> None:
    slow = reference.webvoyager(page, WINDOW)
    assert found(webvoyager(page, WINDOW)) == [(one.label, one.place, one.rects, one.entry) for one in slow]


@pytest.mark.slow
@given(pages())
def test_visualwebarenas_marks_are_those_of_the_slow_rules(page: list[ScreenElement]) -> None:
    rows, lines = reference.visualwebarena(page, WINDOW)
    marks = visualwebarena(page, WINDOW)
    assert [(label, place, rects) for label, place, rects, _ in found(marks)] == [
        (row.label, row.place, row.rects) for row in rows
    ]
    assert visualwebarena_list(marks) == "\n".join(lines)


@pytest.mark.slow
@given(pages())
def test_every_number_of_a_list_is_a_marks_in_the_window(page: list[ScreenElement]) -> None:
    marks = webvoyager(page, WINDOW)
    assert [mark.label for mark in marks] == list(range(len(marks)))
    for mark in marks:
        assert 0 <= mark.center[0] <= 100
        assert 0 <= mark.center[1] <= 80
    numbered = [mark for mark in visualwebarena(page, WINDOW) if mark.label is not None]
    assert [mark.label for mark in numbered] == list(range(1, len(numbered) + 1))
    assert all(mark.is_drawn or not mark.entry for mark in numbered)


@pytest.mark.slow
@given(pages())
def test_labels_are_placed_as_by_the_slow_rules(page: list[ScreenElement]) -> None:
    marks = [mark for mark in visualwebarena(page, WINDOW) if mark.is_drawn]
    boxes = [(str(mark.label), corners(mark.rects)[0]) for mark in marks]
    assert [label.corner for label in place_labels(marks, (100, 80))] == reference.label_corners(boxes, 100, 80)


@pytest.mark.parametrize(
    ("label", "right", "corner"),
    # the first label is out of the picture on the left, and the second from the picture's right edge on
    [(1, 88.25, 88.25), (1, 88.5, 68.5), (12, 78.75, 78.75), (12, 79, 59)],
)
def test_a_digit_is_as_wide_as_in_the_released_font(label: int, right: float, corner: float) -> None:
    """Each was 10 pixels wide, so that 146 of 555 labels of the sample stood elsewhere than the released ones."""
    box = Box(0, 40, right, 20)
    mark = Mark(label, "a", (box,), box.center, "", True)
    before = Mark(3, "b", (Box(4, 42, 10, 20),), (9, 52), "", True)
    assert place_labels([before, mark], (100, 80))[1].corner == (corner, 24)


def page_of(*elements: ScreenElement) -> list[ScreenElement]:
    """A body around elements without a parent of their own, each 40 pixels wide and 20 high."""
    around = ScreenElement(id="body", tag="body", rects=(Box(0, 0, 1280, 5000),))
    return [around, *elements]


def one(tag: str, text: str = "", parent: int = 0, **attributes: str) -> ScreenElement:
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    return ScreenElement(id=tag, tag=tag, text=text, parent=parent, attributes=named, rects=(Box(30, 40, 40, 20),))


@pytest.mark.parametrize(
    ("element", "entry"),
    [
        (one("input", aria_label="Zip"), '[0]: <input> "Zip";'),
        (one("input"), '[0]: <input> "";'),
        (one("input", type="unheard-of"), '[0]: <input> "";'),
        (one("input", type="SEARCH"), '[0]: <input> "";'),
        (one("input", type="number", aria_label="Guests"), ""),
        (one("input", type="checkbox", aria_label="Nonstop"), ""),
        (one("textarea", aria_label="Notes"), '[0]: <textarea> "Notes";'),
        (one("button", aria_label="Close"), '[0]: <button> "Close";'),
        (one("button", type="reset", aria_label="Clear"), ""),
        (one("a", aria_label="Home"), ""),
        (one("select", aria_label="Month"), ""),
        (one("a", " \n Sign\n  in \t"), '[0]: "Sign in";'),
        (one("a", "Sign\nin"), '[0]: "Sign\nin";'),
        (one("a", "\ufeffSign in\u00a0"), '[0]: "Sign in";'),
        (one("a", "Sign in", aria_label="Account"), '[0]: "Sign in", "Account";'),
        (one("a", "Sign in", aria_label="Sign in"), '[0]: "Sign in";'),
        (one("button", "Go", aria_label="Search"), '[0]: <button> "Go", "Search";'),
        (one("button", "Go", aria_label=""), '[0]: <button> "Go";'),
        (one("textarea", 'say "hi"'), '[0]: <textarea> "say "hi"";'),
        (one("a", "x" * 199), f'[0]: "{"x" * 199}";'),
        (one("a", "x" * 200), ""),
        (one("a", 'see <img alt="x" src="y">'), ""),
        (one("a", "see <img"), '[0]: "see <img";'),
        (one("select", "JanFebMar"), '[0]: "JanFebMar";'),
    ],
)
def test_webvoyagers_entry(element: ScreenElement, entry: str) -> None:
    (mark,) = webvoyager(page_of(element), WINDOW)
    assert mark.entry == entry


def test_entries_of_webvoyager_are_joined_by_tabs() -> None:
    page = page_of(one("a", "Home"), one("a"), one("button", "Go"))
    assert webvoyager_list(webvoyager(page, WINDOW)) == '[0]: "Home";\t[2]: <button> "Go";'


@pytest.mark.parametrize(
    ("page", "marked"),
    [
        (page_of(one("a"), one("img", parent=1)), ["a"]),
        (page_of(one("li"), one("a", parent=1)), ["a"]),
        (page_of(one("div", role="button"), one("input", parent=1)), ["input"]),
        (page_of(one("span", role="button"), one("button", parent=1)), ["button"]),
        (page_of(one("svg"), one("a", parent=1)), []),
    ],
    ids=["part of a link", "innermost", "no item itself", "span that is no item", "no HTML"],
)
def test_webvoyager_thins_out(page: list[ScreenElement], marked: list[str]) -> None:
    assert [mark.element_id for mark in webvoyager(page, WINDOW)] == marked


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        (page_of(one("p", "Hello"), one("a", "Hello", href="#")), ["[] [StaticText] [Hello]", "[1] [A] [Hello]"]),
        (page_of(one("a", "Hello", href="#"), one("p", "Hello")), ["[1] [A] [Hello]"]),
        (page_of(one("a", "Hi", href="#"), one("a", "Hi", href="#")), ["[1] [A] [Hi]", "[2] [A] [Hi]"]),
        (page_of(one("a", "Hello")), []),
        (page_of(one("a", "Cat", href="#"), one("img", parent=1, alt='A "cat"')), ["[1] [IMG] [A cat]"]),
        (page_of(one("a", href="/submit"), one("img", parent=1)), ["[1] [A] []", "[2] [IMG] []"]),
        (page_of(one("button", "NA"), one("p", "None"), one("p", " None")), ["[1] [BUTTON] []", "[] [StaticText] [None]"]),
        (page_of(one("button", " a\n\tb  c ")), ["[1] [BUTTON] [ab  c]"]),
        (page_of(one("p", "z" * 300)), [f"[] [StaticText] [{'z' * 200}]"]),
        (page_of(one("p", ".x { color: red }"), one("p", ".x")), ["[] [StaticText] [.x]"]),
        (page_of(one("div", "Both"), one("p", "Inner", parent=1)), ["[] [StaticText] [Inner]"]),
        (page_of(one("button", "Go"), one("span", "Now", parent=1)), ["[1] [BUTTON] [Go]"]),
        (page_of(one("input", type="Hidden"), one("div", "9")), ["[] [StaticText] [9]"]),
        (page_of(one("p", "[] [StaticText] [x]"), one("p", "x"), one("button", "[] [StaticText] [x]")),
         ["[] [StaticText] [[] [StaticText] [x]]", "[1] [BUTTON] [[] [StaticText] [x]]"]),
    ],
)  # fmt: skip
def test_visualwebarenas_list(page: list[ScreenElement], lines: list[str]) -> None:
    assert visualwebarena_list(visualwebarena(page, WINDOW)).splitlines() == lines


def test_the_words_for_missing_values_are_pandas() -> None:
    from pandas._libs.parsers import STR_NA_VALUES

    assert EMPTY_WORDS | {""} == STR_NA_VALUES


def test_a_small_element_takes_a_number_and_is_not_shown() -> None:
    small = ScreenElement(id="dot", tag="button", text="dot", parent=0, rects=(Box(30, 40, 7.9, 20),))
    marks = visualwebarena(page_of(small, one("a", "Home", href="#")), WINDOW)
    assert [(mark.label, mark.is_drawn, mark.entry) for mark in marks] == [(1, False, ""), (2, True, "[2] [A] [Home]")]


@pytest.mark.parametrize("draw", [draw_webvoyager, draw_visualwebarena])
def test_drawing_changes_a_copy_around_the_mark_alone(draw) -> None:
    picture = Image.new("RGB", (200, 200), "white")
    marked = draw(picture, [Mark(1, "a", (Box(80, 100, 40, 20),), (100, 110), "")])
    assert picture.getcolors() == [(40_000, (255, 255, 255))]
    changed = Image.eval(marked.convert("L"), lambda value: 255 - value).getbbox()
    left, top, right, bottom = changed
    assert (62 <= left <= 80, 78 <= top <= 84, right, 120 <= bottom <= 122) == (
        True,
        True,
        122 if draw is draw_webvoyager else 121,
        True,
    )


def test_what_is_not_drawn_leaves_the_picture_as_it_is() -> None:
    picture = Image.new("RGB", (200, 200), "white")
    marks = [
        Mark(1, "a", (Box(80, 100, 4, 4),), (82, 102), "", is_drawn=False),
        Mark(None, "p", (Box(0, 0, 50, 50),), (25, 25), "", False),
    ]
    assert draw_visualwebarena(picture, marks).tobytes() == picture.tobytes()
