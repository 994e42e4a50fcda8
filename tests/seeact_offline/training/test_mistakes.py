"""Mistakes that a training refuses in one sentence, before its tokenizer, its base or any question is made."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seeact_offline.cli import main
from seeact_offline.dataset import open_split
from seeact_offline.training.trainer import CHECKPOINTS, IDENTITY, STATE
from tests import tiny_models
from tests.lazily import torch  # noqa: F401, named in a condition
from tests.seeact_offline.training.conftest import write_dataset
from tests.seeact_offline.training.test_training_rows import write_ranks

# a busy machine may take long to load torch and save the bases
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

AT_MOST_S = 10.0
"""Seconds of a processor for each."""


@pytest.fixture(scope="module")
def places(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What commands name: data, score files, and bases whole, torn and with a tensor missing."""
    root = tmp_path_factory.mktemp("mistakes")
    found = {"DATA": dataset, "TRAIN": root / "train-only"}
    found["TRAIN"].mkdir()
    shutil.copy(dataset / "train.parquet", found["TRAIN"])
    found["TORN_DATA"] = write_dataset(root / "torn-data")
    tear(found["TORN_DATA"] / "test_task.parquet")
    found["SCORES"] = write_ranks(root / "train.parquet", open_split(dataset, "train"))
    savers: dict[str, Callable[[Path], Path]] = {
        "T5": tiny_models.save_t5,
        "BLIP2": tiny_models.save_blip2,
        "LLAVA": tiny_models.save_llava,
    }
    for name, save in savers.items():
        found[name] = save(root / name)
        torn = found[f"TORN_{name}"] = Path(shutil.copytree(found[name], root / f"TORN_{name}"))
        tear(torn / "model.safetensors")
        lacking = found[f"LACKING_{name}"] = Path(shutil.copytree(found[name], root / f"LACKING_{name}"))
        without_its_last_tensor(lacking / "model.safetensors")
    found["SHARDED_T5"] = in_two_shards(found["T5"], root / "SHARDED_T5")
    return found


def tear(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def without_its_last_tensor(path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    tensors = load_file(path)
    del tensors[max(tensors)]
    save_file(tensors, path, {"format": "pt"})


def in_two_shards(base: Path, folder: Path) -> Path:
    """The same model in two files, of which the index says that the second has a tensor more than it has."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(base, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    tensors = load_file(base / "model.safetensors")
    halves: list[dict[str, np.ndarray[Any, Any]]] = [{}, {}]
    for number, (name, tensor) in enumerate(sorted(tensors.items())):
        halves[number % 2][name] = tensor
    homes = {}
    for number, half in enumerate(halves, 1):
        file = f"model-0000{number}-of-00002.safetensors"
        homes |= dict.fromkeys(half, file)
        save_file(
            {name: half[name] for name in sorted(half)[: len(half) - number + 1]}, folder / file, {"format": "pt"}
        )
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": homes}))
    return folder


WITHOUT_BITSANDBYTES = pytest.mark.skipif(
    find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed, and works on some machines"
)
WITHOUT_A_GPU = pytest.mark.skipif("torch.cuda.is_available()", reason="there is a GPU")
REFUSED = [
    ("--baseline web-agent --small", "name files of dialogues with --dialogues", ""),
    ("--baseline web-agent --small --dialogues NOWHERE", "NOWHERE does not exist; name files of dialogues with --dialogues", ""),
    ("--baseline web-agent --base NOWHERE --dialogues NOWHERE", "NOWHERE does not exist; name files of ", ""),
    ("--small --dialogues a,b", "--dialogues: expected nothing with baseline flan-t5, which does not use it, got a,b", ""),
    ("--small --eval-ranker bm52", "--eval-ranker: expected ", "got bm52; did you mean bm25?"),
    ("--small --eval-scores NOWHERE.parquet", "--eval-scores: ", "NOWHERE.parquet"),
    ("--small --eval-scores SCORES", "--eval-scores: expected scores of the steps asked for, got 0 of 2 steps", ""),
    ("--small --optimizer adamw_torhc", "--optimizer: expected one of adamw_torch, ", "did you mean adamw_torch"),
    pytest.param(
        "--small --optimizer adamw_bnb_8bit",
        "--optimizer adamw_bnb_8bit needs the package bitsandbytes: run ",
        "quantised",
        marks=WITHOUT_BITSANDBYTES,
    ),
    ("--small --optimizer galore_adamw", "--optimizer galore_adamw cannot be used here: ", ""),
    ("--small --attention spda", "--attention: expected one of eager, ", "did you mean sdpa?"),
    ("--small --attention owner/kernel", "--attention: expected one of eager, ", "got owner/kernel"),
    ("--small --attention flash_attention_2", "--attention flash_attention_2 needs ", "GPU"),
    ("--base T5 --attention flex_attention --batch 9 --per-device 2", "--per-device: expected a number that divides the 9", ""),
    pytest.param("--small --bf16", "--bf16 needs a GPU", "torch sees none", marks=WITHOUT_A_GPU),
    ("--small --batch 9 WORLD_SIZE=2", "--batch: expected a number that 2 devices share evenly, got 9", ""),
    ("--small --batch 8 --per-device 3 WORLD_SIZE=2", "--per-device: expected a number that divides the 4 of each", "got 3"),
    ("--small --dataset TRAIN --evaluate cross_domain", "--evaluate: expected splits to evaluate that there are ", "cross_domain"),
    ("--small --dataset TRAIN --test-data TRAIN", "--test-data: expected a data set with a split of ", ""),
    ("--small --dataset TRAIN --test-data TORN_DATA", "cannot read ", "test_task"),
    ("--base TORN_T5", "--base: expected a whole model, got TORN_T5/model.safetensors, which is cut short (", ")"),
    ("--base LACKING_T5", "--base: expected a whole model, got LACKING_T5, which lacks ", " of its weights, "),
    ("--base SHARDED_T5", "--base: expected a whole model, got SHARDED_T5/model-00002-of-00002.safetensors, which lacks ", "index"),
    ("--baseline blip2 --base TORN_BLIP2", "--base: expected a whole model, got TORN_BLIP2/model.safetensors, ", ""),
    ("--baseline blip2 --base LACKING_BLIP2", "--base: expected a whole model, got LACKING_BLIP2, which lacks 1 ", ""),
    ("--baseline blip2 --base BLIP2 --language TORN_T5", "--language: expected a whole model, got TORN_T5/", ""),
    ("--baseline blip2 --base BLIP2 --language LACKING_T5", "--language: expected a whole model, got LACKING_T5, ", ""),
    ("--baseline vlm --eval-ranker bm25 --base TORN_LLAVA", "--base: expected a whole model, got TORN_LLAVA/", ""),
    ("--baseline vlm --eval-ranker bm25 --base LACKING_LLAVA", "--base: expected a whole model, got LACKING_LLAVA, ", ""),
    ("--baseline vlm --base LLAVA --eval-ranker bm52 --evaluate none", "--eval-ranker: expected ", "got bm52"),
    ("--baseline web-agent --dialogues d.jsonl --base TORN_LLAVA", "--base: expected a whole model, got TORN_LLAVA/", ""),
    ("--baseline web-agent --dialogues d.jsonl --base LACKING_LLAVA", "--base: expected a whole model, got LACKING_LLAVA, ", ""),
]  # fmt: skip


@pytest.mark.parametrize(("words", "begin", "end"), REFUSED)
def test_a_mistake_is_refused_before_anything_is_prepared(
    words: str,
    begin: str,
    end: str,
    places: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command, _, processes = words.partition(" WORLD_SIZE=")
    if processes:
        monkeypatch.setenv("WORLD_SIZE", processes)
    named = [str(places.get(word, word)) for word in command.split()]
    usual = [] if "--dataset" in named else ["--dataset", str(places["DATA"])]
    (tmp_path / "d.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    usual += [] if {"--eval-ranker", "--eval-scores"} & {*named} else ["--eval-ranker", "bm25"]
    began = time.process_time()
    assert main(["finetune", *named, *usual, "--out", str(tmp_path / "out")]) == 2
    assert time.process_time() - began < AT_MOST_S
    error = capsys.readouterr().err.splitlines()[-1].removeprefix("error: ")
    for name, path in sorted(places.items(), key=lambda place: -len(str(place[1]))):
        error = error.replace(str(path), name)
    assert error.startswith(begin), error
    assert end in error
    assert not (tmp_path / "out").exists()


OPTIONS = {
    "base and small": ("finetune", "base: x\nsmall: true\n", "", "use --base in FILE or --small in FILE, not both"),
    "small typed": ("finetune", "base: x\n", "--small", "use --base in FILE or --small, not both"),
    "base typed": ("train-ranker", "small: true\n", "--base x", "use --base or --small in FILE, not both"),
    "lora and full": ("improve", "full: true\nlora: 8\n", "--model hf/x", "use --lora in FILE or --full in FILE, not both"),
}  # fmt: skip


@pytest.mark.parametrize(("verb", "text", "typed", "sentence"), OPTIONS.values(), ids=OPTIONS)
def test_a_file_of_options_obeys_the_exclusions_of_the_command_line(
    verb: str, text: str, typed: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "options.yaml"
    file.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main([verb, *typed.split(), "--config", str(file), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {sentence.replace('FILE', str(file))}"


NUMBERS = {
    "finetune --seed 4294967296": "a whole number from 0 to 4,294,967,295",
    "train-ranker --seed 4294967296": "a whole number from 0 to 4,294,967,295",
    "improve --model hf/x --seed 4294967296": "a whole number from 0 to 4,294,967,295",
    "finetune --max-context 100000": "a whole number from 2 to 16,384",
}


@pytest.mark.parametrize(("words", "wanted"), NUMBERS.items())
def test_numbers_with_which_no_training_runs_are_refused(
    words: str, wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words.split(), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    *_, option, value = words.split()
    assert f"error: {option}: expected {wanted}, got {value}; " in capsys.readouterr().err


def test_a_training_that_diverges_ends_with_status_1_and_keeps_its_best_checkpoint(
    places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "finetune --evaluate none --threads 1 --epochs 2 --draws 2 --batch 8 --learning-rate 50 --base".split()
    out = tmp_path / "out"
    assert main([*command, str(places["T5"]), "--dataset", str(places["DATA"]), "--out", str(out)]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: the training diverged, and no model is saved: its loss ")
    assert error.endswith("; lower --learning-rate, and name another --out")
    (kept,) = re.findall(r"(\S+) had the lowest", error)
    assert (Path(kept) / "model.safetensors").is_file()
    assert not (out / "model.safetensors").exists()


def test_a_folder_with_a_checkpoint_of_another_configuration_names_what_to_delete(
    places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    checkpoint = out / CHECKPOINTS / "checkpoint-5"
    checkpoint.mkdir(parents=True)
    (out / IDENTITY).parent.mkdir()
    (out / IDENTITY).write_text(json.dumps({"baseline": "flan-t5", "epochs": 7}))
    (checkpoint / STATE).write_text("{}")
    shutil.copy(places["T5"] / "model.safetensors", checkpoint)
    for more in ([], ["--resume"]):
        command = ["finetune", "--small", "--dataset", str(places["DATA"]), "--eval-ranker", "bm25", *more]
        assert main([*command, "--out", str(out)]) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert f"{out} was begun with another configuration: " in error
        assert error.endswith(f"; name another folder, or delete {out} to begin anew")
    assert sorted(path.name for path in out.iterdir()) == ["checkpoints", "training"]
