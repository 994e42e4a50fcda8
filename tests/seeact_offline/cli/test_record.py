"""`record` as the shell would run it, as far as no browser is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from seeact_offline.recorder import RecordOptions
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import StepError
from seeact_offline.sample import SITES
from tests.seeact_offline.cli.conftest import Cli

SCRIPT = SITES / "brimlode" / "tasks.yaml"


class Recorder:
    """Opens no browser; every task fails."""

    def __init__(self, options: RecordOptions) -> None:
        pass

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def record(self, task: TaskScript) -> list[object]:
        raise StepError("nothing_to_click", task.task)


def test_a_folder_that_holds_something_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    error = cli("record", SCRIPT, "--out", tmp_path).error
    assert (
        error
        == f"error: --out: expected a folder that is new or empty, or --force, got {tmp_path}, which holds something already"
    )


def test_force_records_into_it_all_the_same(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seeact_offline.cli.record.Recorder", Recorder)
    (tmp_path / "data").mkdir()
    outcome = cli("record", SCRIPT, "--out", tmp_path, "--force")
    assert (outcome.status, "left out" in outcome.err) == (1, True)
