"""The command `finetune`: its options become the recipe."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.cli import finetune, main
from seeact_offline.cli.parser import Parser
from seeact_offline.dataset import TEST_SPLITS
from seeact_offline.ranking.rankers import PUBLISHED
from seeact_offline.records import InputError
from seeact_offline.training import BASELINES
from seeact_offline.training.baseline import find_baseline
from seeact_offline.training.recipe import SMALL, Recipe, Running


def parsed(words: str) -> argparse.Namespace:
    parser = Parser()
    finetune.add_arguments(parser)
    return parser.parse_args(["--out", "model", *words.split()])


def test_what_is_left_out_is_as_published() -> None:
    asked = finetune.fine_tuning_of(parsed(""))
    assert (asked.resolved_recipe, asked.running) == (Recipe(), Running())
    assert (asked.resolved_base, asked.split, asked.evaluate) == ("google/flan-t5-base", "train", TEST_SPLITS)


def test_small_has_its_own_learning_rate() -> None:
    for name in BASELINES:
        small, published = (finetune.fine_tuning_of(parsed(f"--baseline {name} {more}")) for more in ("--small", ""))
        asked = {field: SMALL[field] for field in SMALL if field not in find_baseline(name).ignores}
        assert small.resolved_recipe == replace(published.resolved_recipe, **asked)
    assert finetune.fine_tuning_of(parsed("--small --learning-rate 0.1")).resolved_recipe.learning_rate == 0.1


def test_every_value_of_the_recipe_is_an_option() -> None:
    words = """--epochs 1 --draws 2 --choices 3 --none-share 0.5 --hard-negatives 9 --held-out 0 --batch 4 --learning-rate 0.5
    --warmup 0.25 --weight-decay 0.75 --max-context 6 --max-question 7 --lora 8 --quantised --optimizer adafactor
    --group-by-length --seed 9"""
    assert finetune.fine_tuning_of(parsed(words)).resolved_recipe == Recipe(
        1, 2, 3, 0.5, 9, 0.0, 4, 0.5, 0.25, 0.75, 1.0, 6, 7, 8, True, "adafactor", True, 9
    )


def test_each_baseline_has_its_own_base_and_recipe() -> None:
    blip2, vlm = (finetune.fine_tuning_of(parsed(f"--baseline {name}")) for name in ("blip2", "vlm"))
    assert (blip2.resolved_base, blip2.resolved_recipe) == ("Salesforce/blip2-flan-t5-xl", Recipe())
    assert (vlm.resolved_recipe.epochs, vlm.resolved_recipe.lora, vlm.resolved_recipe.warmup) == (1, 16, 0.03)
    with pytest.raises(InputError, match="vlm needs `base`, a model's folder or hub id"):
        _ = vlm.resolved_base


def test_a_published_recipe_decides_training_and_evaluation_of_a_small_model_too() -> None:
    asked = finetune.fine_tuning_of(parsed("--small --recipe mindact-released --prompts seeact"))
    assert (asked.resolved_recipe, asked.resolved_ranker) == (Recipe(), PUBLISHED)
    for name in ("flan-t5", "blip2"):
        how = find_baseline(name).evaluation(replace(asked, baseline=name))
        assert (how["model_args"]["max_input_tokens"], how["protocol"]) == ("512+512", "mindact")
    given = finetune.fine_tuning_of(
        parsed("--recipe mindact-released --prompts seeact --epochs 2 --eval-scores s.parquet")
    )
    assert (given.resolved_recipe, given.resolved_ranker) == (Recipe(epochs=2), None)


def test_a_published_recipe_is_printed_with_what_was_given_in_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--recipe mindact-released --prompts seeact --epochs 2 --lora 8 --eval-ranker bm25 --side 448"
    assert main(["finetune", *words.split(), "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:4] == [
        "recipe mindact-released: draws 10, choices 5, none_share 0.2, held_out 0.0, batch 32, learning_rate 5e-05, warmup 0.0,"
        " weight_decay 0.0, clip 1.0, max_context 512, max_question 512, seed 0",
        "prompts seeact; evaluated on candidates ranked by bm25, questions cut at 512+512 tokens of page and rest, 50 new tokens,"
        " protocol mindact, elimination released",
        "not as in recipe mindact-released: epochs 2 instead of 5, lora 8, prompts seeact instead of the released wording,"
        f" eval_ranker bm25 instead of {PUBLISHED}",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--recipe mindact-released",
            "--recipe mindact-released needs --prompts: the released wording as `import-prompts --from mindact` makes it, or seeact for ours",
        ),
        (
            "--baseline vlm --base m --recipe mindact-released --prompts seeact",
            "--recipe mindact-released is one of flan-t5 and blip2, not of vlm",
        ),
    ],
)
def test_a_published_recipe_is_refused_where_it_cannot_be_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    assert main(["finetune", *words.split(), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {sentence}"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("--baseline flan-t5 --side 448", "side"),
        ("--baseline flan-t5 --language t5", "language"),
        ("--baseline vlm --base m --draws 3", "draws"),
        ("--baseline vlm --base m --hard-negatives 9", "hard-negatives"),
        ("--baseline vlm --base m --max-context 99", "max-context"),
        ("--baseline vlm --base m --side 448", "side"),
        ("--baseline vlm --base m --group-by-length", "group-by-length"),
        ("--baseline flan-t5 --max-pixels 99", "max-pixels"),
    ],
)
def test_an_option_that_a_baseline_takes_no_notice_of_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, option: str
) -> None:
    assert main(["finetune", *words.split(), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: --{option}: expected ")
    assert f"with baseline {words.split()[1]}" in error
    assert not (tmp_path / "out").exists()


def test_splits_go_by_either_name() -> None:
    assert parsed("--evaluate test_task,cross_domain").evaluate == ("cross_task", "cross_domain")
    assert parsed("--evaluate none").evaluate == ()


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["finetune", "--small", "--split", "cross_task", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error == "error: --split: expected train, as the others are for tests, got cross_task"


@pytest.mark.parametrize(
    ("words", "missing", "sentence"),
    [
        ("--quantised", (), "--quantised needs --lora, as 4-bit weights are not trained themselves"),
        ("--quantised --lora 8", ("bitsandbytes",), "--quantised needs the package bitsandbytes: run "),
        ("--quantised --lora 8", (), "--quantised needs a GPU of CUDA, and torch sees none"),
    ],
)
def test_weights_in_4_bits_need_lora_bitsandbytes_and_a_gpu_before_anything_is_prepared(
    words: str,
    missing: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seeact_offline.training.checks.find_spec", lambda name: None if name in missing else name)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    command = ["finetune", "--baseline", "blip2", "--base", "none", *words.split(), "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {sentence}")
    assert not (tmp_path / "out").exists()


def test_the_cards_command_trains_the_same(tmp_path: Path) -> None:
    args = parsed(
        "--small --recipe mindact-released --prompts seeact --epochs 3 --hard-negatives 7 --scores s.parquet --limit 5 --lora 8 --quantised"
    )
    _, _, *words = finetune._command(args).split()
    again = Parser()
    finetune.add_arguments(again)
    repeated = again.parse_args(words)
    assert finetune.fine_tuning_of(repeated).resolved_recipe == finetune.fine_tuning_of(args).resolved_recipe
    assert (repeated.scores, repeated.limit, repeated.small) == (args.scores, args.limit, args.small)


@pytest.mark.parametrize(
    ("file", "held"),
    [
        ("model.safetensors", "a model"),
        ("model-00001-of-00002.safetensors", "a model"),
        ("pytorch_model.bin", "a model"),
        ("manifest.json", "a run"),
        ("results.json", "a run"),
    ],
)
def test_a_folder_that_holds_something_else_is_left_as_it_is(
    file: str, held: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).touch()
    for more in ([], ["--base", str(tmp_path)], ["--resume"]):
        assert main(["finetune", *more, "--evaluate", "none", "--out", str(tmp_path)]) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error == f"error: {tmp_path} holds {held}; name another folder for --out"
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_so_many_threads_are_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["finetune", "--small", "--threads", "100000", "--out", "out"])
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: --threads: expected a whole number from 1 to 1,024, got 100000")


@pytest.mark.slow
def test_what_fails_with_a_small_base_is_not_told_of_one_that_nobody_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise InputError("base", "a processor", "none")

    found = replace(find_baseline("flan-t5"), open=fail)
    monkeypatch.setattr("seeact_offline.training.tuning.find_baseline", lambda _: found)
    words = ["finetune", "--small", "--limit", "1", "--evaluate", "none", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: --small: expected a processor, got none"
