"""Checks that the training data holds no task of the tests, and none of the websites that are to be new."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seeact_offline.dataset import TEST_SPLITS, Split, open_split
from seeact_offline.dataset.split import SPLITS, split_of_file
from seeact_offline.records import DatasetError, InputError

NEW_WEBSITES = ("cross_website", "cross_domain")
"""Splits whose websites no training page may come from."""


@dataclass(frozen=True, slots=True)
class _Names:
    tasks: frozenset[str]
    websites: frozenset[str]


def check_separate(train: Split, tests: Any | None = None) -> tuple[str, ...]:
    """The names of the test splits that were compared.

    `tests`: the data set whose test splits count; None: the one that is trained on, if it has splits. Raises InputError for
    a split or a file that is itself a test, and where a task, or a website of NEW_WEBSITES, is trained on.
    """
    if train.name != "train":
        raise InputError("split", "train, as the others are for tests", train.name)
    seen, compared = _seen(train), []
    # a file or a table, which is taken as the split asked for, has any split's name
    is_path = isinstance(train.dataset, (str, os.PathLike))
    is_single = Path(train.dataset).is_file() if is_path else not isinstance(train.dataset, Mapping)
    data = train.dataset if tests is None else tests
    for name in () if tests is None and is_single else TEST_SPLITS:
        try:
            test = open_split(data, name)
        except DatasetError as error:
            # of the hub a split may not have been downloaded
            if error.argument == "split" or not (isinstance(data, (str, os.PathLike)) and Path(data).exists()):
                continue
            raise (error if tests is None else error.renamed("test_data")) from None
        _refuse_shared(seen, name, _seen(test))
        compared.append(name)
    if is_single and (named := _named_test(train.dataset)) is not None:
        raise InputError("dataset", "training data without test tasks", named)
    if tests is not None and not compared:
        raise InputError("test_data", f"a data set with a split of {', '.join(TEST_SPLITS)}", str(tests))
    return tuple(compared)


def _named_test(dataset: Any) -> str | None:
    """Words for a file or a table that calls itself a test split; None for others."""
    if isinstance(dataset, (str, os.PathLike)):
        split = split_of_file(Path(dataset).name)
        return f"{dataset}, a file of {split}" if split in TEST_SPLITS else None
    split = {SPLITS[name]: name for name in TEST_SPLITS}.get(str(getattr(dataset, "split", None)))
    return None if split is None else f"a table of {split}"


def _refuse_shared(train: _Names, name: str, test: _Names) -> None:
    tasks = sorted(train.tasks & test.tasks)
    if tasks:
        got = f"{len(tasks)} tasks of {name}, {tasks[0]} first"
        raise InputError("dataset", "training data without test tasks", got)
    websites = sorted(train.websites & test.websites)
    if websites and name in NEW_WEBSITES:
        got = f"{', '.join(websites[:3])}, which it shares with {name}"
        raise InputError("dataset", f"training data without the websites of {name}", got)


def _seen(split: Split) -> _Names:
    """Reads no page and no picture."""
    tasks, websites = frozenset(split.tasks), set()
    for source in split.sources:
        for row in source.light(("annotation_id", "website")):
            if row.get("annotation_id") in tasks and row.get("website"):
                websites.add(str(row.get("website")))
    return _Names(tasks, frozenset(websites))
