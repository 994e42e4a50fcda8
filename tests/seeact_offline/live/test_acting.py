"""Acts in a real browser: what each does to a page, what is seen of it meanwhile, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seeact_offline.live.acting import ActFailed, Deed, carry_out
from seeact_offline.live.pages import LiveSession
from seeact_offline.recorder import load_script
from seeact_offline.recorder.browser import find_chromium, launch
from seeact_offline.recorder.origins import Origin, served
from tests.seeact_offline.live.sites import REAL_BROWSER, write_site

pytestmark = REAL_BROWSER
BUY, NAME, SIZE, DAY, TAB, ASK, BOX, NEXT = (
    (100, 55), (100, 95), (100, 135), (60, 175), (40, 210), (100, 255), (700, 70), (30, 290),
)  # fmt: skip


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSession]:
    from playwright.sync_api import sync_playwright

    (task,) = load_script(write_site(tmp_path_factory.mktemp("site")))
    with served(task.start, task.served) as start, sync_playwright() as playwright:
        browser = launch(playwright, find_chromium(), frozenset({Origin.of(start, "start")}), None)
        with LiveSession(browser, task, start, (1280, 720), frozenset()) as opened:
            yield opened
        browser.close()


@pytest.fixture(autouse=True)
def fresh(session: LiveSession) -> None:
    for tab in session.context.pages[1:]:
        tab.close()
    session.page.goto(session.start)
    session.page.mouse.move(1200, 700)
    session.events.clear()


def said(session: LiveSession) -> str:
    session.rest()
    return session.page.locator("#said").inner_text()


@pytest.mark.parametrize(
    ("deeds", "expected"),
    [
        ([Deed("click", BUY)], "click"),
        ([Deed("double", BUY)], "dblclick"),
        ([Deed("right", BUY)], "contextmenu"),
        ([Deed("hover", BUY)], "mouseover"),
        ([Deed("type", NAME, text="Ann", extra={"enter": True})], "entered Ann"),
        ([Deed("type", NAME, text="Ann\n")], "entered Ann"),
        ([Deed("click", NAME), Deed("type", text="Bea"), Deed("press", text="enter")], "entered Bea"),
        ([Deed("clear", NAME), Deed("press", extra={"keys": "Enter"})], "entered "),
        ([Deed("click", NAME), Deed("press", text="ctrl+a"), Deed("press", text="delete"), Deed("press", text="Enter")], "entered "),
        ([Deed("select", SIZE, text="Large")], "size Large"),
        ([Deed("type", SIZE, text="large")], "size Large"),
        ([Deed("click", SIZE), Deed("type", text="Large")], "size Large"),
        ([Deed("click", SIZE)], "nothing"),
        ([Deed("drag", (400, 500), extra={"to": (500, 500)})], "dragged 100"),
        ([Deed("click", ASK)], "confirm false"),
        ([Deed("wait")], "nothing"),
    ],
)  # fmt: skip
def test_an_act_does_to_the_page_what_it_says(session: LiveSession, deeds: list[Deed], expected: str) -> None:
    for deed in deeds:
        carry_out(session, deed)
    assert said(session) == expected.strip()


def test_a_date_is_set_as_the_recorder_sets_it(session: LiveSession) -> None:
    carry_out(session, Deed("type", DAY, text="2026-05-14"))
    assert session.page.locator("#day").input_value() == "2026-05-14"


@pytest.mark.parametrize(
    ("deed", "position"),
    [
        (Deed("scroll", text="down", extra={"pixels": 512}), [512, 0]),
        (Deed("scroll", extra={"direction": "down"}), [500, 0]),
        (Deed("scroll", (300, 600), extra={"to": (300, 400)}), [200, 0]),
        # a box of its own that scrolls
        (Deed("scroll", BOX, extra={"direction": "down", "pixels": 100}), [0, 100]),
    ],
)
def test_a_scroll_keeps_its_direction_its_size_and_its_place(
    session: LiveSession, deed: Deed, position: list[int]
) -> None:
    carry_out(session, deed)
    assert session.page.evaluate("() => [scrollY, document.getElementById('box').scrollTop]") == position


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        (Deed("scroll", text="up"), "nothing scrolls up any further"),
        (Deed("click", (100, 5000)), "expected a place in the window"),
        (Deed("click"), "expected a place"),
        (Deed("select", SIZE, text="Gigantic blue"), "no entry like"),
        (Deed("type", (1000, 600), text="x"), "no text field has the focus"),
        (Deed("goto", text="http://example.com/"), "is refused, as its origin was not named"),
        (Deed("tab", text="7"), "there is no tab '7'"),
        (Deed("drag", (1, 1)), "where the drag ends"),
        (Deed("other"), "nothing is known of an act"),
    ],
)
def test_what_cannot_be_done_is_said_why(session: LiveSession, deed: Deed, reason: str) -> None:
    with pytest.raises(ActFailed, match=reason):
        carry_out(session, deed)


def test_a_named_element_outside_of_the_window_is_scrolled_to(session: LiveSession) -> None:
    view = session.observe("0", (), whole=True)
    low = next(one for one in view.record.elements if one.tag == "button" and one.box.y > 1900)
    carry_out(session, Deed("click", (100, 2015), view.node(low.backend_node_id)))
    assert said(session) == "low"


def test_a_click_on_the_entry_of_a_closed_list_chooses_it(session: LiveSession) -> None:
    view = session.observe("0", ())
    entries = [one for one in view.record.elements if one.tag == "option"]
    carry_out(session, Deed("click", SIZE, view.node(entries[1].backend_node_id)))
    assert said(session) == "size Large"


def test_pages_back_and_forward_and_by_address(session: LiveSession) -> None:
    carry_out(session, Deed("click", NEXT))
    session.rest()
    assert session.address == "/other.html"
    carry_out(session, Deed("back"))
    assert session.address == "/index.html"
    carry_out(session, Deed("back", extra={"direction": "forward"}))
    assert session.address == "/other.html"
    carry_out(session, Deed("goto", text="index.html"))
    assert session.address == "/index.html"


def test_a_new_tab_is_the_active_one_until_it_is_closed(session: LiveSession) -> None:
    carry_out(session, Deed("click", TAB))
    session.rest()
    assert session.address == "/other.html"
    assert session.events == ["tab 2 opened"]
    assert session.observe("0", ()).step().recorded is not None
    carry_out(session, Deed("tab", text="close"))
    assert session.address == "/index.html"
    assert session.events == ["tab 2 opened", "tab 2 closed"]


def test_a_dialog_is_dismissed_and_told(session: LiveSession) -> None:
    carry_out(session, Deed("click", ASK))
    assert session.events == ["confirm dismissed: Sure?"]


def test_a_window_is_seen_where_it_is_scrolled_and_stays_there(session: LiveSession) -> None:
    carry_out(session, Deed("scroll", text="down", extra={"pixels": 1800}))
    view = session.observe("0", ())
    buttons = {one.tag: one.box for one in view.record.elements if one.tag == "button"}
    assert list(buttons.values()) == [(20, 200, 200, 30)]
    assert session.page.evaluate("() => scrollY") == 1800
    assert view.size == (1280, 720)


def test_looking_at_a_window_tells_the_page_nothing(session: LiveSession) -> None:
    heard = "window.heard = []; for (const kind of ['resize', 'scroll', 'transitionend']) addEventListener(kind, () => heard.push(kind), true)"
    moving = "document.getElementById('buy').style.cssText += 'transition: left 60s'; document.getElementById('buy').style.left = '900px'"
    session.page.evaluate(f"() => {{ {heard}; {moving} }}")
    session.observe("0", ())
    assert session.page.evaluate("() => heard") == []
    assert session.page.evaluate("() => document.getElementById('buy').getAnimations().length") == 1


def test_a_page_of_another_origin_is_not_reached(session: LiveSession, tmp_path: Path) -> None:
    with served("index.html", tmp_path) as other:
        assert not session.may_go(other)
        assert session.may_go(session.start)
