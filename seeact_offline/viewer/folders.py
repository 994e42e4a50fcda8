"""Folders that are to be looked at, by what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seeact_offline.tables.table_input import FOLDER_LISTS, run_folders
from seeact_offline.trajectories.judgements import VERDICTS
from seeact_offline.trajectories.trajectory_files import LINES
from seeact_offline.viewer.whole_tasks import EPISODES, PARTS, holds_trajectories

WHOLE_TASKS = (VERDICTS, EPISODES, LINES)
"""Files by which a folder of whole tasks is known: of `judge`, of `browse`, and of trajectories in our own format."""
RUN = ("results.json", "predictions.jsonl", "steps.jsonl", "manifest.json")
"""Files by which a run over recorded steps is known. `score --out` writes no manifest, and a run that has only begun nothing else."""
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
    """Sorts the folders that these are or hold, each in its order."""
    runs, whole_tasks, problems = [], [], []
    for path in paths:
        found = list(_known(path, DEEPEST))
        runs += [folder for folder, is_whole in found if not is_whole]
        whole_tasks += [folder for folder, is_whole in found if is_whole]
        if not found and path.is_dir() and holds_trajectories(path):
            whole_tasks.append(path)
        elif not found:
            why = "it holds no run, no trajectories and no verdicts" if path.is_dir() else "there is no such folder"
            problems.append(f"{path} cannot be shown: {why}")
    return SortedFolders(tuple(runs), tuple(dict.fromkeys(whole_tasks)), tuple(problems))


def _known(path: Path, depth: int) -> Iterator[tuple[Path, bool]]:
    """The folders known by their files, with True for whole tasks."""
    if any((path / name).is_file() for name in WHOLE_TASKS) or any(path.glob(PARTS)):
        yield path, True
    elif any((path / name).is_file() for name in FOLDER_LISTS):
        yield from ((folder, False) for folder in run_folders(path))
    elif any((path / name).is_file() for name in RUN):
        yield path, False
    elif depth:
        for child in sorted(path.glob("*/")):
            yield from _known(child, depth - 1)
