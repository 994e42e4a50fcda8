"""Cohen's kappa, Fleiss' kappa and Kendall's tau-b, by their definitions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence


def kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """None where both gave one and the same label only."""
    n = len(first)
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = 0.0
    for label in {*first, *second}:
        chance += (sum(a == label for a in first) / n) * (sum(b == label for b in second) / n)
    return None if chance > 1 - 1e-12 else (agreed - chance) / (1 - chance)


def resampled_kappas(
    tasks: Sequence[Sequence[tuple[Hashable, Hashable]]], draws: Sequence[Sequence[int]]
) -> list[float | None]:
    """Of each draw (how often each task is in it). A label that is a tuple belongs to its step, and copies are other steps."""
    found = []
    for draw in draws:
        pairs = []
        for task, times in enumerate(draw):
            for copy in range(times):
                for pair in tasks[task]:
                    pairs.append(tuple((*one, copy) if isinstance(one, tuple) else one for one in pair))
        found.append(kappa([a for a, _ in pairs], [b for _, b in pairs]))
    return found


def fleiss(items: Sequence[Sequence[Hashable]]) -> float | None:
    """Of the labels that an item's judges gave, as many for each item. None where all labels are the same."""
    agreed = pairs = 0
    for labels in items:
        for i, one in enumerate(labels):
            for j, other in enumerate(labels):
                if i != j:
                    pairs += 1
                    agreed += one == other
    given = [label for labels in items for label in labels]
    chance = sum((given.count(label) / len(given)) ** 2 for label in {*given})
    return None if chance > 1 - 1e-12 else (agreed / pairs - chance) / (1 - chance)


def tau_b(one: Sequence[float], other: Sequence[float]) -> float | None:
    """None where one of them has the same value everywhere."""
    concordant = discordant = only_one = only_other = 0
    for i in range(len(one)):
        for j in range(i):
            a, b = one[i] - one[j], other[i] - other[j]
            concordant += a * b > 0
            discordant += a * b < 0
            only_one += a != 0 and b == 0
            only_other += a == 0 and b != 0
    known = concordant + discordant
    scale = math.sqrt((known + only_one) * (known + only_other))
    return (concordant - discordant) / scale if scale else None
