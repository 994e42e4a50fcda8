"""`train-ranker` on a few steps of the bundled sample, and on made-up ones with a base so small that it takes a moment."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load_file

from seeact_offline.cli import main, train_ranker
from seeact_offline.cli.parser import Parser
from seeact_offline.dataset import load_steps, open_split
from seeact_offline.ranking import candidate_texts
from seeact_offline.ranking.trainable import SmallModel
from seeact_offline.records import Diverged, InputError
from seeact_offline.training import ranker_tuning
from seeact_offline.training.ranker_tuning import (
    SMALL,
    GroupTexts,
    RankerTraining,
    StoredGroups,
    TrainingSettings,
    to_group,
)
from seeact_offline.training.training_rows import parts_of, prepare
from tests.conftest import REPO
from tests.pages import write_jsonl
from tests.seeact_offline.training.conftest import rows_of, write_dataset
from tests.seeact_offline.training.test_flan_t5 import Killed, KilledAt, weights
from tests.together import run_together

pytestmark = pytest.mark.slow

TINY = SmallModel(vocab_size=400, hidden_size=32, layers=2, heads=2, intermediate_size=32, max_tokens=64, dropout=0.1)
QUICK = TrainingSettings(epochs=3, negatives=3, batch=4, learning_rate=3e-3, max_tokens=64, seed=1, threads=1)
EPOCH = 8
"""Steps of the optimizer."""


@pytest.fixture(autouse=True)
def few_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranker_tuning, "TRIED_STEPS", 1)


def settings(words: str) -> TrainingSettings:
    parser = Parser()
    train_ranker.add_arguments(parser)
    return train_ranker.training_of(parser.parse_args(["--out", "ranker", *words.split()])).settings


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


class Commanded(NamedTuple):
    """What `train-ranker` has left and printed."""

    folder: Path
    out: str
    err: str


@pytest.fixture(scope="module")
def commanded(tmp_path_factory: pytest.TempPathFactory) -> Commanded:
    folder, out, err = tmp_path_factory.mktemp("commanded") / "ranker", io.StringIO(), io.StringIO()
    words = "train-ranker --small --limit 1 --epochs 1 --negatives 2 --max-tokens 160 --threads 1 --out"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(ranker_tuning, "TRIED_STEPS", 1)
        assert main([*words.split(), str(folder)]) == 0
    return Commanded(folder, out.getvalue(), err.getvalue())


def test_command_trains_a_small_ranker(commanded: Commanded) -> None:
    assert "trained on" in commanded.out
    lines = [line for line in commanded.err.splitlines() if " steps  " not in line]
    begun, reading, *_, tried, _, training, _, told, _ = lines
    assert begun == f"training a ranker on train of sample, into {commanded.folder}"
    assert re.fullmatch(r"tried after each epoch on 1 step of cross_task, alone and fused with bm25", tried)
    assert re.match(r"recall@10/50 over 1 step: own [\d./]+, own\+bm25 [\d./]+, bm25 [\d./]+$", told)
    assert (reading.startswith("preparing the texts of "), reading.endswith(", the first task")) == (True, True)
    assert training.startswith("training: ")
    assert {path.name for path in commanded.folder.iterdir()} - {"checkpoints"} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "training",
        "training.json",
    }


def test_a_training_that_diverges_saves_no_ranker_and_keeps_its_best_checkpoint(tmp_path: Path) -> None:
    asked = RankerTraining(
        tmp_path / "out",
        TINY,
        write_dataset(tmp_path / "data"),
        settings=dataclasses.replace(QUICK, learning_rate=50.0),
    )
    with pytest.raises(Diverged, match=r"no model is saved: its loss .+; lower `learning_rate`") as caught:
        ranker_tuning.train_ranker(asked)
    (kept,) = re.findall(r"(\S+) had the lowest", str(caught.value))
    assert (Path(kept) / "model.safetensors").is_file()
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_a_trained_ranker_ranks(commanded: Commanded, dataset: Path, tmp_path: Path) -> None:
    """Left to the published texts and types: nothing in its config asks for others."""
    config = json.loads((commanded.folder / "config.json").read_text())
    assert (config["model_type"], config["type_vocab_size"]) == ("deberta-v2", 2)
    ranked = ["rank", "--dataset", str(dataset), "--split", "cross_task", "--ranker", str(commanded.folder)]
    assert main([*ranked, "--out", str(tmp_path / "scores.parquet")]) == 0


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("model.safetensors", "OUT holds a model; name another folder for --out"),
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


# --- texts on disk ---


def test_stored_groups_are_in_the_order_of_the_tasks_however_rows_are_stored(tmp_path: Path) -> None:
    rows = [*rows_of("train")]
    split = open_split(write_dataset(tmp_path / "data", train=rows[::2] + rows[1::2]), "train")
    prepare(parts_of(split), GroupTexts(distinct=False), tmp_path / "texts", {}, 1)
    stored = StoredGroups(tmp_path / "texts", split)
    assert [stored[place] for place in range(len(stored))] == [to_group(step) for step in split.steps()]


def test_steps_without_pairs_are_counted(tmp_path: Path) -> None:
    rows = [*rows_of("train")]
    rows[0] = {**rows[0], "pos_candidates": []}
    rows[1] = {**rows[1], "cleaned_html": "<html"}
    rows[2] = {**rows[2], "neg_candidates": []}
    split = open_split(write_dataset(tmp_path / "data", train=rows), "train")
    made = prepare(parts_of(split), GroupTexts(distinct=True), tmp_path / "texts", {}, 1)
    assert made.left_out == {"no_positive": 1, "bad_html": 1, "no_negative": 1}
    assert made.steps == len(rows) - 3


# --- resuming ---


def asked(dataset: Path, out: Path, **options: Any) -> RankerTraining:
    usual = {"base": TINY, "settings": QUICK}
    return RankerTraining(out, dataset=dataset, **{**usual, **options})


@pytest.fixture(scope="module")
def trained(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ranker_tuning.train_ranker(asked(dataset, tmp_path_factory.mktemp("ranker") / "whole")).folder


@pytest.fixture(scope="module")
def ended(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was ended in its second epoch."""
    out = tmp_path_factory.mktemp("ranker") / "ended"
    with pytest.raises(Killed):
        ranker_tuning.train_ranker(asked(dataset, out), KilledAt(EPOCH + 3))
    return out


def test_a_resumed_training_reads_no_page_and_gives_the_same_weights(
    dataset: Path, trained: Path, ended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(GroupTexts, "steps")
    out = Path(shutil.copytree(ended, tmp_path / "out"))
    ranker_tuning.train_ranker(asked(dataset, out, resume=True))
    assert weights(out) == weights(trained)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 7, "learning_rate": 1e-2, "negatives": 2}, "learning_rate 0.01 where it was 0.003"),
        ({"seed": 7}, "seed 7 where it was 1"),
        ({"max_tokens": 32}, "max_tokens 32 where it was 64"),
    ],
)
def test_another_recipe_is_not_resumed(dataset: Path, ended: Path, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError) as caught:
        ranker_tuning.train_ranker(asked(dataset, ended, settings=dataclasses.replace(QUICK, **changes), resume=True))
    wanted = (
        f"{ended} was begun with another configuration: {named}; name another folder, or delete {ended} to begin anew"
    )
    assert str(caught.value) == wanted


def test_other_data_or_another_base_are_not_resumed(dataset: Path, ended: Path, tmp_path: Path) -> None:
    texts = write_dataset(tmp_path / "data", train=[*rows_of("train", seed=5)])
    shape = dataclasses.replace(TINY, layers=1)
    for named, options in (("dataset_", {"dataset": texts}), ("limit 2", {"limit": 2}), ("base ", {"base": shape})):
        with pytest.raises(InputError, match=f"was begun with another configuration: {named}"):
            ranker_tuning.train_ranker(dataclasses.replace(asked(dataset, ended, resume=True), **options))


def test_a_page_that_changed_in_place_is_not_resumed(tmp_path: Path) -> None:
    """By as many characters as before, so that no file's size says so."""
    file = write_jsonl(rows_of("train"), tmp_path / "data" / "train.jsonl")
    with pytest.raises(Killed):
        ranker_tuning.train_ranker(asked(file.parent, tmp_path / "out"), KilledAt(EPOCH + 3))
    file.write_text(file.read_text().replace("aria_label", "aria_lapel"))
    with pytest.raises(InputError, match="was begun with another configuration: dataset_version "):
        ranker_tuning.train_ranker(asked(file.parent, tmp_path / "out", resume=True))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("part", "spoil"),
    [
        ("trainer_state.json", cut),
        ("trainer_state.json", Path.unlink),
        ("model.safetensors", cut),
        ("model.safetensors", Path.unlink),
        ("optimizer.pt", cut),
    ],
)
def test_an_incomplete_newest_checkpoint_is_passed_over(
    part: str, spoil: Callable[[Path], None], dataset: Path, trained: Path, ended: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(ended, tmp_path / "out"))
    newest = shutil.copytree(out / "checkpoints" / f"checkpoint-{EPOCH}", out / "checkpoints" / "checkpoint-13")
    spoil(newest / part)
    ranker_tuning.train_ranker(asked(dataset, out, resume=True))
    assert weights(out) == weights(trained)


def test_a_finished_training_is_neither_resumed_nor_overwritten(dataset: Path, trained: Path) -> None:
    for resume in (True, False):
        with pytest.raises(
            InputError, match="holds a trained model and no checkpoint to `resume`; name another folder"
        ):
            ranker_tuning.train_ranker(asked(dataset, trained, resume=resume))


@pytest.mark.nightly
# a busy machine may take long to start three Pythons
@pytest.mark.timeout(600)
def test_two_processes_prepare_and_train_as_one_does(dataset: Path, tmp_path: Path) -> None:
    base = ranker_tuning.train_ranker(
        asked(dataset, tmp_path / "base", base=dataclasses.replace(TINY, dropout=0.0), limit=1)
    ).folder
    words = f"--dataset {dataset} --base {base} --epochs 1 --batch 4 --negatives 3 --max-tokens 64 --threads 1 --out".split()
    assert main(["train-ranker", *words, str(tmp_path / "one")]) == 0
    run_together(2, REPO / "scripts" / "train_ranker.py", *words, tmp_path / "two")
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    # the gradient of a key's bias is nothing but rounding
    assert all(np.allclose(one[name], two[name], atol=1e-5) for name in one if name.endswith(".weight"))
