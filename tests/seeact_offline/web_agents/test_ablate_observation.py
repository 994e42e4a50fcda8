"""The observation ablation: ceilings, costs, what rows share, and what is refused."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import ChatServer
from tests.seeact_offline.conftest import Cli, read_json, read_lines

pytestmark = pytest.mark.slow

ONE_TASK = ("--split", "cross_website", "--limit", "1")
TWO = ("--observations", "som+captions,tree")
NAMES = ["som+captions", "tree", "tree+captions", "image+tree+captions", "html"]


def ablate(*words: object) -> list[str]:
    return ["ablate", "--over", "observation", *ONE_TASK, *map(str, words)]


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All observations, asked of the oracle."""
    from seeact_offline.cli import main

    out = tmp_path_factory.mktemp("oracle")
    assert main(ablate("--model", "builtin/oracle", "--out", out)) == 0
    return out


def test_the_oracle_reaches_each_observations_ceiling_to_the_digit(oracle: Path) -> None:
    rows = read_json(oracle / "table.json")["rows"]
    assert [row["observation"] for row in rows] == NAMES
    for row in rows:
        assert row["element_accuracy"] == row["ceiling"]
        results = read_json(oracle / row["folder"] / "results.json")
        assert (row["ceiling"], row["lenient"]) == (results["ceiling"], results["element_by_rule"]["lenient"])


def test_the_table_has_ceilings_and_costs_and_no_papers_figures(oracle: Path) -> None:
    (first, *_), text = (
        csv.DictReader((oracle / "table.csv").read_text().splitlines()),
        (oracle / "table.md").read_text(),
    )
    assert float(first["ceiling"]) == float(first["element_accuracy"])
    assert float(first["ceiling_low"]) < float(first["ceiling"])
    assert "prompt_tokens" in first
    assert "step_success_rate_difference" in first
    assert not [name for name in first if "paper" in name]
    assert "no success rates of tasks" in text
    assert "Paper" not in text
    assert "Prompt tokens a step" in (oracle / "table.tex").read_text()


def test_a_row_says_what_eval_says(cli: Cli, oracle: Path, tmp_path: Path) -> None:
    agent = ("--agent", "visualwebarena", "--observation", "tree", "--model", "builtin/oracle")
    assert cli("eval", *ONE_TASK, *agent, "--out", tmp_path).status == 0
    assert read_lines(oracle / "tree" / "steps.jsonl") == read_lines(tmp_path / "steps.jsonl")


def test_its_runs_make_the_table_again(cli: Cli, oracle: Path, tmp_path: Path) -> None:
    rows = [oracle / name for name in NAMES]
    assert cli("tables", "--table", "observations", *rows, "--out", tmp_path / "table.csv").status == 0
    ours, theirs = (list(csv.DictReader((f / "table.csv").read_text().splitlines())) for f in (tmp_path, oracle))
    figures = ("observation", "step_success_rate", "step_success_rate_difference_low", "ceiling", "lenient")
    assert [[one[name] for name in figures] for one in ours] == [[one[name] for name in figures] for one in theirs]
    for name in ("table.md", "table.tex", "table.csv"):
        assert "none of" in cli("tables", "--check", oracle / name).out


def test_equal_questions_of_rows_are_paid_for_once(cli: Cli, tmp_path: Path) -> None:
    """The sample has no pictures to be captioned."""

    def say(body: dict[str, Any]) -> str:
        label = re.search(r"\[(\d+)\] (?:link|button)", str(body["messages"][-1]))
        return f"This one.\n```click [{label[1] if label else 1}]```"

    few = ("--observations", "tree,tree+captions")
    with ChatServer(say) as server:
        model = ("--model", "openai/test", "--base-url", server.base_url, "--price", "1,1")
        assert cli(*ablate(*few, *model, "--out", tmp_path)).status == 0
    first, second = read_json(tmp_path / "table.json")["rows"]
    assert first["usage"]["calls"] == len(server.requests) == second["replies_reused"]
    assert (second["usage"]["calls"], second["element_accuracy"]) == (0, first["element_accuracy"])
    assert first["unreadable_replies"] == 0
    assert "reused its replies and are not counted again" in (tmp_path / "table.tex").read_text()


def test_a_dry_run_has_tokens_and_costs_by_observation(cli: Cli, tmp_path: Path) -> None:
    words = ("--model", "openai/gpt-4o", "--price", "2.5,10", "--dry-run", "--out", tmp_path / "run")
    said = cli(*ablate(*TWO, *words)).out
    cells = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in said.splitlines() if line.startswith("|")}
    rows = {name: [float(cell.replace(",", "")) for cell in cells[name]] for name in ("som+captions", "tree", "all")}
    assert rows["tree"][2] == 0 < rows["som+captions"][2]
    for som, tree, total in zip(rows["som+captions"], rows["tree"], rows["all"], strict=True):
        assert total == pytest.approx(som + tree, abs=2)
    calls, text, pictures, completion, usd = rows["som+captions"]
    assert calls >= 1
    assert usd == pytest.approx((2.5 * (text + pictures) + 10 * completion) / 1e6, abs=1e-4)
    assert not (tmp_path / "run").exists()


def test_captions_go_to_the_rows_that_show_them(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "captions.jsonl"
    file.write_text('{"annotation_id": "a", "action_uid": "b", "backend_node_id": "1", "caption": "a fox"}\n')
    assert cli(*ablate(*TWO, "--model", "builtin/oracle", "--captions", file, "--out", tmp_path / "run")).status == 0
    som, tree = (read_json(tmp_path / "run" / name / "manifest.json")["identity"] for name in NAMES[:2])
    assert len(som["captions"]) == 64
    assert "captions" not in tree


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kinds", "letter"), "--kinds needs --over markup"),
        (("--observations", "tree,tree"), "each once"),
        (("--observations", "pixels"), "expected some of som+captions,"),
        (
            ("--observations", "tree", "--captions", "builtin/oracle"),
            "--captions needs an observation that shows captions",
        ),
        (("--top-k", "7"), "visualwebarena does not use it"),
        (("--max-turns", "0"), "--max-turns: expected at least 1"),
    ],
)
def test_what_the_rows_do_not_have_is_refused(cli: Cli, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    assert said in cli(*ablate("--model", "builtin/oracle", *words, "--out", tmp_path / "run")).error
    assert not (tmp_path / "run").exists()


def test_a_table_of_another_axis_is_refused(cli: Cli, oracle: Path) -> None:
    assert "runs by annotation" in cli("tables", "--table", "5", oracle).error
