"""The core without its annexes, all or one: in a copy of the tree, their folders, verb files and tests are deleted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.annexes import ANNEXES

pytestmark = pytest.mark.slow

REPO = Path(__file__).resolve().parents[1]
CHECKS = """
import sys
from pathlib import Path
import pytest
from seeact_offline.cli import main
from tests.annexes import ANNEXES
assert main(["eval", "--limit", "1", "--ranker", "bm25", "--out", sys.argv[1]]) == 0
try:
    main(["--help"])
except SystemExit as end:
    assert not end.code
if sys.argv[2:]:
    quiet = ["-q", "-n", "0", "-p", "no:cacheprovider"]
    core = [str(path) for path in Path("tests/seeact_offline").glob("[!_]*") if path.name not in {"conftest.py", *ANNEXES}]
    assert pytest.main([*quiet, "--collect-only", "tests/ranker", *core]) == 0
    sys.exit(pytest.main([*quiet, *sys.argv[2:]]))
"""
"""One process for all: most of its time it loads packages."""
CORE_TESTS = (
    "tests/seeact_offline/scoring/test_metrics.py",
    "tests/seeact_offline/replies/test_points.py",
    "tests/seeact_offline/files/test_extensions.py",
)
"""A few that are quick. All others of the core are collected, which imports what they need."""


def check(root: Path, out: Path, *tests: str) -> str:
    """Asks a few steps with the packages of a tree, and runs tests of it; returns what was printed."""
    env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", CHECKS, str(out), *tests]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The predictions of the tree as it is."""
    out = tmp_path_factory.mktemp("whole") / "run"
    check(REPO, out)
    return (out / "predictions.jsonl").read_bytes()


def plant(root: Path, annexes: list[str]) -> None:
    """Copies the tree without these annexes."""
    for name in ("seeact_offline", "ranker", "prompts", "scripts", "tests", "docs"):
        shutil.copytree(REPO / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    # by its Makefile a tree is known as a checkout
    for name in ("pyproject.toml", "Makefile"):
        shutil.copy(REPO / name, root)
    for annex in annexes:
        shutil.rmtree(root / "seeact_offline" / annex)
        shutil.rmtree(root / "tests" / "seeact_offline" / annex)
        for verb in ANNEXES[annex].verbs:
            (root / "seeact_offline" / "cli" / f"{verb}.py").unlink()
            (root / "scripts" / f"{verb}.py").unlink(missing_ok=True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "annexes",
    [
        pytest.param([*ANNEXES], id="all"),
        *(pytest.param([annex], id=annex, marks=pytest.mark.nightly) for annex in ANNEXES),
    ],
)
def test_the_core_works_without_annexes(annexes: list[str], whole: bytes, tmp_path: Path) -> None:
    root, verbs = tmp_path / "tree", {verb for annex in annexes for verb in ANNEXES[annex].verbs}
    plant(root, annexes)
    printed = check(root, tmp_path / "run", *CORE_TESTS)
    assert (tmp_path / "run" / "predictions.jsonl").read_bytes() == whole
    assert "compare" in printed
    assert not {verb.replace("_", "-") for verb in verbs} & set(re.findall(r"^ +([a-z-]+) ", printed, re.MULTILINE))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_cores_quick_tests_pass_without_annexes(tmp_path: Path) -> None:
    plant(tmp_path, [*ANNEXES])
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", "not slow and not nightly"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [*command, "tests/seeact_offline", "tests/ranker"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
