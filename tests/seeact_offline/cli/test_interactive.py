"""`seeact_offline.evaluate` as people call it, and the end of `eval`: what they see."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.records import Message
from seeact_offline.runs.watch import Watch
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, make_sample


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 2, 8, seed=7)))


@pytest.fixture
def small(sample: Sample, tmp_path: Path) -> dict[str, Any]:
    return {"dataset": sample.dataset, "scores": sample.scores, "top_k": 6, "out": tmp_path / "run"}


def broken(messages: Sequence[Message]) -> str:
    raise ValueError("my bug")


class Interrupting:
    """Answers twice, then somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: Sequence[Message]) -> str:
        self.calls += 1
        if self.calls > 4:
            raise KeyboardInterrupt
        return "ELEMENT: A\nACTION: CLICK\nVALUE: None"


@pytest.mark.parametrize(("options", "is_heard"), [({}, True), ({"watch": None}, False)])
def test_a_notebook_hears_of_progress_unless_it_asks_for_silence(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    options: dict[str, Any], is_heard: bool,
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: object()))
    so.evaluate(**small, **options)
    heard = capsys.readouterr()
    assert ("6/6 steps" in heard.err) == is_heard
    assert not heard.out


def test_a_program_hears_nothing_of_a_run_that_went_well(
    small: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    so.evaluate(**small)
    assert capsys.readouterr() == ("", "")


def test_the_first_exception_of_a_function_is_said_with_its_count(
    small: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A run whose function always raised once ended without a word."""
    so.evaluate(**small, model=broken)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("6 of 6 steps failed to run and count as wrong, 6 of them as the first")
    assert line.endswith("ValueError: my bug")


def test_a_run_shows_its_headline(small: dict[str, Any]) -> None:
    run = so.evaluate(**small)
    assert f"choice on cross_task: {run.results['n_steps']} steps of 3 tasks" in repr(run)
    assert repr(so.load_run(run.path)) == repr(run)
    (run.path / "results.json").write_text("{}")
    assert repr(so.load_run(run.path)) == f"<Run {str(run.path)!r}>"


def test_eval_ends_with_at_most_twenty_lines_and_verbose_prints_all(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    short = cli("eval", *sample.words, "--out", tmp_path / "run")
    assert len(short.out.splitlines()) <= 20
    for text in ("Element Accuracy", "Operation F1", "Step SR", "USD", f"Report: {tmp_path / 'run' / 'report.md'}"):
        assert text in short.out
    assert "recall@50" in cli("eval", *sample.words, "--out", tmp_path / "run", "--verbose").out


def test_another_configuration_has_a_default_folder_of_its_own(cli: Cli, sample: Sample) -> None:
    for words in [(), ("--limit", 1), ("--top-k", 4), ()]:
        assert cli("eval", *sample.words, *words).status == 0
    folders = sorted(path.name for path in Path("runs").iterdir())
    assert len(folders) == 3
    assert [name.removeprefix(folders[0]) for name in folders] == ["", "-2", "-3"]


GRID = ("eval", "--model", "builtin/lexical", "--model", "builtin/oracle")
MARKUP = ("ablate", "--over", "markup", "--kinds", "letter", "--positions", "bottom-left")


@pytest.mark.parametrize(
    ("words", "others"),
    [
        (GRID, [("--top-k", 4), ("--grounding", "annotation")]),
        ([*MARKUP], [("--top-k", 4), ("--seed", 3)]),
    ],
    ids=["grid", "ablation"],
)
def test_another_grid_or_ablation_has_a_default_folder_of_its_own(
    cli: Cli, sample: Sample, words: Sequence[str], others: list[tuple[str, object]]
) -> None:
    for other in [(), *others, ()]:
        assert cli(*words, *sample.words, "--limit", 1, *other).status == 0
    folders = sorted(path.name for path in Path("runs").iterdir())
    assert [name.removeprefix(folders[0]) for name in folders] == ["", "-2", "-3"]


def test_an_interrupt_says_what_is_done_kept_and_spent(small: dict[str, Any]) -> None:
    heard: list[str] = []

    class Noted(Watch):
        def note(self, text: str) -> None:
            heard.append(text)

    with pytest.raises(KeyboardInterrupt):
        so.evaluate(**small, model=Interrupting(), concurrency=1, watch=Noted())
    assert any(
        "of 6 steps done" in text and "4 replies kept in" in text and "cost not known" in text for text in heard
    ), heard
