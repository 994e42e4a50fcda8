"""Marks: labels, what is drawn, and where labels go. Places are compared as numbers, for pixels vary with libraries."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from seeact_offline.dataset import SPLITS, load_steps
from seeact_offline.pages.marks import (
    AWAY,
    GAP,
    MARK_KINDS,
    MARK_POSITIONS,
    REACH,
    MarkKind,
    MarkPlace,
    MarkPosition,
    Marks,
    Rect,
    Size,
    draw_marks,
    label_size,
    mark_labels,
    pixel_rect,
    place_clear,
    place_labels,
    place_outside,
)
from seeact_offline.pages.outlines import visible
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Box, InputError, Step
from tests.examples import often
from tests.reference import marking as reference

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "mark_places.txt"
PICTURE = (400, 300)
NARROW, WIDE = Size(18, 19), Size(27, 19)
RED = (255, 64, 64)

# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "count", "first", "last"),
    [
        *(("number", 17, "1", "17"), ("number", 700, "1", "700")),
        *(("letter", 1, "A", "A"), ("letter", 26, "A", "Z")),
        *(("double-letter", 17, "AA", "AQ"), ("double-letter", 27, "AA", "BA"), ("double-letter", 675, "AA", "ZZ")),
    ],
)
def test_labels_run_in_order(kind: MarkKind, count: int, first: str, last: str) -> None:
    labels = mark_labels(kind, count)
    assert (labels[0], labels[-1], len(set(labels))) == (first, last, count)


def test_the_answer_for_no_mark_is_no_label() -> None:
    assert "NA" not in mark_labels("double-letter", 675)


@pytest.mark.parametrize(
    ("kind", "count", "message"),
    [
        (
            "letter",
            27,
            "marks: expected at most 26 elements in one picture for letter, got 27; use double-letter or number",
        ),
        ("letter", 700, "got 700; use number"),
        (
            "double-letter",
            676,
            "marks: expected at most 675 elements in one picture for double-letter, got 676; use number",
        ),
    ],
)
def test_more_marks_than_labels_is_refused_with_what_to_use_instead(kind: MarkKind, count: int, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        mark_labels(kind, count)


# --- boxes ------------------------------------------------------------------------------------------------------------


def test_a_box_is_cut_to_whole_pixels_as_released() -> None:
    assert pixel_rect(10.2, 20.9, 30.1, 40.0) == Rect(10, 20, 31, 41)


@pytest.mark.parametrize(
    ("rect", "part"),
    [
        *((Rect(-10, 290, 20, 320), Rect(0, 290, 20, 300)), (Rect(10, 10, 20, 20), Rect(10, 10, 20, 20))),
        *((Rect(-30, 10, 0, 20), None), (Rect(400, 10, 420, 20), None), (Rect(10, 10, 10, 20), None)),
    ],
)
def test_of_a_rectangle_the_part_in_the_picture_is_seen(rect: Rect, part: Rect | None) -> None:
    assert rect.within(PICTURE) == part


def supervision():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import supervision
    return supervision


edges = st.one_of(st.floats(-40, 460), st.integers(-40, 460))
narrow = st.one_of(st.floats(0, 9), st.floats(0, 500))


@settings(max_examples=often(60))
@given(edges, edges, narrow, narrow)
def test_boxes_are_those_of_the_released_annotator(x: float, y: float, width: float, height: float) -> None:
    """Narrow ones are as hollow, and ones outside the picture or without area as much to be seen."""
    sv = supervision()
    expected = np.full((PICTURE[1], PICTURE[0], 3), 200, np.uint8)
    marked = sv.Detections(xyxy=np.array([[x, y, x + width, y + height]]), class_id=np.array([1]))
    sv.BoxAnnotator(sv.Color(64, 64, 255), thickness=2).annotate(expected, marked)
    box = pixel_rect(x, y, x + width, y + height)
    image = draw_marks(Image.new("RGB", PICTURE, (200, 200, 200)), [box], ["A"], [Rect(0, 0, 0, 0)], Marks())
    assert np.array_equal(np.asarray(image), expected)


def test_a_box_of_any_size_can_be_drawn() -> None:
    image = draw_marks(
        Image.new("RGB", PICTURE), [Rect(-(10**12), 5, 10**12, 10**12)], ["A"], [Rect(0, 0, 0, 0)], Marks()
    )
    assert image.getpixel((200, 5)) == RED


# --- where labels go, as released -------------------------------------------------------------------------------------

OPENCV = {
    "A": 31, "C": 33, "E": 31, "H": 33, "I": 26, "J": 30, "M": 34, "Q": 33, "S": 32, "W": 34, "AA": 40, "MM": 46, "1": 32, "10": 42,
}  # fmt: skip
"""Pixels across, of labels drawn by supervision 0.18 with OpenCV 4.10; 33 pixels tall, all of them."""


@pytest.mark.parametrize("label", OPENCV)
def test_a_label_is_about_as_large_as_released(label: str) -> None:
    width, height = label_size(label, Marks())
    assert height == 33
    assert abs(width - OPENCV[label]) <= 3


@given(*(st.integers(-60, 460) for _ in range(4)), st.sampled_from(MARK_POSITIONS))
def test_a_label_stands_where_supervision_puts_it(
    x: int, y: int, right: int, bottom: int, position: MarkPosition
) -> None:
    """In the picture or not. Supervision counts a background to its last pixel, and halves odd widths its own way."""
    sv = supervision()
    box = sv.Detections(xyxy=np.array([[x, y, right, bottom]]), class_id=np.array([0]))
    place = sv.Position[position.replace("-", "_").upper()]
    anchor = box.get_anchors_coordinates(place).astype(int)[0]
    text = (NARROW.width - 1, NARROW.height - 1)
    x0, y0, *_ = sv.annotators.utils.resolve_text_background_xyxy(tuple(anchor), text, place)
    spot = place_labels([pixel_rect(x, y, right, bottom)], [NARROW], PICTURE, Marks(position=position)).spots[0]
    slack = (int("center" in position), int(position == "center"))
    assert (abs(spot.x0 - x0), abs(spot.y0 - y0)) <= slack
    assert (spot.x1 - spot.x0, spot.y1 - spot.y0) == NARROW


def test_labels_of_one_corner_lie_on_each_other_as_released() -> None:
    placed = place_labels([Rect(100, 100, 200, 150)] * 3, [NARROW] * 3, PICTURE, Marks())
    assert (placed.spots, placed.n_off_position) == ((Rect(100, 149, 118, 168),) * 3, 0)


# --- where labels go, kept clear of each other ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "spot"),
    [
        *(("bottom-left", (99, 151)), ("bottom-center", (141, 151)), ("bottom-right", (183, 151))),
        *(("top-left", (99, 80)), ("top-center", (141, 80)), ("top-right", (183, 80)), ("center", (141, 115))),
    ],
)
def test_a_lone_label_lies_at_its_position(position: MarkPosition, spot: tuple[int, int]) -> None:
    assert place_clear([Rect(100, 100, 200, 150)], [NARROW], PICTURE, position).spots[0][:2] == spot


@pytest.mark.parametrize(
    ("box", "spot"),
    [(Rect(0, 250, 50, 300), (0, 281)), (Rect(390, 100, 400, 120), (382, 121)), (Rect(0, 0, 400, 300), (0, 281))],
)
def test_a_label_is_kept_inside_the_picture(box: Rect, spot: tuple[int, int]) -> None:
    assert place_clear([box], [NARROW], PICTURE, "bottom-left").spots[0][:2] == spot


def test_a_label_stays_at_its_corner_whatever_else_lies_there() -> None:
    rows = [Rect(100, 100, 200, 130), Rect(100, 131, 200, 161)]
    placed = place_clear(rows, [NARROW, NARROW], PICTURE, "bottom-left")
    assert ([spot[:2] for spot in placed.spots], placed.n_off_position) == ([(99, 131), (99, 162)], 0)


def test_labels_of_one_corner_stand_on_its_sides() -> None:
    """Below, inside, inside beside the box, and over the corner; the fifth leaves it and is counted."""
    placed = place_clear([Rect(100, 100, 200, 150)] * 5, [NARROW] * 5, PICTURE, "bottom-left")
    assert [spot[:2] for spot in placed.spots[:4]] == [(99, 151), (99, 129), (81, 129), (81, 151)]
    assert placed.n_off_position == 1


def test_the_first_of_two_that_would_cover_each_other_stays() -> None:
    boxes = [Rect(100, 100, 200, 130), Rect(105, 110, 200, 130)]
    first, second = place_clear(boxes, [NARROW] * 2, PICTURE, "bottom-left").spots
    assert first[:2] == (99, 131)
    assert not first.meets(second)


rects = st.builds(
    lambda x, y, w, h: Rect(x, y, min(x + w, 80), min(y + h, 60)),
    *(st.integers(0, 75), st.integers(0, 55), st.integers(1, 60), st.integers(1, 40)),
)
few = st.lists(st.tuples(rects, st.builds(Size, st.integers(2, 9), st.just(5))), min_size=1, max_size=6)


@pytest.mark.slow
@settings(max_examples=40)
@given(few, st.sampled_from(MARK_POSITIONS))
def test_places_are_those_of_trying_every_place(marks: list[tuple[Rect, Size]], position: MarkPosition) -> None:
    boxes, sizes = zip(*marks, strict=True)
    expected = reference.place(boxes, sizes, (80, 60), position)
    spots = place_clear(boxes, sizes, (80, 60), position).spots
    assert {number: spots[number] for number in expected} == expected


crowds = st.lists(st.tuples(rects, st.builds(Size, st.integers(2, 30), st.just(9))), min_size=1, max_size=30)


@given(crowds, st.sampled_from(MARK_POSITIONS))
def test_labels_lie_in_the_picture_and_near_their_boxes(marks: list[tuple[Rect, Size]], position: MarkPosition) -> None:
    boxes, sizes = zip(*marks, strict=True)
    for box, spot in zip(boxes, place_clear(boxes, sizes, (80, 60), position).spots, strict=True):
        assert spot.x0 >= 0 <= spot.y0
        assert spot.x1 <= 80
        assert spot.y1 <= 60
        away = REACH + AWAY * (9 + GAP) + 1
        assert Rect(box.x0 - away, box.y0 - away, box.x1 + away, box.y1 + away).meets(spot)


def test_a_label_that_would_hide_a_small_element_goes_elsewhere() -> None:
    """Two icons side by side: the second one's label would lie on it, inside its corner."""
    icons = [Rect(100, 100, 119, 119), Rect(126, 100, 145, 119)]
    placed = place_clear(icons, [NARROW, Size(33, 33)], PICTURE, "bottom-left")
    assert not any(spot.meets(icon) for spot in placed.spots for icon in icons)


def test_a_label_may_lie_in_an_element_with_room_for_it() -> None:
    button = Rect(100, 100, 300, 140)
    _, second = place_clear([button] * 2, [Size(33, 33)] * 2, PICTURE, "bottom-left").spots
    assert button.overlap(second) >= 33 * 32


@given(crowds, st.sampled_from(MARK_POSITIONS), st.sampled_from(["clear", "outside"]))
def test_no_label_that_is_kept_clear_hides_its_own_element(
    marks: list[tuple[Rect, Size]], position: MarkPosition, place: MarkPlace
) -> None:
    """A picture with as much room around as labels may wander has a place for each."""
    margin = 200
    boxes = [Rect(*(edge + margin for edge in box)) for box, _ in marks]
    picture = (80 + 2 * margin, 60 + 2 * margin)
    spots = place_labels(boxes, [size for _, size in marks], picture, Marks(position=position, place=place)).spots
    for box, spot in zip(boxes, spots, strict=True):
        assert 2 * spot.overlap(box) <= (box.x1 - box.x0) * (box.y1 - box.y0)


@pytest.mark.parametrize("place", ["clear", "outside"])
def test_the_label_of_a_box_outside_the_picture_is_not_drawn_where_labels_are_kept_clear(place: MarkPlace) -> None:
    boxes = [Rect(-20, 100, 0, 120), Rect(5, 100, 60, 120)]
    marks = Marks(place=place)
    hidden, seen = place_labels(boxes, [NARROW] * 2, PICTURE, marks).spots
    assert hidden.within(PICTURE) is None
    assert seen == place_labels(boxes[1:], [NARROW], PICTURE, marks).spots[0]


# --- beside the element ----------------------------------------------------------------------------------------------


def test_a_lone_label_outside_stands_where_it_stood() -> None:
    spots = [
        place([Rect(100, 100, 200, 150)], [NARROW], PICTURE, "bottom-left") for place in (place_clear, place_outside)
    ]
    assert spots[0] == spots[1]


def test_a_label_for_which_there_is_no_room_below_goes_above_and_never_inside() -> None:
    placed = place_outside([Rect(0, 250, 50, 300)], [NARROW], PICTURE, "bottom-left")
    assert (placed.spots[0][:2], placed.n_off_position) == ((0, 230), 1)


def test_a_label_outside_leaves_the_next_row_free() -> None:
    """At its corner it would cover the row below it."""
    rows = [Rect(100, 100, 200, 130), Rect(100, 131, 200, 161)]
    placed = place_outside(rows, [NARROW, NARROW], PICTURE, "bottom-left")
    assert not any(spot.meets(row) for spot in placed.spots for row in rows)


def test_where_there_is_no_room_at_all_a_label_goes_inside() -> None:
    assert place_outside([Rect(0, 0, 400, 300)], [NARROW], PICTURE, "bottom-left").spots[0][:2] == (0, 281)


@pytest.mark.slow
@given(crowds, st.sampled_from(MARK_POSITIONS))
def test_a_label_covers_its_box_only_where_each_line_outside_is_taken(
    marks: list[tuple[Rect, Size]], position: MarkPosition
) -> None:
    boxes, sizes = zip(*marks, strict=True)
    spots = place_outside(boxes, sizes, (80, 60), position).spots
    for number, (box, size) in enumerate(marks):
        if spots[number].meets(box):
            beside = [Rect(x, y, x + size.width, y + size.height) for x, y in right_beside(box, size)]
            free = [spot for spot in beside if spot.x0 >= 0 <= spot.y0 and spot.x1 <= 80 and spot.y1 <= 60]
            assert all(any(spot.meets(grown(other)) for other in spots[:number]) for spot in free)


def right_beside(box: Rect, size: Size) -> list[tuple[int, int]]:
    """Flush with the box's top left corner: below, above, to the right and to the left."""
    x, y = box.x0, box.y0
    return [
        (x, box.y1 + REACH), (x, y - REACH - size.height), (box.x1 + REACH, y), (x - REACH - size.width, y),
    ]  # fmt: skip


def grown(rect: Rect) -> Rect:
    return Rect(rect.x0 - GAP, rect.y0 - GAP, rect.x1 + GAP, rect.y1 + GAP)


def test_a_label_without_room_covers_as_little_as_it_can() -> None:
    spots = place_clear([Rect(0, 0, 20, 20)] * 3, [Size(20, 9)] * 3, (20, 20), "bottom-left").spots
    assert [spot.overlap(other) for spot, other in [(spots[0], spots[1]), (spots[1], spots[2])]] == [0, 0]
    assert spots[2].overlap(spots[0]) + spots[2].overlap(spots[1]) == 20 * 7  # two rows of the picture are free


def places(position: MarkPosition) -> str:
    """A small crowded page: a menu, a card with a link in it, nested boxes of one size, boxes at the edges."""
    menu = [Rect(20, 20 + 24 * i, 120, 44 + 24 * i) for i in range(5)]
    card = [Rect(150, 20, 300, 140), Rect(160, 30, 220, 50), Rect(160, 60, 290, 80)]
    nested = [Rect(200, 180, 260, 200)] * 4 + [Rect(205, 182, 255, 198)]
    edges = [Rect(0, 280, 40, 300), Rect(380, 0, 400, 12), Rect(399, 299, 400, 300), Rect(0, 0, 400, 300)]
    boxes = [*menu, *card, *nested, *edges]
    spots = place_clear(boxes, [NARROW if i < 9 else WIDE for i in range(len(boxes))], PICTURE, position).spots
    rows = [
        f"{i:2} box {tuple(box)} label {tuple(spot)}" for i, (box, spot) in enumerate(zip(boxes, spots, strict=True), 1)
    ]
    return "\n".join([position, *rows])


def test_the_places_of_a_crowded_page_are_as_recorded() -> None:
    assert "\n\n".join(places(position) for position in MARK_POSITIONS) + "\n" == SNAPSHOT.read_text()


# --- the densest page of the sample -----------------------------------------------------------------------------------


def closest(boxes: Sequence[Box], count: int) -> list[Box]:
    """Of all runs of `count` boxes down the page, the one in the smallest area."""
    ordered = sorted(boxes, key=lambda box: (box.y, box.x))
    runs = [ordered[i : i + count] for i in range(len(ordered) - count + 1)]

    def area(run: list[Box]) -> float:
        width = max(box.right for box in run) - min(box.x for box in run)
        return width * (max(box.bottom for box in run) - min(box.y for box in run))

    return min(runs, key=area)


def on_page(step: Step) -> list[Box]:
    size = PagePicture(step.screenshot).size
    boxes = [visible(c.box, size) for c in step.candidates if c.box is not None]
    return [box for box in boxes if box is not None]


@pytest.fixture(scope="module")
def densest() -> Step:
    """The step of the sample with the most elements to an area of page."""

    def density(step: Step) -> float:
        width, height = PagePicture(step.screenshot).size
        return len(step.candidates) / (width * height)

    drawn = (step for split in SPLITS for step in load_steps("sample", split) if step.screenshot is not None)
    return max(drawn, key=density)


def on_dense_page(step: Step, kind: MarkKind, count: int) -> tuple[list[Rect], tuple[str, ...], tuple[int, int]]:
    size = PagePicture(step.screenshot).size
    boxes = [pixel_rect(box.x, box.y, box.right, box.bottom) for box in closest(on_page(step), count)]
    return boxes, mark_labels(kind, count), size


def default_places(boxes: Sequence[Rect], labels: Sequence[str]) -> list[Rect]:
    """Where supervision's label annotator puts labels when nothing is asked of it, read off from drawing each alone on an
    empty part of the page around all boxes."""
    sv = supervision()
    left, top = min(box.x0 for box in boxes) - 60, min(box.y0 for box in boxes) - 60
    right, bottom = max(box.x1 for box in boxes) + 60, max(box.y1 for box in boxes) + 60
    spots = []
    for box, label in zip(boxes, labels, strict=True):
        page = np.full((bottom - top, right - left, 3), 7, np.uint8)
        mark = sv.Detections(xyxy=np.array([box]) - [left, top, left, top], class_id=np.array([0]))
        drawn = (sv.LabelAnnotator().annotate(page, mark, [label]) != 7).any(axis=2)
        rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
        spots.append(Rect(int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))
    return spots


@pytest.mark.slow
@pytest.mark.parametrize("position", MARK_POSITIONS)
@pytest.mark.parametrize(("kind", "count"), [("number", 50), ("letter", 26), ("double-letter", 50)])
def test_under_2_in_100_labels_overlap_on_the_densest_page(
    densest: Step, kind: MarkKind, count: int, position: MarkPosition
) -> None:
    boxes, labels, size = on_dense_page(densest, kind, count)
    spots = place_clear(boxes, [label_size(label, Marks()) for label in labels], size, position).spots
    assert reference.share_overlapping(spots) < 0.02


def test_supervisions_own_places_overlap_on_the_densest_page(densest: Step) -> None:
    boxes, labels, _ = on_dense_page(densest, "number", 50)
    assert reference.share_overlapping(default_places(boxes, labels)) > 0.4


# --- drawing ----------------------------------------------------------------------------------------------------------


def drawn(boxes: Sequence[Rect], labels: Sequence[str], position: MarkPosition = "bottom-left") -> Image.Image:
    spots = place_clear(boxes, [label_size(label, Marks()) for label in labels], PICTURE, position).spots
    return draw_marks(Image.new("RGB", PICTURE, (200, 220, 240)), boxes, labels, spots, Marks())


def test_a_box_is_outlined_in_red_and_left_open() -> None:
    image = drawn([Rect(100, 100, 200, 150)], ["1"])
    edges = [(100, 120), (199, 120), (150, 100), (150, 149)]
    assert [image.getpixel(edge) for edge in edges] == [RED] * 4
    assert image.getpixel((150, 125)) == (200, 220, 240)
    assert image.getpixel((90, 120)) == (200, 220, 240)


@pytest.mark.parametrize("label", ["1", "50", "A", "W", "AA", "ZZ", "100"])
def test_a_label_is_white_on_black(label: str) -> None:
    boxes = [Rect(100, 100, 200, 150)]
    spot = place_clear(boxes, [label_size(label, Marks())], PICTURE, "bottom-left").spots[0]
    pixels = np.asarray(drawn(boxes, [label]).crop(spot).convert("L"))
    assert (pixels > 200).sum() >= 10
    assert (pixels < 5).mean() > 0.5
    assert (pixels[[0, -1]] == 0).all()
    assert (pixels[:, [0, -1]] == 0).all()


def test_on_a_dark_page_an_outline_is_white_around_box_and_label() -> None:
    box, spot = Rect(40, 20, 70, 50), Rect(40, 60, 60, 80)
    page = Image.new("RGB", (100, 100), "black")
    plain, outlined = (
        np.array(draw_marks(page, [box], ["A"], [spot], Marks(outline=lined))) for lined in (False, True)
    )
    white = (255, 255, 255)
    assert [tuple(outlined[y, x]) for y, x in ((18, 55), (51, 55), (35, 38), (35, 71))] == [white] * 4
    assert [tuple(outlined[y, x]) for y, x in ((60, 40), (79, 59), (79, 40))] == [white] * 3
    assert tuple(plain[18, 55]) == tuple(plain[60, 40]) == (0, 0, 0)
    assert tuple(outlined[19, 55]) == tuple(plain[19, 55]) == RED


def test_nothing_but_boxes_and_labels_is_changed() -> None:
    before, after = (
        np.asarray(Image.new("RGB", PICTURE, (200, 220, 240))),
        np.asarray(drawn([Rect(9, 9, 60, 40)], ["1"])),
    )
    changed = np.argwhere((before != after).any(axis=2))
    assert (changed.min(axis=0) >= (7, 7)).all()
    assert (changed.max(axis=0) <= (40 + 34, 62)).all()


def test_a_label_away_from_its_box_is_joined_to_it() -> None:
    box, spot = Rect(100, 100, 120, 110), Rect(100, 150, 120, 169)
    image = draw_marks(Image.new("RGB", PICTURE, "white"), [box], ["1"], [spot], Marks())
    assert [image.getpixel((110, y)) for y in (115, 130, 145)] == [RED] * 3


def test_a_picture_of_one_pixel_can_be_marked() -> None:
    spots = place_clear([Rect(0, 0, 1, 1)], [label_size("1", Marks())], (1, 1), "bottom-left").spots
    assert draw_marks(Image.new("RGB", (1, 1)), [Rect(0, 0, 1, 1)], ["1"], spots, Marks()).size == (1, 1)


def test_the_picture_given_is_left_as_it_was() -> None:
    image = Image.new("RGB", PICTURE, "white")
    draw_marks(image, [Rect(10, 10, 50, 50)], ["1"], [Rect(10, 51, 28, 70)], Marks())
    assert image.getcolors() == [(PICTURE[0] * PICTURE[1], (255, 255, 255))]


def test_all_labels_of_a_kind_are_of_one_height() -> None:
    assert len({label_size(label, Marks()).height for kind in MARK_KINDS for label in mark_labels(kind, 26)}) == 1


def test_fifty_marks_on_a_tall_picture_take_little_time() -> None:
    image = Image.new("RGB", (1280, 5808), "white")
    boxes = [Rect(20 + 25 * i, 20 + 100 * i, 900, 20 + 100 * i + 60) for i in range(50)]
    labels = mark_labels("number", 50)
    best = 1.0
    for _ in range(3):
        start = time.perf_counter()
        spots = place_clear(boxes, [label_size(label, Marks()) for label in labels], image.size, "bottom-left").spots
        draw_marks(image, boxes, labels, spots, Marks())
        best = min(best, time.perf_counter() - start)
    assert best < 0.5  # some 60 ms on an idle core


def test_each_option_decides_the_picture_unless_it_is_of_labels_or_turns() -> None:
    """Else a kept reply to one picture would answer another."""
    other = {
        "kind": "letter", "position": "center", "turn1": True, "text_size": 20, "padding": 3, "place": "clear", "outline": True,
    }  # fmt: skip
    assert other.keys() == {option.name for option in fields(Marks)}
    changed = {name for name, value in other.items() if Marks(**{name: value}).drawing != Marks().drawing}
    assert changed == other.keys() - {"kind", "turn1"}
    assert Marks(place="clear").drawing == ("bottom-left", 16, 10, "clear", False)
