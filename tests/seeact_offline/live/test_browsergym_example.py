"""The example for BrowserGym, on a stored observation (`order.json.gz`, made by BrowserGym 0.14.3, scrolled by 100 pixels)."""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from seeact_offline.files.extensions import load_named
from seeact_offline.live.acting import Deed
from tests.documents import REPO
from tests.scripted import Scripted

BUY, NAME, SIZE, DAY = (100.0, 55.0), (100.0, 95.0), (100.0, 135.0), (100.0, 175.0)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    found = load_named(f"{REPO / 'docs' / 'how-to' / 'browsergym_agent.py'}:sys", "", "example")
    assert found is not None
    modules: dict[str, ModuleType] = found.value.modules
    return next(module for name, module in modules.items() if name.startswith("_seeact_browsergym_agent_"))


@pytest.fixture
def observation() -> dict[str, Any]:
    from numpy import asarray
    from PIL import Image

    path = Path(__file__).parent / "observations" / "order.json.gz"
    stored: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    picture = Image.open(io.BytesIO(base64.b64decode(stored["screenshot"]))).convert("RGB")
    return {**stored, "screenshot": asarray(picture)}


def test_a_page_has_nothing_of_what_browsergym_wrote_and_boxes_in_the_pixels_of_the_picture(
    example: ModuleType, observation: dict[str, Any]
) -> None:
    twice = observation["screenshot"].repeat(2, axis=0).repeat(2, axis=1)
    page = example.GymPage(observation | {"screenshot": twice}, {}, "gym-0", [], "")
    elements = page.view.record.elements
    assert not [name for one in elements for name in one.attributes if name.startswith(("bid", "browsergym", "aria_r"))]
    assert 'input_value="Ann"' in page.view.record.cleaned_html
    (box,) = [one.box for one in elements if one.tag == "button"]
    assert (box.x, box.y, box.w, box.h) == (40, 80, 400, 60)


@pytest.mark.parametrize(
    ("deed", "expected"),
    [
        (Deed("click", BUY), ["mouse_click(100.0, 55.0)"]),
        (Deed("right", BUY), ["mouse_click(100.0, 55.0, 'right')"]),
        # a click on a list opens what no picture shows
        (Deed("click", SIZE), ["focus('SELECT')"]),
        (Deed("type", SIZE, text="large"), ["select_option('SELECT', 'Large')"]),
        (
            Deed("type", NAME, text="it's\n"),
            ["mouse_click(100.0, 95.0)", "keyboard_press('ALL')", 'keyboard_type("it\'s")', "keyboard_press('Enter')"],
        ),
        (Deed("type", DAY, text="2026-06-09"), ["fill('DAY', '2026-06-09')"]),
        (Deed("press", text="ctrl+a"), ["keyboard_press('Control+a')"]),
        (Deed("scroll", BUY, extra={"direction": "up", "pixels": 250}), ["scroll_at(100.0, 55.0, 0.0, -250.0)"]),
        (Deed("goto"), ["goto('http://shop.example/')"]),
        (Deed("tab", text="2"), ["tab_focus(2)"]),
        (Deed("answer", text="N/A"), ["report_infeasible('N/A')"]),
    ],
)
def test_an_act_is_written_as_calls(
    deed: Deed, expected: list[str], example: ModuleType, observation: dict[str, Any]
) -> None:
    page = example.GymPage(observation, {}, "gym-0", [], "http://shop.example/")
    nodes = {one.attributes.get("type", one.tag): page.bids.get(one.backend_node_id) for one in page.tree.walk()}
    words = {"SELECT": nodes["select"], "DAY": nodes["date"], "ALL": example.SELECT_ALL}
    assert list(page.calls(deed)) == ["'".join(words.get(part, part) for part in call.split("'")) for call in expected]


def say(**arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'computer_use', 'arguments': arguments})}\n</tool_call>"


def test_an_episode_acts_hears_of_what_failed_and_ends(
    example: ModuleType, observation: dict[str, Any], tmp_path: Path
) -> None:
    click, end = say(action="left_click", coordinate=[100, 55]), say(action="terminate", status="success")
    model = Scripted(click, "?", end)
    agent = example.GymAgentArgs.of(agent="qwen2.5-vl", model=model, out=tmp_path).make_agent()
    seen = pickle.loads(pickle.dumps(agent.obs_preprocessor(observation | {"page": object()})))
    action, info = agent.get_action(seen)
    assert (action.partition("(")[0], info["stats"]["calls"]) == ("mouse_click", 1)
    assert agent.get_action(seen | {"last_action_error": "TimeoutError: 500 ms\nCall log:"})[0] == "noop()"
    assert agent.get_action(seen)[0] == "send_msg_to_user('success')"
    assert agent.get_action(seen) == (None, {"extra_info": {"end": "stop"}})
    asked = "".join(str(message) for message in model.requests[-1].messages)
    assert "Buy -> CLICK; not carried out: TimeoutError: 500 ms" in asked
