"""Whatever a file that an option names is or holds, the command ends with one sentence, and soon."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import cycle, product, repeat
from pathlib import Path

import pytest

from tests.annexes import needs
from tests.finished_runs import make_run
from tests.seeact_offline.conftest import Cli, Sample

OPTIONS: dict[str, tuple[str, ...]] = {
    "eval --config": ("eval", "--config", "{}"),
    "eval --tasks": ("eval", "--tasks", "{}"),
    "eval --step": ("eval", "--step", "@{}", "--out", "{}.out"),
    "eval --exclude-flagged": ("eval", "--exclude-flagged", "{}"),
    "eval --oracle-file": ("eval", "--grounding", "oracle", "--oracle-file", "{}"),
    "eval --price": ("eval", "--price", "{}"),
    "eval --demonstrations": ("eval", "--grounding", "mindact", "--layout", "chat", "--demonstrations", "{}"),
    "eval --model": ("eval", "--model", "replay/{}"),
    "eval --scores": ("eval", "--scores", "{}"),
    "record": ("record", "{}", "--out", "{}.out"),
    "score": ("score", "{}", "--out", "{}.out"),
    "score --format": ("score", "{}", "--format", "mindact", "--out", "{}.out", "--split", "cross_task"),
    "tables": ("tables", "--check", "{}"),
}


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def _deep(path: Path) -> None:
    path.write_text("[" * 1_000_000)


def _quite_deep(path: Path) -> None:
    path.write_text(f'{{"annotation_id": "a", "action_uid": {"[" * 500}{"]" * 500}}}\n')


def _digits(path: Path) -> None:
    path.write_text(f'{{"annotation_id": {"9" * 100_000}}}\n')


OF_ANNEXES = {"record": needs("recorder"), "score --format": needs("importers")}
MAKERS = (_device, Path.mkdir, _huge, _deep, _quite_deep, _digits)


# each with a pipe, which would be waited for without end, and with one of the others
@pytest.mark.parametrize(
    ("option", "make"),
    [
        pytest.param(option, make, marks=OF_ANNEXES.get(option, ()))
        for option, make in [*zip(OPTIONS, repeat(_pipe)), *zip(OPTIONS, cycle(MAKERS))]
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(
    cli: Cli, sample: Sample, tmp_path: Path, option: str, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "named.json"
    make(path)
    verb, *more = (word.format(path) for word in OPTIONS[option])
    data = sample.words if verb == "eval" else sample.words[:2] if "--format" in more else []
    error = cli(verb, *data, *more).error
    # any text is a list of ids, of which the data set has none
    assert "named.json" in error or error.startswith(("error: --tasks: ", "error: --step: "))
    assert len(error) < 2100


OF_A_RUN = ("manifest.json", "predictions.jsonl", "targets.jsonl", "results.json", "steps.jsonl")
VERBS = (("score",), ("compare", "b"), ("tables", "--table", "2"))


# each file made in each way, for one of the verbs in turn
@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        (name, make, words)
        for (name, make), words in zip(product(OF_A_RUN, (_pipe, _device, Path.mkdir, _huge, _deep)), cycle(VERBS))
    ],
)
def test_a_file_of_a_run_that_cannot_be_used_is_one_sentence_or_not_needed(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    name: str,
    make: Callable[[Path], None],
) -> None:
    monkeypatch.chdir(tmp_path)
    for run in "ab":
        make_run(tmp_path / run)
    (tmp_path / "a" / name).unlink(missing_ok=True)
    make(tmp_path / "a" / name)
    outcome = cli(*words, "a")
    assert outcome.status in (0, 1) or name in outcome.error or "a" in outcome.error
