"""Differences of figures as text, in points."""

from __future__ import annotations

from collections.abc import Sequence

from seeact_offline.files.markdown import percent
from seeact_offline.scoring.inference import FEWEST_TASKS, Gap


def points(value: float) -> str:
    """A difference of fractions as text, in points."""
    # + 0.0: no negative zero
    return f"{float(percent(value)) + 0.0:+.1f}"


def gap_interval(ci95: Sequence[float] | None) -> str:
    """An interval of a difference as text, in points."""
    return f"-, fewer than {FEWEST_TASKS} tasks" if ci95 is None else f"{points(ci95[0])} to {points(ci95[1])}"


def gap_cells(gap: Gap) -> tuple[str, str, str]:
    """Points, interval and p of a difference."""
    return points(gap.macro), gap_interval(gap.ci95), f"{gap.p:.4f}"
