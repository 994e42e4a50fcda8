"""`runs`: the run folders of a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import make_run
from tests.seeact_offline.conftest import Cli

NAN = float("nan")


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    """A finished run, one without results, one of `score --out` and one that is damaged."""
    runs = tmp_path / "runs"
    assert cli("eval", "--limit", 1, "--label", "mine", "--out", runs / "done").status == 0
    assert cli("score", runs / "done", "--out", runs / "again").status == 0
    for name in ("stopped", "torn"):
        shutil.copytree(runs / "done", runs / name)
    (runs / "stopped" / "results.json").unlink()
    (runs / "torn" / "manifest.json").write_text("{")
    return runs


def test_every_run_has_its_status_and_figures(cli: Cli, folder: Path) -> None:
    done = cli("runs", folder, "--json")
    assert done.status == 0, done.error
    found = {one["name"]: one for one in json.loads(done.out)}
    assert {name: one["status"] for name, one in found.items()} == {
        "done": "finished", "again": "finished", "stopped": "unfinished", "torn": "unreadable",
    }  # fmt: skip
    results = json.loads((folder / "done" / "results.json").read_text())
    assert found["done"]["figures"]["element_accuracy"] == results["element_accuracy"]["macro"]
    assert found["done"]["figures"] == found["again"]["figures"]
    assert (found["done"]["model"], found["done"]["steps"]) == ("builtin/lexical", found["stopped"]["steps"])
    assert "manifest.json" in found["torn"]["problem"]


def test_the_table_names_runs_and_what_is_wrong_with_one(cli: Cli, folder: Path) -> None:
    done = cli("runs", folder)
    assert [word in done.out for word in ("Step SR, %", "| done", "unfinished", "torn: ")] == [True] * 4


def test_a_folder_that_is_not_there_is_a_sentence(cli: Cli, tmp_path: Path) -> None:
    done = cli("runs", tmp_path / "none")
    assert (done.status, "name the one that holds your runs" in done.error) == (2, True)


@pytest.mark.parametrize(
    ("file", "entry"),
    [
        ("results.json", {"step_success_rate": {"macro": NAN, "micro": NAN}}),
        ("results.json", {"waterfall": {"ranker_miss": {"steps": 1, "macro": float("inf")}}}),
        ("results.json", {"n_steps": 10**400}),
        ("results.json", {"task_success_ci95": {"offline1": [10**400, 1.0]}}),
        ("manifest.json", {"made": {"date": NAN}}),
    ],
)
def test_a_run_with_a_number_that_is_none_is_unreadable(
    cli: Cli, tmp_path: Path, file: str, entry: dict[str, Any]
) -> None:
    run = make_run(tmp_path / "runs" / "run")
    (run / file).write_text(json.dumps(json.loads((run / file).read_text()) | entry))
    (found,) = json.loads(cli("runs", tmp_path / "runs", "--json").out, parse_constant=pytest.fail)
    assert found["status"] == "unreadable"
    assert file in found["problem"] or "finite numbers" in found["problem"]
    if file == "results.json":
        done = cli("compare", make_run(tmp_path / "other"), run)
        assert done.status == 2
        assert str(run) in done.error


def test_so_are_episodes(cli: Cli, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run / "results.json").write_text('{"n_tasks": 2, "success": {"macro": NaN}}')
    assert "expected finite numbers, got nan" in cli("runs", tmp_path).out
