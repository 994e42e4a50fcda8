"""A run outlives whatever reads what it prints, and its status says what was done."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.seeact_offline.cli.conftest import RESULT_FILES, Sample

REPO = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("{ COMMAND; echo $? >status; } | head -c 0", ""),
        ("{ COMMAND; echo $? >status; } 2>&1 | true", ""),
        ("COMMAND 2>/dev/full >/dev/null; echo $? >status", ""),
        ("COMMAND >/dev/full; echo $? >status", "standard output could not be written: No space left on device"),
        ("COMMAND >&- 2>&-; echo $? >status", ""),
    ],
)
def test_a_run_whose_output_is_closed_is_done_whole(shell: str, said: str, sample: Sample, tmp_path: Path) -> None:
    words = [sys.executable, str(REPO / "scripts" / "eval.py"), *sample.words, "--top-k", "6", "--out", "run"]
    script = shell.replace("COMMAND", shlex.join(words))
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True)
    assert (tmp_path / "status").read_text() == "0\n"
    assert all((tmp_path / "run" / name).stat().st_size for name in RESULT_FILES)
    assert (done.stderr.splitlines() or [""])[-1] == said or not said
    assert "Traceback" not in done.stderr
