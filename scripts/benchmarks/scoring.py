"""Runs of 15,000 steps are scored and compared in seconds, and every `--help` is there at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.big_runs import write_run
from benchmarks.frame import CommandCost, Line, measure_verb, scratch_folder
from seeact_offline.cli.command import VERBS
from seeact_offline.scoring.protocols import PROTOCOLS

N_PROTOCOLS, N_RUNS = 8, 11
TRIES = 3
"""Of each command: the fastest counts."""


def measure(options: argparse.Namespace) -> list[Line]:
    """Measures whole commands, in processes of their own, on runs with the replies and calls of a server."""
    with scratch_folder(options.dir) as scratch:
        runs = [write_run(scratch / f"top-{k}", "--top-k", k) for k in range(50, 50 - N_RUNS, -1)]
        megabytes = sum(path.stat().st_size for path in runs[0].iterdir()) / 1e6
        print(f"scoring: {len(runs)} runs of {_n_lines(runs[0] / 'predictions.jsonl')} steps, {megabytes:.0f} MB each")
        under_8 = _fastest("score", runs[0], "--protocol", ",".join([*PROTOCOLS][:N_PROTOCOLS]))
        again = _fastest("score", runs[0])
        two, all_runs = _fastest("compare", *runs[:2]), _fastest("compare", *runs)
    helps = {verb: _fastest(verb, "--help").wall_s for verb in VERBS}
    slowest = max(helps, key=lambda verb: helps[verb])
    return [
        Line(f"score under {N_PROTOCOLS} protocols", under_8.wall_s, "s", at_most=1),
        Line("its peak memory", under_8.peak_mb, "MB"),
        Line("score again, with all files", again.wall_s, "s"),
        Line("compare two runs", two.wall_s, "s", at_most=1),
        Line(f"compare {N_RUNS} runs", all_runs.wall_s, "s", at_most=1),
        Line(f"{slowest} --help, the slowest", helps[slowest], "s", at_most=0.35),
    ]


def _fastest(*words: object) -> CommandCost:
    return min((measure_verb(words) for _ in range(TRIES)), key=lambda cost: cost.wall_s)


def _n_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
