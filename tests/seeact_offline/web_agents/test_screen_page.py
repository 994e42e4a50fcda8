"""Recorded rows as screens: what is taken from where, and what stands in for what a row lacks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from seeact_offline.dataset.recorded import (
    AccessibilityTree,
    AccessibleNode,
    ClientRect,
    ElementLayout,
    Layout,
    PageState,
    RecordedColumns,
)
from seeact_offline.pages.dom import Page
from seeact_offline.records import Box, Candidate, Operation, Step
from seeact_offline.web_agents.marks import webvoyager
from seeact_offline.web_agents.screen_page import FALL_BACKS, ScreenElement, screen_of

WINDOW = (0, 100, 1280, 868)
HTML = """<html backend_node_id="1"><body backend_node_id="2">
<div backend_node_id="3"><a backend_node_id="4" aria_label="Home"><text backend_node_id="5">Go</text><svg backend_node_id="6" class="house"/></a>
<text backend_node_id="7">home</text></div>
<select backend_node_id="8"><option backend_node_id="9"><text backend_node_id="10">May</text></option></select>
<span backend_node_id="11"/><label backend_node_id="12"/></body></html>"""
BOXES = {"4": Box(20, 120, 60, 20), "6": Box(60, 122, 16, 16), "8": Box(20, 200, 80, 30), "9": Box(20, 200, 80, 30)}
CLICKABLE = ("4", "11", "12")


def step_with(columns: Sequence[msgspec.Struct] = ()) -> Step:
    named = {"Layout": "layout", "PageState": "page_state", "AccessibilityTree": "accessibility_tree"}
    texts = {named[type(one).__name__]: msgspec.json.encode(one).decode() for one in columns}
    tags = {"4": "a", "6": "svg", "8": "select", "9": "option", "11": "span", "12": "label"}
    candidates = [Candidate(i, tag, BOXES.get(i), i == "4", i in CLICKABLE) for i, tag in tags.items()]
    return Step(
        annotation_id="t", action_uid="s", task="", history=(), website="", domain="", cleaned_html=HTML,
        operation=Operation("CLICK"), candidates=tuple(candidates), screenshot=None,
        recorded=RecordedColumns(texts) if texts else None,
    )  # fmt: skip


def elements_of(step: Step) -> dict[str, ScreenElement]:
    return {one.id: one for one in reversed(screen_of(step, Page(step.cleaned_html)).elements)}


LAYOUT = Layout((
    ElementLayout("1", (ClientRect(Box(0, 0, 1280, 900), "1"),)),
    ElementLayout("3", (ClientRect(Box(0, 110, 1280, 50), "20"),)),
    ElementLayout("4", (ClientRect(Box(20, 120, 60, 20), "30"), ClientRect(Box(0, 150, 30, 20), None)), "pointer"),
    ElementLayout("6", (ClientRect(Box(60, 122, 16, 16), "30"),), "pointer"),
    ElementLayout("30", (ClientRect(Box(62, 124, 12, 12), "30"),), "pointer"),
    ElementLayout("20", (ClientRect(Box(600, 110, 90, 50), "20"),)),
    ElementLayout("11", (ClientRect(Box(300, 120, 30, 20), "11"),), visibility="hidden"),
))  # fmt: skip
STATE = PageState("/index.html", (1280, 720), (0, 0))
TREE = AccessibilityTree((AccessibleNode(0, "RootWebArea", name="The title"),))


def test_elements_have_parents_html_names_and_text_content() -> None:
    step = step_with()
    screen = screen_of(step, Page(step.cleaned_html))
    shown = [
        (one.id, one.tag, screen.elements[one.parent].id if one.parent is not None else None) for one in screen.elements
    ]
    assert shown[3:5] == [("4", "a", "3"), ("6", "svg", "4")]
    found = elements_of(step)
    assert (found["3"].text, found["4"].attributes["aria-label"]) == ("Gohome", "Home")
    assert "class" not in found["6"].attributes


@pytest.mark.parametrize(
    ("name", "attributes", "has_onclick"),
    [("4", {"href": ""}, True), ("11", {"tabindex": "0"}, True), ("12", {}, False), ("8", {}, False)],
)
def test_what_cleaning_took_away_has_stand_ins(name: str, attributes: dict[str, str], has_onclick: bool) -> None:
    found = elements_of(step_with())[name]
    stood_in = {key: found.attributes[key] for key in ("href", "tabindex") if key in found.attributes}
    assert (stood_in, found.has_onclick) == (attributes, has_onclick)


def test_without_a_layout_the_candidates_boxes_are_used() -> None:
    found = elements_of(step_with())
    rects = {name: element.rects for name, element in found.items()}
    assert (rects["4"], rects["3"], rects["11"]) == ((BOXES["4"],), (BOXES["4"],), ())
    # around the link and the list
    assert rects["2"] == rects["1"] == (Box(20, 120, 80, 110),)
    assert (found["4"].on_top, found["4"].cursor) == (None, None)


def test_options_of_a_closed_list_have_no_box() -> None:
    assert elements_of(step_with())["9"].rects == ()


def test_a_layout_gives_every_rectangle_and_look() -> None:
    found = elements_of(step_with([LAYOUT]))
    assert [rect.x for rect in found["4"].rects] == [20, 0]
    assert (found["4"].cursor, found["3"].cursor, found["11"].visibility) == ("pointer", "auto", "hidden")
    assert found["8"].rects == ()


def test_what_lies_on_top_is_a_place_among_the_elements() -> None:
    step = step_with([LAYOUT])
    elements = screen_of(step, Page(step.cleaned_html)).elements
    tops = {
        one.rects: [None if top is None else elements[top] for top in one.on_top or ()] for one in elements if one.rects
    }
    shape = next(one for one in elements if one.tag == "path")
    assert (shape.id, shape.rects) == ("6", (Box(62, 124, 12, 12),))
    assert tops[elements[3].rects] == [shape, None]
    # a wrapper that cleaning took away belongs to what stands before it
    assert tops[elements[2].rects] == [elements[4]]


def test_a_mark_on_an_icons_shape_has_the_icons_id() -> None:
    step = step_with([Layout(LAYOUT.elements[3:5])])
    assert [(mark.element_id, mark.rects) for mark in webvoyager(screen_of(step, Page(HTML)).elements, WINDOW)] == [
        ("6", (Box(62, 24, 12, 12),))
    ]


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ([], {"no_cursor", "no_covering", "boxes_of_candidates", "boxes_around_children", "options_hidden", "no_address", "no_title"}),
        ([LAYOUT], {"no_address", "no_title"}),
        ([LAYOUT, STATE, TREE], set()),
    ],
)  # fmt: skip
def test_fall_backs_are_named(columns: list[msgspec.Struct], missing: set[str]) -> None:
    always = {"href_of_all_links", "tabindex_by_clickable", "texts_without_space", "onclick_by_clickable"}
    found = screen_of(step_with(columns), Page(HTML)).fall_backs
    assert found == always | missing
    assert found <= FALL_BACKS.keys()


def test_address_and_title_are_the_recordings() -> None:
    screen = screen_of(step_with([STATE, TREE]), Page(HTML))
    assert (screen.address, screen.title) == ("/index.html", "The title")
