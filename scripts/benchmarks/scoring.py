"""The finished predictions of a whole benchmark are scored under all rules, and compared, in three seconds; eleven runs in ten. Stored
verdicts of seven judges on 1,302 trajectories are compared with labels in five."""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from random import Random

from benchmarks.data import write_run
from benchmarks.frame import SEED, Line, measure_verb, scratch_folder

MANY_RUNS, MANY_STEPS = 11, 1000
TRAJECTORIES, AGENTS, JUDGES = 1302, 4, 7
"""As many trajectories as AgentRewardBench has."""


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
        _write_verdicts(scratch)
        judged = measure_verb(["agreement", scratch / "verdicts.jsonl", scratch / "labels.jsonl"])
    helped = statistics.median(measure_verb(["score", "--help"]).wall_s for _ in range(5))
    return [
        Line("score under all protocols", scored.wall_s, "s", at_most=3.0),
        Line("score under all protocols, peak", scored.peak_mb, "MB", at_most=700),
        Line("compare", compared.wall_s, "s", at_most=3.0),
        Line("compare, peak", compared.peak_mb, "MB", at_most=700),
        Line(f"compare {MANY_RUNS} runs of {MANY_STEPS} steps", all_compared.wall_s, "s", at_most=10.0),
        Line(f"agreement of {JUDGES} judges, {TRAJECTORIES} trajectories", judged.wall_s, "s", at_most=5.0),
        Line("score --help, median of 5", helped, "s", at_most=0.5),
    ]


def _write_verdicts(folder: Path) -> None:
    """Stored verdicts of judges who are wrong on some trajectories, and the labels."""
    rng = Random(SEED)
    truth = [rng.random() < 0.3 for _ in range(TRAJECTORIES)]

    def line(number: int, verdict: bool, **more: object) -> str:
        task, agent = divmod(number, AGENTS)
        named = {"trajectory": f"t{task}-{agent}", "task": f"t{task}", "agent": f"agent{agent}"}
        return json.dumps({**named, "verdict": verdict, **more}) + "\n"

    verdicts = [
        line(number, label != (rng.random() < 0.1 + 0.02 * judge), judge=f"judge{judge}", calls=1, cost_usd=0.01)
        for judge in range(JUDGES)
        for number, label in enumerate(truth)
    ]
    (folder / "verdicts.jsonl").write_text("".join(verdicts))
    (folder / "labels.jsonl").write_text("".join(line(number, label) for number, label in enumerate(truth)))
