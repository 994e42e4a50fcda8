"""`which-agent`, `score` without an agent, and what is said of a run whose replies are read in the wrong language."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.agents import find_agent
from seeact_offline.agents.reply_pictures import shown_of
from seeact_offline.dataset import load_steps
from seeact_offline.records import Step
from seeact_offline.runs.prepare import picture_size
from tests.chat_server import Answer, ChatServer
from tests.seeact_offline.conftest import Cli, Outcome, Sample, read_json


@pytest.fixture
def data(sample: Sample) -> list[str]:
    return ["--dataset", str(sample.dataset), "--split", "cross_task"]


@pytest.fixture
def replies(sample: Sample, tmp_path: Path) -> Callable[..., Path]:
    """`replies("qwen3-vl")`: the right answers in an agent's language; `said` in place of them."""

    def write(agent: str, said: str | None = None) -> Path:
        path = tmp_path / "replies.jsonl"
        lines = [
            {**step.key._asdict(), "reply": right(agent, step) if said is None else said}
            for step in load_steps(sample.dataset, "cross_task")
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


def right(agent: str, step: Step) -> str:
    truth, (known, _) = step.truth, find_agent(agent)
    shown = shown_of({}, known, picture_size(step))[0]
    return known.write(truth.operation.op, truth.operation.value, truth.boxes[0].center, shown)


def scored(cli: Cli, path: Path, agent: str, data: list[str], out: Path) -> Outcome:
    return cli("score", path, "--format", "replies", "--agent", agent, *data, "--out", out)


def command_in(text: str) -> list[str]:
    """The words after `seeact-offline` of the command that a sentence ends with."""
    return shlex.split(text[text.rindex("seeact-offline score") :].splitlines()[0])[1:]


def accuracy(out: Path) -> float:
    return float(read_json(out / "results.json")["element_accuracy"]["micro"])


def test_the_best_agent_is_named(cli: Cli, replies: Callable[..., Path], data: list[str]) -> None:
    outcome = cli("which-agent", replies("uitars"), *data)
    assert outcome.status == 0
    first = outcome.out.splitlines()[2]
    assert "uitars" in first.split("|")[1]
    assert "Best fit: uitars" in outcome.out


def test_without_steps_only_reading_is_compared(cli: Cli, replies: Callable[..., Path]) -> None:
    outcome = cli("which-agent", replies("showui"))
    assert outcome.status == 0
    assert "--dataset and --split" in outcome.out
    assert {line.split("|")[6].strip() for line in outcome.out.splitlines()[2:] if line.startswith("|")} == {"-"}


def test_words_of_no_language_end_with_one(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "replies.txt"
    path.write_text("Let me think.\n")
    outcome = cli("which-agent", path)
    assert (outcome.status, "No agent reads any of the 1 replies" in outcome.out) == (1, True)


@pytest.mark.parametrize("named", [(), ("--format", "replies")])
def test_score_without_an_agent_names_the_command_with_one(
    named: tuple[str, ...], cli: Cli, replies: Callable[..., Path], data: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    outcome = cli("score", replies("qwen3-vl"), *named, *data, "--out", out)
    assert outcome.status == 2
    assert outcome.out.startswith("| agent")
    assert not out.exists()
    (line,) = outcome.err.splitlines()
    again = cli(*command_in(line))
    assert again.status == 0
    assert accuracy(out) > 0.9


@pytest.mark.parametrize("agent", ["showui", "qwen2.5-vl"])
def test_a_file_without_replies_leaves_no_run(
    agent: str, cli: Cli, replies: Callable[..., Path], data: list[str], tmp_path: Path
) -> None:
    path, out = replies(agent, said=""), tmp_path / "run"
    assert scored(cli, path, agent, data, out).error == f"error: {path} holds no replies"
    assert not out.exists()


@pytest.mark.parametrize(
    ("written", "agent", "frame"),
    [
        ("qwen3-vl", "qwen2.5-vl", "1000:qwen2.5-vl: 12 of 12 places in the box of the right element, not 0, as they count 0 to 1000 and not pixels of "),
        ("px/smart(28,1,60000):qwen2.5-vl", "qwen2.5-vl", "px/smart(28,1,"),
        ("1000yx:qwen3-vl", "qwen3-vl", "1000yx:qwen3-vl: 12 of 12 places in the box of the right element, not 1, as they count 0 to 1000, y before x and not 0 to 1000. "),
        ("gemini-point", "ui-ins", "1000yx:ui-ins: 12 of 12 places"),
    ],
)  # fmt: skip
def test_replies_in_another_frame_are_told_with_the_command_that_reads_them(
    written: str, agent: str, frame: str, cli: Cli, replies: Callable[..., Path], data: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    outcome = scored(cli, replies(written), agent, data, out)
    # they were read
    assert (outcome.status, accuracy(out) < 0.2) == (0, True)
    report = (out / "report.md").read_text()
    assert f"Read as {frame}" in outcome.err
    assert f"Read as {frame}" in report
    words = [word if word != "DIR" else str(tmp_path / "again") for word in command_in(outcome.err)]
    assert cli(*words).status == 0
    assert accuracy(tmp_path / "again") > 0.9
    assert "Read as" not in (tmp_path / "again" / "report.md").read_text()


@pytest.mark.parametrize("file", ["run", "again"])
def test_a_hint_is_the_same_when_the_run_is_scored_again(
    file: str, cli: Cli, replies: Callable[..., Path], data: list[str], tmp_path: Path
) -> None:
    scored(cli, replies("qwen3-vl"), "qwen2.5-vl", data, tmp_path / "run")
    cli("score", tmp_path / "run", "--out", tmp_path / "again")
    assert "Read as 1000:qwen2.5-vl" in (tmp_path / file / "report.md").read_text()


def test_an_import_that_is_mostly_unreadable_ends_with_one(
    cli: Cli, replies: Callable[..., Path], data: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    outcome = scored(cli, replies("uitars", said="Hm \x1b[31m| `x`"), "uitars", data, out)
    assert outcome.status == 1
    assert "12 of 12 replies cannot be read (no_act 12)." in outcome.err
    assert "\x1b" not in outcome.err
    assert "One reply: Hm \\[31m\\| \\`x\\`" in (out / "report.md").read_text()


@pytest.mark.slow
def test_a_run_that_is_mostly_unreadable_ends_with_one(cli: Cli, data: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    with ChatServer(lambda body: "I am not sure.") as server:
        outcome = cli(
            *("eval", *data, "--agent", "qwen3-vl", "--model", "openai/m", "--base-url", server.base_url, "--out", out)
        )
    assert outcome.status == 1
    assert "12 of 12 replies cannot be read (no_act 12)." in outcome.err
    assert "No other agent here reads more of them" in outcome.err
    assert "One reply: I am not sure." in (out / "report.md").read_text()
    assert cli("score", out, "--check", *data[:2]).status == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--agent", "qwen3-vl"), ("--ranker", "bundled+bm25"), ("--ranker", "bundled+bm25", "--turns", "1")]
)
@pytest.mark.parametrize(
    ("answer", "failure", "remedy"),
    [
        (Answer("<think>Let me see", finish_reason="length"), "truncated", "--max-tokens: it is too small, or thinking used it up."),
        (Answer(" "), "empty_reply", "thinking used --max-tokens up."),
        (Answer(None, refusal="I cannot help."), "refused", "a content filter declined"),
    ],
)  # fmt: skip
def test_a_run_in_which_the_model_mostly_declined_ends_with_one(
    answer: Answer, failure: str, remedy: str, words: tuple[str, ...], cli: Cli, data: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with ChatServer(lambda body: answer) as server:
        outcome = cli("eval", *data, *words, "--model", "openai/m", "--base-url", server.base_url, "--out", out)
    assert outcome.status == 1
    assert f"12 of 12 replies cannot be read ({failure} 12)." in outcome.err
    assert remedy in outcome.err
    assert "No other agent" not in outcome.err
    assert remedy in (out / "report.md").read_text()
    assert cli("score", out, "--check", *data[:2]).status == 0


def test_no_other_agent_is_looked_for_where_most_replies_were_declined(
    cli: Cli, data: list[str], tmp_path: Path
) -> None:
    answers = cycle([*[Answer("I", finish_reason="length")] * 3, Answer("I am not sure.")])
    with ChatServer(lambda body: next(answers)) as server:
        words = ("--agent", "qwen3-vl", "--model", "openai/m", "--base-url", server.base_url, "--out", tmp_path / "run")
        outcome = cli("eval", *data, *words, "--concurrency", "1")
    assert outcome.status == 1
    assert "12 of 12 replies cannot be read (no_act 3, truncated 9)." in outcome.err
    assert "No other agent" not in outcome.err


def test_a_run_in_another_language_is_told_with_the_command_that_reads_it(
    cli: Cli, data: list[str], sample: Sample, tmp_path: Path
) -> None:
    said = {step.task: right("osatlas", step) for step in load_steps(sample.dataset, "cross_task")}
    out, again = tmp_path / "run", tmp_path / "again"

    def reply(body: dict[str, Any]) -> str:
        return next(words for task, words in said.items() if task in json.dumps(body))

    with ChatServer(reply) as server:
        words = ("eval", *data, "--agent", "openai", "--model", "openai/m", "--base-url", server.base_url, "--out", out)
        outcome = cli(*words)
    assert "Read as" in outcome.err
    assert cli(*(word if word != "DIR" else again for word in command_in(outcome.err))).status == 0
    assert accuracy(again) > accuracy(out)


@pytest.mark.slow
def test_a_grounder_in_another_frame_is_told_with_the_option_that_reads_it(
    cli: Cli, data: list[str], sample: Sample, tmp_path: Path
) -> None:
    steps = list(load_steps(sample.dataset, "cross_task"))

    def reply(body: dict[str, Any]) -> str:
        question = json.dumps(body)
        named = [n for n in range(len(steps)) if f"field {n}." in question]
        n = next(n for n, step in enumerate(steps) if step.task in question) if not named else named[0]
        return right("gemini-point", steps[n]) if named else f"ACTION: CLICK\nELEMENT: field {n}.\nVALUE: None"

    with ChatServer(reply) as server:
        words = ("--agent", "seeact-planner", "--grounder-agent", "1000:point_2d", "--model", "openai/m")
        outcome = cli("eval", *data, *words, "--base-url", server.base_url, "--out", tmp_path / "run")
    assert "To score them so: ask with --grounder-agent 1000yx:point_2d" in outcome.err


def test_a_good_run_has_no_hint(cli: Cli, replies: Callable[..., Path], data: list[str], tmp_path: Path) -> None:
    outcome = scored(cli, replies("uitars"), "uitars", data, tmp_path / "run")
    assert (outcome.status, "One reply" in outcome.err) == (0, False)
    assert "One reply" not in (tmp_path / "run" / "report.md").read_text()


def test_replies_are_never_told_of_an_option_that_they_refuse(
    cli: Cli, replies: Callable[..., Path], data: list[str], tmp_path: Path
) -> None:
    path = replies("qwen2.5-vl", said='{"action": "left_click", "coordinate": [0.5, 0.25]}')
    outcome = scored(cli, path, "qwen2.5-vl", data, tmp_path / "run")
    assert "--points" not in outcome.err + (tmp_path / "run" / "report.md").read_text()
