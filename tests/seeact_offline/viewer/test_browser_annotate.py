"""A person at work in Chromium, and what `eval` makes of the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.grounding.oracle import read_answers
from seeact_offline.records import Step, StepKey
from seeact_offline.viewer.annotation_site import AnnotationSite
from seeact_offline.viewer.server import Address, serving
from seeact_offline.viewer.site_files import step_name
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Tab, open_tab
from tests.seeact_offline.viewer.conftest import read_json

pytestmark = [pytest.mark.slow, *REAL_BROWSER]
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202etxet \u2066 javascript:alert(3)"
PLACE = """([x, y]) => {
  const scroller = document.querySelector('.scroller'), stage = document.querySelector('.stage');
  const scale = stage.clientWidth / document.querySelector('svg.boxes').viewBox.baseVal.width;
  scroller.scrollTo({ left: x * scale - scroller.clientWidth / 2, top: y * scale - scroller.clientHeight / 2, behavior: 'instant' });
  const { left, top } = stage.getBoundingClientRect();
  return [left + x * scale, top + y * scale];
}"""
CHOSEN = "document.querySelector('svg.boxes g.choice')?.dataset.id ?? null"


def planner(messages: Any) -> str:
    """Types at some steps, clicks at others, and says hostile things."""
    done = "ACTION: TYPE\nVALUE: York" if len(messages[-1].text) % 2 else "ACTION: CLICK"
    return f"I would go on.\n{HOSTILE}\n{done}"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on three tasks of the sample, which asked turn 1 alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEACT_CACHE", str(tmp_path_factory.mktemp("cache")))
        return so.evaluate(limit=3, ungrounded=True, model=planner, out=tmp_path_factory.mktemp("judged") / "run").path


@pytest.fixture(scope="module")
def keys(judged: Path) -> list[StepKey]:
    return [prediction.key for prediction in so.load_run(judged).predictions()]


@pytest.fixture(scope="module")
def steps() -> dict[StepKey, Step]:
    return {step.key: step for step in so.load_steps("sample", "cross_task")}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "oracle.jsonl"


@pytest.fixture
def site(judged: Path, out: Path) -> Iterator[AnnotationSite]:
    site = AnnotationSite(judged, out, annotator="Ann")
    yield site
    site.close()


@pytest.fixture
def served(site: AnnotationSite) -> Iterator[Address]:
    with serving(site) as address:
        yield address


@pytest.fixture
def tab(browser: Any, served: Address) -> Iterator[Tab]:
    """At the first step. One of its own, as tests change what it is sent."""
    with open_tab(browser, served.url) as tab:
        tab.page.goto(served.link)
        at(tab, 1)
        yield tab


def at(tab: Tab, number: int) -> None:
    """Waits until this step is shown, counted from 1."""
    from playwright.sync_api import expect

    # the page's policy forbids the waiting for scripts
    expect(tab.page).to_have_title(re.compile(f"^{number} of "), timeout=30_000)


def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        tab.page.keyboard.press(key)


def choose(tab: Tab, step: Step) -> str | None:
    """Clicks the right element's middle and goes outwards to it; says none where there is none to click."""
    target = next((c for c in step.candidates if c.is_positive and c.box is not None), None)
    if target is None or target.box is None:
        press(tab, "0")
        return None
    box = target.box
    tab.page.mouse.click(*tab.page.evaluate(PLACE, [box.x + box.w / 2, box.y + box.h / 2]))
    for _ in range(40):
        if tab.page.evaluate(CHOSEN) == target.backend_node_id:
            return str(target.backend_node_id)
        press(tab, "n")
    raise AssertionError(f"{target} cannot be reached from where it lies")


def test_ten_steps_judged_in_the_browser_are_what_eval_scores(
    tab: Tab, judged: Path, keys: list[StepKey], steps: dict[StepKey, Step], out: Path, tmp_path: Path
) -> None:
    shown = tab.page.locator("pre.long").inner_text()
    assert "<img src=x onerror=alert(1)><script>alert(2)</script>" in shown
    assert "\u202e" not in shown
    chosen = {}
    for number, key in enumerate(keys[:10], 1):
        at(tab, number)
        chosen[key] = choose(tab, steps[key])
        press(tab, "Enter")
        at(tab, number + 1)
    answers = read_answers(out)
    assert {key: answer.element_id for key, answer in answers.items()} == chosen
    assert {(answer.op in ("TYPE", "CLICK"), answer.annotator) for answer in answers.values()} == {(True, "Ann")}
    done = so.evaluate(limit=3, grounding="oracle", oracle_file=out, replay_turn1=judged, out=tmp_path / "scored")
    predicted = {one.key: one for one in done.predictions() if one.key in chosen}
    assert {key: (one.element_id, one.op, one.value) for key, one in predicted.items()} == {
        key: (answer.element_id, answer.op, answer.value) for key, answer in answers.items()
    }
    rows = done.to_pandas("steps").set_index("action_uid")
    assert {rows.loc[key.action_uid, "element"] for key, element in chosen.items() if element} == {1.0}
    assert tab.faults == []


@pytest.mark.parametrize("key", ["Enter", "s", "j", "u"])
def test_no_key_is_taken_before_the_next_step_is_there(tab: Tab, keys: list[StepKey], out: Path, key: str) -> None:
    """A second Enter said the old answer of the next step, which nobody had seen."""
    held: list[Any] = []
    tab.page.route(f"**/annotate/{step_name(keys[1])}.json", lambda route: held.append(route))
    press(tab, "0", "Enter")
    while not held:
        tab.page.wait_for_timeout(10)
    press(tab, key, "Enter")
    held[0].continue_()
    at(tab, 2)
    assert list(read_answers(out)) == keys[:1]
    assert "skipped" not in tab.texts(".progress p")[0]


def test_a_step_that_cannot_be_loaded_leaves_nothing_to_answer(tab: Tab, keys: list[StepKey], out: Path) -> None:
    tab.page.route(f"**/annotate/{step_name(keys[1])}.json", lambda route: route.fulfill(status=500))
    press(tab, "0", "Enter")
    tab.page.wait_for_selector(".status.bad")
    assert tab.page.locator(".step-side :not(h1)").count() == 0
    press(tab, "Enter", "j")
    at(tab, 3)
    assert list(read_answers(out)) == keys[:1]


def test_the_page_resumes_where_it_was_and_an_answer_is_taken_back_by_key(
    tab: Tab, keys: list[StepKey], steps: dict[StepKey, Step], out: Path
) -> None:
    choose(tab, steps[keys[0]])
    press(tab, "Enter")
    at(tab, 2)
    tab.page.goto(tab.url)
    at(tab, 2)
    assert tab.texts(".progress p")[0].startswith("1 of ")
    press(tab, "u")
    at(tab, 1)
    assert read_answers(out) == {}


def test_nothing_is_saved_before_an_element_is_chosen_nor_by_skipping(tab: Tab, out: Path) -> None:
    press(tab, "Enter")
    tab.page.wait_for_selector(".status.bad")
    press(tab, "s")
    at(tab, 2)
    assert "1 skipped" in tab.texts(".progress p")[0]
    assert not out.exists()


def test_an_element_without_a_place_in_the_picture_is_found_by_its_words(tab: Tab, site: AnnotationSite) -> None:
    name = read_json(site, "index.json")["keys"][0]
    element = read_json(site, f"annotate/{name}.json")["elements"][-1]
    tab.page.locator(".find summary").click()
    tab.page.locator("#find").fill(element["path"])
    tab.page.locator(".found button").last.click()
    assert tab.page.evaluate(CHOSEN) == element["id"]


def test_without_the_token_or_a_server_nothing_is_saved_and_the_page_says_so(
    browser: Any, site: AnnotationSite, out: Path
) -> None:
    with open_tab(browser, "") as tab:
        for name in ("url", "link"):
            with serving(site) as address:
                tab.page.goto(getattr(address, name))
                at(tab, 1)
                if name == "url":
                    press(tab, "0", "Enter")
                    tab.page.wait_for_selector(".status.bad")
        press(tab, "0", "Enter")
        tab.page.wait_for_selector(".status.bad")
        assert "Not saved" in tab.texts(".status")[0]
        assert tab.page.title().startswith("1 of ")
        assert not out.exists()


def test_the_help_says_how_to_judge(tab: Tab) -> None:
    press(tab, "?")
    assert "Judge the text, not the task." in tab.page.locator("dialog .protocol").inner_text()
    press(tab, "Escape")
    tab.page.wait_for_selector("dialog", state="detached")


def test_two_annotators_see_where_they_disagree(
    browser: Any, site: AnnotationSite, judged: Path, keys: list[StepKey], steps: dict[StepKey, Step], out: Path
) -> None:
    names = [step_name(key) for key in keys[:2]]
    elements = [steps[key].candidates[-1].backend_node_id for key in keys[:2]]
    bob = AnnotationSite(judged, out.with_name("bob.jsonl"), annotator="Bob")
    for one, chosen in ((site, elements), (bob, [elements[0], None])):
        for name, element in zip(names, chosen, strict=True):
            digest = read_json(one, f"annotate/{name}.json")["turn1_sha256"]
            body = {"turn1_sha256": digest, "element_id": element, "op": "CLICK"}
            assert one.post(f"annotate/{name}", body)[0] == 200
    bob.close()
    bob = AnnotationSite(judged, out.with_name("bob.jsonl"), second=out)
    with serving(bob) as address, open_tab(browser, address.url) as tab:
        tab.page.goto(address.link)
        at(tab, 3)
        tab.page.locator(".agreement summary").click()
        tab.page.locator(".disagreements button").click()
        at(tab, 2)
        assert "Ann says" in tab.page.locator(".other").inner_text()
        assert "50.0" in tab.page.locator(".agreement table").inner_text()
    bob.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_text_page_and_save_are_within_the_window(browser: Any, served: Address, width: int) -> None:
    with open_tab(browser, served.url, width=width) as tab:
        tab.page.goto(served.link)
        at(tab, 1)
        for selector in (".scroller", "pre.long", ".actions .primary"):
            box = tab.page.locator(selector).first.bounding_box()
            assert box is not None
            assert 0 <= box["x"] < box["x"] + box["width"] <= width
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
