"""Each split of the bundled sample is loaded in half a second."""

from __future__ import annotations

import argparse

from benchmarks.frame import Line, timed


def measure(options: argparse.Namespace) -> list[Line]:
    """Loads each split without decoding pictures; best of 5 in this process, imports done."""
    from seeact_offline.dataset import SPLITS, load_steps

    lines = []
    for split in SPLITS:
        runs = [timed(lambda: len(list(load_steps("sample", split)))) for _ in range(5)]  # noqa: B023
        name = f"load sample {split} ({runs[0].result} steps)"
        lines.append(Line(name, min(run.wall_s for run in runs), "s", at_most=0.5))
    return lines
