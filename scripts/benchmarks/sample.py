"""Each split of the bundled sample is loaded in half a second."""

from __future__ import annotations

from functools import partial

from benchmarks.measuring import Line, timed


def bench_sample() -> list[Line]:
    """Loading each split, pictures not decoded; best of 5 in this process, imports done."""
    from seeact_offline.dataset import SPLITS

    lines = []
    for split in SPLITS:
        runs = [timed(partial(_load, split)) for _ in range(5)]
        name = f"load sample {split} ({runs[0].result} steps)"
        lines.append(Line(name, min(run.wall_s for run in runs), "s", at_most=0.5))
    return lines


def _load(split: str) -> int:
    """How many steps it has."""
    from seeact_offline.dataset import load_steps

    return len(list(load_steps("sample", split)))
