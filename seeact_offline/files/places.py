"""Folders that are used where none is named."""

from __future__ import annotations

import os
from pathlib import Path

PREFIX = "SEEACT_"
"""Begins the names of our variables: SEEACT_BASE_URL is `--base-url`, and SEEACT_CACHE names the folder of all caches."""

RUNS = Path("runs")
"""The folder in which `eval` makes a folder a run."""


def cache_folder() -> Path:
    """Returns `$SEEACT_CACHE`, or `seeact-offline` in the user's cache folder; users may delete it at any time."""
    named = os.environ.get(f"{PREFIX}CACHE")
    if named:
        return Path(named)
    # a user without a home folder keeps nothing: nothing can be written below the null device, nor be put there by others
    home = os.path.expanduser("~")
    cache = os.environ.get("XDG_CACHE_HOME") or Path(os.devnull if home == "~" else home, ".cache")
    return Path(cache) / "seeact-offline"
