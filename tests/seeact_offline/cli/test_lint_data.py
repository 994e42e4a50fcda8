"""`lint-data` and what `eval` makes of its findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, make_sample, read_json, read_lines


@pytest.fixture
def faulty(tmp_path: Path) -> Sample:
    """Two tasks of three steps; the last row has no screenshot."""
    rows: list[dict[str, Any]] = list(synthetic_rows(2, 3, 8, seed=3))
    return make_sample(tmp_path / "faulty", [*rows[:-1], {**rows[-1], "screenshot": None}])


def test_strict_exits_with_one_when_a_row_has_a_fault(cli: Cli, sample: Sample, faulty: Sample) -> None:
    words = ("--split", "cross_task", "--strict")
    assert [cli("lint-data", "--dataset", data.dataset, *words).status for data in (sample, faulty)] == [0, 1]


def test_a_split_that_is_not_there_is_not_missed(cli: Cli, sample: Sample) -> None:
    outcome = cli("lint-data", "--dataset", sample.dataset)
    assert (outcome.status, outcome.out.splitlines()[0].split("|")[1:-1]) == (
        0,
        [" fault                ", " cross_task ", " meaning "],
    )


def test_findings_are_counted_by_split_and_written_row_by_row(cli: Cli, faulty: Sample, tmp_path: Path) -> None:
    out = tmp_path / "findings.jsonl"
    outcome = cli("lint-data", "--dataset", faulty.dataset, "--split", "cross_task", "--out", out)
    assert outcome.status == 0
    assert "| no_screenshot" in outcome.out
    (finding,) = read_lines(out)
    assert [fault["name"] for fault in finding["faults"]] == ["no_screenshot"]


def test_profile_follows_the_findings(cli: Cli, faulty: Sample) -> None:
    data = ("--dataset", faulty.dataset, "--split", "cross_task")
    findings, _, profile = cli("lint-data", *data).out.partition("\n\n")
    assert "| no_screenshot" in findings
    assert profile == cli("stats", "--profile", *data).out


def test_eval_reports_with_and_without_the_flagged_rows(cli: Cli, faulty: Sample, tmp_path: Path) -> None:
    findings, out = tmp_path / "findings.jsonl", tmp_path / "run"
    cli("lint-data", "--dataset", faulty.dataset, "--split", "cross_task", "--out", findings)
    cli("eval", *faulty.words, "--model", "builtin/oracle", "--out", out, "--exclude-flagged", findings)
    results = read_json(out / "results.json")
    assert (results["n_steps"], results["element_accuracy"]["micro"]) == (6, pytest.approx(5 / 6))
    rest = results["without_flagged"]
    assert (rest["n_flagged"], rest["n_steps"], rest["element_accuracy"]["micro"]) == (1, 5, 1.0)
    assert "Without the 1 flagged step: 5 steps of 2 tasks." in (out / "report.md").read_text()


def test_findings_that_are_none_are_refused(cli: Cli, faulty: Sample, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("[1]\n")
    assert "--exclude-flagged" in cli("eval", *faulty.words, "--exclude-flagged", tmp_path / "x.jsonl").error


def test_the_sample_is_what_runs_without_a_dataset_and_says_whose_figures_these_are(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("eval", "--limit", "2", "--out", tmp_path / "run")
    assert outcome.status == 0
    assert outcome.out.splitlines()[0].endswith("they are not the paper's.")
