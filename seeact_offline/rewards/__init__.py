"""Rewards: programs over an answer, an address and a stored page that say whether a task is done. Pure functions; a model only where one is named."""

from __future__ import annotations

from seeact_offline.rewards.reward_tasks import Part, RewardTask, TaskReward, read_tasks, reward
from seeact_offline.rewards.rule_sets import RULES, RuleSet
from seeact_offline.rewards.task_states import TaskState, read_state
from seeact_offline.rewards.unscored import REASONS, Unscored

__all__ = [
    "REASONS",
    "RULES",
    "Part",
    "RewardTask",
    "RuleSet",
    "TaskReward",
    "TaskState",
    "Unscored",
    "read_state",
    "read_tasks",
    "reward",
]
