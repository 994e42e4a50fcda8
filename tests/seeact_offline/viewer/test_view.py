"""`view`: what may be asked of it, the link it prints, and that it ends when it is told to."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from tests.seeact_offline.conftest import Cli, Sample


@pytest.fixture
def run(sample: Sample, tmp_path: Path) -> Path:
    return so.evaluate(dataset=str(sample.dataset), scores=sample.scores, limit=1, out=tmp_path / "run").path


@pytest.mark.slow
def test_it_serves_until_it_is_interrupted(run: Path, repo: Path) -> None:
    words = [sys.executable, str(repo / "scripts" / "view.py"), str(run), "--no-browser"]
    # a suite that runs in the background may ignore the signal, and so would what it starts
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "preexec_fn": listening}
    with subprocess.Popen(words, **pipes) as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        address, token = link.removeprefix("http://").split("/#token=")
        connection = http.client.HTTPConnection(address, timeout=30)
        connection.request("GET", "/index.json")
        assert json.loads(connection.getresponse().read())["n"] == 3
        connection.close()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(token) >= 32
    assert err == "Ctrl-C ends it\n"


def test_a_bundle_is_written_and_says_what_is_left_out(cli: Cli, run: Path, tmp_path: Path) -> None:
    outcome = cli("view", run, "--bundle", tmp_path / "bundle")
    assert outcome.status == 0
    assert outcome.out.startswith(f"{len(list((tmp_path / 'bundle').rglob('*.*'))) - 1} files in ")
    assert "--with-data puts them in" in outcome.err
    assert not (tmp_path / "bundle" / "img").exists()


def test_without_a_name_all_runs_and_grids_of_the_working_folder_are_shown(
    cli: Cli, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, tmp_path / "runs" / "one")
    shutil.copytree(run, tmp_path / "runs" / "grid" / "cell")
    (tmp_path / "runs" / "something else").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli("view", "--bundle", "bundle").status == 0
    assert [shown["name"] for shown in json.loads(Path("bundle/index.json").read_text())["runs"]] == ["cell", "one"]


def test_scores_without_a_manifest_open_and_a_folder_of_something_else_is_named(
    cli: Cli, run: Path, tmp_path: Path
) -> None:
    assert cli("score", run, "--out", tmp_path / "scored").status == 0
    (tmp_path / "empty").mkdir()
    outcome = cli("view", tmp_path / "empty", run, tmp_path / "scored", "--bundle", tmp_path / "bundle")
    assert outcome.status == 0
    assert f"{tmp_path / 'empty'} cannot be shown: it holds no run, no trajectories and no verdicts" in outcome.err
    shown = json.loads((tmp_path / "bundle" / "index.json").read_text())["runs"]
    assert [one["name"] for one in shown] == ["run", "scored"]
    assert shown[0]["headlines"] == shown[1]["headlines"]


def test_with_data_leaves_nothing_out(cli: Cli, run: Path, tmp_path: Path) -> None:
    outcome = cli("view", run, "--bundle", tmp_path / "bundle", "--with-data")
    assert (outcome.status, "left out" in outcome.err) == (0, False)
    assert list((tmp_path / "bundle" / "img").iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name runs to look at, or --annotate RUN"),
        (["RUN", "--annotate", "RUN"], "use runs or --annotate, not both"),
        (["RUN", "--with-data"], "--with-data needs --bundle"),
        (["RUN", "--out", "x"], "--out needs --annotate"),
        (["RUN", "--second", "x"], "--second needs --annotate"),
        (["--annotate", "RUN"], "--annotate needs --out, a file for the answers"),
        (["--annotate", "RUN", "--out", "x", "--bundle", "y"], "--bundle cannot be combined with --annotate"),
        (["nowhere"], "nowhere cannot be shown: there is no such folder"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(cli: Cli, words: list[str], said: str) -> None:
    assert cli("view", *words).error == f"error: {said}"


def test_a_port_in_use_is_one_sentence(cli: Cli, run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen at 127.0.0.1:{port}: " in cli("view", run, "--port", port, "--no-browser").error


def test_a_bundle_does_not_go_into_a_folder_of_something_else(cli: Cli, run: Path, tmp_path: Path) -> None:
    assert cli("view", run, "--bundle", tmp_path).error.startswith(f"error: {tmp_path} holds other files; ")
