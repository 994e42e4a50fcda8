"""Gives a finished run's figures, settings and hash to experiment trackers: `--report-to wandb,mlflow,trackio`.

Each tracker is an extra, is imported only when it is asked for, and is left to its own environment variables
(WANDB_MODE, WANDB_PROJECT, MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME, TRACKIO_SPACE_ID, ...). It is given values of
`results.json` and `manifest.json` alone: no page, prompt, reply, task or typed value leaves this machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from seeact_offline.files.digest import file_digest
from seeact_offline.files.extras import install_command
from seeact_offline.files.redaction import redact_values
from seeact_offline.records import InputError
from seeact_offline.scoring.results import ENTRIES

if TYPE_CHECKING:
    from seeact_offline.runs.run import Run

PROJECT = "seeact-offline"
"""The project of runs unless the tracker's own variables name another."""


def open_reporters(names: Sequence[str]) -> list[Callable[[Run], None]]:
    """Functions that give a run to each of these trackers. Raises InputError for an unknown one, and
    for one that is not installed."""
    unknown = [name for name in names if name not in REPORTERS]
    if unknown:
        raise InputError("report_to", f"some of {', '.join(REPORTERS)}", unknown[0] or "an empty name")
    reporters: list[Callable[[Run], None]] = []
    for name in dict.fromkeys(names):
        try:
            reporters.append(partial(_report, name, import_module(name)))
        except ImportError:
            hint = install_command(name)
            raise InputError("report_to", sentence=f"`report_to` {name} needs that package: run {hint}") from None
    return reporters


def _report(name: str, tracker: Any, run: Run) -> None:
    try:
        REPORTERS[name](tracker, run)
    except Exception as error:
        # anything can come out of a tracker, and the run is on disk by now: one sentence rather than a traceback
        problem = f"{type(error).__name__}: {redact_values(str(error))}"
        raise InputError("report_to", f"{name} to take the figures of {run.path}", problem) from error


def _report_to_wandb(tracker: Any, run: Run) -> None:
    """Reports to W&B, or to Trackio, which has the same functions."""
    project = os.environ.get(f"{tracker.__name__.upper()}_PROJECT", PROJECT)
    tracker.init(project=project, name=run.path.resolve().name, config=settings(run))
    try:
        tracker.log(figures(run))
    finally:
        tracker.finish()


def _report_to_mlflow(mlflow: Any, run: Run) -> None:
    if not {"MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"} & set(os.environ):
        mlflow.set_experiment(PROJECT)
    with mlflow.start_run(run_name=run.path.resolve().name):
        mlflow.log_params(settings(run))
        mlflow.log_metrics({name: float(value) for name, value in figures(run).items()})


REPORTERS: dict[str, Callable[[Any, Run], None]] = {
    "wandb": _report_to_wandb,
    "mlflow": _report_to_mlflow,
    "trackio": _report_to_wandb,
}
"""Each is named like its package and the extra that installs it; its first argument is the package."""


def figures(run: Run) -> dict[str, float]:
    """Every number of `results.json` that is no setting, by its path, such as `element_accuracy/macro`.

    An interval's two ends are named low and high. Unknown values (null) and other lists are left out.
    """
    entries = run.record.entries
    return dict(_numbers({name: entries[name] for name in ENTRIES if name in entries}))


def _numbers(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{path}{name}/")
        elif isinstance(value, list | tuple) and name.endswith("ci95"):
            yield from zip((f"{path}{name}/low", f"{path}{name}/high"), value, strict=True)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{path}{name}", value


def settings(run: Run) -> dict[str, str | int | float | bool]:
    """The run's settings and hash (`results_sha256`), without secrets of this process.

    Nested settings are JSON; those that were not set, and the list of tasks, are left out.
    """
    digest, commit = file_digest(run.path / "results.json"), run.manifest.get("git_commit")
    named = {**run.manifest["settings"], "results_sha256": digest, "git_commit": commit}
    safe = {name: redact_values(value) for name, value in named.items() if value is not None and name != "tasks"}
    plain = str | int | float | bool
    return {n: v if isinstance(v, plain) else json.dumps(v, ensure_ascii=False) for n, v in safe.items()}
