"""`--model FILE.py:NAME`: a provider, a class, an object or a function from one file outside the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, make_sample, read_json

CODE = '''
"""One file of somebody's, outside the package."""

from seeact_offline.models import Provider
from seeact_offline.records import Completion, Usage


class Parrot:
    """Always says one text."""

    def __init__(self, text="ELEMENT: A, ACTION: CLICK"):
        self.text = text

    async def complete(self, request):
        return Completion(self.text, Usage(calls=1))

    async def aclose(self):
        pass


def say(messages):
    return "ELEMENT: A, ACTION: CLICK"


parrot = Parrot()
PROVIDER = Provider(
    usage=("TEXT",),
    open=lambda name, options: Parrot(name),
    identity=lambda name, options: {"model": f"parrot/{name}"},
)
'''


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(2, 1, 8, seed=7)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


@pytest.mark.parametrize("name", ["PROVIDER/ELEMENT: A, ACTION: CLICK", "Parrot", "parrot", "say"])
def test_a_model_of_a_file_is_run(cli: Cli, sample: Sample, tmp_path: Path, file: Path, name: str) -> None:
    outcome = cli("eval", *sample.words, "--model", f"{file}:{name}", "--out", tmp_path / "run")
    assert outcome.status == 0, outcome.err
    results = read_json(tmp_path / "run" / "results.json")
    assert results["model"] == f"mine.py:{name}"
    assert results["usage"]["calls"] > 0
    assert str(tmp_path) not in str(read_json(tmp_path / "run" / "manifest.json")["identity"])


@pytest.mark.parametrize("name", ["PROVIDER/ELEMENT: A, ACTION: CLICK", "parrot", "say"])
def test_changed_code_is_another_run(cli: Cli, sample: Sample, tmp_path: Path, file: Path, name: str) -> None:
    words = ("eval", *sample.words, "--model", f"{file}:{name}", "--out", tmp_path / "run")
    assert cli(*words).status == 0
    assert "steps are done already" in cli(*words).err
    file.write_text(CODE.replace("one text", "a text"))
    outcome = cli(*words)
    assert outcome.status == 2
    assert "code differ" in outcome.error


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Nobody", "--model: expected the name of an object in {file}, got Nobody"),
        ("say/more", "--model: expected mine.py:say alone, which is no Provider, got {file}:say/more"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_in_one_sentence(
    cli: Cli, sample: Sample, tmp_path: Path, file: Path, name: str, said: str
) -> None:
    outcome = cli("eval", *sample.words, "--model", f"{file}:{name}", "--out", tmp_path / "run")
    assert outcome.status == 2
    assert said.format(file=file) in outcome.error
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_missing_is_refused_in_one_sentence(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    outcome = cli("eval", *sample.words, "--model", f"{tmp_path}/none.py:say", "--out", tmp_path / "run")
    assert outcome.status == 2
    assert f"cannot read {tmp_path}/none.py: No such file" in outcome.error


def test_a_provider_of_an_installed_package_is_named_like_any_other(
    cli: Cli, sample: Sample, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "their-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[seeact_offline.providers]\nparrot = mine:PROVIDER\n")
    monkeypatch.syspath_prepend(tmp_path)
    outcome = cli("eval", *sample.words, "--model", "parrot/ELEMENT: A, ACTION: CLICK", "--out", tmp_path / "run")
    assert outcome.status == 0, outcome.err
    assert read_json(tmp_path / "run" / "results.json")["model"] == "parrot/ELEMENT: A, ACTION: CLICK"
