"""No secret of a run reaches its files or the terminal, whatever the server says and however the URL was written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.chat_server import Answer, ChatServer
from tests.seeact_offline.conftest import KEY, Cli, Outcome, Sample, contents, read_json, read_lines

SMALL = ("--top-k", "6", "--group-size", "3", "--limit", "1", "--max-retries", "0", "--model", "openai/test")
PASSWORD = "hunter2/correct horse"
TOKEN = "tok4711zebra"
FINAL = "ELEMENT: A\nACTION: CLICK\nVALUE: None"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def run(cli: Cli, sample: Sample, tmp_path: Path) -> Callable[..., Outcome]:
    return lambda *words: cli("eval", *sample.words, *SMALL, "--out", tmp_path / "run", *words)


def left(outcome: Outcome, folder: Path) -> str:
    """All that the run wrote and printed."""
    files = contents(folder) if folder.is_dir() else {}
    return "\n".join([outcome.out, outcome.err, *(data.decode("latin-1") for data in files.values())])


def echo(server: ChatServer) -> Answer:
    """Refuses, and quotes the URL that was asked for."""
    return Answer(f"no route to {server.base_url.removesuffix('/v1')}{server.paths[-1]}", status=400)


def with_user(server: ChatServer, user: str) -> str:
    return server.base_url.replace("://", f"://{user}@")


def test_a_query_key_that_the_server_echoes_is_not_kept(run: Callable[..., Outcome], tmp_path: Path) -> None:
    with ChatServer(lambda body: echo(server)) as server:
        outcome = run("--base-url", f"{server.base_url}?key={TOKEN}")
    assert server.paths[0] == f"/v1/chat/completions?key={TOKEN}"
    assert "no route to" in read_lines(tmp_path / "run" / "predictions.jsonl")[0]["detail"]
    assert TOKEN not in left(outcome, tmp_path / "run")


def test_a_short_query_key_is_not_kept_either(run: Callable[..., Outcome], tmp_path: Path) -> None:
    with ChatServer(lambda body: echo(server)) as server:
        outcome = run("--base-url", f"{server.base_url}?k=ab1")
    assert "k=ab1" not in left(outcome, tmp_path / "run")


def test_user_and_password_on_the_command_line_are_refused(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run("--base-url", "http://me:hunter2@127.0.0.1:9/v1")
    assert "OPENAI_BASE_URL" in outcome.error
    assert "hunter2" not in left(outcome, tmp_path / "run")
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_user_and_password_come_from_the_environment(
    run: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(lambda body: FINAL) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", with_user(server, f"me:{quote(PASSWORD, safe='')}"))
        outcome = run()
    assert outcome.status == 0
    assert server.headers[0]["authorization"].startswith("Basic ")
    assert read_json(tmp_path / "run" / "manifest.json")["identity"]["base_url"] == server.base_url
    for spelling in (PASSWORD, quote(PASSWORD, safe=""), "hunter2", server.headers[0]["authorization"][6:]):
        assert spelling not in left(outcome, tmp_path / "run")


def test_a_reply_of_a_bad_shape_does_not_show_the_password(
    run: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(lambda body: Answer(body=b'{"choices": []}')) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", with_user(server, "me:hunter22"))
        outcome = run()
    assert "not a chat completion" in read_lines(tmp_path / "run" / "predictions.jsonl")[0]["detail"]
    assert "hunter22" not in left(outcome, tmp_path / "run")


@pytest.mark.parametrize("variable", [True, False], ids=["environment", "option"])
@pytest.mark.parametrize("mark", "/?#")
def test_a_password_that_ends_the_host_too_early_is_refused_unseen(
    run: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, variable: bool
) -> None:
    url = f"http://me:1234{mark}hunter22@127.0.0.1:9/v1"
    if variable:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    outcome = run() if variable else run("--base-url", url)
    assert "OPENAI_BASE_URL" in outcome.error or "--base-url" in outcome.error
    assert "hunter22" not in left(outcome, tmp_path / "run")
    assert not (tmp_path / "run" / "manifest.json").exists()


@pytest.mark.parametrize("secret", [KEY, "9f86d081884c7d659a2feaa0c55ad015"], ids=["the API key", "another one"])
def test_a_key_in_the_path_is_not_kept(run: Callable[..., Outcome], tmp_path: Path, secret: str) -> None:
    with ChatServer(lambda body: echo(server)) as server:
        outcome = run("--base-url", server.base_url.replace("/v1", f"/{secret}/v1"))
    assert server.paths[0] == f"/{secret}/v1/chat/completions"
    assert "/***/v1" in read_json(tmp_path / "run" / "manifest.json")["identity"]["base_url"]
    assert secret not in left(outcome, tmp_path / "run")


@pytest.mark.parametrize(
    "url",
    [
        f"ftp://me:{TOKEN}@host/v1",
        f"https//host/v1?key={TOKEN}",
        f"http://[bad/{TOKEN}4711zebra4711",
        f"localhost:8000/v1?key={TOKEN}",
        f"http://host:port{TOKEN}@x",
        f"{KEY}",
        f"http:/{KEY}/v1",
    ],
)
def test_a_url_that_cannot_be_used_is_not_shown_whole(run: Callable[..., Outcome], tmp_path: Path, url: str) -> None:
    outcome = run("--base-url", url)
    assert "--base-url" in outcome.error
    assert TOKEN not in outcome.err
    assert KEY not in outcome.err


@pytest.mark.parametrize(
    "spelling",
    [str, lambda key: quote(key.replace("S", "%53"), safe="%"), lambda key: "".join(f"%{ord(c):02X}" for c in key)],
)
def test_a_model_that_says_the_key_is_not_quoted(
    run: Callable[..., Outcome], tmp_path: Path, spelling: Callable[[str], str]
) -> None:
    """Neither in the predictions nor in the store of paid replies."""

    def answer(body: dict[str, Any]) -> str:
        return f"I was sent {spelling(KEY)}.\n{FINAL}"

    with ChatServer(answer) as server:
        outcome = run("--base-url", server.base_url)
    assert "I was sent ***." in read_lines(tmp_path / "run" / "predictions.jsonl")[0]["groups"][0]["replies"][0]
    assert spelling(KEY) not in left(outcome, tmp_path / "run")


def test_a_traceback_shows_no_secret(sample: Sample, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*sample.words, *SMALL, "--base-url", f"http://me:{TOKEN}@host/v1", "--protocol", "seeact", "--debug"]
    command = [sys.executable, "-m", "seeact_offline.cli", "eval", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=repo, check=False)
    assert "Traceback" in done.stderr
    assert TOKEN not in done.stderr


def test_what_libraries_log_holds_no_secret(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The HTTP library logs whole headers."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer(lambda body: "ELEMENT: A\nACTION: CLICK\nVALUE: None") as server:
        words = ("--model", "openai/m", "--base-url", server.base_url, "--limit", 1, "--log-level", "debug")
        outcome = cli("eval", *sample.words, "--top-k", 4, *words, "--out", tmp_path / "run")
    assert "DEBUG" in outcome.err
    assert KEY not in outcome.err
