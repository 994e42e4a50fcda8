"""`eval --batch`: the same run by files."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from seeact_offline.runs.batches import run_batch
from tests.batch_server import BatchServer
from tests.seeact_offline.conftest import RESULT_FILES, Cli, Sample, contents

REPLY = "ELEMENT: A\nACTION: CLICK\nVALUE: None"


def words(sample: Sample, server: BatchServer, out: Path) -> list[object]:
    model = ["--model", "openai/m", "--base-url", server.base_url, "--cache", "off"]
    return ["eval", *sample.words, "--top-k", 6, "--group-size", 3, "--limit", 1, *model, "--out", out]


@pytest.mark.slow
def test_a_run_by_batches_ends_as_a_live_one(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "seeact_offline.runs.batches.run_batch", partial(run_batch, sleep=lambda seconds: asyncio.sleep(0))
    )
    with BatchServer(lambda body: REPLY) as server:
        live = cli(*words(sample, server, tmp_path / "live"))
        by_files = cli(*words(sample, server, tmp_path / "files"), "--batch", "submit", tmp_path / "waves")
    assert (live.status, by_files.status) == (0, 0), by_files.error
    assert by_files.out.partition("\n\nReport:")[0] == live.out.partition("\n\nReport:")[0]
    assert contents(tmp_path / "files", RESULT_FILES) == contents(tmp_path / "live", RESULT_FILES)


def test_an_export_says_what_is_to_be_sent(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with BatchServer(lambda body: REPLY) as server:
        outcome = cli(*words(sample, server, tmp_path / "run"), "--batch", "export", tmp_path / "waves")
        assert server.requests == []
    assert outcome.status == 0
    assert (tmp_path / "waves" / "wave-1" / "requests-001.jsonl").is_file()
    assert "wave-1" in outcome.out


@pytest.mark.parametrize("action", ["post", ""])
def test_an_unknown_action_is_refused(cli: Cli, sample: Sample, tmp_path: Path, action: str) -> None:
    with BatchServer(lambda body: REPLY) as server:
        error = cli(*words(sample, server, tmp_path / "run"), "--batch", action, tmp_path / "waves").error
    assert "--batch: expected one of export, import, submit" in error
