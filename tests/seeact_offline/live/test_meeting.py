"""An act meets the element that was meant: on a page that moves while the model thinks, and one whose parts cannot be acted on."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from seeact_offline.live.acting import ActFailed, Deed, carry_out
from seeact_offline.live.acting_places import Place
from seeact_offline.live.episodes import Episode, EpisodeOptions, run_episode
from seeact_offline.live.pages import LiveSession, NodeKey, PageView
from seeact_offline.live.running import acting_grounding, rules_of
from seeact_offline.live.speakers import speaker_of
from seeact_offline.recorder import load_script
from seeact_offline.recorder.browser import find_chromium, launch
from seeact_offline.recorder.origins import Origin, served
from seeact_offline.recorder.script import TaskScript
from seeact_offline.runs.ask import run_coroutine
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.strategy_opening import live_scores
from tests.scripted import Scripted, final
from tests.seeact_offline.live.sites import REAL_BROWSER, write_site

pytestmark = REAL_BROWSER
PAGE = """<!doctype html><html><head><title>Account</title><style>
body { margin: 0; font: 16px sans-serif; height: 1500px } #log { position: fixed; left: 600px; top: 0; pointer-events: none }
main > * { position: absolute; left: 20px; height: 30px; width: 200px; box-sizing: border-box }
</style></head><body><p id=log></p><main>
<button id=delete style="top: 40px">Delete account</button>
<button id=safe style="top: 240px">Safe</button>
<input id=wrong style="top: 80px" placeholder=Wrong>
<input id=name style="top: 280px" placeholder=Name>
<select id=small style="top: 120px"><option>Red</option><option>Blue</option></select>
<select id=size style="top: 320px"><option>Red</option><option disabled>Grey</option><option>Blue</option></select>
<div id=flat style="top: 160px" tabindex=0>flat</div>
<textarea id=pane style="top: 360px">1&#10;2&#10;3&#10;4&#10;5&#10;6&#10;7&#10;8&#10;9</textarea>
<button id=off style="top: 460px" disabled>Off</button>
<button id=soft style="top: 500px" aria-disabled=true>Soft</button>
<input id=fixed style="top: 540px" value=kept readonly>
<input id=file type=file style="top: 580px">
<label id=upload style="top: 620px">Upload<input type=file hidden></label>
<button id=under style="top: 660px">Under</button>
<div id=cover style="top: 650px; height: 50px; z-index: 9; background: #ccc">Wait a moment</div>
<button id=asks style="top: 20px; left: 300px" onclick="document.querySelector('#upload input').click()">Choose</button>
<a id=out style="top: 60px; left: 300px" href="http://refused.example/page">Out</a>
<button id=sure style="top: 100px; left: 300px" onclick="note('sure', confirm('Sure?'), prompt('Name?', 'Ann'))">Sure</button>
</main><script>
const note = (...words) => { document.getElementById('log').textContent += words.join(' ') + ';'; };
for (const kind of ['click', 'change', 'mouseover']) document.addEventListener(kind, (e) => e.target.id && note(kind, e.target.id));
document.getElementById('name').addEventListener('input', (e) => note('input', e.target.value));
document.getElementById('pane').addEventListener('scroll', () => note('scroll pane'));
const move = () => { for (const e of document.querySelectorAll('main > *')) e.style.top = parseInt(e.style.top) + 200 + 'px'; };
</script></body></html>"""
SAFE = [{"selector": "#log", "text": "click safe"}]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TaskScript:
    return load_script(write_site(tmp_path_factory.mktemp("site"), PAGE, SAFE))[0]


@pytest.fixture(scope="module")
def browser(task: TaskScript) -> Iterator[tuple[Any, str]]:
    from playwright.sync_api import sync_playwright

    with served(task.start, task.served) as start, sync_playwright() as playwright:
        opened = launch(playwright, find_chromium(), frozenset({Origin.of(start, "start")}), None)
        yield opened, start
        opened.close()


@pytest.fixture
def session(browser: tuple[Any, str], task: TaskScript) -> Iterator[LiveSession]:
    with LiveSession(browser[0], task, browser[1], (1280, 720), frozenset()) as opened:
        opened.rest()
        yield opened


def node(view: PageView, name: str) -> NodeKey:
    element = next(one for one in view.record.elements if one.attributes.get("id") == name)
    key = view.node(element.backend_node_id)
    assert key is not None
    return key


def log(session: LiveSession) -> str:
    session.rest()
    return session.page.locator("#log").inner_text()


@pytest.mark.parametrize(
    ("kind", "name", "point", "more", "expected"),
    [
        ("click", "safe", (120, 255), {}, "click safe"),
        ("double", "safe", (120, 255), {}, "click safe"),
        ("hover", "safe", (120, 255), {}, "mouseover safe"),
        ("type", "name", (120, 295), {"text": "Ann"}, "input Ann"),
        ("select", "size", (120, 335), {"text": "Blue"}, "change size"),
        ("type", "size", (120, 335), {"text": "Blue"}, "change size"),
        ("scroll", "pane", (120, 375), {"text": "down"}, "scroll pane"),
    ],
)
def test_a_named_element_is_met_where_it_is_now(
    session: LiveSession, kind: Any, name: str, point: tuple[float, float], more: dict[str, Any], expected: str
) -> None:
    view = session.observe("0", ())
    session.page.evaluate("() => move()")
    carry_out(session, Deed(kind, point, node(view, name), **more))
    said = log(session)
    assert expected in said
    assert not any(other in said for other in ("delete", "wrong", "small", "flat"))


def test_one_that_has_gone_is_not_looked_for_at_its_place(session: LiveSession) -> None:
    view = session.observe("0", ())
    session.page.evaluate("() => { document.getElementById('safe').remove(); move(); }")
    with pytest.raises(ActFailed, match="no longer on the page"):
        carry_out(session, Deed("click", (120, 255), node(view, "safe")))
    assert log(session) == ""


CANNOT = [
    ("click", "off", "the element is disabled"),
    ("click", "soft", "the element is disabled"),
    ("type", "fixed", "the field is read-only"),
    ("clear", "fixed", "the field is read-only"),
    ("click", "file", "a page is given no file here"),
    ("click", "upload", "a page is given no file here"),
    ("type", "file", "a page is given no file here"),
    ("select", "size", 'the entry "Grey" is disabled'),
    ("type", "safe", "no text field has the focus"),
]


@pytest.mark.parametrize("by_place", [False, True], ids=["element", "place"])
@pytest.mark.parametrize(("kind", "name", "reason"), CANNOT)
def test_an_element_that_takes_no_such_act_fails_with_its_reason(
    session: LiveSession, kind: Any, name: str, reason: str, by_place: bool
) -> None:
    view = session.observe("0", ())
    key = node(view, name)
    box = next(one.box for one in view.record.elements if one.attributes.get("id") == name)
    with pytest.raises(ActFailed, match=reason):
        carry_out(session, Deed(kind, box.center, None if by_place else key, "Grey"))
    assert session.page.locator("#fixed").input_value() == "kept"
    assert "change" not in log(session)


def test_a_covered_element_is_not_clicked_and_what_covers_it_is_named(session: LiveSession) -> None:
    view = session.observe("0", ())
    with pytest.raises(ActFailed, match='covered by div "Wait a moment"'):
        carry_out(session, Deed("click", (120, 675), node(view, "under")))
    assert "click" not in log(session)


def test_a_page_that_asks_for_a_file_is_given_none_and_that_is_told(session: LiveSession) -> None:
    carry_out(session, Deed("click", (400, 35)))
    session.rest()
    assert session.events == ["the page asked for a file and was given none"]


def test_a_link_to_another_origin_is_told_as_refused(session: LiveSession) -> None:
    carry_out(session, Deed("click", (400, 75)))
    session.rest()
    assert session.events == ["the address http://refused.example/page is refused, as its origin was not named"]


@pytest.mark.parametrize(("accepts", "expected"), [(False, "sure false ;"), (True, "sure true Ann;")])
def test_dialogs_are_answered_as_the_task_says(
    browser: tuple[Any, str], task: TaskScript, accepts: bool, expected: str
) -> None:
    with LiveSession(
        browser[0], replace(task, accepts_dialogs=accepts), browser[1], (1280, 720), frozenset()
    ) as session:
        carry_out(session, Deed("click", (400, 115)))
        assert expected in log(session)
        answer = "accepted" if accepts else "dismissed"
        assert session.events == [f"confirm {answer}: Sure?", f"prompt {answer}: Name?"]


def test_a_page_that_asks_whether_to_leave_it_is_left(session: LiveSession) -> None:
    session.page.evaluate("() => addEventListener('beforeunload', (e) => e.preventDefault())")
    carry_out(session, Deed("click", (120, 255)))
    carry_out(session, Deed("goto", text="other.html"))
    assert session.address == "/other.html"
    assert session.events == ["beforeunload accepted: "]


# --- whole episodes ---


class _Moving(Place):
    """The page moves once, while the model thinks for the first time."""

    def __init__(self, start: str) -> None:
        self._start, self._session = start, None

    _session: LiveSession | None

    def address(self, task: TaskScript, port: int = 0) -> AbstractContextManager[str]:
        return nullcontext(self._start)

    def begin(self, session: LiveSession) -> TaskScript:
        self._session = session
        return session.task

    def ask(self, work: Coroutine[Any, Any, Any]) -> Any:
        result = run_coroutine(work)
        if self._session is not None:
            self._session.page.evaluate("() => move()")
            self._session = None
        return result


def play(browser: tuple[Any, str], task: TaskScript, model: Scripted, **options: Any) -> Episode:
    config, place = EvalConfig.of(model=model, **options), _Moving(browser[1])
    grounding, _ = acting_grounding(config)
    shared = EpisodeOptions(rules_of(config), place, needs_picture=grounding.form.image)
    return run_episode(
        task, lambda start: browser[0], lambda: speaker_of(grounding, config.find_strategy().turn2 is not None),
        live_scores(config) if grounding.needs_ranking else None, model, place.ask, shared,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "replies", "action"),
    [
        ({"agent": "webvoyager"}, ["Thought: So.\nAction: Click [1]", "Thought: So.\nAction: ANSWER; [done]"], "Click [1]"),
        ({"agent": "visualwebarena"}, ["```click [2]```", "```stop [done]```"], "click [2]"),
        ({"agent": "openwebvoyager"}, ["Thought: So.\nAction: Click [3]", "Thought: So.\nAction: ANSWER; [done]"], "Click [3]"),
        ({"ranker": "bm25"}, ["Safe.", final("E"), *["Done.", final("none of them", "TERMINATE")] * 3], "[button] Safe -> CLICK"),
    ],
    ids=lambda one: one.get("agent", "seeact") if isinstance(one, dict) else "",
)  # fmt: skip
def test_a_page_that_moves_while_the_model_thinks_is_pressed_right(
    browser: tuple[Any, str], task: TaskScript, options: dict[str, Any], replies: list[str], action: str
) -> None:
    episode = play(browser, task, Scripted(*replies), **options)
    assert [(step.action, step.outcome) for step in episode.steps][:1] == [(action, "")]
    assert (episode.done, episode.end in ("answered", "stopped")) == (True, True)


def test_an_agent_of_places_is_told_that_its_place_has_changed(browser: tuple[Any, str], task: TaskScript) -> None:
    says = '<tool_call>\n{"name": "computer_use", "arguments": %s}\n</tool_call>'
    click = '{"action": "left_click", "coordinate": [%d, %d]}'
    model = Scripted(
        says % click % (120, 255), says % click % (120, 455), says % '{"action": "terminate", "status": "success"}'
    )
    episode = play(browser, task, model, agent="qwen2.5-vl")
    change = 'the place has changed since it was seen: now button "Delete account"'
    assert [step.problem for step in episode.steps] == [change, "", ""]
    assert f"[button]  Safe -> CLICK; not carried out: {change}" in model.requests[1].messages[-1].text
    assert (episode.done, episode.n_helped) == (True, 0)


def test_an_agent_that_insists_on_a_place_that_changes_again_acts_there_and_is_told(session: LiveSession) -> None:
    swap = """() => {
      const [one, other] = ['safe', 'delete'].map((id) => document.getElementById(id).style);
      [one.top, other.top] = [other.top, one.top];
    }"""
    deed = Deed("click", (120, 255))
    session.observe("0", ())
    session.page.evaluate(swap)
    with pytest.raises(ActFailed, match="the place has changed"):
        carry_out(session, deed)
    session.observe("1", ())
    session.page.evaluate(swap)
    carry_out(session, deed)
    assert session.events == ['the place has changed since it was seen: now button "Safe"']
    assert "click safe" in log(session)
