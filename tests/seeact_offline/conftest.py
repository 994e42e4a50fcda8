"""The command run in this process, and small data sets to run it on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from socketserver import StreamRequestHandler
from tempfile import mkdtemp
from typing import Any

import pytest

from seeact_offline.cli import main
from seeact_offline.ranking import ScoreRow, write_scores
from seeact_offline.records import StepKey
from tests.pages import synthetic_rows, write_parquet

RESULT_FILES = ("predictions.jsonl", "steps.jsonl", "results.json", "report.md")
KEY = "sk-test-0123456789abcdefSECRET"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command did."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one sentence of a command that was refused."""
        lines = self.err.splitlines()
        assert self.status == 2, f"status {self.status}: {self.err}"
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: "), self.err
        assert not self.out
        return lines[0]


@dataclass(frozen=True, slots=True)
class Sample:
    """A data set and its scores, on disk."""

    dataset: Path
    scores: Path

    @property
    def words(self) -> list[str]:
        return ["--dataset", str(self.dataset), "--split", "cross_task", "--scores", str(self.scores)]


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`cli("eval", ...)` as the shell would run it."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        try:
            status = main(list(map(str, words)))
        except SystemExit as exit:
            status = int(exit.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture(autouse=True)
def away(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder of its own, so that no test can leave a file in the checkout; and no key."""
    monkeypatch.chdir(mkdtemp(dir=caches))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test server sends an answer in two parts; without this the second waits 40 ms for the client's receipt."""
    monkeypatch.setattr(StreamRequestHandler, "disable_nagle_algorithm", True)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Four tasks of three steps, twelve elements a page."""
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(4, 3, 12, seed=1)))


@pytest.fixture(scope="session")
def tall_sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Two tasks of two steps on pages so tall that groups of few elements are shown different parts of them."""
    return make_sample(tmp_path_factory.mktemp("tall"), list(synthetic_rows(2, 2, 100, seed=2)))


@pytest.fixture
def real(shared_step: Path) -> list[str]:
    """The options that name the real step with its published scores and replies."""
    return [
        *("--dataset", str(shared_step), "--split", "cross_domain", "--grounding", "choice"),
        *("--scores", str(shared_step / "scores_all_data.pkl")),
        *("--model", f"replay/{shared_step / 'replies_choice.jsonl'}"),
    ]


def make_sample(
    folder: Path, rows: Iterable[Mapping[str, Any]], scored: Iterable[Mapping[str, Any]] | None = None
) -> Sample:
    """Writes the rows as split `cross_task`, and made-up scores of `scored` (default: of the same rows)."""
    rows = list(rows)
    write_parquet(rows, folder / "data" / "test_task-00000-of-00001.parquet")
    scores = [line for row in (rows if scored is None else scored) for line in score_rows(row)]
    write_scores(folder / "scores.parquet", scores)
    return Sample(folder, folder / "scores.parquet")


def score_rows(row: Mapping[str, Any]) -> list[ScoreRow]:
    """Scores of a row's candidates that depend on their ids only."""
    key = StepKey(row["annotation_id"], row["action_uid"])
    ids = [json.loads(text)["backend_node_id"] for text in (*row["pos_candidates"], *row["neg_candidates"])]
    scores = {node: Random(f"{key}/{node}").random() for node in ids}
    ranked = sorted(scores, key=lambda node: -scores[node])
    return [ScoreRow(key, node, scores[node], rank) for rank, node in enumerate(ranked)]


def read_json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def contents(folder: Path, names: Iterable[str] | None = None) -> dict[str, bytes]:
    """The bytes of these files (default: of all), but for when and by which command a run was begun."""
    return {name: _lasting(folder / name) for name in names or sorted(path.name for path in folder.iterdir())}


def without_cost(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files without their figures of cost: an attempt that a killed process has sent is paid for, and in the ledger."""
    return {
        name: b"\n".join(line for line in content.split(b"\n") if b"USD" not in line and b"cost_usd" not in line)
        for name, content in files.items()
    }


def _lasting(path: Path) -> bytes:
    content = path.read_bytes()
    if path.name == "report.md":
        return content.partition(b"\n## How it was run")[0]
    if path.name == "manifest.json":
        manifest = json.loads(content)
        return json.dumps({name: value for name, value in manifest.items() if name != "made"}).encode()
    return content
