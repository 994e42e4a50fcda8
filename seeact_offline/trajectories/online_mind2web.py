"""Online-Mind2Web's submissions, versions 1 and 2: a folder a task, with `result.json` and `trajectory/N_*.png`
(OSU-NLP-Group/Online-Mind2Web ccdeb0d, src/run.py)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from seeact_offline.trajectories.foreign_files import MOST_PICTURES, BadTrajectory, find, picture, read_inside
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep

RESULT = "result.json"
PICTURES = "trajectory"
V2 = "online-mind2web-v2"
_NUMBER = re.compile(r"[0-9]{1,9}")


class _Version(msgspec.Struct, frozen=True):
    schema_version: str | None = None


class _V1(msgspec.Struct, frozen=True):
    task: str
    task_id: str = ""
    action_history: tuple[str | None, ...] = ()
    thoughts: tuple[str | None, ...] = ()
    final_result_response: str | None = None


class _V2Step(msgspec.Struct, frozen=True):
    action: str
    screenshot: str | None = None
    thought: str | None = None
    url: str | None = None


class _V2(msgspec.Struct, frozen=True):
    task: str
    task_id: str
    action_history: tuple[_V2Step, ...]
    agent_final_answer: str | None = None


def online_mind2web_trajectories(folder: Path) -> Iterator[Trajectory]:
    """Yields the tasks below a folder, in order of path. One that cannot be read has the fault `bad_trajectory`."""
    for path in find(folder, RESULT):
        name = path.parent.relative_to(folder).as_posix()
        try:
            if read_inside(folder, path, _Version).schema_version == V2:
                yield _second(path.parent, name, read_inside(folder, path, _V2))
            else:
                yield _first(path.parent, name, read_inside(folder, path, _V1))
        except BadTrajectory as error:
            yield error.as_trajectory(name, path.parent.name)


def _first(folder: Path, name: str, result: _V1) -> Trajectory:
    """Version 1: three lists, of which the pictures' is one longer where the last page was taken too."""
    shots, actions, thoughts = _pictures(folder), result.action_history, result.thoughts
    steps = tuple(
        TrajectoryStep(
            (actions[i] or "") if i < len(actions) else "",
            (thoughts[i] or "") if i < len(thoughts) else "",
            screenshot=picture(folder, shots[i]) if i < len(shots) else None,
        )
        for i in range(max(len(shots), len(actions)))
    )
    answer = result.final_result_response
    return Trajectory(name, result.task_id or folder.name, result.task, steps, answer or None)


def _second(folder: Path, name: str, result: _V2) -> Trajectory:
    """Version 2: the last action is the agent's answer, which is no action on a page."""
    last = len(result.action_history) - 1
    steps = tuple(
        TrajectoryStep(
            "" if i == last else step.action,
            step.thought or "",
            step.url or None,
            picture(folder, f"{PICTURES}/{step.screenshot}") if step.screenshot else None,
        )
        for i, step in enumerate(result.action_history)
    )
    return Trajectory(name, result.task_id, result.task, steps, result.agent_final_answer or None)


def _pictures(folder: Path) -> list[str]:
    """Returns the paths of the pictures in order of the first number in their names, without hidden files."""
    try:
        names = os.listdir(folder / PICTURES)
    except OSError as error:
        raise BadTrajectory(f"{PICTURES} cannot be read: {error.strerror}") from None
    numbered = sorted((int(found[0]), name) for name in names if name[0] != "." and (found := _NUMBER.search(name)))
    if len(numbered) > MOST_PICTURES:
        raise BadTrajectory(f"expected at most {MOST_PICTURES:,} pictures, got {len(numbered):,}")
    return [f"{PICTURES}/{name}" for _, name in numbered]
