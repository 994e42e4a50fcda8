"""A folder, a file, a `datasets` object or a hub id -> sources of rows."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

from ..records import DatasetError
from .readers import JsonlFiles, MappedTable, ParquetFiles, Source, StreamedTable, check_names, first_line
from .recorded import RECORDED_COLUMNS
from .rows import ALSO_RIGHT, OPTIONAL_COLUMNS, RAW_HTML, REQUIRED_COLUMNS

SPLITS = {
    "train": "train",
    "cross_task": "test_task",
    "cross_website": "test_website",
    "cross_domain": "test_domain",
}
"""Name of a split -> name of its files on the hub."""
TEST_SPLITS = ("cross_task", "cross_website", "cross_domain")
ALL = "all"
ANSWER_S = 4.0
"""Seconds in which the hub has to answer."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_FILE_NAME = re.compile(rf"({'|'.join([*SPLITS, *SPLITS.values()])})(?:[-_.].*)?\.(parquet|jsonl)")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")
_HUB_BATCH_ROWS = 32
"""Rows converted at once after a download; by default the library takes a whole row group."""
_ANYWHERE = Path("/")


def open_sources(dataset: Any, split: str, *, raw_html: bool = False) -> list[Source]:
    """The sources of a canonical split, several for `all`. A file or a single table is taken as the split asked for."""
    splits = TEST_SPLITS if split == ALL else (split,)
    is_named = isinstance(dataset, (str, os.PathLike))
    sources = _open_named(dataset, splits, raw_html) if is_named else _open_object(dataset, splits)
    needed = [*REQUIRED_COLUMNS, *([RAW_HTML] if raw_html else [])]
    for source in sources:
        check_names(source.columns(), needed, source.name)
    return sources


def wanted_columns(source: Source, raw_html: bool) -> list[str]:
    """The columns to read; `raw_html`, half of a data set's bytes, only on request."""
    present = set(source.columns())
    extra = [RAW_HTML] if raw_html else []
    return [
        *REQUIRED_COLUMNS,
        *(name for name in (*OPTIONAL_COLUMNS, ALSO_RIGHT, *RECORDED_COLUMNS) if name in present),
        *extra,
    ]


def _open_named(dataset: str | os.PathLike[str], splits: Sequence[str], raw_html: bool) -> list[Source]:
    if dataset == "sample":
        from ..sample import DATA

        dataset = DATA
    path = Path(dataset)
    if dataset and path.is_dir():
        return [_open_folder(path, split) for split in splits]
    if dataset and path.exists():
        # a pipe can be read only once
        if path.suffix not in (".parquet", ".jsonl", ".json") or not path.is_file():
            raise DatasetError("dataset", "a .parquet, .jsonl or .json file", repr(str(path)))
        if path.suffix == ".json":
            from .recut import open_recut

            return [open_recut(path, SPLITS[splits[0]] if len(splits) == 1 else "")]
        return [_files([path], str(path), path.parent)]
    if isinstance(dataset, str) and _HUB_ID.fullmatch(dataset):
        return [_open_hub(dataset, split, raw_html) for split in splits]
    raise DatasetError(
        "dataset",
        "sample, a folder, a .parquet, .jsonl or .json file, or a hub id",
        f"{str(dataset)!r}: there is no such folder or file",
    )


def is_recut(dataset: Any) -> bool:
    """Tells, without opening it, whether a data set holds pictures and boxes alone, as SeeClick's and ShowUI's do."""
    if not isinstance(dataset, str | os.PathLike) or not dataset:
        return False
    path = Path(dataset)
    if not path.is_dir():
        return path.suffix == ".json" and path.is_file()
    from .recut import find_recut

    return not _split_files(path) and any(find_recut(path, split) for split in SPLITS.values())


def _open_folder(folder: Path, split: str) -> Source:
    found = _split_files(folder)
    paths = found.get(split)
    if not paths:
        from .recut import find_recut, open_recut

        if recut := find_recut(folder, SPLITS[split]):
            return open_recut(recut, SPLITS[split])
        raise _no_split(
            split, str(folder), [*found, *(name for name, hub in SPLITS.items() if find_recut(folder, hub))]
        )
    if len({path.suffix for path in paths}) > 1:
        raise DatasetError(
            "dataset", sentence=f"{folder} has {split} as .parquet and as .jsonl; keep one, or name the file"
        )
    # half a split scored as a whole one would give a wrong figure that looks right
    totals = {int(match[2]) for match in map(_SHARD.search, (path.name for path in paths)) if match}
    if totals and len(paths) != max(totals):
        raise DatasetError(
            "dataset",
            sentence=f"{paths[0].parent} has {len(paths)} of {max(totals)} files of {split}; fetch the others, or name one file to use it alone",
        )
    return _files(paths, f"{split} of {folder}", folder)


def split_of_file(name: str) -> str | None:
    """The canonical split that a file's name says it holds; None for any other name."""
    match = _FILE_NAME.fullmatch(name)
    of_files = {hub: split for split, hub in SPLITS.items()}
    return None if match is None else of_files.get(match[1], match[1])


def _split_files(folder: Path) -> dict[str, list[Path]]:
    """Canonical split -> its files, those in `data/` if there are any, as on the hub."""
    found: dict[str, list[Path]] = {}
    for place in (folder, folder / "data"):
        here: dict[str, list[Path]] = {}
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            split = split_of_file(path.name)
            if split is not None and path.is_file():
                here.setdefault(split, []).append(path)
        found.update(here)
    return found


def _files(paths: Sequence[Path], name: str, folder: Path) -> Source:
    kind = ParquetFiles if paths[0].suffix == ".parquet" else JsonlFiles
    return kind(name, folder, tuple(paths))


def _open_object(dataset: Any, splits: Sequence[str]) -> list[Source]:
    import datasets

    if isinstance(dataset, (datasets.DatasetDict, datasets.IterableDatasetDict)):
        named = {split: name for split in splits for name in (SPLITS[split], split) if name in dataset}
        for split in splits:
            if split not in named:
                raise _no_split(split, "the DatasetDict", dataset)
        return [_table(dataset[named[split]], split, _ANYWHERE) for split in splits]
    if isinstance(dataset, (datasets.Dataset, datasets.IterableDataset)):
        return [_table(dataset, f"the {type(dataset).__name__}", _ANYWHERE)]
    raise DatasetError("dataset", "a path, a hub id or a `datasets` object", f"a {type(dataset).__name__}")


def _open_hub(hub_id: str, split: str, raw_html: bool) -> Source:
    """Downloads the files of this one split; without `data_files` the library would fetch and convert every split. The recorder's
    columns and `also_right` are not read: the library wants each column that it is asked for to exist.

    If the hub does not answer, an earlier download is used, without repeated attempts.
    """
    import datasets

    hub_split = SPLITS[split]
    expected = "a folder or a data set of the hub"
    with _offline_if_silent() as answers:
        try:
            table = datasets.load_dataset(
                hub_id,
                split=hub_split,
                columns=[*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS, *([RAW_HTML] if raw_html else [])],
                data_files={hub_split: f"**/{hub_split}-*.parquet"},
                batch_size=_HUB_BATCH_ROWS,
                verification_mode="no_checks",
            )
        except datasets.exceptions.DataFilesNotFoundError as error:
            found: list[str] = []
            # for the message only, so failing to get them is no second error
            with suppress(OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError):
                found = list(datasets.get_dataset_split_names(hub_id))
            raise _no_split(split, hub_id, found) from error
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            reason = "it was not downloaded before, and the hub does not answer"
            if answers:
                reason = f"and the hub gave no such data set: {first_line(error)}"
            raise DatasetError("dataset", expected, f"{hub_id!r}: there is no such folder, {reason}") from error
    return _table(table, f"{split} of {hub_id}", None)


@contextmanager
def _offline_if_silent() -> Iterator[bool]:
    """Keeps the hub's libraries offline inside if the hub does not answer within ANSWER_S. Yields whether it answers."""
    import datasets
    from huggingface_hub import constants, get_session

    answers: list[bool] = []

    def ask() -> None:
        # any error means the same: the hub does not answer
        with suppress(Exception):
            get_session().head(constants.ENDPOINT, timeout=ANSWER_S)
            answers.append(True)

    # in a thread, because looking up a name has no timeout
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(ANSWER_S)
    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    if not answers:
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield bool(answers)
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _table(table: Any, name: str, folder: Path | None) -> Source:
    import datasets

    table = table.with_format(None)
    for name, feature in (table.features or {}).items():
        if isinstance(feature, datasets.Image):
            table = table.cast_column(name, datasets.Image(decode=False))
    kind = MappedTable if isinstance(table, datasets.Dataset) else StreamedTable
    return kind(name, folder, table)


def _no_split(split: str, where: str, found: Collection[str]) -> DatasetError:
    got = f"only {', '.join(found)}" if found else "no split"
    return DatasetError("split", f"{split} ({SPLITS[split]}) in {where}", got)
