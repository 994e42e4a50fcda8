"""Finished run folders written by hand: the files that tables and figures read, with figures that a test chooses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def figure(macro: float, method: str = "korn-graubard", micro: float | None = None) -> dict[str, Any]:
    """`micro`: the other average, if it differs."""
    micro = macro if micro is None else micro
    bounds = [[max(0.0, x - 0.1), min(1.0, x + 0.1)] for x in (macro, micro)]
    return {
        "macro": macro,
        "micro": micro,
        "ci95": bounds[0],
        "method": method,
        "se": 0.05,
        "micro_ci95": bounds[1],
        "micro_se": 0.04,
    }


def make_run(
    folder: Path, *, steps: int = 4, step_sr: float = 0.25, settings: dict[str, Any] | None = None,
    date: str = "2026-03-02T09:00:00+00:00", **results: Any,
) -> Path:  # fmt: skip
    """A run of two tasks. `settings`: of its manifest, beside the usual ones; `results`: entries of its `results.json`."""
    folder.mkdir(parents=True)
    named = {
        "split": "cross_task", "grounding": "choice", "model": "openai/gpt-4-vision-preview", "protocol": "seeact",
        "dataset": "osunlp/Multimodal-Mind2Web", "dataset_fingerprint": "f00d", "seed": 0, "limit": None,
        "ranker": "bm25", "merge": "final-round", "top_k": 5,
    }  # fmt: skip
    named |= {name: results[name] for name in named if name in results} | (settings or {})
    manifest = {"schema": 1, "identity": {}, "settings": {**named, **(settings or {})}, "made": {"date": date}}
    found = {
        "schema": 1,
        **named,
        "n_tasks": 2,
        "n_steps": steps,
        "element_accuracy": figure(0.5),
        "operation_f1": figure(0.75),
        "step_success_rate": figure(step_sr, "korn-graubard"),
        "point_accuracy": None,
        "ceiling": None,
        "task_success_rate": {"offline0": 0.0, "offline1": 0.5},
        "task_success_ci95": {"offline0": [0.0, 0.7], "offline1": [0.1, 0.9]},
        "recall_at_k": {"1": 0.5, "5": 1.0, "50": None},
        "unknowns": {},
        "n_succeeded": 1,
        "wrong_element": {},
        "what_if": {},
        "ranker_budget": None,
        "failures": {},
        "reply_failures": {},
        "merge_spread": {},
        "usage": {"calls": 10, "prompt_tokens": 0, "completion_tokens": 0, "image_tokens": 0, "cost_usd": 0.0},
        "waterfall": {"ranker_miss": {"steps": 3, "macro": 1 - step_sr, "micro": 1 - step_sr}},
        "notes": {},
        "complete": True,
        "left_out": 0,
        "n_not_run": 1,
        **results,
    }
    lines = [
        {
            "annotation_id": f"t{number % 2}", "action_uid": f"s{number}", "outcome": "success", "n_actions": 3 + 4 * (number % 2),
            "website": "amazon" if number % 2 else "", "domain": "Shopping", "element": 1.0, "operation_f1": 0.5, "target": {"op": "CLICK"},
            "success": float(number == 0), "best_rank": number or None,
        }
        for number in range(steps)
    ]  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "results.json").write_text(json.dumps(found))
    (folder / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
