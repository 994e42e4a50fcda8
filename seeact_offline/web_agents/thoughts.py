"""The thoughts that a model gave in an earlier run, by which the steps before the one it is asked about are told."""

from __future__ import annotations

from pathlib import Path

from seeact_offline.grounding.oracle import PREDICTIONS
from seeact_offline.models.replay import read_recordings
from seeact_offline.records import InputError, StepKey
from seeact_offline.web_agents.web_actions import thought_of


def read_thoughts(run: Path) -> dict[StepKey, str]:
    """The thought before the last reply of each step that has one. Raises InputError for a run that cannot be read or has none."""
    try:
        recorded = read_recordings(run / PREDICTIONS)
    except InputError as error:
        raise error.renamed("thoughts") from None
    thoughts: dict[StepKey, str] = {}
    for key, groups in recorded.items():
        replies = [group.replies[-1] for _, group in sorted(groups.items()) if group.replies]
        if replies and (thought := thought_of(replies[-1])):
            thoughts[key] = thought
    if not thoughts:
        raise InputError("thoughts", sentence=f"no reply of {run} has thoughts; name a run whose replies have")
    return thoughts
