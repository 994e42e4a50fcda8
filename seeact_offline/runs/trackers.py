"""A finished run's figures, settings and hash for experiment trackers: `--report-to wandb,mlflow,trackio`.

Each tracker is an extra, is imported only when it is asked for, and is left to its own environment variables (WANDB_MODE,
WANDB_PROJECT, MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME, TRACKIO_SPACE_ID, ...). What a tracker is given comes from `results.json` and `manifest.json`
alone: no page, prompt, reply, task or typed value leaves this machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from seeact_offline.files.digest import file_digest
from seeact_offline.files.redaction import redact_values
from seeact_offline.records import InputError
from seeact_offline.runs.run import Run

PROJECT = "seeact-offline"
"""Where runs are filed unless the tracker's own variables say otherwise."""
_NO_FIGURES = frozenset({"schema", "complete"})
_NO_SETTINGS = frozenset({"tasks"})
Reporter = Callable[[Any, Run], None]
"""Gives a run to a tracker; the first argument is the tracker's module."""


def open_reporters(names: Sequence[str]) -> list[Callable[[Run], None]]:
    """What gives a run to each of these trackers. Raises InputError for an unknown one, and for one that is not installed."""
    unknown = [name for name in names if name not in REPORTERS]
    if unknown:
        raise InputError("report_to", f"some of {', '.join(REPORTERS)}", unknown[0] or "an empty name")
    return [_reporter(name) for name in dict.fromkeys(names)]


def _reporter(name: str) -> Callable[[Run], None]:
    try:
        tracker = import_module(name)
    except ImportError:
        expected = f"{name} to be installed: pip install 'seeact-offline[{name}]'"
        raise InputError("report_to", expected, "no such package") from None

    def report(run: Run) -> None:
        try:
            REPORTERS[name](tracker, run)
        except Exception as error:
            # anything can come out of a tracker, and the run is on disk by now: one sentence rather than a traceback
            found = f"{type(error).__name__}: {redact_values(str(error))}"
            raise InputError("report_to", f"{name} to take the figures of {run.path}", found) from error

    return report


def _in_wandbs_way(tracker: Any, run: Run) -> None:
    """W&B, and Trackio, which has the same functions."""
    project = os.environ.get(f"{tracker.__name__.upper()}_PROJECT", PROJECT)
    tracker.init(project=project, name=run.path.resolve().name, config=settings(run))
    try:
        tracker.log(figures(run))
    finally:
        tracker.finish()


def _in_mlflow(mlflow: Any, run: Run) -> None:
    if not {"MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"} & set(os.environ):
        mlflow.set_experiment(PROJECT)
    with mlflow.start_run(run_name=run.path.resolve().name):
        mlflow.log_params(settings(run))
        mlflow.log_metrics({name: float(value) for name, value in figures(run).items()})


REPORTERS: dict[str, Reporter] = {"wandb": _in_wandbs_way, "mlflow": _in_mlflow, "trackio": _in_wandbs_way}
"""Each is named like its package and the extra that installs it."""


def figures(run: Run) -> dict[str, float]:
    """Every number of `results.json` that is no setting, by its path, such as `element_accuracy/macro`.

    An interval's two ends are named low and high. What is not known (null), and other lists, are left out.
    """
    known = {*run.manifest["settings"], *_NO_FIGURES}
    return dict(_numbers({name: held for name, held in run.results.items() if name not in known}))


def _numbers(held: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float]]:
    for name, value in held.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{path}{name}/")
        elif isinstance(value, list) and name.endswith("ci95"):
            yield from zip((f"{path}{name}/low", f"{path}{name}/high"), value, strict=True)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{path}{name}", value


def settings(run: Run) -> dict[str, str | int | float | bool]:
    """What the run was asked to do and the run's hash (`results_sha256`); secrets of this process are blotted out.

    Nested settings are JSON; those that were not set, and the list of tasks, are left out.
    """
    named = {"results_sha256": file_digest(run.path / "results.json")}
    asked = {**run.manifest["settings"], **named, "git_commit": run.manifest.get("git_commit")}
    return {
        name: _plain(redact_values(value))
        for name, value in asked.items()
        if value is not None and name not in _NO_SETTINGS
    }


def _plain(value: Any) -> str | int | float | bool:
    return value if isinstance(value, str | int | float | bool) else json.dumps(value, ensure_ascii=False)
