"""Where published evaluators differ, one function per rule; a protocol is a record of rules.

The first line of a rule's docstring is its name for people, printed in the table of differences between protocols.
Source: PROTOCOLS, metrics and scoring profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from seeact_offline.records import Metric, Operation, Prediction, Truth
from seeact_offline.scoring import aggregate, metrics


@dataclass(frozen=True, slots=True)
class Credit:
    """What an answer earns."""

    element: bool
    """Whether the element is right."""
    operation_f1: float
    """0 to 1."""


ElementRule = Callable[[Prediction, Truth], bool]
"""Whether the predicted element is right."""
ClickRule = Callable[[Operation], Operation]
"""A CLICK, predicted or right, without the parts that do not count; other operations as they are."""
TextRule = Callable[[Operation], str]
"""The text whose tokens Operation F1 compares, for the predicted and the right operation alike."""
MissingRule = Callable[[Credit], Credit]
"""What a step whose target is missing earns, given what its answer would earn."""
AverageRule = Callable[[Sequence[float], Sequence[Truth], int], Metric]
"""One figure from its values, one per step; the truths of the same steps, in order; the seed of the interval."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How one published evaluator scores. A step that did not run earns nothing under any of them."""

    name: str
    element: ElementRule | None
    """None if a run asks for no element."""
    value_of_click: ClickRule
    text: TextRule
    positive_not_ranked: MissingRule
    """Applied if candidates were ranked and none of them is a positive."""
    no_positive: MissingRule
    """Applied if the page has no positive."""
    average: AverageRule


def described(protocol: Protocol) -> dict[str, str]:
    """The rules by field, each in its own words. Rules that do not apply are left out."""
    rules = {field.name: getattr(protocol, field.name) for field in fields(protocol) if field.name != "name"}
    return {name: _sentence(rule) for name, rule in rules.items() if rule is not None}


def _sentence(rule: Callable[..., object]) -> str:
    name = getattr(rule, "__name__", repr(rule))
    return str(rule.__doc__ or name).partition("\n")[0].rstrip(".")


# --- when the element is right ---


def any_positive(prediction: Prediction, truth: Truth) -> bool:
    """Takes any positive for the right element."""
    return metrics.element_correct(prediction.element_id, truth.positives)


# --- what of the operation is compared ---


def keeps_value_of_click(operation: Operation) -> Operation:
    """Keeps the value of a CLICK, whose words then cost Operation F1."""
    return operation


def drops_value_of_click(operation: Operation) -> Operation:
    """Drops the value of a CLICK."""
    return replace(operation, value="") if operation.op == "CLICK" else operation


def as_written(operation: Operation) -> str:
    """Compares operation and value as they are written."""
    return operation.text


# --- a step whose target is missing ---


def scored_as_answered(answer: Credit) -> Credit:
    """Scores the step by its answer all the same."""
    return answer


def scores_nothing(answer: Credit) -> Credit:
    """Gives the step 0 on every metric, whatever was answered."""
    return Credit(element=False, operation_f1=0.0)


# --- averaging ---


def mean_over_tasks(values: Sequence[float], truths: Sequence[Truth], seed: int) -> Metric:
    """Averages each task's steps, then the tasks."""
    return aggregate.metric(aggregate.by_task([truth.key for truth in truths], values), seed)
