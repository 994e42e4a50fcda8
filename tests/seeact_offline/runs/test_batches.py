"""A run whose calls are files: the same as a live one, whatever happens to the files on their way."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.records import InputError, ModelSpecError, ModelStopped
from seeact_offline.runs.batches import BatchReport, run_batch
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.strategy_opening import without_ignored
from seeact_offline.runs.watch import Watch
from seeact_offline.runs.waves import ShardLimits
from tests.batch_server import BatchServer, Carry, carried_out, jsonl
from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import KEY, RESULT_FILES, Sample, contents, make_sample

FILES = (*RESULT_FILES, "targets.jsonl", "manifest.json")
LINE = re.compile(r"wave (\d+): ")
BATCHES = Path("b")
"""The folder of waves. Every test works in a folder of its own."""


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 2, 10, seed=7)))


def reply(body: dict[str, Any]) -> Answer | str:
    """Depends on all that was sent; one in four declines."""
    digest = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    if digest[4] % 4 == 0:
        return [
            Answer(refusal="No."),
            Answer("cut", finish_reason="length"),
            Answer("", finish_reason="content_filter"),
        ][digest[3] % 3]
    plan = f"Plan {digest.hex()[:8]}."
    return plan if len(body["messages"]) < 4 else f"{plan}\nELEMENT: {'ABC'[digest[0] % 3]}\nACTION: CLICK\nVALUE: None"


def config(sample: Sample, base_url: str | None, out: str, **options: Any) -> EvalConfig:
    """A run with a store of paid replies of its own."""
    given = {
        "dataset": sample.dataset, "scores": sample.scores, "split": "cross_task", "top_k": 10, "group_size": 4,
        "model": "openai/m", "base_url": base_url, "cache": "off", "price": so.models.Price(1, 2), "ask_equal": True, "out": Path(out),
    }  # fmt: skip
    return without_ignored(EvalConfig.of(**(given | options)))


@pytest.fixture
def server() -> Iterable[BatchServer]:
    with BatchServer(reply) as server:
        yield server


@pytest.fixture
def run(sample: Sample, server: BatchServer) -> EvalConfig:
    """A run on the server, into the folder `run`."""
    return config(sample, server.base_url, "run")


def export(run: EvalConfig, **options: Any) -> BatchReport:
    return run_batch(run, "export", BATCHES, **options)


def read_replies(run: EvalConfig) -> BatchReport:
    return run_batch(run, "import", BATCHES)


class Heard(Watch):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def lines(paths: Iterable[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def carry_out(report: BatchReport, carry: Carry = reply, name: str = "came-{}.jsonl") -> Path:
    """As a node would that was given the files; a file for all of them, beside them."""
    path = report.files[0].parent / name.format(report.wave)
    path.write_bytes(jsonl(carried_out(lines(report.files), carry)))
    return path


def by_waves(config: EvalConfig, carry: Carry = reply, **options: Any) -> list[BatchReport]:
    """Exports, carries out and imports until the run has ended."""
    reports = [export(config, **options)]
    while reports[-1].run is None:
        carry_out(reports[-1], carry)
        read_replies(config)
        reports.append(export(config, **options))
        assert len(reports) < 10
    return reports


def same_as_live(sample: Sample, server: ChatServer, **options: Any) -> None:
    """The run in `run` has the files of a live one."""
    so.evaluate(config(sample, server.base_url, "live", **options))
    assert contents(Path("run"), FILES) == contents(Path("live"), FILES)


# --- waves ---


@pytest.mark.slow
def test_waves_end_as_a_live_run_does_without_a_call(run: EvalConfig, sample: Sample, server: BatchServer) -> None:
    reports = by_waves(run)
    assert [dict(report.turns) for report in reports[:2]] == [{"turn 1": 18}, {"turn 2": 12}]
    # final rounds: turn 1, turn 2, and the end
    assert len(reports) == 5
    assert reports[1].text.startswith("wave 2: 12 requests (12 of turn 2) of 4 steps in 1 file, ")
    assert server.requests == []
    same_as_live(sample, server)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        *({"ask_equal": False}, {"ask_equal": False, "concurrency": 1}),
        *({"turns": 1}, {"batching": "shared-turn1"}, {"no_image": True}, {"image_format": "png"}, {"merge": "first"}),
        *({"grounding": name, "scores": None} for name in ("attributes", "pixel")),
        {"grounding": "annotation"},
    ],
)
def test_every_way_of_asking_goes_through_files(options: dict[str, Any], sample: Sample, server: BatchServer) -> None:
    by_waves(config(sample, server.base_url, "run", **options))
    same_as_live(sample, server, **options)


@pytest.mark.slow
def test_a_request_in_a_file_is_the_one_that_a_live_run_sends(
    run: EvalConfig, sample: Sample, server: BatchServer
) -> None:
    reports = by_waves(run)
    filed = lines(path for report in reports for path in report.files)
    so.evaluate(config(sample, server.base_url, "live"))
    assert sorted(json.dumps(line["body"]) for line in filed) == sorted(json.dumps(body) for body in server.requests)
    assert {(line["method"], line["url"]) for line in filed} == {("POST", "/v1/chat/completions")}
    assert all(len(line["custom_id"]) <= 64 for line in filed)


@pytest.mark.slow
def test_what_a_live_run_has_paid_is_in_no_file_and_the_other_way_round(
    sample: Sample, server: BatchServer, tmp_path: Path
) -> None:
    shared = {"cache": tmp_path / "cache"}
    so.evaluate(config(sample, server.base_url, "pilot", limit=1, **shared))
    paid = len(server.requests)
    report = export(config(sample, server.base_url, "run", **shared))
    assert report.requests == 12
    carry_out(report)
    read_replies(config(sample, server.base_url, "run", **shared))
    so.evaluate(config(sample, server.base_url, "run", **shared))
    first = [body for body in server.requests[paid:] if len(body["messages"]) == 2]
    # only those of final rounds are left to ask
    assert len(first) <= 4


def test_files_are_the_same_bytes_whatever_the_concurrency(sample: Sample, server: BatchServer, tmp_path: Path) -> None:
    for concurrency in (1, 5):
        run = config(sample, server.base_url, f"run{concurrency}", concurrency=concurrency)
        run_batch(run, "export", tmp_path / f"b{concurrency}")
    assert contents(tmp_path / "b1" / "wave-1") == contents(tmp_path / "b5" / "wave-1")


def test_files_are_cut_by_bytes_and_by_requests(run: EvalConfig) -> None:
    by_count = export(run, limits=ShardLimits(requests=5))
    assert [len(lines([path])) for path in by_count.files] == [5, 5, 5, 3]
    most = max(path.stat().st_size for path in by_count.files) // 2
    by_bytes = export(run, limits=ShardLimits(bytes=most))
    assert all(path.stat().st_size <= most for path in by_bytes.files)
    assert by_bytes.wave == 1
    assert lines(by_bytes.files) == lines(sorted((BATCHES / "wave-1").glob("requests-*.jsonl")))
    index = json.loads((BATCHES / "wave-1" / "wave.json").read_text())
    assert [shard["sha256"] for shard in index["shards"]] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in by_bytes.files
    ]
    assert index["requests"] == sum(shard["requests"] for shard in index["shards"]) == 18


def test_a_wave_that_was_not_finished_is_written_anew(run: EvalConfig) -> None:
    wave = BATCHES / "wave-1"
    export(run, limits=ShardLimits(requests=5))
    whole = contents(wave)
    (wave / "wave.json").unlink()
    (wave / "requests-004.jsonl").write_text("{")
    (wave / "requests-005.jsonl").write_text("{")
    export(run, limits=ShardLimits(requests=5))
    assert contents(wave) == whole


def test_other_settings_than_those_of_the_wave_are_refused(
    run: EvalConfig, sample: Sample, server: BatchServer
) -> None:
    carry_out(export(run))
    with pytest.raises(InputError, match=r"max_tokens.*4096.* where it is now .*7"):
        read_replies(config(sample, server.base_url, "run", max_tokens=7))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"model": "builtin/lexical"}, "model"),
        ({"repeats": 1}, "repeats"),
        ({"engine": "ray"}, "engine"),
        ({"max_cost": 1.0}, "max_cost"),
    ],
)
def test_what_cannot_be_asked_in_files_is_refused_before_a_folder_is_made(
    options: dict[str, Any], named: str, sample: Sample, server: BatchServer
) -> None:
    with pytest.raises(InputError) as caught:
        export(config(sample, server.base_url, "run", **options))
    assert caught.value.argument == named
    assert not (BATCHES).exists()


def test_replies_that_were_not_imported_are_not_asked_for_again(run: EvalConfig) -> None:
    carry_out(export(run))
    with pytest.raises(InputError, match=r"^import .* first$"):
        export(run)


# --- what comes back ---


def test_all_that_goes_wrong_on_the_way_is_counted_and_comes_with_the_next_wave(run: EvalConfig) -> None:
    report = export(run)
    rows = carried_out(lines(report.files), lambda body: "Plan.")
    rows[0] = {**rows[0], "response": {"status_code": 500, "body": {"error": {"message": "down"}}}}
    rows[1] = {**rows[1], "response": None, "error": {"code": "batch_expired", "message": "too late"}}
    rows[2]["response"]["body"] = {"choices": []}
    del rows[3]
    rows.append({**rows[8], "custom_id": "0" * 64})
    rows.append(rows[9])
    content = jsonl(rows) + b"[]\n\xff\xfe\n" + jsonl(rows[10:11])[:-9]
    # anywhere in the folder will do
    (BATCHES / "all.jsonl").write_bytes(content)
    read = read_replies(run)
    assert (read.read, read.known, read.lost) == (14, 0, 1)
    assert read.failed == {"server_error": 1, "batch_expired": 1, "api_error": 1}
    assert read.odd == {"unknown": 1, "duplicate": 1, "malformed": 3}
    assert any("line 22 of all.jsonl, cut short" in problem for problem in read.problems)
    assert any("batch_expired: line 2 of all.jsonl: too late" in problem for problem in read.problems)
    again = read_replies(run)
    assert (again.read, again.known, again.lost, again.failed) == (0, 14, 1, read.failed)
    turns = export(run).turns
    assert turns == {"turn 1": 4, "turn 2": 14}


@pytest.mark.slow
def test_faults_of_every_wave_leave_no_trace_in_the_end(run: EvalConfig, sample: Sample, server: BatchServer) -> None:
    tried: set[str] = set()

    def faulty(body: dict[str, Any]) -> Answer | str | None:
        text = json.dumps(body)
        kind = hashlib.sha256(text.encode()).digest()[5] % 4
        if text in tried or kind == 0:
            return reply(body)
        tried.add(text)
        return [None, Answer("busy", status=429), Answer("down", status=503)][kind - 1]

    by_waves(run, faulty)
    same_as_live(sample, server)


def test_a_reply_to_what_was_never_asked_is_not_kept(run: EvalConfig) -> None:
    report = export(run)
    rows = carried_out(lines(report.files)[:1], reply)
    (BATCHES / "other.jsonl").write_bytes(jsonl([{**rows[0], "custom_id": "f" * 64}]))
    assert read_replies(run).odd == {"unknown": 1}
    assert export(run).requests == report.requests


def test_a_line_without_end_is_passed_over(run: EvalConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seeact_offline.runs.waves.MAX_REPLY_BYTES", 3000)
    report = export(run)
    rows = carried_out(lines(report.files), lambda body: "Plan.")
    (BATCHES / "long.jsonl").write_bytes(jsonl(rows[:1]) + b"x" * 10_000 + b"\n" + jsonl(rows[1:]))
    read = read_replies(run)
    assert (read.read, read.lost, read.odd) == (18, 0, {"malformed": 1})


def test_a_request_that_the_server_refuses_for_good_fails_its_step_by_name(run: EvalConfig) -> None:
    def refusing(body: dict[str, Any]) -> Answer | str:
        too_long = hashlib.sha256(json.dumps(body["messages"][:2]).encode()).digest()[1] % 5 == 0
        return (
            Answer("the prompt is too long", status=400)
            if too_long
            else "Plan.\nELEMENT: A\nACTION: CLICK\nVALUE: None"
        )

    ended = by_waves(run, refusing)[-1].run
    assert ended is not None
    assert 0 < ended.results["failures"]["bad_request"] == ended.n_failed < 6


@pytest.mark.slow
def test_a_parameter_of_ours_that_the_server_refuses_is_left_out_of_the_next_wave(run: EvalConfig) -> None:
    def picky(body: dict[str, Any]) -> Answer | str:
        if "seed" in body:
            return Answer("Unsupported parameter: 'seed'", status=400, param="seed", code="unsupported_parameter")
        return reply(body)

    carry_out(export(run), picky)
    read = read_replies(run)
    assert (read.dropped, read.given_up) == (("seed",), 0)
    again = read_replies(run)
    assert (again.dropped, again.given_up, again.failed) == ((), 0, {"bad_request": 18})
    report = export(run)
    assert report.requests == 18
    assert all("seed" not in line["body"] for line in lines(report.files))
    carry_out(report, picky)
    assert read_replies(run).dropped == ()
    ended = by_waves(run, picky)[-1].run
    assert ended is not None
    assert ended.manifest["settings"]["dropped_parameters"] == ["seed"]


def of_vllm(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As `vllm run-batch` writes them (vllm/entrypoints/openai/run_batch.py): its errors stand beside an empty response."""
    for row in rows:
        if row["response"]["status_code"] != 200:
            row["error"] = row["response"].pop("body")
            row["response"]["body"] = None
    return rows


def test_what_vllm_writes_is_read(run: EvalConfig) -> None:
    report = export(run)
    answers = iter(
        [Answer("the prompt is longer than max_model_len", status=400), *["Plan."] * 16, Answer("", status=400)]
    )
    rows = of_vllm(carried_out(lines(report.files), lambda body: next(answers)))
    rows[-1]["error"] = "EngineDeadError"
    (BATCHES / "wave-1" / "output.jsonl").write_bytes(jsonl(rows))
    read = read_replies(run)
    assert (read.read, read.failed, read.given_up) == (16, {"bad_request": 1, "api_error": 1}, 1)


# --- submit ---


def submit(config: EvalConfig, **options: Any) -> BatchReport:
    return run_batch(config, "submit", BATCHES, sleep=at_once, **options)


async def at_once(seconds: float) -> None:
    """Sleeps for no time."""


@pytest.mark.slow
def test_submit_goes_from_wave_to_wave_until_the_run_has_ended(
    run: EvalConfig, sample: Sample, server: BatchServer
) -> None:
    heard = Heard()
    report = submit(run, watch=heard, limits=ShardLimits(requests=10))
    assert report.run is not None
    assert server.requests == []
    # two files of turn 1, two of turn 2, one each of the final rounds
    assert len(server.uploads) == len(server.batches) == 6
    assert [LINE.match(note)[1] for note in heard.notes if LINE.match(note)] == [*"11223344"]  # type: ignore[index]
    same_as_live(sample, server)


@pytest.mark.slow
def test_expired_and_failed_batches_go_into_the_next_wave(sample: Sample) -> None:
    begun: set[str] = set()

    def late(body: dict[str, Any]) -> Answer | str | None:
        text = json.dumps(body)
        if text in begun or len(text) % 2:
            return reply(body)
        begun.add(text)
        return None

    with BatchServer(reply, late) as server:
        server.fails = ["Enqueued token limit reached"]
        heard = Heard()
        run = config(sample, server.base_url, "run")
        report = submit(run, watch=heard, limits=ShardLimits(requests=10))
        assert report.run is not None
        assert "requests-001.jsonl: failed: Enqueued token limit reached" in heard.notes
        assert {batch["status"] for batch in server.batches.values()} == {"failed", "expired", "completed"}
        same_as_live(sample, server)


def test_a_wave_that_brings_nothing_ends_it(run: EvalConfig, sample: Sample) -> None:
    with BatchServer(reply, lambda body: Answer("down", status=500)) as server:
        report = submit(config(sample, server.base_url, "run"))
    assert (report.run, report.failed, len(server.batches)) == (None, {"server_error": 18}, 1)


class Killed(BaseException):
    """As by a signal."""


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2, *(pytest.param(at, marks=pytest.mark.nightly) for at in (4, 5, 7, 9, 11, 12))])
def test_a_submission_that_is_killed_anywhere_neither_uploads_nor_begins_anything_twice(
    at: int, sample: Sample
) -> None:
    """The server has done what it was asked when the process is killed, which does not hear of it."""
    limits, count = ShardLimits(requests=10), 0
    with BatchServer(reply) as server:
        run = config(sample, server.base_url, "run", merge="first")

        def kill(method: str, path: str, content: bytes) -> Answer:
            nonlocal count
            count += 1
            answer = server._endpoint(method, path, content)
            return Answer(hang_up=True) if count == at else answer

        async def killed(seconds: float) -> None:
            if count == at:
                raise Killed

        server._others = kill
        with pytest.raises(Killed):
            run_batch(run, "submit", BATCHES, sleep=killed, limits=limits)
        report = submit(run, limits=limits)
        assert report.run is not None
        assert len(server.uploads) == len(server.batches) == 4
        same_as_live(sample, server, merge="first")


@pytest.mark.slow
def test_a_batch_that_failed_is_not_taken_for_that_of_the_next_wave_which_holds_the_same(
    run: EvalConfig, server: BatchServer
) -> None:
    server.fails = ["Enqueued token limit reached"]
    assert submit(run).run is None
    server.faults = {"POST /files": [Answer(hang_up=True)], "POST /batches": [Answer(hang_up=True)]}
    assert submit(run).run is not None
    assert contents(BATCHES / "wave-1", ["requests-001.jsonl"]) == contents(BATCHES / "wave-2", ["requests-001.jsonl"])
    assert len(server.uploads) == len(server.batches) == 5


@pytest.mark.slow
def test_a_submission_that_is_killed_once_it_has_read_the_replies_goes_on(
    run: EvalConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took a wave without a new reply for one that had brought nothing."""

    def kill(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("seeact_offline.runs.waves.Wave.close", kill)
        with pytest.raises(Killed):
            submit(run)
    assert submit(run).run is not None


@pytest.mark.slow
# a call that has been carried out though its answer says nothing is the one that could be carried out twice
@pytest.mark.parametrize(
    ("call", "fault"),
    [
        *product(["POST /files", "POST /batches"], [Answer(hang_up=True), Answer(body=b"<html>")]),
        ("GET /files", Answer("busy", status=503)),
        ("GET /batches", Answer(hang_up=True)),
    ],
)
def test_a_call_that_fails_is_repeated_without_doing_anything_twice(
    run: EvalConfig, fault: Answer, call: str, sample: Sample, server: BatchServer
) -> None:
    server.faults = {call: [fault]}
    assert submit(config(sample, server.base_url, "run", merge="first")).run is not None
    assert len({entry["filename"] for entry in server.uploads.values()}) == len(server.uploads) == len(server.batches)


def test_a_wave_under_way_is_not_written_anew(run: EvalConfig, server: BatchServer) -> None:
    server.faults = {"GET /batches": [Answer("no", status=403)]}
    with pytest.raises(ModelStopped, match="forbidden: Error code: 403 - no"):
        submit(run)
    with pytest.raises(InputError, match="submit again to resume it"):
        export(run)


@pytest.mark.slow
def test_a_file_that_is_not_as_it_was_exported_is_not_sent(run: EvalConfig, server: BatchServer) -> None:
    server.faults = {"POST /files": [Answer("no", status=403)]}
    with pytest.raises(ModelStopped):
        submit(run)
    with (BATCHES / "wave-1" / "requests-001.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(InputError, match="is not as it was exported; export the wave again"):
        submit(run)


def test_a_server_that_is_not_there_is_not_waited_for(run: EvalConfig, server: BatchServer) -> None:
    server.close()
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    with pytest.raises(ModelStopped, match="connection_failed"):
        run_batch(run, "submit", BATCHES, sleep=wait)
    assert sum(waited) < 5


def test_a_redirect_is_not_followed(run: EvalConfig, server: BatchServer) -> None:
    with ChatServer(reply) as other:
        moved = Answer("", status=307, headers={"Location": f"{other.base_url}/files"})
        server.faults = {"POST /files": [moved]}
        with pytest.raises(ModelStopped, match="redirected"):
            submit(run)
    assert other.requests == []


def test_no_secret_is_in_any_file(sample: Sample, tmp_path: Path) -> None:
    def telling(body: dict[str, Any]) -> Answer:
        return Answer(f"Incorrect key {KEY}", status=400)

    with BatchServer(reply, telling) as server:
        heard = Heard()
        report = submit(config(sample, f"{server.base_url}?key=tok4711zebra", "run"), watch=heard)
        assert all(path.endswith("key=tok4711zebra") for path in server.paths)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    left = "\n".join([report.text, *heard.notes, *(path.read_bytes().decode("latin-1") for path in files)])
    assert "Incorrect key ***" in left
    assert KEY not in left
    assert "tok4711zebra" not in left


def test_two_at_once_are_one_too_many(run: EvalConfig) -> None:
    second: list[InputError] = []

    async def meanwhile(seconds: float) -> None:
        with pytest.raises(InputError, match="another process is at work") as caught:
            submit(run)
        second.append(caught.value)

    assert run_batch(run, "submit", BATCHES, sleep=meanwhile).run is not None
    assert second


def test_without_a_key_for_openai_nothing_is_begun(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelSpecError):
        export(config(sample, None, "run"))
    assert not (BATCHES).exists()


@pytest.mark.slow
def test_batches_are_sent_with_the_headers_of_live_calls(
    server: BatchServer, run: EvalConfig, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By organization and project a server knows whom to bill."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Cost-Centre: 7\nX-Team: seeact")
    so.evaluate(config(sample, server.base_url, "live", limit=1))
    submit(run)
    names = ("authorization", "openai-organization", "openai-project", "x-cost-centre", "x-team")
    live, *batch = [{name: one.get(name) for name in names} for one in (server.headers[0], *server.other_headers)]
    assert live["openai-project"] == "proj-1"
    assert batch
    assert all(one == live for one in batch)
