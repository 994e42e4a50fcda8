"""MindAct's elimination: a queue of candidates, asked about a few at a time, until one is
left. Knows no page and no model.

Source: Mind2Web (arXiv 2306.06070) and its released evaluation, commit 1b7c323. Two rules:

`released`: while more than one is left the first five are asked about; the pick goes to the back of the queue, the
others are gone. The last pick is the answer, unless the queue is empty. Its edge cases: a candidate that is left alone
before it was ever offered is not asked about; and a letter that was not offered takes the last pick back (`reset`, chat
models) although that candidate may be the one that is left, or does not (`keep`, T5).

`corrected`: a candidate that is left alone unasked is asked about; a letter that was not offered takes
nothing back. The answer is the pick of the one that is left. Both rules ask the same questions in the
same order, but for that last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Rule = Literal["released", "corrected"]
RULES: tuple[Rule, ...] = ("released", "corrected")
OutOfRange = Literal["reset", "keep"]
OUT_OF_RANGE: tuple[OutOfRange, ...] = ("reset", "keep")
"""Effects that a letter that was not offered can have on the last pick."""
# as released
GROUP_SIZE = 5


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """The answer to one question."""

    pick: str | None
    """None for none of those offered."""
    beyond: bool = False
    """True if it names a letter that was not offered."""


class Elimination:
    """One step's queue. `next_group`, then `record` what was said of it, until there is no group left."""

    def __init__(
        self, ids: Sequence[str], size: int = GROUP_SIZE, rule: Rule = "released", out_of_range: OutOfRange = "reset"
    ) -> None:
        """`ids`: different candidates, in the order in which they wait. `size`: at least 2, or it might never end."""
        if size < 2:
            raise ValueError(f"size must be 2 or more, got {size}")
        self._size, self._rule, self._out_of_range = size, rule, out_of_range
        self._queue = list(ids)
        # of each pick so far, the last question that it was the answer to
        self._won: dict[str, int] = {}
        # the question whose answer stands, under the released rule
        self._last: int | None = None
        self._n_heard = 0

    def next_group(self) -> tuple[str, ...]:
        """The candidates of the next question; empty when the elimination is over."""
        goes_on = len(self._queue) > 1 or (self._rule == "corrected" and self.lone is not None)
        return tuple(self._queue[: self._size]) if goes_on else ()

    def record(self, heard: GroupAnswer) -> None:
        """Records the answer about the next group. Raises ValueError for a pick that is not in it."""
        group = self.next_group()
        if heard.pick is not None and heard.pick not in group:
            raise ValueError(f"{heard.pick} was not offered")
        del self._queue[: len(group)]
        if heard.pick is not None:
            self._queue.append(heard.pick)
            self._won[heard.pick] = self._last = self._n_heard
        elif heard.beyond and self._out_of_range == "reset":
            self._last = None
        self._n_heard += 1

    @property
    def lone(self) -> str | None:
        """The candidate that is left alone before it was ever offered; None for none."""
        unasked = len(self._queue) == 1 and self._queue[0] not in self._won
        return self._queue[0] if unasked else None

    @property
    def taken_back(self) -> bool:
        """True if the one that is left was picked, and a letter that was not offered has taken that back."""
        return self._rule == "released" and bool(self._queue) and self._queue[0] in self._won and self._last is None

    @property
    def winner(self) -> int | None:
        """The question, from 0, whose answer stands once it is over; None for no element."""
        if not self._queue:
            return None
        return self._last if self._rule == "released" else self._won.get(self._queue[0])


def first_groups(ids: Sequence[str], size: int = GROUP_SIZE, rule: Rule = "released") -> list[tuple[str, ...]]:
    """The groups that are asked about whatever is said of the others: all full ones, else the only one.

    >>> first_groups(list("abcdefg"), size=3)
    [('a', 'b', 'c'), ('d', 'e', 'f')]
    >>> first_groups(["a", "b"], size=3)
    [('a', 'b')]
    """
    groups = [tuple(ids[begin : begin + size]) for begin in range(0, len(ids) - size + 1, size)]
    return groups or [group for group in [Elimination(ids, size, rule).next_group()] if group]


def rules_differ(
    ids: Sequence[str], size: int, out_of_range: OutOfRange, asked: Sequence[tuple[tuple[str, ...], GroupAnswer]]
) -> bool:
    """Tells whether the two rules, given these groups and answers, end with other answers or ask other questions."""
    ends = []
    for rule in RULES:
        elimination = Elimination(ids, size, rule, out_of_range)
        for group, heard in asked:
            if elimination.next_group() != group:
                break
            elimination.record(heard)
        if elimination.next_group():
            return True
        ends.append(elimination.winner)
    return ends[0] != ends[1]
