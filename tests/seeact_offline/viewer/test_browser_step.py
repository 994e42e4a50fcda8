"""One step in a real browser: the page with its boxes, the questions and the answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.viewer.server import Address
from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Tab, open_tab
from tests.seeact_offline.viewer.toy_site import key_of

pytestmark = [pytest.mark.slow, *REAL_BROWSER]
WRONG = 1
"""The row of a step with a wrong element."""


@pytest.fixture(scope="module")
def url(toy_url: Callable[..., str]) -> str:
    return toy_url(n=20)


def drawn(tab: Tab, kind: str) -> Any:
    """Ids of the boxes of this kind."""
    return tab.page.locator(f"g.box.{kind}").evaluate_all("all => all.map(one => one.dataset.id)")


def in_view(tab: Tab, element: str) -> bool:
    """Whether the middle of the element's box lies in the visible part of the picture."""
    return bool(tab.page.evaluate(
        """(id) => {
          const box = document.querySelector(`g.box[data-id="${id}"] .line`).getBoundingClientRect();
          const view = document.querySelector('.scroller').getBoundingClientRect();
          const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
          return x > view.left && x < view.right && y > view.top && y < view.bottom;
        }""",
        element,
    ))  # fmt: skip


TOLD = {
    ".question": ("Find a flight to Lisbon 0", "step 2 of 4", "[link] Search flights -> CLICK", "recorded as HOVER", "#e1"),
    ".answer": (
        "wrong element", "the model chose another element", "#e2", "element ✗ wrong", "Target's rank\n2", "1,200 tokens in",
        "0.0123 USD", "tie at group cut",
    ),
    ".conversation": (
        "Which element is the next one to use? 0", "The search button.", "ELEMENT: B", "2.31 s · 1 attempt · req-1", "chose C",
    ),
    ".elements tbody tr:first-child": ("#e1", "target", "0.967", "Search flights 1", "html > body > div:1 > a"),
    ".elements tbody tr:nth-child(25)": ("not offered",),
}  # fmt: skip


def test_task_answer_conversation_and_elements_are_told_without_an_error(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    page.locator("summary", has_text="Group 1").click()
    page.locator("summary", has_text="System text").click()
    for place, texts in TOLD.items():
        told = page.locator(place).inner_text()
        assert [text for text in texts if text not in told] == []
    assert tab.texts(".conversation pre").count("You use websites for people.") == 1
    assert len(tab.texts(".elements tbody tr")) == 25
    tab.until("[...document.images].filter(i => i.closest('.stage')).every(i => i.complete && i.naturalWidth)")
    assert tab.faults == []


def test_everything_that_can_be_pressed_has_a_name(tab: Tab) -> None:
    nameless = tab.step(key_of(WRONG)).evaluate(
        """[...document.querySelectorAll('button, a, input, select')]
          .filter(one => !(one.getAttribute('aria-label') || one.textContent.trim() || one.closest('label')?.textContent.trim()
            || one.querySelector('img[alt]')?.alt)).map(one => one.outerHTML)"""
    )
    assert nameless == []


# --- the page ---


def test_target_choice_and_offered_elements_are_outlined_in_page_pixels(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    assert (drawn(tab, "target"), drawn(tab, "choice")) == (["e1"], ["e2"])
    assert set(drawn(tab, "offered")) == {f"e{number}" for number in range(16)}
    line = page.locator("g.box.target .line")
    found = [float(line.get_attribute(name) or "nan") for name in ("x", "y", "width", "height")]
    assert found == list(toy_site.box_of(1))
    # they differ by more than their colour
    dashes = "(kind) => getComputedStyle(document.querySelector(`g.box.${kind} .line`)).strokeDasharray"
    assert page.evaluate(dashes, "target") != page.evaluate(dashes, "choice")
    assert [tab.texts(f"g.label.{kind} text") for kind in ("target", "choice")] == [["target"], ["choice"]]


def test_a_box_lies_on_its_element_at_every_zoom(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    for name in ("Zoom in", "Zoom in", "Fit the width", "Zoom out"):
        page.get_by_role("button", name=name).click()
        offset, scale = page.evaluate(
            """() => {
              const line = document.querySelector('g.box.target .line').getBoundingClientRect();
              const stage = document.querySelector('.stage').getBoundingClientRect();
              const scale = stage.width / 1280;
              return [[(line.left - stage.left) / scale, (line.top - stage.top) / scale], scale];
            }"""
        )
        # a line is drawn half outside its box
        assert offset == pytest.approx(toy_site.box_of(1)[:2], abs=3 / scale)


def test_groups_are_shown_one_after_the_other_with_their_labels(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    page.keyboard.press("g")
    assert drawn(tab, "offered") == [f"e{number}" for number in range(8)]
    assert tab.texts("g.label.offered text") == list("ABCDEFGH")
    page.keyboard.press("g")
    assert drawn(tab, "offered") == [f"e{number}" for number in range(8, 16)]
    assert page.locator("g.box.crop .line").get_attribute("y") == "600"
    page.keyboard.press("g")
    assert len(drawn(tab, "offered")) == 16


def test_t_leads_back_to_the_target_and_the_list_to_any_element(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    assert in_view(tab, "e1")
    page.evaluate("document.querySelector('.scroller').scrollTo(0, 5000)")
    assert not in_view(tab, "e1")
    page.keyboard.press("t")
    page.wait_for_timeout(800)
    assert in_view(tab, "e1")
    page.get_by_label("Other candidates").check()
    page.locator(".elements tr[data-id=e23] button").first.click()
    page.wait_for_timeout(800)
    assert in_view(tab, "e23")


def test_the_innermost_element_under_the_pointer_is_the_first(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    page.get_by_role("button", name="Fit the width").click()
    stage = page.locator(".stage").bounding_box()
    assert stage is not None
    scale = stage["width"] / toy_site.WIDTH
    page.mouse.move(stage["x"] + 140 * scale, stage["y"] + 155 * scale)
    assert drawn(tab, "hover") == ["inner"]
    assert "Inner" in page.locator(".caption").inner_text()


def test_dragging_moves_the_page(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    box = page.locator(".scroller").bounding_box()
    assert box is not None
    page.evaluate("document.querySelector('.scroller').scrollTo({top: 300, behavior: 'instant'})")
    before = page.evaluate("document.querySelector('.scroller').scrollTop")
    page.mouse.move(box["x"] + 100, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 200, steps=4)
    page.mouse.up()
    assert page.evaluate("document.querySelector('.scroller').scrollTop") == pytest.approx(before + 100, abs=2)


def test_pictures_are_shown_as_they_were_sent(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    picture = page.locator(".group[open] img").first
    picture.scroll_into_view_if_needed()
    tab.until("document.querySelector('.group[open] img').naturalWidth === 1280")
    page.locator(".group[open] button.sent").first.click()
    assert picture.evaluate("one => one.getBoundingClientRect().width") == 1280


# --- from step to step ---


@pytest.mark.parametrize(
    ("runs", "start", "query", "presses"),
    [
        (1, 1, "?f.outcome=wrong_element", [("j", 6), ("k", 1)]),
        (1, 2, "", [("f", 4)]),
        (2, 0, "?sort=task", [("d", 1), ("d", 3)]),
    ],
)
def test_keys_lead_through_the_list_as_it_is_filtered(
    tab: Tab, toy_url: Callable[..., str], runs: int, start: int, query: str, presses: list[tuple[str, int]]
) -> None:
    tab.url = toy_url(n=20, n_runs=runs) if runs > 1 else tab.url
    page = tab.step(key_of(start), query)
    for key, row in presses:
        page.keyboard.press(key)
        page.wait_for_url(f"**{key_of(row)}*")
    if query == "?f.outcome=wrong_element":
        assert page.locator(".place-in-list").inner_text() == "1 of 4"


# --- what is not known ---


UNKNOWN = {
    "task": "", "history": [], "website": "", "domain": "", "subdomain": "", "index": 0, "n_actions": 0, "picture": None,
    "truth": {"op": "", "original_op": "", "value": "", "target": None, "positives": []},
    "elements": [{"id": "e1", "tag": "", "box": None, "text": "", "path": "", "rank": 0, "score": None, "positive": False}],
}  # fmt: skip
"""A step of which the files of a run say as little as they can."""
NO_ANSWER = {"predicted": {"element_id": None, "op": "", "value": "", "point": None}, "usage": None, "groups": []}


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        ({}, ["website not known", "step not known", "task-0, words not known", "Right action\nnot known",
              "Right element\nnot known", "Done before\nnot known"]),
        ({"index": 4, "n_actions": 7}, ["step 5 of 7", "Done before\n4 actions, not known"]),
        ({"index": 0, "n_actions": 7}, ["step 1 of 7", "Done before\nnothing"]),
        ({"truth": {"op": "TYPE", "original_op": "TYPE", "value": None, "target": None, "positives": []}},
         ["Right action\nTYPE value not known", "Right element\nno right element on the page"]),
    ],
)  # fmt: skip
def test_what_is_not_known_of_a_step_is_called_so(
    tab: Tab, tmp_path: Path, known: dict[str, Any], shown: list[str]
) -> None:
    """It used to be nothing: no name, no action before it, an empty box for a picture."""
    site = toy_site.write_site(tmp_path / "site", n=4)
    path = site / "step" / f"{key_of(1)}.json"
    step = json.loads(path.read_text())
    path.write_text(json.dumps(step | UNKNOWN | known | {"runs": [step["runs"][0] | NO_ANSWER]}))
    with toy_site.serve(site) as tab.url:
        page = tab.step(key_of(1))
        told = page.locator(".question").inner_text()
        assert [one for one in shown if one not in told] == []
        assert page.locator(".picture").inner_text().strip() == "The picture of this page is not known."
        assert page.locator(".scroller").count() == 0
        answer = page.locator(".answer").inner_text()
        assert all(line in answer for line in ("Element\nnot known", "Action\nnot known"))
        assert "The questions are not known." in page.locator(".conversation").inner_text()
        assert "not known" in page.locator(".elements tbody").inner_text()
        assert tab.faults == []


def test_a_step_that_does_not_exist_is_said(tab: Tab) -> None:
    tab.page.goto(f"{tab.url}#/step/0123456789abcdef")
    assert "404" in tab.page.locator("[role=alert]").inner_text()


# --- the width of the window, and the real server ---


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_nothing_sticks_out_sideways_and_runs_stand_beside_or_below_each_other(
    browser: Any, toy_url: Callable[..., str], width: int
) -> None:
    with open_tab(browser, toy_url(n=20, n_runs=2), width=width) as tab:
        page = tab.step(key_of(WRONG))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        a, b = (page.locator(f".answer[data-run={letter}]").bounding_box() for letter in "AB")
        assert a is not None
        assert b is not None
        if width == 400:
            assert (a["x"], a["y"] + a["height"] <= b["y"]) == (b["x"], True)
        else:
            assert (a["y"], a["x"] + a["width"] <= b["x"]) == (b["y"], True)
        assert sorted(tab.texts("g.label.choice text")) == ["choice of A", "choice of B"]


def test_the_real_server_shows_a_run_of_the_sample(tab: Tab, served: Address) -> None:
    tab.url = served.url
    page = tab.list()
    page.locator(".window .row a").first.click()
    page.wait_for_selector(".answer", timeout=90_000)
    tab.until("[...document.images].some(one => one.closest('.stage') && one.naturalWidth)", 60)
    assert page.locator(".turn pre").count() > 0
    assert tab.faults == []
