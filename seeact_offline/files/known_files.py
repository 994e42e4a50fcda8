"""Names of files by which a folder of whole tasks, of runs or of training is known, for verbs that take any of them."""

from __future__ import annotations

VERDICTS = "verdicts.jsonl"
"""Of `judge`."""
EPISODES = "episodes.jsonl"
"""Of `browse`."""
LINES = "trajectories.jsonl"
"""Of trajectories in our own format."""
FOLDER_LISTS = ("grid.json", "table.json")
"""Files that list the run folders beside them in order: of a grid, and of a markup ablation."""
