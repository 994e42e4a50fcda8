"""`eval` takes a hundred steps a second through recorded replies, in less than a gigabyte."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.data import HTML_CHARS, N_ELEMENTS, PICTURE_SIZE, STEPS_PER_TASK, real_size_rows, write_split
from benchmarks.frame import CommandCost, Line, measure_verb, scratch_folder


def measure(options: argparse.Namespace) -> list[Line]:
    """Runs `eval` through recorded replies on pages and pictures of real size.

    A run of one task gives the start-up, one of a quarter of the steps the growth of memory. On a machine with other work to
    do, processor time tells more than wall time.
    """
    n, n_tiny, n_quarter = options.n, STEPS_PER_TASK, options.n // 4
    with scratch_folder(options.dir) as scratch:
        tiny, quarter, full = (_replay(scratch, size) for size in (n_tiny, n_quarter, n))
    growth = (full.peak_mb - quarter.peak_mb) / (n - n_quarter)
    print(
        f"steps: {n} of {N_ELEMENTS} elements, cleaned_html {HTML_CHARS:,} characters, "
        f"screenshot {PICTURE_SIZE[0]}x{PICTURE_SIZE[1]}, 3 groups of two turns, every fourth step a final round"
    )
    return [
        Line("steps a second, whole command", n / full.wall_s, "1/s", at_least=100),
        Line("steps a second, without start-up", (n - n_tiny) / (full.wall_s - tiny.wall_s), "1/s"),
        Line("steps a second of processor time", n / full.cpu_s, "1/s"),
        Line("wall time, whole command", full.wall_s, "s"),
        Line("processor time, whole command", full.cpu_s, "s"),
        Line("start-up (a run of one task)", tiny.wall_s, "s"),
        Line("peak memory", full.peak_mb, "MB", at_most=1000),
        Line(f"peak memory of {n_quarter} steps", quarter.peak_mb, "MB"),
        Line("growth of peak memory", 1e3 * growth, "kB/step"),
    ]


def _replay(scratch: Path, n: int) -> CommandCost:
    folder = scratch / f"{n}"
    folder.mkdir()
    write_split(real_size_rows(n), folder)
    return measure_eval(folder, n, ["--model", f"replay/{folder / 'replies.jsonl'}"])


def measure_eval(data: Path, n: int, words: list[object], prelude: str = "") -> CommandCost:
    """Runs `eval` over a split of `n` steps, from nothing to the report. Raises SystemExit when a step did not run."""
    out = data / "run"
    words = ["--split", "cross_task", "--dataset", data, "--scores", data / "scores.parquet", "--out", out, *words]
    cost = measure_verb(["eval", *words], prelude)
    results = json.loads((out / "results.json").read_text())
    if results["n_steps"] != n or results["n_not_run"]:
        raise SystemExit(
            f"eval over {n} steps: expected all to run, {results['n_not_run']} of {results['n_steps']} did not"
        )
    return cost
