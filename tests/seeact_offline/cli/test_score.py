"""`score`: finished predictions again, under this or another protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.scoring.protocols import PROTOCOLS
from tests.pages import synthetic_rows
from tests.seeact_offline.cli.conftest import (
    Cli,
    Sample,
    contents,
    make_sample,
    read_json,
    read_lines,
)

SCORED = ("steps.jsonl", "results.json", "report.md")


@pytest.fixture
def finished(cli: Cli, sample: Sample, tmp_path: Path) -> Path:
    """A run in which not every positive was offered."""
    cli("eval", *sample.words, "--top-k", 5, "--model", "builtin/oracle", "--out", tmp_path / "run")
    return tmp_path / "run"


def test_scoring_again_changes_no_byte(cli: Cli, finished: Path) -> None:
    before = contents(finished)
    assert cli("score", "--out", finished).status == 0
    assert contents(finished) == before


def test_scores_can_go_elsewhere(cli: Cli, finished: Path, tmp_path: Path) -> None:
    assert cli("score", "--out", finished, "--to", tmp_path / "elsewhere").status == 0
    assert contents(tmp_path / "elsewhere") == contents(finished, SCORED)


def test_it_prints_what_the_run_printed(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--out", tmp_path / "run")
    printed = cli("eval", *sample.words, *words).out.partition("\n\nReport:")[0]
    assert cli("score", *words).out.strip() == printed.strip()


def test_mindact_gives_nothing_where_the_target_was_not_offered(cli: Cli, finished: Path, tmp_path: Path) -> None:
    cli("score", "--out", finished, "--protocol", "mindact", "--to", tmp_path / "mindact")
    seeact, mindact = (read_lines(folder / "steps.jsonl") for folder in (finished, tmp_path / "mindact"))
    missed = [step["best_rank"] is None for step in seeact]
    assert any(missed)
    assert [step["operation_f1"] for step in seeact] == [1.0] * len(seeact)
    assert [step["operation_f1"] for step in mindact] == [0.0 if miss else 1.0 for miss in missed]


def test_mindact_leaves_offered_steps_as_they_are(cli: Cli, finished: Path, tmp_path: Path) -> None:
    cli("score", "--out", finished, "--protocol", "mindact", "--to", tmp_path / "mindact")
    seeact, mindact = (read_json(folder / "results.json") for folder in (finished, tmp_path / "mindact"))
    assert mindact["protocol"] == "mindact"
    assert mindact["element_accuracy"] == seeact["element_accuracy"]
    assert mindact["operation_f1"]["micro"] < seeact["operation_f1"]["micro"]


def test_a_registered_protocol_is_offered_and_scores(
    cli: Cli, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, "toy", replace(PROTOCOLS["mindact"], name="toy"))
    assert "scoring rules: seeact or mindact or toy" in " ".join(cli("score", "--help").out.split())
    assert cli("score", "--out", finished, "--protocol", "toy", "--to", tmp_path / "toy").status == 0
    assert read_json(tmp_path / "toy" / "results.json")["protocol"] == "toy"


def test_other_data_are_refused(cli: Cli, finished: Path, tmp_path: Path) -> None:
    other = make_sample(tmp_path / "other", list(synthetic_rows(4, 3, 12, seed=9)))
    error = cli("score", "--out", finished, "--dataset", other.dataset).error
    assert "--dataset" in error
    assert str(other.dataset) in error


def test_the_same_data_may_lie_elsewhere(cli: Cli, finished: Path, tmp_path: Path) -> None:
    moved = make_sample(tmp_path / "moved", list(synthetic_rows(4, 3, 12, seed=1)))
    before = contents(finished)
    assert cli("score", "--out", finished, "--dataset", moved.dataset).status == 0
    assert contents(finished) == before


def test_a_folder_without_a_run_is_refused(cli: Cli, tmp_path: Path) -> None:
    error = cli("score", "--out", tmp_path).error
    assert "--out" in error
    assert "manifest.json" in error


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"identity": {}}', '{"identity": {}, "settings": {}}'])
def test_a_manifest_of_another_kind_is_refused(cli: Cli, finished: Path, text: str) -> None:
    (finished / "manifest.json").write_text(text)
    assert "manifest.json" in cli("score", "--out", finished).error


def test_an_unknown_protocol_is_refused(cli: Cli, finished: Path) -> None:
    error = cli("score", "--out", finished, "--protocol", "olympic").error
    assert "--protocol" in error
    assert "olympic" in error


def test_a_line_that_is_no_prediction_is_refused(cli: Cli, finished: Path) -> None:
    path = finished / "predictions.jsonl"
    path.write_text(json.dumps({"annotation_id": "x"}) + "\n" + path.read_text())
    error = cli("score", "--out", finished).error
    assert "line 1" in error


def test_steps_without_a_prediction_are_left_out_and_said(cli: Cli, finished: Path) -> None:
    path = finished / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:9]))
    outcome = cli("score", "--out", finished)
    assert outcome.status == 1
    assert "3 of 12 steps have no prediction" in outcome.err
    results = read_json(finished / "results.json")
    assert (results["n_steps"], results["complete"]) == (9, False)


def test_a_line_that_is_being_written_is_left_alone(cli: Cli, finished: Path) -> None:
    """Scoring while the run goes on once cut the line that the run was writing."""
    path = finished / "predictions.jsonl"
    torn = path.read_bytes()[:-20]
    path.write_bytes(torn)
    cli("score", "--out", finished)
    assert path.read_bytes() == torn
