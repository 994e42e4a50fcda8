"""Cohen's kappa from two lists of labels, by its definition."""

from __future__ import annotations

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
