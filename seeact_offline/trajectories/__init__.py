"""Whole tasks: their record and readers of others' folders, judges of them, rewards by programs,
and agreement of verdicts with labels."""

from __future__ import annotations

from seeact_offline.trajectories.answer_rules import REASONS, Unscored
from seeact_offline.trajectories.foreign_folders import open_trajectories
from seeact_offline.trajectories.recorded_tasks import constructed_trajectories, recorded_trajectories
from seeact_offline.trajectories.rewarding import Part, RewardTask, TaskReward, read_tasks, reward
from seeact_offline.trajectories.rule_sets import RULES, RuleSet
from seeact_offline.trajectories.task_states import TaskState, read_state
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict
from seeact_offline.trajectories.trajectory_files import read_trajectories, write_trajectories
from seeact_offline.trajectories.verdict_rules import READERS, read_verdict

__all__ = [
    "READERS",
    "REASONS",
    "RULES",
    "Part",
    "RewardTask",
    "RuleSet",
    "TaskReward",
    "TaskState",
    "Trajectory",
    "TrajectoryStep",
    "Unscored",
    "Verdict",
    "constructed_trajectories",
    "open_trajectories",
    "read_state",
    "read_tasks",
    "read_trajectories",
    "read_verdict",
    "recorded_trajectories",
    "reward",
    "write_trajectories",
]
