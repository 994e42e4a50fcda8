"""Each scoring profile against an example worked out by hand, and against a slow evaluator of its own."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from msgspec import structs

from seeact_offline.records import EMPTY_VALUE, Box, Prediction, Truth
from seeact_offline.scoring.assembling import ScoringInput, assemble
from seeact_offline.scoring.delta import delta
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.protocols import PROTOCOLS, UGROUND
from seeact_offline.scoring.report import report
from seeact_offline.scoring.rules import rows_of_the_task
from seeact_offline.scoring.step_scores import score_step, summarise
from tests.examples import often
from tests.reference import profiles as reference

PICTURE = (1000, 2000)
BOX = Box(100, 200, 50, 20)
OTHER = Box(500, 600, 10, 10)
OFF_PAGE = Box(100, 200, 901, 20)
FIGURES = ("element_accuracy", "operation_f1", "step_success_rate")


def right(op: str = "TYPE", value: str = "New York", task: str = "t", **more) -> Truth:
    """A step with the positives 1 (the target, at BOX) and 2 (at OTHER); the middle of 8 lies in BOX, that of 9 in OTHER."""
    given = {
        "positives": frozenset({"1", "2"}),
        "boxes": (BOX, OTHER),
        "target": "1",
        "picture_size": PICTURE,
        "kin": {"clicks_positive": frozenset({"8", "9"}), "clicks_target": frozenset({"8"})},
    }
    return Truth(task, "s", op=op, value=value, original_op=more.pop("original_op", ""), **given | more)


def said(element: str | None = "1", op: str = "TYPE", value: str = "New York", ranked=("7", "1"), **more) -> Prediction:
    return Prediction("t", "s", element, op, value, ranked=ranked, **more)


def earned(name: str, prediction: Prediction, truth: Truth) -> tuple[float | None, float | None, float | None]:
    score = score_step(prediction, truth, PROTOCOLS[name])
    return score.element, score.operation_f1, score.success


LEFT_OUT = (None, None, None)


def headlines(name: str, predictions: list[Prediction], truths: list[Truth]) -> list[float]:
    found = delta(predictions, truths, [PROTOCOLS[name]])["protocols"][name]["figures"]
    return [found[figure]["headline"] for figure in FIGURES]


def assert_same(found, expected) -> None:
    assert found == (LEFT_OUT if expected == LEFT_OUT else pytest.approx(expected, rel=1e-12))


NO_POSITIVE = {"positives": frozenset(), "boxes": (), "target": None}
NOT_RANKED = ("7", "8")

SEEACT = [
    # all right, by the second positive
    (said("2"), right(), (1, 1, 1)),
    # TYPE New York against TYPE new York: two of three tokens on both sides
    (said(value="new York"), right(), (1, 2 / 3, 0)),
    # the value of a CLICK is dropped on both sides
    (said(op="CLICK", value="Search"), right("CLICK", "Menu"), (1, 1, 1)),
    # the target is not ranked, there is none, nothing is picked, the reply is unreadable: the operation is scored
    (said("7", ranked=NOT_RANKED), right(), (0, 1, 0)),
    (said("7"), right(**NO_POSITIVE), (0, 1, 0)),
    (said(None), right(), (0, 1, 0)),
    (said(None, "TYPE", "", failure="no_final_answer"), right(), (0, 1 / 2, 0)),
    # what was read of an unreadable reply names no element and no place
    (said("1", failure="unknown_action"), right(), (0, 1, 0)),
    # no screenshot: the step did not run
    (said(None, "", "", ran=False, failure="no_screenshot"), right(picture_size=None), (0, 0, 0)),
]
MINDACT = [
    (said(), right(), (1, 1, 1)),
    # positive 2 was not ranked, so it is no right element
    (said("2"), right(), (0, 1, 0)),
    # the value of a CLICK costs F1: CLICK Search against CLICK, 2 * 1 / (2 + 1)
    (said(op="CLICK", value="Search"), right("CLICK", ""), (1, 2 / 3, 0)),
    # the punctuation mark is a token, so it costs: three of four and three tokens, 2 * 3 / (4 + 3)
    (said(value="New York ."), right(), (1, 6 / 7, 0)),
    # no pick, target not ranked, no target: nothing at all
    (said(None), right(), (0, 0, 0)),
    (said("7", ranked=NOT_RANKED), right(), (0, 0, 0)),
    (said("7"), right(**NO_POSITIVE), (0, 0, 0)),
    # a point where no element is, is no pick
    (said(None, point=(510.0, 605.0)), right(), (0, 0, 0)),
    # of the right value the first line counts, and none of a CLICK
    (said(), right(value="New York\nNY"), (1, 1, 1)),
    (said(op="CLICK", value=""), right("CLICK", "Menu"), (1, 1, 1)),
    (said(op="CLICK", value="Menu"), right("CLICK", "Menu"), (1, 2 / 3, 0)),
    # without ranks any positive counts
    (said("2", ranked=()), right(), (1, 1, 1)),
]
UGROUND_STEPS = [
    # a point on the edge of the second positive's box; lower case; the lone mark is dropped, also `()`
    (said(None, "Type", "new YORK . ()", point=(510.0, 600.0)), right(), (1, 1, 1)),
    # a pixel beside it; the point decides, not the element
    (said("1", point=(510.1, 600.0)), right(), (0, 1, 0)),
    # predicted `none` is no value, a value on a CLICK costs: 2 * 1 / (2 + 1)
    (said("1", "CLICK", "None"), right("CLICK", ""), (1, 1, 1)),
    (said("1", "CLICK", "Search"), right("CLICK", ""), (1, 2 / 3, 0)),
    # one beyond the picture counts, unless the reply cannot be read
    (said(None, point=(501.0, 601.0), failure="point_outside"), right(), (1, 1, 1)),
    (said(None, point=(501.0, 601.0), failure="missing_action"), right(), (0, 1, 0)),
    # an element without a point clicks its middle
    (said("9"), right(), (1, 1, 1)),
    (said("7"), right(), (0, 1, 0)),
    # an operation of another name stays text
    (said("1", "PRESS ENTER", ""), right("CLICK", ""), (1, 0, 0)),
    # no target: the operation is scored
    (said("7"), right(**NO_POSITIVE), (0, 1, 0)),
]
SEECLICK = [
    # the right edge is 0.15 of the picture; the box of the second positive does not count
    (said(None, point=(150.0, 200.0)), right(), (1, 1, 1)),
    (said(None, point=(505.0, 605.0)), right(), (0, 1, 0)),
    # the edges are rounded: 100.4 px of 1000 are 0.1
    (said(None, point=(100.0, 205.0)), right(boxes=(Box(100.4, 200, 50, 20),)), (1, 1, 1)),
    # a HOVER is a 4 as CLICK is; its value does not count
    (said("1", "CLICK", "x"), right("CLICK", "", original_op="HOVER"), (1, 1, 1)),
    # 2 two against 3 two: one of two tokens
    (said("1", "SELECT", "Two"), right("TYPE", "two"), (1, 1 / 2, 0)),
    # no value, or an operation of another name: the element stays; an empty value is one
    (said("1", "TYPE", ""), right(), (1, 0, 0)),
    (said("1", "TYPE", EMPTY_VALUE), right(value="new"), (1, 2 / 3, 0)),
    (said("1", "SCROLL", "New York"), right(), (1, 0, 0)),
    # an element clicks its middle: 8 lies in the target's box, 9 and the second positive elsewhere
    (said("8"), right(), (1, 1, 1)),
    (said("9"), right(), (0, 1, 0)),
    (said("2"), right(), (0, 1, 0)),
    # a reply that names no place scores nothing, whether it can be read or not
    (said(None, "TYPE", "New York", failure="no_final_answer"), right(), (0, 0, 0)),
    (said(None), right(), (0, 0, 0)),
    # ... but not where the place is beyond the picture
    (said(None, failure="point_outside"), right(), (0, 1, 0)),
    # without picture, box or target the step is left out, whether it ran or not
    (said("1"), right(picture_size=None), LEFT_OUT),
    (said("1"), right(boxes=()), LEFT_OUT),
    (said("7", ran=False, failure="no_screenshot"), right(**NO_POSITIVE), LEFT_OUT),
]
OF_SEECLICK_ALONE = [
    # it cannot read its own reference where a quote stands in the value: the step is left out
    (said("1", value='32" monitor'), right(value='32" monitor'), LEFT_OUT),
    (said("1", "CLICK", ""), right("TYPE", '32"', original_op="TYPE"), LEFT_OUT),
    # a value that is not compared may hold one
    (said("1", "CLICK", ""), right("CLICK", '32"', original_op="HOVER"), (1, 1, 1)),
    # an operation of another name is a word like others: 7 against 3 7 days
    (said("1", "7", ""), right(value="7 days"), (1, 2 * 1 / (1 + 3), 0)),
    # the recorder's name decides: 4 against 3 york, no token in common
    (said("1", "CLICK", ""), right("CLICK", "york", original_op="TYPE"), (1, 0, 0)),
]
TEXT = "[combobox]  Sort by -> SELECT: Price"
SHOWUI = [
    *SEECLICK,
    (said("1", value='32" monitor'), right(value='32" monitor'), (1, 1, 1)),
    # a SELECT is compared with the element's name: 2 sort by against 2 price, and against 2 sort by
    (said("1", "SELECT", "Price"), right("SELECT", "Price", action_text=TEXT), (1, 2 * 1 / (2 + 3), 0)),
    (said("1", "SELECT", "sort BY"), right("SELECT", "Price", action_text=TEXT), (1, 1, 1)),
    # an element without a name, and a text that names none: 2 against 2 x, and nothing to compare with
    (said("1", "SELECT", "x"), right("SELECT", "x", action_text="[div]   -> SELECT: x"), (1, 2 / 3, 0)),
    (said("1", "SELECT", EMPTY_VALUE), right("SELECT", "x", action_text="[div]   -> SELECT: x"), (1, 1, 1)),
    (said("1", "SELECT", ""), right("SELECT", "x", action_text="[div]   -> SELECT: x"), (1, 0, 0)),
    (said("1", "SELECT", "x"), right("SELECT", "x", action_text="SELECT x"), (1, 0, 0)),
    # the text of a TYPE is its value
    (said("1"), right(action_text="[textbox]  City -> TYPE: New York"), (1, 1, 1)),
    # ShowUI goes by the operation, SeeClick by the recorder's name for it
    (said("1", "CLICK", ""), right("CLICK", "", original_op="TYPE"), (1, 1, 1)),
]
UIPRO = [
    # a word counts as often as it occurs, an article and a mark not at all: inputtext 2 adults against inputtext 2 adults 2 kids
    (said("1", value="The 2 adults!"), right(value="2 adults, 2 kids"), (1, 2 * 3 / (3 + 5), 0)),
    (said("1", value="a new-york."), right(value="The NewYork"), (1, 1, 1)),
    # the value of a CLICK does not count; no value has no words, and no place costs the element alone
    (said("1", "CLICK", "x"), right("CLICK", "", original_op="HOVER"), (1, 1, 1)),
    (said("1", value=""), right(), (1, 2 * 1 / (1 + 3), 0)),
    (said(None), right(), (0, 1, 0)),
    (said("1", value='32"'), right(value='32"'), LEFT_OUT),
]
SYNAPSE = [
    (said(), right(), (1, 1, 1)),
    # the second positive is wrong
    (said("2", ranked=("1", "2")), right(), (0, 1, 0)),
    # the mark costs no F1, but the texts differ
    (said(value="New York ."), right(), (1, 1, 0)),
    # the same tokens in another order
    (said(value="York New"), right(), (1, 1, 0)),
    # case counts: two of three tokens
    (said(value="new York"), right(), (1, 2 / 3, 0)),
    # a CLICK's value counts for nothing
    (said(op="CLICK", value="x"), right("CLICK", "y"), (1, 1, 1)),
    (said("7", ranked=NOT_RANKED), right(), (0, 0, 0)),
    (said("7"), right(**NO_POSITIVE), (0, 0, 0)),
    # nothing picked: the operation is scored
    (said(None), right(), (0, 1, 0)),
    # an operation of another name is not read: York against TYPE New York
    (said(op="SCROLL", value="York"), right(), (1, 2 * 1 / (1 + 3), 0)),
]
SEVERAL = {"positives": frozenset({"1", "2"}), "positives_in_order": ("1", "2"), "n_candidates": 9}
ONE = {"positives": frozenset({"1"})}
INSPECT_EVALS = [
    (said(), right(), (1, 1, 1)),
    # the name of the step, t_s, shuffles 1, 2 and three negatives so that 1 comes last of the positives
    (said("1"), right(**SEVERAL), (1, 1, 1)),
    (said("2"), right(**SEVERAL), (0, 1, 0)),
    # where the order is not known, each of them counts
    (said("2"), right(), (1, 1, 1)),
    # `A` is right where no positive exists, whatever the operation
    (said(None, "TYPE", "x"), right(**NO_POSITIVE), (1, 1, 1)),
    # ... and an element, or a reply that cannot be read, is wrong there
    (said("7"), right(**NO_POSITIVE), (0, 0, 0)),
    (said(None, "", "", failure="no_final_answer"), right(**NO_POSITIVE), (0, 0, 0)),
    # a positive is always among the five, ranked or not: `A` is wrong, another element keeps its F1
    (said(None, "", "", NOT_RANKED), right(), (0, 0, 0)),
    (said("7", ranked=NOT_RANKED), right(), (0, 1, 0)),
    # CLICK: the operation alone counts
    (said(op="CLICK", value="None"), right("CLICK", ""), (1, 1, 1)),
    (said(op="CLICK", value="Search"), right("CLICK", "Menu"), (1, 1, 1)),
    (said(op="TYPE", value="CLICK"), right("CLICK", ""), (1, 0, 0)),
    # TYPE and SELECT: without value, or with an operation that has none, nothing
    (said(value=" "), right(), (1, 0, 0)),
    (said(op="CLICK", value="New York"), right(value="CLICK New York"), (1, 0, 0)),
    (said(op="SCROLL"), right(), (1, 0, 0)),
    # a lone mark is dropped, case counts: TYPE New York against TYPE new York
    (said(value="New York . ()"), right(), (1, 1, 1)),
    (said(value="new York"), right(), (1, 2 / 3, 0)),
    # a right value of white space is the word None
    (said(value="None"), right(value=" "), (1, 1, 1)),
]
SCREENSUITE = [
    (said(), right(), (1, 1, 1)),
    # edges of the target's box count, a pixel beside it does not: the text alone is half of the second entry
    (said(None, value="new YORK", point=(150.0, 220.0)), right(), (1, 1, 1)),
    (said("1", point=(150.1, 220.0)), right(), (0, 1 / 4, 0)),
    # the second positive's box does not count, an element clicks its middle
    (said(None, point=(505.0, 605.0)), right(), (0, 1 / 4, 0)),
    (said("8"), right(), (1, 1, 1)),
    # another text, or another operation: entries 1 and 1/2
    (said(value="York"), right(), (1, 3 / 4, 0)),
    (said(op="CLICK", value="New York"), right(), (1, 3 / 4, 0)),
    # of a CLICK and a SELECT the click alone counts
    (said(op="TYPE", value="x"), right("CLICK", ""), (1, 1, 1)),
    (said(op="CLICK", value=""), right("SELECT", "Price"), (1, 1, 1)),
    (said("7", "SELECT", "Price"), right("SELECT", "Price"), (0, 0, 0)),
    (said(None, "", "", ran=False, failure="timeout"), right(), (0, 0, 0)),
    # no picture, a box that leaves the page, no box, no positive
    (said(), right(picture_size=None), LEFT_OUT),
    (said(), right(boxes=(Box(990, 200, 11, 20), OTHER)), LEFT_OUT),
    (said(), right(boxes=(Box(100, -1, 50, 20), OTHER)), LEFT_OUT),
    (said(), right(boxes=()), LEFT_OUT),
    (said(), right(**NO_POSITIVE), LEFT_OUT),
    # a box may touch the edge, and the second positive's may leave the page
    (said(), right(boxes=(Box(990, 1990, 10, 10), Box(990, 0, 20, 20))), (1, 1, 1)),
]
EXAMPLES = {
    "seeact": SEEACT,
    "mindact": MINDACT,
    "uground": UGROUND_STEPS,
    "seeclick": [*SEECLICK, *OF_SEECLICK_ALONE],
    "showui": SHOWUI,
    "uipro": UIPRO,
    "synapse": SYNAPSE,
    "inspect-evals": INSPECT_EVALS,
    "screensuite": SCREENSUITE,
}


@pytest.mark.parametrize(
    ("name", "prediction", "truth", "expected"),
    [pytest.param(name, *step, id=f"{name}-{i}") for name, steps in EXAMPLES.items() for i, step in enumerate(steps)],
)
def test_a_step_earns_what_was_worked_out_by_hand(name: str, prediction, truth, expected) -> None:
    assert_same(earned(name, prediction, truth), expected)


def test_every_profile_has_an_example() -> None:
    assert EXAMPLES.keys() == PROTOCOLS.keys() == reference.SCORES.keys()


@pytest.mark.parametrize("name", ["seeclick", "showui"])
@pytest.mark.parametrize("side", [8, 720, 1000, 1280, 1366, 1920, 2559, 7412])
def test_a_point_on_an_edge_is_inside_whatever_the_size_of_the_picture(name: str, side: int) -> None:
    # 0.11 * 1280 / 1280 is above 0.11
    for hundredths in range(1, 100):
        edge = hundredths / 100
        truth = right(boxes=(Box(0, 0, edge * side, edge * side),), picture_size=(side, side), **ONE)
        inside, outside = ((side * at, side * at) for at in (edge, edge + 1e-9))
        found = [earned(name, said(None, point=point), truth)[0] for point in (inside, outside)]
        assert found == [1.0, 0.0], edge


# --- averages: task t has two rows right and one wrong, task u one row, wrong; a right TYPE has F1 1, a wrong CLICK 0 ---

ROWS = [
    (said(), right(n_actions=4)),
    (said(), right(n_actions=4)),
    (said("7", "TYPE"), right("CLICK", "", n_actions=4)),
    (said("7", "SELECT", "x"), right("CLICK", "", task="u", n_actions=1)),
]
AVERAGES = {
    # over tasks: (2/3 + 0/1) / 2
    "seeact": [1 / 3, 1 / 3, 1 / 3],
    "mindact": [1 / 3, 1 / 3, 1 / 3],
    # t is padded to its four actions: (2/4 + 0/1) / 2
    "uground": [1 / 4, 1 / 4, 1 / 4],
    # over steps: 2/4; F1 over operations: (TYPE 1 + CLICK 0) / 2, no SELECT
    "seeclick": [1 / 2, 1 / 2, 1 / 2],
    # an episode is one step
    "showui": [1 / 2, 1 / 2, 1 / 2],
    "uipro": [1 / 2, 1 / 2, 1 / 2],
    "synapse": [1 / 3, 1 / 3, 1 / 3],
    # over steps
    "inspect-evals": [1 / 2, 1 / 2, 1 / 2],
    # two of four clicks; with a second entry for each TYPE four of six
    "screensuite": [1 / 2, 4 / 6, 1 / 2],
}


@pytest.mark.parametrize(("name", "expected"), AVERAGES.items())
def test_a_profile_quotes_its_own_average(name: str, expected: list[float]) -> None:
    predictions, truths = zip(*ROWS, strict=True)
    assert headlines(name, list(predictions), list(truths)) == pytest.approx(expected, rel=1e-12)


def test_operations_are_averaged_before_the_classes() -> None:
    # SELECT 1 of 1, TYPE 1 of 1, CLICK 0 of 2: (1 + 1 + 0) / 3; over steps it is 1/2
    truths = [right(), right("SELECT", "x"), right("CLICK", ""), right("CLICK", "")]
    predictions = [said(), said("1", "SELECT", "x"), said("7", "TYPE"), said("7", "TYPE")]
    assert headlines("showui", predictions, truths)[1] == pytest.approx(2 / 3)


def test_an_operation_of_no_class_is_in_no_classs_average() -> None:
    truths = [right(), right("SCROLL", "")]
    assert headlines("seeclick", [said(), said("1", "CLICK", "")], truths)[1] == 1.0


def test_padding_is_a_rule_that_can_be_left_away() -> None:
    predictions, truths = zip(*ROWS, strict=True)
    unpadded = replace(UGROUND, length=rows_of_the_task)
    found = [
        summarise(LabelledPredictions(predictions, truths), one, 50)[1].operation_f1.macro
        for one in (UGROUND, unpadded)
    ]
    assert found == pytest.approx([1 / 4, 1 / 3])


def test_the_last_row_of_a_task_says_how_long_it_is() -> None:
    truths = [right(n_actions=9), right(n_actions=4)]
    assert headlines("uground", [said(), said()], truths)[0] == pytest.approx(2 / 4)


def test_a_task_with_more_rows_than_actions_is_not_padded() -> None:
    assert headlines("uground", [said(), said()], [right(n_actions=1)] * 2)[0] == 1.0


def test_steps_left_out_are_in_no_figure_and_counted() -> None:
    truths = [right(), right(**NO_POSITIVE), right(boxes=())]
    scores, summary = summarise(LabelledPredictions([said("7"), said(), said()], truths), PROTOCOLS["seeclick"], 50)
    assert [score.outcome for score in scores] == ["wrong_element", "left_out", "left_out"]
    assert dict(summary.waterfall) == {"wrong_element": 1, "left_out": 2}
    assert (summary.n_steps, summary.operation_f1.micro, summary.element_accuracy.micro) == (1, 1.0, 0.0)


def test_the_interval_of_an_average_over_operations_holds_it_and_comes_from_tasks() -> None:
    truths = [right("TYPE" if i % 3 else "CLICK", "New York" if i % 3 else "", task=f"t{i // 5}") for i in range(60)]
    predictions = [said(op="TYPE" if i % 7 else "CLICK", value="New York" if i % 7 else "") for i in range(60)]
    metric = summarise(LabelledPredictions(predictions, truths), PROTOCOLS["seeclick"], 50)[1].operation_f1
    assert metric.ci95[0] < metric.macro < metric.ci95[1]
    assert metric == summarise(LabelledPredictions(predictions, truths), PROTOCOLS["seeclick"], 50)[1].operation_f1


def test_of_showui_macro_and_micro_are_one() -> None:
    predictions, truths = zip(*ROWS, strict=True)
    figure = summarise(LabelledPredictions(predictions, truths), PROTOCOLS["showui"], 50)[1].step_success_rate
    assert (figure.macro, figure.micro) == (1 / 2, 1 / 2)
    assert figure.ci95 == figure.micro_ci95


def test_a_bad_page_ends_its_task_in_the_tasks_own_order() -> None:
    pages = [right(index=2), right(index=0), right(index=1, picture_size=None), right(task="u", index=0)]
    scores, summary = summarise(LabelledPredictions([said()] * 4, pages), PROTOCOLS["screensuite"], 50)
    assert [score.outcome for score in scores] == ["left_out", "success", "left_out", "success"]
    assert (summary.n_steps, summary.n_tasks) == (2, 2)


def test_a_step_without_an_element_does_not_end_its_task() -> None:
    pages = [right(index=0, **NO_POSITIVE), right(index=1, boxes=()), right(index=2)]
    scores = summarise(LabelledPredictions([said()] * 3, pages), PROTOCOLS["screensuite"], 50)[0]
    assert [score.outcome for score in scores] == ["left_out", "left_out", "success"]


# --- what a run does not keep ---


@pytest.mark.parametrize(
    ("name", "truth", "unknown"),
    [
        ("inspect-evals", right(), {"order_of_positives_unknown": 1}),
        ("inspect-evals", right(**SEVERAL), {}),
        ("inspect-evals", right(**ONE), {}),
        ("showui", right("SELECT", "x"), {"name_of_element_unknown": 1}),
        ("showui", right("SELECT", "x", action_text=TEXT), {}),
        ("showui", right(), {}),
        ("seeact", right("SELECT", "x"), {}),
    ],
)
def test_a_rule_that_lacks_what_it_needs_says_so(name: str, truth: Truth, unknown: dict[str, int]) -> None:
    settings_of_run = {"split": "cross_task", "grounding": "choice", "dataset": "mine", "model": "m", "top_k": 50, "seed": 0, "merge": None}  # fmt: skip
    made = assemble(ScoringInput(settings_of_run, [said()], [truth], complete=True), PROTOCOLS[name])
    assert made.results.unknowns == unknown
    text = report(made.results, made.rows)
    assert all(f"{rule}, {n} step" in text for rule, n in unknown.items())


# --- against the slow ones: 300 sets of predictions each ---

OPS = ["CLICK", "CLICK", "TYPE", "TYPE", "SELECT", "SELECT", "SCROLL", "HOVER", "type", ""]
VALUES = [
    "",
    " ",
    "none",
    "None",
    "New York",
    "new york",
    "york .",
    "()",
    "a 4",
    "TYPE",
    "two\nlines",
    '32"',
    "Sort by",
]
TEXTS = ["", TEXT, "[div]   -> SELECT: x", "[a]  b] c -> d  -> CLICK", "no bracket -> SELECT", "[x] -> SELECT: a -> b"]
POINTS = [None, None, (150.0, 220.0), (151.0, 210.0), (505.0, 605.0), (100.4, 200.4), (float("nan"), 1.0)]


def some_steps(seed: int) -> list[tuple[Prediction, Truth]]:
    draw = Random(seed)
    n_tasks = draw.randint(1, 4)
    return [_some_step(draw, f"t{draw.randrange(n_tasks)}", i) for i in range(draw.randint(0, 14))]


def _some_step(draw: Random, task: str, i: int) -> tuple[Prediction, Truth]:
    positives = draw.choice([(), ("1",), ("1", "2"), ("2", "1"), ("1", "2", "3", "4", "5", "6")])
    op = draw.choice(["CLICK", "TYPE", "SELECT"])
    truth = structs.replace(
        right(
            op,
            draw.choice(VALUES),
            original_op=draw.choice(["", op, "HOVER", "ENTER"] if op == "CLICK" else ["", op]),
            positives=frozenset(positives),
            positives_in_order=draw.choice([(), positives]),
            boxes=(draw.choice([BOX, BOX, BOX, OFF_PAGE]), OTHER)[: draw.choice([0, 1, 2, 2])] if positives else (),
            index=i,
            target=positives[0] if positives else None,
            picture_size=draw.choice([PICTURE, PICTURE, None]),
            n_actions=draw.randint(0, 5),
            n_candidates=len(positives) + draw.randint(0, 6),
            action_text=draw.choice(TEXTS),
        ),
        annotation_id=task,
        action_uid=f"s{i}",
    )
    prediction = Prediction(
        *truth.key,
        draw.choice([None, "1", "1", "2", "8", "9"]),
        draw.choice([op, *OPS]),
        draw.choice([truth.operation.value, *VALUES]),
        ranked=draw.choice([(), ("1",), ("2", "8"), ("7", "9"), ("1", "2", "8", "9")]),
        failure=draw.choice([None, None, "no_final_answer", "point_outside"]),
        ran=draw.random() < 0.85,
        point=draw.choice(POINTS),
    )
    return prediction, truth


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_profile_equals_the_slow_one(name: str) -> None:
    for seed in range(often(300)):
        steps = some_steps(seed)
        predictions, truths = [p for p, _ in steps], [t for _, t in steps]
        for prediction, truth in steps:
            earnings = reference.earnings(name, [prediction], [truth])
            slow = earnings[0][1] if earnings else None
            assert_same(earned(name, prediction, truth), LEFT_OUT if slow is None else tuple(map(float, slow)))
        slow_figures = [float(figure) for figure in reference.headlines(name, predictions, truths)]
        assert headlines(name, predictions, truths) == pytest.approx(slow_figures, abs=1e-12), seed
        done = summarise(LabelledPredictions(predictions, truths), PROTOCOLS[name], 50)[1].task_success_rate
        slow_done = [float(reference.offline(name, predictions, truths, allowed)) for allowed in (0, 1)]
        assert list(done.values()) == pytest.approx(slow_done, abs=1e-12), seed
