"""The recall curve as a picture."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from seeact_offline.ranking.recall import (
    ENDINGS,
    CurvePoint,
    curve_csv,
    curve_picture,
    draw_curve,
    draw_curves,
    read_curve,
)

POINTS = [CurvePoint(k, k / 125, k / 100, k / 160) for k in range(1, 101)]
TITLE = "bm25 on cross_task"
ONE = {"bm25": POINTS}
SEVERAL = ONE | {"$\\frac{deberta": [CurvePoint(k, k / 110, k / 100, k / 120) for k in range(1, 101)]}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("curves", [ONE, SEVERAL], ids=["one", "several"])
def test_the_picture_is_the_same_every_time(ending: str, curves: dict[str, list[CurvePoint]]) -> None:
    made = curve_picture(curves, TITLE, ending)
    assert made == curve_picture(curves, TITLE, ending)
    assert made.startswith({".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[ending])


def test_several_rankers_are_a_line_each_with_its_recall_at_the_cut() -> None:
    (axes,) = draw_curves(SEVERAL, TITLE).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "bm25: 40.0 % at k = 50",
        "$\\frac{deberta: 45.5 % at k = 50",
    ]
    assert [list(line.get_ydata())[49] for line in axes.lines[:2]] == [100 * 50 / 125, 100 * 50 / 110]
    assert len({line.get_linestyle() for line in axes.lines[:2]}) == 2


def test_a_curve_is_read_as_it_was_written() -> None:
    assert [point.recall for point in read_curve(curve_csv(POINTS))] == [round(point.recall, 6) for point in POINTS]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "k,recall\n1,0.5\n", curve_csv(POINTS[1:])])
def test_another_file_is_no_curve(text: str) -> None:
    with pytest.raises(ValueError, match=r"no column|not k = 1, 2"):
        read_curve(text)


def test_the_picture_is_a_png_that_names_no_program() -> None:
    with Image.open(io.BytesIO(curve_picture(ONE, TITLE))) as picture:
        assert (picture.format, picture.size) == ("PNG", (1440, 900))
        assert "Software" not in picture.info


def test_the_picture_says_what_it_shows() -> None:
    (axes,) = draw_curve(POINTS, TITLE).axes
    assert (axes.get_title(loc="left"), axes.get_xlabel()) == (TITLE, "candidates offered, k")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "recall of all steps = ceiling of Step SR, micro",
        "ceiling of Step SR, macro over tasks",
        "recall of steps that have a right element",
    ]


def test_the_lines_are_the_points_in_percent() -> None:
    (axes,) = draw_curve(POINTS, TITLE).axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert drawn["recall of all steps = ceiling of Step SR, micro"] == [100 * point.recall for point in POINTS]
    assert drawn["ceiling of Step SR, macro over tasks"] == [100 * point.step_sr_ceiling_macro for point in POINTS]
    assert drawn["recall of steps that have a right element"] == [100 * point.recall_with_positive for point in POINTS]


def test_the_cut_is_marked_with_its_recall() -> None:
    (axes,) = draw_curve(POINTS, TITLE).axes
    assert [text.get_text() for text in axes.texts] == ["40.0 % at k = 50"]


def test_a_curve_that_ends_before_the_cut_has_no_mark() -> None:
    (axes,) = draw_curve(POINTS[:20], TITLE).axes
    assert (len(axes.texts), [int(tick) for tick in axes.get_xticks()]) == (0, [1, 10, 20])


@pytest.mark.slow
@pytest.mark.parametrize("title", ["half a pair \udc80", "a price of $5 or {\\frac$", "two\nlines"])
def test_a_file_name_of_any_kind_can_be_the_title(title: str) -> None:
    assert curve_picture(ONE, title).startswith(b"\x89PNG")
    assert curve_picture({title: POINTS, "b": POINTS}, title).startswith(b"\x89PNG")
