"""What a smaller k would have saved, and what it would have cost, as far as one run with a larger k shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

from seeact_offline.grounding.groups import split_groups
from seeact_offline.records import Prediction, Truth, Usage
from seeact_offline.scoring.metrics import best_rank
from seeact_offline.scoring.waterfall import Average

BUDGETS = (5, 10, 20, 30, 50)
"""Values of k."""
LEAST_K = 10
"""A run that offered fewer candidates has no smaller k to speak of."""


def budget(
    predictions: Sequence[Prediction], truths: Sequence[Truth], settings: Mapping[str, Any], average: Average
) -> list[dict[str, Any]] | None:
    """One entry for each k of BUDGETS up to the run's; None for a run that ranked nothing, or under LEAST_K candidates.

    `bound`: the Step SR that none can exceed at that k, the share of steps with a right element among the k best, by `average`
    (that of Step SR). `groups`, `calls`, `prompt_tokens`, `cost_usd` (None where the price is not known): estimates, each
    step's own scaled by the number of its groups at that k over those at the run's. What a run would then answer cannot be
    known from this one.
    """
    top_k, rule = settings.get("top_k") or 0, settings.get("merge")
    size = settings.get("group_size")
    if top_k < LEAST_K or rule is None or size is None or not any(p.ranked for p in predictions):
        return None
    ranks = [best_rank(p.ranked, t.positives) for p, t in zip(predictions, truths, strict=True)]
    paid = _by_size(predictions)
    # a step without ranks was asked in no group, and costs what it did
    n_groups = {n: 1 if rule == "single" else len(split_groups([""] * n, size)) for n in range(1, max(paid) + 1)}
    return [
        {
            "k": k,
            "bound": average([rank is not None and rank < k for rank in ranks])._asdict(),
            "groups": sum(n_groups[min(k, n)] * one.n_steps for n, one in paid.items() if n),
            **_cost({n: n_groups[min(k, n)] / n_groups[n] if n and n_groups[n] else 1.0 for n in paid}, paid),
        }
        for k in BUDGETS
        if k <= top_k
    ]


@dataclass(frozen=True, slots=True)
class _Paid:
    """What the steps with equally many candidates cost together."""

    n_steps: int
    usage: Usage


def _by_size(predictions: Sequence[Prediction]) -> dict[int, _Paid]:
    """By the number of candidates that were offered."""
    steps: dict[int, list[Prediction]] = {}
    for prediction in predictions:
        steps.setdefault(len(prediction.ranked), []).append(prediction)
    return {n: _Paid(len(ones), sum((one.usage for one in ones), Usage())) for n, ones in sorted(steps.items())}


def _cost(shares: Mapping[int, float], paid: Mapping[int, _Paid]) -> dict[str, float | None]:
    """`shares`: of what such steps cost, by the number of candidates that were offered."""

    def total(name: Literal["calls", "prompt_tokens", "cost_usd"]) -> float | None:
        amounts = [(getattr(one.usage, name), shares[n]) for n, one in paid.items()]
        return (
            None if any(amount is None for amount, _ in amounts) else fsum(amount * share for amount, share in amounts)
        )

    return {"calls": total("calls"), "prompt_tokens": total("prompt_tokens"), "cost_usd": total("cost_usd")}
