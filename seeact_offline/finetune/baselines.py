"""The baselines by name. A later one is a module beside this one that declares `BASELINE`, and a line here."""

from __future__ import annotations

BASELINES = {"flan-t5": "flan_t5", "blip2": "blip2", "vlm": "vlm"}
"""Their modules, which are loaded when one is trained: `finetune --help` needs the names alone."""
