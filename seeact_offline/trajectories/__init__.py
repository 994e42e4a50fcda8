"""Trajectories: whole tasks with their pictures, actions, answers and verdicts; our own files and readers of others' folders."""

from __future__ import annotations

from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict
from seeact_offline.trajectories.trajectory_files import read_trajectories, write_trajectories

__all__ = ["Trajectory", "TrajectoryStep", "Verdict", "read_trajectories", "write_trajectories"]
