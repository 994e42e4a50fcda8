"""Online-Mind2Web's submissions, versions 1 and 2, and SeeAct's own online runs: a folder a task, with `result.json` and pictures whose names
hold the number of their step, such as `trajectory/N_*.png`.

Sources: OSU-NLP-Group/Online-Mind2Web ccdeb0d, src/run.py; OSU-NLP-Group/SeeAct 2434627, src/seeact.py and seeact_package/seeact/agent.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seeact_offline.trajectories.foreign_files import MOST_PICTURES, BadTrajectory, find, picture, read_inside
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict

RESULT = "result.json"
PICTURES = "trajectory"
SEEACT_PICTURES = ("image_inputs", "screenshots")
"""Folders of SeeAct's pictures: of its script, which crops one a question, and of its package."""
V2 = "online-mind2web-v2"
_NUMBER = re.compile(r"[0-9]{1,9}")


class _Version(msgspec.Struct, frozen=True):
    schema_version: str | None = None


class _V1(msgspec.Struct, frozen=True):
    """Version 1 and SeeAct's files, of which the script's has another name for the task and the package's all tasks of the session."""

    task: str | tuple[str, ...] = ()
    confirmed_task: str | None = None
    task_id: str = ""
    website: str | None = None
    action_history: tuple[str | None, ...] = ()
    thoughts: tuple[str | None, ...] = ()
    final_result_response: str | None = None
    judge: Any = None
    success_or_not: Any = None


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
    """Version 1 and SeeAct: lists of actions and thoughts, and pictures, of which one more may show the last page."""
    tasks = (result.task,) if isinstance(result.task, str) else result.task
    task = result.confirmed_task if result.confirmed_task is not None else next(reversed(tasks), None)
    if task is None:
        raise BadTrajectory(f"{RESULT}: expected task or confirmed_task, got neither")
    actions, thoughts = result.action_history, result.thoughts
    shots = _by_step(_pictures(folder), len(actions))
    steps = tuple(
        TrajectoryStep(
            (actions[i] or "") if i < len(actions) else "",
            (thoughts[i] or "") if i < len(thoughts) else "",
            screenshot=picture(folder, shots[i]) if i in shots else None,
        )
        for i in range(max(len(actions), *(i + 1 for i in shots), 0))
    )
    answer = result.final_result_response or None
    task_id = result.task_id or folder.name
    return Trajectory(name, task_id, task, steps, answer, _verdicts(result), website=result.website or "")


def _verdicts(result: _V1) -> tuple[Verdict, ...]:
    """The verdicts that a file holds: Browser Use's judge writes a score of 0 or 100, and SeeAct leaves a field for a person's 0 or 1."""
    found = []
    if isinstance(result.judge, dict) and "score" in result.judge:
        score, reasons = result.judge["score"], result.judge.get("reasoning")
        success = True if score == 100 else False if score == 0 else None
        found.append(Verdict("judge", success, "model", reasons if isinstance(reasons, str) else ""))
    if (label := str(result.success_or_not)) in ("0", "1"):
        found.append(Verdict("annotator-1", label == "1", "person"))
    return tuple(found)


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


def _by_step(pictures: list[tuple[int, str]], n_actions: int) -> Mapping[int, str]:
    """Step, from 0 -> its picture. A run counts from 0 or from 1, and lacks the pictures that it failed to take; numbers that cannot be those
    of steps, such as times, only order the pictures."""
    numbers = [number for number, _ in pictures]
    first = 0 if 0 in numbers else 1
    if len(set(numbers)) == len(numbers) and max(numbers, default=0) - first <= n_actions:
        return {number - first: path for number, path in pictures}
    return dict(enumerate(path for _, path in pictures))


def _pictures(folder: Path) -> list[tuple[int, str]]:
    """Numbers and paths of the pictures in order of the first number in their names, without hidden files; none where there is no folder
    of them."""
    place = next((name for name in (PICTURES, *SEEACT_PICTURES) if (folder / name).exists()), None)
    if place is None:
        return []
    try:
        names = os.listdir(folder / place)
    except OSError as error:
        raise BadTrajectory(f"{place} cannot be read: {error.strerror}") from None
    numbered = sorted((int(found[0]), name) for name in names if name[0] != "." and (found := _NUMBER.search(name)))
    if len(numbered) > MOST_PICTURES:
        raise BadTrajectory(f"expected at most {MOST_PICTURES:,} pictures, got {len(numbered):,}")
    pictures = [(number, f"{place}/{name}") for number, name in numbered]
    # of SeeAct's pictures of one step, the last is that on which it chose
    return list(dict(pictures).items()) if place in SEEACT_PICTURES else pictures
