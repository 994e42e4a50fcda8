"""Trajectories of recorded tasks: as they were recorded, damaged on purpose, and as a finished run would have gone on.

A recorded task has the recorded actions on the recorded pages, and the page after the last one where it was kept.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from seeact_offline.dataset import open_split
from seeact_offline.dataset.recorded import Check, FinalState, PageState
from seeact_offline.records import Fault, InputError, Prediction, RowError, Step, StepKey
from seeact_offline.runs.folder import RunFolder, read_manifest, read_steps
from seeact_offline.scoring.waterfall import LEFT_OUT
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict

CHECK = "check"


def recorded_trajectories(steps: Iterable[Step]) -> Iterator[Trajectory]:
    """Yields the tasks of steps that are in order of task.
    The verdict `check` says whether the task's conditions hold on its last page."""
    for _, task in groupby(steps, key=lambda step: step.annotation_id):
        yield recorded_trajectory(list(task))


def recorded_trajectory(steps: Sequence[Step]) -> Trajectory:
    """One task from all its steps, in order."""
    last, verdicts, faults = steps[-1], [], [fault for step in steps for fault in step.faults]
    final: FinalState | None = None
    pages = []
    for step in steps:
        state: PageState | None = None
        try:
            state = None if step.recorded is None else step.recorded.read(PageState)
        except RowError as error:
            faults.append(Fault(error.name, error.detail))
        address = None if state is None else state.address
        pages.append(TrajectoryStep(step.action_text or step.operation.text, "", address, step.screenshot))
    try:
        if last.recorded is not None:
            final, check = last.recorded.read(FinalState), last.recorded.read(Check)
            if check is not None and check.after is not None:
                verdicts.append(Verdict(CHECK, all(check.after), "check"))
    except RowError as error:
        faults.append(Fault(error.name, error.detail))
    if final is not None and last.recorded is not None:
        pages.append(TrajectoryStep("", "", final.address, last.recorded.final_screenshot))
    return Trajectory(
        id=last.annotation_id,
        task_id=last.annotation_id,
        task=last.task,
        steps=tuple(pages),
        answer=None if final is None else final.answer,
        verdicts=tuple(verdicts),
        website=last.website,
        faults=tuple(faults),
    )


# --- labels by construction ---

# Trajectories that are wrong because of what was done to a right one say how well a judge spots such damage, no more.
# Every rule leaves out the pages after the altered action, as they were never seen.

CONSTRUCTED = "constructed"
"""The name of labels by construction, among verdicts and in reports."""
_VALUE = re.compile(r"(?P<before>.*?(?:-> *(?:TYPE|SELECT): *|\bType \[?[0-9]+\]?[; ]+))(?P<value>\S.*)", re.DOTALL)
"""An action with a value, as recordings and WebVoyager write it."""
_TARGET = re.compile(r"(?P<target>.*\S)(?P<after> *-> *(?:CLICK|TYPE|SELECT|HOVER|ENTER)\b.*)", re.DOTALL)
"""An action that names its element before an arrow, as recordings and Online-Mind2Web write it."""


def constructed_trajectories(trajectories: Sequence[Trajectory], seed: int = 0) -> Iterator[Trajectory]:
    """Yields each right trajectory with a constructed label, then its damaged copies,
    one by each rule of DAMAGES that can be applied.

    Right is a trajectory of which no verdict says otherwise. A rule that would change nothing is left out.
    Choices depend on the trajectory's id and the seed, never on the order of the trajectories.
    """
    for trajectory in trajectories:
        if trajectory.faults or any(verdict.success is False for verdict in trajectory.verdicts):
            continue
        yield _labelled(trajectory, trajectory.id, True, "")
        for name, rule in DAMAGES.items():
            damaged = rule(trajectory, trajectories, random.Random(f"{seed} {name} {trajectory.id}"))
            if damaged is not None:
                yield _labelled(damaged, f"{trajectory.id}~{name}", False, name)


def _labelled(trajectory: Trajectory, name: str, success: bool, rule: str) -> Trajectory:
    verdict = Verdict(CONSTRUCTED, success, "constructed", rule or "as recorded")
    return replace(trajectory, id=name, constructed=rule or "none", verdicts=(verdict,))


def _cut(trajectory: Trajectory, others: Sequence[Trajectory], draw: random.Random) -> Trajectory | None:
    """Ends before the last action, without an answer."""
    last = _last_action(trajectory)
    return replace(trajectory, steps=_until(trajectory, last, ""), answer=None) if last is not None else None


def _target_exchanged(trajectory: Trajectory, others: Sequence[Trajectory], draw: random.Random) -> Trajectory | None:
    """Does the last action on the element of another action."""
    last = _last_action(trajectory)
    match = None if last is None else _TARGET.fullmatch(trajectory.steps[last].action)
    if last is None or match is None:
        return None
    targets = {named["target"] for t in (trajectory, *others) for a in t.actions if (named := _TARGET.fullmatch(a))}
    choices = sorted(targets - {match["target"]})
    if not choices:
        return None
    return replace(trajectory, steps=_until(trajectory, last, draw.choice(choices) + match["after"]), answer=None)


def _value_exchanged(trajectory: Trajectory, others: Sequence[Trajectory], draw: random.Random) -> Trajectory | None:
    """Types or selects another text at the last action that has one."""
    places = [(i, match) for i, step in enumerate(trajectory.steps) if (match := _VALUE.fullmatch(step.action))]
    if not places:
        return None
    place, match = places[-1]
    values = {named["value"] for t in (trajectory, *others) for a in t.actions if (named := _VALUE.fullmatch(a))}
    choices = sorted(value for value in values if value.casefold() != match["value"].casefold())
    if not choices:
        return None
    return replace(trajectory, steps=_until(trajectory, place, match["before"] + draw.choice(choices)), answer=None)


def _other_task(trajectory: Trajectory, others: Sequence[Trajectory], draw: random.Random) -> Trajectory | None:
    """Does what another task asks for, with its pages and its answer."""
    choices = sorted((t for t in others if t.task != trajectory.task and t.steps), key=lambda t: t.id)
    if not choices:
        return None
    other = draw.choice(choices)
    return replace(trajectory, steps=other.steps, answer=other.answer)


def _last_action(trajectory: Trajectory) -> int | None:
    return max((i for i, step in enumerate(trajectory.steps) if step.action), default=None)


def _until(trajectory: Trajectory, place: int, action: str) -> tuple[TrajectoryStep, ...]:
    """The steps up to this place, where another action, or none, is done."""
    return (*trajectory.steps[:place], replace(trajectory.steps[place], action=action, thought="", reply=""))


DAMAGES: Mapping[str, Callable[[Trajectory, Sequence[Trajectory], random.Random], Trajectory | None]] = {
    "cut": _cut,
    "target_exchanged": _target_exchanged,
    "value_exchanged": _value_exchanged,
    "other_task": _other_task,
}
"""Rule -> its function from a right trajectory, all trajectories and a source of chance;
None where it cannot be applied."""


# --- what a model would have done, up to its first step that is not as recorded ---

RULE = "model_run"
"""The name of labels by a run's step scores: success where every step is as recorded."""
DETAILS = {True: "as recorded", False: "a step is not as recorded", None: "a step is not scored"}


def run_trajectories(run: Path) -> Iterator[Trajectory]:
    """Yields a trajectory for each task whose steps are all scored.

    After the first wrong step nobody knows what would have come, so the pages end there. Raises InputError for a run of
    other rows than its data set has now, and for one without scores.
    """
    settings, predictions, scores = read_manifest(run).settings, RunFolder(run).load(), read_steps(run)
    split = open_split(settings["dataset"], settings["split"], limit=settings.get("limit"), tasks=settings.get("tasks"))
    if split.fingerprint != settings["dataset_fingerprint"]:
        raise InputError("source", sentence=f"{settings['dataset']} has other rows than {run} was run on")
    right = {key: None if row.outcome == LEFT_OUT else row.success == 1.0 for key, row in scores.items()}
    for _, task in groupby(split.steps(), key=lambda step: step.annotation_id):
        steps = list(task)
        if all(step.key in right and step.key in predictions for step in steps):
            yield _run_trajectory(steps, predictions, right, str(settings["model"]))


def _run_trajectory(
    steps: Sequence[Step], predictions: Mapping[StepKey, Prediction], right: Mapping[StepKey, bool | None], agent: str
) -> Trajectory:
    (recorded,) = recorded_trajectories(steps)
    pages: list[TrajectoryStep] = []
    for step, page in zip(steps, recorded.steps, strict=False):
        pages.append(replace(page, action=_predicted_action(predictions[step.key])))
        if right[step.key] is False:
            break
    scores = {right[step.key] for step in steps}
    # nobody knows of a step that the protocol leaves out
    success = False if False in scores else None if None in scores else True
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


def _predicted_action(prediction: Prediction) -> str:
    if prediction.element_id is None and not prediction.op:
        return "(no action)"
    element = prediction.element_text or "(no element)"
    return f"{element} -> {prediction.op}" + (f": {prediction.value}" if prediction.value else "")
