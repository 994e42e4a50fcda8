"""`eval` takes a hundred steps a second through recorded replies, in less than a gigabyte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data import HTML_CHARS, N_ELEMENTS, PICTURE_SIZE, STEPS_PER_TASK
from benchmarks.measuring import ROOT, Line, check_run, scratch_folder

EVAL = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from seeact_offline.cli import main
status = main(['eval', *sys.argv[2:]])
peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))
print(peak, file=open(sys.argv[1], 'w'))
raise SystemExit(status)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one `eval` in a process of its own took."""

    n_steps: int
    wall_s: float
    cpu_s: float
    peak_bytes: int


def bench_steps(n: int, scratch_in: Path | None) -> list[Line]:
    """Steps a second and peak memory of `eval` through recorded replies; pages and pictures of real size.

    A run of one task gives the start-up, one of a quarter of the steps how memory grows. On a machine that has other work to
    do, processor time tells more than wall time.
    """
    with scratch_folder(scratch_in) as scratch:
        tiny, quarter, full = (_measured(scratch, size) for size in (STEPS_PER_TASK, n // 4, n))
    work_s = full.wall_s - tiny.wall_s
    growth = (full.peak_bytes - quarter.peak_bytes) / (full.n_steps - quarter.n_steps)
    print(
        f"steps: {full.n_steps} of {N_ELEMENTS} elements, cleaned_html {HTML_CHARS:,} characters, "
        f"screenshot {PICTURE_SIZE[0]}x{PICTURE_SIZE[1]}, 3 groups of two turns, every fourth step a final round"
    )
    return [
        Line("steps a second, whole command", full.n_steps / full.wall_s, "1/s", at_least=100),
        Line("steps a second, without start-up", (full.n_steps - tiny.n_steps) / work_s, "1/s"),
        Line("steps a second of processor time", full.n_steps / full.cpu_s, "1/s"),
        Line("wall time, whole command", full.wall_s, "s"),
        Line("processor time, whole command", full.cpu_s, "s"),
        Line("start-up (a run of one task)", tiny.wall_s, "s"),
        Line("peak memory", full.peak_bytes / 1e6, "MB", at_most=1000),
        Line(f"peak memory of {quarter.n_steps} steps", quarter.peak_bytes / 1e6, "MB"),
        Line("growth of peak memory", growth / 1e3, "kB/step"),
    ]


def _measured(scratch: Path, n: int) -> Measured:
    """One `eval` over `n` steps, from nothing to the report. Raises SystemExit when a step did not run."""
    folder, out = scratch / f"{n}", scratch / f"run-{n}"
    folder.mkdir()
    check_run([sys.executable, str(Path(__file__).parent), "make-data", "--n", str(n), "--dir", str(folder)])
    words = f"--split cross_task --dataset {folder} --scores {folder / 'scores.parquet'} --out {out}".split()
    peak = folder / "peak"
    command = [sys.executable, "-c", EVAL, str(peak), *words, "--model", f"replay/{folder / 'replies.jsonl'}"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    # wait4 and not RUSAGE_CHILDREN, which would count the process that made the data. Its ru_maxrss is no use either: it starts
    # from the peak of the process that forked
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    results = json.loads((out / "results.json").read_text()) if status == 0 else {}
    if results.get("n_steps") != n or results["failures"] or results["reply_failures"]:
        raise SystemExit(f"eval over {n} steps: expected status 0 and no failure, got status {status} and {results}")
    return Measured(n, wall_s, used.ru_utime + used.ru_stime, int(peak.read_text()) * 1024)
