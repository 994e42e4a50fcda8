"""The metrics of one step, and recall: pure functions. Averaging lives in `aggregate`.

Source: Mind2Web paper (arXiv 2306.06070) section 4.1 and its released evaluation (commit 1b7c323).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from seeact_offline.records import Box, Operation

METRICS: Mapping[str, str] = {
    "element_accuracy": "Element Accuracy",
    "operation_f1": "Operation F1",
    "step_success_rate": "Step SR",
}
"""The metrics with their titles."""
STEP_FIELDS: Mapping[str, str] = {
    "element_accuracy": "element",
    "operation_f1": "operation_f1",
    "step_success_rate": "success",
}
"""Metric -> the field of a step's score that it averages."""


def operation_f1(predicted: Operation | str, target: Operation | str) -> float:
    """F1 over the sets of white-space tokens of `OP value`, 0 to 1. Two empty texts give 1, one empty text gives 0.

    >>> operation_f1("TYPE Vienna", "TYPE Vienna"), operation_f1("TYPE Vienna", "CLICK")
    (1.0, 0.0)
    >>> operation_f1("TYPE New York City", "TYPE New York")
    0.8571428571428571
    """
    predicted_tokens, target_tokens = _tokens(predicted), _tokens(target)
    if not predicted_tokens and not target_tokens:
        return 1.0
    # 2PR / (P + R), written so that equal sets give exactly 1
    return 2 * len(predicted_tokens & target_tokens) / (len(predicted_tokens) + len(target_tokens))


def element_correct(element_id: str | None, positives: Collection[str]) -> bool:
    """True if the predicted element is one of the positives. No element is never right.

    >>> element_correct("7", {"7", "12"}), element_correct(None, {"7", "12"})
    (True, False)
    """
    return element_id is not None and element_id in positives


def point_correct(point: tuple[float, float], boxes: Iterable[Box]) -> bool:
    """True if the point (page pixels) lies in any of the boxes, edges included; a box without area contains no point.

    >>> point_correct((110, 20), [Box(10, 10, 100, 20)]), point_correct((111, 20), [Box(10, 10, 100, 20)])
    (True, False)
    """
    return any(box.w > 0 and box.h > 0 and box.contains(*point) for box in boxes)


def step_success(element_is_correct: bool, f1: float) -> bool:
    """True if the step succeeds: the right element and exactly the right tokens.

    >>> step_success(True, operation_f1("TYPE Vienna", "TYPE Vienna")), step_success(True, 0.86)
    (True, False)
    """
    return element_is_correct and f1 == 1.0


def best_rank(ranked: Iterable[str], positives: Collection[str]) -> int | None:
    """Place (from 0) of the best positive in a ranking, or None if it has none."""
    return next((place for place, node in enumerate(ranked) if node in positives), None)


def recall_at_k(best_ranks: Sequence[int | None], k: int) -> float:
    """Share of steps whose best positive has a rank below k. Steps without a positive count as 0."""
    if not best_ranks:
        return 0.0
    return sum(rank is not None and rank < k for rank in best_ranks) / len(best_ranks)


@lru_cache(maxsize=8192)
def _tokens(operation: Operation | str) -> frozenset[str]:
    text = operation.text if isinstance(operation, Operation) else operation
    return frozenset(text.split())
