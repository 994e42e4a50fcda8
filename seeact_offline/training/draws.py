"""Draws the elements that a training question offers. Every draw follows from the seed, the step, the epoch and its number alone.

Source: Mind2Web's released training code, commit 1b7c323. A `random` module's
generator seeded by a text gives the same draws on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from seeact_offline.records import Step, StepKey
from seeact_offline.training.recipe import HARD_SHARE, Recipe

HELD_OUT = -1
"""Stands for the epoch in questions of the tasks that are held out."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A step's candidates, by id, in the row's order."""

    key: StepKey
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    hard: tuple[str, ...] = ()
    """Elements of `wrong` that are ranked under k; empty if all count alike."""

    @property
    def easy(self) -> tuple[str, ...]:
        """Elements of `wrong` that are not `hard`."""
        hard = frozenset(self.hard)
        return tuple(node for node in self.wrong if node not in hard)


@dataclass(frozen=True, slots=True)
class Draw:
    """The elements of one question."""

    ids: tuple[str, ...]
    right: str | None
    """The element to be named; None: none of them."""


def pool_of(step: Step, ranks: Mapping[str, int] | None = None, under: int | None = None) -> Pool:
    """`ranks`: from 0, by id; `under`: wrong elements of lower ranks are hard."""
    right = tuple(c.backend_node_id for c in step.candidates if c.is_positive)
    wrong = tuple(c.backend_node_id for c in step.candidates if not c.is_positive)
    hard = tuple(node for node in wrong if ranks[node] < under) if ranks is not None and under is not None else ()
    return Pool(step.key, right, wrong, hard)


def draw(pool: Pool, recipe: Recipe, epoch: int, number: int) -> Draw:
    """`epoch` from 0, or HELD_OUT; `number` from 0. The step has a right element."""
    chance = random.Random(f"{recipe.seed}\n{pool.key}\n{epoch}\n{number}")
    wrong = pool.wrong
    if recipe.hard_negatives is not None:
        first, other = (pool.hard, pool.easy) if chance.random() < HARD_SHARE else (pool.easy, pool.hard)
        wrong = first or other
    if wrong and chance.random() < recipe.none_share:
        return Draw(tuple(chance.sample(wrong, min(recipe.choices, len(wrong)))), None)
    right = chance.choice(pool.right)
    return Draw((right, *chance.sample(wrong, min(recipe.choices - 1, len(wrong)))), right)
