"""Trajectories: whole tasks with their pictures, actions, answers and verdicts; our own files and readers of others' folders."""

from __future__ import annotations

from seeact_offline.trajectories.constructed import constructed_trajectories
from seeact_offline.trajectories.opening import open_trajectories
from seeact_offline.trajectories.recordings import recorded_trajectories
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict
from seeact_offline.trajectories.trajectory_files import read_trajectories, write_trajectories

__all__ = [
    "Trajectory",
    "TrajectoryStep",
    "Verdict",
    "constructed_trajectories",
    "open_trajectories",
    "read_trajectories",
    "recorded_trajectories",
    "write_trajectories",
]
