"""The finished predictions of a run scored again, under its own or another protocol. Asks no model and needs no scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seeact_offline.dataset import open_split
from seeact_offline.files.markdown import printable
from seeact_offline.grounding.strategies import notes
from seeact_offline.records import InputError
from seeact_offline.runs.config import UNGROUNDED
from seeact_offline.runs.directory import RunDirectory, read_manifest
from seeact_offline.runs.orders import finished_repeats
from seeact_offline.runs.run import Run
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.protocols import find_protocol
from seeact_offline.scoring.report import report
from seeact_offline.scoring.results import assemble


def rescore(
    run: Path, *, protocol: str | None = None, dataset: Any = None, to: Path | None = None, watch: Watch | None = None
) -> Run:
    """`protocol`, `dataset`: the run's unless given. `to`: where scores and report go, the run's own folder unless given.

    Raises InputError, for data that are not the run's among others.
    """
    watch, content = watch or Watch(), read_manifest(run)
    settings = content["settings"]
    rules = find_protocol(protocol or settings["protocol"], grounded=settings.get("grounding") != UNGROUNDED)
    dataset = dataset or settings["dataset"]
    split = open_split(dataset, settings["split"], limit=settings["limit"], tasks=settings.get("tasks"))
    if split.fingerprint != settings["dataset_fingerprint"]:
        raise InputError("dataset", f"the data that {run} was run on", f"other rows in {dataset}")
    known = RunDirectory(run).load()
    truths = [step.truth for step in split.steps()]
    reached = [truth for truth in truths if truth.key in known]
    if len(reached) < len(truths):
        watch.note(f"{len(truths) - len(reached)} of {len(truths)} steps have no prediction and are left out")
    made = assemble(
        [known[truth.key] for truth in reached],
        reached,
        rules,
        settings,
        complete=len(reached) == len(truths),
        flagged=RunDirectory(run).flagged(),
        orders=finished_repeats(run, reached),
    )
    out = to or run
    out.mkdir(parents=True, exist_ok=True)
    RunDirectory(out).write_scores(made.rows, made.results, printable(report(made.results, made.rows, notes())))
    return Run(out)
