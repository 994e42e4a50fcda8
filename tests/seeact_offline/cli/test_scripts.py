"""The scripts as someone runs them who has installed nothing yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[3] / "scripts").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_without_its_packages_says_in_one_sentence_what_to_run(script: Path, tmp_path: Path) -> None:
    # -S and -I: without the packages of this very Python
    command = [sys.executable, "-S", "-I", "-B", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("error: the package ")
    assert line.endswith(": run `make eval` once, then .venv/bin/python")
