"""Builds `results.json`, both for a run that ends and for one that is scored again."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from seeact_offline.records import Metric, Prediction, StepKey, StepScore, Summary, Truth
from seeact_offline.scoring.answers import Answers
from seeact_offline.scoring.human_causes import AnswerId, HumanCause, relabelled
from seeact_offline.scoring.inference import wilson
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.rules import Protocol
from seeact_offline.scoring.smaller_k import ranker_budget
from seeact_offline.scoring.step_scores import merge_spread, rows, summarise, summarise_answers
from seeact_offline.scoring.waterfall import LEFT_OUT, SUCCESS, annotation_errors, waterfall, what_if, wrong_elements

FIGURES = ("n_tasks", "n_steps", *METRICS)
"""The figures that are also given without the flagged steps."""
_PRICES = {
    "calls": "calls_if_per_group",
    "estimated_prompt_tokens": "estimated_prompt_tokens_if_per_group",
}
PRICE_NOTES = frozenset({"shared_turn1", *_PRICES, *_PRICES.values()})
"""Notes of a prediction that `price_of_batching` sums up."""
ELEMENT_RULES: Mapping[str, str] = {"strict": "strict_id_hit", "lenient": "lenient_hit"}
"""The rules beside Element Accuracy by which a web agent's element is right, and the note of a step that is."""


@dataclass(frozen=True, slots=True)
class ResultsFigure(Metric):
    """A metric of `results.json`."""

    quoted: str | None = None
    """The average that a protocol from outside the package quotes; None for a protocol of this package."""

    @property
    def named(self) -> dict[str, Any]:
        """The entry of `results.json`."""
        return {name: value for name, value in asdict(self).items() if name != "quoted" or value}


class Results(msgspec.Struct, frozen=True):
    """The entries of `results.json` that other programs of this project read. Those with a default are missing in files of
    earlier versions."""

    split: str
    grounding: str
    model: str
    protocol: str
    n_tasks: int
    n_steps: int
    element_accuracy: ResultsFigure | None
    """None, as is `step_success_rate`, for a run that asks for no element."""
    operation_f1: ResultsFigure
    step_success_rate: ResultsFigure | None
    task_success_rate: dict[str, float | None]
    usage: dict[str, Any]
    waterfall: Any = None
    notes: dict[str, int] = {}
    reply_failures: dict[str, int] = {}
    complete: bool = True
    left_out: int = 0
    n_not_run: int = 0
    data_faults: dict[str, int] = {}
    """Those among `n_not_run` that no model was asked, by the failure's name."""
    no_image: bool = False
    ranker: str | None = None
    marks: str | None = None
    mark_position: str | None = None
    mark_turn1: bool | None = None
    observation: str | None = None
    ceiling: ResultsFigure | None = None
    element_by_rule: dict[str, ResultsFigure] = {}
    """Element Accuracy by each of ELEMENT_RULES, of a web agent."""

    @property
    def headlines(self) -> dict[str, float]:
        """Metric -> the average that the protocol quotes, of the metrics that the run has."""
        figures = {name: getattr(self, name) for name in METRICS}
        known = {name: figure.named for name, figure in figures.items() if figure is not None}
        return {name: headline(self.protocol, name, figure)["value"] for name, figure in known.items()}


@dataclass(frozen=True)
class ScoringOutput:
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
    oracle: Mapping[StepKey, bool] | None = None,
    answers: Answers | None = None,
    causes: Mapping[AnswerId, HumanCause] | None = None,
) -> ScoringOutput:
    """Scores a run.

    `settings`: entries of the results that name the run, with `top_k`, `seed` and `merge`. `complete`: whether all steps are
    there; a run in which none was answered counts as incomplete. `flagged`: steps without which figures are given too; None: not
    asked for. `orders`: the same steps asked in other orders of groups and choices, one list a repeat. `oracle`: see
    `waterfall.annotation_errors`. `answers`: the same predictions and truths, if they are scored under several protocols.
    `causes`: causes of loss that people give.
    """
    answers = answers or Answers(predictions, truths)
    scores, summary = summarise_answers(answers, protocol, settings["top_k"] or 0, settings["seed"])
    by_people = None if causes is None else relabelled(scores, predictions, causes)
    scores = scores if by_people is None else by_people.scores
    named = {name: value for name, value in settings.items() if name != "tasks"}
    losses = _losses(scores, predictions, truths, protocol, settings)
    results = _entries(summary, {**named, "protocol": protocol.name}, losses)
    if by_people is not None and causes is not None:
        unused = len(causes) - by_people.counts["used"] - by_people.counts["not_lost"]
        results["causes_by_person"] = {**by_people.counts, "of_other_answers": unused}
    results["merge_spread"] = merge_spread(answers, protocol, settings["merge"])
    price = price_of_batching(predictions)
    if price is not None:
        results["batching_price"] = price
        results["notes"] = {name: n for name, n in results["notes"].items() if name not in PRICE_NOTES}
    if settings.get("marks") is not None:
        results["annotation_errors"] = annotation_errors(predictions, truths, oracle)
    if settings.get("observation") is not None:
        results["element_by_rule"] = element_by_rule(predictions, truths, scores, protocol, settings["seed"])
    lost_to = unanswered(predictions)
    results["complete"] = complete and lost_to is None
    if faults := Counter(str(prediction.failure) for prediction in predictions if prediction.is_data_fault):
        results["data_faults"] = dict(sorted(faults.items()))
    if lost_to is not None:
        results["unanswered"] = lost_to

    def figures_over(kept: Sequence[int]) -> dict[str, Any]:
        some = [predictions[i] for i in kept], [truths[i] for i in kept]
        _, part = summarise(*some, protocol, settings["top_k"] or 0, settings["seed"])
        entries = _entries(part, {}, {})
        return {name: entries[name] for name in FIGURES}

    if settings.get("split") == "all":
        # steps of runs of earlier versions name no split
        splits = dict.fromkeys(truth.split for truth in truths if truth.split)
        of_split = {split: [i for i, truth in enumerate(truths) if truth.split == split] for split in splits}
        results["by_split"] = {split: figures_over(places) for split, places in of_split.items()}
    spread = shuffle_spread(orders, truths, protocol)
    if spread is not None:
        results["shuffle_spread"] = spread
    if flagged is not None:
        kept = [i for i, truth in enumerate(truths) if truth.key not in flagged]
        results["without_flagged"] = {"n_flagged": len(truths) - len(kept)} | figures_over(kept)
    if protocol.code:
        results["protocol_code"] = protocol.code
        for part in (results, *results.get("by_split", {}).values(), results.get("without_flagged", {})):
            for name in (*METRICS, "point_accuracy", "ceiling"):
                if part.get(name) is not None:
                    part[name]["quoted"] = protocol.average_of(name)
        for figure in results.get("element_by_rule", {}).values():
            figure["quoted"] = protocol.average_of("element_accuracy")
    return ScoringOutput(results, rows(scores, predictions, truths))


def element_by_rule(
    predictions: Sequence[Prediction],
    truths: Sequence[Truth],
    scores: Sequence[StepScore],
    protocol: Protocol,
    seed: int,
) -> dict[str, Any]:
    """A web agent's Element Accuracy by each of ELEMENT_RULES, averaged as the protocol does over the steps that it counts."""
    kept = [i for i, score in enumerate(scores) if score.outcome != LEFT_OUT]
    average = protocol.averaging([truths[i] for i in kept])
    notes = [dict(predictions[i].notes) for i in kept]
    return {
        rule: _metric(average.metric([float(one.get(note, 0)) for one in notes], seed))
        for rule, note in ELEMENT_RULES.items()
    }


def unanswered(predictions: Sequence[Prediction]) -> dict[str, Any] | None:
    """The first failure of a run in which no step was answered, in its own words, and how many steps ended in it. None for any
    other run."""
    if not predictions or any(prediction.ran for prediction in predictions):
        return None
    first = predictions[0]
    alike = sum(prediction.failure == first.failure for prediction in predictions)
    return {"failure": first.failure, "steps": alike, "detail": first.detail}


def _losses(
    scores: Sequence[StepScore],
    predictions: Sequence[Prediction],
    truths: Sequence[Truth],
    protocol: Protocol,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The entries of `results.json` on the causes of loss. A step that the protocol leaves out is in none of them."""
    kept = [i for i, score in enumerate(scores) if score.outcome != LEFT_OUT]
    counted, said, right = [scores[i] for i in kept], [predictions[i] for i in kept], [truths[i] for i in kept]
    average = protocol.averaging(right).points
    return {
        "left_out": len(scores) - len(kept),
        "unknowns": {rule.__name__: n for rule in protocol.unknowns.values() if (n := sum(map(rule, right)))},
        "n_not_run": sum(not prediction.ran for prediction in predictions),
        "n_succeeded": sum(score.outcome == SUCCESS for score in counted),
        "waterfall": waterfall(counted, average),
        "wrong_element": wrong_elements(said, right, counted),
        "what_if": what_if(counted, average),
        "ranker_budget": ranker_budget(said, right, settings, average),
    }


def _entries(summary: Summary, settings: Mapping[str, Any], losses: Mapping[str, Any]) -> dict[str, Any]:
    """`results.json`: `settings` (split, grounding, model, ...) first, then the figures. `losses`: the result of `_losses`."""
    return {
        "schema": 1,
        **settings,
        "n_tasks": summary.n_tasks,
        "n_steps": summary.n_steps,
        "element_accuracy": _metric(summary.element_accuracy),
        "operation_f1": _metric(summary.operation_f1),
        "step_success_rate": _metric(summary.step_success_rate),
        "point_accuracy": _metric(summary.point_accuracy),
        "ceiling": _metric(summary.ceiling),
        "task_success_rate": dict(summary.task_success_rate),
        "task_success_ci95": {
            name: None if rate is None else list(wilson(rate, summary.n_tasks))
            for name, rate in summary.task_success_rate.items()
        },
        "recall_at_k": dict(summary.recall_at_k),
        **losses,
        "usage": summary.usage.named,
        "failures": dict(sorted(summary.failures.items())),
        "reply_failures": dict(sorted(summary.reply_failures.items())),
        "notes": dict(sorted(summary.notes.items())),
    }


def _metric(metric: Metric | None) -> dict[str, Any] | None:
    return None if metric is None else asdict(metric) | {"ci95": list(metric.ci95)}


def shuffle_spread(
    orders: Sequence[Sequence[Prediction]], truths: Sequence[Truth], protocol: Protocol
) -> dict[str, Any] | None:
    """The variation of the averages that the protocol quotes with the order of groups and choices; None without repeats.

    `values` are those of the repeats in order; `sd` is the sample standard deviation, None for fewer than two.
    """
    if not orders:
        return None
    summaries = [summarise(repeat, truths, protocol, top_k=0, seed=0)[1] for repeat in orders]
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

    Calls are counted; those of the groups follow from the questions that were asked. Prompt tokens are estimated by one rule
    for both (`grounding.groups`); None if a step has no estimate.
    """
    shared = [(p, dict(p.notes)) for p in predictions if dict(p.notes).get("shared_turn1")]
    if not shared:
        return None

    def mean(name: str) -> float | None:
        values = [notes.get(name) for _, notes in shared]
        known = [value for value in values if value is not None]
        return statistics.fmean(known) if len(known) == len(values) else None

    ours = {
        "calls": statistics.fmean(p.usage.calls for p, _ in shared),
        "estimated_prompt_tokens": mean("estimated_prompt_tokens"),
    }
    theirs = {name: mean(note) for name, note in _PRICES.items()}
    return {"n_steps": len(shared), "shared-turn1": ours, "per-group": theirs}
