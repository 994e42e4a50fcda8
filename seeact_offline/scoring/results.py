"""Builds `results.json`, both for a run that ends and for one that is scored again."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seeact_offline.records import Metric, Prediction, StepKey, StepScore, Summary, Truth
from seeact_offline.scoring.rules import Protocol
from seeact_offline.scoring.steps import merge_spread, rows, summarise

METRICS = ("element_accuracy", "operation_f1", "step_success_rate")
FIGURES = ("n_tasks", "n_steps", *METRICS)
"""The figures that are also given without the flagged steps."""
_PRICES = {
    "calls": "calls_if_per_group",
    "estimated_prompt_tokens": "estimated_prompt_tokens_if_per_group",
}
PRICE_NOTES = frozenset({"shared_turn1", *_PRICES, *_PRICES.values()})
"""Notes of a prediction that `price_of_batching` sums up."""


@dataclass(frozen=True)
class Assembled:
    """Everything that scoring writes of a run."""

    results: dict[str, Any]
    """`results.json`."""
    rows: list[dict[str, Any]]
    """The lines of `steps.jsonl`."""


def assemble(
    predictions: Sequence[Prediction],
    truths: Sequence[Truth],
    protocol: Protocol,
    settings: Mapping[str, Any],
    *,
    complete: bool,
    flagged: frozenset[StepKey] | None = None,
    orders: Sequence[Sequence[Prediction]] = (),
) -> Assembled:
    """Scores a run. `settings`: what the results name of it, including `top_k`, `seed` and `merge`.

    `flagged`: figures are also given without these steps; None: not asked for. `orders`: the same steps asked in other
    orders of groups and choices, one list per repeat.
    """
    scores, results = _scored(predictions, truths, protocol, settings)
    results["complete"] = complete
    spread = shuffle_spread(orders, truths, protocol)
    if spread is not None:
        results["shuffle_spread"] = spread
    if flagged is not None:
        kept = [i for i, truth in enumerate(truths) if truth.key not in flagged]
        _, rest = _scored([predictions[i] for i in kept], [truths[i] for i in kept], protocol, settings)
        results["without_flagged"] = {"n_flagged": len(truths) - len(kept)} | {name: rest[name] for name in FIGURES}
    return Assembled(results, rows(scores, predictions, truths))


def _scored(
    predictions: Sequence[Prediction], truths: Sequence[Truth], protocol: Protocol, settings: Mapping[str, Any]
) -> tuple[list[StepScore], dict[str, Any]]:
    scores, summary = summarise(predictions, truths, protocol, settings["top_k"] or 0, settings["seed"])
    named = {name: value for name, value in settings.items() if name != "tasks"}
    results = results_json(summary, {**named, "protocol": protocol.name})
    results["merge_spread"] = merge_spread(predictions, truths, protocol, settings["merge"])
    price = price_of_batching(predictions)
    if price is not None:
        results["batching_price"] = price
        results["notes"] = {name: n for name, n in results["notes"].items() if name not in PRICE_NOTES}
    return scores, results


def results_json(summary: Summary, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`results.json`: `settings` (split, grounding, model, ...) first, then the figures."""
    return {
        "schema": 1,
        **settings,
        "n_tasks": summary.n_tasks,
        "n_steps": summary.n_steps,
        "element_accuracy": _metric_or_none(summary.element_accuracy),
        "operation_f1": _metric(summary.operation_f1),
        "step_success_rate": _metric_or_none(summary.step_success_rate),
        "point_accuracy": _metric_or_none(summary.point_accuracy),
        "ceiling": _metric_or_none(summary.ceiling),
        "task_success_rate": dict(summary.task_success_rate),
        "recall_at_k": dict(summary.recall_at_k),
        "waterfall": _sorted(summary.waterfall),
        "usage": asdict(summary.usage),
        "failures": _sorted(summary.failures),
        "reply_failures": _sorted(summary.reply_failures),
        "notes": _sorted(summary.notes),
    }


def _metric_or_none(metric: Metric | None) -> dict[str, Any] | None:
    return None if metric is None else _metric(metric)


def _metric(metric: Metric) -> dict[str, Any]:
    return {"macro": metric.macro, "micro": metric.micro, "ci95": list(metric.ci95)}


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def shuffle_spread(
    orders: Sequence[Sequence[Prediction]], truths: Sequence[Truth], protocol: Protocol
) -> dict[str, Any] | None:
    """How far the macro averages vary with the order of groups and choices; None without repeats.

    `values` are those of the repeats in order; `sd` is the sample standard deviation, None for fewer than two.
    """
    if not orders:
        return None
    summaries = [summarise(repeat, truths, protocol, top_k=0, seed=0)[1] for repeat in orders]
    spread: dict[str, Any] = {"n_orders": len(summaries)}
    for name in METRICS:
        figures = [getattr(summary, name) for summary in summaries]
        if None not in figures:
            spread[name] = _spread([figure.macro for figure in figures])
    return spread


def _spread(values: Sequence[float]) -> dict[str, Any]:
    sd = statistics.stdev(values) if len(values) > 1 else None
    return {"values": list(values), "min": min(values), "max": max(values), "sd": sd}


def price_of_batching(predictions: Sequence[Prediction]) -> dict[str, Any] | None:
    """Calls and prompt tokens per step with a shared turn 1, and with one per group; None if nothing was shared.

    Calls are counted; those of the groups follow from the questions that were asked. Prompt tokens are estimated by one rule
    for both (`grounding.groups`); None if a step has no estimate.
    """
    shared = [(p, dict(p.notes)) for p in predictions if dict(p.notes).get("shared_turn1")]
    if not shared:
        return None
    ours = {
        "calls": statistics.fmean(p.usage.calls for p, _ in shared),
        "estimated_prompt_tokens": _mean_note(shared, "estimated_prompt_tokens"),
    }
    theirs = {name: _mean_note(shared, note) for name, note in _PRICES.items()}
    return {"n_steps": len(shared), "shared-turn1": ours, "per-group": theirs}


def _mean_note(shared: Sequence[tuple[Prediction, Mapping[str, int]]], name: str) -> float | None:
    values = [notes.get(name) for _, notes in shared]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None
