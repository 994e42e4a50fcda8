"""Measure speed and memory on synthetic data; every such claim of this project is a line that this prints.

python scripts/benchmarks all
python scripts/benchmarks CLAIM        one of those that --help names
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import os
import platform
import sys
from pathlib import Path

# in the place of this file's own folder, whose module names would hide others: the folder of `benchmarks`, and the
# checkout, because claims use the tests' page generator and reference implementation
sys.path[:1] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

CLAIMS = (
    "describe",
    "marks",
    "intervals",
    "tokens",
    "scoring",
    "engine",
    "local-model",
    "bundled",
    "cross-encoder",
    "live",
    "checks",
    "viewer",
)
"""Each is a module of this folder."""
GROUPS = {"ranker": ("describe", "bundled", "cross-encoder"), "all": CLAIMS}


def main() -> int:
    options = _parse()
    load = f"load {os.getloadavg()[0]:.1f} before"
    print(f"{platform.platform()}, {os.cpu_count()} cores, {load}, Python {platform.python_version()}")
    # as pip does for an installed package: a checkout has no bytecode yet, or never where the environment forbids to
    # write it
    compileall.compile_dir(Path(__file__).resolve().parents[2] / "seeact_offline", quiet=1)
    names = GROUPS.get(options.claim, (options.claim,))
    modules = [importlib.import_module(f"benchmarks.{name.replace('-', '_')}") for name in names]
    lines = [line for module in modules for line in module.measure(options)]
    print(f"\n{'figure':<40}{'value':>12} {'unit':<9}bar", *lines, sep="\n")
    return int(any(line.missed for line in lines))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Speed and memory on synthetic data; exit status 1 when a bar is missed."
    )
    parser.add_argument("claim", choices=[*CLAIMS, *GROUPS])
    parser.add_argument("--dir", type=Path, help="folder for up to 3 GB of scratch files (default: the system's)")
    parser.add_argument("--splits", type=int, default=1000, help="intervals: splits a cell (default: %(default)s)")
    parser.add_argument("--engine-steps", type=int, default=1000, help="engine: steps (default: %(default)s)")
    parser.add_argument("--latency", type=float, default=0.2, help="engine: seconds a call (default: %(default)s)")
    parser.add_argument("--ranker-steps", type=int, default=2, help="cross-encoder: steps (default: %(default)s)")
    parser.add_argument(
        "--candidates", type=int, default=60, help="cross-encoder: candidates a step; 0 for all (default: %(default)s)"
    )
    parser.add_argument(
        "--also",
        nargs=2,
        metavar=("DATASET", "SPLIT"),
        help="cross-encoder: score these steps too; marks: use them instead of the sample's",
    )
    parser.add_argument("--site", action="append", help="checks: only this site; may be given several times")
    parser.add_argument("--dtype", default="mixed", help="cross-encoder: dtype of our ranker (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
