"""Runs at a URL are read as runs here, by `compare`, `tables`, `runs` and `view`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.annexes import needs
from tests.lazily import Lazy
from tests.seeact_offline.conftest import Cli, Sample

fsspec: Any = Lazy("fsspec")


@pytest.fixture
def bucket(cli: Cli, sample: Sample, tmp_path: Path) -> str:
    """Two runs in a store of fsspec."""
    for name in ("a", "b"):
        assert (
            cli("eval", *sample.words, "--limit", 2, "--seed", len(name), "--out", tmp_path / "runs" / name).status == 0
        )
    store = fsspec.filesystem("memory")
    store.put(str(tmp_path / "runs"), "/bucket/runs", recursive=True)
    shutil.rmtree(tmp_path / "runs")
    return "memory://bucket/runs"


def test_runs_at_a_url_are_listed_compared_and_tabled(cli: Cli, bucket: str) -> None:
    assert cli("runs", bucket).out.count("finished") == 2
    assert "## b against a, the baseline" in cli("compare", f"{bucket}/a", f"{bucket}/b").out
    assert cli("tables", "--table", 2, f"{bucket}/a", "--format", "markdown").status == 0


@needs("viewer")
def test_a_run_at_a_url_is_viewed(cli: Cli, bucket: str, tmp_path: Path) -> None:
    assert cli("view", f"{bucket}/a", "--bundle", tmp_path / "site").status == 0


@pytest.mark.parametrize("url", ["memory://nowhere/at/all", "nosuch://bucket/run"])
def test_a_url_without_runs_is_one_sentence(cli: Cli, url: str) -> None:
    outcome = cli("compare", url, url)
    assert (outcome.status, outcome.err.count("\n"), url in outcome.err) == (2, 1, True)
