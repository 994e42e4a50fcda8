"""Finished runs as tables and figures read them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seeact_offline.files.digest import file_digest
from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.known_files import EPISODES, FOLDER_LISTS
from seeact_offline.files.named import read_regular
from seeact_offline.records import InputError
from seeact_offline.runs.folder import read_manifest, read_results, read_steps
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.results import ELEMENT_RULES
from seeact_offline.scoring.run_figures import RunScores

SAMPLE = "sample"
NEWEST, OLDEST = "newest", "oldest"
BESIDE: Mapping[str, str] = {
    "ceiling": "Ceiling",
    **{rule: f"{METRICS['element_accuracy']}, {rule}" for rule in ELEMENT_RULES},
}
"""Figures beside METRICS, with their titles."""
NO_SUCCESS_RATES = (
    "Step by step, with the true history given: these are no success rates of tasks, and not comparable with those of"
    " papers, which"
    " come from live or hosted sites."
)
T = TypeVar("T", bound=msgspec.Struct)
RECORD, EVALUATION = "training/record.json", "evaluation"
"""The file by which the folder of a trained model is known, and the folder in it of its runs."""
_EXPECTED = "a run folder with a results.json, or a folder of such"
METADATA = "metadata "
_IN_LABEL = frozenset(
    {"label", "split", "grounding", "model", "dataset", "dataset_fingerprint", "limit", "sample", "tasks"}
)
"""Settings that tell no two methods apart, or stand in a method's name anyway."""


@dataclass(frozen=True)
class TableRun(RunScores):
    """A finished run, with the place and the settings that tell it from others."""

    path: Path
    results_sha256: str
    date: str = ""
    """The time at which it began, of ISO 8601; empty where that is not known."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """The settings that its predictions depend on, by its manifest."""

    @property
    def begun(self) -> datetime | None:
        """The time at which it began; None where that is not known."""
        try:
            date = datetime.fromisoformat(self.date)
        except ValueError:
            return None
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)

    @property
    def is_sample(self) -> bool:
        """Tells whether it is of the bundled sample, beside which no figure of a paper may stand."""
        return bool(self.settings.get("dataset") == SAMPLE)

    @property
    def label(self) -> str:
        """The name that its user gave it; empty for none."""
        return str(self.settings.get("label") or "")

    @property
    def source(self) -> dict[str, Any]:
        """The run's path, hash and data, which identify it."""
        return {
            "run": self.name,
            "results_sha256": self.results_sha256,
            "split": self.results.split,
            **{name: self.settings.get(name) for name in ("dataset", "dataset_fingerprint", "protocol", "seed")},
        }


@dataclass(frozen=True)
class TableInput:
    """The request for one table."""

    table: str
    """Its name: a number in the paper, or `FILE.py:NAME`."""
    paths: Sequence[Path]
    """Run folders and folders of them; for Table 1 a file of `stats --json`."""
    base: Path
    """The folder that paths are given relative to."""
    dataset: str | None = None
    """The data set that Table 1 counts."""
    by: str | None = None
    """`website` or `domain`: a row for each of them."""
    stderr: bool = False
    """True if standard errors are shown."""
    which: str = NEWEST
    """The run that stands for several which differ in their date alone: see `one_of_each`."""

    @cached_property
    def all_runs(self) -> list[TableRun]:
        return [read_run(path, self.base) for path in self._folders[0]]

    @cached_property
    def runs(self) -> list[TableRun]:
        """The runs that stand in the table."""
        return one_of_each(self.all_runs, self.which)

    @property
    def choice(self) -> list[str]:
        """A sentence on the runs that do not stand in the table; empty where all do."""
        left = [run.name for run in self.all_runs if run not in self.runs]
        named = self.which if self.which in (NEWEST, OLDEST) else f"newest until {self.which}"
        return (
            [f"Of runs that differ in their date alone the {named} stands here. Left out: {', '.join(left)}."]
            if left
            else []
        )

    @property
    def unfinished(self) -> list[str]:
        """Run folders without results."""
        return [relative(path, self.base) for path in self._folders[1]]

    @cached_property
    def _folders(self) -> tuple[list[Path], list[Path]]:
        return _find(self.paths)


def one_of_each(runs: Sequence[TableRun], which: str = NEWEST) -> list[TableRun]:
    """The runs without those that another stands for: of runs whose settings are the same, the newest or the oldest.

    `which`: `newest`, `oldest`, or a date (YYYY-MM-DD): the newest, without runs that began after that day (UTC). Runs
    whose dates do not tell them apart all stay. Raises InputError.
    """
    if which not in (NEWEST, OLDEST):
        try:
            last = date.fromisoformat(which)
        except ValueError:
            raise InputError("which", f"{NEWEST}, {OLDEST} or a date, YYYY-MM-DD", which) from None
        runs = [run for run in runs if run.begun is not None and run.begun.date() <= last]
        if not runs:
            raise InputError("which", "a day until which some run began", which)
    alike: dict[str, list[TableRun]] = {}
    for run in runs:
        settings = {**run.settings, "split": run.results.split, "method": run.method}
        alike.setdefault(json.dumps(settings, sort_keys=True), []).append(run)
    left: list[TableRun] = []
    for several in alike.values():
        dates = [run.begun for run in several if run.begun is not None]
        if len(set(dates)) == len(several) > 1:
            kept = (min if which == OLDEST else max)(dates)
            left += [run for run in several if run.begun != kept]
    return [run for run in runs if run not in left]


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """The run folders that these are or hold, each once, in order. Raises InputError where there is none."""
    return _find(paths)[0]


def _find(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Finished run folders, and run folders without results."""
    if not paths:
        raise InputError("runs", _EXPECTED, "none")
    finished: dict[Path, Path] = {}
    unfinished: list[Path] = []
    for path in paths:
        folders = run_folders(path)
        done = [folder for folder in folders if (folder / "results.json").is_file()]
        unfinished += [folder for folder in folders if folder not in done]
        if not done and (path / RECORD).is_file():
            unfinished.append(path)
        elif not done:
            raise InputError("runs", _EXPECTED, str(path))
        finished |= {folder.resolve(): folder for folder in done if folder.resolve() not in finished}
    if not finished:
        sentence = f"{unfinished[0]} holds a model that was not evaluated; run `eval --model hf/{unfinished[0]}` first"
        raise InputError("runs", sentence=sentence)
    return list(finished.values()), unfinished


def run_folders(path: Path) -> list[Path]:
    """The folder of a run, or those in a folder: in the order of the file that lists them, if there is one, else by
    name. Of a trained model: those of its evaluation."""
    if (path / "results.json").is_file() or (path / "predictions.jsonl").is_file():
        return [path]
    if (path / RECORD).is_file():
        return run_folders(path / EVALUATION)
    # `score --out` writes no manifest
    marks = ("manifest.json", "steps.jsonl")
    folders = {
        child.name: child for child in sorted(path.glob("*/")) if any((child / mark).is_file() for mark in marks)
    }
    for name in FOLDER_LISTS:
        if (path / name).is_file():
            listed = read_typed(path / name, _FolderList)
            return [folders[entry.folder] for entry in (*listed.cells, *listed.rows) if entry.folder in folders]
    return list(folders.values())


def is_live(path: Path) -> bool:
    """Tells whether a folder holds episodes of `browse`."""
    return (path / EPISODES).is_file()


def read_run(path: Path, base: Path) -> TableRun:
    """The run in a folder, or its scores in one of `score --out`, which name its settings too. Raises InputError for
    other files."""
    if is_live(path):
        raise InputError(
            "runs", sentence=f"{path} holds episodes of browse, which stand in table 4 alone, beside a run of eval"
        )
    manifest = read_manifest(path) if (path / "manifest.json").is_file() else None
    results = read_results(path)
    settings = manifest.settings if manifest else results.settings
    return TableRun(
        path=path,
        name=relative(path, base),
        results_sha256=file_digest(path / "results.json"),
        results=results,
        settings={**settings, "protocol": results.protocol},
        steps=list(read_steps(path).values()),
        date=manifest.made.date if manifest and manifest.made else "",
        identity=manifest.identity if manifest else {},
    )


class _FolderEntry(msgspec.Struct):
    folder: str


class _FolderList(msgspec.Struct):
    """One of FOLDER_LISTS."""

    cells: tuple[_FolderEntry, ...] = ()
    rows: tuple[_FolderEntry, ...] = ()


def read_typed(path: Path, kind: type[T]) -> T:
    """A JSON file as this type. Raises InputError."""
    try:
        return decoded(read_regular(path), kind)
    except FormatError as error:
        raise InputError("runs", error.expected, f"{error.got} in {path}") from None
    except OSError as error:
        raise InputError("runs", sentence=f"cannot read {path}: {error.strerror}") from None


def relative(path: Path, base: Path) -> str:
    return Path(os.path.relpath(path, base)).as_posix()


def labels(runs: Sequence[TableRun], pooled: str = "") -> list[str]:
    """Each run's own label, else its method, with the settings that part runs which would otherwise stand in one cell.

    `pooled`: a setting in which runs of one cell differ. Raises InputError for two runs of one cell.
    """
    methods: dict[str, set[str]] = {}
    for run in runs:
        methods.setdefault(run.label, set()).add(run.method)
    titles = [
        run.method if not run.label else run.label if len(methods[run.label]) == 1 else f"{run.label}, {run.method}"
        for run in runs
    ]
    settings = [_parting(run, pooled) for run in runs]
    rivals: dict[str, list[int]] = {}
    for place, title in enumerate(titles):
        rivals.setdefault(title, []).append(place)
    made = [*titles]
    for places in rivals.values():
        if len({runs[place].results.split for place in places}) < len(places):
            names = sorted({name for place in places for name in settings[place]})
            differing = [name for name in names if len({json.dumps(settings[place].get(name)) for place in places}) > 1]
            for place in places:
                words = [_in_words(name, settings[place].get(name)) for name in differing]
                made[place] = ", ".join([titles[place], *filter(None, words)])
    taken: dict[tuple[str, str, str], TableRun] = {}
    for run, label in zip(runs, made, strict=True):
        other = taken.setdefault((label, run.results.split, json.dumps(run.settings.get(pooled))), run)
        if other is not run:
            got = f"{other.name} and {run.name}, both {label} on {run.results.split}"
            raise InputError("runs", sentence=f"two runs share a cell: {got}; name one of them")
    return made


def _parting(run: TableRun, pooled: str) -> dict[str, Any]:
    """The settings that may part runs of one name, each entry of the metadata by itself."""
    own = run.settings.get("metadata")
    entries = {f"{METADATA}{name}": text for name, text in own.items()} if isinstance(own, Mapping) else {}
    left_out = _IN_LABEL | {pooled, "metadata"}
    return {**{name: value for name, value in run.settings.items() if name not in left_out}, **entries}


def _in_words(name: str, value: Any) -> str:
    """A setting in a run's name; empty for an entry of the metadata, or tags, that it does not have."""
    if value is None and (name.startswith(METADATA) or name == "tags"):
        return ""
    words = ", ".join(map(str, value)) if isinstance(value, list) else value
    return f"{name.removeprefix(METADATA)} {words}"
