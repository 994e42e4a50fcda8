"""Our agents in BrowserGym: a stored observation (`order.json.gz`, made by BrowserGym 0.14.3, scrolled by 100 pixels) and real episodes."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import io
import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.agents.gui_agent import AgentGrounding
from seeact_offline.live.acting import ActFailed, Deed
from seeact_offline.live.gym_agent import GymAgentArgs, gym_agent_args
from seeact_offline.live.gym_pages import SELECT_ALL, GymPage, calls, page_of_observation, task_of
from seeact_offline.live.pages import NodeKey
from seeact_offline.records import Completion, InputError, OutOfBudget, Usage
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.groundings import open_strategy
from tests.scripted import Scripted
from tests.seeact_offline.live.sites import REAL_BROWSER

STORED = Path(__file__).parent / "observations" / "order.json.gz"
HOME = "http://shop.example/"
BUY, NAME, SIZE, DAY = (100.0, 55.0), (100.0, 95.0), (100.0, 135.0), (100.0, 175.0)
INSTALLED = importlib.util.find_spec("browsergym") is not None and importlib.util.find_spec("browsergym.miniwob")


@pytest.fixture
def observation() -> dict[str, Any]:
    from numpy import asarray
    from PIL import Image

    stored: dict[str, Any] = json.loads(gzip.decompress(STORED.read_bytes()))
    picture = Image.open(io.BytesIO(base64.b64decode(stored["screenshot"]))).convert("RGB")
    return {**stored, "screenshot": asarray(picture)}


def page_of(observation: dict[str, Any]) -> GymPage:
    return page_of_observation(observation, {}, "gym-0", "Order", [])


def test_nothing_of_what_browsergym_wrote_on_the_page_is_left(observation: dict[str, Any]) -> None:
    page = page_of(observation)
    elements = page.view.record.elements
    names = {name for one in elements for name in one.attributes}
    values = {one.tag: one.attributes["value"] for one in elements if "value" in one.attributes}
    assert not {name for name in names if name.startswith(("bid", "browsergym", "aria_role"))}
    # the page itself wrote that of an entry
    assert values == {"option": "l"}
    assert 'input_value="Ann"' in page.view.record.cleaned_html
    assert 'aria_description="leads away"' in page.view.record.cleaned_html


def test_boxes_are_in_the_pixels_of_the_picture(observation: dict[str, Any]) -> None:
    def box(page: GymPage) -> tuple[float, float, float, float]:
        (one,) = [one for one in page.view.record.elements if one.tag == "button"]
        return one.box.x, one.box.y, one.box.w, one.box.h

    twice = observation["screenshot"].repeat(2, axis=0).repeat(2, axis=1)
    assert box(page_of(observation)) == (20, 40, 200, 30)
    assert box(page_of(observation | {"screenshot": twice})) == (40, 80, 400, 60)


def test_a_window_that_became_lower_than_its_picture_is_noticed(observation: dict[str, Any]) -> None:
    assert page_of(observation).lost == 0
    bounds = observation["dom_object"]["documents"][0]["layout"]["bounds"]
    # a scrollbar
    bounds[0][3] -= 15
    assert page_of(observation).lost == 0
    bounds[0][3] -= 72
    assert page_of(observation).lost == 87


def test_the_task_is_its_words_and_its_pictures_are_counted(observation: dict[str, Any]) -> None:
    picture = {"type": "image_url", "image_url": "data:image/png;base64,"}
    assert task_of(observation) == ("Order a large one for Ann.", 0)
    assert task_of({"goal_object": [*observation["goal_object"], picture]}) == ("Order a large one for Ann.", 1)


TYPED = f"keyboard_press('{SELECT_ALL}')\nkeyboard_type(\"it's\")"


@pytest.mark.parametrize(
    ("deed", "expected"),
    [
        (Deed("click", BUY), "mouse_click(100.0, 55.0)"),
        (Deed("right", BUY), "mouse_click(100.0, 55.0, 'right')"),
        (Deed("double", BUY), "mouse_dblclick(100.0, 55.0)"),
        (Deed("hover", BUY), "mouse_move(100.0, 55.0)"),
        (Deed("click", node="button"), "click('BUTTON')"),  # type: ignore[arg-type]
        (Deed("click", node="option"), "select_option('SELECT', 'Large')"),  # type: ignore[arg-type]
        # a click on a list opens what no picture shows
        (Deed("click", SIZE), "focus('SELECT')"),
        (Deed("type", SIZE, text="large"), "select_option('SELECT', 'Large')"),
        (Deed("select", node="select", text="Small"), "select_option('SELECT', 'Small')"),  # type: ignore[arg-type]
        (Deed("select", BUY, text="Small"), "mouse_click(100.0, 55.0)"),
        (Deed("type", NAME, text="it's"), f"mouse_click(100.0, 95.0)\n{TYPED}"),
        (Deed("type", text="it's", extra={"enter": True}), f"{TYPED}\nkeyboard_press('Enter')"),
        (Deed("type", NAME, node="input", text="it's\n"), f"click('INPUT')\n{TYPED}\nkeyboard_press('Enter')"),  # type: ignore[arg-type]
        # the element comes first, wherever it may be by now
        (Deed("click", SIZE, node="button"), "click('BUTTON')"),  # type: ignore[arg-type]
        (Deed("type", DAY, text="2026-06-09"), "fill('DAY', '2026-06-09')"),
        (Deed("clear", NAME), f"mouse_click(100.0, 95.0)\nkeyboard_press('{SELECT_ALL}')\nkeyboard_press('Backspace')"),
        (Deed("press", text="ctrl+a"), "keyboard_press('Control+a')"),
        (Deed("scroll", text="down", extra={"pixels": 250}), "scroll_at(200.0, 150.0, 0.0, 250.0)"),
        # an agent's own window may be higher
        (Deed("scroll", BUY, extra={"direction": "up", "pixels": 512}), "scroll_at(100.0, 55.0, 0.0, -300.0)"),
        (Deed("drag", BUY, extra={"to": (1.0, 2.0)}), "mouse_drag_and_drop(100.0, 55.0, 1.0, 2.0)"),
        (Deed("back"), "go_back()"),
        (Deed("back", text="forward"), "go_forward()"),
        (Deed("goto", text="https://shop.example/a"), "goto('https://shop.example/a')"),
        (Deed("goto"), f"goto('{HOME}')"),
        (Deed("tab", text="2"), "tab_focus(2)"),
        (Deed("tab", text="new"), "new_tab()"),
        (Deed("wait"), "noop()"),
        (Deed("answer", text="42"), "send_msg_to_user('42')"),
        (Deed("answer", text="N/A"), "report_infeasible('N/A')"),
        (Deed("stop"), "send_msg_to_user('done')"),
    ],
)
def test_what_an_agent_does_is_written_as_browsergyms_calls(
    observation: dict[str, Any], deed: Deed, expected: str
) -> None:
    page = page_of(observation)
    tags = {one.tag: one for one in page.tree.walk() if one.tag}
    first = next(one for one in page.tree.walk() if one.tag == "input")
    fields = {"INPUT": first, "SELECT": tags["select"], "BUTTON": tags["button"]}
    fields["DAY"] = next(one for one in page.tree.walk() if one.attributes.get("type") == "date")
    if deed.node is not None:
        chosen = {"input": first, **{tag: tags[tag] for tag in ("button", "select", "option")}}[str(deed.node)]
        node = next(key for key, number in page.view.ids.items() if number == chosen.backend_node_id)
        deed = Deed(deed.kind, deed.point, node, deed.text, deed.extra)
    for name, field in fields.items():
        expected = expected.replace(f"'{name}'", repr(page.bids[field.backend_node_id]))
    assert calls(page, [deed], HOME) == expected


@pytest.mark.parametrize(
    "deed", [Deed("click"), Deed("drag", BUY), Deed("tab", text="last"), Deed("press"), Deed("other")]
)
def test_what_cannot_be_done_is_not_called(observation: dict[str, Any], deed: Deed) -> None:
    with pytest.raises(ActFailed):
        calls(page_of(observation), [deed], HOME)


def test_elements_keep_their_numbers_over_an_episode(observation: dict[str, Any]) -> None:
    numbers = {NodeKey(0, 7): 99}
    first = page_of_observation(observation, numbers, "gym-0", "Order", [])
    known = dict(numbers)
    assert page_of_observation(observation, numbers, "gym-1", "Order", ["a"]).bids == first.bids
    assert numbers == known


def test_names_of_an_agent_can_be_hashed_and_pickled() -> None:
    args = gym_agent_args(agent="webvoyager", model="builtin/lexical", temperature=0.5)
    assert pickle.loads(pickle.dumps(args)) == args
    assert {args, pickle.loads(pickle.dumps(args))} == {args}
    args.set_reproducibility_mode()
    assert dict(args.options)["temperature"] == 0
    with pytest.raises(InputError, match="needs a task"):
        gym_agent_args(agent="webvoyager", model="builtin/oracle")


SAYS = '<tool_call>\n{"name": "computer_use", "arguments": %s}\n</tool_call>'


def say(**arguments: Any) -> str:
    return SAYS % json.dumps(arguments)


@pytest.fixture
def args(tmp_path: Path) -> Iterator[Callable[..., GymAgentArgs]]:
    made: list[GymAgentArgs] = []

    def make(*replies: str, **options: Any) -> GymAgentArgs:
        made.append(gym_agent_args(**{"agent": "qwen2.5-vl", "model": Scripted(*replies), "out": tmp_path, **options}))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_reply_becomes_an_action_and_the_past_is_told(observation: dict[str, Any], args: Any) -> None:
    model = Scripted(say(action="left_click", coordinate=[100, 55]), say(action="terminate", status="success"))
    agent = args(model=model).make_agent()
    seen = agent.obs_preprocessor(observation | {"page": object()})
    action, info = agent.get_action(pickle.loads(pickle.dumps(seen)))
    assert action.startswith("mouse_click(")
    assert info["stats"]["calls"] == 1
    assert agent.get_action(seen)[0] == "send_msg_to_user('success')"
    asked = "".join(str(message) for message in model.requests[1].messages)
    assert "Buy -> CLICK" in asked
    assert agent.get_action(seen) == (None, {"extra_info": {"end": "stopped"}})


def test_three_replies_that_say_nothing_end_the_episode(observation: dict[str, Any], args: Any) -> None:
    agent = args("?", "?", "?").make_agent()
    assert [agent.get_action(observation)[0] for _ in range(4)] == ["noop()", "noop()", "noop()", None]


def test_web_agents_hear_that_an_action_failed(observation: dict[str, Any], args: Any) -> None:
    model = Scripted(*["Thought: Buy.\nAction: Click [0]"] * 2)
    agent = args(agent="webvoyager", model=model).make_agent()
    agent.get_action(observation)
    agent.get_action(observation | {"last_action_error": "TimeoutError: 500 ms\nCall log:"})
    assert "(not carried out: TimeoutError: 500 ms)" in model.requests[1].messages[-1].text


def test_a_limit_of_cost_holds_over_all_episodes(observation: dict[str, Any], args: Any) -> None:
    class Dear(Scripted):
        def next_answer(self) -> Completion:
            return Completion(
                self.answers.pop(0), Usage(calls=1, prompt_tokens=1000, completion_tokens=1000, cost_usd=0.6)
            )

    named = args(model=Dear("?", "?"), max_cost=1.0)
    tasks = [observation | {"goal_object": [{"type": "text", "text": text}]} for text in ("One", "Two")]
    named.make_agent().get_action(tasks[0])
    with pytest.raises(OutOfBudget, match=r"0\.6000 of 1\.0 USD are spent"):
        named.make_agent().get_action(tasks[1])


def test_one_process_works_in_a_folder(args: Any) -> None:
    args().make_agent()
    with pytest.raises(InputError, match="another process"):
        args().make_agent()


def test_what_makes_it_another_task_is_said_once(
    observation: dict[str, Any], args: Any, caplog: pytest.LogCaptureFixture
) -> None:
    observation["dom_object"]["documents"][0]["layout"]["bounds"][0][3] -= 87
    agent = args("?", "?").make_agent()
    for _ in range(2):
        agent.get_action(observation)
    (said,) = [one.getMessage() for one in caplog.records if one.name.endswith("gym_agent")]
    assert said.startswith("87 of the picture's 300 rows")


# --- real episodes ---

MINIWOB = {
    "click-test": [("#subbtn", "")],
    "click-button": [("button:text-is('submit'), input[value='submit']", "")],
    "enter-text": [("#tt", "Cheree"), ("#subbtn", "")],
    "choose-list": [("#options", "Arielle"), ("button", "")],
    "focus-text": [("#tt", "")],
}
"""Task -> what is right of seed 3: a place, and the text that is typed there."""


@pytest.fixture
def miniwob(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes an environment with the Chromium that is here."""
    pages = importlib.util.find_spec("miniwob")
    assert pages is not None
    assert pages.origin is not None
    monkeypatch.setenv("MINIWOB_URL", (Path(pages.origin).parent / "html" / "miniwob").as_uri() + "/")
    import browsergym.core
    import browsergym.miniwob
    import gymnasium
    from playwright.sync_api import BrowserType

    launch, path = BrowserType.launch, shutil.which("chromium")
    monkeypatch.setattr(BrowserType, "launch", lambda self, **more: launch(self, **{**more, "executable_path": path}))
    opened: list[Any] = []

    def make(name: str, agent: Any) -> Any:
        code = agent.action_set.to_python_code
        opened.append(gymnasium.make(f"browsergym/miniwob.{name}", disable_env_checker=True, action_mapping=code))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
    browsergym.core._get_global_playwright().stop()
    browsergym.core._set_global_playwright(None)


def run(make: Any, name: str, args: GymAgentArgs, prompt: Any = lambda env, step: None) -> tuple[float, bool]:
    agent = args.make_agent()
    env = make(name, agent)
    observation, _ = env.reset(seed=3)
    reward, is_done = 0.0, False
    for step in range(5):
        # Debian's Chromium lowers the window with each of BrowserGym's pictures, until the next one of Playwright's
        env.unwrapped.page.screenshot()
        prompt(env, step)
        action, info = agent.get_action(pickle.loads(pickle.dumps(agent.obs_preprocessor(observation))))
        assert action is not None, info
        observation, reward, is_done, _, _ = env.step(action)
        assert not observation["last_action_error"]
        if is_done:
            break
    args.close()
    return reward, is_done


real = [
    *REAL_BROWSER,
    pytest.mark.skipif(not INSTALLED, reason="browsergym-core and browsergym-miniwob are not installed"),
]


def marked(test: Any) -> Any:
    for mark in real:
        test = mark(test)
    return test


@marked
@pytest.mark.parametrize("name", MINIWOB)
def test_right_replies_of_a_model_that_points_are_rewarded(name: str, miniwob: Any, args: Any) -> None:
    model = Scripted()
    grounding = open_strategy(EvalConfig(agent="qwen2.5-vl", model=model)).grounding
    assert isinstance(grounding, AgentGrounding)
    sent = grounding.agent.view.resize.apply((498, 321))

    def prompt(env: Any, step: int) -> None:
        place, text = MINIWOB[name][step]
        box = env.unwrapped.page.locator(place).first.bounding_box()
        x, y = (box["x"] + box["width"] / 2) / 332 * sent[0], (box["y"] + box["height"] / 2) / 214 * sent[1]
        click = say(action="left_click", coordinate=[round(x), round(y)])
        model.answers.append(f"{click}\n{say(action='type', text=text)}" if text else click)

    assert run(miniwob, name, args(model=model), prompt) == (1.0, True)


@marked
@pytest.mark.parametrize(
    "options",
    [
        {"agent": "webvoyager"},
        {"agent": "visualwebarena"},
        {"agent": "openwebvoyager"},
        {"grounding": "choice", "ranker": "bm25"},
    ],
)
def test_agents_that_name_elements_are_rewarded(options: dict[str, str], miniwob: Any, tmp_path: Path) -> None:
    named = gym_agent_args(**options, model="builtin/lexical", out=tmp_path)
    assert run(miniwob, "click-button", named) == (1.0, True)
