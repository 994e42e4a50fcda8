"""The finished predictions of a whole benchmark are scored under all rules, and compared, in three seconds; eleven runs in ten."""

from __future__ import annotations

import argparse
import statistics

from benchmarks.data import write_run
from benchmarks.frame import Line, measure_verb, scratch_folder

MANY_RUNS, MANY_STEPS = 11, 1000


def measure(options: argparse.Namespace) -> list[Line]:
    """Writes two runs over the same steps, scores one again and compares both, each command in a process of its own."""
    from seeact_offline.scoring.protocols import PROTOCOLS

    n_steps = options.scored_steps
    with scratch_folder(options.dir) as scratch:
        runs = [scratch / "better", scratch / "worse"]
        for run, skill in zip(runs, (0.45, 0.40), strict=True):
            write_run(run, n_steps, skill)
        size = (runs[0] / "predictions.jsonl").stat().st_size
        print(f"scoring: {n_steps} steps, predictions.jsonl of {size / 1e6:.0f} MB a run, {len(PROTOCOLS)} protocols")
        scored = measure_verb(["score", runs[0], "--protocol", ",".join(PROTOCOLS)])
        compared = measure_verb(["compare", *runs])
        many = [scratch / f"run{number}" for number in range(MANY_RUNS)]
        for number, run in enumerate(many):
            write_run(run, MANY_STEPS, 0.30 + 0.02 * number)
        all_compared = measure_verb(["compare", *many])
    helped = statistics.median(measure_verb(["score", "--help"]).wall_s for _ in range(5))
    return [
        Line("score under all protocols", scored.wall_s, "s", at_most=3.0),
        Line("score under all protocols, peak", scored.peak_mb, "MB", at_most=700),
        Line("compare", compared.wall_s, "s", at_most=3.0),
        Line("compare, peak", compared.peak_mb, "MB", at_most=700),
        Line(f"compare {MANY_RUNS} runs of {MANY_STEPS} steps", all_compared.wall_s, "s", at_most=10.0),
        Line("score --help, median of 5", helped, "s", at_most=0.5),
    ]
