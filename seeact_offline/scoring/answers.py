"""Predictions with their truths, scored under many protocols; results that protocols share are computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from seeact_offline.merging import merge
from seeact_offline.records import MergeRule, Operation, Prediction, Truth
from seeact_offline.scoring import metrics
from seeact_offline.scoring.inference import total
from seeact_offline.scoring.rules import (
    CASES,
    Credit,
    Protocol,
    one_entry,
    scored_as_answered,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class StepCredits:
    """The credit of steps under a protocol, each field of shape (n_steps,). Where a step is left out, all is 0."""

    element: np.ndarray
    """True if the element is right; False for all if none was asked for."""
    operation_f1: np.ndarray
    success: np.ndarray
    """True if the step succeeds; False for all if no element was asked for."""
    counted: np.ndarray
    """True if the protocol does not leave the step out."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The predicted and the right operation of all steps."""

    distinct: Sequence[tuple[Operation, Operation]]
    numbers: Sequence[int | None]
    """Each step's place in `distinct`; None where the step did not run."""


class Answers:
    """Predictions and truths of the same steps, in the same order. Each rule is asked once."""

    def __init__(self, predictions: Sequence[Prediction], truths: Sequence[Truth]) -> None:
        self.predictions, self.truths = predictions, truths
        self._steps = list(zip(predictions, truths, strict=True))
        self._known: dict[object, object] = {}

    def remerged(self, rule: MergeRule) -> Answers:
        """Merges the same replies by another rule."""
        return self._once(
            ("remerged", rule), lambda: Answers([_remerged(p, rule) for p in self.predictions], self.truths)
        )

    def scored(self, protocol: Protocol) -> StepCredits:
        """Every step under the protocol. A step that did not run earns nothing, and may be left out all the same."""
        cases = tuple((name, getattr(protocol, name)) for name in CASES)
        averaged = (protocol.episode, protocol.entries_of_f1)
        rules = (protocol.element, _of_operation(protocol), cases, averaged, protocol.success)
        return self._once(rules, lambda: self._score(protocol))

    @cached_property
    def ranks(self) -> list[int | None]:
        """Each step's best rank of a positive; None where none was ranked."""
        return [metrics.best_rank(p.ranked, t.positives) for p, t in self._steps]

    def _score(self, protocol: Protocol) -> StepCredits:
        rule = protocol.element
        is_right = [False] * len(self._steps)
        if rule is not None:
            is_right = self._once(rule, lambda: [p.ran and bool(rule(p, t)) for p, t in self._steps])
        element = list(is_right)
        f1 = list(self._f1(protocol))
        counted = [True] * len(self._steps)
        for name, applies in CASES.items():
            case = getattr(protocol, name)
            if case is scored_as_answered:
                # leaves every answer as it is
                continue
            for i in self._once(name, partial(self._places, applies)):
                earned = case(Credit(element[i], f1[i])) if counted[i] else None
                counted[i] = earned is not None
                element[i], f1[i] = (False, 0.0) if earned is None else (earned.element, earned.operation_f1)
        kept = self._once(protocol.episode, lambda: protocol.episode(self.truths))
        counted = [counts and is_kept for counts, is_kept in zip(counted, kept, strict=True)]
        element = [counts and right for counts, right in zip(counted, element, strict=True)]
        # a step's one entry is its Operation F1
        if protocol.entries_of_f1 is not one_entry:
            f1 = [
                total(entries := protocol.entries_of_f1(truth, Credit(right, f))) / len(entries)
                for truth, right, f in zip(self.truths, element, f1, strict=True)
            ]
        f1 = [f if counts else 0.0 for counts, f in zip(counted, f1, strict=True)]
        success = [
            right and protocol.success(prediction, truth, f)
            for (prediction, truth), right, f in zip(self._steps, element, f1, strict=True)
        ]
        return StepCredits(
            element=np.array(element, dtype=bool),
            operation_f1=np.array(f1, dtype=float),
            success=np.array(success, dtype=bool),
            counted=np.array(counted, dtype=bool),
        )

    def _f1(self, protocol: Protocol) -> list[float]:
        """Operation F1 of each answer. Most steps share their pair of operations, predicted and right, with others."""

        def of(said: Operation, wanted: Operation) -> float:
            said, wanted = (protocol.value_of_click(one) for one in (protocol.value_as_said(said), wanted))
            return protocol.f1(said, wanted, protocol.text)

        def all_steps() -> list[float]:
            right = protocol.right_operation
            pairs = self._once(("pairs", right), lambda: self._pairs(right))
            earned = [of(*pair) for pair in pairs.distinct]
            return [0.0 if number is None else earned[number] for number in pairs.numbers]

        return self._once(_of_operation(protocol), all_steps)

    def _pairs(self, right_operation: Callable[[Truth], Operation]) -> _Pairs:
        distinct: dict[tuple[Operation, Operation], int] = {}
        numbers = [
            distinct.setdefault((p.operation, right_operation(t)), len(distinct)) if p.ran else None
            for p, t in self._steps
        ]
        return _Pairs(list(distinct), numbers)

    def _places(self, applies: Callable[[Prediction, Truth], bool]) -> list[int]:
        return [i for i, step in enumerate(self._steps) if applies(*step)]

    def _once(self, key: object, work: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]  # type: ignore[return-value]


def _of_operation(protocol: Protocol) -> tuple[object, ...]:
    """The rules on which Operation F1 rests."""
    return protocol.right_operation, protocol.value_as_said, protocol.value_of_click, protocol.text, protocol.f1


def _remerged(prediction: Prediction, rule: MergeRule) -> Prediction:
    if not prediction.ran:
        return prediction
    decision = merge(prediction.groups, rule, prediction.ranked)
    return Prediction(
        key=prediction.key,
        groups=prediction.groups,
        element_id=decision.element_id,
        op=decision.op,
        value=decision.value,
        ranked=prediction.ranked,
        usage=prediction.usage,
    )
