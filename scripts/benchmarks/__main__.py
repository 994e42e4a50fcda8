"""Measure speed and memory on made-up data; every such claim of this project is a line that this prints.

python scripts/benchmarks help | steps | describe | sample | stream | lint | marks | scoring | intervals | engine | campaign | finetune | viewer | cross-encoder | ranker | all
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

# this file's own folder goes, for its names would hide others; in its place the folder of `benchmarks`, and the checkout, for
# the claims need the tests' page generator and reference implementation
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.campaign import bench_campaign
from benchmarks.cross_encoder import bench_cross_encoder
from benchmarks.data import make_data
from benchmarks.describe import bench_describe
from benchmarks.engine import bench_engine
from benchmarks.finetune import bench_finetune
from benchmarks.help import bench_help
from benchmarks.intervals import bench_intervals
from benchmarks.lint import bench_lint
from benchmarks.marks import bench_marks
from benchmarks.measuring import Line, print_lines
from benchmarks.sample import bench_sample
from benchmarks.scoring import bench_scoring
from benchmarks.steps import bench_steps
from benchmarks.stream import bench_stream
from benchmarks.viewer import bench_viewer

# a later claim is a file beside this one and a line here
CLAIMS: dict[str, Callable[[argparse.Namespace], list[Line]]] = {
    "help": lambda args: bench_help(),
    "describe": lambda args: bench_describe(),
    "marks": lambda args: bench_marks(*(args.also or ("sample", "cross_website"))),
    "sample": lambda args: bench_sample(),
    "lint": lambda args: bench_lint(),
    "stream": lambda args: bench_stream(args.dir),
    "steps": lambda args: bench_steps(args.n, args.dir),
    "scoring": lambda args: bench_scoring(args.scored_steps, args.dir),
    "intervals": lambda args: bench_intervals(args.splits),
    "engine": lambda args: bench_engine(args.engine_steps, args.dir),
    "campaign": lambda args: bench_campaign(args.dir),
    "finetune": lambda args: bench_finetune(args.dir),
    "viewer": lambda args: bench_viewer(args.dir),
    "cross-encoder": lambda args: bench_cross_encoder(
        args.ranker_steps, args.candidates, args.also, args.dtype, args.dir
    ),
}
GROUPS = {"ranker": ("describe", "cross-encoder"), "all": tuple(CLAIMS)}


def main() -> int:
    args = _arguments()
    if args.what == "make-data":
        make_data(args.n, args.dir)
        return 0
    load = f"load {os.getloadavg()[0]:.1f} before"
    print(f"{platform.platform()}, {os.cpu_count()} cores, {load}, Python {platform.python_version()}")
    lines = [line for name in GROUPS.get(args.what, (args.what,)) for line in CLAIMS[name](args)]
    print_lines(lines)
    return int(any(line.missed for line in lines))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Speed and memory on made-up data; exit status 1 when a bar is missed."
    )
    parser.add_argument("what", choices=[*CLAIMS, *GROUPS, "make-data"])
    parser.add_argument("--n", type=int, default=2000, help="steps: how many (default: %(default)s)")
    parser.add_argument(
        "--dir", type=Path, help="steps, stream, scoring: folder for some 3 GB of scratch files (default: the system's)"
    )
    parser.add_argument(
        "--scored-steps", type=int, default=15_000, help="scoring: steps of each run (default: %(default)s)"
    )
    parser.add_argument(
        "--splits", type=int, default=2500, help="intervals: simulated splits a cell (default: %(default)s)"
    )
    parser.add_argument("--engine-steps", type=int, default=1000, help="engine: steps (default: %(default)s)")
    parser.add_argument("--ranker-steps", type=int, default=20, help="cross-encoder: steps (default: %(default)s)")
    parser.add_argument(
        "--candidates", type=int, default=60, help="cross-encoder: of each step; 0 for all (default: %(default)s)"
    )
    parser.add_argument(
        "--also",
        nargs=2,
        metavar=("DATASET", "SPLIT"),
        help="cross-encoder: steps to score beside those; marks: in their place",
    )
    parser.add_argument("--dtype", default="mixed", help="cross-encoder: of ours (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
