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


def kappa(a: Sequence[bool], b: Sequence[bool]) -> Fraction | None:
    """Cohen's kappa, from its definition."""
    n = len(a)
    same = Fraction(sum(x == y for x, y in zip(a, b, strict=True)), n)
    chance = sum(Fraction(sum(x == value for x in a) * sum(y == value for y in b), n * n) for value in (True, False))
    return None if chance == 1 else (same - chance) / (1 - chance)


def fleiss(rows: Sequence[Sequence[bool]]) -> Fraction | None:
    """Fleiss' kappa of items, each with the answers of all judges, by counting pairs of judges."""
    pairs = [(row[i], row[j]) for row in rows for i in range(len(row)) for j in range(len(row)) if i != j]
    same = Fraction(sum(x == y for x, y in pairs), len(pairs))
    answers = [x for row in rows for x in row]
    chance = sum(Fraction(answers.count(value), len(answers)) ** 2 for value in (True, False))
    return None if chance == 1 else (same - chance) / (1 - chance)
