"""What every claim is made of: figures with their bars, and the clock."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

ROOT = Path(__file__).resolve().parents[2]
SEED = 0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """One figure, and what it must be."""

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
    """What a function returned, and what it took."""

    result: T
    wall_s: float
    cpu_s: float
    """Processor time of this process: other work on the machine does not count."""


def timed(work: Callable[[], T]) -> Timed[T]:
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return Timed(result, time.perf_counter() - wall, time.process_time() - processor)


def print_lines(lines: Sequence[Line]) -> None:
    print(f"\n{'figure':<40}{'value':>12} {'unit':<9}bar", *lines, sep="\n")


def check_run(command: Sequence[str]) -> str:
    """What the command printed. Raises CalledProcessError when its status is not 0."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def scratch_folder(inside: Path | None) -> Iterator[Path]:
    """A folder that is gone afterwards; `inside`: where, the system's own place for such when None."""
    if inside is not None:
        inside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="seeact-bench-", dir=inside) as folder:
        yield Path(folder)
