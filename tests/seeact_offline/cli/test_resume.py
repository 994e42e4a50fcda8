"""Runs that were killed, torn or stopped go on: nothing is paid for twice, and the files end up the same."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.conftest import RESULT_FILES, Cli, Sample, contents, read_json, without_cost

REPO = Path(__file__).parents[3]
SMALL = ("--top-k", "6", "--group-size", "3")
START_S = 60.0
"""A busy machine is no failure."""


def answer(body: dict[str, Any]) -> str:
    """Depends on all that was sent."""
    digest = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    plan = f"Plan {digest.hex()[:8]}."
    return plan if len(body["messages"]) < 4 else f"{plan}\nELEMENT: {'AB'[digest[0] % 2]}\nACTION: CLICK\nVALUE: None"


class KillingAnswer:
    """Answers until request number `at`, upon which it kills the process that asks."""

    signal = signal.SIGKILL

    def __init__(self, at: int) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.known = threading.Event()
        # set once `process` is
        self._at = at
        self._count = 0
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> str:
        with self._lock:
            self._count += 1
            if self._count == self._at:
                assert self.known.wait(START_S)
                assert self.process is not None
                self.process.send_signal(self.signal)
        return answer(body)


def words(sample: Sample, server: ChatServer, out: Path, concurrency: int = 1) -> list[str]:
    model = ["--model", "openai/gpt-4o", "--base-url", server.base_url, "--price", "1,1"]
    return ["eval", *sample.words, *SMALL, *model, "--concurrency", str(concurrency), "--out", str(out)]


def run_until_ended(command: list[str], script: KillingAnswer, status: int) -> str:
    """Runs the command in a process of its own; what it prints."""
    # a test run in the background ignores Ctrl-C, and so would the process
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        [sys.executable, "-m", "seeact_offline.cli", *command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": str(REPO)}, preexec_fn=listening,
    ) as process:  # fmt: skip
        script.process = process
        script.known.set()
        printed, _ = process.communicate(timeout=START_S)
    assert process.returncode == status, printed
    return printed.decode()


def counted(requests: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(body, sort_keys=True) for body in requests)


class InterruptingAnswer(KillingAnswer):
    """Sends Ctrl-C at request number `at`, whose answer, as those beside it, comes only then."""

    signal = signal.SIGINT

    def __call__(self, body: dict[str, Any]) -> str:
        reply = super().__call__(body)
        if self._count >= self._at:
            time.sleep(0.5)
        return reply


@pytest.fixture
def whole(cli: Cli, tall_sample: Sample, tmp_path: Path) -> Counter[str]:
    """The requests of an uninterrupted run, whose files lie in `whole/`."""
    with ChatServer(answer) as server:
        assert cli(*words(tall_sample, server, tmp_path / "whole")).status == 0
    return counted(server.requests)


def killed_then_resumed(cli: Cli, sample: Sample, out: Path, at: int, concurrency: int = 1) -> ChatServer:
    script = KillingAnswer(at)
    with ChatServer(script) as server:
        command = words(sample, server, out, concurrency)
        run_until_ended(command, script, -signal.SIGKILL)
        assert cli(*command).status == 0
    return server


def test_calls_in_flight_when_a_run_is_interrupted_are_kept(
    cli: Cli, tall_sample: Sample, tmp_path: Path, whole: Counter[str]
) -> None:
    """Those at hand were asked again, four at four at once; the resumed run told the whole run's calls as sent now."""
    script = InterruptingAnswer(12)
    with ChatServer(script) as server:
        command = words(tall_sample, server, tmp_path / "run", concurrency=4)
        told = run_until_ended(command, script, 130)
        n_before = len(server.requests)
        resumed = cli(*command)
    assert "calls in flight are waited for" in told
    assert f"{n_before} replies kept in" in told
    assert f"; {len(server.requests) - n_before} sent and " in resumed.err + resumed.out
    assert counted(server.requests) == whole


KILLS = {
    "in the first turn of all": 1,
    "between the turns of a group": 2,
    "between the groups of a step": 3,
    "in a later step": 10,
}


@pytest.mark.slow
@pytest.mark.parametrize("at", KILLS.values(), ids=KILLS.keys())
def test_a_killed_run_asks_again_only_for_what_was_never_answered(
    cli: Cli, tall_sample: Sample, tmp_path: Path, whole: Counter[str], at: int
) -> None:
    server = killed_then_resumed(cli, tall_sample, tmp_path / "run", at)
    unanswered = counted(server.requests[at - 1 : at])
    same_server = counted(server.requests)
    assert same_server == whole + unanswered
    run, whole = (without_cost(contents(tmp_path / name, RESULT_FILES)) for name in ("run", "whole"))
    assert run == whole


@pytest.mark.slow
def test_a_run_killed_with_many_calls_in_flight_ends_up_the_same(
    cli: Cli, tall_sample: Sample, tmp_path: Path, whole: Counter[str]
) -> None:
    server = killed_then_resumed(cli, tall_sample, tmp_path / "run", at=9, concurrency=4)
    again = counted(server.requests) - whole
    # at most what was in flight when it was killed
    assert again.total() <= 4
    run, whole = (without_cost(contents(tmp_path / name, RESULT_FILES)) for name in ("run", "whole"))
    assert run == whole


@pytest.fixture
def finished(cli: Cli, sample: Sample, tmp_path: Path) -> list[object]:
    """The command of a finished run in `run/`."""
    command = ["eval", *sample.words, *SMALL, "--out", tmp_path / "run"]
    assert cli(*command).status == 0
    return command


@pytest.mark.parametrize("cut", [1, 20, 300])
def test_a_torn_last_line_is_repaired(cli: Cli, finished: list[object], tmp_path: Path, cut: int) -> None:
    before = contents(tmp_path / "run")
    path = tmp_path / "run" / "predictions.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    outcome = cli(*finished)
    assert outcome.status == 0
    assert "11 steps are done already" in outcome.err
    assert contents(tmp_path / "run") == before


LOST = {
    "after the last line": lambda data, last: data + b"\0" * 100,
    "in place of its end": lambda data, last: data[:-60] + b"\0" * 60,
    "in place of all of it": lambda data, last: data[:-last] + b"\0" * last,
    "in place of its beginning": lambda data, last: data[:-last] + b"\0" * 60 + data[60 - last :],
}


@pytest.mark.parametrize("lose", LOST.values(), ids=LOST.keys())
def test_nul_bytes_at_the_end_are_a_torn_line(
    cli: Cli, finished: list[object], tmp_path: Path, lose: Callable[[bytes, int], bytes]
) -> None:
    """Where power was lost, a file's last block may come back as zeros."""
    before = contents(tmp_path / "run")
    path = tmp_path / "run" / "predictions.jsonl"
    data = path.read_bytes()
    path.write_bytes(lose(data, len(data.splitlines(keepends=True)[-1])))
    assert cli(*finished).status == 0
    assert contents(tmp_path / "run") == before


def test_a_file_torn_in_its_first_line_is_begun_anew(cli: Cli, finished: list[object], tmp_path: Path) -> None:
    before = contents(tmp_path / "run")
    path = tmp_path / "run" / "predictions.jsonl"
    path.write_bytes(path.read_bytes()[:50])
    assert cli(*finished).status == 0
    assert contents(tmp_path / "run") == before


def test_lines_in_any_order_are_put_into_data_set_order(cli: Cli, finished: list[object], tmp_path: Path) -> None:
    before = contents(tmp_path / "run")
    path = tmp_path / "run" / "predictions.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    cli(*finished)
    assert contents(tmp_path / "run") == before


def test_a_damaged_line_in_the_middle_is_refused(cli: Cli, finished: list[object], tmp_path: Path) -> None:
    path = tmp_path / "run" / "predictions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{torn\n", *lines[2:]]))
    error = cli(*finished).error
    assert "--out" in error
    assert "line 2" in error


def test_lost_results_are_made_again(cli: Cli, finished: list[object], tmp_path: Path) -> None:
    before = contents(tmp_path / "run")
    for name in ("steps.jsonl", "results.json", "report.md"):
        (tmp_path / "run" / name).unlink()
    cli(*finished)
    assert contents(tmp_path / "run") == before


@pytest.mark.slow
def test_a_run_stopped_by_its_cost_goes_on_with_more(
    cli: Cli, tall_sample: Sample, tmp_path: Path, whole: Counter[str]
) -> None:
    with ChatServer(answer) as server:
        command = words(tall_sample, server, tmp_path / "run")
        assert cli(*command, "--max-cost", 0.0075).status == 1
        assert cli(*command).status == 0
    assert counted(server.requests) == whole
    assert contents(tmp_path / "run", RESULT_FILES) == contents(tmp_path / "whole", RESULT_FILES)


@pytest.mark.slow
def test_a_cost_limit_loses_nothing_that_was_done_beyond_it(
    cli: Cli, tall_sample: Sample, tmp_path: Path, whole: Counter[str]
) -> None:
    """Steps finish in any order; those beyond the first that was left over were once dropped from the file."""
    with ChatServer(answer) as server:
        command = words(tall_sample, server, tmp_path / "run")
        cli(*command)
        path = tmp_path / "run" / "predictions.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[2:]))
        (tmp_path / "run" / "calls.sqlite").unlink()
        assert cli(*command, "--max-cost", 0.0001).status == 1
    assert read_json(tmp_path / "run" / "results.json")["n_steps"] == 2
    assert len(path.read_bytes().splitlines()) == 2


def test_a_recording_made_by_a_run_gives_the_same_predictions(
    cli: Cli, finished: list[object], sample: Sample, tmp_path: Path
) -> None:
    recording = f"replay/{tmp_path / 'run' / 'predictions.jsonl'}"
    assert cli("eval", *sample.words, *SMALL, "--model", recording, "--out", tmp_path / "again").status == 0
    names = ("predictions.jsonl", "steps.jsonl")
    assert contents(tmp_path / "again", names) == contents(tmp_path / "run", names)


@pytest.mark.slow
def test_what_a_server_does_not_take_is_said_in_the_manifest_for_good(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    def picky(body: dict[str, Any]) -> Answer | str:
        return Answer("Unsupported parameter: 'seed'", status=400) if "seed" in body else answer(body)

    with ChatServer(picky) as server:
        command = ["eval", *sample.words, *SMALL, "--model", "openai/test", "--base-url", server.base_url]
        outcome = cli(*command, "--out", tmp_path / "run")
        assert "the server does not take seed" in outcome.err
        before = contents(tmp_path / "run", RESULT_FILES)
        assert cli(*command, "--out", tmp_path / "run").status == 0
    assert read_json(tmp_path / "run" / "manifest.json")["settings"]["dropped_parameters"] == ["seed"]
    assert contents(tmp_path / "run", RESULT_FILES) == before


@pytest.mark.parametrize("column", ["cleaned_html", "neg_candidates", "screenshot"])
def test_a_run_is_not_resumed_on_changed_data_of_the_same_size(cli: Cli, tmp_path: Path, column: str) -> None:
    rows = list(synthetic_rows(2, 2, 6, seed=1))
    data = write_parquet(rows, tmp_path / "test_task.parquet")
    command = ["eval", "--dataset", data, "--split", "cross_task", "--ranker", "bm25", "--out", tmp_path / "run"]
    assert cli(*command, "--limit", "1").status == 0
    write_parquet([changed(row, column) for row in rows], data)
    assert cli(*command).error.startswith(
        f"error: the run in {tmp_path / 'run'} began with other rows, pages or pictures; name another folder for --out"
    )


def changed(row: dict[str, Any], column: str) -> dict[str, Any]:
    if column == "screenshot":
        return row | {column: {"bytes": row[column]["bytes"][::-1], "path": None}}
    return row | {column: row[column][::-1]}


def edit_manifest(run: Path, **changes: Any) -> None:
    manifest = read_json(run / "manifest.json")
    (run / "manifest.json").write_text(json.dumps(manifest | changes))


def test_a_run_of_another_version_is_resumed_with_a_remark(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    command = ["eval", *sample.words, *SMALL, "--out", tmp_path / "run"]
    assert cli(*command, "--limit", "1").status == 0
    edit_manifest(tmp_path / "run", packages={"seeact-offline": "0.0.1"})
    assert f"seeact-offline 0.0.1 began the run in {tmp_path / 'run'}" in cli(*command).err


@pytest.mark.parametrize("command", ["eval", "score"])
def test_a_manifest_of_an_unknown_schema_is_refused(cli: Cli, sample: Sample, tmp_path: Path, command: str) -> None:
    run = tmp_path / "run"
    words = ["eval", *sample.words, *SMALL, "--out", run]
    assert cli(*words).status == 0
    edit_manifest(run, schema=2)
    assert (
        "expected a manifest of schema 1, got schema 2" in cli(*(words if command == "eval" else ["score", run])).error
    )
