"""Recorded tasks as trajectories: the recorded actions on the recorded pages, and the page after the last one where it was kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from seeact_offline.dataset.recorded import Check, FinalState, PageState
from seeact_offline.records import Fault, RowError, Step
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict

CHECK = "check"


def recorded_trajectories(steps: Iterable[Step]) -> Iterator[Trajectory]:
    """Yields the tasks of steps that are in order of task. The verdict `check` says whether the task's conditions hold on its last page."""
    for _, task in groupby(steps, key=lambda step: step.annotation_id):
        yield recorded_trajectory(list(task))


def recorded_trajectory(steps: Sequence[Step]) -> Trajectory:
    """One task from all its steps, in order."""
    last, verdicts, faults = steps[-1], [], [fault for step in steps for fault in step.faults]
    final: FinalState | None = None
    pages = [TrajectoryStep(_action(step), "", _address(step, faults), step.screenshot) for step in steps]
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


def _action(step: Step) -> str:
    return step.action_text or step.operation.text


def _address(step: Step, faults: list[Fault]) -> str | None:
    try:
        state = None if step.recorded is None else step.recorded.read(PageState)
    except RowError as error:
        faults.append(Fault(error.name, error.detail))
        return None
    return None if state is None else state.address
