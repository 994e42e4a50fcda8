"""The folder of data that outlives a run."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Returns `$SEEACT_CACHE`, or `seeact-offline` in the user's cache folder; users may delete it at any time."""
    named = os.environ.get("SEEACT_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seeact-offline"
