"""`train-ranker` on a few steps of the bundled sample."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.cli import main, train_ranker
from seeact_offline.dataset import load_steps
from seeact_offline.ranking import candidate_texts
from seeact_offline.ranking.pair_groups import SMALL, TrainingSettings, to_group

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def few_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_ranker, "TRIED_STEPS", 1)


def settings(words: str) -> TrainingSettings:
    parser = argparse.ArgumentParser()
    train_ranker.add_arguments(parser)
    return train_ranker._settings(parser.parse_args(["--out", "ranker", *words.split()]))


def test_group_of_a_step_holds_each_candidate_once() -> None:
    step = next(step for step in load_steps("sample", "train", limit=1) if step.truth.positives)
    group = to_group(step)
    assert len(group.positives) == len(step.truth.positives)
    assert len(group.texts) == len(step.candidates)
    assert group.query.startswith(f"task is: {step.task}")


def test_group_of_a_step_holds_the_texts_that_are_scored() -> None:
    step = next(step for step in load_steps("sample", "train", limit=1) if step.truth.positives)
    texts = candidate_texts(step)
    assert set(to_group(step).positives) == {texts[node] for node in step.truth.positives}
    assert sorted(to_group(step).texts) == sorted(texts.values())


def test_what_is_left_out_is_as_published() -> None:
    assert settings("") == TrainingSettings()


def test_what_is_left_out_of_a_small_one_is_its_own_recipe() -> None:
    assert settings("--small") == SMALL


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (
            "--epochs 2 --negatives 9 --batch 8 --accumulate 4",
            {"epochs": 2, "negatives": 9, "batch": 8, "accumulate": 4},
        ),
        ("--learning-rate 1e-4 --max-tokens 128", {"learning_rate": 1e-4, "max_tokens": 128}),
        (
            "--pair-order query-text --bf16 --seed 0 --threads 2",
            {"pair_order": "query-text", "bf16": True, "threads": 2},
        ),
        ("--distinct-negatives", {"distinct_negatives": True}),
    ],
)
@pytest.mark.parametrize(("start", "usual"), [("", TrainingSettings()), ("--small ", SMALL)])
def test_options_change_the_recipe(start: str, usual: TrainingSettings, words: str, changed: dict[str, Any]) -> None:
    assert settings(start + words) == dataclasses.replace(usual, **changed)


def test_command_trains_a_small_ranker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "train-ranker --small --limit 1 --epochs 1 --negatives 2 --max-tokens 160 --threads 1 --out"
    assert main([*words.split(), str(tmp_path / "ranker")]) == 0
    out, err = capsys.readouterr()
    assert "trained on" in out
    reading, tried, _, training, told, *_ = [line for line in err.splitlines() if not line.startswith("reading: ")]
    assert re.fullmatch(r"tried after each epoch on 1 step of cross_task, alone and fused with bm25", tried)
    assert re.match(r"recall@10/50 over 1 step: own [\d./]+, own\+bm25 [\d./]+, bm25 [\d./]+$", told)
    assert (reading.startswith("reading "), reading.endswith(", the first task")) == (True, True)
    assert training.startswith("training: ")
    assert not (tmp_path / "ranker" / "checkpoints").exists()
    assert {path.name for path in (tmp_path / "ranker").iterdir()} >= {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_a_trained_ranker_ranks(tmp_path: Path) -> None:
    """Left to the published texts and types: nothing in its config asks for others."""
    words = "train-ranker --small --limit 1 --epochs 1 --negatives 1 --max-tokens 160 --threads 1 --out"
    main([*words.split(), str(tmp_path / "ranker")])
    config = json.loads((tmp_path / "ranker" / "config.json").read_text())
    assert (config["model_type"], config["type_vocab_size"]) == ("deberta-v2", 2)
    ranked = ["rank", "--split", "cross_task", "--limit", "1", "--ranker", str(tmp_path / "ranker")]
    assert main([*ranked, "--out", str(tmp_path / "scores.parquet")]) == 0


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("model.safetensors", "--out: expected a folder without a model"),
        ("manifest.json", "OUT holds a run; name another folder for --out"),
        ("results.json", "OUT holds a run; name another folder for --out"),
    ],
)
def test_folder_that_holds_something_else_is_one_sentence(
    file: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).touch()
    assert main(["train-ranker", "--small", "--limit", "1", "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err.splitlines()[-1].replace(str(tmp_path), "OUT")
    assert error.startswith(f"error: {sentence}")
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_a_base_that_is_no_model_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    words = ["train-ranker", "--limit", "1", "--base", str(tmp_path / "empty"), "--out", str(tmp_path / "ranker")]
    assert main(words) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: --base: expected a readable config.json in {tmp_path / 'empty'}, got ")
