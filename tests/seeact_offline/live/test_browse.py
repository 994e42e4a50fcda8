"""Episodes from the first question to the report: one path with recorded steps, the same bytes twice, faults, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import PreparedStep
from seeact_offline.grounding.conversation import messages
from seeact_offline.live.running import LiveRun, browse
from seeact_offline.recorder import browser
from seeact_offline.recorder.sample_building import site_tasks
from seeact_offline.records import Completion, InputError, Message, Request, Usage
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.strategy_opening import live_scores, open_strategy
from tests.chat_server import Answer, ChatServer
from tests.scripted import Scripted
from tests.seeact_offline.conftest import Cli
from tests.seeact_offline.live.sites import CLICK, PAGE, REAL_BROWSER, write_site

pytestmark = REAL_BROWSER
REPO = Path(__file__).resolve().parents[3]
SAYS = '<tool_call>\n{"name": "computer_use", "arguments": %s}\n</tool_call>'


def call(**arguments: Any) -> str:
    return SAYS % json.dumps(arguments)


BUY = call(action="left_click", coordinate=[100, 55])
ASK = call(action="left_click", coordinate=[100, 255])
TAB = call(action="left_click", coordinate=[40, 210])
END = call(action="terminate", status="success")


def run(script: Path, out: Path, model: Any, agent: str = "qwen2.5-vl", **more: Any) -> LiveRun:
    options = {name: more.pop(name) for name in ("max_steps", "unaided", "keep_rows", "deadline_s") if name in more}
    return browse(
        str(script), config=EvalConfig.of(agent=agent, model=model, out=out, concurrency=1, **more), **options
    )


def trajectory(found: LiveRun) -> list[str]:
    lines = (found.path / "trajectories.jsonl").read_text().splitlines()
    return [step.get("action", "") for step in json.loads(lines[0])["steps"]]


class Eager(Scripted):
    """Remembers the messages of each of its requests."""

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return self.next_answer() if self.answers else Completion(END, Usage(calls=1))


@pytest.mark.parametrize("agent", ["qwen2.5-vl", "openai", "webvoyager", "visualwebarena", "openwebvoyager"])
def test_the_offline_question_on_a_kept_row_is_the_live_one(agent: str, tmp_path: Path) -> None:
    model = Eager(END)
    found = run(write_site(tmp_path / "site"), tmp_path / "run", model, agent, keep_rows=True, max_steps=1)
    assert len(found.episodes) == 1
    (step,) = load_steps(found.path / "rows.jsonl", "train")
    assert not step.faults
    grounding = open_strategy(EvalConfig(agent=agent)).grounding
    (question,) = grounding.questions(prepare(step, None, 50))
    assert _texts(messages(question)) == _texts(model.requests[0].messages)


def test_of_a_later_step_too_whose_past_was_lived(tmp_path: Path) -> None:
    model = Eager(BUY, ASK, END)
    found = run(write_site(tmp_path / "site"), tmp_path / "run", model, keep_rows=True)
    steps = list(load_steps(found.path / "rows.jsonl", "train"))
    assert [len(step.history) for step in steps] == [0, 1, 2]
    grounding = open_strategy(EvalConfig(agent="qwen2.5-vl")).grounding
    asked = [grounding.questions(prepare(step, None, 50))[0] for step in steps]
    assert [_texts(messages(one)) for one in asked] == [_texts(request.messages) for request in model.requests]


def test_of_seeacts_choice_too_and_on_the_whole_page(tmp_path: Path) -> None:
    said = "I will click Buy.", "ELEMENT: A\nACTION: CLICK\nVALUE: None"
    model = Eager(*said)
    config = EvalConfig(model=model, ranker="bm25", out=tmp_path / "run", concurrency=1)
    script = write_site(tmp_path / "site")
    found = browse(str(script), config=config, keep_rows=True, max_steps=1)
    (step,) = load_steps(found.path / "rows.jsonl", "train")
    prepared: PreparedStep = prepare(step, live_scores(config), 50)
    assert prepared.picture.size[1] == 3000
    question = open_strategy(EvalConfig(), is_live=True).grounding.questions(prepared)[0]
    for n_said, request in enumerate(model.requests):
        assert _texts(messages(question, said[:n_said])) == _texts(request.messages)


def test_seeacts_choice_presses_enter_and_ends_without_an_element(tmp_path: Path) -> None:
    final = "ELEMENT: none of them\nACTION: {}\nVALUE: None"
    enter, end = final.format("PRESS ENTER"), final.format("**Terminate**")
    typed = "ELEMENT: E\nACTION: TYPE\nVALUE: Ann"
    model = Scripted("Name.", typed, "Send it.", enter, "Done.", end)
    entered = [{"selector": "#said", "text": "entered Ann"}]
    script = write_site(tmp_path / "site", check=entered)
    found = browse(str(script), config=EvalConfig(model=model, ranker="bm25", out=tmp_path / "run", concurrency=1))
    assert trajectory(found) == ["[textbox] Name -> TYPE: Ann", "PRESS ENTER", "TERMINATE", ""]
    assert (found.episodes[0].done, found.episodes[0].end) == (True, "stopped")
    assert "TERMINATE" in model.requests[1].messages[-1].text


def test_success_is_the_state_at_the_stop_and_reached_is_any_before(tmp_path: Path) -> None:
    leaves = call(action="left_click", coordinate=[30, 290])
    found = run(write_site(tmp_path / "site"), tmp_path / "run", Scripted(BUY, leaves, END))
    (one,) = found.episodes
    assert (one.end, one.done, one.reached, one.n_steps) == ("stopped", False, True, 3)


def test_a_task_whose_check_holds_already_is_refused_by_name(tmp_path: Path) -> None:
    script = write_site(tmp_path / "site", check=[{"selector": "#said", "text": "nothing"}])
    with pytest.raises(InputError, match="the check of task 'Buy it' holds before the first act"):
        run(script, tmp_path / "run", Scripted(END))


def test_a_bundled_task_is_done_by_its_recorded_acts_and_not_by_the_first_of_them(tmp_path: Path) -> None:
    (task,) = (task for task in site_tasks("rolequay") if task.task.startswith("Take back the application"))
    config = EvalConfig(model="builtin/oracle", agent="webvoyager", split="all", tasks=[task.annotation_id])
    whole = browse("sites", config=config, out=tmp_path / "whole", concurrency=1)
    short = browse("sites", config=config, out=tmp_path / "short", concurrency=1, max_steps=1)
    assert [(found.episodes[0].done, found.episodes[0].reached) for found in (whole, short)] == [
        (True, True),
        (False, False),
    ]


def test_the_past_that_is_told_is_the_one_that_was_lived(tmp_path: Path) -> None:
    model = Scripted(BUY, "Let me think.", END)
    run(write_site(tmp_path / "site"), tmp_path / "run", model)
    told = [request.messages[-1].text.partition("Previous actions:\n")[2].strip() for request in model.requests]
    assert told == ["None", "[button]  Buy -> CLICK", "[button]  Buy -> CLICK"]


def test_a_dialogue_holds_its_own_turns_and_corrections(tmp_path: Path) -> None:
    said = [f"Thought: So.\nAction: {action}" for action in ("Click [999]", "Click [0]", "ANSWER; [yes]")]
    model = Scripted(*said)
    found = run(write_site(tmp_path / "site"), tmp_path / "run", model, "webvoyager")
    roles = [message.role for message in model.requests[2].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "cannot be carried out" in model.requests[1].messages[-1].text
    assert [one.picture is not None for one in model.requests[1].messages] == [False, True, False, False]
    assert (found.episodes[0].end, found.episodes[0].answer, found.episodes[0].n_unreadable) == (
        "answered",
        "yes",
        1,
    )


@pytest.mark.parametrize("agent", ["qwen2.5-vl", "webvoyager", "visualwebarena"])
def test_the_oracle_finishes_what_was_recorded(agent: str, tmp_path: Path) -> None:
    steps = [
        {"op": "SELECT", "selector": "#size", "value": "Large"},
        {"op": "TYPE", "selector": "#name", "value": "Ann"},
        {"op": "CLICK", "selector": "#low"},
        CLICK,
    ]
    found = run(write_site(tmp_path / "site", steps=steps), tmp_path / "run", "builtin/oracle", agent)
    (one,) = found.episodes
    assert (one.done, one.end) == (True, "answered" if agent != "qwen2.5-vl" else "stopped"), one
    # WebVoyager's typing presses Enter, which nobody recorded
    assert one.n_helped == (agent == "webvoyager")


def test_acts_in_the_oracles_place_break_no_rule(tmp_path: Path) -> None:
    page = PAGE.replace(
        "<p id=said", "<iframe srcdoc='<button>Inside</button>' style='margin-top: 400px'></iframe><p id=said"
    )
    inside = {"op": "CLICK", "selector": "button", "frame": "iframe"}
    script = write_site(tmp_path / "site", page, steps=[inside] * 5 + [CLICK])
    (one,) = run(script, tmp_path / "run", "builtin/oracle", "visualwebarena").episodes
    assert (one.done, one.end, one.n_helped) == (True, "answered", 5)


def test_a_click_that_something_covers_is_not_said_to_be_the_recorded_one(tmp_path: Path) -> None:
    cover = "<div style='position: fixed; left: 0; top: 0; width: 260px; height: 75px; z-index: 9'>Wait</div>"
    page = PAGE.replace("<p id=said", f"{cover}<p id=said").replace(
        "</script></body>", "setTimeout(() => document.querySelector('div').remove(), 9000);</script></body>"
    )
    found = run(write_site(tmp_path / "site", page), tmp_path / "run", "builtin/oracle")
    assert (found.episodes[0].done, found.episodes[0].n_helped) == (True, 1)


def test_without_help_the_oracle_ends_where_its_language_has_no_words(tmp_path: Path) -> None:
    page = PAGE.replace(
        "<p id=said", "<iframe srcdoc='<button>Inside</button>' style='margin-top: 400px'></iframe><p id=said"
    )
    steps = [{"op": "CLICK", "selector": "button", "frame": "iframe"}, CLICK]
    script = write_site(tmp_path / "site", page, steps=steps)
    helped = run(script, tmp_path / "helped", "builtin/oracle")
    assert (helped.episodes[0].done, helped.episodes[0].n_helped) == (True, 1)
    assert helped.results.unaided is not None
    assert helped.results.unaided.macro == 0.0
    unaided = run(script, tmp_path / "unaided", "builtin/oracle", unaided=True)
    assert (unaided.episodes[0].done, unaided.episodes[0].end) == (False, "stopped")


@pytest.mark.parametrize("model", ["builtin/random", "builtin/lexical"])
def test_the_same_seed_twice_gives_the_same_bytes(model: str, tmp_path: Path) -> None:
    script = write_site(tmp_path / "site")
    runs = [run(script, tmp_path / name, model, "webvoyager", max_steps=4) for name in ("a", "b")]
    lines = [(one.path / "trajectories.jsonl").read_bytes() for one in runs]
    assert lines[0] == lines[1]
    assert lines[0]


def test_dialogs_and_tabs_are_told_in_the_trajectory(tmp_path: Path) -> None:
    found = run(write_site(tmp_path / "site"), tmp_path / "run", Scripted(ASK, TAB, END))
    actions = trajectory(found)
    assert actions[0].endswith("; confirm dismissed: Sure?")
    assert actions[1].endswith("; tab 2 opened")


def test_a_page_that_never_settles_is_acted_on_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "REST_S", 1.0)
    busy = PAGE.replace(
        "</script></body>",
        "setInterval(() => fetch('other.html'), 50); window.requestAnimationFrame = () => 0;</script></body>",
    )
    found = run(write_site(tmp_path / "site", busy), tmp_path / "run", Scripted(BUY, END))
    assert (found.episodes[0].done, found.episodes[0].end) == (True, "stopped")


def test_a_page_that_hangs_ends_without_a_verdict_and_is_not_tried_again(tmp_path: Path) -> None:
    hangs = PAGE.replace(
        "</script></body>", "document.getElementById('buy').onclick = () => { while (true); };</script></body>"
    )
    model = Eager(BUY)
    found = run(write_site(tmp_path / "site", hangs), tmp_path / "run", model, deadline_s=5.0)
    (one,) = found.episodes
    assert (one.end, one.done, one.attempts) == ("error", None, 1)
    assert "not done within 5 s" in one.detail
    assert (found.n_failed, found.results.n_verdicts, found.results.success.macro) == (1, 0, None)


def test_a_server_with_faults_is_asked_again_and_one_that_is_gone_is_no_zero(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    script, replies = write_site(tmp_path / "site"), iter([BUY, END])

    def sometimes(body: dict[str, Any]) -> Answer:
        return Answer("busy", status=500) if len(server.requests) % 3 == 1 else Answer(next(replies))

    words = ["browse", script, "--agent", "qwen2.5-vl", "--model", "openai/m"]
    with ChatServer(sometimes) as server:
        done = cli(*words, "--base-url", server.base_url, "--out", tmp_path / "run")
    assert done.status == 0, done.error
    assert json.loads((tmp_path / "run" / "results.json").read_text())["success"]["macro"] == 1.0
    with ChatServer(lambda body: Answer("no", status=500)) as server:
        gone = cli(*words, "--base-url", server.base_url, "--max-retries", "0", "--out", tmp_path / "gone")
    assert gone.status != 0
    lines = (
        (tmp_path / "gone" / "episodes.jsonl").read_text().splitlines()
        if (tmp_path / "gone" / "episodes.jsonl").exists()
        else []
    )
    assert all(json.loads(line)["done"] is None for line in lines)


def test_a_run_killed_in_mid_episode_pays_for_nothing_twice(tmp_path: Path) -> None:
    script = write_site(tmp_path / "site")
    holds, replies, killed = [True], [BUY, ASK, END], threading.Event()

    def reply(body: dict[str, Any]) -> str:
        n_turns = len(server.requests)
        if n_turns == 3 and holds[0]:
            killed.wait(30)
        return replies[min(n_turns - (1 if holds[0] else 2), 2)]

    with ChatServer(reply) as server:
        words = [
            sys.executable, "-m", "seeact_offline", "browse", str(script), "--agent", "qwen2.5-vl", "--model", "openai/m",
            "--base-url", server.base_url, "--out", str(tmp_path / "run"),
        ]  # fmt: skip
        env = {**os.environ, "OPENAI_API_KEY": "none", "PYTHONPATH": str(REPO)}
        begun = subprocess.Popen(
            words, env=env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while len(server.requests) < 3:
            assert begun.poll() is None
            time.sleep(0.1)
        os.killpg(begun.pid, signal.SIGKILL)
        begun.wait()
        killed.set()
        holds[0] = False
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    # the third was not answered
    assert len(server.requests) == 4
    (line,) = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    assert (json.loads(line)["end"], json.loads(line)["n_steps"]) == ("stopped", 3)


def test_an_interrupted_run_says_so_and_nothing_else(tmp_path: Path) -> None:
    interrupted = threading.Event()

    def reply(body: dict[str, Any]) -> str:
        interrupted.wait(20)
        return END

    with ChatServer(reply) as server:
        words = [
            sys.executable, "-m", "seeact_offline", "browse", str(write_site(tmp_path / "site")), "--agent", "qwen2.5-vl",
            "--model", "openai/m", "--base-url", server.base_url, "--out", str(tmp_path / "run"),
        ]  # fmt: skip
        env = {**os.environ, "OPENAI_API_KEY": "none", "PYTHONPATH": str(REPO)}
        # a shell that starts the tests in the background has told them to ignore it
        listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        begun = subprocess.Popen(
            words, env=env, start_new_session=True, stderr=subprocess.PIPE, text=True, preexec_fn=listening
        )
        while not server.requests:
            assert begun.poll() is None
            time.sleep(0.1)
        # a terminal interrupts the driver of the browser too
        os.killpg(begun.pid, signal.SIGINT)
        # the command waits for the reply that is under way
        interrupted.set()
        error = begun.communicate(timeout=60)[1]
    assert begun.returncode == 130
    assert error.strip().endswith("interrupted: the same command resumes")
    assert "asyncio" not in error


def test_a_finished_run_asks_nothing_again_and_its_episodes_are_judged(cli: Cli, tmp_path: Path) -> None:
    script = write_site(tmp_path / "site")
    words = ["browse", script, "--agent", "webvoyager", "--model", "builtin/oracle", "--out", tmp_path / "run"]
    first = cli(*words)
    assert first.status == 0, first.error
    before = (tmp_path / "run" / "episodes.jsonl").read_bytes()
    assert cli(*words).status == 0
    assert (tmp_path / "run" / "episodes.jsonl").read_bytes() == before
    assert "% of tasks" in (tmp_path / "run" / "report.md").read_text()
    judged = cli("judge", tmp_path / "run", "--model", "builtin/lexical", "--out", tmp_path / "judged")
    assert judged.status == 0, judged.error
    assert '"judge":"state"' in (tmp_path / "judged" / "labels.jsonl").read_text().replace(" ", "")


def _texts(told: tuple[Message, ...]) -> list[tuple[str, str, str]]:
    return [(one.role, one.text, "" if one.picture is None else one.picture.key) for one in told]
