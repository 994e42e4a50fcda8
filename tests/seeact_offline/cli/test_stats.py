"""`stats` as the shell would run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.conftest import Cli, Sample


def test_table_shows_the_split_and_the_papers_figures_beside_it(cli: Cli, sample: Sample) -> None:
    outcome = cli("stats", "--dataset", sample.dataset, "--split", "cross_task")
    lines = outcome.out.splitlines()
    assert (outcome.status, outcome.err) == (0, "")
    assert lines[0].endswith("| visual tokens | visual tokens at full size |")
    assert lines[2].startswith("| cross_task        | 4     | 12 ")
    assert lines[3].startswith("| cross_task, paper | 177 ")


def test_no_figure_of_the_paper_is_beside_the_sample(cli: Cli) -> None:
    words = ("stats", "--split", "cross_task", "--limit", 1)
    assert "paper |" not in cli(*words).out
    shown = json.loads(cli(*words, "--json").out)
    assert (shown["dataset"], shown["splits"]["cross_task"]["paper"]) == ("sample", None)


def test_without_a_split_every_split_that_is_there_is_shown(cli: Cli, tmp_path: Path) -> None:
    for split in ("train", "test_website"):
        write_parquet(synthetic_rows(1, 1, 3, seed=1), tmp_path / f"{split}-00000-of-00001.parquet")
    outcome = cli("stats", "--dataset", tmp_path, "--json")
    assert list(json.loads(outcome.out)["splits"]) == ["train", "cross_website"]


def test_all_is_the_three_test_splits_as_everywhere(cli: Cli, tmp_path: Path) -> None:
    names = ("train", "test_task", "test_website", "test_domain")
    for number, split in enumerate(names):
        write_parquet(synthetic_rows(1, 1, 3, seed=number), tmp_path / f"{split}-00000-of-00001.parquet")
    for verb in ("stats", "lint-data"):
        out = cli(verb, "--dataset", tmp_path, "--split", "all").out
        assert [name in out for name in ("train", "cross_task", "cross_website", "cross_domain")] == [
            False,
            True,
            True,
            True,
        ]


@pytest.mark.parametrize(("name", "split"), [("test_task", "cross_task"), ("mine", "mine")])
def test_single_file_is_shown_once_under_its_name(cli: Cli, tmp_path: Path, name: str, split: str) -> None:
    path = write_parquet(synthetic_rows(1, 1, 3, seed=1), tmp_path / f"{name}.parquet")
    splits = json.loads(cli("stats", "--dataset", path, "--json").out)["splits"]
    assert list(splits) == [split]
    assert (splits[split]["steps"], splits[split]["paper"] is None) == (1, name == "mine")


def test_json_names_the_tokenizer_and_the_papers_figures(cli: Cli, sample: Sample) -> None:
    shown = json.loads(cli("stats", "--dataset", sample.dataset, "--json").out)
    assert shown["tokenizer"] == "words"
    assert shown["splits"]["cross_task"]["paper"]["avg_visual_tokens"] == 4172


def test_profile_shows_each_split_beside_the_real_figures(cli: Cli, sample: Sample) -> None:
    outcome = cli("stats", "--profile", "--dataset", sample.dataset)
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in outcome.out.splitlines()]
    assert (outcome.status, outcome.err) == (0, "")
    assert lines[0] == ["figure", "cross_task", "real (paper, published rows)"]
    real = {name: figure for name, _, figure in lines[2:]}
    assert len(real) == 12
    assert real["median page height, px"] == "4,000-8,000 (one page: 7,412)"
    assert (real["boxes off page"], real["SELECT"]) == ("28 % (one page)", "2-7 %")


def test_profile_as_json_has_every_figure_and_its_real_range(cli: Cli, sample: Sample) -> None:
    shown = json.loads(cli("stats", "--profile", "--json", "--dataset", sample.dataset).out)
    assert list(shown["splits"]["cross_task"]) == list(shown["real"])
    assert shown["real"]["select"] == [0.02, 0.07]


def test_faulty_rows_are_said_and_not_fatal(cli: Cli, tmp_path: Path) -> None:
    rows = [{**row, "screenshot": None} for row in synthetic_rows(1, 2, 3, seed=1)]
    write_parquet(rows, tmp_path / "train-00000-of-00001.parquet")
    outcome = cli("stats", "--dataset", tmp_path, "--split", "train")
    assert outcome.status == 0
    assert "train: 2 of 2 rows with faults (no_screenshot 2)" in outcome.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [((), "--split: expected cross_domain (test_domain) in "), (("--tokenizer", "x"), "--tokenizer: expected words")],
)
def test_what_cannot_be_used_is_one_sentence(cli: Cli, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in cli("stats", "--dataset", tmp_path, *words).error
