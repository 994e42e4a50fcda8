"""Builds what scoring writes of a run, both for one that ends and for one that is scored again."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

from msgspec import structs

from seeact_offline.records import Prediction, StepKey, StepScore, Summary, Truth
from seeact_offline.scoring.also_right import second_figure
from seeact_offline.scoring.inference import wilson
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.rules import Protocol
from seeact_offline.scoring.smaller_k import ranker_budget
from seeact_offline.scoring.step_scores import merge_spread, rows, summarise
from seeact_offline.scoring.waterfall import LEFT_OUT, SUCCESS, annotation_errors, waterfall, what_if, wrong_elements

if TYPE_CHECKING:
    from seeact_offline.scoring.human_causes import AnswerId, HumanCause

from seeact_offline.scoring.results import (
    ELEMENT_RULES,
    NOT_IN_RESULTS,
    PartFigures,
    Results,
    ResultsFigure,
    Settings,
    figure_entries,
)

_PRICES = {"calls": "calls_if_per_group", "estimated_prompt_tokens": "estimated_prompt_tokens_if_per_group"}
PRICE_NOTES = frozenset({"shared_turn1", *_PRICES, *_PRICES.values()})
"""Notes of a prediction that `price_of_batching` sums up."""


@dataclass(frozen=True)
class ScoringInput:
    """Predictions with the truths of the same steps, in data set order, and what results say of their run."""

    settings: Mapping[str, Any]
    """Entries of the results that name the run, with `top_k`, `seed` and `merge`, and those of NOT_IN_RESULTS."""
    predictions: Sequence[Prediction]
    truths: Sequence[Truth]
    complete: bool
    """True if no step is missing."""
    flagged: frozenset[StepKey] | None = None
    """Steps without which figures are given too; None: not asked for."""
    orders: Sequence[Sequence[Prediction]] = ()
    """The same steps asked in other orders of groups and choices, one list a repeat."""
    oracle: Mapping[StepKey, bool] | None = None
    """Step -> True where the oracle grounding gets its element right; None where no run of it was named."""
    causes: Mapping[AnswerId, HumanCause] | None = None
    """Causes of loss that a person gives; None where no file of them was named."""
    also_right: frozenset[StepKey] = frozenset()
    """Steps whose `truths` have other right answers from a file."""

    @cached_property
    def labelled(self) -> LabelledPredictions:
        """Shared by all protocols under which these are scored."""
        return LabelledPredictions(self.predictions, self.truths)

    @property
    def seed(self) -> int:
        seed: int = self.settings["seed"]
        return seed


@dataclass(frozen=True)
class ScoringOutput:
    """Everything that scoring writes of a run."""

    results: Results
    """`results.json`."""
    rows: list[dict[str, Any]]
    """The lines of `steps.jsonl`."""


def assemble(run: ScoringInput, protocol: Protocol) -> ScoringOutput:
    """Scores a run. One in which no step was answered counts as incomplete.

    >>> from seeact_offline.scoring.protocols import PROTOCOLS
    >>> steps = [StepKey("book a flight", "1"), StepKey("book a flight", "2")]
    >>> run = ScoringInput(
    ...     {"split": "cross_task", "grounding": "choice", "model": "toy", "top_k": 10, "seed": 0, "merge": None},
    ...     [Prediction(*step, "7", "CLICK", "") for step in steps],
    ...     [
    ...         Truth(*step, op="CLICK", value="", positives=frozenset({right}))
    ...         for step, right in zip(steps, ["7", "12"])
    ...     ],
    ...     complete=True,
    ... )
    >>> results = assemble(run, PROTOCOLS["seeact"]).results
    >>> results.step_success_rate.micro, results.waterfall
    (0.5, {'wrong_element': {'steps': 1, 'macro': 0.5, 'micro': 0.5}})
    """
    scores, summary = summarise(run.labelled, protocol, run.settings["top_k"] or 0)
    by_person: dict[str, int] | None = None
    if run.causes is not None:
        from seeact_offline.scoring.human_causes import relabelled

        relabelling = relabelled(scores, run.predictions, run.causes)
        scores, counts = relabelling.scores, relabelling.counts
        by_person = {**counts, "of_other_answers": len(run.causes) - counts["used"] - counts["not_lost"]}
    named = {name: value for name, value in run.settings.items() if name not in NOT_IN_RESULTS}
    named["protocol"] = protocol.name
    results = Results(
        settings=named,
        **{name: named[name] for name in Settings.__struct_fields__ if name in named},
        **_figures(summary, protocol),
        **_losses(run, scores, protocol),
        **_events(run, summary),
        **_second_readings(run, scores, protocol),
        causes_by_person=by_person,
        protocol_code=protocol.code or None,
    )
    return ScoringOutput(results, rows(scores, run.predictions, run.truths))


def _figures(summary: Summary, protocol: Protocol) -> dict[str, Any]:
    """The fields of `Figures`."""
    others = {"point_accuracy": summary.point_accuracy, "ceiling": summary.ceiling}
    return {
        **_averages(summary, protocol),
        **figure_entries(others, protocol),
        "task_success_rate": dict(summary.task_success_rate),
        "task_success_ci95": {
            name: None if rate is None else wilson(rate, summary.n_tasks)
            for name, rate in summary.task_success_rate.items()
        },
        "recall_at_k": dict(summary.recall_at_k),
    }


def _losses(run: ScoringInput, scores: Sequence[StepScore], protocol: Protocol) -> dict[str, Any]:
    """The fields of `Losses`. A step that the protocol leaves out is in none of them."""
    kept = [i for i, score in enumerate(scores) if score.outcome != LEFT_OUT]
    counted = [scores[i] for i in kept]
    predictions, truths = [run.predictions[i] for i in kept], [run.truths[i] for i in kept]
    average = protocol.averaging(truths).points
    return {
        "left_out": len(scores) - len(kept),
        "unknowns": {rule.__name__: n for rule in protocol.unknowns.values() if (n := sum(map(rule, truths)))},
        "n_not_run": sum(not prediction.ran for prediction in run.predictions),
        "n_succeeded": sum(score.outcome == SUCCESS for score in counted),
        "waterfall": waterfall(counted, average),
        "wrong_element": wrong_elements(predictions, truths, counted),
        "what_if": what_if(counted, average),
        "ranker_budget": ranker_budget(predictions, truths, run.settings, average),
    }


def _events(run: ScoringInput, summary: Summary) -> dict[str, Any]:
    """The fields on what was asked, spent and noted, and what failed."""
    price = price_of_batching(run.predictions)
    priced = frozenset() if price is None else PRICE_NOTES
    faults = Counter(str(prediction.failure) for prediction in run.predictions if prediction.is_data_fault)
    lost_to = unanswered(run.predictions)
    return {
        "usage": summary.usage.named,
        "failures": dict(sorted(summary.failures.items())),
        "reply_failures": dict(sorted(summary.reply_failures.items())),
        "notes": {name: n for name, n in sorted(summary.notes.items()) if name not in priced},
        "batching_price": price,
        "complete": run.complete and lost_to is None,
        "data_faults": dict(sorted(faults.items())),
        "unanswered": lost_to,
    }


def _second_readings(run: ScoringInput, scores: Sequence[StepScore], protocol: Protocol) -> dict[str, Any]:
    """The fields with figures of some of the steps, by other rules, or of other orders."""

    truths, settings = run.truths, run.settings
    by_split: dict[str, PartFigures] | None = None
    without_flagged: PartFigures | None = None
    if settings.get("split") == "all":
        splits = dict.fromkeys(truth.split for truth in truths if truth.split)
        by_split = {split: _part(run, protocol, [truth.split == split for truth in truths]) for split in splits}
    if run.flagged is not None:
        without_flagged = _part(run, protocol, [truth.key not in run.flagged for truth in truths])
        without_flagged = structs.replace(without_flagged, n_flagged=sum(truth.key in run.flagged for truth in truths))
    # only web agents see an observation, and only they note by which rule an element is right
    has_rules = settings.get("observation") is not None
    return {
        "also_right": second_figure(run.labelled, protocol, len(run.also_right)),
        "merge_spread": merge_spread(run.labelled, protocol, settings["merge"]),
        "annotation_errors": (
            None if settings.get("marks") is None else annotation_errors(run.predictions, truths, run.oracle)
        ),
        "element_by_rule": element_by_rule(run, scores, protocol) if has_rules else {},
        "by_split": by_split,
        "shuffle_spread": shuffle_spread(run.orders, truths, protocol),
        "without_flagged": without_flagged,
    }


def _part(run: ScoringInput, protocol: Protocol, is_in_it: Sequence[bool]) -> PartFigures:
    """The figures of some of the steps."""
    some = LabelledPredictions([*compress(run.predictions, is_in_it)], [*compress(run.truths, is_in_it)])
    _, summary = summarise(some, protocol, run.settings["top_k"] or 0)
    return PartFigures(**_averages(summary, protocol))


def element_by_rule(run: ScoringInput, scores: Sequence[StepScore], protocol: Protocol) -> dict[str, ResultsFigure]:
    """A web agent's Element Accuracy by each of ELEMENT_RULES, averaged as the protocol does over the steps that it
    counts."""
    kept = [i for i, score in enumerate(scores) if score.outcome != LEFT_OUT]
    average = protocol.averaging([run.truths[i] for i in kept])
    notes = [run.predictions[i].notes for i in kept]
    hits = {rule: [float(of_step.get(note, 0)) for of_step in notes] for rule, note in ELEMENT_RULES.items()}
    return figure_entries({rule: average.metric(values) for rule, values in hits.items()}, protocol)


def unanswered(predictions: Sequence[Prediction]) -> dict[str, Any] | None:
    """The first failure of a run in which no step was answered, in its own words, and how many steps ended in it. None
    for any other run."""
    if not predictions or any(prediction.ran for prediction in predictions):
        return None
    first = predictions[0]
    alike = sum(prediction.failure == first.failure for prediction in predictions)
    return {"failure": first.failure, "steps": alike, "detail": first.detail}


def _averages(summary: Summary, protocol: Protocol) -> dict[str, Any]:
    """The fields of `PartFigures` but for `n_flagged`."""
    return {
        "n_tasks": summary.n_tasks,
        "n_steps": summary.n_steps,
        **figure_entries({name: getattr(summary, name) for name in METRICS}, protocol),
    }


def shuffle_spread(
    orders: Sequence[Sequence[Prediction]], truths: Sequence[Truth], protocol: Protocol
) -> dict[str, Any] | None:
    """The variation of the averages that the protocol quotes with the order of groups and choices; None without
    repeats.

    `values` are those of the repeats in order; `sd` is the sample standard deviation, None for fewer than two.
    """
    if not orders:
        return None
    summaries = [summarise(LabelledPredictions(repeat, truths), protocol, top_k=0)[1] for repeat in orders]
    spread: dict[str, Any] = {"n_orders": len(summaries)}
    for name in METRICS:
        figures = [getattr(summary, name) for summary in summaries]
        if None not in figures:
            values = [getattr(figure, protocol.average_of(name)) for figure in figures]
            sd = statistics.stdev(values) if len(values) > 1 else None
            spread[name] = {"values": values, "min": min(values), "max": max(values), "sd": sd}
    return spread


def price_of_batching(predictions: Sequence[Prediction]) -> dict[str, Any] | None:
    """Calls and prompt tokens per step with a shared turn 1, and with one per group; None if nothing was shared.

    Calls are counted; those of the groups follow from the questions that were asked. Prompt tokens are estimated by one
    rule for both (`grounding.groups`); None if a step has no estimate.
    """
    shared = [(p, p.notes) for p in predictions if p.notes.get("shared_turn1")]
    if not shared:
        return None

    def mean(name: str) -> float | None:
        values = [notes.get(name) for _, notes in shared]
        estimates = [value for value in values if value is not None]
        return statistics.fmean(estimates) if len(estimates) == len(values) else None

    ours = {
        "calls": statistics.fmean(p.usage.calls for p, _ in shared),
        "estimated_prompt_tokens": mean("estimated_prompt_tokens"),
    }
    theirs = {name: mean(note) for name, note in _PRICES.items()}
    return {"n_steps": len(shared), "shared-turn1": ours, "per-group": theirs}
