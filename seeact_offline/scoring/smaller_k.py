"""Estimates, from one run, of the Step SR that a smaller k could reach at most, and of its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from seeact_offline.merging import split_groups
from seeact_offline.records import Prediction, Truth, Usage
from seeact_offline.scoring.metrics import best_rank
from seeact_offline.scoring.waterfall import Average

BUDGETS = (5, 10, 20, 30, 50)
"""Values of k."""
LEAST_K = 10
"""A run that offered fewer candidates has no smaller k to speak of."""


def ranker_budget(
    predictions: Sequence[Prediction], truths: Sequence[Truth], settings: Mapping[str, Any], average: Average
) -> list[dict[str, Any]] | None:
    """One entry for each k of BUDGETS up to the run's; None for a run that ranked nothing, or under LEAST_K candidates.

    `bound`: the Step SR that none can exceed at that k, the share of steps with a right element among the k best, by
    `average` (that of Step SR). `groups`, `calls`, `prompt_tokens`, `cost_usd` (None where the price is not known):
    estimates, each step's own scaled by the number of its groups at that k over those at the run's. What a run would
    then answer cannot be known from this one.
    """
    top_k, rule = settings.get("top_k") or 0, settings.get("merge")
    size = settings.get("group_size")
    if top_k < LEAST_K or rule is None or size is None or not any(p.ranked for p in predictions):
        return None
    ranks = [best_rank(p.ranked, t.positives) for p, t in zip(predictions, truths, strict=True)]
    by_size: dict[int, list[Prediction]] = {}
    for prediction in predictions:
        by_size.setdefault(len(prediction.ranked), []).append(prediction)
    paid = {n: sum((prediction.usage for prediction in some), Usage()) for n, some in sorted(by_size.items())}
    # a step without ranks was asked in no group, and costs what it did
    n_groups = {n: 1 if rule == "single" else len(split_groups([""] * n, size)) for n in range(1, max(paid) + 1)}
    return [
        {
            "k": k,
            "bound": average([rank is not None and rank < k for rank in ranks])._asdict(),
            "groups": sum(n_groups[min(k, n)] * len(by_size[n]) for n in paid if n),
            **_cost({n: n_groups[min(k, n)] / n_groups[n] if n and n_groups[n] else 1.0 for n in paid}, paid),
        }
        for k in BUDGETS
        if k <= top_k
    ]


def _cost(shares: Mapping[int, float], paid: Mapping[int, Usage]) -> dict[str, float | None]:
    """`shares`: the share of the cost of steps, by the number of candidates that were offered. `paid`: their cost,
    likewise."""
    totals: dict[str, float | None] = {}
    for name in ("calls", "prompt_tokens", "cost_usd"):
        amounts = [(getattr(usage, name), shares[n]) for n, usage in paid.items()]
        is_known = all(amount is not None for amount, _ in amounts)
        totals[name] = fsum(amount * share for amount, share in amounts) if is_known else None
    return totals
