"""`runs`: the run folders of a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.seeact_offline.conftest import Cli


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
