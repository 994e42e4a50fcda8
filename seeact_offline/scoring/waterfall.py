"""Causes of loss: each failing step has exactly one cause, and the shares of the causes add up to 1 - Step SR.

The causes follow a step on its way: the data, the ranker, the call, the reply, the element, the operation, its value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from seeact_offline.records import Kinship, Prediction, Reply, StepKey, StepScore, Truth

if TYPE_CHECKING:
    from seeact_offline.scoring.averaging import Averages

SUCCESS = "success"
LEFT_OUT = "left_out"
"""The outcome of a step that a protocol leaves out: it is in no share."""
NOT_RUN = frozenset({"not_run", "data_fault", "call_failed"})
"""Outcomes of steps that were never answered."""
NO_ROW = "no_row"
"""Actions that a protocol counts as failed though no row of theirs is there."""
CAUSES: Mapping[str, str] = {
    "data_fault": "never asked: the row, the score file or a file of answers is at fault",
    "no_positive": "the page has no right element",
    "ranker_miss": "the right element was not among those ranked under k",
    "not_offered": "the right element was ranked, but in no group that is asked about",
    "not_marked": "web agents: no right element has a label in any window of the page",
    "target_cut_off": "web agents: the right element's label is in a part of the observation that was cut off",
    "call_failed": "the model was asked, or was to be, and gave no answer",
    "left_page": "agents: the model went back, to another address or to another tab",
    "answered_early": "agents: the model answered the task in words",
    "unreadable_reply": "the answer could not be read, or was refused",
    "never_scrolled_to": "web agents: no window that the model saw shows the right element's label",
    "did_not_act": "agents: the model scrolled, waited, stopped, or did something else that answers no step",
    "place_outside": "the model named a place outside of the picture",
    "no_element": "the model chose none of those offered",
    "wrong_mark": "web agents: the model saw the right element's label and chose another",
    "wrong_element": "the model chose another element",
    "wrong_op": "right element, wrong operation",
    "missing_value": "right element and operation, no value where one is needed",
    "wrong_value": "right element and operation, wrong value",
    NO_ROW: "an action of the task of which the data have no row",
}
"""Causes in the order in which they are looked for, each with its meaning."""
BY_EYE: Mapping[str, str] = {"wrong_annotation": "a person found what was annotated wrong, or the answer as good"}
"""Causes that nothing but a person can see."""
HUMAN_CAUSES: Mapping[str, str] = {**{name: meaning for name, meaning in CAUSES.items() if name != NO_ROW}, **BY_EYE}
"""Causes that a person may give (`scoring.human_causes`)."""
OF_WINDOWS = ("not_marked", "target_cut_off")
"""Causes that a grounding knows before it asks, and counts in `Prediction.notes` under these names."""
OF_LEAVING = frozenset({"left_page", "answered_early"})
"""Failures that are causes of their own."""
OF_READING: Mapping[str, str] = {
    **dict.fromkeys(("scrolled", "waited", "stopped_early", "other_act"), "did_not_act"),
    "point_outside": "place_outside",
}
"""Failures of replies that were read and name no element -> their cause."""
OF_PARTS = frozenset({"missing_value", "missing_element_type"})
"""Failures of replies that were read to their end without a part: their steps are lost to the first thing that is
wrong."""
NO_VALUE = frozenset({"", "none"})
"""Texts for no value, in lower case: evaluators that read one as a token hold a lost value against the model too."""

Average: TypeAlias = "Callable[[Sequence[float]], Averages]"
"""Averages values, one a step, as the protocol averages Step SR; linear in the values."""


def first_loss(
    prediction: Prediction, truth: Truth, element: bool | None, f1: float, success: bool | None, rank: int | None
) -> str:
    """`success`, or the first of CAUSES that cost the step its success.

    `element`, `success`: None where no element is asked for; the step then succeeds with an Operation F1 (`f1`, 0 to 1)
    of 1. `rank`: of the best positive, from 0; None for none.
    """
    if f1 == 1.0 if success is None else success:
        return SUCCESS
    if prediction.is_data_fault:
        return "data_fault"
    if element is not None and not truth.positives:
        return "no_positive"
    if element is not None and prediction.ranked and rank is None:
        return "ranker_miss"
    # an elimination may offer to a model that errs what it offers to no perfect one
    was_offered = any(not truth.positives.isdisjoint(group.offered) for group in prediction.groups)
    if rank is not None and prediction.reachable is False and not was_offered:
        return "not_offered"
    unmarked = next((cause for cause, count in prediction.notes.items() if cause in OF_WINDOWS and count), None)
    if element is not None and unmarked is not None:
        return unmarked
    if not prediction.ran:
        return "call_failed"
    if prediction.failure in OF_LEAVING:
        return str(prediction.failure)
    # labels of windows: nothing was ranked, and no final round offers what fits a description
    offers = any(group.offered and not group.is_final_round for group in prediction.groups)
    is_marked = element is False and not prediction.ranked and offers
    if is_marked and not was_offered and prediction.failure in (None, "missing_value", "scrolled", "waited"):
        return "never_scrolled_to"
    if is_unreadable(prediction.failure):
        return "unreadable_reply"
    # a box may reach beyond the picture, as a place that is read strictly may
    if prediction.failure is not None and prediction.failure in OF_READING and not element:
        return OF_READING[prediction.failure]
    if is_marked:
        return "wrong_mark"
    if element is False:
        answered = prediction.element_id is not None or prediction.point is not None
        return "wrong_element" if answered else "no_element"
    if prediction.op.casefold() != truth.operation.op.casefold():
        return "wrong_op"
    needs_value = truth.operation.op != "CLICK" or _is_value(truth.operation.value)
    return "missing_value" if needs_value and not _is_value(prediction.value) else "wrong_value"


def is_unreadable(failure: str | None) -> bool:
    """Tells whether the failure of a reply says that it could not be read, or was refused."""
    return failure is not None and not any(failure in names for names in (OF_PARTS, OF_LEAVING, OF_READING))


def _is_value(text: str) -> bool:
    return text.strip().casefold() not in NO_VALUE


# --- shares ---


def waterfall(scores: Sequence[StepScore], average: Average) -> dict[str, dict[str, Any]]:
    """Cause -> `steps`, and the shares `macro` and `micro` of Step SR that they cost; only causes that occur, in order.

    A person's cause counts instead of the computed one. The shares add up to 1 - Step SR (without elements: to the
    share of steps whose operation is not right). `average` is that of Step SR, over the same steps in order; `scores`
    are those that count, so none is left out. Where `average` pads tasks to their length, what it adds is lost to
    NO_ROW.
    """
    lost: dict[str, dict[str, Any]] = {}
    causes = [score.person_cause or score.outcome for score in scores]
    counts = Counter(causes)
    for cause in (*CAUSES, *BY_EYE):
        if counts[cause]:
            share = average([float(of_step == cause) for of_step in causes])
            lost[cause] = {"steps": counts[cause], "macro": share.macro, "micro": share.micro}
    whole = average([1.0] * len(scores)) if scores else None
    if whole is not None and whole.micro < 1.0:
        added = round(len(scores) / whole.micro) - len(scores)
        lost[NO_ROW] = {"steps": added, "macro": 1.0 - whole.macro, "micro": 1.0 - whole.micro}
    return lost


# --- what if ---

_NOT_OFFERED = {"data_fault", "no_positive", "ranker_miss", "not_offered", *OF_WINDOWS, "never_scrolled_to", NO_ROW}
OFFERED = frozenset(CAUSES) - _NOT_OFFERED | {SUCCESS}
"""Outcomes of steps whose target was before the model."""
OF_RANKER = frozenset({"ranker_miss"})
OF_OFFERING = frozenset({"not_offered"})
OF_WRONG = frozenset({"wrong_mark", "wrong_element"})
OF_GROUNDING = frozenset({*OF_LEAVING, "unreadable_reply", *OF_READING.values(), "no_element", *OF_WRONG})
OF_VALUES = frozenset({"missing_value", "wrong_value"})
WHAT_IF: Mapping[str, str] = {
    "ranker_perfect_bound": "the ranker had missed nothing, and every step that it lost had succeeded",
    "ranker_perfect": (
        "the ranker had missed nothing, and the steps that it lost had succeeded as often as those whose target was offered"
    ),
    "offering_perfect": (
        "every ranked element had been offered, and the steps lost to that had succeeded as often as those whose target was"
    ),
    "grounding_perfect": "every answer without the right element had named it, with its operation as it is",
    "values_perfect": "every value that is missing or wrong had been right",
}
"""The suppositions of `what_if`, by name, in order."""


def what_if(scores: Sequence[StepScore], average: Average) -> dict[str, dict[str, Any]]:
    """Supposition (see WHAT_IF) -> `steps` that it concerns, and the `macro` and `micro` Step SR that it would give.

    Only suppositions that concern a step. An operation is right where the protocol gave it an Operation F1 of 1.
    Without elements there is only that of values, for the share of steps whose operation is right. Arguments as for
    `waterfall`.
    """
    offered = [score.outcome == SUCCESS for score in scores if score.outcome in OFFERED]
    rate = sum(offered) / len(offered) if offered else 0.0

    def if_grounded(score: StepScore) -> float | None:
        is_concerned = score.element is not None and score.outcome in OF_GROUNDING
        return float(score.operation_f1 == 1.0) if is_concerned else None

    # a step's success under the supposition; None for a step that it does not concern
    worth: Mapping[str, Callable[[StepScore], float | None]] = {
        "ranker_perfect_bound": lambda score: 1.0 if score.outcome in OF_RANKER else None,
        "ranker_perfect": lambda score: rate if score.outcome in OF_RANKER else None,
        "offering_perfect": lambda score: rate if score.outcome in OF_OFFERING else None,
        "grounding_perfect": if_grounded,
        "values_perfect": lambda score: 1.0 if score.outcome in OF_VALUES else None,
    }
    figures = {}
    for name, of_step in worth.items():
        supposed = [of_step(score) for score in scores]
        if n := sum(value is not None for value in supposed):
            pairs = zip(scores, supposed, strict=True)
            share = average([float(s.outcome == SUCCESS) if value is None else value for s, value in pairs])
            figures[name] = {"steps": n, "macro": share.macro, "micro": share.micro}
    return figures


# --- wrong elements ---

KINDS: Mapping[str, str] = {
    "same_text": "it reads the same as a right one",
    "overlapping": "its box overlaps that of a right one",
    "neighbour": "it is parent, child or sibling of a right one",
    "out_of_reach": "another, where the grounding leads even the right answer elsewhere",
    "other": "another, or a place where no element is",
    "page_not_read": "not known, as the page could not be read",
}
"""Kinds of wrong elements, in the order in which they are looked for, each with its meaning."""
KINSHIPS: tuple[Kinship, ...] = ("same_text", "overlapping", "neighbour")


def wrong_elements(
    predictions: Sequence[Prediction], truths: Sequence[Truth], scores: Sequence[StepScore]
) -> dict[str, int]:
    """Kind -> steps lost to a wrong element; only kinds that occur, in the order of KINDS."""
    counts = Counter(
        kind_of_wrong_element(prediction, truth)
        for prediction, truth, score in zip(predictions, truths, scores, strict=True)
        if score.outcome in OF_WRONG
    )
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def kind_of_wrong_element(prediction: Prediction, truth: Truth) -> str:
    """The first of KINDS that the element picked is."""
    if not truth.kin:
        return "page_not_read"
    for kind in KINSHIPS:
        if prediction.element_id in truth.kin.get(kind, ()):
            return kind
    return "out_of_reach" if prediction.reachable is False else "other"


# --- errors of annotation ---

ANNOTATION_ERRORS: Mapping[str, str] = {
    "made_up": "a label was given though the right element carries no mark in that picture",
    "mislinked": "the right element carries a mark, and another label was given",
    "na_although_marked": "the right element carries a mark, and the answer was that none is right",
    "unread": "the answer names no one label of the picture",
    "no_error": "no error of that picture: the right label, or none where none is right",
}
"""Errors of one group of a step that annotation gets wrong, with their meanings."""


def annotation_errors(
    predictions: Sequence[Prediction], truths: Sequence[Truth], oracle: Mapping[StepKey, bool] | None = None
) -> dict[str, Any]:
    """Counts the errors of the groups of wrong steps (see ANNOTATION_ERRORS), each picture by itself and before any
    merging.

    `oracle`: whether the oracle grounding gets each step's element right. The population is then the steps that it gets
    right and this run wrong; without it, all wrong steps that have a right element. `population` says which, `n_steps`
    and `n_groups` how many. A picture's marks are those of `Reply.offered`, but for a right element outside of the
    page, whose mark nobody can see. The kinds of error are ours.
    """
    wrong = []
    for prediction, truth in zip(predictions, truths, strict=True):
        is_counted = bool(truth.positives) if oracle is None else oracle.get(truth.key, False)
        if is_counted and prediction.ran and prediction.element_id not in truth.positives:
            wrong.append((prediction, truth))
    counts = Counter(
        annotation_error(group, truth)
        for prediction, truth in wrong
        for group in prediction.groups
        if not group.is_final_round
    )
    return {
        "population": "wrong" if oracle is None else "oracle_right",
        "n_steps": len(wrong),
        "n_groups": counts.total(),
        **{name: counts[name] for name in ANNOTATION_ERRORS},
    }


def annotation_error(group: Reply, truth: Truth) -> str:
    """One of ANNOTATION_ERRORS."""
    is_marked = not (truth.positives - _undrawn(truth)).isdisjoint(group.offered)
    if group.element_id is not None:
        if group.element_id in truth.positives:
            return "no_error"
        return "mislinked" if is_marked else "made_up"
    if group.failure is not None:
        return "unread"
    return "na_although_marked" if is_marked else "no_error"


def _undrawn(truth: Truth) -> frozenset[str]:
    """The positives that lie wholly outside of the page, with fractions cut off as for drawing; none where boxes or
    page are not known."""
    if truth.picture_size is None or len(truth.boxes) != len(truth.positives_in_order):
        return frozenset()
    width, height = truth.picture_size
    return frozenset(
        node
        for node, box in zip(truth.positives_in_order, truth.boxes, strict=True)
        if int(box.right) < 0 or int(box.bottom) < 0 or int(box.x) >= width or int(box.y) >= height
    )
