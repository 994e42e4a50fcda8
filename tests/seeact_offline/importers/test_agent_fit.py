"""Which agent wrote a file of replies."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.agents import GROUNDERS, GUI_MODELS, Agent
from seeact_offline.agents.agent_fit import AgentFit, AgentFits, RawReply, agent_fits
from seeact_offline.agents.reply_pictures import shown_of
from seeact_offline.dataset import load_steps
from seeact_offline.importers.reply_files import fit_file
from seeact_offline.pages.pointing import visible_centre
from seeact_offline.records import InputError, Step
from seeact_offline.runs.prepare import picture_size

AGENTS: Mapping[str, Agent] = {name: known[name] for known in (GUI_MODELS, GROUNDERS) for name in known}
WRAPPINGS = {
    "plain": "{}",
    "thoughts": "<think>I might click (3, 4), or type first.</think>\n{}",
    "box": "<|begin_of_box|>{}<|end_of_box|>",
    "fence": "```\n{}\n```",
}


@dataclass(frozen=True)
class KnownStep:
    """A step with the middle of its right element."""

    step: Step
    size: tuple[int, int]
    centre: tuple[float, float]


def known(steps: list[Step]) -> list[KnownStep]:
    found = []
    for step in steps:
        size = picture_size(step)
        centre = visible_centre(step.truth.boxes[0], size) if size and step.truth.boxes else None
        if size is not None and centre is not None:
            found.append(KnownStep(step, size, centre))
    return found


@pytest.fixture(scope="module")
def website_steps() -> list[KnownStep]:
    return known(list(load_steps("sample", "cross_website"))[:60])


def row(agent: Agent, one: KnownStep, wrapping: str = "{}") -> dict[str, Any]:
    """The right answer as the agent writes it, with the part of the page that a block or window shows."""
    values: dict[str, Any] = {**one.step.key._asdict()}
    if agent.view.part != "page" and agent.grounder is None:
        top = max(0, min(int(one.centre[1]) - 300, one.size[1] - 800))
        values |= {"width": min(1280, one.size[0]), "height": min(800, one.size[1]), "left": 0, "top": top}
    operation, shown = one.step.truth.operation, shown_of(values, agent, one.size)[0]
    place = one.centre if agent.grounder is None else "the search field"
    return {**values, "reply": wrapping.format(agent.write(operation.op, operation.value, place, shown))}


def fits(agent: Agent, steps: list[KnownStep], wrapping: str = "{}") -> AgentFits:
    rows = [row(agent, one, wrapping) for one in steps]
    return agent_fits(
        RawReply(values["reply"], values, one.size, one.step.truth.boxes, [c.box for c in one.step.candidates if c.box])
        for values, one in zip(rows, steps, strict=True)
    )


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def wrongly_named(best: Mapping[str, AgentFit | None]) -> dict[str, object]:
    """Agents that are not among the best fits of what they write, with those that are."""
    return {name: fit and fit.agents for name, fit in best.items() if fit is None or name not in fit.agents}


@pytest.mark.slow
def test_each_agent_is_named_for_what_it_writes(website_steps: list[KnownStep]) -> None:
    wrappings = itertools.cycle(WRAPPINGS.values())
    best = {name: fits(agent, website_steps[::3], next(wrappings)).best for name, agent in AGENTS.items()}
    assert wrongly_named(best) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
def test_each_agent_is_named_in_each_wrapping(wrapping: str, website_steps: list[KnownStep]) -> None:
    assert wrongly_named({name: fits(agent, website_steps, wrapping).best for name, agent in AGENTS.items()}) == {}


@pytest.mark.slow
def test_agents_that_cannot_be_told_apart_share_a_row(website_steps: list[KnownStep]) -> None:
    found = fits(AGENTS["gui-owl"], website_steps[:20])
    assert found.best is not None
    assert {"qwen3-vl", "gui-owl", "evocua", "mai-ui"} <= {*found.best.agents}
    assert not {"qwen2.5-vl", "holo2", "showui"} & {*found.best.agents}


@pytest.mark.slow
def test_the_frame_is_the_one_whose_places_are_on_the_right_elements(website_steps: list[KnownStep]) -> None:
    found = fits(AGENTS["qwen3-vl"], website_steps[:20])
    right, wrong = found.row_of("qwen3-vl"), found.row_of("qwen2.5-vl")
    assert right is not None
    assert right.element is not None
    assert right.element > 0.7
    assert wrong is not None
    assert (wrong.own, wrong.element) == (1.0, 0.0)


LINES = {
    "objects": '{"reply": "{\\"action\\": \\"left_click\\", \\"coordinate\\": [500, 20]}"}\n' * 3,
    "texts": json.dumps('{"action": "left_click", "coordinate": [500, 20]}') + "\n",
    "lines": '{"action": "left_click", "coordinate": [500, 20]}\n\n{"action": "wait"}\n',
    "list": '[{"reply": "{\\"action\\": \\"left_click\\", \\"coordinate\\": [500, 20]}"},\n {"reply": {"action": "wait"}}]',
    "completions": json.dumps(
        {
            "choices": [
                {"message": {"role": "assistant", "content": '{"action": "left_click", "coordinate": [500, 20]}'}}
            ]
        }
    )
    + "\n",
    "table": 'annotation_id,action_uid,reply\na,b,"{""action"": ""left_click"", ""coordinate"": [500, 20]}"\n',
}


@pytest.mark.parametrize("content", LINES.values(), ids=LINES)
def test_replies_may_stand_alone(content: str, tmp_path: Path) -> None:
    path = tmp_path / "replies"
    path.write_text(content)
    found = fit_file(path)
    fit = found.row_of("qwen3-vl")
    assert fit is not None
    assert (fit.own, fit.on_page, fit.on_candidate, fit.element) == (1.0, 1.0, None, None)
    # pixels of a picture of which nothing is known
    unknown = found.row_of("qwen2.5-vl")
    assert unknown is not None
    assert unknown.on_page is None
    assert unknown.lead(replace(unknown, on_page=0.675)) == replace(unknown, on_page=0.675).lead(unknown) == ""


def test_pictures_of_known_size_tell_which_places_lie_on_them(tmp_path: Path) -> None:
    reply = '{"action": "left_click", "coordinate": [1200, 20]}'
    path = written(tmp_path / "replies", [{"reply": reply, "width": 1280, "height": 800}])
    found = fit_file(path)
    assert found.best is not None
    assert ("qwen2.5-vl" in found.best.agents, found.best.on_page) == (True, 1.0)
    other = found.row_of("qwen3-vl")
    assert other is not None
    assert other.on_page == 0.0


@pytest.mark.parametrize("content", ["", "\n\n", '{"reply": ""}\n', 'annotation_id,action_uid,reply\na,b,""\n'])
def test_a_file_without_replies_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "replies"
    path.write_text(content)
    with pytest.raises(InputError, match="holds no replies"):
        fit_file(path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"dataset": "sample"}, "`split`"), ({"split": "cross_task"}, "`dataset`"), ({"dataset": "sample", "split": "cross_task"}, "names no step")],
)  # fmt: skip
def test_steps_need_their_data_and_their_names(options: dict[str, str], sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path / "replies", [{"reply": "CLICK"}])
    with pytest.raises(InputError, match=sentence):
        fit_file(path, **options)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_thousand_replies_take_less_than_twenty_seconds(tmp_path: Path) -> None:
    agent = AGENTS["uitars"]
    steps = known(list(load_steps("sample", "all")))
    rows = [row(agent, one, "Thought: the element that I look for is this one.\n{}") for one in steps]
    path = written(tmp_path / "replies.jsonl", rows)
    began = time.process_time()
    found = fit_file(path, "sample", "all")
    seconds = time.process_time() - began
    assert found.best is not None
    assert "uitars" in found.best.agents
    assert seconds / len(rows) * 1000 < 20
