"""The quality of a ranking: recall at k, MRR, ties across the cut, and the ceiling that recall puts on all later stages."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from seeact_offline.ranking.pipeline import StepRanking
from seeact_offline.records import StepKey
from seeact_offline.scoring.aggregate import recall_at_k

RECALL_AT = (1, 3, 5, 10, 20, 50, 100)
CUT = 50
"""Candidates that the pipeline offers, and the depth of the MRR."""
CURVE_TO = 100
PUBLISHED_RECALL_AT_50 = {"cross_task": 0.889, "cross_website": 0.853, "cross_domain": 0.857}
"""Recall of the fine-tuned DeBERTa on Mind2Web's own test sets, which have more steps than Multimodal-Mind2Web: Mind2Web
paper, section 4.1."""


@dataclass(frozen=True, slots=True)
class StepRank:
    """One step's ranking, reduced to what the figures need."""

    key: StepKey
    best_rank: int | None
    """Best rank of a positive, from 0; None without a positive or without scores."""
    has_positive: bool
    is_tied: bool
    """The scores on both sides of the cut are equal."""
    n_texts: int
    failure: str


class CurvePoint(NamedTuple):
    """Recall at one k, as fractions."""

    k: int
    recall: float
    """Recall over all steps. No other step can succeed, so this is also the ceiling of Step SR (micro)."""
    recall_with_positive: float
    """Recall over the steps that have a positive."""
    step_sr_ceiling_macro: float
    """Mean over tasks of each task's recall."""


def step_rank(step: StepRanking) -> StepRank:
    scores = step.scores or {}
    found = [rank for node in step.truth.positives if node in scores and (rank := scores[node][1]) is not None]
    ordered = sorted((score for score, _ in scores.values()), reverse=True)
    return StepRank(
        key=step.truth.key,
        best_rank=min(found, default=None),
        has_positive=bool(step.truth.positives),
        is_tied=len(ordered) > CUT and ordered[CUT - 1] == ordered[CUT],
        n_texts=len(scores),
        failure=step.failure,
    )


def summary(ranks: Sequence[StepRank]) -> dict[str, Any]:
    """The figures of a split, as fractions. Steps without a positive or without scores count as not found."""
    everything = [one.best_rank for one in ranks]
    possible = [one.best_rank for one in ranks if one.has_positive]
    return {
        "n_tasks": len({one.key.annotation_id for one in ranks}),
        "n_steps": len(ranks),
        "n_with_positive": len(possible),
        "n_ranked": sum(not one.failure for one in ranks),
        "recall_at_k": {str(k): recall_at_k(everything, k) for k in RECALL_AT},
        "recall_at_k_with_positive": {str(k): recall_at_k(possible, k) for k in RECALL_AT},
        "mrr_at_50": reciprocal_rank(everything),
        "mrr_at_50_with_positive": reciprocal_rank(possible),
        "ties_across_cut": sum(one.is_tied for one in ranks),
        "texts": sum(one.n_texts for one in ranks),
        "failures": dict(sorted(Counter(one.failure for one in ranks if one.failure).items())),
    }


def reciprocal_rank(best_ranks: Sequence[int | None], depth: int = CUT) -> float:
    """Mean over steps of 1 / (rank of the best positive, from 1); 0 if it is not among the first `depth`."""
    if not best_ranks:
        return 0.0
    return sum(1 / (rank + 1) for rank in best_ranks if rank is not None and rank < depth) / len(best_ranks)


def curve(ranks: Sequence[StepRank]) -> list[CurvePoint]:
    """Recall for k = 1, 2, ... The steps of a task must be next to each other."""
    everything = [one.best_rank for one in ranks]
    possible = [one.best_rank for one in ranks if one.has_positive]
    tasks = [[one.best_rank for one in steps] for _, steps in groupby(ranks, key=lambda one: one.key.annotation_id)]
    points = []
    for k in range(1, CURVE_TO + 1):
        macro = sum(recall_at_k(steps, k) for steps in tasks) / max(1, len(tasks))
        points.append(CurvePoint(k, recall_at_k(everything, k), recall_at_k(possible, k), macro))
    return points


def read_curve(text: str) -> list[CurvePoint]:
    """The reverse of `curve_csv`. Raises ValueError for any other file."""
    try:
        rows = list(csv.DictReader(text.splitlines()))
        names = ("recall", "recall_with_positive", "step_sr_ceiling_macro")
        points = [CurvePoint(int(row["k"]), *(float(row[name]) for name in names)) for row in rows]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no column {error}") from None
    if not points or [point.k for point in points] != list(range(1, len(points) + 1)):
        raise ValueError("not k = 1, 2, ...")
    return points


def curve_csv(points: Sequence[CurvePoint]) -> str:
    """The curve as CSV. `recall` and `step_sr_ceiling_micro` are one figure under the two names that people look for."""
    lines = ["k,recall,recall_with_positive,step_sr_ceiling_micro,step_sr_ceiling_macro"]
    for point in points:
        values = (point.recall, point.recall_with_positive, point.recall, point.step_sr_ceiling_macro)
        lines.append(",".join([str(point.k), *(f"{value:.6f}" for value in values)]))
    return "\n".join(lines) + "\n"
