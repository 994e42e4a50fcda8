"""Folders of WebVoyager and OpenWebVoyager: one a task, with `interact_messages.json` and `screenshotN.png` (WebVoyager 5a78967, run.py)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from seeact_offline.trajectories.foreign_files import MOST_PICTURES, BadTrajectory, find, picture, read_inside
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep

MESSAGES = "interact_messages.json"
_TASK = re.compile(r"Now given a task:(?P<task>.*?)(?:Please interact with\s*(?P<address>\S+)|\Z)", re.DOTALL)
_OPEN_TASK = re.compile(r"\A(?P<task>.*?)OBSERVATION:", re.DOTALL)
"""OpenWebVoyager's first turn: the task, then the observation."""
_PARTS = re.compile(r"Thought:|Action:|Observation:")
_ANSWER = re.compile(r"Action:\s*ANSWER[:; ]+\[?(?P<answer>.[^\]]*)\]?\s*", re.DOTALL)
_PICTURE = re.compile(r"screenshot([0-9]{1,6})\.png")


class _Message(msgspec.Struct, frozen=True):
    role: str
    content: Any = None

    @property
    def text(self) -> str:
        """Its text, whether it is one or is among parts."""
        if isinstance(self.content, str):
            return self.content
        parts = self.content if isinstance(self.content, list) else []
        return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def webvoyager_trajectories(folder: Path) -> Iterator[Trajectory]:
    """Yields the tasks below a folder, in order of path. One that cannot be read has the fault `bad_trajectory`."""
    for path in find(folder, MESSAGES):
        name = path.parent.relative_to(folder).as_posix()
        task_id = path.parent.name.removeprefix("task") or name
        try:
            yield _trajectory(folder, path, task_id if name == "." else name, task_id)
        except BadTrajectory as error:
            yield error.as_trajectory(name, task_id)


def _trajectory(folder: Path, path: Path, name: str, task_id: str) -> Trajectory:
    messages = read_inside(folder, path, tuple[_Message, ...])
    first = next((message.text for message in messages if message.role == "user"), "")
    found = _TASK.search(first) or _OPEN_TASK.search(first)
    if found is None:
        raise BadTrajectory(f"{MESSAGES}: expected a first message with a task, got {first!r:.60}")
    address = found.groupdict().get("address")
    replies = [message.text for message in messages if message.role == "assistant"]
    answered = _ANSWER.search(replies[-1]) if replies else None
    return Trajectory(
        id=name,
        task_id=task_id,
        task=found["task"].strip(),
        steps=tuple(_steps(path.parent, replies, address)),
        answer=answered["answer"].strip() if answered else None,
        website=task_id.rpartition("--")[0],
    )


def _steps(folder: Path, replies: list[str], address: str | None) -> Iterator[TrajectoryStep]:
    """Yields a step a reply, and one for each further picture. Reply n saw picture n; after a format error there is no new one.

    Spacing is kept in `reply`, as the released judge looks for an exact text.
    """
    pictures = dict(sorted(_pictures(folder)))
    for number in sorted({*pictures, *range(1, len(replies) + 1)}):
        shot = picture(folder, pictures[number]) if number in pictures else None
        reply = replies[number - 1] if 1 <= number <= len(replies) else ""
        pieces = _PARTS.split(reply)
        thought, action = (pieces[1], pieces[2]) if len(pieces) > 2 else ("", pieces[-1])
        step = TrajectoryStep(action.strip(), thought.strip(), address if number == 1 else None, shot)
        yield step if reply == step.told else replace(step, reply=reply)


def _pictures(folder: Path) -> Iterator[tuple[int, str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            found = _PICTURE.fullmatch(entry.name)
            if found and int(found[1]) <= MOST_PICTURES:
                yield int(found[1]), entry.name
