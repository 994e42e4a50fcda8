"""`score`: finished predictions again, under this or another protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.scoring.protocols import PROTOCOLS
from tests.annexes import needs
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import (
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
    assert cli("score", finished).status == 0
    assert contents(finished) == before


def test_scores_can_go_elsewhere(cli: Cli, finished: Path, tmp_path: Path) -> None:
    assert cli("score", finished, "--out", tmp_path / "elsewhere").status == 0
    assert contents(tmp_path / "elsewhere") == contents(finished, SCORED)


@pytest.mark.parametrize(
    ("words", "other"), [("", "out"), ("--protocol mindact", "out"), ("--protocol mindact,seeact", "out/seeact")]
)
def test_the_files_of_another_run_are_left_as_they_are(
    cli: Cli, finished: Path, tmp_path: Path, words: str, other: str
) -> None:
    folder = tmp_path / other
    shutil.copytree(finished, folder)
    done = cli("score", finished, *words.split(), "--out", tmp_path / "out")
    assert (done.status, done.err) == (2, f"error: {folder} holds another run; name another folder for --out\n")
    assert contents(folder) == contents(finished)


def test_a_run_does_not_begin_in_a_folder_of_results(cli: Cli, sample: Sample, finished: Path, tmp_path: Path) -> None:
    cli("score", finished, "--out", tmp_path / "out")
    done = cli("eval", *sample.words, "--out", tmp_path / "out")
    assert done.err.endswith(
        f"{tmp_path / 'out'} holds results without a manifest.json; name another folder for --out\n"
    )
    assert contents(tmp_path / "out") == contents(finished, SCORED)


def test_it_prints_what_the_run_printed(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    printed = cli("eval", *sample.words, "--verbose", "--out", tmp_path / "run").out.partition("\n\nReport:")[0]
    assert cli("score", tmp_path / "run").out.strip() == printed.strip()


def test_mindact_gives_nothing_where_the_target_was_not_offered(cli: Cli, finished: Path, tmp_path: Path) -> None:
    cli("score", finished, "--protocol", "mindact", "--out", tmp_path / "mindact")
    seeact, mindact = (read_lines(folder / "steps.jsonl") for folder in (finished, tmp_path / "mindact"))
    missed = [step["best_rank"] is None for step in seeact]
    assert any(missed)
    assert [step["operation_f1"] for step in seeact] == [1.0] * len(seeact)
    assert [step["operation_f1"] for step in mindact] == [0.0 if miss else 1.0 for miss in missed]


def test_mindact_leaves_offered_steps_as_they_are(cli: Cli, finished: Path, tmp_path: Path) -> None:
    cli("score", finished, "--protocol", "mindact", "--out", tmp_path / "mindact")
    seeact, mindact = (read_json(folder / "results.json") for folder in (finished, tmp_path / "mindact"))
    assert mindact["protocol"] == "mindact"
    assert mindact["element_accuracy"] == seeact["element_accuracy"]
    assert mindact["operation_f1"]["micro"] < seeact["operation_f1"]["micro"]


def test_a_registered_protocol_is_offered_and_scores(
    cli: Cli, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, "toy", replace(PROTOCOLS["mindact"], name="toy"))
    assert "toy or FILE.py:NAME (default: the run's" in " ".join(cli("score", "--help").out.split())
    assert cli("score", finished, "--protocol", "toy", "--out", tmp_path / "toy").status == 0
    assert read_json(tmp_path / "toy" / "results.json")["protocol"] == "toy"


# --- where what is right comes from ---


def test_the_data_set_is_not_opened(cli: Cli, finished: Path) -> None:
    manifest = read_json(finished / "manifest.json")
    manifest["settings"]["dataset"] = "/nowhere"
    (finished / "manifest.json").write_text(json.dumps(manifest))
    assert cli("score", finished).status == 0


def test_a_run_from_before_targets_were_kept_is_scored_by_its_data(cli: Cli, finished: Path) -> None:
    before = contents(finished, SCORED)
    (finished / "targets.jsonl").unlink()
    assert cli("score", finished).status == 0
    assert read_json(finished / "results.json")["operation_f1"] == json.loads(before["results.json"])["operation_f1"]


@pytest.mark.slow
def test_scoring_finished_files_loads_no_heavy_library(cli: Cli, finished: Path, repo: Path) -> None:
    program = (
        "import sys; from seeact_offline.cli import main; main(sys.argv[1:]);"
        "print([name for name in ('torch', 'PIL', 'lxml', 'pandas', 'datasets', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    words = [sys.executable, "-c", program, "score", str(finished), "--protocol"]
    for protocols in ("mindact", "seeact,uground"):
        done = subprocess.run([*words, protocols], capture_output=True, text=True, check=True, cwd=repo)
        assert done.stdout.splitlines()[-1] == "[]"


# --- several protocols ---


def test_several_protocols_are_told_apart(cli: Cli, finished: Path) -> None:
    before = contents(finished)
    outcome = cli("score", finished, "--protocol", "seeact,mindact,synapse")
    assert outcome.status == 0
    assert "From seeact to mindact: mindact minus seeact" in outcome.out
    assert "From seeact to synapse" in outcome.out
    assert contents(finished) == before


def test_each_protocols_results_get_a_folder(cli: Cli, finished: Path, tmp_path: Path) -> None:
    before, out = contents(finished), tmp_path / "several"
    cli("score", finished, "--protocol", "seeact,mindact", "--out", out)
    assert sorted(path.name for path in out.iterdir()) == ["delta.json", "delta.md", "mindact", "seeact"]
    assert contents(out / "seeact") == contents(finished, SCORED)
    assert read_json(out / "mindact" / "results.json")["protocol"] == "mindact"
    assert contents(finished) == before


def test_the_written_differences_are_those_printed(cli: Cli, finished: Path, tmp_path: Path) -> None:
    printed = cli("score", finished, "--protocol", "seeact,mindact", "--out", tmp_path / "several").out
    assert (tmp_path / "several" / "delta.md").read_text().strip() in printed
    paths = read_json(tmp_path / "several" / "delta.json")["paths"]
    assert [(path["from"], path["to"]) for path in paths] == [("seeact", "mindact")]


def test_a_protocol_named_twice_is_one(cli: Cli, finished: Path, tmp_path: Path) -> None:
    cli("score", finished, "--protocol", "mindact,mindact", "--out", tmp_path / "once")
    assert read_json(tmp_path / "once" / "results.json")["protocol"] == "mindact"


# --- what cannot be scored ---


def test_nothing_to_score_is_refused(cli: Cli) -> None:
    assert "name a run's folder, or predictions" in cli("score").error


def test_other_data_are_refused(cli: Cli, finished: Path, tmp_path: Path) -> None:
    other = make_sample(tmp_path / "other", list(synthetic_rows(4, 3, 12, seed=9)))
    error = cli("score", finished, "--dataset", other.dataset).error
    assert "--dataset" in error
    assert str(other.dataset) in error


def test_the_same_data_may_lie_elsewhere(cli: Cli, finished: Path, tmp_path: Path) -> None:
    moved = make_sample(tmp_path / "moved", list(synthetic_rows(4, 3, 12, seed=1)))
    before = contents(finished)
    assert cli("score", finished, "--dataset", moved.dataset).status == 0
    assert contents(finished) == before


@needs("importers")
def test_a_folder_without_a_run_is_refused(cli: Cli, tmp_path: Path) -> None:
    error = cli("score", tmp_path, "--out", tmp_path / "out").error
    assert error.startswith("error: run: ")
    assert "manifest.json" in error


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"identity": {}}', '{"identity": {}, "settings": {}}'])
def test_a_manifest_of_another_kind_is_refused(cli: Cli, finished: Path, text: str) -> None:
    (finished / "manifest.json").write_text(text)
    assert "manifest.json" in cli("score", finished).error


def test_an_unknown_protocol_is_refused(cli: Cli, finished: Path) -> None:
    error = cli("score", finished, "--protocol", "olympic").error
    assert "--protocol" in error
    assert "olympic" in error


def test_a_line_that_is_no_prediction_is_refused(cli: Cli, finished: Path) -> None:
    path = finished / "predictions.jsonl"
    path.write_text(json.dumps({"annotation_id": "x"}) + "\n" + path.read_text())
    error = cli("score", finished).error
    assert "line 1" in error


def test_steps_without_a_prediction_count_as_wrong_and_the_report_begins_with_that(cli: Cli, finished: Path) -> None:
    """Deleting failing lines once raised the figures."""
    path = finished / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:9]))
    before = read_json(finished / "results.json")
    outcome = cli("score", finished)
    assert outcome.status == 1
    assert "3 of 12 steps have no prediction" in outcome.err
    results = read_json(finished / "results.json")
    assert (results["n_steps"], results["complete"]) == (12, False)
    assert results["step_success_rate"]["micro"] <= before["step_success_rate"]["micro"]
    assert (results["failures"], results["n_not_run"]) == ({"no_prediction": 3}, 3)
    assert results["waterfall"]["call_failed"]["steps"] == 3
    said = "Not complete: 3 of 12 steps have no prediction and count as wrong."
    assert (finished / "report.md").read_text("utf-8").splitlines()[0] == f"**{said}**"
    assert said in outcome.out.splitlines()


def test_under_several_protocols_they_count_as_wrong_too(cli: Cli, finished: Path, tmp_path: Path) -> None:
    path = finished / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:9]))
    assert cli("score", finished, "--protocol", "seeact,mindact", "--out", tmp_path / "both").status == 1
    assert read_json(tmp_path / "both" / "mindact" / "results.json")["failures"] == {"no_prediction": 3}


def test_tables_take_a_folder_of_scores_as_compare_does(cli: Cli, finished: Path, tmp_path: Path) -> None:
    cli("score", finished, "--out", tmp_path / "again")
    of_run = cli("tables", finished, "--table", 2, "--format", "csv").out
    of_scores = cli("tables", tmp_path / "again", "--table", 2, "--format", "csv")
    assert of_scores.status == 0
    figures = [text.splitlines()[1].split(",")[2:6] for text in (of_run, of_scores.out)]
    assert figures[0] == figures[1]


def test_tables_take_a_folder_of_several_protocols(cli: Cli, finished: Path, tmp_path: Path) -> None:
    cli("score", finished, "--protocol", "seeact,mindact", "--out", tmp_path / "both")
    drawn = cli("tables", tmp_path / "both", "--table", 2, "--format", "markdown")
    assert (drawn.status, "protocol seeact" in drawn.out, "protocol mindact" in drawn.out) == (0, True, True)


def test_a_line_that_is_being_written_is_left_alone(cli: Cli, finished: Path) -> None:
    """Scoring while the run goes on once cut the line that the run was writing."""
    path = finished / "predictions.jsonl"
    torn = path.read_bytes()[:-20]
    path.write_bytes(torn)
    cli("score", finished)
    assert path.read_bytes() == torn


def test_check_names_each_difference_and_ends_with_status_1(cli: Cli, finished: Path) -> None:
    before = contents(finished)
    whole = cli("score", finished, "--check")
    assert (whole.status, whole.out) == (0, f"{finished}: verified in part\n")
    assert contents(finished) == before
    results = read_json(finished / "results.json")
    results["step_success_rate"]["macro"] = 0.695
    (finished / "results.json").write_text(json.dumps(results))
    edited = cli("score", finished, "--check")
    assert edited.status == 1
    assert edited.out.startswith("results.json: step_success_rate.macro is 0.695, scored again it is ")
    assert edited.out.endswith(f"{finished}: not verified\n")


def test_check_takes_a_folder_of_runs(cli: Cli, finished: Path) -> None:
    outcome = cli("score", finished.parent, "--check")
    assert (outcome.status, outcome.out) == (0, f"{finished}: verified in part\n")


@pytest.mark.parametrize(
    "words",
    [("--out", "x"), ("--protocol", "seeact,mindact"), pytest.param(("--format", "table"), marks=needs("importers"))],
)
def test_check_writes_nothing_and_imports_nothing(cli: Cli, finished: Path, words: tuple[str, ...]) -> None:
    assert "--check takes a run alone" in cli("score", finished, "--check", *words).error


def test_a_table_of_an_edited_run_is_not_verified(cli: Cli, finished: Path, tmp_path: Path) -> None:
    """An edited results.json once stood in a table, outside of its own interval."""
    results = read_json(finished / "results.json")
    results["step_success_rate"]["macro"] = 0.0
    (finished / "results.json").write_text(json.dumps(results))
    cli("tables", finished, "--table", 2, "--out", tmp_path / "t.md")
    checked = cli("tables", "--check", tmp_path / "t.md")
    assert checked.status == 1
    assert "not verified: run: results.json: step_success_rate.macro is 0.0" in checked.out
