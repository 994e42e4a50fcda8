"""Leads from a ranked page to one element: one protocol, one module a strategy."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from seeact_offline.merging import Decision
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Call, MergeRule, Model, RankedCandidate, Reply, Step, StepKey, Usage

if TYPE_CHECKING:
    from seeact_offline.grounding.conversation import PastQuestion, Question

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
    notes: Mapping[str, int] = field(default_factory=dict)
    """Counts of things worth saying, sorted by name."""
    calls: tuple[Call, ...] = ()
    """Records of the calls that the answers took."""
    captions: Mapping[str, str] = field(default_factory=dict)
    """Captions that were shown, by the `backend_node_id` of the picture."""
    reachable: bool | None = None
    """Result of `reaches` once what depends on a model's captions is known; None: the earlier result holds."""


class Grounding(ABC):
    """The one seam between the runner and a strategy. What a strategy can do beside asking has a default here."""

    needs_ranking = True
    """False: no scores are opened, and `PreparedStep.ranked` is empty."""
    asks_grounder = False
    """True if a second model, the grounder, finds the place of what the first describes."""
    earlier = 0
    """Number of earlier steps of the task whose rows its questions need."""
    merge_rule: MergeRule | None = None
    """The rule by which the answers of several groups become one; None: it asks about no groups."""
    form: QuestionOptions

    @abstractmethod
    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The questions that are asked first, without any reply. Raises RowError."""

    @abstractmethod
    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        """Asks the model and decides. A row or call at fault becomes the decision's named failure."""

    def reaches(self, prepared: PreparedStep) -> bool | None:
        """Tells whether a perfect model would get the element right; None: yes, where the element is ranked.

        It asks nobody, so the ceiling is the same whatever the model does. Raises what `questions` raises.
        """
        return None

    def past_questions(self, prepared: PreparedStep, replies: Sequence[Sequence[str]]) -> Iterator[PastQuestion] | None:
        """The questions of the dialogue in which these replies came; None: `questions`, `question`
        and `final_round` give them all."""
        return None

    def question(self, prepared: PreparedStep, offered: Sequence[str], index: int) -> Question | None:
        """The question about these elements, where it depends on replies; None: no question does. Raises RowError."""
        return None

    def final_round(self, prepared: PreparedStep, picks: Sequence[str], index: int) -> Question | None:
        """The question about the groups' picks; None: there is no such question. Raises RowError."""
        return None
