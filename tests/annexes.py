"""The annexes: rooms of the toolkit that can be deleted, each with its verb files and its tests."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

ROOMS = Path(__file__).resolve().parents[1] / "seeact_offline"


class Annex(NamedTuple):
    """What belongs to an annex, and what it needs besides the core."""

    verbs: tuple[str, ...] = ()
    """Its files in `cli/`."""
    may_import: tuple[str, ...] = ()
    """Other annexes, which its verbs may import too."""


ANNEXES = {
    "agents": Annex(),
    "importers": Annex(verbs=("score_files", "which_agent"), may_import=("agents",)),
    "web_agents": Annex(may_import=("agents",)),
    "trajectories": Annex(verbs=("agreement", "judge", "reward"), may_import=("recorder",)),
    "recorder": Annex(verbs=("record",)),
    "training": Annex(
        verbs=("finetune", "improve", "train_ranker"), may_import=("agents", "web_agents", "trajectories")
    ),
    "live": Annex(verbs=("browse",), may_import=("agents", "web_agents", "trajectories", "recorder")),
    "viewer": Annex(verbs=("view",), may_import=("trajectories",)),
    "cluster": Annex(),
    "inspect_tasks": Annex(),
}


def needs(annex: str) -> pytest.MarkDecorator:
    """Leaves out a case of a core test where this annex is deleted."""
    return pytest.mark.skipif(not (ROOMS / annex).is_dir(), reason=f"there is no annex {annex} here")
