"""Web agents over recorded steps: ceilings, windows, corrections, told steps, and how each step is lost."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline import cli, records
from seeact_offline.agents import AGENTS, Answer
from seeact_offline.agents.history import OPEN_NOTE, OPEN_OBSERVATION, PICTURE_NOTE, TREE_NOTE
from seeact_offline.dataset.recorded import RecordedColumns
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.models import builtin
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Box, Candidate, Completion, InputError, Operation, Request, Step, StepKey
from seeact_offline.runs.run import Run
from seeact_offline.web_agents import trees
from seeact_offline.web_agents.captions import read_captions
from seeact_offline.web_agents.observations import Label, MarkedWindow, PageWindows, Scene, observe_som, observe_tree
from seeact_offline.web_agents.systems import THOUGHT
from seeact_offline.web_agents.web_loop import CANNOT_ACT, PARTS_MISSING, WEB_AGENTS, WebAgentGrounding
from tests.reference import web_loop

ASKED = [(name, observation) for name, web in WEB_AGENTS.items() for observation in web.observations]


class Model(records.Model):
    """Stands for the oracle: answers by a function of the request and its ideal reply, and remembers what it was asked and said."""

    takes_ideal = True

    def __init__(self, say: Callable[[Request, str], str]) -> None:
        self.say = say
        self.requests: list[Request] = []
        self.replies: list[str] = []

    async def complete(self, request: Request) -> Completion:
        return await self.complete_with_ideal(request, "")

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        self.requests.append(request)
        self.replies.append(self.say(request, ideal))
        return Completion(self.replies[-1])


def evaluated(
    tmp_path: Path, agent: str, model: Model | None = None, observation: str | None = None, **options: Any
) -> Run:
    """`model`: None for the oracle itself."""
    shown = {"observation": observation} if agent == "visualwebarena" and observation else {}
    usual = {"dataset": "sample", "split": "cross_domain", "limit": 1, "concurrency": 1, "ask_equal": True}
    with pytest.MonkeyPatch.context() as patch:
        if model is not None:
            patch.setitem(builtin.MODELS, "oracle", lambda: model)
        return so.evaluate(agent=agent, model="builtin/oracle", out=tmp_path / "run", **usual | shown | options)


def saying(tmp_path: Path, agent: str, *texts: str, **options: Any) -> tuple[Model, Run]:
    """A model that says the texts in turn at every step, the last one as often as it is asked."""
    model = Model(lambda request, ideal: texts[min(request.group, len(texts) - 1)])
    return model, evaluated(tmp_path, agent, model, **options)


@pytest.fixture(scope="module")
def step() -> Step:
    """A step of the sample."""
    return next(so.load_steps("sample", "cross_website"))


@pytest.fixture(scope="module")
def heights() -> dict[StepKey, int]:
    """The heights of the pages of two tasks."""
    steps = so.load_steps("sample", "cross_domain", limit=2)
    return {step.key: PagePicture(step.screenshot).size[1] for step in steps}


def of_first_step(model: Model) -> list[Request]:
    return [request for request in model.requests if request.key == model.requests[0].key]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "observation"), ASKED)
def test_the_oracle_reaches_the_ceiling_and_no_more(name: str, observation: str, tmp_path: Path) -> None:
    run = evaluated(tmp_path, name, None, observation, limit=2)
    right = run.to_pandas("steps")["element"].astype(bool).tolist()
    assert right == [prediction.reachable for prediction in run.predictions()]
    assert sum(right) > len(right) / 2
    assert run.results["ceiling"]["micro"] == run.results["element_accuracy"]["micro"]
    assert not run.results["failures"]
    assert not run.results["reply_failures"]
    assert run.results["waterfall"].keys() <= {"no_positive", "not_marked", "target_cut_off", "never_scrolled_to"}
    # a choice in a list is typed, and read as a choice
    assert run.results["operation_f1"]["micro"] > 0.97


@pytest.mark.parametrize(("name", "observation"), ASKED)
def test_the_oracle_solves_the_real_step(name: str, observation: str, shared_step: Path, tmp_path: Path) -> None:
    options = {"dataset": shared_step, "split": "cross_domain", "limit": None}
    run = evaluated(tmp_path, name, None, observation, **options)
    (prediction,) = run.predictions()
    assert (prediction.element_id, prediction.reachable) == ("8635", True)
    assert run.results["step_success_rate"]["micro"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", WEB_AGENTS)
def test_format_errors_are_counted_and_corrected_and_cost_no_step(name: str, tmp_path: Path) -> None:
    replies = iter(range(10_000))
    model = Model(lambda request, ideal: "I would click there." if next(replies) % 5 == 2 else ideal)
    run = evaluated(tmp_path, name, model, limit=3, max_turns=12)
    n_bad = model.replies.count("I would click there.")
    assert n_bad / len(model.replies) == pytest.approx(0.2, abs=0.05)
    assert run.results["notes"]["format_error"] == n_bad
    assert not run.results["failures"]
    assert 0 < run.results["notes"]["recovered"] <= n_bad
    right = run.to_pandas("steps")["element"].astype(bool).tolist()
    assert right == [prediction.reachable for prediction in run.predictions()]


@pytest.mark.parametrize(
    ("name", "reply", "note", "correction"),
    [
        ("webvoyager", "Click [1]", "format_error", PARTS_MISSING),
        ("webvoyager", "Thought: a\nAction: Jump [1]", "format_error", CANNOT_ACT),
        ("webvoyager", "Thought: a\nAction: Click [9999]", "bad_label", CANNOT_ACT),
        ("webvoyager-text", "Thought: a\nAction: Click [999999]", "bad_label", CANNOT_ACT),
        ("openwebvoyager", "Click [1]", "format_error", PARTS_MISSING),
        ("openwebvoyager", "Thought: a\nAction: Click [9999]", "bad_label", CANNOT_ACT),
    ],
)
def test_a_correction_stands_alone_or_above_the_next_observation(
    name: str, reply: str, note: str, correction: str, tmp_path: Path
) -> None:
    model = Model(lambda request, ideal: ideal if request.group else reply)
    run = evaluated(tmp_path, name, model)
    first, second = of_first_step(model)[:2]
    message = second.messages[-1]
    assert second.messages[-2].text == reply
    if name == "openwebvoyager":
        assert message.text.startswith(f"{correction}\n{OPEN_OBSERVATION}\n[1] ")
        assert message.picture is not None
    else:
        assert (message.text, message.picture) == (correction, None)
        # the labels of the observation before it still hold
        assert second.messages[-3].text == first.messages[-1].text
    assert second.offered == first.offered
    steps = run.results["n_steps"]
    assert run.results["notes"][note] == run.results["notes"]["recovered"] == steps


@pytest.mark.parametrize(
    ("name", "action", "failure", "outcome", "n_asked"),
    [
        ("webvoyager", "GoBack", "left_page", "left_page", 1),
        ("webvoyager", "Google", "left_page", "left_page", 1),
        ("openwebvoyager", "Restart", "left_page", "left_page", 1),
        ("webvoyager", "ANSWER; [Rome]", "answered_early", "answered_early", 1),
        ("webvoyager", "Wait", "waited", "did_not_act", 3),
        ("webvoyager", "Scroll [0]; [down]", "scrolled", "did_not_act", 3),
        ("webvoyager", "Click [9999]", "bad_label", "unreadable_reply", 3),
        ("webvoyager", "nothing", "no_act", "unreadable_reply", 3),
        ("visualwebarena", "goto [a.b]", "left_page", "left_page", 1),
        ("visualwebarena", "new_tab", "left_page", "left_page", 1),
        ("visualwebarena", "stop [Rome]", "answered_early", "answered_early", 1),
        ("visualwebarena", "click [9999]", "bad_label", "unreadable_reply", 3),
        ("visualwebarena", "jump", "no_act", "unreadable_reply", 3),
        ("visualwebarena", "press [Enter]", "other_act", "did_not_act", 1),
    ],
)
def test_each_way_out_has_its_name(
    name: str, action: str, failure: str, outcome: str, n_asked: int, tmp_path: Path
) -> None:
    reply = f"```{action}```" if name == "visualwebarena" else f"Thought: a\nAction: {action}"
    model, run = saying(tmp_path, name, reply, max_turns=3)
    first = run.predictions()[0]
    assert (first.failure, first.element_id, first.ran) == (failure, None, True)
    assert len(of_first_step(model)) == n_asked
    assert json.loads((run.path / "steps.jsonl").read_text().splitlines()[0])["outcome"] == outcome


@pytest.mark.slow
def test_a_wrong_mark_is_told_from_one_that_was_never_in_view(tmp_path: Path) -> None:
    dataset = {"split": "cross_website", "limit": 4}
    ideal = evaluated(tmp_path / "ideal", "webvoyager", **dataset)
    _, run = saying(tmp_path, "webvoyager", "Thought: a\nAction: Click [0]", **dataset)
    n_turns = [len(prediction.groups) for prediction in ideal.predictions()]
    outcomes = run.to_pandas("steps")["outcome"].tolist()
    assert "wrong_mark" in outcomes
    assert {outcome for outcome, n in zip(outcomes, n_turns, strict=True) if n > 1} == {"never_scrolled_to"}
    assert {outcome for outcome, n in zip(outcomes, n_turns, strict=True) if n == 1} <= {
        "wrong_mark", "success", "wrong_op", "wrong_value", "missing_value", "no_positive",
    }  # fmt: skip


def test_a_window_moves_by_two_thirds_and_stays_on_the_page(tmp_path: Path) -> None:
    down, up = (f"Thought: a\nAction: Scroll [WINDOW]; [{way}]" for way in ("down", "up"))
    model, run = saying(tmp_path, "webvoyager", *[down] * 20, up, up, max_turns=22)
    pictures = [request.messages[-1].picture for request in of_first_step(model)]
    width, height = pictures[0].crop._page.size
    tops = [picture.crop.box.y0 for picture in pictures]
    assert tops == [min(512 * turn, height - 768) for turn in range(21)] + [height - 768 - 512]
    assert all(picture.size == (width, 768) for picture in pictures)
    assert [group.shown.part[1] for group in run.predictions()[0].groups] == tops
    assert run.results["failures"] == {"scrolled": run.results["n_steps"]}


VOYAGER_SAYS = {
    "down": "Scroll [WINDOW]; [down]", "up": "Scroll [WINDOW]; [up]", "no action": "Jump [1]", "bad label": "Click [99999]", "back": "GoBack",
    "answer": "ANSWER; [x]", "act": "Click [{label}]",
}  # fmt: skip
ARENA_SAYS = {
    "down": "scroll [down]", "up": "scroll [up]", "no action": "jump [1]", "bad label": "click [99999]", "back": "go_back", "answer": "stop [x]",
    "act": "click [{label}]",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", WEB_AGENTS)
def test_any_dialogue_goes_as_the_slow_loop_does(name: str, heights: dict[StepKey, int], tmp_path: Path) -> None:
    rng = random.Random(name)
    kinds = ["down", "down", "up", "no mark", "no action", "bad label", "act"]
    said: dict[StepKey, list[str]] = {}

    def say(request: Request, ideal: str) -> str:
        script = said.setdefault(
            request.key,
            [*rng.choices(kinds, k=rng.randrange(6)), rng.choice(["back", "answer", "act", *kinds]), *["down"] * 6],
        )
        kind = script[request.group]
        texts = [one.text for one in reversed(request.messages) if one.role == "user"]
        # the newest observation has labels, corrections none
        label = next(found[1] for text in texts if (found := re.search(r"^\s*\[(\d+)\]", text, re.MULTILINE)))
        if kind == "no mark":
            return "Nothing can be done."
        action = (ARENA_SAYS if name == "visualwebarena" else VOYAGER_SAYS)[kind].format(label=label)
        return f"```{action}```" if name == "visualwebarena" else f"Thought: a\nAction: {action}"

    run = evaluated(tmp_path, name, Model(say), limit=2, max_turns=6)
    view, alone = WEB_AGENTS[name].agent.view, WEB_AGENTS[name].correction == "alone"
    for prediction in run.predictions():
        expected = web_loop.play(said[prediction.key], heights[prediction.key], view.size[1], view.step, 6)
        assert prediction.failure == expected.failure
        notes = dict(prediction.notes)
        assert notes.get("format_error", 0) == expected.format_errors
        assert notes.get("bad_label", 0) == expected.bad_labels
        assert bool(notes.get("recovered")) == expected.recovered
        tops = [None if one.shown is None else one.shown.part[1] for one in prediction.groups]
        has_pictures = any(top is not None for top in tops)
        assert len(tops) == len(expected.tops)
        if has_pictures:
            pairs = zip(expected.tops, expected.is_corrected, strict=True)
            assert tops == [None if alone and is_corrected else top for top, is_corrected in pairs]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "observation"), ASKED)
def test_each_agent_sees_its_own_window(name: str, observation: str, tmp_path: Path) -> None:
    model = Model(lambda request, ideal: ideal)
    evaluated(tmp_path, name, model, observation)
    message = model.requests[0].messages[-1]
    has_picture = name == "webvoyager" or observation.startswith(("som", "image"))
    assert (message.picture is not None) == has_picture
    if has_picture:
        assert isinstance(message.picture, MarkedWindow) == (name == "webvoyager" or observation == "som+captions")
        assert message.picture.size[1] <= WEB_AGENTS[name].agent.view.size[1]
        assert message.picture.image().size == message.picture.size
    assert model.requests[0].messages[0].role == "system"


@pytest.mark.parametrize(
    ("name", "most_pictures", "note", "whole"),
    [("webvoyager", 3, PICTURE_NOTE, 3), ("webvoyager-text", 0, TREE_NOTE, 1), ("openwebvoyager", 3, OPEN_NOTE, 1)],
)
def test_earlier_steps_are_told_and_clipped(
    name: str, most_pictures: int, note: str, whole: int, tmp_path: Path
) -> None:
    model = Model(lambda request, ideal: ideal)
    evaluated(tmp_path, name, model)
    dialogues = [request.messages[1:] for request in model.requests if request.group == 0]
    assert max(map(len, dialogues)) == 2 * 3 + 1
    for n_before, messages in enumerate(dialogues):
        asked = messages[::2]
        # what no window shows is told in words, in the first message
        place = len(asked) - 1
        told = messages[0].text.partition("not shown below:\n")[2].split("\n\n")[0]
        assert place == n_before - told.count(" -> ")
        assert [one.role for one in messages] == ["user", "assistant"] * place + ["user"]
        assert messages[0].text.startswith("Task: ")
        assert sum(one.picture is not None for one in asked) == min(most_pictures, place + 1)
        assert sum("no longer shown" in one.text for one in asked) == max(0, place + 1 - whole)
        assert sum(note in one.text for one in asked) == max(0, place + 1 - max(most_pictures, 1))
        assert all("Action: " in one.text for one in messages[1::2])
        assert not any("<image>" in one.text for one in messages)


def test_earlier_steps_are_told_with_the_thoughts_of_another_run(tmp_path: Path) -> None:
    """At every other step the model gives a thought, after a scroll or a bad reply."""
    keys: list[StepKey] = []

    def say(request: Request, ideal: str) -> str:
        keys.extend([request.key] * (request.key not in keys))
        if keys.index(request.key) % 2:
            return re.sub(r"Thought: .*\n", "", ideal)
        return "Nothing." if request.group == 0 else ideal.replace(THOUGHT, f"I know {request.key.action_uid}.\nTruly.")

    first = evaluated(tmp_path / "first", "webvoyager", Model(say), max_turns=9)
    model = Model(lambda request, ideal: ideal)
    run = evaluated(tmp_path / "second", "webvoyager", model, thoughts=first.path)
    told = [one.text for one in model.requests[-1].messages if one.role == "assistant"]
    thoughts = [f"Thought: I know {key.action_uid}.\nTruly.\n" for key in keys[:-1:2]]
    assert any("Truly" in text for text in told)
    assert {text.partition("Action: ")[0] for text in told} <= {*thoughts, f"Thought: {THOUGHT}\n"}
    assert run.results["notes"]["without_thought"] > 0
    identity = run.manifest["identity"]
    assert (identity["thoughts"], len(identity["thoughts_digest"])) == ("model", 64)


def test_thoughts_come_from_a_run_that_has_some(tmp_path: Path) -> None:
    (tmp_path / "predictions.jsonl").write_text("")
    with pytest.raises(InputError, match="thoughts"):
        evaluated(tmp_path, "openwebvoyager", thoughts=tmp_path)
    with pytest.raises(InputError, match="thoughts"):
        evaluated(tmp_path, "visualwebarena", thoughts=tmp_path)


@pytest.mark.parametrize(
    ("tag", "kind", "note"),
    [("select", "", "select, type none"), ("input", "number", "input, type number"), ("input", "", "")],
)
def test_webvoyager_notes_a_text_that_went_into_no_text_field(step: Step, tag: str, kind: str, note: str) -> None:
    html = LISTED.replace("<select ", f'<{tag} type="{kind}" ' if kind else f"<{tag} ").replace(
        "</select>", f"</{tag}>"
    )
    candidate = Candidate("8", tag, Box(0, 0, 100, 20), is_positive=True)
    truth = Operation("TYPE", "May")
    step = replace(step, cleaned_html=html, candidates=(candidate,), operation=truth, recorded=None)
    scene = Scene(step, Page(html), PagePicture(step.screenshot))
    web = WEB_AGENTS["webvoyager"]
    windows = PageWindows(web, next(iter(web.observations.values())), scene)
    warning = WebAgentGrounding(web, open_pack("seeact", web.agent.name))._warning(
        windows, windows.at(0), windows.find().label
    )
    assert (note in warning, bool(warning)) == (True, bool(note))


@pytest.mark.slow
@pytest.mark.parametrize(("observation", "line"), [("som+captions", "where ["), ("tree", "] is ")])
def test_visualwebarena_remembers_one_action(observation: str, line: str, tmp_path: Path) -> None:
    model = Model(lambda request, ideal: ideal)
    evaluated(tmp_path, "visualwebarena", model, observation)
    last = [
        request.messages[-1].text.rpartition("Last action: ")[2] for request in model.requests if request.group == 0
    ]
    assert last[0] == "None"
    # what is not marked is told in the recording's words
    named = [one for one in last[1:] if " -> " not in one]
    assert len(named) >= 2
    assert all(line in one and one.startswith(("click [", "type [")) for one in named)
    # whether Enter follows is told by a line feed in the text
    assert not any("] [1]" in one or "] [0]" in one for one in named)
    # nothing but the worked examples before
    n_examples = len(open_pack("seeact", "visualwebarena", variant="som").examples)
    assert all(len(request.messages) == 2 * n_examples + 2 for request in model.requests)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "note", "line"),
    [
        (
            "I would {{click}} [1]",
            "format_error",
            "none, as your last reply could not be read: I would {{click}} [1]. Put",
        ),
        ("```jump [1]```", "format_error", "none, as your last reply could not be read: ```jump [1]```. Put"),
        ("```type [9999] [a] [1]```", "bad_label", "is not there: type [9999] [a] [1]. Look"),
        ("```scroll [down]```", "", "scroll [down]"),
    ],
)
def test_visualwebarena_is_corrected_in_the_line_of_the_last_action(
    reply: str, note: str, line: str, tmp_path: Path
) -> None:
    model = Model(lambda request, ideal: ideal if request.group else reply)
    run = evaluated(tmp_path, "visualwebarena", model, "tree", max_turns=9)
    first, second = of_first_step(model)[:2]
    assert line in second.messages[-1].text.rpartition("Last action: ")[2]
    assert len(second.messages) == len(first.messages)
    assert "Last action: None" in first.messages[-1].text
    assert (
        run.results["notes"].get(note, 0)
        == run.results["notes"].get("recovered", 0)
        == run.results["n_steps"] * bool(note)
    )


@pytest.mark.parametrize("variant", ["", "som", "html"])
def test_worked_examples_are_answered_with_what_they_show(variant: str) -> None:
    examples = open_pack("seeact", "visualwebarena", variant=variant).examples
    read = [AGENTS["visualwebarena"].read(one.assistant, strict=True)[0] for one in examples]
    assert {act.kind for act in read} == {"click", "type"}
    assert all(f"[{act.place}] " in one.user for act, one in zip(read, examples, strict=True))


def test_captions_come_from_a_file(step: Step, tmp_path: Path) -> None:
    link = '<a backend_node_id="99998"><img backend_node_id="99999" alt="fox"/></a></body>'
    boxed = replace(step.candidates[0], backend_node_id="99999", box=Box(10, 10, 50, 50), is_positive=False)
    step = replace(
        step,
        cleaned_html=step.cleaned_html.replace("</body>", link),
        candidates=(*step.candidates, boxed),
        recorded=None,
    )
    row = {**step.key._asdict(), "backend_node_id": "99999", "caption": "a fox at dusk"}
    (tmp_path / "captions.jsonl").write_text(json.dumps(row))
    captions = read_captions(tmp_path / "captions.jsonl")[step.key]
    for given, alt in ((captions, "fox, description: a fox at dusk"), ({}, "fox"), (None, "fox")):
        scene = Scene(step, Page(step.cleaned_html), PagePicture(step.screenshot), given)
        assert f"[99999] image '{alt}'" in observe_tree(scene, (0, 0, 1280, 800)).text
        assert f"[IMG] [{alt}]" in observe_som(scene, (0, 0, 1280, 800)).text


@pytest.mark.parametrize("text", ['{"annotation_id": "a"}', "{", '{"annotation_id": 3}'])
def test_a_file_of_captions_at_fault_is_named_with_its_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "captions.jsonl").write_text(text)
    with pytest.raises(InputError, match="line 1"):
        read_captions(tmp_path / "captions.jsonl")


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose trees are cut after few words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "MAX_TOKENS", 60)
        return evaluated(tmp_path_factory.mktemp("cut"), "visualwebarena", None, "tree")


@pytest.mark.slow
def test_what_is_cut_off_is_out_of_reach(cut: Run) -> None:
    assert cut.results["notes"]["target_cut_off"] == cut.results["waterfall"]["target_cut_off"]["steps"] > 0
    assert cut.results["ceiling"]["micro"] == cut.results["element_accuracy"]["micro"]


@pytest.mark.slow
def test_steps_cut_by_the_fall_back_are_counted(cut: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MAX_TOKENS", 60)
    named = evaluated(tmp_path, "visualwebarena", None, "tree", cut_by="characters")
    assert cut.results["notes"]["cut_by_words"] == cut.results["n_steps"]
    assert "cut_by_words" not in named.results["notes"]
    assert (named.manifest["identity"]["cut_by"], named.results["notes"]["target_cut_off"] > 0) == ("characters", True)
    assert "cut_by_words" not in named.manifest["identity"]["fall_backs"]


@pytest.mark.slow
def test_a_run_names_what_stood_in_and_what_was_asked(tmp_path: Path) -> None:
    run = evaluated(tmp_path, "webvoyager")
    arena = evaluated(tmp_path / "arena", "visualwebarena").manifest["identity"]
    assert (arena["captions"], arena["cut"], arena["cut_by"]) == ("alternative texts alone", 3840, "words")
    assert "cut_by_words" in arena["fall_backs"]
    told = run.manifest["identity"]
    assert (told["thoughts"], told["window"], told["max_turns"]) == ("none", "full width x 768", 5)
    assert "href_of_all_links" in told["fall_backs"]
    assert "no_cursor" not in run.results["notes"]


def test_a_run_counts_what_stood_in_for_columns_that_rows_lack(shared_step: Path, tmp_path: Path) -> None:
    run = evaluated(tmp_path, "webvoyager", dataset=shared_step)
    assert run.results["notes"]["no_cursor"] == run.results["n_steps"]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"agent": "webvoyager", "max_turns": 0}, "max_turns"),
        ({"agent": "webvoyager", "observation": "tree"}, "observation"),
        ({"agent": "visualwebarena", "observation": "pixels"}, "observation"),
        ({"agent": "visualwebarena", "observation": "html", "captions": Path("x")}, "captions"),
        ({"agent": "visualwebarena", "captions": Path("none.jsonl")}, "captions"),
        ({"agent": "webvoyager", "history_pictures": 2}, "history_pictures"),
    ],
)
def test_what_a_web_agent_does_not_have_is_refused(options: dict[str, Any], argument: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        so.evaluate(out=tmp_path / "run", **options)
    assert raised.value.argument == argument


def test_show_prints_what_is_sent_with_the_marked_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--agent", "webvoyager", "--split", "cross_website", "--step", "1", "--out", str(tmp_path)]
    assert cli.main(["show", *asked]) == 0
    told = capsys.readouterr().out
    assert "-- example, user\nTask: " in told
    assert "Observation:\n[0]: " in told
    assert (tmp_path / "group-0.jpg").stat().st_size > 10_000


LISTED = """<html backend_node_id="1"><body backend_node_id="2"><select backend_node_id="8"><option backend_node_id="9">
<text backend_node_id="10">May</text></option></select></body></html>"""


@pytest.mark.parametrize("name", ["webvoyager", "visualwebarena"])
@pytest.mark.parametrize(
    ("label", "answer", "expected"),
    [
        (Label("9", (30, 40)), Answer("CLICK"), ("8", "SELECT", "May")),
        (Label("8", (30, 10)), Answer("TYPE", "May"), ("8", "SELECT", "May")),
        (Label("8", (30, 10)), Answer("CLICK"), ("8", "CLICK", "")),
        (Label("9", (30, 40)), Answer("TYPE", "May"), ("8", "SELECT", "May")),
    ],
)
def test_entries_and_lists_select(
    step: Step, name: str, label: Label, answer: Answer, expected: tuple[str, str, str]
) -> None:
    boxed = (("8", "select", Box(0, 0, 100, 20)), ("9", "option", Box(0, 30, 100, 20)))
    candidates = tuple(Candidate(node, tag, box, is_positive=node == "8") for node, tag, box in boxed)
    step = replace(step, cleaned_html=LISTED, candidates=candidates)
    scene = Scene(step, Page(LISTED), PagePicture(step.screenshot))
    web = WEB_AGENTS[name]
    node, found = PageWindows(web, next(iter(web.observations.values())), scene).landed(label, answer)
    assert (node, found.op, found.value) == expected


WRAPPED = """<html backend_node_id="1"><body backend_node_id="2"><div backend_node_id="3"><a backend_node_id="4">
<text backend_node_id="5">Buy</text></a></div><a backend_node_id="6"><text backend_node_id="7">Ask</text></a></body></html>"""


@pytest.mark.parametrize(
    ("label", "is_hit"),
    [
        (Label("4", None), True),
        (Label("3", None), True),
        (Label("5", (50, 10)), True),
        (Label("2", None), True),
        (Label("6", None), False),
        (Label("6", (99, 19)), True),
        (Label("6", (101, 19)), False),
        (Label("99", None), False),
    ],
)
def test_a_lenient_hit_is_around_or_inside_of_a_positive_or_has_its_centre_in_its_box(
    step: Step, label: Label, is_hit: bool
) -> None:
    candidates = (
        Candidate("4", "a", Box(0, 0, 100, 20), is_positive=True),
        Candidate("6", "a", Box(0, 30, 100, 20), is_positive=False),
    )
    step = replace(step, cleaned_html=WRAPPED, candidates=candidates)
    scene = Scene(step, Page(WRAPPED), PagePicture(step.screenshot))
    assert PageWindows(WEB_AGENTS["webvoyager"], observe_som, scene).is_lenient_hit(label) is is_hit


@pytest.mark.parametrize("name", ["webvoyager", "visualwebarena"])
def test_both_readings_of_an_element_have_figures_that_count_the_steps(name: str, tmp_path: Path) -> None:
    """Every third reply names the first label that is shown."""
    replies = iter(range(10_000))

    def say(request: Request, ideal: str) -> str:
        first = re.search(r"^\s*(\[\d+\])", request.messages[-1].text, re.MULTILINE)
        return re.sub(r"\[\d+\]", first[1], ideal, count=1) if first and next(replies) % 3 == 0 else ideal

    run = evaluated(tmp_path, name, Model(say), limit=2)
    found, n_steps = run.results["element_by_rule"], run.results["n_steps"]
    notes = [dict(prediction.notes) for prediction in run.predictions()]
    strict, lenient = (sum(one.get(note, 0) for one in notes) for note in ("strict_id_hit", "lenient_hit"))
    assert found["strict"]["micro"] == pytest.approx(strict / n_steps)
    assert found["lenient"]["micro"] == pytest.approx(lenient / n_steps)
    right = run.to_pandas("steps")["element"].tolist()
    assert all(one.get("lenient_hit", 0) >= is_right for one, is_right in zip(notes, right, strict=True))
    low, high = found["lenient"]["ci95"]
    assert low < found["lenient"]["macro"] < high
    report = (run.path / "report.md").read_text()
    assert "Element Accuracy, strict" in report
    assert "Element Accuracy, lenient" in report


def test_the_browsers_own_tree_address_and_boxes_are_used_where_a_row_has_them(step: Step) -> None:
    nodes = [
        {"depth": 0, "role": "RootWebArea", "id": "1", "name": "Home"},
        {"depth": 1, "role": "switch", "id": "8", "name": "Month"},
    ]
    texts = {
        "accessibility_tree": json.dumps({"nodes": nodes}),
        "layout": json.dumps({"elements": [{"id": "8", "rects": [[[0, 0, 100, 20], "8"]]}]}),
        "page_state": json.dumps({"address": "/months", "window": [1280, 720], "scroll": [0, 0]}),
    }
    step = replace(step, cleaned_html=LISTED, recorded=RecordedColumns(texts))
    scene = Scene(step, Page(LISTED), PagePicture(step.screenshot))
    shown = observe_tree(scene, (0, 0, 1280, 800))
    assert shown.text.splitlines() == ["Tab 0 (current): Home", "", "[1] RootWebArea 'Home'", "\t[8] switch 'Month'"]
    assert shown.labels["8"].place == (50, 10)
    assert scene.address == "/months"
    assert scene.fall_backs & {"no_title", "no_address", "no_cursor"} == set()
