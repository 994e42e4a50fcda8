"""A person at work in Chromium, and what `eval` makes of the answers."""

from __future__ import annotations

import json
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
from seeact_offline.viewer.step_page import step_name
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Visit, chromium, visiting

pytestmark = REAL_BROWSER
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202etxet \u2066 javascript:alert(3)"
PLACE = """([x, y]) => {
  const scroller = document.querySelector('.scroller'), stage = document.querySelector('.stage');
  const scale = stage.clientWidth / document.querySelector('svg.boxes').viewBox.baseVal.width;
  scroller.scrollTo({ left: x * scale - scroller.clientWidth / 2, top: y * scale - scroller.clientHeight / 2, behavior: 'instant' });
  const { left, top } = stage.getBoundingClientRect();
  return [left + x * scale, top + y * scale];
}"""
PICKED = "document.querySelector('svg.boxes g.choice')?.dataset.id ?? null"


def planner(messages: Any) -> str:
    """Says what is done with the third word of the task, so that some steps are typed and some clicked; and hostile things."""
    text = messages[-1].text
    done = "ACTION: TYPE\nVALUE: York" if len(text) % 2 else "ACTION: CLICK"
    return f"I would go on.\n{HOSTILE}\n{done}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on three tasks of the sample, which asked turn 1 alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEACT_CACHE", str(tmp_path_factory.mktemp("cache")))
        return so.evaluate(limit=3, ungrounded=True, model=planner, out=tmp_path_factory.mktemp("judged") / "run").path


@pytest.fixture(scope="module")
def steps() -> dict[StepKey, Step]:
    return {step.key: step for step in so.load_steps("sample", "cross_task")}


@pytest.fixture
def site(judged: Path, tmp_path: Path) -> Iterator[AnnotationSite]:
    site = AnnotationSite(judged, tmp_path / "oracle.jsonl", annotator="Ann")
    yield site
    site.close()


@pytest.fixture
def served(site: AnnotationSite) -> Iterator[Address]:
    with serving(site) as address:
        yield address


@pytest.fixture
def visit(browser: Any, served: Address) -> Iterator[Visit]:
    with visiting(browser, served.url) as visit:
        visit.page.goto(served.link)
        at(visit, 1)
        yield visit


def at(visit: Visit, number: int) -> None:
    """Waits until this step is shown, counted from 1."""
    from playwright.sync_api import expect

    # the page's policy forbids the waiting for scripts
    expect(visit.page).to_have_title(re.compile(f"^{number} of "), timeout=30_000)


def keys_of(judged: Path) -> list[StepKey]:
    return [prediction.key for prediction in so.load_run(judged).predictions()]


def say(site: AnnotationSite, key: StepKey, element: str | None) -> None:
    name = step_name(key)
    digest = json.loads(site.get(f"annotate/{name}.json").content)["turn1_sha256"]
    status, _ = site.post(f"annotate/{name}", {"turn1_sha256": digest, "element_id": element, "op": "CLICK"})
    assert status == 200


def boxed_target(step: Step) -> Any:
    return next((c for c in step.candidates if c.is_positive and c.box is not None), None)


def pick(visit: Visit, step: Step) -> str | None:
    """Clicks the right element's middle and goes outwards to it; says none where there is none to click."""
    target = boxed_target(step)
    if target is None:
        visit.page.keyboard.press("0")
        return None
    box = target.box
    visit.page.mouse.click(*visit.page.evaluate(PLACE, [box.x + box.w / 2, box.y + box.h / 2]))
    for _ in range(40):
        if visit.page.evaluate(PICKED) == target.backend_node_id:
            return str(target.backend_node_id)
        visit.page.keyboard.press("n")
    raise AssertionError(f"{target} cannot be reached from where it lies")


def test_ten_steps_judged_in_the_browser_are_what_eval_scores(
    visit: Visit, judged: Path, steps: dict[StepKey, Step], tmp_path: Path
) -> None:
    keys, chosen = keys_of(judged)[:10], {}
    for number, key in enumerate(keys, 1):
        at(visit, number)
        chosen[key] = pick(visit, steps[key])
        visit.page.keyboard.press("Enter")
        at(visit, number + 1)
    answers = read_answers(tmp_path / "oracle.jsonl")
    assert {key: answer.element_id for key, answer in answers.items()} == chosen
    assert {answer.op for answer in answers.values()} == {"TYPE", "CLICK"}
    assert {answer.annotator for answer in answers.values()} == {"Ann"}
    done = so.evaluate(
        limit=3, grounding="oracle", oracle_file=tmp_path / "oracle.jsonl", replay_turn1=judged, out=tmp_path / "scored"
    )
    predicted = {p.key: p for p in done.predictions()}
    assert {key: predicted[key].element_id for key in keys} == chosen
    assert {key: (predicted[key].op, predicted[key].value) for key in keys} == {
        key: (answer.op, answer.value) for key, answer in answers.items()
    }
    rows = done.to_pandas("steps").set_index("action_uid")
    assert [rows.loc[key.action_uid, "element"] for key in keys if chosen[key]] == [1.0] * sum(
        map(bool, chosen.values())
    )
    assert visit.faults == []


@pytest.mark.parametrize("key", ["Enter", "s", "j", "u"])
def test_no_key_is_taken_before_the_next_step_is_there(visit: Visit, judged: Path, tmp_path: Path, key: str) -> None:
    """A second Enter said the old answer of the next step, which nobody had seen."""
    held: list[Any] = []
    visit.page.route(f"**/annotate/{step_name(keys_of(judged)[1])}.json", lambda route: held.append(route))
    visit.page.keyboard.press("0")
    visit.page.keyboard.press("Enter")
    while not held:
        visit.page.wait_for_timeout(10)
    visit.page.keyboard.press(key)
    visit.page.keyboard.press("Enter")
    held[0].continue_()
    at(visit, 2)
    assert list(read_answers(tmp_path / "oracle.jsonl")) == keys_of(judged)[:1]
    assert "skipped" not in visit.texts(".progress p")[0]


def test_a_step_that_cannot_be_had_leaves_nothing_to_answer(visit: Visit, judged: Path, tmp_path: Path) -> None:
    visit.page.route(f"**/annotate/{step_name(keys_of(judged)[1])}.json", lambda route: route.fulfill(status=500))
    for pressed in ("0", "Enter"):
        visit.page.keyboard.press(pressed)
    visit.page.wait_for_selector(".status.bad")
    assert visit.page.locator(".step-side *").count() == 0
    visit.page.keyboard.press("Enter")
    visit.page.keyboard.press("j")
    at(visit, 3)
    assert list(read_answers(tmp_path / "oracle.jsonl")) == keys_of(judged)[:1]


def test_a_page_that_is_opened_again_goes_on_where_it_was(
    visit: Visit, judged: Path, steps: dict[StepKey, Step]
) -> None:
    pick(visit, steps[keys_of(judged)[0]])
    visit.page.keyboard.press("Enter")
    at(visit, 2)
    visit.page.goto(visit.url)
    at(visit, 2)
    assert visit.texts(".progress p")[0].startswith("1 of ")


def test_an_answer_is_taken_back_by_key(visit: Visit, judged: Path, steps: dict[StepKey, Step], tmp_path: Path) -> None:
    pick(visit, steps[keys_of(judged)[0]])
    visit.page.keyboard.press("Enter")
    at(visit, 2)
    visit.page.keyboard.press("u")
    at(visit, 1)
    assert read_answers(tmp_path / "oracle.jsonl") == {}


def test_a_step_that_is_skipped_is_left_open(visit: Visit, tmp_path: Path) -> None:
    visit.page.keyboard.press("s")
    at(visit, 2)
    assert "1 skipped" in visit.texts(".progress p")[0]
    assert not (tmp_path / "oracle.jsonl").exists()


def test_nothing_is_saved_before_an_element_is_chosen(visit: Visit, tmp_path: Path) -> None:
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_selector(".status.bad")
    assert not (tmp_path / "oracle.jsonl").exists()


def test_an_element_without_a_place_in_the_picture_is_found_by_its_words(visit: Visit, site: AnnotationSite) -> None:
    name = json.loads(site.get("index.json").content)["keys"][0]
    element = json.loads(site.get(f"annotate/{name}.json").content)["elements"][-1]
    visit.page.locator(".find summary").click()
    visit.page.locator("#find").fill(element["path"])
    visit.page.locator(".found button").last.click()
    assert visit.page.evaluate(PICKED) == element["id"]


def test_without_the_token_nothing_is_saved_and_the_page_says_so(browser: Any, served: Address, tmp_path: Path) -> None:
    with visiting(browser, served.url) as visit:
        visit.page.goto(served.url)
        at(visit, 1)
        visit.page.keyboard.press("0")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector(".status.bad")
        assert not (tmp_path / "oracle.jsonl").exists()


def test_a_server_that_is_gone_is_said_and_the_step_stays(browser: Any, site: AnnotationSite) -> None:
    with visiting(browser, "") as visit:
        with serving(site) as address:
            visit.page.goto(address.link)
            at(visit, 1)
        visit.page.keyboard.press("0")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector(".status.bad")
        assert "Not saved" in visit.texts(".status")[0]
        assert visit.page.title().startswith("1 of ")


def test_the_help_says_how_to_judge(visit: Visit) -> None:
    visit.page.keyboard.press("?")
    assert "Judge the text, not the task." in visit.page.locator("dialog .protocol").inner_text()
    visit.page.keyboard.press("Escape")
    visit.page.wait_for_selector("dialog", state="detached")


def test_hostile_texts_are_shown_as_text(visit: Visit) -> None:
    shown = visit.page.locator("pre.long").inner_text()
    assert "<img src=x onerror=alert(1)><script>alert(2)</script>" in shown
    assert "\u202e" not in shown
    assert visit.faults == []


def test_two_annotators_see_where_they_disagree(
    browser: Any, site: AnnotationSite, judged: Path, steps: dict[StepKey, Step], tmp_path: Path
) -> None:
    first, second, *_ = keys_of(judged)
    chosen = {key: steps[key].candidates[-1].backend_node_id for key in (first, second)}
    for key, element in chosen.items():
        say(site, key, element)
    bob = AnnotationSite(judged, tmp_path / "bob.jsonl", annotator="Bob", second=tmp_path / "oracle.jsonl")
    for key, element in {first: chosen[first], second: None}.items():
        say(bob, key, element)
    with serving(bob) as address, visiting(browser, address.url) as visit:
        visit.page.goto(address.link)
        at(visit, 3)
        visit.page.locator(".agreement summary").click()
        visit.page.locator(".disagreements button").click()
        at(visit, 2)
        assert "Ann says" in visit.page.locator(".other").inner_text()
        assert "50.0" in visit.page.locator(".agreement table").inner_text()
    bob.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_text_page_and_save_are_within_the_window(browser: Any, served: Address, width: int) -> None:
    with visiting(browser, served.url, width=width) as visit:
        visit.page.goto(served.link)
        at(visit, 1)
        for selector in (".scroller", "pre.long", ".actions .primary"):
            box = visit.page.locator(selector).first.bounding_box()
            assert 0 <= box["x"] < box["x"] + box["width"] <= width
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
