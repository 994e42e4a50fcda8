"""The baselines by name. A later one is a module beside this one that declares `BASELINE`, and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from seeact_offline.records import InputError

if TYPE_CHECKING:
    from seeact_offline.finetune.baseline import Baseline

BASELINES = {"flan-t5": "flan_t5", "blip2": "blip2", "vlm": "vlm"}
"""Their modules, which are loaded when one is trained: `finetune --help` needs the names alone."""


def find_baseline(name: str) -> Baseline:
    """Raises InputError."""
    if name not in BASELINES:
        raise InputError("baseline", f"one of {', '.join(BASELINES)}", name)
    found: Baseline = import_module(f"seeact_offline.finetune.{BASELINES[name]}").BASELINE
    return found
