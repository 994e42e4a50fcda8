"""A scoring protocol of one's own: a file outside the package, and every verb that scores or shows figures knows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.seeact_offline.conftest import Cli, Sample, read_json

OWN = """
from dataclasses import replace
from seeact_offline.scoring import rules
from seeact_offline.scoring.protocols import PROTOCOLS


def first_only(prediction, truth):
    '''The first right element alone'''
    return prediction.element_id == truth.target


LENIENT = replace(PROTOCOLS["seeact"], name="x", element=first_only, headline=rules.micro, headline_of_f1=rules.micro)
NOT_ONE = 3
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(OWN)
    return f"{tmp_path}/mine.py:LENIENT"


@pytest.fixture
def run(cli: Cli, sample: Sample, tmp_path: Path, own: str) -> Path:
    """A run that was asked and scored by it."""
    outcome = cli("eval", *sample.words, "--protocol", own, "--out", tmp_path / "run")
    assert outcome.status == 0, outcome.err
    return tmp_path / "run"


def test_results_name_it_with_the_digest_of_its_file_and_what_it_quotes(run: Path) -> None:
    results = read_json(run / "results.json")
    assert (results["protocol"], len(results["protocol_code"])) == ("mine.py:LENIENT", 16)
    assert results["step_success_rate"]["quoted"] == "micro"
    assert "| Step SR " in (run / "report.md").read_text()


def test_other_verbs_show_the_average_that_it_quotes(cli: Cli, run: Path) -> None:
    for line in cli("tables", "--table", 3, run, "--format", "csv").out.splitlines()[1:]:
        assert ",step_success_rate,micro," in line
    error = cli("tables", "--table", 3, run, "--by", "website").error
    assert "expected runs scored by a protocol of this package" in error


def test_a_finished_run_is_scored_by_it_beside_another(cli: Cli, sample: Sample, tmp_path: Path, own: str) -> None:
    assert cli("eval", *sample.words, "--out", tmp_path / "run").status == 0
    outcome = cli("score", tmp_path / "run", "--protocol", f"seeact,{own}")
    assert outcome.status == 0
    assert "## From seeact to mine.py:LENIENT" in outcome.out
    assert "element, headline" in outcome.out


def test_an_installed_package_adds_one_by_name(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "installed"
    (installed / "mine-1.dist-info").mkdir(parents=True)
    (installed / "installed_protocol.py").write_text(OWN)
    (installed / "mine-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    entry = "[seeact_offline.protocols]\nlenient = installed_protocol:LENIENT\n"
    (installed / "mine-1.dist-info" / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(installed)
    assert cli("eval", *sample.words, "--protocol", "lenient", "--out", tmp_path / "run").status == 0
    assert cli("score", tmp_path / "run").status == 0
    assert read_json(tmp_path / "run" / "results.json")["protocol"] == "lenient"


def test_no_code_that_a_runs_file_names_is_loaded(cli: Cli, run: Path, own: str) -> None:
    manifest = read_json(run / "manifest.json")
    manifest["settings"]["protocol"] = own
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert "expected one of seeact, " in cli("score", run).error
    assert cli("score", run, "--protocol", own).status == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("strict", "--protocol: expected one of seeact, mindact, .*, or FILE.py:NAME, got strict"),
        ("mine.py:NOT_ONE", "--protocol: expected a seeact_offline.scoring.rules.Protocol, got 3 of mine.py:NOT_ONE"),
        ("mine.py:LACKING", "--protocol: expected the name of an object in mine.py, got LACKING"),
    ],
)
@pytest.mark.parametrize("verb", ["eval", "score"])
def test_anything_else_is_one_sentence(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, name: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)
    run = ["eval", *sample.words, "--out", "run"]
    if verb == "score":
        assert cli(*run).status == 0
        run = ["score", "run"]
    error = cli(*run, "--protocol", name).error
    assert re.search(expected, error), error
