"""`cache`, and what runs share through it, with a real server that counts."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

import seeact_offline as so
from seeact_offline.files.store import Store
from seeact_offline.records import InputError
from tests.chat_server import Answer, ChatServer
from tests.seeact_offline.conftest import Cli, Sample

REPLY = "ELEMENT: A\nACTION: CLICK\nVALUE: None"


@pytest.fixture
def server():
    with ChatServer(lambda body: REPLY) as running:
        yield running


def run(sample: Sample, server: ChatServer, out: Path, **options) -> so.Run:
    settings = {"dataset": str(sample.dataset), "scores": sample.scores, "top_k": 5, "model": "openai/m"}
    given = {"base_url": server.base_url, "cache": out.parent / "store", **options}
    return so.evaluate(out=out, **(settings | given))


@pytest.mark.slow
def test_a_pilot_and_other_merge_rules_are_paid_for_once(sample: Sample, server: ChatServer, tmp_path: Path) -> None:
    run(sample, server, tmp_path / "pilot", limit=2)
    whole = run(sample, server, tmp_path / "whole", merge="first")
    paid = len(server.requests)
    other = run(sample, server, tmp_path / "other", merge="best-rank")
    assert len(server.requests) == paid
    assert other.results["usage"] == whole.results["usage"]
    assert other.results["usage"]["calls"] == paid


STORED: dict[str, tuple[dict[str, object], dict[str, object], int]] = {
    "by chance": ({"temperature": 1.0, "cache": None}, {}, 2),
    "by chance, in a named folder": ({"temperature": 1.0}, {}, 1),
    # tomorrow it may serve other weights under the same name
    "by a server of one's own": ({"cache": None}, {}, 2),
    "by the environment's server": ({"cache": None, "base_url": None}, {}, 2),
    "for the run alone": ({"cache": "off"}, {}, 2),
    "by another model": ({}, {"model": "openai/other"}, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize(("options", "changes", "times"), STORED.values(), ids=STORED)
def test_a_second_run_asks_anew_unless_the_replies_are_its_too(
    sample: Sample,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
    changes: dict[str, object],
    times: int,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    first = run(sample, server, tmp_path / "1", **options).results["usage"]["calls"]
    run(sample, server, tmp_path / "2", **options | changes)
    assert len(server.requests) == times * first
    assert (tmp_path / "1" / "calls.sqlite").is_file() is (times == 2 and not changes)


@pytest.mark.slow
def test_another_version_of_the_model_is_asked_anew(sample: Sample, server: ChatServer, tmp_path: Path) -> None:
    first = run(sample, server, tmp_path / "1", model_version="may").results["usage"]["calls"]
    run(sample, server, tmp_path / "2", model_version="june")
    run(sample, server, tmp_path / "3", model_version="may")
    assert len(server.requests) == 2 * first
    with pytest.raises(InputError, match="model_version differ"):
        run(sample, server, tmp_path / "1", model_version="june")


def test_a_refusal_is_an_answer_that_is_paid_for_once(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(lambda body: Answer(refusal="no")) as server:
        run(sample, server, tmp_path / "1")
        paid = len(server.requests)
        assert run(sample, server, tmp_path / "2").results["reply_failures"] == {"refused": paid}
        assert len(server.requests) == paid


def test_a_cache_folder_that_cannot_be_made_is_done_without(
    sample: Sample, server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEEACT_CACHE", str(tmp_path / "file"))
    so.evaluate(
        dataset=str(sample.dataset), scores=sample.scores, top_k=5, model=lambda messages: REPLY, out=tmp_path / "1"
    )
    assert (tmp_path / "1" / "calls.sqlite").is_file()


def test_a_run_that_was_answered_from_the_store_says_so(
    cli: Cli, sample: Sample, server: ChatServer, tmp_path: Path
) -> None:
    """What its figures cost and what was spent now are two numbers."""
    words = ("eval", *sample.words, "--top-k", 5, "--model", "openai/m", "--base-url", server.base_url)
    words += ("--price", "1,1", "--cache", tmp_path)
    assert cli(*words, "--out", tmp_path / "1").status == 0
    n, today = len(server.requests), str(datetime.now(UTC).date())
    outcome = cli(*words, "--out", tmp_path / "2")
    said = f"{n} of {n} replies from the store, oldest {today}; 0 sent, 0 USD spent"
    assert said in outcome.err
    assert f"| replies               | {said}" in (tmp_path / "2" / "report.md").read_text()
    first, second = (json.loads((tmp_path / one / "manifest.json").read_text())["replies"] for one in "12")
    spent = json.loads((tmp_path / "2" / "results.json").read_text())["usage"]["cost_usd"]
    assert first == {"replies": n, "from_store": 0, "oldest": None, "sent": n, "spent_usd": pytest.approx(spent)}
    assert second == {**first, "from_store": n, "oldest": today, "sent": 0, "spent_usd": 0.0}
    for name in ("predictions.jsonl", "results.json", "steps.jsonl"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


# --- the verb ---


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = Store(tmp_path / "kept" / "replies.sqlite", "cache")
    for number in range(3):
        store.put(str(number), "reply", "openai/gpt")
    store.close()
    return tmp_path / "kept"


def test_kept_replies_are_listed_by_model(cli: Cli, folder: Path) -> None:
    out = cli("cache", "list", "--cache", folder).out
    assert "openai/gpt" in out
    assert "| 3 " in out


def test_new_replies_are_not_pruned(cli: Cli, folder: Path) -> None:
    assert "0 replies dropped" in cli("cache", "prune", "--cache", folder).out
    assert "3 replies dropped" in cli("cache", "clear", "--cache", folder).out


@pytest.mark.parametrize("days", [1, 9_999_999])
def test_replies_that_were_not_used_for_long_are_pruned(cli: Cli, folder: Path, days: int) -> None:
    with closing(sqlite3.connect(folder / "replies.sqlite")) as db, db:
        db.execute("UPDATE completions SET made = '2001-01-01', used = '2001-01-01' WHERE key < '2'")
        db.execute("UPDATE completions SET made = '2001-01-01' WHERE key = '2'")
    dropped = 2 if days == 1 else 0
    assert f"{dropped} replies dropped" in cli("cache", "prune", "--days", days, "--cache", folder).out


def test_replies_of_one_model_can_be_listed_and_cleared(cli: Cli, folder: Path) -> None:
    with closing(Store(folder / "replies.sqlite", "cache")) as store:
        store.put("other", "reply", "openai/other")
    assert "openai/gpt" not in cli("cache", "list", "--model", "openai/other", "--cache", folder).out
    assert "1 replies dropped" in cli("cache", "clear", "--model", "openai/other", "--cache", folder).out
    assert "| 3 " in cli("cache", "list", "--cache", folder).out


@pytest.mark.parametrize("action", ["list", "prune", "clear"])
def test_a_damaged_file_locks_no_verb(cli: Cli, folder: Path, action: str) -> None:
    path = folder / "replies.sqlite"
    path.write_bytes(b"no data base" + path.read_bytes()[12:])
    outcome = cli("cache", action, "--cache", folder)
    assert outcome.status == 0
    assert "replies.sqlite was damaged: 0 replies of it are kept, the rest is in" in outcome.err
    assert len(list(folder.glob("*.damaged-*"))) == (0 if action == "clear" else 1)


def test_without_replies_there_is_nothing_to_list(cli: Cli, tmp_path: Path) -> None:
    assert "no replies are kept" in cli("cache", "list", "--cache", tmp_path).out


def test_what_calls_took_stands_beside_their_replies(sample: Sample, server: ChatServer, tmp_path: Path) -> None:
    first = run(sample, server, tmp_path / "1", limit=1).to_pandas("calls")
    assert list(first.attempts) == [1] * len(server.requests)
    assert (first.seconds > 0).all()
    kept = run(sample, server, tmp_path / "2", limit=1).to_pandas("calls")
    assert kept.attempts.isna().all()
    assert list(kept.reply) == list(first.reply)
