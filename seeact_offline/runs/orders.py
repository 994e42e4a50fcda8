"""The same steps asked again with their groups and choices in other orders, each repeat in a folder of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seeact_offline.records import Prediction, Truth
from seeact_offline.runs.directory import RunDirectory

_FOLDER = "shuffled-"


def repeat_folder(run: Path, number: int) -> Path:
    """Where the run's repeat in another order lies; `number` from 1."""
    return run / f"{_FOLDER}{number}"


def finished_repeats(run: Path, truths: Sequence[Truth]) -> list[list[Prediction]]:
    """The predictions of every repeat that has one for each step, in order of number."""
    numbers = [path.name.removeprefix(_FOLDER) for path in run.glob(f"{_FOLDER}*")]
    found = [RunDirectory(repeat_folder(run, n)).load() for n in sorted(int(n) for n in numbers if n.isdecimal())]
    return [[done[truth.key] for truth in truths] for done in found if all(truth.key in done for truth in truths)]
