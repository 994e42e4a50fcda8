"""One step in a real browser: the page with its boxes, what was asked and answered."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Visit, chromium, visiting

pytestmark = REAL_BROWSER
RIGHT, WRONG = 0, 1
"""Rows."""


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    with toy_site.serve(toy_site.write_site(tmp_path_factory.mktemp("site") / "toy")) as address:
        yield address


@pytest.fixture
def visit(browser, url) -> Iterator[Visit]:
    with visiting(browser, url) as one:
        yield one


def drawn(visit: Visit, kind: str) -> list[str]:
    """Ids of the boxes of this kind."""
    return [
        str(one) for one in visit.page.locator(f"g.box.{kind}").evaluate_all("all => all.map(one => one.dataset.id)")
    ]


def in_view(visit: Visit, element: str) -> bool:
    """Whether the middle of the element's box lies in the visible part of the picture."""
    return bool(visit.page.evaluate(
        """(id) => {
          const box = document.querySelector(`g.box[data-id="${id}"] .line`).getBoundingClientRect();
          const view = document.querySelector('.scroller').getBoundingClientRect();
          const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
          return x > view.left && x < view.right && y > view.top && y < view.bottom;
        }""",
        element,
    ))  # fmt: skip


def test_an_ordinary_step_gives_no_report_and_no_error(visit) -> None:
    visit.step(toy_site.key_of(WRONG))
    visit.until("[...document.images].filter(i => i.closest('.stage')).every(i => i.complete && i.naturalWidth)")
    assert visit.faults == []


def test_target_choice_and_offered_elements_are_outlined_in_page_pixels(visit) -> None:
    visit.step(toy_site.key_of(WRONG))
    assert drawn(visit, "target") == ["e1"]
    assert drawn(visit, "choice") == ["e2"]
    assert set(drawn(visit, "offered")) == {f"e{number}" for number in range(16)}
    line = visit.page.locator("g.box.target .line")
    assert [float(line.get_attribute(name)) for name in ("x", "y", "width", "height")] == list(
        map(float, toy_site.box_of(1))
    )


def test_target_and_choice_differ_by_more_than_their_colour(visit) -> None:
    visit.step(toy_site.key_of(WRONG))
    dashes = "(kind) => getComputedStyle(document.querySelector(`g.box.${kind} .line`)).strokeDasharray"
    assert visit.page.evaluate(dashes, "target") != visit.page.evaluate(dashes, "choice")
    assert visit.texts("g.box.target text") == ["target"]
    assert visit.texts("g.box.choice text") == ["choice"]


def test_a_box_lies_on_its_element_at_every_zoom(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
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


def test_groups_are_shown_one_after_the_other_with_their_labels(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
    page.keyboard.press("g")
    assert drawn(visit, "offered") == [f"e{number}" for number in range(8)]
    assert visit.texts("g.box.offered text") == list("ABCDEFGH")
    page.keyboard.press("g")
    assert drawn(visit, "offered") == [f"e{number}" for number in range(8, 16)]
    assert page.locator("g.box.crop .line").get_attribute("y") == "600"
    page.keyboard.press("g")
    assert len(drawn(visit, "offered")) == 16


def test_t_leads_back_to_the_target(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
    assert in_view(visit, "e1")
    page.evaluate("document.querySelector('.scroller').scrollTo(0, 5000)")
    assert not in_view(visit, "e1")
    page.keyboard.press("t")
    page.wait_for_timeout(800)
    assert in_view(visit, "e1")


def test_the_innermost_element_under_the_pointer_is_the_first(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
    page.get_by_role("button", name="Fit the width").click()
    stage = page.locator(".stage").bounding_box()
    scale = stage["width"] / toy_site.WIDTH
    page.mouse.move(stage["x"] + 140 * scale, stage["y"] + 155 * scale)
    assert drawn(visit, "hover") == ["inner"]
    assert "Inner" in page.locator(".caption").inner_text()


def test_dragging_moves_the_page(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
    box = page.locator(".scroller").bounding_box()
    page.evaluate("document.querySelector('.scroller').scrollTo({top: 300, behavior: 'instant'})")
    before = page.evaluate("document.querySelector('.scroller').scrollTop")
    page.mouse.move(box["x"] + 100, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 200, steps=4)
    page.mouse.up()
    assert page.evaluate("document.querySelector('.scroller').scrollTop") == pytest.approx(before + 100, abs=2)


def test_all_that_was_asked_and_answered_is_told(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
    page.locator("summary", has_text="Group 0").click()
    told = page.locator(".conversation").inner_text()
    for wanted in (
        "Which element is the next one to use? 0",
        "The search button.",
        "ELEMENT: B",
        "2.31 s · 1 attempt · req-1",
        "chose C",
    ):
        assert wanted in told
    page.locator("summary", has_text="System text").click()
    assert visit.texts(".conversation pre").count("You use websites for people.") == 1


def test_the_answer_its_scores_and_the_cause_of_loss_are_told(visit) -> None:
    visit.step(toy_site.key_of(WRONG))
    told = visit.page.locator(".answer").inner_text()
    for wanted in (
        "wrong element",
        "the model chose another element",
        "#e2",
        "element ✗ wrong",
        "1 (from 0)",
        "1,200 tokens in",
        "0.0123 USD",
        "tie at group cut",
    ):
        assert wanted in told


def test_task_history_and_the_right_action_are_told(visit) -> None:
    visit.step(toy_site.key_of(WRONG))
    told = visit.page.locator(".question").inner_text()
    for wanted in (
        "Find a flight to Lisbon 0",
        "step 2 of 4",
        "[link] Search flights -> CLICK",
        "recorded as HOVER",
        "#e1",
    ):
        assert wanted in told


def test_pictures_are_shown_as_they_were_sent(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
    picture = page.locator(".group[open] img").first
    picture.scroll_into_view_if_needed()
    visit.until("document.querySelector('.group[open] img').naturalWidth === 1280")
    page.locator(".group[open] button.sent").first.click()
    assert picture.bounding_box()["width"] == 1280


def test_elements_are_listed_with_rank_score_text_and_place(visit) -> None:
    visit.step(toy_site.key_of(WRONG))
    rows = visit.texts(".elements tbody tr")
    assert len(rows) == 25
    for wanted in ("#e1", "target", "0.967", "Search flights 1", "html > body > div:1 > a"):
        assert wanted in rows[0]
    assert "not offered" in rows[-1]


def test_an_element_of_the_list_leads_to_its_place_on_the_page(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
    page.get_by_label("Other candidates").check()
    page.locator(".elements tr[data-id=e23] button").first.click()
    page.wait_for_timeout(800)
    assert in_view(visit, "e23")


def test_j_goes_on_in_the_list_as_it_is_filtered(visit) -> None:
    page = visit.step(toy_site.key_of(1), "?f.outcome=wrong_element")
    assert page.locator(".place-in-list").inner_text() == "1 of 4"
    page.keyboard.press("j")
    page.wait_for_url(f"**{toy_site.key_of(6)}*")
    page.keyboard.press("k")
    page.wait_for_url(f"**{toy_site.key_of(1)}*")


def test_f_goes_to_the_next_failure(visit) -> None:
    page = visit.step(toy_site.key_of(2))
    page.keyboard.press("f")
    page.wait_for_url(f"**{toy_site.key_of(4)}*")


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
         ["Right action\nTYPE value not known", "Right element\nnone on this page"]),
    ],
)  # fmt: skip
def test_what_is_not_known_of_a_step_is_called_so(browser, tmp_path, known, shown) -> None:
    """It used to be nothing: no name, no action before it, an empty box for a picture."""
    site = toy_site.write_site(tmp_path / "site", n=4)
    path = site / "step" / f"{toy_site.key_of(1)}.json"
    step = json.loads(path.read_text())
    path.write_text(json.dumps(step | UNKNOWN | known | {"runs": [step["runs"][0] | NO_ANSWER]}))
    with toy_site.serve(site) as url, visiting(browser, url) as visit:
        page = visit.step(toy_site.key_of(1))
        told = page.locator(".question").inner_text()
        assert [one for one in shown if one not in told] == []
        assert page.locator(".picture").inner_text().strip() == "The picture of this page is not known."
        assert page.locator(".scroller").count() == 0
        answer = page.locator(".answer").inner_text()
        assert all(line in answer for line in ("Element\nnot known", "Action\nnot known"))
        assert "What was asked is not known." in page.locator(".conversation").inner_text()
        assert "not known" in page.locator(".elements tbody").inner_text()
        assert visit.faults == []


def test_a_step_that_is_not_there_is_said(visit) -> None:
    visit.page.goto(f"{visit.url}#/step/0123456789abcdef")
    assert "404" in visit.page.locator("[role=alert]").inner_text()


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_nothing_sticks_out_sideways(browser, url, width) -> None:
    with visiting(browser, url, width=width) as visit:
        page = visit.step(toy_site.key_of(WRONG))
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_that_can_be_pressed_has_a_name(visit) -> None:
    page = visit.step(toy_site.key_of(WRONG))
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, a, input, select')]
          .filter(one => !(one.getAttribute('aria-label') || one.textContent.trim() || one.closest('label')?.textContent.trim()
            || one.querySelector('img[alt]')?.alt)).map(one => one.outerHTML)"""
    )
    assert nameless == []


def test_the_real_server_shows_a_run_of_the_sample(browser, served) -> None:
    with visiting(browser, served.url) as visit:
        page = visit.list()
        page.locator(".window .row a").first.click()
        page.wait_for_selector(".answer", timeout=90_000)
        visit.until("[...document.images].some(one => one.closest('.stage') && one.naturalWidth)", 60)
        assert page.locator(".turn pre").count() > 0
        assert visit.faults == []
