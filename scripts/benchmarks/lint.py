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
    from seeact_offline.dataset.lint import Duplicates, lint_task

    n, duplicates = 0, Duplicates()
    for split in TEST_SPLITS:
        opened = open_split("sample", split)
        for steps in opened.steps_by_task():
            for step, _ in lint_task(steps, opened.row_positions):
                duplicates.fault(step)
                n += 1
    return n
