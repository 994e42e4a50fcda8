"""A finished run, read from its directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from seeact_offline.records import InputError, Prediction
from seeact_offline.runs.folder import RunFolder, read_manifest, read_results
from seeact_offline.scoring.report import headline_text

if TYPE_CHECKING:
    import datasets
    import pandas as pd

    from seeact_offline.runs.publishing import ExportFiles
    from seeact_offline.scoring.results import Results

ANSWERED = ("element_id", "op", "value", "failure", "detail")
TOOK = ("attempts", "seconds", "request_id")
"""Columns of a call; None for a reply that was kept."""
Level = Literal["steps", "groups", "calls"]


@dataclass(frozen=True)
class Run:
    """A run's figures, scores and conversations. Its files are read when they are asked for."""

    path: Path
    is_stopped: bool = False
    """True where the cost limit left steps over."""
    failed_repeats: int = 0
    """Steps that failed to run in another order of groups."""
    n_left: int = 0
    """Steps that were not begun: a cost limit stopped the run, or only others were asked for."""

    def __fspath__(self) -> str:
        """Its folder: a run can be given wherever a path is asked for."""
        return str(self.path)

    def __repr__(self) -> str:
        """Its folder and its headline, where it has one."""
        name = f"<Run {str(self.path)!r}>"
        try:
            return f"{name} {headline_text(self.record)}"
        except (InputError, LookupError, TypeError):
            # unfinished, or of another program
            return name

    @cached_property
    def results(self) -> dict[str, Any]:
        """`results.json`: fractions between 0 and 1."""
        return dict(json.loads((self.path / "results.json").read_text(encoding="utf-8")))

    @cached_property
    def record(self) -> Results:
        """`results.json` as a record. Raises InputError where it is none."""
        return read_results(self.path)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json`: what the run was asked to do, and with which versions."""
        read_manifest(self.path)
        return RunFolder(self.path).content()

    @property
    def n_failed(self) -> int:
        """Steps to which the model gave no answer: they count as wrong, and the same call retries them. Rows that
        cannot be asked are not among them."""
        return sum(prediction.has_failed for prediction in self.predictions())

    def predictions(self) -> list[Prediction]:
        """The predictions, with all that the model said, in data set order."""
        return list(RunFolder(self.path).load(with_calls=True).values())

    def report(self) -> str:
        """`report.md`, the summary for people."""
        return (self.path / "report.md").read_text(encoding="utf-8")

    def to_pandas(self, level: Level = "steps") -> pd.DataFrame:
        """One row a step (with its score), a group (with what was offered and picked), or a call (with its reply).

        Raises ValueError for another level.
        """
        import pandas as pd

        makers = {"steps": self._steps, "groups": self._groups, "calls": self._calls}
        if level not in makers:
            raise ValueError(f"level: expected one of {', '.join(makers)}, got {level!r}")
        return pd.DataFrame(list(makers[level]()))

    def to_dataset(self) -> datasets.Dataset:
        """The steps with their scores, as `to_pandas("steps")`, for the hub's own tools.

        It holds tasks and typed values, which must not be published of a benchmark's test sets: see `export`.
        """
        from datasets import Dataset

        return Dataset.from_pandas(self.to_pandas("steps"), preserve_index=False)

    def export(self, out: str | Path, dataset_id: str | None = None) -> ExportFiles:
        """Writes what may be published of this run into a folder: see `exports.export`."""
        from seeact_offline.runs.publishing import export

        return export(self.path, Path(out), dataset_id)

    def _steps(self) -> Iterator[dict[str, Any]]:
        with (self.path / "steps.jsonl").open(encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                nested = {name: row.pop(name) for name in ("predicted", "target")}
                yield row | {f"{name}_{key}": value for name, held in nested.items() for key, value in held.items()}

    def _groups(self) -> Iterator[dict[str, Any]]:
        for prediction in self.predictions():
            for group in prediction.groups:
                place = {**prediction.key._asdict(), "group": group.group, "is_final_round": group.is_final_round}
                yield {**place, "offered": list(group.offered), **{name: getattr(group, name) for name in ANSWERED}}

    def _calls(self) -> Iterator[dict[str, Any]]:
        for prediction in self.predictions():
            took = {(call.group, call.turn): call.record for call in prediction.calls if call.record.attempts}
            for group in prediction.groups:
                for turn, reply in enumerate(group.replies, 1):
                    place = {**prediction.key._asdict(), "group": group.group, "turn": turn}
                    record = took.get((group.group, turn))
                    yield {**place, "reply": reply, **{name: getattr(record, name, None) for name in TOOK}}


def load_run(path: str | os.PathLike[str]) -> Run:
    """Opens the run in a folder. Raises InputError where there is none, or it has no results yet."""
    run = Run(Path(path))
    read_manifest(run.path)
    if not (run.path / "results.json").is_file():
        raise InputError("path", sentence=f"{path} has no results.json; finish the run, or score it")
    return run
