"""A finished run as trajectories: what the model would have done on the recorded pages, up to its first step that is not as recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from seeact_offline.dataset import open_split
from seeact_offline.records import InputError, Prediction, Step, StepKey
from seeact_offline.runs.folder import RunFolder, read_manifest, read_steps
from seeact_offline.scoring.waterfall import LEFT_OUT
from seeact_offline.trajectories import Trajectory, TrajectoryStep, Verdict, recorded_trajectories

RULE = "model_run"
"""The name of labels by a run's step scores: success where every step is as recorded."""
DETAILS = {True: "as recorded", False: "a step is not as recorded", None: "a step is not scored"}


def run_trajectories(run: Path) -> Iterator[Trajectory]:
    """Yields a trajectory for each task whose steps are all scored.

    After the first wrong step nobody knows what would have come, so the pages end there. Raises InputError for a run of other rows than
    its data set has now, and for one without scores.
    """
    settings, known, scores = read_manifest(run).settings, RunFolder(run).load(), read_steps(run)
    split = open_split(settings["dataset"], settings["split"], limit=settings.get("limit"), tasks=settings.get("tasks"))
    if split.fingerprint != settings["dataset_fingerprint"]:
        raise InputError("source", sentence=f"{settings['dataset']} has other rows than {run} was run on")
    right = {key: None if row.outcome == LEFT_OUT else row.success == 1.0 for key, row in scores.items()}
    for _, task in groupby(split.steps(), key=lambda step: step.annotation_id):
        steps = list(task)
        if all(step.key in right and step.key in known for step in steps):
            yield _trajectory(steps, known, right, str(settings["model"]))


def _trajectory(
    steps: Sequence[Step], known: Mapping[StepKey, Prediction], right: Mapping[StepKey, bool | None], agent: str
) -> Trajectory:
    (recorded,) = recorded_trajectories(steps)
    pages: list[TrajectoryStep] = []
    for step, page in zip(steps, recorded.steps, strict=False):
        pages.append(replace(page, action=_action(known[step.key])))
        if right[step.key] is False:
            break
    found = {right[step.key] for step in steps}
    # nobody knows of a step that the protocol leaves out
    success = False if False in found else None if None in found else True
    # the page to which the last action leads is known for the recorded one alone
    pages += recorded.steps[len(steps) :] if success else ()
    verdict = Verdict(RULE, success, "constructed", DETAILS[success])
    return replace(
        recorded,
        id=f"{recorded.id}~{agent}",
        steps=tuple(pages),
        answer=None,
        verdicts=(verdict,),
        agent=agent,
        constructed=RULE,
    )


def _action(prediction: Prediction) -> str:
    if prediction.element_id is None and not prediction.op:
        return "(no action)"
    element = prediction.element_text or "(no element)"
    return f"{element} -> {prediction.op}" + (f": {prediction.value}" if prediction.value else "")
