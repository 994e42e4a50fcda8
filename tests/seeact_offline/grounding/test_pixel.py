"""Grounding by a point: what is asked, how the answer maps back to the page, and what the method cannot do."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence

import pytest
from PIL import Image

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.pixel import PixelGrounding
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.pages.dom import Page
from seeact_offline.pages.pointing import COORDINATES
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Box, CallError, Candidate, InputError, Operation, Step
from tests.reference import pointing as reference
from tests.scripted import Ideal, Scripted

HTML = (
    '<html backend_node_id="1"><body backend_node_id="2"><div backend_node_id="10"><button backend_node_id="20">'
    '<text backend_node_id="21">Go</text></button></div><a backend_node_id="30"><text backend_node_id="31">Far</text></a>'
    "</body></html>"
)
BOXES = {"10": Box(100, 100, 200, 100), "20": Box(150, 120, 60, 40), "30": Box(300, 900, 80, 20)}


class White:
    """A screenshot of one colour."""

    def __init__(self, width: int, height: int) -> None:
        self.size = width, height

    def read(self) -> bytes:
        file = io.BytesIO()
        Image.new("RGB", self.size, "white").save(file, "PNG")
        return file.getvalue()


def a_step(positives: Sequence[str] = ("20",), boxes: dict[str, Box | None] | None = None) -> Step:
    known = BOXES if boxes is None else boxes
    candidates = tuple(Candidate(node, "a", box, node in positives) for node, box in known.items())
    return Step(
        "task", "step", "Press Go", ("[a]  Start -> CLICK",), "site", "Travel", HTML, Operation("CLICK"), candidates,
        White(1000, 2000),
    )  # fmt: skip


def prepared(step: Step | None = None) -> PreparedStep:
    step = step or a_step()
    assert step.screenshot is not None
    return PreparedStep(step, Page(step.cleaned_html), PagePicture(step.screenshot), ())


def grounding(coordinates="absolute", turns=2, **form) -> PixelGrounding:
    return PixelGrounding(open_pack("seeact", "pixel", turns=turns), QuestionOptions(turns=turns, **form), coordinates)


def answered(place: str, op: str = "CLICK", value: str = "None", step: Step | None = None, **how) -> GroundingResult:
    model = Scripted("I will press Go.", f"ELEMENT: {place}\nACTION: {op}\nVALUE: {value}")
    return asyncio.run(grounding(**how).ground(prepared(step), model))


@pytest.mark.parametrize(
    ("answer", "decision", "point", "notes"),
    [
        # the innermost element under the point
        (("<point>170 140</point>",), ("20", "CLICK", "", None), (170, 140), {}),
        # a box counts by its centre
        (("<box>160 130 180 150</box>",), ("20", "CLICK", "", None), (170, 140), {}),
        (("(5, 5)",), (None, "CLICK", "", None), (5, 5), {"point_off_elements": 1}),
        (("NA", "TYPE", "x"), (None, "TYPE", "x", None), None, {}),
        (("(1001, 5)",), (None, "CLICK", "", "point_outside"), None, {}),
        (("(1, 2) or (3, 4)",), (None, "CLICK", "", "several"), None, {}),
        (("the button",), (None, "CLICK", "", "no_point"), None, {}),
        (("(170, 140)", "SCROLL"), ("20", "", "", "unknown_action"), (170, 140), {}),
        (("(170, 140)", "TYPE"), ("20", "TYPE", "", "missing_value"), (170, 140), {}),
    ],
)
def test_a_place_is_the_element_that_lies_there_or_a_named_failure(answer, decision, point, notes) -> None:
    found = answered(*answer)
    said = found.decision
    assert (said.element_id, said.op, said.value, said.failure) == decision
    assert (found.point, found.ran, dict(found.notes)) == (point, True, notes)


def test_a_place_on_a_smaller_picture_is_mapped_back_and_the_resize_is_noted() -> None:
    found = answered("(85, 70)", max_side=1000)
    assert found.point == pytest.approx((170, 140))
    assert (found.decision.element_id, dict(found.notes)) == ("20", {"picture_resized": 1})


@pytest.mark.parametrize(
    ("coordinates", "place"), [("absolute", "(170, 140)"), ("fraction", "(0.17, 0.07)"), ("per-mille", "[[170,70]]")]
)
@pytest.mark.parametrize("max_side", [None, 8000])
def test_each_scale_leads_to_the_same_place_of_the_page(coordinates, place, max_side) -> None:
    found = answered(place, coordinates=coordinates, max_side=max_side)
    assert found.point == pytest.approx((170, 140))
    assert found.decision.element_id == "20"


@pytest.mark.parametrize(
    ("answers", "element", "failure", "ran"),
    [
        # a place without an action keeps its element
        (["I will press Go.", "<point>170 140</point>"], "20", "missing_action", True),
        ([CallError("refused", "no")], None, "refused", True),
        (["plan", CallError("timeout")], None, "timeout", False),
    ],
)
def test_what_is_missing_from_the_answers_is_named(answers, element: str | None, failure: str, ran: bool) -> None:
    found = asyncio.run(grounding().ground(prepared(), Scripted(*answers)))
    assert (found.decision.element_id, found.decision.failure, found.ran) == (element, failure, ran)
    assert found.usage.calls == sum(isinstance(one, str) for one in answers)


def test_the_whole_page_is_shown_once_and_the_scale_is_stated() -> None:
    (question,) = grounding("absolute", max_side=1000).questions(prepared())
    assert question.pictures[0] is not None
    assert (question.pictures[0].size, question.pictures[1]) == ((500, 1000), None)
    assert "500 wide and 1000 high" in question.turns[1]


def test_one_turn_asks_both_in_one_message() -> None:
    (question,) = grounding(turns=1).questions(prepared())
    assert (len(question.turns), len(question.pictures), len(question.ideal)) == (1, 1, 1)
    found = asyncio.run(grounding(turns=1).ground(prepared(), Scripted("ELEMENT: (170, 140)\nACTION: CLICK")))
    assert found.decision.element_id == "20"


def test_without_pictures_there_is_nothing_to_point_at() -> None:
    with pytest.raises(InputError, match=r"^`no_image` cannot be combined with grounding pixel"):
        PixelGrounding(open_pack("seeact", "pixel"), QuestionOptions(image=False))


SHARE = {"10": BOXES["10"], "20": Box(180, 130, 40, 40), "30": BOXES["30"]}
THIN = {"10": Box(100.5, 100, 0.25, 50), "20": None, "30": BOXES["30"]}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (a_step(("20",)), ("20", True)),
        (a_step(("30",)), ("30", True)),
        # the button lies on the middle of the div
        (a_step(("10",), SHARE), ("20", False)),
        # but one of two right elements is enough
        (a_step(("10", "30"), SHARE), ("30", True)),
        (a_step(()), (None, False)),
        # nothing to point at: no box, no area, outside of the page
        (a_step(("20",), {**BOXES, "20": None}), (None, False)),
        (a_step(("20",), {**BOXES, "20": Box(150, 120, 0, 40)}), (None, False)),
        (a_step(("20",), {**BOXES, "20": Box(150, 3000, 60, 40)}), (None, False)),
        # the part that the page shows is pointed at
        (a_step(("30",), {**BOXES, "30": Box(980, 900, 80, 20)}), ("30", True)),
        (a_step(("10",), THIN), ("10", True)),
    ],
)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("max_side", [None, 500])
def test_the_ideal_answer_is_right_exactly_where_that_can_be(step, expected, coordinates, max_side) -> None:
    ours = grounding(coordinates, max_side=max_side)
    found = asyncio.run(ours.ground(prepared(step), Ideal()))
    assert (found.decision.element_id, ours.reaches(prepared(step))) == expected


def test_a_target_finer_than_whole_numbers_is_noted() -> None:
    found = asyncio.run(grounding().ground(prepared(a_step(("10",), THIN)), Ideal()))
    assert dict(found.notes) == {"target_finer_than_coordinates": 1}


def centre_is_right(step: Step) -> bool:
    """The ceiling by hand: some positive has a box on the page, and under its centre lies a positive."""
    page = Page(step.cleaned_html)
    assert step.screenshot is not None
    width, height = Image.open(io.BytesIO(step.screenshot.read())).size
    placed = sorted((c for c in step.candidates if c.box), key=lambda c: page.position(c.backend_node_id))
    boxes = [(c.backend_node_id, *c.box) for c in placed if c.box]
    positives = {c.backend_node_id for c in step.candidates if c.is_positive}
    for node, left, top, w, h in boxes:
        x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + w, width), min(top + h, height)
        centre = (x0 + x1) / 2, (y0 + y1) / 2
        if node in positives and x0 < x1 and y0 < y1 and reference.element_at(centre, boxes) in positives:
            return True
    return False


@pytest.fixture(scope="module")
def ceilings() -> list[tuple[Step, bool]]:
    """The steps of a split, and whether each can be solved, by hand."""
    return [(step, centre_is_right(step)) for step in load_steps("sample", "cross_task") if not step.faults]


@pytest.mark.slow
@pytest.mark.parametrize(("coordinates", "max_side"), [("absolute", None), ("per-mille", 700)])
def test_on_the_sample_the_ceiling_is_that_of_the_element_under_the_targets_centre(
    ceilings: list[tuple[Step, bool]], coordinates, max_side
) -> None:
    ours = grounding(coordinates, max_side=max_side)
    for step, centre_is_right in ceilings:
        asked = prepared(step)
        found = asyncio.run(ours.ground(asked, Ideal()))
        right = found.decision.element_id in step.truth.positives
        assert (ours.reaches(asked), right) == (centre_is_right, centre_is_right), step.key
    assert {centre_is_right for _, centre_is_right in ceilings} == {True, False}
