"""Compares finished run folders. Reads `steps.jsonl`, `results.json` and, where it is there, `manifest.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from seeact_offline.records import InputError, StepKey
from seeact_offline.runs.folder import read_manifest, read_results, read_steps
from seeact_offline.scoring.comparison import Comparison
from seeact_offline.scoring.paired import DataName, ScoredRun, compare_runs, pooled
from seeact_offline.scoring.waterfall import LEFT_OUT, NOT_RUN

_VARIED_BY_REPEATS = frozenset({"seed", "shuffled"})
"""Entries of a run's identity in which repeats may differ."""


def compare(
    *runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    by: Sequence[str] = (),
    intersect: bool = False,
    detect: float = 5.0,
    seed: int = 0,
) -> Comparison:
    """Compares each other run with the first, the baseline: differences (other minus baseline), runs tied with the
    best, and the smallest detectable differences.

    `runs`: finished runs, or their folders; or lists of them, such as the seeds of a method, each of which is compared
    as the mean of its runs. `by`: break down by website, domain, operation, difficulty, history or candidates.
    `intersect`: compare the steps that all have, where some run lacks some. `detect`: the difference, in points, for
    which the number of tasks needed is computed. Raises InputError, also for runs of other steps or other protocols.
    """
    groups = [[run] if isinstance(run, str | os.PathLike) else [*run] for run in runs]
    flat = [run for group in groups for run in group]
    paths = [Path(run).resolve() for run in flat]
    twice = [os.fspath(run) for run, path in zip(flat, paths, strict=True) if paths.count(path) > 1]
    if twice:
        raise InputError("runs", sentence=f"{twice[0]} is named twice; name different runs")
    names = [_label(path) or path.name for path in paths]
    if len(set(names)) < len(names):
        names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [os.fspath(run) for run in flat]
    scored = iter([read_scored(Path(run), name) for run, name in zip(flat, names, strict=True)])
    read = [[next(scored) for _ in group] for group in groups]
    if not all(isinstance(run, str | os.PathLike) for run in runs):
        numbers = [f"group {number}" for number in range(1, len(groups) + 1)]
        # the label that all runs of a group share, where no two groups share theirs
        shared = [{_label(Path(run)) for run in group} for group in groups]
        made = [(len(labels) == 1 and next(iter(labels))) or n for labels, n in zip(shared, numbers, strict=True)]
        names = made if len(set(made)) == len(made) else numbers
        compared = [pooled(name, group, intersect) for name, group in zip(names, read, strict=True)]
    else:
        compared = [run for group in read for run in group]
    return compare_runs(compared, by=by, intersect=intersect, detect=detect, seed=seed)


def _label(run: Path) -> str:
    """The name that its user gave a run; empty for none."""
    try:
        return str(read_manifest(run).settings.get("label") or "")
    except InputError:
        return ""


def check_baseline(run: Path, asked: Collection[StepKey]) -> None:
    """Raises InputError where a finished run has not exactly these steps."""
    try:
        read_scored(run)
    except InputError as error:
        raise error.renamed("baseline") from None
    had = read_steps(run).keys()
    if had != frozenset(asked):
        shared = f"{len(had)} steps, {len(had & frozenset(asked))} of them among the {len(asked)} asked for"
        raise InputError(
            "baseline", sentence=f"{run} has {shared}; name a finished run of the same steps as `baseline`"
        )


def read_scored(run: Path, name: str = "") -> ScoredRun:
    """The fields of a finished run that a comparison uses. Raises InputError."""
    results = read_results(run)
    try:
        manifest = read_manifest(run)
        alike = {name: value for name, value in manifest.identity.items() if name not in _VARIED_BY_REPEATS}
        identity = json.dumps(alike, sort_keys=True)
        # a repeat in another order has its run's id
        origin = [manifest.made.run if manifest.made else "", manifest.identity]
    except InputError:
        # no manifest names the settings that the predictions depend on
        identity, origin = "", ["", results.settings]
    counted = {key: step for key, step in read_steps(run).items() if step.outcome != LEFT_OUT}
    if len(counted) != results.n_steps:
        raise InputError(
            "runs",
            sentence=f"{run} has {len(counted)} steps that count, and {results.n_steps} in its"
            " results.json; score the run again",
        )
    return ScoredRun(
        name=name or run.name,
        protocol=results.protocol,
        steps=counted,
        n_not_run=sum(step.outcome in NOT_RUN for step in counted.values()),
        complete=results.complete,
        headline={name: headline["value"] for name, headline in results.headlines.items()},
        identity=identity,
        origin=json.dumps(origin, sort_keys=True),
        data=DataName.of(results.settings),
    )
