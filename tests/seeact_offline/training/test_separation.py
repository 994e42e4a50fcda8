"""Test tasks and websites in the training data."""

from __future__ import annotations

from pathlib import Path

import pytest

from seeact_offline.dataset import open_split
from seeact_offline.records import InputError
from seeact_offline.training.checks import check_separate
from tests.lazily import datasets
from tests.seeact_offline.training.conftest import rows_of, write_dataset


def test_separate_data_pass_and_all_test_splits_are_compared(dataset: Path) -> None:
    assert check_separate(open_split(dataset, "train")) == ("cross_task", "cross_website", "cross_domain")


def test_the_sample_passes() -> None:
    assert len(check_separate(open_split("sample", "train"))) == 3


def test_a_test_split_is_refused(dataset: Path) -> None:
    with pytest.raises(InputError, match=r"split: expected train, .* got cross_task"):
        check_separate(open_split(dataset, "cross_task"))


def test_a_test_task_is_refused_and_named(tmp_path: Path) -> None:
    test = list(rows_of("test_task", 2, seed=1))
    folder = write_dataset(tmp_path, train=[*rows_of("train"), *test[2:]], test_task=test)
    with pytest.raises(InputError, match="without test tasks, got 1 tasks of cross_task, task-1-1 first"):
        check_separate(open_split(folder, "train"))


@pytest.mark.parametrize("split", ["test_website", "test_domain"])
def test_a_website_that_is_to_be_new_is_refused(tmp_path: Path, split: str) -> None:
    shared = [{**row, "website": "train-site0"} for row in rows_of(split, 1, seed=7)]
    folder = write_dataset(tmp_path, **{split: shared})
    with pytest.raises(InputError, match=r"without the websites of .* got train-site0"):
        check_separate(open_split(folder, "train"))


def test_websites_may_be_those_of_cross_task(tmp_path: Path) -> None:
    shared = [{**row, "website": "train-site0"} for row in rows_of("test_task", 1, seed=7)]
    assert check_separate(open_split(write_dataset(tmp_path, test_task=shared), "train"))


def test_a_file_alone_is_compared_with_the_test_data_that_are_named(dataset: Path) -> None:
    train = open_split(dataset / "train.parquet", "train")
    assert check_separate(train) == ()
    assert len(check_separate(train, dataset)) == 3
    with pytest.raises(InputError, match="without test tasks"):
        check_separate(open_split(dataset / "test_task.parquet", "train"), dataset)


def test_a_file_or_table_that_calls_itself_a_test_split_is_refused_alone(dataset: Path) -> None:
    path = dataset / "test_website.parquet"
    with pytest.raises(InputError, match=r"without test tasks, got .*test_website\.parquet, a file of cross_website"):
        check_separate(open_split(path, "train"))
    table = datasets.Dataset.from_list(list(rows_of("test_domain", 1)), split=datasets.NamedSplit("test_domain"))
    with pytest.raises(InputError, match="without test tasks, got a table of cross_domain"):
        check_separate(open_split(table, "train"))


def test_a_table_alone_can_be_trained_on(dataset: Path) -> None:
    """It was compared with itself, as a table of every split, and refused for its own tasks."""
    train = open_split(datasets.Dataset.from_list(list(rows_of("train", 1))), "train")
    assert check_separate(train) == ()
    assert len(check_separate(train, dataset)) == 3
