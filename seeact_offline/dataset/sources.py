"""A folder, a file, a `datasets` object or a hub id -> sources of rows."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ..files import hub
from ..records import DatasetError
from .readers import JsonlFiles, MappedTable, ParquetFiles, Source, StreamedTable, check_names
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
_FILE_NAME = re.compile(rf"({'|'.join([*SPLITS, *SPLITS.values()])})(?:[-_.].*)?\.(parquet|jsonl)")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")
_ANYWHERE = Path("/")


def open_sources(dataset: Any, split: str, *, raw_html: bool = False) -> list[Source]:
    """The sources of a canonical split, several for `all`. A file or a single table is taken as the split asked for."""
    splits = TEST_SPLITS if split == ALL else (split,)
    is_named = isinstance(dataset, (str, os.PathLike))
    sources = _open_named(dataset, splits) if is_named else _open_object(dataset, splits)
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


def _open_named(dataset: Any, splits: Sequence[str]) -> list[Source]:
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
    if is_on_hub(dataset):
        return [_open_hub(dataset, split) for split in splits]
    raise DatasetError(
        "dataset",
        "sample, a folder, a .parquet, .jsonl or .json file, or OWNER/NAME of the hub",
        f"{str(dataset)!r}: there is no such folder or file",
    )


def is_on_hub(dataset: Any) -> bool:
    """Tells, without opening it, whether a data set is one of the hub: nothing here has its name."""
    return isinstance(dataset, str) and hub.is_spec(dataset) and not os.path.exists(dataset)


def pinned(dataset: Any) -> Any:
    """The data set, of the hub with the commit that it means now. Raises DatasetError."""
    with hub.errors_as(DatasetError, "dataset"):
        return hub.pinned("dataset", dataset) if is_on_hub(dataset) else dataset


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
    _check_whole([path.name for path in paths], split, str(paths[0].parent))
    return _files(paths, f"{split} of {folder}", folder)


def _check_whole(names: Sequence[str], split: str, where: str) -> None:
    """Raises DatasetError for half a split: scored as a whole one it would give a wrong figure that looks right."""
    totals = {int(match[2]) for match in map(_SHARD.search, names) if match}
    if totals and len(names) != max(totals):
        raise DatasetError(
            "dataset",
            sentence=f"{where} has {len(names)} of {max(totals)} files of {split}; fetch the others, or name one file to use it alone",
        )


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


def _open_hub(spec: str, split: str) -> Source:
    """The files of this one split. Raises DatasetError."""
    from .hub_files import HubFiles

    with hub.errors_as(DatasetError, "dataset"):
        repo = hub.open_repo("dataset", spec)
    of_splits: dict[str, list[hub.HubFile]] = {}
    for file in repo.files:
        name = file.name.rpartition("/")[2]
        if name.endswith(".parquet") and (found := split_of_file(name)):
            of_splits.setdefault(found, []).append(file)
    files = sorted(of_splits.get(split, ()), key=lambda file: file.name)
    try:
        if not files:
            raise _no_split(split, f"{repo.name} at {repo.commit[:12]}", of_splits)
        _check_whole([Path(file.name).name for file in files], split, repo.name)
    except DatasetError as error:
        if repo.is_listed:
            raise
        lacking = f"{split} of {repo.name} was not downloaded whole, and {hub.unreachable()}; fetch it where there is a network:"
        raise DatasetError("split", sentence=f"{lacking} {repo.command(f'--include *{SPLITS[split]}-*')}") from error
    return HubFiles(f"{split} of {spec}", None, tuple(map(repo.place, files)), repo)


def _table(table: Any, name: str, folder: Path | None) -> Source:
    import datasets

    table = table.with_format(None)
    for name, feature in (table.features or {}).items():
        if isinstance(feature, datasets.Image):
            table = table.cast_column(name, datasets.Image(decode=False))
    kind = MappedTable if isinstance(table, datasets.Dataset) else StreamedTable
    return kind(name, folder, table)


def _no_split(split: str, where: str, found: Collection[str]) -> DatasetError:
    got = f"only {', '.join(found)}" if found else f"no file with a name such as {SPLITS[split]}-00000-of-00001.parquet"
    return DatasetError("split", f"{split} ({SPLITS[split]}) in {where}", got)
