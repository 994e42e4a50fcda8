"""Starts a program as several processes of one training, as `torchrun` does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[1]


def run_together(n: int, *program: str | Path) -> None:
    """`program`: a script or `-m` and a module, then its arguments. Raises CalledProcessError where a process fails."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n}"]
    environment = {**os.environ, "PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"}
    subprocess.run([*start, *program], check=True, capture_output=True, cwd=REPO, env=environment)
