"""What the user named -> sources of rows: a folder, a file, a `datasets` object, or a hub id."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

from ..records import DatasetError
from .readers import JsonlFiles, ParquetFiles, Source, StreamSource, TableSource, check_names, first_line
from .rows import OPTIONAL_COLUMNS, RAW_HTML, REQUIRED_COLUMNS

SPLITS = {
    "train": "train",
    "cross_task": "test_task",
    "cross_website": "test_website",
    "cross_domain": "test_domain",
}
"""What people type -> the name of the split's files on the hub."""

ANSWER_S = 4.0
"""Seconds in which the hub has to answer."""
TEST_SPLITS = ("cross_task", "cross_website", "cross_domain")
ALL = "all"

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_FILE_NAME = re.compile(rf"({'|'.join([*SPLITS, *SPLITS.values()])})(?:[-_.].*)?\.(parquet|jsonl)")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")
_HUB_BATCH_ROWS = 32
"""Rows converted at once after a download; by default the library takes a whole row group."""
_ANYWHERE = Path("/")


def open_sources(dataset: Any, split: str, *, raw_html: bool = False) -> list[Source]:
    """The sources of a canonical split, several for `all`. A file or a single table is taken as the split asked for."""
    splits = TEST_SPLITS if split == ALL else (split,)
    if isinstance(dataset, (str, os.PathLike)):
        sources = _open_named(dataset, splits, raw_html)
    else:
        sources = _open_object(dataset, splits)
    for source in sources:
        _check_columns(source, raw_html)
    return sources


def wanted_columns(source: Source, raw_html: bool) -> list[str]:
    """The columns to read: `raw_html`, half of a data set's bytes, only where it is asked for."""
    present = set(source.columns())
    extra = [RAW_HTML] if raw_html else []
    return [*REQUIRED_COLUMNS, *(name for name in OPTIONAL_COLUMNS if name in present), *extra]


def _open_named(dataset: str | os.PathLike[str], splits: Sequence[str], raw_html: bool) -> list[Source]:
    if dataset == "sample":
        from ..sample import DATA

        dataset = DATA
    path = Path(dataset)
    if dataset and path.is_dir():
        return [_open_folder(path, split) for split in splits]
    if dataset and path.exists():
        return [_open_file(path)]
    if isinstance(dataset, str) and _HUB_ID.fullmatch(dataset):
        return [_open_hub(dataset, split, raw_html) for split in splits]
    raise DatasetError(
        "dataset",
        "a folder, a .parquet or .jsonl file, or a hub id",
        f"{str(dataset)!r}: there is no such folder or file",
    )


def _open_file(path: Path) -> Source:
    # a pipe can be read only once
    if path.suffix not in (".parquet", ".jsonl") or not path.is_file():
        raise DatasetError("dataset", "a .parquet or .jsonl file", repr(str(path)))
    return _files([path], str(path), path.parent)


def _open_folder(folder: Path, split: str) -> Source:
    found = _split_files(folder)
    paths = found.get(split)
    if not paths:
        raise _no_split(split, str(folder), found)
    if len({path.suffix for path in paths}) > 1:
        raise DatasetError(
            "dataset", f"{split} in {folder} as .parquet or as .jsonl", "both; keep one, or name the file"
        )
    _check_shards(paths, split)
    return _files(paths, f"{split} of {folder}", folder)


def _split_files(folder: Path) -> dict[str, list[Path]]:
    """Canonical split -> its files, those in `data/` if there are any, as on the hub."""
    found: dict[str, list[Path]] = {}
    to_canonical = {hub: name for name, hub in SPLITS.items()}
    for place in (folder, folder / "data"):
        here: dict[str, list[Path]] = {}
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            match = _FILE_NAME.fullmatch(path.name)
            if match and path.is_file():
                here.setdefault(to_canonical.get(match[1], match[1]), []).append(path)
        found.update(here)
    return found


def _check_shards(paths: Sequence[Path], split: str) -> None:
    """Half a split scored as a whole one would give a wrong figure that looks right."""
    totals = {int(match[2]) for match in map(_SHARD.search, (path.name for path in paths)) if match}
    if totals and len(paths) != max(totals):
        raise DatasetError(
            "dataset",
            f"all {max(totals)} files of {split} in {paths[0].parent}",
            f"{len(paths)}; fetch the others, or name one file to use it alone",
        )


def _files(paths: Sequence[Path], name: str, folder: Path) -> Source:
    kind = ParquetFiles if paths[0].suffix == ".parquet" else JsonlFiles
    return kind(tuple(paths), name, folder)


def _open_object(dataset: Any, splits: Sequence[str]) -> list[Source]:
    import datasets

    if isinstance(dataset, (datasets.DatasetDict, datasets.IterableDatasetDict)):
        return [_table(_pick(dataset, split), split, _ANYWHERE) for split in splits]
    if isinstance(dataset, (datasets.Dataset, datasets.IterableDataset)):
        return [_table(dataset, f"the {type(dataset).__name__}", _ANYWHERE)]
    raise DatasetError("dataset", "a path, a hub id or a `datasets` object", f"a {type(dataset).__name__}")


def _pick(tables: Mapping[str, Any], split: str) -> Any:
    for name in (split, SPLITS[split]):
        if name in tables:
            return tables[name]
    raise _no_split(split, "the DatasetDict", tables)


def _open_hub(hub_id: str, split: str, raw_html: bool) -> Source:
    """Downloads the files of this one split; without `data_files` the library would fetch and convert every split.

    Where the hub does not answer, what was downloaded before serves, and nothing is tried again and again.
    """
    import datasets

    with _as_reachable() as answers:
        return _from_hub(datasets, hub_id, split, raw_html, answers)


@contextmanager
def _as_reachable() -> Iterator[bool]:
    """Tells the hub's libraries not to ask it inside where it does not answer in ANSWER_S. Gives whether it does."""
    import datasets
    from huggingface_hub import constants, get_session

    said: list[bool] = []

    def ask() -> None:
        # whatever keeps it from answering: that it does not is all there is to know
        with suppress(Exception):
            get_session().head(constants.ENDPOINT, timeout=ANSWER_S)
            said.append(True)

    # in a thread, because looking up a name has no timeout
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ANSWER_S)
    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    if not said:
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield bool(said)
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _from_hub(datasets: Any, hub_id: str, split: str, raw_html: bool, answers: bool) -> Source:
    hub_split = SPLITS[split]
    columns = [*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS, *([RAW_HTML] if raw_html else [])]
    try:
        table = datasets.load_dataset(
            hub_id,
            split=hub_split,
            columns=columns,
            data_files={hub_split: f"**/{hub_split}-*.parquet"},
            batch_size=_HUB_BATCH_ROWS,
            verification_mode="no_checks",
        )
    except datasets.exceptions.DataFilesNotFoundError as error:
        raise _no_split(split, hub_id, _hub_splits(hub_id)) from error
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        if not answers:
            raise _silent(hub_id) from error
        found = f"{hub_id!r}: there is no such folder, and the hub gave no such data set: {first_line(error)}"
        raise DatasetError("dataset", "a folder or a data set of the hub", found) from error
    return _table(table, f"{split} of {hub_id}", None)


def _silent(hub_id: str) -> DatasetError:
    found = f"{hub_id!r}: there is no such folder, it was not downloaded before, and the hub does not answer"
    return DatasetError("dataset", "a folder or a data set of the hub", found)


def _hub_splits(hub_id: str) -> list[str]:
    """For an error message only, so failing to get them is no second error."""
    import datasets

    try:
        return list(datasets.get_dataset_split_names(hub_id))
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError):
        return []


def _table(table: Any, name: str, folder: Path | None) -> Source:
    import datasets

    table = table.with_format(None)
    feature = (table.features or {}).get("screenshot")
    if isinstance(feature, datasets.Image):
        table = table.cast_column("screenshot", datasets.Image(decode=False))
    kind = TableSource if isinstance(table, datasets.Dataset) else StreamSource
    return kind(table, name, folder)


def _check_columns(source: Source, raw_html: bool) -> None:
    extra = (RAW_HTML,) if raw_html else ()
    check_names(source.columns(), (*REQUIRED_COLUMNS, *extra), source.name)


def _no_split(split: str, where: str, found: Collection[str]) -> DatasetError:
    got = f"only {', '.join(found)}" if found else "no split"
    return DatasetError("split", f"{split} ({SPLITS[split]}) in {where}", got)
