"""Elements like the right one: each kinship against what it says, on pages small enough to see."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.pages.dom import Page
from seeact_offline.pages.kinship import find_kin
from seeact_offline.records import Box, Candidate, ClickedBox

SIZE = (1000, 1000)
PAGE = """
<html backend_node_id="1"><body backend_node_id="2">
  <ul backend_node_id="3">
    <li backend_node_id="4"><a backend_node_id="5"><text>Add to</text><b backend_node_id="6"><text>cart</text></b></a></li>
    <li backend_node_id="7"><text>ADD  to cart</text></li>
    <li backend_node_id="8"><input backend_node_id="9" aria_label="Add to cart" /></li>
  </ul>
  <p backend_node_id="10"><text>Add</text></p><p backend_node_id="11"/><p backend_node_id="12"/>
</body></html>
"""


def candidate(node: str, box: Box | None = None, positive: bool = False) -> Candidate:
    return Candidate(node, "a", box, positive)


def kin_of(*positives: str, others: tuple[str, ...] = ("3", "4", "6", "7", "8", "9", "10", "11", "12")) -> dict:
    candidates = [candidate(node, positive=True) for node in positives]
    return find_kin(Page(PAGE), [*candidates, *(candidate(node) for node in others if node not in positives)], SIZE)


def test_elements_that_read_the_same_are_found_whatever_their_case_and_markup() -> None:
    assert kin_of("5")["same_text"] == {"4", "7", "8", "9"}


def test_labels_are_read_only_where_there_is_no_text() -> None:
    page = Page(
        '<html backend_node_id="1"><a backend_node_id="2" title="x"><text>Go</text></a><b backend_node_id="3" title="go"/></html>'
    )
    assert find_kin(page, [candidate("2", positive=True), candidate("3")], SIZE)["same_text"] == {"3"}


def test_an_element_without_words_reads_like_no_other() -> None:
    assert kin_of("11")["same_text"] == frozenset()


def test_parents_children_and_siblings_are_neighbours() -> None:
    assert kin_of("4")["neighbour"] == {"3", "7", "8"}
    assert kin_of("9")["neighbour"] == {"8"}
    assert kin_of("8")["neighbour"] == {"3", "4", "7", "9"}


def test_positives_are_not_their_own_kin() -> None:
    found = kin_of("4", "5", "7")
    assert all(ids.isdisjoint({"4", "5", "7"}) for kinship, ids in found.items() if kinship != "clicks_target")


def test_kin_are_candidates_only() -> None:
    assert kin_of("4", others=("7",))["neighbour"] == {"7"}


def boxed(*boxes: Box | None) -> dict:
    """The first is the positive, element 4; the others are elements 5 to 9."""
    candidates = [candidate(str(4 + place), box, positive=place == 0) for place, box in enumerate(boxes)]
    return find_kin(Page(PAGE), candidates, SIZE)


def test_boxes_that_share_an_area_overlap_and_those_that_touch_do_not() -> None:
    found = boxed(Box(100, 100, 50, 50), Box(149, 149, 10, 10), Box(150, 100, 10, 10), Box(0, 0, 900, 900), None)
    assert found["overlapping"] == {"5", "7"}


def test_an_element_clicks_the_positive_in_whose_box_its_middle_lies() -> None:
    found = boxed(Box(100, 100, 50, 50), Box(140, 140, 20, 20), Box(140, 140, 22, 22), Box(100, 100, 10, 10))
    assert found["clicks_positive"] == {"5", "7"}


def test_only_the_first_positive_is_the_target() -> None:
    candidates = [candidate("4", Box(0, 0, 10, 10), True), candidate("5", Box(500, 500, 10, 10), True)]
    found = find_kin(
        Page(PAGE), [*candidates, candidate("6", Box(504, 504, 2, 2)), candidate("7", Box(4, 4, 2, 2))], SIZE
    )
    assert (found["clicks_positive"], found["clicks_target"]) == ({"6", "7"}, {"7"})


def test_a_positive_inside_of_the_first_one_clicks_the_target() -> None:
    candidates = [candidate("4", Box(0, 0, 10, 10), True), candidate("5", Box(2, 2, 4, 4), True)]
    assert find_kin(Page(PAGE), candidates, SIZE)["clicks_target"] == {"5"}


def test_without_a_picture_nothing_clicks_the_target() -> None:
    candidates = [candidate("4", Box(0, 0, 10, 10), True), candidate("7", Box(4, 4, 2, 2))]
    found = find_kin(Page(PAGE), candidates, None)
    assert (found["clicks_positive"], found["clicks_target"]) == ({"7"}, frozenset())


def test_a_target_grows_to_thousandths_of_the_picture() -> None:
    box, size = Box(100.4, 100, 10, 10), (3000, 1000)
    # the left edge, 0.03347 of the width, becomes 0.033
    assert [ClickedBox(box, size).holds(x, 105) for x in (98.9, 99.1, 100.4)] == [False, True, True]


@pytest.mark.parametrize(("x", "inside"), [(100, True), (110, True), (110.1, False)])
def test_the_edges_of_a_target_belong_to_it(x: float, inside: bool) -> None:
    assert ClickedBox(Box(100, 100, 10, 10), SIZE).holds(x, 100) is inside


edges = st.integers(0, 12).map(float)
boxes = st.builds(Box, edges, edges, st.integers(0, 6).map(float), st.integers(0, 6).map(float))


@given(boxes, boxes)
def test_overlap_is_having_a_common_unit_square(one: Box, other: Box) -> None:
    squares = [set(product(range(int(b.x), int(b.right)), range(int(b.y), int(b.bottom)))) for b in (one, other)]
    assert (boxed(one, other)["overlapping"] == {"5"}) is bool(squares[0] & squares[1])
