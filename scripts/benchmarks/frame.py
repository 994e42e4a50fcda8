"""The frame of every claim: figures with their bars, the clock, scratch folders and measured commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

ROOT = Path(__file__).resolve().parents[2]
SEED = 0
MEASURED = f"""
import atexit, sys
sys.path.insert(0, {str(ROOT)!r})
from seeact_offline.cli import main
def write_peak():
    peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))
    print(peak, file=open(sys.argv[1], 'w'))
atexit.register(write_peak)
%s
raise SystemExit(main(sys.argv[2:]))
"""
"""A verb that leaves its peak memory in kB: `ru_maxrss` would start from the peak of the process that forked."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """One figure and its bar."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def missed(self) -> bool:
        too_low = self.at_least is not None and self.value <= self.at_least
        return too_low or (self.at_most is not None and self.value >= self.at_most)

    def __str__(self) -> str:
        bar = f"over {self.at_least:g}" if self.at_least is not None else ""
        bar = f"under {self.at_most:g}" if self.at_most is not None else bar
        verdict = "MISSED" if self.missed else "ok" if bar else ""
        return f"{self.name:<40}{self.value:>12,.3f} {self.unit:<9}{bar:<12}{verdict}".rstrip()


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """The result of a function and the time that it took."""

    result: T
    wall_s: float
    cpu_s: float
    """Processor time of this process: other work on the machine does not count."""


@dataclass(frozen=True, slots=True)
class CommandCost:
    """The time and memory that a command took in a process of its own."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def timed(work: Callable[[], T]) -> Timed[T]:
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return Timed(result, time.perf_counter() - wall, time.process_time() - processor)


def run_python(program: str, *words: object) -> str:
    """Runs a program text and returns its standard output. Raises CalledProcessError unless its status is 0."""
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure_verb(words: Sequence[object], prelude: str = "") -> CommandCost:
    """Runs a verb of `seeact-offline`, after `prelude`, Python that is executed first. Raises
    SystemExit unless its status is 0."""
    with tempfile.NamedTemporaryFile("r") as peak:
        command = [sys.executable, "-c", MEASURED % prelude, peak.name, *map(str, words)]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        # RUSAGE_CHILDREN would add up all children
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        if status:
            raise SystemExit(f"{' '.join(map(str, words))}: expected status 0, got {os.waitstatus_to_exitcode(status)}")
        return CommandCost(wall_s, used.ru_utime + used.ru_stime, int(peak.read()) * 1024 / 1e6)


def candidate_ids(row: dict[str, Any]) -> list[str]:
    """The node ids of a row's candidates, positives first."""
    return [json.loads(c)["backend_node_id"] for c in (*row["pos_candidates"], *row["neg_candidates"])]


@contextmanager
def scratch_folder(inside: Path | None) -> Iterator[Path]:
    """Yields a folder in `inside` (the system's own temporary folder when None) and removes it afterwards."""
    if inside is not None:
        inside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="seeact-bench-", dir=inside) as folder:
        yield Path(folder)
