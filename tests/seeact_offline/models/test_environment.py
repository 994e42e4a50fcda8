"""The key and the address of a server, from the environment or from `.env`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from seeact_offline.files.redaction import redact
from seeact_offline.models import ModelOptions, open_model
from seeact_offline.models.address import find_server, variable
from seeact_offline.records import ModelSpecError
from tests.chat_server import ChatServer, script
from tests.seeact_offline.models.asking import ask_one

KEY, OTHER = "sk-file-0123456789abcdef", "sk-shell-0123456789abcdef"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an environment that says nothing."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        f"OPENAI_API_KEY={KEY}",
        f"export OPENAI_API_KEY={KEY}",
        f'  OPENAI_API_KEY = "{KEY}"  # mine',
        f"OPENAI_API_KEY='{KEY}'",
        f"OPENAI_API_KEY={KEY} # mine",
        f"\ufeffOPENAI_API_KEY={KEY}",
        f"# OPENAI_API_KEY=old\nOPENAI_API_KEY={KEY}\r\nOTHER=1",
        f"OPENAI_API_KEY=old\nOPENAI_API_KEY={KEY}",
    ],
)
def test_a_key_is_read_from_the_file(folder: Path, line: str) -> None:
    (folder / ".env").write_text(line)
    assert variable("OPENAI_API_KEY") == KEY


def test_a_key_and_an_address_of_the_file_are_used_and_hidden(folder: Path) -> None:
    with ChatServer(script("Hi.")) as server:
        (folder / ".env").write_text(f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL={server.base_url}\n")
        ask_one(open_model("openai/m", ModelOptions()))
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert redact(f"my key is {KEY}") == "my key is ***"


def test_the_environment_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text(f"OPENAI_API_KEY={KEY}")
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    assert variable("OPENAI_API_KEY") == OTHER


def test_nothing_else_is_read_and_the_environment_left_alone(folder: Path) -> None:
    (folder / ".env").write_text(f"HTTP_PROXY=http://evil\nOPENAI_API_KEY={KEY}\nOPENAI_LOG=debug")
    before = dict(os.environ)
    assert variable("OPENAI_API_KEY") == KEY
    assert variable("OPENAI_LOG") == ""
    assert dict(os.environ) == before


def test_a_file_cannot_send_the_key_of_the_environment_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    (folder / ".env").write_text("OPENAI_BASE_URL=http://evil.example/v1")
    with pytest.raises(ModelSpecError, match=r"^OPENAI_BASE_URL is in .env alone, and the API key is not"):
        find_server(None)
    assert find_server("http://localhost:8000/v1").host == "localhost"


NONSENSE = b"OPENAI_API_KEY=" + b" " * 90_000 + b"\n" + b"\xff\x00=\n" * 1000 + b"A=" + b" #" * 1900


@pytest.mark.parametrize(
    "make",
    [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.write_bytes(NONSENSE)],
    ids=["folder", "pipe", "endless", "nonsense"],
)
def test_a_file_that_cannot_be_read_says_nothing(folder: Path, make: Callable[[Path], None]) -> None:
    make(folder / ".env")
    assert variable("OPENAI_API_KEY") == ""


@pytest.mark.parametrize("url", ["http://h/" + "a" * 200_000, "http://" + "a" * 200_000, "http://h?" + "k=v&" * 50_000])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_url_that_is_too_long_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, folder: Path, url: str, is_named: bool
) -> None:
    """Looking for keys in it took an hour."""
    if not is_named:
        monkeypatch.setenv("OPENAI_BASE_URL", url[:100_000])
    with pytest.raises(ModelSpecError, match=r"expected a URL of at most 4,000 characters, got one of [12]00,00"):
        find_server(url if is_named else None)
