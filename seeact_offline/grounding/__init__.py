"""Leads from a ranked page to one element: one protocol, one module a strategy."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from seeact_offline.merging import Decision
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Call, Model, RankedCandidate, Reply, Step, StepKey, Usage

if TYPE_CHECKING:
    from seeact_offline.grounding.conversation import Question

MAX_SIDE = 8000
"""Pixels of a picture's longest side that common servers still accept."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Order:
    """A seeded order of groups and of choices, the same whatever else is asked and in which order."""

    seed: int
    repeat: int
    """Number of the repeat from 1."""

    def shuffled(self, items: Sequence[T], key: StepKey, what: str) -> list[T]:
        """`items` in the order that the seed, the repeat, the step and `what` (`groups`, `choices 0`, ...) decide."""
        return random.Random(f"{self.seed}\n{self.repeat}\n{key}\n{what}").sample(list(items), len(items))


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """Options of questions that all strategies share."""

    turns: Literal[1, 2] = 2
    """1: both turns in one message, for models that take no conversation."""
    image: bool = True
    """False: pruned HTML in the picture's place."""
    shared_turn1: bool = False
    """Turn 1 once a step, on the picture of the whole page."""
    order: Order | None = None
    """None: groups from the top of the page down, choices in document order."""
    max_side: int | None = MAX_SIDE
    """Longest side of a picture sent, in pixels; None: sent as it is."""

    def ordered(self, items: Sequence[T], key: StepKey, what: str) -> list[T]:
        """`items` as `order` shuffles them; without one, as they are."""
        return list(items) if self.order is None else self.order.shuffled(items, key, what)


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A step whose page is parsed and whose candidates are ranked; its row has no fault."""

    step: Step
    page: Page
    picture: PagePicture
    ranked: tuple[RankedCandidate, ...]
    """The top-k, best first; empty for a strategy that needs no ranking."""


@dataclass(frozen=True, slots=True)
class GroundingResult:
    """Everything that one step's conversations gave."""

    groups: tuple[Reply, ...]
    decision: Decision
    usage: Usage
    ran: bool = True
    """False when a call gave no answer."""
    point: tuple[float, float] | None = None
    """Page pixels, where the model pointed."""
    notes: tuple[tuple[str, int], ...] = ()
    """Counts of things worth saying, sorted by name."""
    calls: tuple[Call, ...] = ()
    """Records of the calls that the answers took."""
    captions: Mapping[str, str] = field(default_factory=dict)
    """Captions that were shown, by the `backend_node_id` of the picture."""
    reachable: bool | None = None
    """Result of `reaches` once what depends on a model's captions is known; None: the earlier result holds."""


class Grounding(Protocol):
    """The one seam between the runner and a strategy.

    One that does not offer every ranked element, or ranks none, has `reaches(prepared)` as well: whether a perfect model would
    get the element right. It asks nobody, so the ceiling is the same whatever the model does, and raises what `questions` raises.
    """

    needs_ranking: bool
    """False: no scores are opened, and `PreparedStep.ranked` is empty."""
    form: QuestionOptions

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The questions that are asked first, without any reply. Raises RowError."""

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        """Asks the model and decides. A row or call at fault becomes the decision's named failure."""
