"""Reading folders that others wrote: files are found without following links, and nothing outside of the folder is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.named import read_regular
from seeact_offline.records import Fault
from seeact_offline.trajectories.trajectory import Trajectory

T = TypeVar("T")
DEEPEST = 6
"""Levels of folders that are searched."""
LARGEST = 512 << 20
"""Largest JSON file of a trajectory, in bytes: conversations may hold pictures."""
MOST_PICTURES = 10_000
"""Pictures of a trajectory; agents stop after some dozens of steps."""


class BadTrajectory(Exception):
    """Files of one trajectory that cannot be used."""

    def as_trajectory(self, name: str, task_id: str = "") -> Trajectory:
        """The trajectory that only tells what is wrong."""
        return Trajectory(name, task_id or name, "", faults=(Fault("bad_trajectory", str(self)),))


def find(folder: Path, name: str) -> Iterator[Path]:
    """Yields files of this name (`*.json`: of this ending) below a folder in order of path; follows no link to a folder."""
    ending = name.removeprefix("*") if name.startswith("*") else None
    for place, folders, files in os.walk(folder):
        folders.sort()
        if len(Path(place).relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        for file in sorted(files):
            # hidden files are an archive's notes on others
            if file == name or (ending is not None and file.endswith(ending) and not file.startswith(".")):
                yield Path(place, file)


def read_inside(folder: Path, path: Path, kind: type[T]) -> T:
    """Reads a JSON file of a folder as this type. Raises BadTrajectory, also for a link that leads out of the folder."""
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            raise BadTrajectory(f"{path.name} leads out of {folder}")
        return decoded(read_regular(real, LARGEST), kind)  # type: ignore[type-var]
    except FormatError as error:
        raise BadTrajectory(f"{path.name}: {error}") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise BadTrajectory(f"{path.name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def picture(folder: Path, name: str) -> StoredScreenshot:
    """A picture below a folder, opened when it is used and from nowhere else."""
    return StoredScreenshot(None, name, folder)
