"""Overlaps of runs the long way: sets of steps, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

Step = tuple[str, int]
"""Task and number."""


def solved_by(solved: Mapping[str, set[Step]], steps: Sequence[Step]) -> dict[int, int]:
    """Number of runs -> steps that exactly so many solve."""
    counts = dict.fromkeys(range(len(solved) + 1), 0)
    for step in steps:
        counts[len([name for name in solved if step in solved[name]])] += 1
    return counts


def alone(solved: Mapping[str, set[Step]], name: str) -> set[Step]:
    """The steps of one run that no other has."""
    left = set(solved[name])
    for other, steps in solved.items():
        if other != name:
            left -= steps
    return left


def union_rate(solved: Mapping[str, set[Step]], steps: Sequence[Step]) -> Fraction:
    """Mean over tasks of the share of a task's steps that some run solves."""
    rates = []
    for task in {task for task, _ in steps}:
        own = [step for step in steps if step[0] == task]
        hits = [step for step in own if any(step in some for some in solved.values())]
        rates.append(Fraction(len(hits), len(own)))
    return sum(rates, Fraction()) / len(rates)
