"""Calls and tokens of a step, by grounding: what a run's time and cost follow from."""

from __future__ import annotations

import argparse
import os

from benchmarks.frame import Line

GROUNDINGS = ("choice", "annotation", "attributes", "pixel", "mindact")
N_TASKS = 20
MODEL = "openai/gpt-4o"
"""Its rule counts the pictures."""


def measure(options: argparse.Namespace) -> list[Line]:
    """Estimates runs over the sample as `eval --dry-run` does; nothing is sent."""
    from seeact_offline.results.estimate import dry_run

    os.environ.setdefault("OPENAI_API_KEY", "none")
    lines = []
    for grounding in GROUNDINGS:
        estimated = dry_run(split="all", limit=N_TASKS, grounding=grounding, model=MODEL, cache="off")
        usage, n = estimated.expected, estimated.n_steps
        lines += [
            Line(f"{grounding}, calls a step", usage.calls / n, ""),
            Line(f"{grounding}, tokens of text a step", usage.text_tokens / n, ""),
            Line(f"{grounding}, tokens of pictures a step", usage.image_tokens / n, ""),
            Line(f"{grounding}, tokens of replies a step", usage.completion_tokens / n, ""),
        ]
    return lines
