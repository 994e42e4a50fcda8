"""The SeeAct paper's tables (arXiv 2401.01614v2), as the package holds them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def paper_table(number: int) -> dict[str, Any]:
    """A table of the paper with its source, in percent."""
    return dict(json.loads((files("seeact_offline") / "paper" / f"table{number}.json").read_text(encoding="utf-8")))
