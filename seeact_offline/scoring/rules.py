"""The rules in which published evaluators differ, one function a rule; a protocol is a record of rules.

The first line of a rule's docstring is its name for people, printed in the table of differences between protocols.
docs/protocols.md names the paper or released evaluator behind each.
"""

from __future__ import annotations

import ast
import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seeact_offline.records import OPERATIONS, ClickedBox, Kinship, Operation, Prediction, Truth
from seeact_offline.scoring import metrics

if TYPE_CHECKING:
    from seeact_offline.scoring.averaging import Averaging


@dataclass(frozen=True, slots=True)
class Credit:
    """The credit of an answer."""

    element: bool
    """True if the element is right."""
    operation_f1: float
    """0 to 1."""


NOTHING = Credit(element=False, operation_f1=0.0)
ElementRule = Callable[[Prediction, Truth], bool]
"""True if the predicted element is right."""
OperationRule = Callable[[Operation], Operation]
"""An operation without the parts that do not count."""
RightOperationRule = Callable[[Truth], Operation]
"""The right operation, as it is compared."""
TextRule = Callable[[Operation], str]
"""The text whose tokens Operation F1 compares, for the predicted and the right operation alike."""
F1Rule = Callable[[Operation, Operation, TextRule], float]
"""Operation F1 of a predicted operation, given the right one."""
SuccessRule = Callable[[Prediction, Truth, float], bool]
"""True if a step whose element is right succeeds, given its Operation F1."""
CaseRule = Callable[[Credit], Credit | None]
"""The credit of a step in a special case, given that of its answer; None leaves the step out of every figure."""
EpisodeRule = Callable[[Sequence[Truth]], Sequence[bool]]
"""True for each step that counts, given all steps in data set order."""
EntriesRule = Callable[[Truth, Credit], tuple[float, ...]]
"""The values of a step that Operation F1 averages, given its credit; their number depends on the truth alone."""
GroupRule = Callable[[Truth], str | None]
"""The group in which a step is averaged: a figure is the mean of the groups' means. None: no group."""
LengthRule = Callable[[Truth], int]
"""The number of actions of a task, from its last row; those without a row count 0. At least its rows are counted."""
HeadlineRule = Callable[[float, float], float]
"""Chooses the quoted figure, of the mean of the groups' means and the mean over steps."""


# --- special cases ---


CASES: Mapping[str, Callable[[Prediction, Truth], bool]] = {
    # the predicted operation is not one of OPERATIONS
    "unknown_op": lambda prediction, truth: prediction.op not in OPERATIONS,
    # a TYPE or SELECT is predicted without value
    "missing_value": lambda prediction, truth: prediction.op in ("TYPE", "SELECT") and not prediction.value,
    # the answer names neither an element nor a place, be it beyond the picture
    "no_place": lambda prediction, truth: (
        prediction.element_id is None and prediction.point is None and prediction.failure != "point_outside"
    ),
    "no_pick": lambda prediction, truth: prediction.element_id is None,
    # there are positives and ranks, and none of the positives is ranked
    "positive_not_ranked": lambda prediction, truth: (
        bool(prediction.ranked and truth.positives) and truth.positives.isdisjoint(prediction.ranked)
    ),
    # there are positives, and no picture, or none of them has a box
    "no_box": lambda prediction, truth: bool(truth.positives) and (truth.picture_size is None or not truth.boxes),
    "no_positive": lambda prediction, truth: not truth.positives,
    # the right value of a TYPE or SELECT cannot stand between double quotes, as one that holds such a quote or a line break
    "quoted_value": lambda prediction, truth: (
        (right := by_recorded_name(truth)).op != "CLICK" and _between_quotes(right.value) is None
    ),
}
"""The cases in which a step earns by a rule of its own, by the rule's field, in the order in which the rules apply."""


def scored_as_answered(answer: Credit) -> Credit:
    """Scores the step by its answer all the same."""
    return answer


def scores_nothing(answer: Credit) -> Credit:
    """Gives the step 0 on every metric, whatever was answered."""
    return NOTHING


def scores_no_operation(answer: Credit) -> Credit:
    """Gives Operation F1 0 and keeps the element."""
    return Credit(answer.element, operation_f1=0.0)


def right_with_its_element(answer: Credit) -> Credit:
    """Gives all metrics 1 where the answer is right to pick none, else 0."""
    return Credit(answer.element, operation_f1=float(answer.element))


def left_out(answer: Credit) -> None:
    """Leaves the step out of every figure."""


# --- when the element is right ---


def any_positive(prediction: Prediction, truth: Truth) -> bool:
    """Takes any positive for the right element."""
    return metrics.element_correct(prediction.element_id, truth.positives)


def any_positive_ranked(prediction: Prediction, truth: Truth) -> bool:
    """Takes any positive that was ranked under k for the right element."""
    ranked = not prediction.ranked or prediction.element_id in prediction.ranked
    return ranked and metrics.element_correct(prediction.element_id, truth.positives)


def first_positive(prediction: Prediction, truth: Truth) -> bool:
    """Takes the first positive alone for the right element."""
    return prediction.element_id is not None and prediction.element_id == truth.target


def last_of_five(prediction: Prediction, truth: Truth) -> bool:
    """Takes the positive that is the last of the five choices for right, and "none of them" where there is no positive."""
    if prediction.element_id is not None:
        # the draw of the right choice, one of the positives, takes ten times as long as the rest
        return prediction.element_id in truth.positives and _last_of_five(truth) in (None, prediction.element_id)
    return not truth.positives and prediction.failure is None and prediction.point is None


def _last_of_five(truth: Truth) -> str | None:
    """The right choice of inspect-evals (mind2web/dataset.py, version 4-A); None where it is not known.

    Its five choices are the positives and then the best negatives, shuffled by a seed that is the step's name. Each positive
    among them replaces the one before as the right letter.
    """
    positives = truth.positives_in_order[:5]
    if not positives or order_of_positives_unknown(truth):
        return None
    choices = [*positives, *[None] * (min(5, truth.n_candidates) - len(positives))]
    Random(str(truth.key)).shuffle(choices)
    return [choice for choice in choices if choice is not None][-1]


def point_in_any_box(prediction: Prediction, truth: Truth) -> bool:
    """Takes a point in the box of any positive for right, and an element by the middle of its box."""
    if prediction.point is not None:
        return any(box.contains(*prediction.point) for box in truth.boxes)
    return _clicks(prediction, truth, prediction.element_id in truth.positives, "clicks_positive")


def point_in_target_box(prediction: Prediction, truth: Truth) -> bool:
    """Takes a point in the first positive's box, to three decimals of the picture, for right, and an element by its middle."""
    if prediction.point is not None and truth.picture_size is not None and truth.boxes:
        return ClickedBox(truth.boxes[0], truth.picture_size).holds(*prediction.point)
    return prediction.point is None and _clicks(
        prediction, truth, prediction.element_id == truth.target, "clicks_target"
    )


def point_in_first_box(prediction: Prediction, truth: Truth) -> bool:
    """Takes a point in the first positive's box for right, and an element by its middle."""
    if prediction.point is not None:
        return bool(truth.boxes) and truth.boxes[0].contains(*prediction.point)
    return _clicks(prediction, truth, prediction.element_id == truth.target, "clicks_target")


def _clicks(prediction: Prediction, truth: Truth, is_own: bool, kinship: Kinship) -> bool:
    """True if the element's middle lies where it should: `is_own` if the box is its own, else as `truth.kin` says."""
    element = prediction.element_id
    return element is not None and bool(truth.boxes) and (is_own or element in truth.kin.get(kinship, ()))


# --- the parts of the operation that are compared ---


def as_annotated(truth: Truth) -> Operation:
    """Takes the right operation as it is."""
    return truth.operation


def as_mindact_writes_it(truth: Truth) -> Operation:
    """Takes the first line of the right value, and no value for a CLICK."""
    operation = drops_value_of_click(truth.operation)
    return replace(operation, value=operation.value.strip().partition("\n")[0])


def by_recorded_name(truth: Truth) -> Operation:
    """Takes the recorder's name of the right operation, where HOVER and ENTER are a CLICK."""
    operation = truth.operation
    name = operation.original_op or operation.op
    op = "CLICK" if name in ("HOVER", "ENTER") else name
    return operation if operation.op == op else replace(operation, op=op)


def by_recorded_name_between_quotes(truth: Truth) -> Operation:
    """Takes the recorder's name of the right operation, where HOVER and ENTER are a CLICK, and reads backslashes of its value."""
    operation = by_recorded_name(truth)
    value = operation.value if operation.op == "CLICK" else _between_quotes(operation.value)
    return operation if value in (operation.value, None) else replace(operation, value=value)


def _between_quotes(value: str) -> str | None:
    """The value that Python reads where this one is written between double quotes, as SeeClick does; None where that is no text."""
    if not any(mark in value for mark in '"\\\n\r\0'):
        return value
    with warnings.catch_warnings():
        # of backslashes that mean nothing
        warnings.simplefilter("ignore")
        try:
            read = ast.literal_eval(f'{{"value": "{value}"}}')["value"]
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None
    return read if isinstance(read, str) else None


def element_for_select(truth: Truth) -> Operation:
    """Takes the element's name for the value of a SELECT."""
    operation = truth.operation
    if operation.op != "SELECT" or name_of_element_unknown(truth):
        return operation
    # as released: where the text names no element, the comparison fails
    name = truth.element_name
    return Operation("") if name is None else replace(operation, value=name)


def blank_is_none(truth: Truth) -> Operation:
    """Takes a right value of white space for the word None."""
    value = truth.operation.value
    return replace(truth.operation, value="None") if value and not value.strip() else truth.operation


def as_said(operation: Operation) -> Operation:
    """Takes a predicted value as it is."""
    return operation


def none_is_no_value(operation: Operation) -> Operation:
    """Takes the predicted value `none` for no value."""
    return replace(operation, value="") if operation.value.lower() == "none" else operation


def keeps_value_of_click(operation: Operation) -> Operation:
    """Keeps the value of a CLICK, whose words then cost Operation F1."""
    return operation


def drops_value_of_click(operation: Operation) -> Operation:
    """Drops the value of a CLICK."""
    return replace(operation, value="") if operation.op == "CLICK" and operation.value else operation


def as_written(operation: Operation) -> str:
    """Compares operation and value as they are written."""
    return operation.text


def without_punctuation(operation: Operation) -> str:
    """Compares operation and value without words that are punctuation alone."""
    # as released: any piece of the row of punctuation marks counts, such as `()`
    return " ".join(word for word in operation.text.split() if word not in string.punctuation)


def known_without_punctuation(operation: Operation) -> str:
    """Compares value and known operation without words that are punctuation alone."""
    return without_punctuation(operation if operation.op in OPERATIONS else replace(operation, op=""))


def lower_without_punctuation(operation: Operation) -> str:
    """Compares operation and value in lower case without words that are punctuation alone."""
    return without_punctuation(operation).lower()


NUMBERS: Mapping[str, str] = {"CLICK": "4", "SELECT": "2", "TYPE": "3"}
"""SeeClick's and ShowUI's names of operations."""


def op_as_number(operation: Operation) -> str:
    """Compares the operation as a number, and of a TYPE or SELECT the value in lower case."""
    value = operation.value.lower() if operation.op in ("TYPE", "SELECT") else ""
    return f"{NUMBERS.get(operation.op, operation.op)} {value}"


def without_articles(operation: Operation) -> str:
    """Compares the operation, and of a TYPE or SELECT the value, in lower case without punctuation and articles."""
    # as SQuAD's answers are compared, with UIPro's name of a TYPE
    name = operation.op.replace("TYPE", "inputtext")
    value = operation.value if operation.op in ("TYPE", "SELECT") else ""
    bare = f"{name} {value}".lower().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", bare)


def value_in_lower_case(operation: Operation) -> str:
    """Compares the value in lower case."""
    return operation.value.lower()


def of_words(predicted: Operation, right: Operation, text: TextRule) -> float:
    """Compares the sets of words."""
    return metrics.operation_f1(text(predicted), text(right))


def of_repeated_words(predicted: Operation, right: Operation, text: TextRule) -> float:
    """Compares the words, each as often as it occurs."""
    pair = [Counter(text(operation).split()) for operation in (predicted, right)]
    return 2 * (pair[0] & pair[1]).total() / max(1, pair[0].total() + pair[1].total())


def by_right_operation(predicted: Operation, right: Operation, text: TextRule) -> float:
    """Compares the operation alone where CLICK is right, else the sets of words, with 0 for an answer without value."""
    if right.op not in ("TYPE", "SELECT"):
        return float(predicted.op == right.op)
    return of_words(predicted, right, text) if predicted.op in ("TYPE", "SELECT") and predicted.value.strip() else 0.0


def same_typed_text(predicted: Operation, right: Operation, text: TextRule) -> float:
    """Compares the text of a TYPE as a whole, and takes any operation for right where CLICK or SELECT is."""
    return float(right.op != "TYPE" or (predicted.op == "TYPE" and text(predicted) == text(right)))


# --- the steps and values that are averaged ---


def all_count(truths: Sequence[Truth]) -> list[bool]:
    """Counts every step of a task."""
    return [True] * len(truths)


def until_a_bad_page(truths: Sequence[Truth]) -> list[bool]:
    """Ends a task at its first step without a picture or with a box that leaves the page; the rest is left out."""
    counts = [True] * len(truths)
    ended: set[str] = set()
    # rows of a task need not stand in its order; an index that is not known leaves them as they are
    for i in sorted(range(len(truths)), key=lambda i: truths[i].index or 0):
        truth = truths[i]
        width, height = truth.picture_size or (0, 0)
        leave = [box.x < 0 or box.y < 0 or box.right > width or box.bottom > height for box in truth.boxes[:1]]
        if truth.picture_size is None or any(leave):
            ended.add(truth.annotation_id)
        counts[i] = truth.annotation_id not in ended
    return counts


def one_entry(truth: Truth, credit: Credit) -> tuple[float, ...]:
    """Averages the Operation F1 of each step."""
    return (credit.operation_f1,)


def click_then_text(truth: Truth, credit: Credit) -> tuple[float, ...]:
    """Averages the click in place of Operation F1, and for a TYPE also the mean of click and text."""
    click = float(credit.element)
    return (click, (click + credit.operation_f1) / 2) if truth.operation.op == "TYPE" else (click,)


# --- when the step succeeds ---


def same_tokens(prediction: Prediction, truth: Truth, f1: float) -> bool:
    """Needs the right element and an Operation F1 of 1."""
    return f1 == 1.0


def same_text(prediction: Prediction, truth: Truth, f1: float) -> bool:
    """Needs the right element and the very text of operation and value, a CLICK's value aside."""
    predicted, right = prediction.operation, truth.operation
    # a step that earned no F1 did not get this far: its text was never compared
    return f1 > 0 and predicted.op == right.op and (predicted.op == "CLICK" or predicted.value == right.value)


# --- averaging ---


def rows_of_the_task(last: Truth) -> int:
    """Counts the rows that a task has."""
    return 0


def actions_of_the_task(last: Truth) -> int:
    """Counts 0 for each action of a task that has no row."""
    return last.n_actions


def by_task(truth: Truth) -> str:
    """Averages each task's steps, then the tasks."""
    return truth.annotation_id


def all_steps(truth: Truth) -> str:
    """Averages the steps, each of which is an episode of its own."""
    return ""


def by_recorded_op(truth: Truth) -> str | None:
    """Averages the steps of CLICK, TYPE and SELECT each, by the recorder's name, then these three."""
    return NUMBERS.get(by_recorded_name(truth).op)


def by_op(truth: Truth) -> str | None:
    """Averages the steps of CLICK, TYPE and SELECT each, then these three."""
    return NUMBERS.get(truth.operation.op)


def macro(macro: float, micro: float) -> float:
    """Quotes the mean of the groups' means."""
    return macro


def micro(macro: float, micro: float) -> float:
    """Quotes the mean over steps."""
    return micro


# --- what a run may not keep ---


def order_of_positives_unknown(truth: Truth) -> bool:
    """Several elements are right, in an order that the run does not keep; each of them counts"""
    return len(truth.positives) > 1 and not truth.positives_in_order


def name_of_element_unknown(truth: Truth) -> bool:
    """The run does not keep the element's name, which a SELECT is compared with; the option counts in its place"""
    return truth.operation.op == "SELECT" and not truth.action_text


# --- protocols ---


@dataclass(frozen=True, slots=True)
class Protocol:
    """The rules of one published evaluator, by default SeeAct's. A step that did not run earns nothing under any of them.

    The rules stand in the order in which they apply.
    """

    name: str
    element: ElementRule | None = any_positive
    """None if a run asks for no element."""
    right_operation: RightOperationRule = as_annotated
    value_as_said: OperationRule = as_said
    """Applied to the predicted operation alone."""
    value_of_click: OperationRule = drops_value_of_click
    """Applied to the predicted and the right operation."""
    text: TextRule = as_written
    f1: F1Rule = of_words
    unknown_op: CaseRule = scored_as_answered
    """This and the following: applied in the cases of CASES."""
    missing_value: CaseRule = scored_as_answered
    no_place: CaseRule = scored_as_answered
    no_pick: CaseRule = scored_as_answered
    positive_not_ranked: CaseRule = scored_as_answered
    no_box: CaseRule = scored_as_answered
    no_positive: CaseRule = scored_as_answered
    quoted_value: CaseRule = scored_as_answered
    episode: EpisodeRule = all_count
    entries_of_f1: EntriesRule = one_entry
    """The Operation F1 of a step is their mean."""
    success: SuccessRule = same_tokens
    length: LengthRule = rows_of_the_task
    groups: GroupRule = by_task
    """Groups of all figures but Operation F1."""
    groups_of_f1: GroupRule = by_task
    headline: HeadlineRule = macro
    """Headline of all figures but Operation F1."""
    headline_of_f1: HeadlineRule = macro
    unknowns: Mapping[str, Callable[[Truth], bool]] = field(default_factory=dict)
    """Rule, by its field -> the steps to which it cannot be applied, as the run does not keep what it needs."""
    code: str = ""
    """Digest of the file that holds it; empty for a protocol of this package."""

    def average_of(self, metric: str) -> str:
        """The average that it quotes of this figure: `macro` or `micro`."""
        return (self.headline_of_f1 if metric == "operation_f1" else self.headline).__name__

    def averaging(self, truths: Sequence[Truth]) -> Averaging:
        """Averages figures of these steps, all but Operation F1."""
        # loads numpy, which the names of protocols do not need
        from seeact_offline.scoring.averaging import Averaging

        return Averaging(truths, self.groups, self.length)

    def averaging_of_f1(self, truths: Sequence[Truth]) -> Averaging:
        """Averages Operation F1 of these steps."""
        from seeact_offline.scoring.averaging import Averaging

        entries = None if self.entries_of_f1 is one_entry else lambda truth: len(self.entries_of_f1(truth, NOTHING))
        return Averaging(truths, self.groups_of_f1, self.length, entries)


def described(protocol: Protocol) -> dict[str, str]:
    """The rules by field, each in its own words. Rules that do not apply are left out."""
    return {name: sentence(rule) for name in RULES if (rule := getattr(protocol, name)) is not None}


def sentence(rule: Callable[..., object] | None) -> str:
    """A rule in its own words; empty for None."""
    if rule is None:
        return ""
    name = getattr(rule, "__name__", repr(rule))
    return str(rule.__doc__ or name).partition("\n")[0].rstrip(".")


RULES = tuple(rule.name for rule in fields(Protocol) if rule.name not in {"name", "unknowns", "code"})
"""The fields of a protocol that hold a rule, in order."""
