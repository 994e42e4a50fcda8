"""Prediction + truth -> StepScore under a named protocol, and the summary of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from seeact_offline.records import MergeRule, Prediction, StepScore, Summary, Truth
from seeact_offline.scoring import aggregate, metrics
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.rules import Protocol, one_entry
from seeact_offline.scoring.waterfall import LEFT_OUT, first_loss


def score_step(prediction: Prediction, truth: Truth, protocol: Protocol) -> StepScore:
    """Scores one step. A step that did not run scores 0 and says so in `outcome`.

    >>> from seeact_offline.scoring.protocols import PROTOCOLS
    >>> truth = Truth("book a flight", "1", op="TYPE", value="New York", positives=frozenset({"7"}))
    >>> prediction = Prediction(*truth.key, "7", "TYPE", "New York City")
    >>> score = score_step(prediction, truth, PROTOCOLS["seeact"])
    >>> score.element, round(score.operation_f1, 3), score.success, score.outcome
    (1.0, 0.857, 0.0, 'wrong_value')
    """
    return score_steps(LabelledPredictions([prediction], [truth]), protocol)[0]


def score_steps(labelled: LabelledPredictions, protocol: Protocol) -> list[StepScore]:
    """Scores all steps. One that the protocol leaves out has no figures and the outcome `left_out`."""
    scored = labelled.credits(protocol)
    columns = (scored.counted, scored.element, scored.operation_f1, scored.success)
    grounded = protocol.element is not None
    return [
        _step_score(prediction, truth, rank, grounded, *earned)
        if counts
        else StepScore(truth.key, None, None, None, LEFT_OUT, failure=prediction.failure)
        for prediction, truth, rank, counts, *earned in zip(
            labelled.predictions, labelled.truths, labelled.ranks, *(column.tolist() for column in columns), strict=True
        )
    ]


def _step_score(
    prediction: Prediction, truth: Truth, rank: int | None, grounded: bool, element: bool, f1: float, success: bool
) -> StepScore:
    if not grounded:
        outcome = first_loss(prediction, truth, None, f1, None, None)
        return StepScore(truth.key, None, f1, None, outcome, failure=prediction.failure)
    # what the grounding says; where it says nothing, whether a positive was ranked. What the model did changes neither
    reachable = prediction.reachable
    if reachable is None and prediction.ranked:
        reachable = rank is not None
    in_box = None if prediction.point is None else float(metrics.point_correct(prediction.point, truth.boxes))
    return StepScore(
        key=truth.key,
        element=float(element),
        operation_f1=f1,
        success=float(success),
        outcome=first_loss(prediction, truth, element, f1, success, rank),
        best_rank=rank,
        failure=prediction.failure,
        point=in_box,
        reachable=reachable,
    )


def summarise(labelled: LabelledPredictions, protocol: Protocol, top_k: int | None) -> tuple[list[StepScore], Summary]:
    """Scores all steps, given in data set order, and sums up those that the protocol does not leave out.

    What was asked and what failed (`usage`, `failures`, `notes`) is counted over all steps; so are the outcomes in
    `waterfall`.
    """
    scores = score_steps(labelled, protocol)
    counted = [score for score in scores if score.outcome != LEFT_OUT]
    right = [truth for score, truth in zip(scores, labelled.truths, strict=True) if score.outcome != LEFT_OUT]
    averaging = protocol.averaging(right)
    average = averaging.metric
    summary = aggregate.summarise(counted, labelled.predictions, top_k, average, averaging.missing)
    if protocol.groups_of_f1 is not protocol.groups or protocol.entries_of_f1 is not one_entry:
        values = [score.operation_f1 or 0.0 for score in counted]
        summary = replace(summary, operation_f1=protocol.averaging_of_f1(right).metric(values))
    return scores, replace(summary, waterfall=Counter(score.outcome for score in scores))


_OF_TRUTH = "split task index website domain n_actions n_before n_candidates".split()
_OF_SCORE = "element operation_f1 success outcome".split()
_OF_ANSWER = "element_id op value element_text".split()
"""Fields of a line that are those of a record."""


def rows(
    scores: Sequence[StepScore], predictions: Sequence[Prediction], truths: Sequence[Truth]
) -> list[dict[str, Any]]:
    """The lines of `steps.jsonl`: each score with what was predicted and what would have been right."""
    return [
        {
            **score.key._asdict(),
            **{name: getattr(truth, name) for name in _OF_TRUTH},
            **{name: getattr(score, name) for name in _OF_SCORE},
            **({} if score.person_cause is None else {"person_cause": score.person_cause}),
            "best_rank": score.best_rank,
            "failure": score.failure,
            "detail": prediction.detail,
            "cost_usd": prediction.usage.cost_usd,
            **({} if score.point is None else {"point_in_box": score.point, "point": prediction.point}),
            **({} if score.reachable is None else {"reachable": score.reachable}),
            "predicted": {name: getattr(prediction, name) for name in _OF_ANSWER},
            "target": {
                "element_ids": sorted(truth.positives),
                "op": truth.operation.op,
                "value": truth.operation.value,
                "element_text": truth.element_text,
            },
        }
        for score, prediction, truth in zip(scores, predictions, truths, strict=True)
    ]


def merge_spread(
    labelled: LabelledPredictions, protocol: Protocol, rule: MergeRule | None
) -> Mapping[str, Mapping[str, float]]:
    """The figures of other merge rules on the same replies: rule -> the averages that the protocol quotes.

    Only rules that need no further call are listed: after `final-round` also `first` and `best-rank`; after `single`
    none. Empty for a run without ranks or without a rule, whose grounding asks no groups.
    """
    predictions = labelled.predictions
    if rule is None or (any(p.ran for p in predictions) and not any(p.ranked for p in predictions)):
        return {}
    rules: dict[MergeRule, tuple[MergeRule, ...]] = {
        "single": ("single",),
        "final-round": ("final-round", "first", "best-rank"),
    }
    return {other: _headlines(labelled.remerged(other), protocol) for other in rules.get(rule, ("first", "best-rank"))}


def _headlines(labelled: LabelledPredictions, protocol: Protocol) -> dict[str, float]:
    """The averages that the protocol quotes, without intervals."""
    scored = labelled.credits(protocol)
    right = [truth for truth, counts in zip(labelled.truths, scored.counted.tolist(), strict=True) if counts]
    average, of_f1 = protocol.averaging(right), protocol.averaging_of_f1(right)
    headlines = {
        "element_accuracy": protocol.headline(*average.points(scored.element[scored.counted])),
        "operation_f1": protocol.headline_of_f1(*of_f1.points(scored.operation_f1[scored.counted])),
        "step_success_rate": protocol.headline(*average.points(scored.success[scored.counted])),
    }
    return {name: value for name, value in headlines.items() if protocol.element or name == "operation_f1"}
