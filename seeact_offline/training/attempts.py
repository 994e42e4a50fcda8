"""Attempts at train tasks, and which of them are accepted. Each number of attempt is a run of `evaluate` over the tasks that are left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from seeact_offline.agents.acts import ENDINGS
from seeact_offline.records import Prediction, StepKey
from seeact_offline.runs.folder import read_steps
from seeact_offline.runs.run import Run
from seeact_offline.scoring.step_scores import StepRow
from seeact_offline.scoring.waterfall import LEFT_OUT

HARD_BELOW = 0.4
"""Share of a website's tasks that the attempts solve, below which it gets as many more (OpenWebVoyager, difficulty-guided sampling)."""
Ask = Callable[[int, Collection[str]], Run]
"""Number of the attempt, from 1, and tasks -> the finished run of them."""
Accept = Callable[[int, "AskedRun"], Collection[str]]
"""Number of the attempt and its run -> the tasks that it has solved."""


@dataclass(frozen=True)
class AskedRun:
    """A finished run, task by task."""

    run: Run

    @cached_property
    def tasks(self) -> Mapping[str, Sequence[StepRow]]:
        """The scored steps of each task, without those that its protocol leaves out."""
        found: dict[str, list[StepRow]] = {}
        for key, row in read_steps(self.run.path).items():
            if row.outcome != LEFT_OUT:
                found.setdefault(key.annotation_id, []).append(row)
        return found

    @cached_property
    def predictions(self) -> Mapping[StepKey, Prediction]:
        return {one.key: one for one in self.run.predictions()}

    @cached_property
    def right(self) -> frozenset[StepKey]:
        """Steps with the recorded element and operation."""
        return frozenset(row.key for rows in self.tasks.values() for row in rows if row.success == 1.0)

    @cached_property
    def solved(self) -> frozenset[str]:
        """Tasks whose steps are all right."""
        return frozenset(task for task, rows in self.tasks.items() if all(row.key in self.right for row in rows))

    @cached_property
    def completed(self) -> frozenset[str]:
        """Tasks at each step of which the model has given an action in its form, right or wrong, and also where it scrolled or left."""
        return self._with_all(lambda one: one.failure is None or one.failure in ENDINGS.values())

    @cached_property
    def acted(self) -> frozenset[str]:
        """Tasks at each step of which the model has acted on an element, right or wrong."""
        return self._with_all(lambda one: one.failure is None)

    def _with_all(self, suits: Callable[[Prediction], bool]) -> frozenset[str]:
        return frozenset(
            task
            for task, rows in self.tasks.items()
            if all(self.predictions[row.key].ran and suits(self.predictions[row.key]) for row in rows)
        )


@dataclass(frozen=True)
class Attempt:
    """One attempt at each of some tasks."""

    number: int
    """Number of the attempt from 1."""
    asked: AskedRun
    accepted: frozenset[str]


@dataclass(frozen=True)
class Exploration:
    """The attempts of a cycle."""

    most: int
    """K: attempts at a task; those beyond it are of hard websites alone."""
    attempts: tuple[Attempt, ...]

    @property
    def first(self) -> AskedRun:
        return self.attempts[0].asked

    @cached_property
    def accepted(self) -> Mapping[str, int]:
        """Task -> the number of the attempt that is accepted."""
        return {task: attempt.number for attempt in self.attempts for task in sorted(attempt.accepted)}

    def solved_within(self, k: int) -> frozenset[str]:
        """Tasks with an accepted attempt among the first k."""
        return frozenset(task for task, number in self.accepted.items() if number <= k)

    def right_within(self, k: int) -> frozenset[StepKey]:
        """Steps that some attempt among the first k has right."""
        return frozenset().union(*(one.asked.right for one in self.attempts if one.number <= k))


def explore(tasks: Sequence[str], most: int, ask: Ask, accept: Accept, guided: bool = False) -> Exploration:
    """Attempts each task until an attempt is accepted, at most `most` times.

    `guided`: as many attempts more at the tasks of websites of which less than HARD_BELOW are solved by then.
    """
    attempts: list[Attempt] = []
    left = frozenset(tasks)
    for number in range(1, (2 if guided else 1) * most + 1):
        if number == most + 1:
            left &= _tasks_of_hard_websites(attempts)
        if not left:
            break
        asked = AskedRun(ask(number, left))
        accepted = frozenset(accept(number, asked)) & left
        attempts.append(Attempt(number, asked, accepted))
        left -= accepted
    return Exploration(most, tuple(attempts))


def _tasks_of_hard_websites(attempts: Sequence[Attempt]) -> frozenset[str]:
    websites: dict[str, set[str]] = {}
    for task, rows in attempts[0].asked.tasks.items():
        websites.setdefault(rows[0].website, set()).add(task)
    solved = frozenset().union(*(one.accepted for one in attempts))
    hard = (tasks for tasks in websites.values() if len(tasks & solved) < HARD_BELOW * len(tasks))
    return frozenset().union(*hard)
