"""Agents asked by the loop: views, ceilings, grounders, and elements at places."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.agents import AGENTS, GUI_MODELS
from seeact_offline.agents.gui_agent import AgentGrounding
from seeact_offline.grounding import PreparedStep
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Box, Completion, InputError, ShownPicture
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.strategy_opening import open_strategy
from tests.tiny_models import save_llava

ASKED = [name for name, agent in GUI_MODELS.items() if name != "uground-grounder"]
N_TASKS = 2
"""The fewest of `cross_website` with every operation."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_the_oracle_reaches_the_ceiling_and_no_more(name: str, tmp_path: Path) -> None:
    run = so.evaluate(
        agent=name,
        model="builtin/oracle",
        protocol="seeact",
        split="cross_website",
        limit=N_TASKS,
        out=tmp_path / "run",
    )
    assert {*run.to_pandas("steps")["target_op"]} == {"CLICK", "TYPE", "SELECT"}
    steps = run.to_pandas("steps").set_index(["annotation_id", "action_uid"])
    reached = {prediction.key: prediction.reachable for prediction in run.predictions()}
    assert {key: bool(steps.loc[tuple(key), "element"]) for key in reached} == reached
    assert sum(map(bool, reached.values())) > len(reached) / 2
    agent, operations = AGENTS[name], steps["target_op"]
    right = steps["operation_f1"] == 1
    for op in ("CLICK", "TYPE", "SELECT"):
        says = op in agent.speaks and (op == "CLICK" or op in agent.speaks_value)
        says = says and not (op == "SELECT" and agent.names_selected)
        assert (right[operations == op] == says).all(), op
    assert not run.results["failures"]


@pytest.mark.slow
def test_under_its_own_rules_showui_is_told_what_it_selects_from(tmp_path: Path) -> None:
    """It said the option, which these rules do not compare."""
    run = so.evaluate(agent="showui", model="builtin/oracle", split="cross_website", limit=6, out=tmp_path / "run")
    rights = run.to_pandas("steps").set_index(["annotation_id", "action_uid"])["operation_f1"]
    truths = [step.truth for step in so.load_steps("sample", "cross_website", limit=6)]
    selects = [truth for truth in truths if truth.operation.op == "SELECT"]
    assert selects
    assert [rights[tuple(truth.key)] for truth in selects] == [1.0] * len(selects)


class Recorded:
    """A model that answers with these texts in turn, and remembers what it was shown."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.requests = list(texts), []

    async def complete(self, request: Any) -> Completion:
        self.requests.append(request)
        return Completion(self.texts[min(len(self.requests), len(self.texts)) - 1])

    async def aclose(self) -> None:
        pass


def asked(tmp_path: Path, agent: str, *texts: str, **options: Any) -> tuple[Recorded, Any]:
    model = Recorded(*texts)
    run = so.evaluate(
        agent=agent,
        model=model,
        split="cross_website",
        limit=1,
        out=tmp_path / "run",
        concurrency=1,
        ask_equal=True,
        **options,
    )
    return model, run


SCROLL = {
    "uground-blind": "ACTION: SCROLL DOWN\nELEMENT: None\nVALUE: None",
    "openai": '{"actions": [{"type": "scroll"}]}',
}


@pytest.mark.parametrize("agent", SCROLL)
def test_scrolling_shows_the_next_part_to_the_end_of_the_page(agent: str, tmp_path: Path) -> None:
    model, run = asked(tmp_path, agent, SCROLL[agent])
    first = [request for request in model.requests if request.key == model.requests[0].key]
    boxes = [request.messages[-1].picture.box for request in first]
    assert [box.y0 for box in boxes] == list(range(0, 800 * len(boxes), 800))
    assert boxes[-1].y1 >= boxes[-2].y1
    assert run.results["failures"] == {"scrolled": run.results["n_steps"]}


def test_as_released_uground_stops_one_block_behind_the_truth(tmp_path: Path) -> None:
    told, blind = (asked(tmp_path / name, name, SCROLL["uground-blind"]) for name in ("uground", "uground-blind"))
    assert len(told[0].requests) < len(blind[0].requests)
    assert [run.manifest["settings"].get("view_uses_truth") for _, run in (told, blind)] == [True, None]


def test_the_grounder_is_shown_the_same_block_and_the_description(tmp_path: Path) -> None:
    plan = "ACTION: CLICK\nELEMENT: the blue button\nVALUE: None"
    model, run = asked(tmp_path, "uground-blind", plan, "(500, 500)")
    question, grounder = model.requests[:2]
    assert grounder.messages[-1].picture.key == question.messages[-1].picture.key
    assert "the blue button" in grounder.messages[-1].text
    assert run.predictions()[0].point is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "text", "failure", "detail"),
    [
        ("qwen2.5-vl", "I would click.", "no_act", "expected a call, written as json"),
        ("uitars", "Action: click(start_box='(500,1500)')", "point_outside", "it would fit pixels as sent"),
        ("aguvis", "pyautogui.click(x=512, y=700)", "point_outside", "it would fit 0 to 1000"),
        ("qwen3-vl", '{"arguments": {"action": "terminate", "status": "success"}}', "stopped_early", ""),
        ("osatlas", "thoughts:\nIt is 5.\nactions:\nANSWER [5]", "answered_early", "5"),
        ("osatlas", "actions:\nSCROLL [DOWN]", "scrolled", ""),
    ],
)
def test_a_reply_without_an_answer_is_a_named_failure(
    agent: str, text: str, failure: str, detail: str, tmp_path: Path
) -> None:
    _, run = asked(tmp_path, agent, text)
    first = run.predictions()[0]
    assert (first.failure, first.element_id, first.ran) == (failure, None, True)
    assert detail in first.detail


def test_typing_without_a_place_is_asked_again_where_that_is_wanted(tmp_path: Path) -> None:
    model, run = asked(
        tmp_path, "opencua", "pyautogui.write(message='x')", "pyautogui.click(x=500, y=500)", type_place="ask-again"
    )
    assert (run.predictions()[0].op, run.predictions()[0].value) == ("TYPE", "x")
    assert run.predictions()[0].point is not None
    assert "Click on the field to type 'x' into" in model.requests[1].messages[-1].text


def test_pictures_are_sent_at_the_size_of_the_rule(tmp_path: Path) -> None:
    model, _ = asked(tmp_path, "holo1", "Click(1, 1)")
    picture = model.requests[0].messages[-1].picture
    assert picture.size == picture.image().size
    assert all(side % 28 == 0 for side in picture.size)
    assert picture.size[0] * picture.size[1] <= 1_003_520


@pytest.mark.slow
def test_a_run_keeps_the_part_and_both_sizes_of_each_picture(tmp_path: Path) -> None:
    model, run = asked(tmp_path, "uitars-1.5", "Action: click(start_box='(1,1)')", max_pixels=500_000)
    picture, first = model.requests[0].messages[-1].picture, run.predictions()[0].groups[0]
    page = picture.box
    assert first.shown == ShownPicture((0, 0, page.x1, page.y1), picture.size, picture.size)
    model, run = asked(
        tmp_path / "blocks", "uground-blind", *[SCROLL["uground-blind"]] * 2, "ACTION: STOP\nELEMENT: None\nVALUE: None"
    )
    shown = [group.shown for group in run.predictions()[0].groups]
    assert [one.part[1] for one in shown] == [0, 800, 1600]
    assert [one.sent for one in shown] == [(1280, 1000)] * 3


def test_a_servers_limit_scales_pictures_and_places_alike(tmp_path: Path) -> None:
    reply = '{"action": "left_click", "coordinate": [100, 200]}'
    model, run = asked(tmp_path, "qwen2.5-vl", reply, max_pixels=500_000)
    width, height = model.requests[0].messages[-1].picture.size
    assert width * height <= 500_000
    page = run.predictions()[0].point
    assert page is not None
    assert page[0] == pytest.approx(100 * 1280 / width)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"agent": "qwen9"}, "agent"),
        ({"agent": "holo1.5", "max_pixels": 500_000}, "max_pixels"),
        ({"agent": "qwen3-vl", "max_pixels": 100}, "max_pixels"),
        ({"agent": "choice"}, "agent"),
        ({"agent": "qwen3-vl", "grounding": "pixel"}, "grounding"),
        ({"agent": "qwen3-vl", "ungrounded": True}, "ungrounded"),
        ({"agent": "qwen3-vl", "no_image": True}, "no_image"),
        ({"agent": "qwen3-vl", "top_k": 20}, "top_k"),
        ({"grounding": "qwen3-vl"}, "grounding"),
    ],
)
def test_what_an_agent_does_not_have_is_refused(options: dict[str, Any], argument: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        so.evaluate(out=tmp_path / "run", **options)
    assert raised.value.argument == argument


AGENT_FILE = """
from dataclasses import replace
from seeact_offline.agents import AGENTS
MINE = replace(AGENTS["qwen3-vl"], name="qwen2.5-vl", view=AGENTS["openai"].view, scroll="")
"""


def test_an_agent_may_lie_in_a_file_outside_the_package(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(AGENT_FILE)
    run = so.evaluate(
        agent=f"{tmp_path / 'mine.py'}:MINE",
        model="builtin/oracle",
        split="cross_website",
        limit=1,
        out=tmp_path / "run",
    )
    assert run.manifest["settings"]["grounding"].endswith("mine.py:MINE")


@pytest.mark.parametrize("finder", ["uground-grounder", "qwen2.5-vl", "aguvis", "gta1", "px/smart(28):point"])
def test_a_second_model_finds_what_the_first_describes(finder: str, tmp_path: Path) -> None:
    planner, grounder = Recorded("ACTION: CLICK\nELEMENT: the blue button\nVALUE: None"), Recorded("nothing")
    run = so.evaluate(
        agent="uground-blind", model=planner, grounder=grounder, grounder_agent=finder, split="cross_website", limit=1,
        out=tmp_path / "run", ask_equal=True,
    )  # fmt: skip
    assert len(planner.requests) == len(grounder.requests) == run.results["n_steps"]
    assert all("the blue button" in request.messages[-1].text for request in grounder.requests)
    assert not any("the blue button" in request.messages[-1].text for request in planner.requests)
    assert run.manifest["settings"]["grounder"]
    assert run.results["failures"] == {"no_act": run.results["n_steps"]}


@pytest.mark.slow
def test_any_grounder_reaches_what_the_planner_describes(tmp_path: Path) -> None:
    run = so.evaluate(
        agent="uground",
        model="builtin/oracle",
        grounder_agent="qwen2.5-vl",
        split="cross_website",
        limit=6,
        out=tmp_path / "run",
    )
    assert run.results["element_accuracy"]["micro"] > 0.7


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"grounder": "builtin/oracle"}, "grounder"),
        ({"agent": "qwen3-vl", "grounder": "builtin/oracle"}, "grounder"),
        ({"agent": "qwen3-vl", "grounder_agent": "aguvis"}, "grounder_agent"),
    ],
)
def test_a_grounder_needs_a_planner(options: dict[str, Any], argument: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        so.evaluate(out=tmp_path / "run", **options)
    assert raised.value.argument == argument


def test_earlier_steps_are_told_with_their_pictures_in_the_agents_language(tmp_path: Path) -> None:
    model, _ = asked(tmp_path, "qwen3-vl", "nothing", history_pictures=2)
    counts = [sum(message.picture is not None for message in request.messages) for request in model.requests]
    assert counts == [min(place, 2) + 1 for place in range(len(counts))]
    last = model.requests[-1].messages
    assert [message.role for message in last] == ["user", "assistant"] * 2 + ["user"]
    assert all("computer_use" in message.text for message in last[1::2])
    keys = [request.messages[-1].picture.key for request in model.requests]
    assert [message.picture.key for message in last[::2]] == keys[-3:]


def test_earlier_replies_of_uitars_are_told_with_box_tokens(tmp_path: Path) -> None:
    model, _ = asked(tmp_path, "uitars-1.5", "nothing", history_pictures=9)
    told = [message.text for message in model.requests[-1].messages if message.role == "assistant"]
    assert told
    # as the released code (add_box_token) writes them; the model's own replies have no tokens
    box = r"click\(start_box='<\|box_start\|>\(\d+,\d+\)<\|box_end\|>'\)"
    assert all(re.fullmatch(rf"Action: {box}(\n\ntype\(content='.*'\))?", text) for text in told), told


@pytest.mark.slow
def test_typing_without_a_place_goes_where_the_step_before_clicked(tmp_path: Path) -> None:
    _, run = asked(tmp_path, "aguvis", "pyautogui.write(message='x')", type_place="last-click")
    steps = list(so.load_steps("sample", "cross_website"))
    before = {step.key: earlier for earlier, step in pairwise(steps) if earlier.annotation_id == step.annotation_id}
    for prediction in run.predictions():
        earlier = before.get(prediction.key)
        clicked = earlier is not None and earlier.operation.op == "CLICK" and bool(earlier.truth.boxes)
        assert (prediction.point is not None) == clicked


@pytest.mark.slow
def test_a_local_model_is_asked_and_each_reply_is_read_or_named(tmp_path: Path) -> None:
    """A tiny LLaVA; Qwen2.5-VL itself, which needs torchvision, is asked in `models/test_transformers_serve.py`."""
    run = so.evaluate(
        agent="qwen2.5-vl", model=f"hf/{save_llava(tmp_path / 'llava')}", split="cross_website", limit=1, max_tokens=20,
        out=tmp_path / "run",
    )  # fmt: skip
    assert run.results["n_not_run"] == 0
    assert set(run.results["failures"]) <= {"no_act", "point_outside", "truncated", "empty_reply"}
    assert all(prediction.groups[0].replies or prediction.failure for prediction in run.predictions())


@pytest.mark.parametrize(
    ("agent", "protocol", "used"),
    [
        ("seeclick", None, "seeclick"),
        ("showui", None, "showui"),
        ("showui", "seeact", "seeact"),
        ("qwen3-vl", None, "seeact"),
    ],
)
def test_an_agent_is_scored_by_its_own_rules_unless_others_are_named(
    agent: str, protocol: str | None, used: str, tmp_path: Path
) -> None:
    _, run = asked(tmp_path, agent, "nothing", protocol=protocol)
    assert run.results["protocol"] == used


@pytest.mark.parametrize("name", ASKED)
def test_the_oracle_solves_the_real_step(name: str, shared_step: Path, tmp_path: Path) -> None:
    """Click on Search, on a page of 1280 x 7412 pixels. Two decimals of a fraction are 74 pixels there, more than the button is high."""
    run = so.evaluate(
        dataset=shared_step,
        agent=name,
        model="builtin/oracle",
        protocol="seeact",
        split="cross_domain",
        out=tmp_path / "run",
    )
    (prediction,) = run.predictions()
    assert prediction.op == "CLICK"
    assert (prediction.element_id == "8635") == bool(prediction.reachable)
    assert run.results["step_success_rate"]["micro"] == float(bool(prediction.reachable))
    assert prediction.reachable or AGENTS[name].frame.decimals == 2


@pytest.mark.parametrize(("beyond", "is_block"), [(("h", 45.0), True), (("w", 0.6), False)])
def test_a_target_over_the_page_s_edge_is_in_the_last_block_only_from_below(
    beyond: tuple[str, float], is_block: bool
) -> None:
    step = next(iter(so.load_steps("sample", "cross_website")))
    assert step.screenshot is not None
    picture = PagePicture(step.screenshot)
    width, height = picture.size
    over = {"w": 0.0, "h": 0.0, beyond[0]: beyond[1]}
    box = Box(width - 20, height - 20, 20 + over["w"], 20 + over["h"])
    candidates = tuple(
        replace(one, box=box if one.backend_node_id in step.truth.positives else None) for one in step.candidates
    )
    prepared = PreparedStep(replace(step, candidates=candidates), Page(step.cleaned_html), picture, ())
    agent = GUI_MODELS["uground"]
    grounding = AgentGrounding(
        agent, open_pack("seeact", agent.name), grounder_pack=open_pack("seeact", "uground-grounder")
    )
    assert grounding.reaches(prepared) == is_block


def test_an_agents_prompt_keeps_its_own_tokens() -> None:
    for agent, token in (("uitars", "<|box_start|>"), ("qwen2.5-vl", "<tool_call>")):
        grounding = open_strategy(EvalConfig(agent=agent)).grounding
        assert isinstance(grounding, AgentGrounding)
        assert token in grounding._pack.turn1
