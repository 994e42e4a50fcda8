"""Predictions with their truths, scored under many protocols; results that protocols share are computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import msgspec
import numpy as np

from seeact_offline.merging import merge
from seeact_offline.records import MergeRule, Operation, Prediction, Truth
from seeact_offline.scoring import metrics
from seeact_offline.scoring.inference import total
from seeact_offline.scoring.rules import CASES, Credit, Protocol, one_entry, same_tokens, scored_as_answered
from seeact_offline.scoring.waterfall import is_unreadable

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


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
    numbers: np.ndarray
    """Each step's place in `distinct`; -1 where the step did not run."""


class LabelledPredictions:
    """Predictions and truths of the same steps, in the same order. Each rule is asked once.

    A reply that cannot be read names neither an element nor a place, whatever was read of it.
    """

    def __init__(self, predictions: Sequence[Prediction], truths: Sequence[Truth]) -> None:
        self.predictions, self.truths = predictions, truths
        named = (
            msgspec.structs.replace(p, element_id=None, point=None) if is_unreadable(p.failure) else p
            for p in predictions
        )
        self._steps = list(zip(named, truths, strict=True))
        self._cache: dict[object, object] = {}

    def remerged(self, rule: MergeRule) -> LabelledPredictions:
        """Merges the same replies by another rule."""
        return self._once(
            ("remerged", rule), lambda: LabelledPredictions([_remerged(p, rule) for p in self.predictions], self.truths)
        )

    def credits(self, protocol: Protocol) -> StepCredits:
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
        element, f1 = np.zeros(len(self._steps), dtype=bool), self._f1(protocol).copy()
        if (rule := protocol.element) is not None:
            element |= self._once(
                rule, lambda: np.array([p.ran and bool(rule(p, t)) for p, t in self._steps], dtype=bool)
            )
        counted = np.ones(len(self._steps), dtype=bool)
        for name, applies in CASES.items():
            case = getattr(protocol, name)
            if case is scored_as_answered:
                # leaves every answer as it is
                continue
            places = self._once(name, partial(self._places, applies))
            before = zip(*(of[places].tolist() for of in (counted, element, f1)), strict=True)
            earned = [case(Credit(right, f)) if counts else None for counts, right, f in before]
            counted[places] = [credit is not None for credit in earned]
            element[places] = [credit is not None and credit.element for credit in earned]
            f1[places] = [0.0 if credit is None else credit.operation_f1 for credit in earned]
        counted &= self._once(protocol.episode, lambda: np.array(protocol.episode(self.truths), dtype=bool))
        element &= counted
        # a step's one entry is its Operation F1
        if protocol.entries_of_f1 is not one_entry:
            f1[:] = [
                total(entries := protocol.entries_of_f1(truth, Credit(right, f))) / len(entries)
                for truth, right, f in zip(self.truths, element.tolist(), f1.tolist(), strict=True)
            ]
        f1[~counted] = 0.0
        right = np.flatnonzero(element)
        success = np.zeros_like(element)
        of_right = f1[right]
        success[right] = (
            of_right == 1.0
            if protocol.success is same_tokens
            else [protocol.success(*self._steps[i], f) for i, f in zip(right.tolist(), of_right.tolist(), strict=True)]
        )
        return StepCredits(element, f1, success, counted)

    def _f1(self, protocol: Protocol) -> np.ndarray:
        """Operation F1 of each answer. Most steps share their pair of operations, predicted and right, with others."""

        def of(predicted: Operation, wanted: Operation) -> float:
            predicted, wanted = (
                protocol.value_of_click(operation) for operation in (protocol.value_as_said(predicted), wanted)
            )
            return protocol.f1(predicted, wanted, protocol.text)

        def all_steps() -> np.ndarray:
            right = protocol.right_operation
            pairs = self._once(("pairs", right), lambda: self._pairs(right))
            # the number of a step that did not run is -1
            by_pair = np.array([*(of(*pair) for pair in pairs.distinct), 0.0], dtype=float)
            earned: np.ndarray = by_pair[pairs.numbers]
            return earned

        return self._once(_of_operation(protocol), all_steps)

    def _pairs(self, right_operation: Callable[[Truth], Operation]) -> _Pairs:
        predicted, predicted_at = self._once("predicted", lambda: _distinct(p.operation for p in self.predictions))
        wanted, wanted_at = _distinct(right_operation(truth) for truth in self.truths)
        distinct, numbers = _distinct(zip(predicted_at, wanted_at, strict=True))
        ran = np.array([prediction.ran for prediction in self.predictions], dtype=bool)
        return _Pairs([(predicted[i], wanted[j]) for i, j in distinct], np.where(ran, np.array(numbers, dtype=int), -1))

    def _places(self, applies: Callable[[Prediction, Truth], bool]) -> np.ndarray:
        return np.flatnonzero([applies(*step) for step in self._steps])

    def _once(self, key: object, work: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = work()
        return self._cache[key]  # type: ignore[return-value]


def _distinct(values: Iterable[H]) -> tuple[list[H], list[int]]:
    """The different values by first appearance, and the place of each value among them."""
    places: dict[H, int] = {}
    numbers = [places.setdefault(value, len(places)) for value in values]
    return list(places), numbers


def _of_operation(protocol: Protocol) -> tuple[object, ...]:
    """The rules on which Operation F1 rests."""
    return protocol.right_operation, protocol.value_as_said, protocol.value_of_click, protocol.text, protocol.f1


def _remerged(prediction: Prediction, rule: MergeRule) -> Prediction:
    if not prediction.ran:
        return prediction
    decision = merge(prediction.groups, rule, prediction.ranked)
    return Prediction(
        *prediction.key,
        groups=prediction.groups,
        element_id=decision.element_id,
        op=decision.op,
        value=decision.value,
        ranked=prediction.ranked,
        usage=prediction.usage,
    )
