"""Finished run folders against each other. Reads `steps.jsonl`, `results.json` and, where it is there, `manifest.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import read_regular
from seeact_offline.records import InputError
from seeact_offline.runs.folder import read_results, read_steps
from seeact_offline.scoring.comparison import Comparison
from seeact_offline.scoring.paired import ScoredRun, compare_runs
from seeact_offline.scoring.waterfall import LEFT_OUT

NOT_RUN = frozenset({"not_run", "data_fault", "call_failed"})
"""Outcomes of steps that were never answered."""
_ORDER_ALONE = frozenset({"seed", "shuffled"})
"""Entries of a run's identity in which repeats may differ."""


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


def read_scored(run: Path, name: str = "") -> ScoredRun:
    """A finished run, as far as it is compared. Raises InputError."""
    results = read_results(run)
    counted = {key: step for key, step in read_steps(run).items() if step.outcome != LEFT_OUT}
    if len(counted) != results.n_steps:
        whole = f"{results.n_steps} steps that count in {run / 'steps.jsonl'}, as its results.json has"
        raise InputError("runs", whole, f"{len(counted)}; score the run again")
    return ScoredRun(
        name=name or run.name,
        protocol=results.protocol,
        steps=counted,
        n_not_run=sum(step.outcome in NOT_RUN for step in counted.values()),
        complete=results.complete,
        headline=results.headlines,
        identity=_identity(run / "manifest.json"),
    )


def _identity(path: Path) -> str:
    """What the run's predictions depend on, seed and order aside; empty where no manifest says so."""
    if not path.is_file():
        return ""
    try:
        identity = dict(read_json(read_regular(path))["identity"])
    except (FormatError, OSError, KeyError, TypeError, ValueError):
        return ""
    return json.dumps({name: value for name, value in identity.items() if name not in _ORDER_ALONE}, sort_keys=True)
