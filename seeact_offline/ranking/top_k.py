"""The scores of a step, from wherever they come, and the top k that follows from them."""

from __future__ import annotations

from typing import Protocol

from seeact_offline.pages.dom import Page
from seeact_offline.ranking.rankers import (
    AnyRanker,
    StepScores,
    begin_ranking,
    best_first,
    ranker_digest,
    scores_digest,
)
from seeact_offline.ranking.texts import ranker_input
from seeact_offline.records import RankedCandidate, RowError, Step


class Scores(Protocol):
    """Ranker scores of steps: from a file, or made on request."""

    @property
    def digest(self) -> str:
        """A short text that identifies what the scores depend on."""

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        """The step's scores, or None if there are none. `page`: the step's page, if it is already parsed."""


class LiveScores:
    """Scores that a ranker makes on request."""

    def __init__(self, ranker: AnyRanker) -> None:
        self.ranker = ranker

    @property
    def digest(self) -> str:
        return scores_digest(ranker_digest(self.ranker))

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        return begin_ranking(self.ranker, ranker_input(step, page))()


def top_k(step: Step, scores: Scores, k: int, page: Page | None = None) -> tuple[RankedCandidate, ...]:
    """The step's k best candidates, best first. Raises RowError `no_scores` if the file lacks the step or a candidate.

    Ranks in the file decide; without ranks, descending score, with ties in the row's order (as in the published ranks).
    """
    known = scores.of(step, page)
    if known is None:
        raise RowError("no_scores", "the score file has no scores for this step")
    ids = [c.backend_node_id for c in step.candidates]
    ids = best_first(known, ids)[:k]
    return tuple(RankedCandidate(node, known[node][0], place) for place, node in enumerate(ids))
