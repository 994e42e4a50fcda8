"""Finished run folders against each other. Reads `steps.jsonl`, `results.json` and, where it is there, `manifest.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.journal import Journal
from seeact_offline.files.named import read_regular
from seeact_offline.records import InputError, StepKey
from seeact_offline.scoring.compare import METRICS, ScoredRun, ScoredStep, compare_runs
from seeact_offline.scoring.comparison import Comparison
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.waterfall import LEFT_OUT

NOT_RUN = frozenset({"not_run", "data_fault", "call_failed"})
"""Outcomes of steps that were never answered."""
_ORDER_ALONE = frozenset({"seed", "shuffled"})
"""Entries of a run's identity in which repeats may differ."""
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


def compare(
    *runs: str | os.PathLike[str],
    by: Sequence[str] = (),
    intersect: bool = False,
    detect: float = 5.0,
    seed: int = 0,
) -> Comparison:
    """The first run against each other: differences, what is tied with the best, and what could have been found.

    `runs`: finished runs, or their folders. `by`: break down by website, domain, operation, difficulty, history or candidates.
    `intersect`: compare the steps that all have, where some run lacks some. `detect`: points of a difference for which the
    number of tasks is asked. Raises InputError, for runs of other steps or other protocols among others.
    """
    return compare_runs(
        [read_scored(Path(run), name) for run, name in zip(runs, _names(runs), strict=True)],
        by=by,
        intersect=intersect,
        detect=detect,
        seed=seed,
    )


def _names(runs: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Each folder's name, or its whole path where two have the same. Raises InputError for one folder twice."""
    paths = [Path(run).resolve() for run in runs]
    twice = [os.fspath(run) for run, path in zip(runs, paths, strict=True) if paths.count(path) > 1]
    if twice:
        raise InputError("runs", "different runs", f"{twice[0]} twice")
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [os.fspath(run) for run in runs]


class _Target(msgspec.Struct):
    op: str


class _StepLine(msgspec.Struct):
    """A line of `steps.jsonl`, as far as it is compared."""

    annotation_id: str
    action_uid: str
    outcome: str
    operation_f1: _Share | None
    target: _Target
    element: _Share | None = None
    success: _Share | None = None
    website: str = ""
    domain: str = ""
    n_actions: int = 0
    n_before: int = 0
    n_candidates: int = 0

    @property
    def scored(self) -> ScoredStep:
        return ScoredStep(
            key=StepKey(self.annotation_id, self.action_uid),
            website=self.website,
            domain=self.domain,
            op=self.target.op,
            outcome=self.outcome,
            element=self.element,
            operation_f1=self.operation_f1,
            success=self.success,
            n_actions=self.n_actions,
            n_before=self.n_before,
            n_candidates=self.n_candidates,
        )


class _Figure(msgspec.Struct):
    macro: float
    micro: float


class _Results(msgspec.Struct):
    """`results.json`, as far as it is needed here."""

    protocol: str
    n_steps: int
    complete: bool = True
    element_accuracy: _Figure | None = None
    operation_f1: _Figure | None = None
    step_success_rate: _Figure | None = None

    @property
    def headline(self) -> dict[str, float]:
        figures = {name: getattr(self, name) for name in METRICS}
        known = {name: msgspec.to_builtins(figure) for name, figure in figures.items() if figure is not None}
        return {name: headline(self.protocol, name, figure)["value"] for name, figure in known.items()}


def read_scored(run: Path, name: str = "") -> ScoredRun:
    """A finished run, as far as it is compared. Raises InputError."""
    results, rows = _results(run / "results.json"), _steps(run / "steps.jsonl")
    counted = {key: step for key, step in rows.items() if step.outcome != LEFT_OUT}
    if len(counted) != results.n_steps:
        whole = f"{results.n_steps} steps that count in {run / 'steps.jsonl'}, as its results.json has"
        raise InputError("runs", whole, f"{len(counted)}; score the run again")
    return ScoredRun(
        name=name or run.name,
        protocol=results.protocol,
        steps=counted,
        n_not_run=sum(step.outcome in NOT_RUN for step in counted.values()),
        complete=results.complete,
        headline=results.headline,
        identity=_identity(run / "manifest.json"),
    )


def _results(path: Path) -> _Results:
    try:
        return typed(_json(path), _Results)
    except FormatError as error:
        raise InputError("runs", error.expected, f"{error.got} in {path}") from None


def _steps(path: Path) -> dict[StepKey, ScoredStep]:
    """In the file's order. Raises InputError for a line that is no step score of ours, or a step twice."""
    steps: dict[StepKey, ScoredStep] = {}
    if not path.is_file():
        raise InputError(
            "runs", "folders of finished runs, with steps.jsonl", f"no {path}; finish the run, or score it"
        )
    for line in Journal(path).lines():
        try:
            step = typed(read_json(line.text), _StepLine).scored
        except FormatError as error:
            raise InputError("runs", error.expected, f"{error.got} in line {line.number} of {path}") from None
        if step.key in steps:
            raise InputError("runs", "every step once", f"{step.key} again in line {line.number} of {path}")
        steps[step.key] = step
    return steps


def _identity(path: Path) -> str:
    """What the run's predictions depend on, seed and order aside; empty where no manifest says so."""
    if not path.is_file():
        return ""
    try:
        identity = dict(_json(path)["identity"])
    except (FormatError, KeyError, TypeError, ValueError):
        return ""
    return json.dumps({name: value for name, value in identity.items() if name not in _ORDER_ALONE}, sort_keys=True)


def _json(path: Path) -> Any:
    """Raises FormatError, InputError where there is no such file."""
    try:
        return read_json(read_regular(path))
    except OSError:
        raise InputError("runs", f"folders of finished runs, with {path.name}", f"no {path} that can be read") from None
