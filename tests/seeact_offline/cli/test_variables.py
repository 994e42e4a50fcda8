"""Options of the model from variables and from `.env`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.seeact_offline.conftest import Cli


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made_by(cli: Cli, *words: object) -> tuple[str, str]:
    """The model and the command in the manifest of a run of one task."""
    done = cli("eval", "--limit", 1, "--out", "run", *words)
    assert done.status == 0, done.error
    manifest = json.loads(Path("run/manifest.json").read_text())
    return manifest["settings"]["model"], manifest["made"]["command"]


@pytest.mark.parametrize("where", ["process", "file"])
def test_a_variable_names_the_model_and_the_manifest_tells_of_it(
    where: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "process":
        monkeypatch.setenv("SEEACT_MODEL", "builtin/oracle")
    else:
        Path(".env").write_text("SEEACT_MODEL=builtin/oracle\n")
    model, command = made_by(cli)
    assert model == "builtin/oracle"
    assert command.startswith("SEEACT_MODEL=builtin/oracle seeact-offline eval ")


@pytest.mark.parametrize("config", [False, True])
def test_what_is_typed_and_a_config_file_win(config: bool, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEACT_MODEL", "builtin/oracle")
    Path("run.yaml").write_text("model: builtin/lexical\n")
    words = ("--config", "run.yaml") if config else ("--model", "builtin/lexical")
    assert made_by(cli, *words)[0] == "builtin/lexical"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("SEEACT_TEMPERATURE", "warm", "SEEACT_TEMPERATURE: expected a number of at least 0, got warm"),
        ("SEEACT_IMAGE_DETAIL", "none", "SEEACT_IMAGE_DETAIL: expected one of auto, low, high, got none"),
    ],
)
def test_a_value_that_the_option_does_not_take_names_the_variable(
    name: str, value: str, sentence: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    done = cli("eval", "--limit", 1, "--out", "run")
    assert (done.status, sentence in done.error) == (2, True), done.error


def test_an_address_of_the_file_never_gets_the_key_of_the_process(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-shell-0123456789abcdef")
    Path(".env").write_text("SEEACT_BASE_URL=http://127.0.0.1:9/v1\n")
    done = cli("eval", "--model", "openai/m", "--limit", 1, "--out", "run")
    assert (done.status, "SEEACT_BASE_URL is in .env alone" in done.error) == (2, True), done.error


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/v1?key=abcdefgh12345678zz", "http://me:abcdefgh12345678zz@127.0.0.1:9/v1"]
)
@pytest.mark.parametrize("is_typed", [False, True])
def test_secrets_of_an_address_are_written_nowhere_though_the_model_asks_no_server(
    url: str, is_typed: bool, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--base-url", url) if is_typed else ()
    if not is_typed:
        monkeypatch.setenv("SEEACT_BASE_URL", url)
    done = cli("eval", "--limit", 1, "--out", "run", *words)
    assert done.status == 0, done.error
    written = "".join(path.read_text() for path in Path("run").glob("*.*") if path.suffix in (".json", ".jsonl", ".md"))
    assert "abcdefgh12345678zz" not in written + done.out + done.err
    assert "BASE_URL=" in written or "--base-url" in written
