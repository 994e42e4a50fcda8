"""Opens a folder of trajectories of any known format, which its files tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from seeact_offline.records import InputError
from seeact_offline.trajectories.agent_reward_bench import agent_reward_bench_trajectories
from seeact_offline.trajectories.foreign_files import BadTrajectory, find
from seeact_offline.trajectories.online_mind2web import RESULT, online_mind2web_trajectories
from seeact_offline.trajectories.trajectory import Trajectory
from seeact_offline.trajectories.trajectory_files import LINES, read_trajectories
from seeact_offline.trajectories.webvoyager_folders import MESSAGES, webvoyager_trajectories

READERS: Mapping[str, Callable[[Path], Iterator[Trajectory]]] = {
    MESSAGES: webvoyager_trajectories,
    RESULT: online_mind2web_trajectories,
    "*.json": agent_reward_bench_trajectories,
}
"""File by which a format is known -> its reader; the first that is found counts."""


def open_trajectories(folder: Path, labels: Path | None = None) -> Iterator[Trajectory]:
    """Yields the trajectories of a folder of ours, WebVoyager, Online-Mind2Web (1 and 2), SeeAct or AgentRewardBench, one at a time.

    `labels`: people's CSV of AgentRewardBench; other formats have none. Raises InputError for a folder of no known format.
    """
    if not folder.is_dir():
        raise InputError("trajectories", "a folder", str(folder))
    is_ours = (folder / LINES).is_file()
    name = next((name for name in READERS if next(find(folder, name), None) is not None), None)
    if name is None and not is_ours:
        wanted = f"a folder with {LINES}, {MESSAGES}, {RESULT} or AgentRewardBench's JSON files"
        raise InputError("trajectories", wanted, f"none of them in {folder}")
    reader = read_trajectories if is_ours or name is None else READERS[name]
    if labels is None:
        return _with_named(reader(folder))
    if reader is not agent_reward_bench_trajectories:
        raise InputError("labels", sentence="`labels` is for AgentRewardBench's trajectories alone; remove it")
    return _with_named(agent_reward_bench_trajectories(folder, labels))


def _with_named(trajectories: Iterator[Trajectory]) -> Iterator[Trajectory]:
    """Yields the trajectories; one whose id no file, server or database can hold has the fault `bad_trajectory` instead of its content."""
    for trajectory in trajectories:
        ids = trajectory.id, trajectory.task_id
        name, task_id = (one.encode(errors="backslashreplace").decode() for one in ids)
        if name.strip() and (name, task_id) == ids:
            yield trajectory
        else:
            yield BadTrajectory(f"expected an id in UTF-8, got {name!r}").as_trajectory(
                name.strip() or "unnamed", task_id
            )
