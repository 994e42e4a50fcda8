"""What experiment trackers are given of a finished run, recorded by small trackers of our own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.files import redaction
from seeact_offline.files.digest import file_digest
from seeact_offline.records import InputError
from seeact_offline.runs.trackers import REPORTERS, figures, open_reporters, settings
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, cli, make_sample

__all__ = ["cli"]
IN_WANDBS_WAY = """
import json, pathlib
HEARD = []
def init(project, name, config): HEARD.append({"project": project, "name": name, "config": config})
def log(figures): HEARD.append(figures)
def finish(): pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(HEARD))
"""
MLFLOW = """
import contextlib, json, pathlib
HEARD = []
def set_experiment(name): HEARD.append({"project": name})
def log_params(params): HEARD[-1]["config"] = params
def log_metrics(metrics): HEARD.append(metrics)
@contextlib.contextmanager
def start_run(run_name):
    HEARD[-1]["name"] = run_name
    yield
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(HEARD))
"""
TRACKERS = {"wandb": IN_WANDBS_WAY, "trackio": IN_WANDBS_WAY, "mlflow": MLFLOW}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 2, 8, seed=7)))


@pytest.fixture(scope="module")
def run(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> so.Run:
    out = tmp_path_factory.mktemp("runs") / "mine"
    return so.evaluate(
        dataset=sample.dataset, split="cross_task", scores=sample.scores, model="builtin/lexical", out=out
    )


@pytest.fixture
def trackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of trackers that leave what they heard beside them as JSON."""
    folder = tmp_path / "trackers"
    folder.mkdir()
    for name, code in TRACKERS.items():
        (folder / f"{name}.py").write_text(code)
        monkeypatch.delitem(sys.modules, name, raising=False)
        # what this test imports is gone after it
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, name)
    for variable in ("WANDB_PROJECT", "TRACKIO_PROJECT", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.mark.parametrize("name", REPORTERS)
def test_a_tracker_gets_figures_settings_and_the_hash(name: str, trackers: Path, run: so.Run) -> None:
    [report] = open_reporters([name])
    report(run)
    begun, logged = json.loads((trackers / f"{name}.json").read_text())
    assert begun["project"] == "seeact-offline"
    assert begun["name"] == "mine"
    assert begun["config"]["results_sha256"] == file_digest(run.path / "results.json")
    assert begun["config"]["model"] == "builtin/lexical"
    assert logged["step_success_rate/macro"] == run.results["step_success_rate"]["macro"]
    assert logged["operation_f1/ci95/low"] == run.results["operation_f1"]["ci95"][0]


def test_figures_are_known_numbers_and_no_settings(run: so.Run) -> None:
    found = figures(run)
    assert any(name.startswith("waterfall/") for name in found)
    assert found["usage/calls"] == run.results["usage"]["calls"]
    assert not set(found) & {"seed", "top_k", "schema", "complete"}
    assert all(isinstance(value, int | float) and not isinstance(value, bool) for value in found.values())


def test_secrets_of_this_process_are_blotted_out(run: so.Run) -> None:
    redaction.hide("builtin/lexical")
    assert settings(run)["model"] == redaction.BLOT


def test_a_tracker_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match=r"needs that package: run .*pip install .*\[wandb\]'"):
        open_reporters(["wandb"])


def test_an_unknown_tracker_is_refused() -> None:
    with pytest.raises(InputError, match="wandb, mlflow, trackio"):
        open_reporters(["tensorboard"])


def test_a_tracker_that_fails_is_one_sentence(trackers: Path, run: so.Run) -> None:
    (trackers / "wandb.py").write_text("def init(**_): raise ConnectionError('no network')")
    [report] = open_reporters(["wandb"])
    with pytest.raises(InputError, match="ConnectionError: no network"):
        report(run)


def test_the_command_reports_to_several(cli: Cli, sample: Sample, trackers: Path, tmp_path: Path) -> None:
    words: list[Any] = ["--model", "builtin/lexical", "--report-to", "wandb,mlflow", "--out", tmp_path / "run"]
    done = cli("eval", *sample.words, *map(str, words))
    assert done.status == 0
    assert {path.name for path in trackers.glob("*.json")} == {"wandb.json", "mlflow.json"}


def test_the_command_refuses_a_missing_tracker_before_it_asks(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)
    done = cli("eval", *sample.words, "--report-to", "trackio", "--out", str(tmp_path / "run"))
    assert "--report-to" in done.error
    assert not (tmp_path / "run").exists()
