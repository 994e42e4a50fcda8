"""A small data set with all splits, made up, that training takes a moment to learn from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset import Split, open_split
from seeact_offline.training.bases import train_tokenizer
from seeact_offline.training.recipe import SmallBase
from tests.pages import synthetic_rows, write_parquet

SHAPE = SmallBase(vocab_size=600, d_model=16, d_kv=8, d_ff=32, heads=2, encoder_layers=1, decoder_layers=1)
WORDS = "(html (button id=0 search flight (a hotel cheap None of the above Action: CLICK TYPE SELECT Value: Task:"


def rows_of(split: str, n_tasks: int = 4, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Of websites that no other split has."""
    for row in synthetic_rows(n_tasks, 2, 9, seed):
        yield {**row, "website": f"{split}-{row['website']}"}


def write_dataset(folder: Path, **splits: list[dict[str, Any]]) -> Path:
    """The hub's layout, with other rows for the splits that are named."""
    seeds = {"train": 0, "test_task": 1, "test_website": 2, "test_domain": 3}
    for name, seed in seeds.items():
        write_parquet(splits.get(name) or rows_of(name, 1 + 3 * (name == "train"), seed), folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("finetune"))


@pytest.fixture(scope="session")
def train_split(dataset: Path) -> Split:
    return open_split(dataset, "train")


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return train_tokenizer([WORDS], 400)


def of_card(folder: Path) -> dict[str, str]:
    """The values in the tables of a trained model's card, by what stands before each."""
    lines = (folder / "README.md").read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {first: second for first, second, *_ in cells}
