"""Draws whole tasks at random, in equal shares by website. Every draw follows from the seed and the task's id alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def draw_tasks(websites: Mapping[str, str], n: int, seed: int) -> list[str]:
    """Draws `n` tasks, or all where there are fewer, in the order of `websites`: the website of each task by its id.

    Each website gives one task, then each that has more gives a second, and so on; chance decides which of them the last round leaves out.
    A larger `n` adds tasks to those of a smaller one.

    >>> draw_tasks({"a": "shop", "b": "shop", "c": "shop", "d": "news"}, 2, seed=0)
    ['b', 'd']
    """

    def lot(task: str) -> bytes:
        return hashlib.sha256(f"{seed} {task}".encode(errors="backslashreplace")).digest()

    rounds: dict[str, int] = {}
    turns: dict[str, int] = {}
    for task in sorted(websites, key=lot):
        turns[task] = rounds[websites[task]] = rounds.get(websites[task], -1) + 1
    drawn = set(sorted(turns, key=lambda task: (turns[task], lot(task)))[:n])
    return [task for task in websites if task in drawn]
