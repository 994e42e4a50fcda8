"""`reward`: a task file, answers and stored pages become a table of rule sets and a file of scores."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.trajectories import RULES
from tests.seeact_offline.conftest import Cli

TASKS: list[dict[str, Any]] = [
    {"eval_types": ["string_match"], "reference_answers": {"must_include": ["blue |OR| red"]}},
    {"eval_types": ["url_match"], "reference_url": "__SHOPPING__/cart"},
    {"eval_types": ["program_html"], "program_html": [
        {"url": "last", "locator": "document.title", "required_contents": {"exact_match": "Cart"}}]},
    {"eval_types": ["program_html"], "program_html": [
        {"url": "last", "locator": "func:shopping_get_x()", "required_contents": {"exact_match": "Cart"}}]},
    {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["forty"]}},
]  # fmt: skip

FAILING = "an answer on which a rule fails"


def clean_or_fail(answer: str) -> str:
    if answer == FAILING:
        raise TimeoutError("too long" * 1000)
    return answer.lower()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path | str]:
    monkeypatch.setenv("SHOPPING", "http://shop.test:7770/")
    tasks = [{"task_id": i, "intent": "How many?", "eval": one} for i, one in enumerate(TASKS)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    lines = [{"task_id": i, "answer": "red", "extra": 1} for i in range(5)]
    # a number is an answer as well
    lines[4]["answer"] = 40
    lines[1]["address"] = "http://shop.test:7770/cart/"
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for name in ("2", "3"):
        state = tmp_path / "states" / name
        state.mkdir(parents=True)
        (state / "state.json").write_text('{"address": "http://x.test/", "html": "last.html"}')
        (state / "last.html").write_text("<title>Cart</title>")
    return [
        "--config",
        tmp_path / "tasks.json",
        "--answers",
        tmp_path / "answers.jsonl",
        "--states",
        tmp_path / "states",
    ]


def test_rewards_of_a_task_file(cli: Cli, files: list[Path | str], tmp_path: Path) -> None:
    done = cli("reward", *files, "--out", tmp_path / "out")
    assert done.status == 0
    assert (
        "| visualwebarena | 5     | 3      | 3         | 100.0 %        | 60.0 % | no_model 1, unsupported_locator 1 |"
        in done.out
    )
    assert "- task 0: visualwebarena 1, webarena 0, corrected 1" in done.out
    rows = [json.loads(line) for line in (tmp_path / "out/rewards.jsonl").read_text().splitlines()]
    assert [row["score"] for row in rows if row["rules"] == "corrected"] == [1.0, 1.0, 1.0, None, None]


@pytest.mark.parametrize("content", ['{"html": "missing.html"}', "[]", '{"address": 3}'])
def test_a_state_that_cannot_be_used_ends_no_run(
    cli: Cli, files: list[Path | str], tmp_path: Path, content: str
) -> None:
    (tmp_path / "states" / "2" / "state.json").write_text(content)
    done = cli("reward", *files)
    assert (done.status, "bad_state 1" in done.out) == (0, True)


def test_an_id_that_leads_out_of_the_states_has_none(cli: Cli, files: list[Path | str], tmp_path: Path) -> None:
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    (tmp_path / "tasks.json").write_text(json.dumps([{**tasks[2], "task_id": ".."}, tasks[0]]))
    (tmp_path / "state.json").write_text('{"html": "states/2/last.html"}')
    done = cli("reward", *files)
    assert (done.status, "no_state 1" in done.out) == (0, True)


def test_a_model_judges_what_a_program_cannot(cli: Cli, files: list[Path | str], tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text(
        "def judge(messages):\n    return 'correct' if 'forty' in messages[-1].text else 'no'\n"
    )
    done = cli("reward", *files, "--model", f"{tmp_path / 'judge.py'}:judge", "--out", tmp_path / "out")
    assert done.status == 0
    assert (
        "| visualwebarena | 5     | 4      | 4         | 100.0 %        | 80.0 % | unsupported_locator 1 |" in done.out
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--states", "missing"], "--states: expected a folder"),
        (["--base-url", "http://x.test"], "--base-url"),
        # nothing is sent before
        (
            ["--model", "openai/x", "--base-url", "https://api.openai.com/v1", "--max-cost", "1"],
            "--max-cost needs a price, or a model",
        ),
        (["--answers", "missing.jsonl"], "cannot read missing.jsonl"),
        (["--config", "missing.json"], "cannot read missing.json"),
    ],
)
def test_wrong_usage_is_refused(cli: Cli, files: list[Path | str], words: list[str], message: str) -> None:
    done = cli("reward", *files, *words)
    assert (done.status, message in done.error) == (2, True)


@pytest.mark.parametrize(
    ("program", "answer", "reason"),
    [
        (
            {"eval_types": ["program_html"], "program_html": [
                {"url": "last", "locator": f"func:get_query_text(__page__, '{'a ' * 900}')", "required_contents": {"exact_match": "x"}}]},
            "red", "unsupported_locator",
        ),
        ({"eval_types": ["string_match"], "reference_answers": {"must_include": ["red"]}}, FAILING, "program_failed"),
    ],
)  # fmt: skip
def test_a_program_that_fails_is_a_reason_of_its_task(
    cli: Cli, files: list[Path | str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: dict[str, Any], answer: str, reason: str
) -> None:  # fmt: skip
    monkeypatch.setitem(RULES, "visualwebarena", replace(RULES["visualwebarena"], clean=clean_or_fail))
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    (tmp_path / "tasks.json").write_text(json.dumps([tasks[0], {**tasks[2], "eval": program}]))
    (tmp_path / "answers.jsonl").write_text(
        f'{{"task_id": 0, "answer": "red"}}\n{{"task_id": 2, "answer": "{answer}"}}\n'
    )
    assert cli("reward", *files, "--out", tmp_path / "out").status == 0
    rows = [json.loads(line) for line in (tmp_path / "out/rewards.jsonl").read_text().splitlines()]
    first, second = (row for row in rows if row["rules"] == "visualwebarena")
    assert (first["score"], second["score"], second["parts"][0]["unscored"]) == (1.0, None, reason)
    assert len(second["parts"][0]["detail"]) <= 300
