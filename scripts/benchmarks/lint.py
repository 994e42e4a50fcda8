"""The linter takes fifty rows a second."""

from __future__ import annotations

from benchmarks.measuring import Line, timed


def bench_lint() -> list[Line]:
    """Linting the bundled sample on one core, rows read and pictures decoded."""
    run = timed(_lint)
    return [Line(f"rows linted a second of a core ({run.result} rows)", run.result / run.cpu_s, "1/s", at_least=50)]


def _lint() -> int:
    """How many rows there are."""
    from seeact_offline.dataset import TEST_SPLITS, load_tasks, row_positions
    from seeact_offline.dataset.lint import Duplicates, lint_task

    n, duplicates = 0, Duplicates()
    for split in TEST_SPLITS:
        positions = row_positions("sample", split)
        for steps in load_tasks("sample", split):
            for step, _ in lint_task(steps, positions):
                duplicates.fault(step)
                n += 1
    return n
