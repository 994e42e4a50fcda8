"""`train-ranker` on a few steps of the bundled sample."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from seeact_offline.cli import main, train_ranker
from seeact_offline.cli.train_ranker import TrainingStep, held_out_tasks
from seeact_offline.dataset import load_steps
from seeact_offline.ranking import PLACED
from seeact_offline.ranking.placed_texts import split_text
from seeact_offline.ranking.training import to_group
from seeact_offline.records import InputError


def steps() -> list[TrainingStep]:
    from ranker.pairs import PairGroup

    group = PairGroup("find", ("button",), ("div",))
    return [TrainingStep(f"task {i // 2}", f"site {i // 10}", group) for i in range(40)]


def test_group_of_a_step_holds_each_candidate_once() -> None:
    step = next(step for step in load_steps("sample", "train", limit=1) if step.truth.positives)
    group = to_group(step)
    assert len(group.positives) == len(step.truth.positives)
    assert len(group.texts) == len(step.candidates)
    assert group.query.startswith(f"task is: {step.task}")


def test_group_of_placed_texts_says_where_each_candidate_lies() -> None:
    step = next(step for step in load_steps("sample", "train", limit=1) if step.truth.positives)
    plain, placed = to_group(step), to_group(step, PLACED)
    assert all(text.startswith("[x") for text in placed.texts)
    assert [split_text(text).published for text in placed.texts] == list(plain.texts)


def test_held_out_share_is_of_whole_tasks_and_the_same_each_time() -> None:
    held = held_out_tasks(steps(), 0.25, ())
    assert len(held) == 5
    assert held == held_out_tasks(reversed(steps()), 0.25, ())


def test_held_out_websites_are_left_out_whole() -> None:
    assert held_out_tasks(steps(), 0.0, ("site 1",)) == {f"task {i}" for i in range(5, 10)}


def test_unknown_website_is_refused() -> None:
    with pytest.raises(InputError, match="--hold-out-sites: expected websites of the split"):
        held_out_tasks(steps(), 0.0, ("nowhere",))


def test_command_trains_a_small_ranker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seeact_offline.ranking.teacher.ROUNDS", 5)
    words = "train-ranker --small --limit 1 --epochs 1 --negatives 2 --max-tokens 160 --threads 1 --out"
    assert main([*words.split(), str(tmp_path / "ranker")]) == 0
    assert "trained on" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "ranker").iterdir()} >= {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert json.loads((tmp_path / "ranker" / "config.json").read_text())["text_form"] == "placed"


@pytest.mark.parametrize(
    ("words", "form"),
    [("", "plain"), ("--texts placed", "placed"), ("--small", "placed"), ("--small --texts plain", "plain")],
)
def test_texts_are_the_published_ones_unless_small_or_asked_for(words: str, form: str) -> None:
    parser = argparse.ArgumentParser()
    train_ranker.add_arguments(parser)
    assert train_ranker._form(parser.parse_args(["--out", "ranker", *words.split()])) == form


def test_folder_that_holds_a_model_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.safetensors").touch()
    assert main(["train-ranker", "--small", "--limit", "1", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: --out: expected a folder without a model")
