"""Every figure of cost is the ledger's: paid replies that nobody can use are in it, wherever they are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import seeact_offline as so
from seeact_offline.cli import main
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.models.budget import Ledger
from seeact_offline.pages.marks import MARK_KINDS
from seeact_offline.records import Call, CallRecord, Prediction, StepKey, Usage
from seeact_offline.results.recompute import rescore
from seeact_offline.runs.ablate import AXES, ablate, markup_variants
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.costs import paid_cost
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.markings import markings_of
from seeact_offline.runs.model_settings import ModelSettings, model_settings
from seeact_offline.tables.ablation import ablation_table
from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Sample, make_sample

PICK = "ELEMENT: A\nACTION: CLICK\nVALUE: None"
UNREADABLE = Answer(body=b"not JSON")
SMALL = {"split": "cross_task", "top_k": 6, "group_size": 3, "max_tokens": 200, "price": "0,1000", "max_retries": 0}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 2, 8, seed=7)))


def run(sample: Sample, out: Path, server: ChatServer, **options: Any) -> so.Run:
    usual = {**SMALL, "dataset": sample.dataset, "scores": sample.scores, "fail_on_error": None}
    return so.evaluate(out=out, model="openai/m", base_url=server.base_url, **{**usual, **options})


def ledger(run: so.Run) -> float:
    return Ledger(run.path / "spending.jsonl").spent


class Script:
    """Answers, but for the first requests, whose bodies cannot be read."""

    def __init__(self, n_unreadable: int) -> None:
        self.left = n_unreadable

    def __call__(self, body: dict[str, Any]) -> Answer | str:
        self.left -= 1
        return UNREADABLE if self.left >= 0 else PICK


def test_replies_that_nobody_can_read_are_calls_and_have_their_cost(sample: Sample, tmp_path: Path) -> None:
    """They were `calls 0, cost 0.0000`."""
    with ChatServer(lambda body: UNREADABLE) as server:
        found = run(sample, tmp_path / "run", server, concurrency=1)
        n_asked = len(server.requests)
    usage = found.results["usage"]
    # each may have cost as much as 200 tokens
    assert (usage["calls"], usage["unreported"], usage["cost_usd"]) == (n_asked, n_asked, pytest.approx(0.2 * n_asked))
    assert usage["cost_usd"] == pytest.approx(ledger(found))
    assert f"| cost, USD         | {0.2 * n_asked:.4f}" in found.report()
    assert sum(one.usage.cost_usd or 0 for one in found.predictions()) == pytest.approx(ledger(found))


def test_without_a_price_their_cost_is_not_known(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(lambda body: UNREADABLE) as server:
        found = run(sample, tmp_path / "run", server, price=None)
    assert found.results["usage"]["calls"] > 0
    assert found.results["usage"]["cost_usd"] is None


def test_failed_steps_that_are_asked_again_have_cost_what_they_did(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(Script(3)) as server:
        first = run(sample, tmp_path / "run", server, concurrency=1)
        assert first.n_failed == 3
        again = run(sample, tmp_path / "run", server, concurrency=1)
        paid = 3 * 0.2 + (len(server.requests) - 3) * 0.01
    assert again.n_failed == 0
    assert again.results["usage"]["cost_usd"] == pytest.approx(paid) == pytest.approx(ledger(again))


def test_an_attempt_that_a_killed_run_has_left_is_in_the_cost_however_it_is_scored(
    sample: Sample, tmp_path: Path
) -> None:
    with ChatServer(lambda body: PICK) as server:
        found = run(sample, tmp_path / "run", server)
        before = found.results["usage"]["cost_usd"]
        with (found.path / "spending.jsonl").open("a") as file:
            file.write('{"attempt": 999, "most": 0.5}\n')
        files = {}
        for name, finish in {
            "scored": lambda: rescore(found.path),
            "resumed": lambda: run(sample, tmp_path / "run", server),
        }.items():
            finish()
            files[name] = (found.path / "results.json").read_bytes()
    assert json.loads(files["scored"])["usage"]["cost_usd"] == pytest.approx(before + 0.5)
    assert files["scored"] == files["resumed"]


# --- a damaged ledger ---

CAP = 0.32
"""A call costs 0.01, and may cost 0.2: the run ends within a step."""
NUL = b"\0"


def _over_lines(change: Callable[[bytes], bytes], wanted: bytes) -> Callable[[bytes], bytes]:
    """`change`: of each line that holds this."""
    return lambda content: b"".join(
        change(line) if wanted in line else line for line in content.splitlines(keepends=True)
    )


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "deleted": lambda content: None,
    "emptied": lambda content: b"",
    "NULs": lambda content: NUL * len(content),
    "cut": lambda content: content[: len(content) // 3],
    "NULs over costs": _over_lines(lambda line: NUL * (len(line) - 1) + b"\n", b"cost"),
    "NULs over reservations": _over_lines(lambda line: NUL * len(line), b"most"),
    "half lines": _over_lines(lambda line: line[: len(line) // 2], b"cost"),
    "in the opposite order": lambda content: b"".join(reversed(content.splitlines(keepends=True))),
}


def settings_of(sample: Sample, out: Path, server: ChatServer, **options: Any) -> ModelSettings:
    config = EvalConfig(dataset=sample.dataset, scores=sample.scores, out=out, model="openai/m", **SMALL)
    return model_settings(config.changed(base_url=server.base_url, **options), RunFolder(out))


# without a store a ledger that is gone has the fewest witnesses, with one the most replies of others: both
@pytest.mark.parametrize(("damage", "cache"), [*zip(DAMAGES, cycle(["off", "shared"])), ("deleted", "shared")])
def test_whatever_becomes_of_the_ledger_the_limit_holds_and_no_kept_reply_is_forgotten(
    sample: Sample, tmp_path: Path, damage: str, cache: str
) -> None:
    """It said 0.018 of 0.134 USD, and the limit began at 0 again."""
    options: dict[str, Any] = {"max_cost": CAP, "concurrency": 1, "cache": "off" if cache == "off" else tmp_path}
    with ChatServer(lambda body: PICK) as server:
        # the replies of another run in the same store are not this one's
        run(sample, tmp_path / "other", server, **options, seed=3)
        assert server.requests
        n_other = len(server.requests)
        first = run(sample, tmp_path / "run", server, **options)
        billed = 0.01 * (len(server.requests) - n_other)
        assert not first.results["complete"]
        answered = sum(one.usage.cost_usd or 0 for one in first.predictions())
        file = first.path / "spending.jsonl"
        assert ledger(first) == pytest.approx(billed)
        # some are of a step that was not finished
        assert answered < billed - 1e-9
        changed = DAMAGES[damage](file.read_bytes())
        file.unlink() if changed is None else file.write_bytes(changed)
        # a reader knows the answers, though no replies of a step that was not finished
        rescore(first.path)
        assert json.loads((first.path / "results.json").read_text())["usage"]["cost_usd"] >= answered - 1e-9
        known = settings_of(sample, first.path, server, **options).ledger(RunFolder(first.path))
        assert known.spent >= billed - 1e-9
        again = run(sample, first.path, server, **options)
        in_all = 0.01 * (len(server.requests) - n_other)
    assert billed <= in_all <= ledger(again) + 1e-9
    assert in_all <= CAP
    kept = sum(one.usage.cost_usd or 0 for one in again.predictions())
    assert again.results["usage"]["cost_usd"] >= kept - 1e-9
    assert again.results["usage"]["cost_usd"] == pytest.approx(max(ledger(again), kept))


def test_a_run_that_starts_again_notes_nothing_in_a_whole_ledger(sample: Sample, tmp_path: Path) -> None:
    """Its repeats use its replies, and it those of another run; some of its own could not be read."""
    options: dict[str, Any] = {"cache": tmp_path / "cache", "concurrency": 1}
    with ChatServer(script := Script(0)) as server:
        other = run(sample, tmp_path / "other", server, limit=1, **options)
        script.left = 3
        for _ in range(2):
            found = run(sample, tmp_path / "run", server, repeats=2, **options)
        before, n_asked = (found.path / "spending.jsonl").read_bytes(), len(server.requests)
        run(sample, found.path, server, repeats=2, **options)
        assert len(server.requests) == n_asked
    assert (found.path / "spending.jsonl").read_bytes() == before
    assert b'"attempt":0' not in before
    assert ledger(found) + ledger(other) == pytest.approx(3 * 0.2 + (n_asked - 3) * 0.01)


def test_a_ledger_cut_or_blank_anywhere_says_no_less_than_the_kept_replies_have_cost(
    sample: Sample, tmp_path: Path
) -> None:
    with ChatServer(lambda body: PICK) as server:
        found = run(sample, tmp_path / "run", server, max_cost=CAP, concurrency=1)
        settings, billed = settings_of(sample, found.path, server), 0.01 * len(server.requests)
    file, folder = found.path / "spending.jsonl", RunFolder(found.path)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place])
        assert billed - 1e-9 <= settings.ledger(folder).spent <= billed + 0.2
    for number, line in enumerate(lines):
        for blank in (NUL * (len(line) - 1) + b"\n", NUL * len(line)):
            file.write_bytes(b"".join([*lines[:number], blank, *lines[number + 1 :]]))
            # the attempt of a lost outcome counts as reserved, and its kept reply not beside that
            usd = billed if b"most" in line else billed + 0.19
            assert settings.ledger(folder).spent == pytest.approx(usd)


def test_what_other_runs_have_paid_counts_beside_the_ledger(sample: Sample, tmp_path: Path) -> None:
    options: dict[str, Any] = {"cache": tmp_path / "cache"}
    with ChatServer(lambda body: PICK) as server:
        first = run(sample, tmp_path / "1", server, limit=1, **options)
        second = run(sample, tmp_path / "2", server, **options)
        n_asked = len(server.requests)
    assert second.results["usage"]["cost_usd"] == pytest.approx(0.01 * n_asked)
    assert second.results["usage"]["cost_usd"] == pytest.approx(ledger(first) + ledger(second))
    # nor are they its own where its ledger is lost
    paid = ledger(second)
    (second.path / "spending.jsonl").unlink()
    settings = settings_of(sample, second.path, server, **options)
    assert settings.ledger(RunFolder(second.path)).spent == pytest.approx(paid)


def test_repeats_have_a_cost_of_their_own(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(Script(2)) as server:
        found = run(sample, tmp_path / "run", server, repeats=2, concurrency=1)
        n_asked = len(server.requests)
    usage = found.results["usage"]
    assert usage["calls"] < n_asked
    assert usage["cost_usd"] == pytest.approx(2 * 0.2 + (usage["calls"] - 2) * 0.01)
    assert ledger(found) == pytest.approx(2 * 0.2 + (n_asked - 2) * 0.01)


def test_the_live_line_and_the_viewer_show_what_the_ledger_says(sample: Sample, tmp_path: Path) -> None:
    watch = TerminalWatch()
    with ChatServer(Script(3)) as server:
        run(sample, tmp_path / "run", server, concurrency=1)
        found = so.evaluate(
            out=tmp_path / "run", model="openai/m", base_url=server.base_url, watch=watch, fail_on_error=None,
            dataset=sample.dataset, scores=sample.scores, **SMALL,
        )  # fmt: skip
    assert watch._progress is not None
    assert watch._progress.tally.text.endswith(f"${ledger(found):.2f}")
    (found.path / "results.json").unlink()
    progress = pytest.importorskip("seeact_offline.viewer.run_data").read_run(found.path).progress
    assert progress is not None
    assert progress.cost_usd == pytest.approx(ledger(found))


@pytest.mark.slow
def test_the_total_of_an_ablation_is_its_ledgers(sample: Sample, tmp_path: Path) -> None:
    config = EvalConfig(
        dataset=sample.dataset, split="cross_task", model="openai/m", out=tmp_path / "run", price="0,1000",
        ranker="bundled", max_retries=0, fail_on_error=None, concurrency=1, max_tokens=200,
    )  # fmt: skip
    with ChatServer(Script(2)) as server:
        for _ in range(2):
            config = config.changed(base_url=server.base_url)
            ablate(
                config,
                AXES["markup"],
                rows := markup_variants(config, markings_of(MARK_KINDS[:2], ["bottom-left"], "plain")),
            )
    table = ablation_table("5", tmp_path / "run", [one.name for one in rows], True)
    assert table["usage"]["cost_usd"] == pytest.approx(Ledger(tmp_path / "run" / "spending.jsonl").spent)
    assert table["usage"]["cost_usd"] > sum(row["usage"]["cost_usd"] for row in table["rows"])


def test_a_ray_worker_has_paid_for_what_came_of_no_other_run() -> None:
    key, usage = StepKey("a", "b"), Usage(2, cost_usd=0.5)
    records = {
        "paid now": CallRecord(1, asked="1", usage=Usage(1, cost_usd=0.2)),
        "kept by a worker that died": CallRecord(0, asked="2", usage=Usage(1, cost_usd=0.1)),
        "kept when the run was killed": CallRecord(0, asked="4", usage=Usage(1, cost_usd=0.1)),
        "of another run": CallRecord(0, asked="3", from_store="2026-01-01", usage=Usage(1, cost_usd=0.1)),
    }
    calls = tuple(Call(0, turn, record) for turn, record in enumerate(records.values(), 1))
    found = Prediction(*key, None, "", "", ran=True, usage=usage, calls=calls)
    assert paid_cost(found, {"4"}) == pytest.approx(0.3)
    # a step that failed has paid too
    assert paid_cost(replace(found, ran=False, calls=()), {"4"}) == 0.5


def test_a_judge_counts_replies_that_nobody_can_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = pytest.importorskip("tests.seeact_offline.trajectories.test_judge").DONE
    pytest.importorskip("seeact_offline.trajectories").write_trajectories(tmp_path / "in", [done])
    with ChatServer(lambda body: UNREADABLE) as server:
        words = ["--model", "openai/judge", "--base-url", server.base_url, "--out", str(tmp_path / "out")]
        words += ["--price", "0,1000", "--max-tokens", "200", "--max-cost", "5"]
        assert main(["judge", str(tmp_path / "in"), *words, "--max-retries", "1"]) == 1
    (verdict,) = [json.loads(line) for line in (tmp_path / "out" / "verdicts.jsonl").read_text().splitlines()]
    said = capsys.readouterr().out
    assert (verdict["calls"], verdict["cost_usd"]) == (2, pytest.approx(0.4))
    assert "Spent on this folder: 0.4000 USD" in said
    assert " 0.4 " in said.splitlines()[2]
