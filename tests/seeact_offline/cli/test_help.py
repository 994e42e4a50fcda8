"""Help in layers, and the name that was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from seeact_offline.cli.command import VERBS
from tests.annexes import needs
from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, make_sample


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def options_in(text: str) -> set[str]:
    lines = (line.strip() for line in text.splitlines())
    return {line.split()[0].rstrip(",") for line in lines if line.startswith("-") and line[2:3] != "h"}


def test_the_short_help_of_eval_fits_a_screen_and_names_what_most_people_need(cli: Cli) -> None:
    outcome = cli("eval", "--help")
    assert outcome.status == 0
    assert len(outcome.out.splitlines()) <= 60
    assert options_in(outcome.out) >= {
        "--dataset",
        "--split",
        "--model",
        "--grounding",
        "--agent",
        "--out",
        "--max-cost",
    }
    assert 12 <= len(options_in(outcome.out)) <= 18


def test_help_all_names_every_option(cli: Cli) -> None:
    every = options_in(cli("eval", "--help", "all").out)
    assert len(every) > 70
    assert every > options_in(cli("eval", "--help").out)


@pytest.mark.parametrize(
    ("words", "shown", "hidden"),
    [
        (("--grounding", "annotation"), {"--marks", "--batching", "--merge"}, {"--elimination"}),
        (("--grounding=mindact",), {"--elimination", "--layout"}, {"--marks"}),
        (("--grounding", "mindact,annotation"), {"--elimination", "--marks"}, {"--fuzzy-threshold"}),
        pytest.param(
            ("--agent", "webvoyager"), {"--max-turns"}, {"--marks", "--group-size"}, marks=needs("web_agents")
        ),
        ((), set(), {"--marks", "--group-size", "--rpm"}),
    ],
)
def test_a_strategys_own_options_are_shown_with_it(
    cli: Cli, words: tuple[str, ...], shown: set[str], hidden: set[str]
) -> None:
    for asked in [("eval", *words, "--help"), ("eval", "--help", *words)]:
        found = options_in(cli(*asked).out)
        assert found >= shown
        assert not found & hidden


def test_the_bare_command_prints_its_help(cli: Cli) -> None:
    outcome = cli()
    assert outcome.status == 0
    assert "compare finished runs" in outcome.out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["evl"], "eval"),
        (["evaluate"], "eval"),
        (["eval", "--grouding", "choice"], "--grounding"),
        (["eval", "--grounding", "anotation"], "annotation"),
        pytest.param(["eval", "--agent", "uitar"], "uitars", marks=needs("agents")),
        (["eval", "--model", "opnai/gpt-4o"], "openai/gpt-4o"),
        (["eval", "--model", "builtin/lexcal"], "builtin/lexical"),
        (["eval", "--split", "cross_websit"], "cross_website"),
        (["eval", "--dataset", "sampel"], "sample"),
        (["eval", "--ranker", "bm52"], "bm25"),
        (["eval", "--merge", "frist"], "first"),
        (["eval", "--prompts", "seact"], "seeact"),
        (["cache", "prnue"], "prune"),
    ],
)
def test_the_nearest_name_is_suggested(cli: Cli, words: list[str], meant: str) -> None:
    assert cli(*words).error.endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize(
    "words", [["eval", "--colour", "red"], ["eval", "--grounding", "taste"], ["eval", "--top-k", "0"]]
)
def test_nothing_is_suggested_where_nothing_is_near(cli: Cli, words: list[str]) -> None:
    assert "did you mean" not in cli(*words).error


def test_a_verb_comes_first(cli: Cli) -> None:
    assert "VERB" in cli("--split", "cross_task").error


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (Answer("", body=b'{"data": [{"id": "qwen-7b"}, {"id": "qwen-72b"}]}'), "; it has qwen-7b, qwen-72b; did you mean qwen-7b?"),
        (Answer("", body=b'{"data": 3}'), "no such model"),
        (Answer("no", status=500), "no such model"),
    ],
)  # fmt: skip
def test_a_model_that_the_server_does_not_have_is_answered_with_those_it_has(
    cli: Cli, tmp_path: Path, listed: Answer, words: str
) -> None:
    missing = Answer("no such model", 404, code="model_not_found")
    data = make_sample(tmp_path / "data", list(synthetic_rows(1, 1, 5, seed=7)))
    with ChatServer(lambda _: missing, lambda method, path, content: listed) as server:
        asked = ("--model", "openai/qwen-7", "--base-url", server.base_url, "--out", tmp_path / "run")
        outcome = cli("eval", *data.words, *asked)
    assert outcome.status == 2
    assert outcome.err.splitlines()[-1].endswith(words)


@pytest.mark.parametrize("verb", VERBS)
def test_every_help_ends_with_an_example_which_the_verbs_script_shows_too(cli: Cli, verb: str) -> None:
    example = VERBS[verb][1]
    assert cli(verb, "--help").out.split()[-len(example.split()) :] == example.split()
    name = f"{verb.replace('-', '_')}.py"
    script = (Path(__file__).parents[3] / "scripts" / name).read_text()
    assert f"\npython scripts/{name} {example}\n" in script


def test_quiet_leaves_the_figures_and_the_errors(cli: Cli, tmp_path: Path) -> None:
    run = cli("eval", "--limit", 1, "--quiet", "--out", tmp_path / "run")
    assert ("Step SR" in run.out, run.err) == (True, "")
    wrong = cli("eval", "--quiet", "--split", "nowhere", "--out", tmp_path / "other")
    assert (wrong.status, wrong.err.startswith("error: ")) == (2, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_gets_the_completions_of_every_verb(cli: Cli, shell: str) -> None:
    script = cli("--completion", shell).out
    assert all(verb in script for verb in VERBS)
    assert "also-right" in script
