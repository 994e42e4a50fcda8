"""The linter takes fifty rows a second."""

from __future__ import annotations

import argparse

from benchmarks.frame import Line, timed


def measure(options: argparse.Namespace) -> list[Line]:
    """Lints the bundled sample on one core, rows read and pictures decoded."""
    run = timed(_lint)
    return [Line(f"rows linted a second of a core ({run.result} rows)", run.result / run.cpu_s, "1/s", at_least=50)]


def _lint() -> int:
    """Lints the three test splits; returns the number of rows."""
    from seeact_offline.dataset import TEST_SPLITS, open_split
    from seeact_offline.dataset.lint import lint_split

    return sum(1 for split in TEST_SPLITS for _ in lint_split(open_split("sample", split)))
