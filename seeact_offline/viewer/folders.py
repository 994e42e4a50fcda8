"""The folders that `view` is given, sorted by what they hold. Loads none of what reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seeact_offline.files.known_files import EPISODES, FOLDER_LISTS, LINES, VERDICTS
from seeact_offline.records import InputError

PARTS = f"trajectories/*/{LINES}"
"""The finished episodes of a run of `browse` that is not finished."""
WHOLE_TASKS = (VERDICTS, EPISODES, LINES)
"""Files by which a folder of whole tasks is known."""
RUN = ("results.json", "predictions.jsonl", "steps.jsonl", "manifest.json")
"""Files by which a run over recorded steps is known. `score --out` writes no manifest, and a run that has only begun
nothing else."""
DEEPEST = 2
"""Folders below a named one that are looked into: a folder of runs holds grids."""


@dataclass(frozen=True, slots=True)
class SortedFolders:
    """Folders by what they hold."""

    runs: tuple[Path, ...]
    """Runs over recorded steps."""
    whole_tasks: tuple[Path, ...]
    """Folders of trajectories and of verdicts."""
    problems: tuple[str, ...]
    """A sentence on each folder that holds neither."""

    @property
    def is_shown(self) -> bool:
        return bool(self.runs or self.whole_tasks)


def sort_folders(paths: Iterable[Path]) -> SortedFolders:
    """Sorts the folders that these are or hold, each in its order.

    >>> sort_folders([Path("nowhere")]).problems
    ('nowhere cannot be shown: there is no such folder',)
    """
    runs, whole_tasks, problems = [], [], []
    for path in paths:
        folders = list(_known_folders(path, DEEPEST))
        runs += [folder for folder, is_whole in folders if not is_whole]
        whole_tasks += [folder for folder, is_whole in folders if is_whole]
        if not folders and path.is_dir() and _holds_trajectories(path):
            whole_tasks.append(path)
        elif not folders:
            why = "it holds no run, no trajectories and no verdicts" if path.is_dir() else "there is no such folder"
            problems.append(f"{path} cannot be shown: {why}")
    return SortedFolders(tuple(runs), tuple(dict.fromkeys(whole_tasks)), tuple(problems))


def _known_folders(path: Path, depth: int) -> Iterator[tuple[Path, bool]]:
    """The folders known by their files, with True for whole tasks."""
    if any((path / name).is_file() for name in WHOLE_TASKS) or any(path.glob(PARTS)):
        yield path, True
    elif any((path / name).is_file() for name in FOLDER_LISTS):
        from seeact_offline.tables.table_input import run_folders

        yield from ((folder, False) for folder in run_folders(path))
    elif any((path / name).is_file() for name in RUN):
        yield path, False
    elif depth:
        for child in sorted(path.glob("*/"), key=_natural):
            yield from _known_folders(child, depth - 1)


def _holds_trajectories(folder: Path) -> bool:
    """Tells whether a folder, which is no run over recorded steps, holds trajectories of a known format."""
    from seeact_offline.trajectories import open_trajectories

    try:
        return any(True for _ in open_trajectories(folder))
    except InputError:
        return False


def _natural(path: Path) -> list[str | int]:
    """Sorts numbers in names by value: run-7 before run-10."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"([0-9]+)", path.name))]
