"""Questions with marked pictures: what is marked, what is shown when, what an answer means, what can be reached."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import GroundingResult, Order, PreparedStep, QuestionOptions
from seeact_offline.grounding.annotation import AnnotationGrounding, MarkedCrop
from seeact_offline.grounding.choice import ChoiceGrounding
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.pages.dom import Page
from seeact_offline.pages.marks import MARK_KINDS, MARK_PLACES, MARK_POSITIONS, MarkPlace, Marks
from seeact_offline.pages.screenshots import Crop, PagePicture
from seeact_offline.ranking import read_scores
from seeact_offline.records import (
    Box,
    Candidate,
    InputError,
    Operation,
    RankedCandidate,
    Step,
)
from seeact_offline.runs.prepare import prepare
from tests.pages import Stored, picture
from tests.scripted import Ideal, InTurn2, Scripted, final

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "annotation.txt"
UNSEEN = {"zero": Box(30, 40, 0, 12), "right": Box(1400, 40, 50, 12), "below": Box(30, 9000, 50, 12)}


def made_up(n: int = 20, target: int = 3, **boxes: Box) -> PreparedStep:
    """A page of `n` lines, an element a line; `boxes` replace those of elements by id (`e3`)."""
    nodes = [f"e{i}" for i in range(n)]
    html = "".join(
        f'<a backend_node_id="{node}"><text backend_node_id="t{node}">Line {node}</text></a>' for node in nodes
    )
    candidates = tuple(
        Candidate(node, "a", boxes.get(node, Box(20, 30 * i + 2, 200, 24)), i == target) for i, node in enumerate(nodes)
    )
    step = replace(
        template(),
        cleaned_html=f'<html backend_node_id="r"><body backend_node_id="b">{html}</body></html>',
        operation=Operation("CLICK"),
        candidates=candidates,
        screenshot=Stored(picture(1280, 30 * n, 20)),
    )
    ranked = tuple(RankedCandidate(node, -i, i) for i, node in enumerate(nodes))
    return PreparedStep(step, Page(step.cleaned_html), PagePicture(step.screenshot), ranked)


def template() -> Step:
    return Step(
        annotation_id="task", action_uid="step", task="Open line 3", history=("[a] Home -> CLICK",), website="w",
        domain="d", cleaned_html="", operation=Operation("CLICK"), candidates=(), screenshot=None,
    )  # fmt: skip


def grounding(
    marks: Marks | None = None, form: QuestionOptions | None = None, **options: object
) -> AnnotationGrounding:
    form = form or QuestionOptions()
    return AnnotationGrounding(open_pack("seeact", "annotation", turns=form.turns), form=form, marks=marks, **options)


def ground(prepared: PreparedStep, answers: Sequence[str], **options) -> tuple[GroundingResult, Scripted]:
    model = InTurn2(*answers)
    return asyncio.run(grounding(**options).ground(prepared, model)), model


@pytest.fixture(scope="module")
def real(shared_step) -> PreparedStep:
    step = next(load_steps(shared_step, "cross_domain"))
    return prepare(step, read_scores(shared_step / "scores_all_data.pkl"), 50)


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_groups_and_crops_are_those_of_textual_choices(real) -> None:
    choices = ChoiceGrounding(open_pack("seeact", "choice")).questions(real)
    marked = grounding().questions(real)
    assert [q.pictures[0].key for q in marked] == [q.pictures[0].key for q in choices]
    assert [q.offered for q in marked] == [q.offered for q in choices]


def test_every_element_of_a_group_has_a_label_and_unseen_ones_are_counted(real) -> None:
    grounded, _ = ground(real, [final("NA")] * 3, marks=Marks(kind="letter"))
    assert [len(group.offered) for group in grounded.groups] == [16, 17, 17]
    assert dict(grounded.notes)["box_not_drawn"] == 19


@pytest.mark.parametrize(("where", "n_unseen"), [("zero", None), ("right", 1), ("below", 1)])
@pytest.mark.parametrize("place", MARK_PLACES)
def test_a_box_that_cannot_be_seen_takes_a_label_all_the_same(
    where: str, n_unseen: int | None, place: MarkPlace
) -> None:
    prepared = made_up(5, e1=UNSEEN[where])
    grounded, _ = ground(prepared, [final("2")], marks=Marks(place=place))
    assert grounded.groups[0].offered == ("e0", "e1", "e2", "e3", "e4")
    assert grounded.decision.element_id == "e1"
    assert dict(grounded.notes).get("box_not_drawn") == n_unseen


@pytest.mark.parametrize(("turn1", "kinds"), [(False, [Crop, MarkedCrop]), (True, [MarkedCrop, type(None)])])
def test_marks_are_shown_with_the_question_for_one_or_from_the_first_turn_on(turn1: bool, kinds: list[type]) -> None:
    question = grounding(Marks(turn1=turn1)).questions(made_up(5))[0]
    assert [type(shown) for shown in question.pictures] == kinds


def test_one_turn_shows_the_marked_picture_once() -> None:
    question = grounding(form=QuestionOptions(turns=1)).questions(made_up(5))[0]
    assert [type(shown) for shown in question.pictures] == [MarkedCrop]
    assert question.turns[0].startswith("Task:")
    assert question.ideal == (final("4"),)


@pytest.mark.parametrize(
    ("kind", "phrase"), [("number", "1 to 5"), ("letter", "A to E"), ("double-letter", "AA to AE")]
)
def test_prompt_and_picture_agree_on_the_labels(kind, phrase: str) -> None:
    question = grounding(Marks(kind=kind)).questions(made_up(5))[0]
    assert f"The labels in use here are {phrase}." in question.turns[1]
    assert question.pictures[1].labels == question.labels
    assert "none_label" not in question.turns[1]
    assert "ELEMENT: one label from the picture (NA if" in question.turns[1]


def test_labels_follow_document_order() -> None:
    upside_down = {f"e{i}": Box(20, 30 * (4 - i), 200, 24) for i in range(5)}
    question = grounding().questions(made_up(5, **upside_down))[0]
    assert question.offered == ("e0", "e1", "e2", "e3", "e4")
    assert [rect.y0 for rect in question.pictures[1].rects] == [120, 90, 60, 30, 0]


def test_an_order_shuffles_groups_and_labels_alike_every_time() -> None:
    prepared = made_up(34)
    plain, first, again, other = (
        [q.offered for q in grounding(form=QuestionOptions(order=order)).questions(prepared)]
        for order in (None, Order(0, 1), Order(0, 1), Order(0, 2))
    )
    assert plain != first == again != other
    assert sorted(node for group in first for node in group) == sorted(node for group in plain for node in group)


# --- what an answer means ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "label", "element", "failure"),
    [
        ("number", "4", "e3", None),
        ("letter", "D", "e3", None),
        ("double-letter", "AD", "e3", None),
        ("number", "NA", None, None),
        ("number", "6", None, "unknown_choice"),
    ],
)
def test_a_mark_is_the_element_that_carries_it(kind, label: str, element: str | None, failure: str | None) -> None:
    grounded, _ = ground(made_up(5), [final(label)], marks=Marks(kind=kind))
    found = grounded.decision
    assert (found.element_id, found.op, found.failure, grounded.ran) == (element, "CLICK", failure, True)
    assert found.detail == ("group 0, labels 1 to 5" if failure else "")


def test_several_picks_are_marked_once_more_with_labels_of_their_own() -> None:
    grounded, model = ground(made_up(33), [final("3"), final("5"), final("2")])
    last = grounded.groups[-1]
    assert (last.is_final_round, last.offered, last.element_id) == (True, ("e2", "e20"), "e20")
    assert model.requests[-1].messages[-1].picture.labels == ("1", "2")


def test_a_label_off_its_position_is_counted() -> None:
    """Five elements in one box: a corner has four sides."""
    crowded = {f"e{i}": Box(400, 20, 200, 60) for i in range(5)}
    counts = [
        dict(ground(made_up(5, **crowded), [final("NA")], marks=Marks(place=place))[0].notes).get("label_off_position")
        for place in ("corner", "clear")
    ]
    assert counts == [None, 1]


def test_letters_that_a_server_makes_too_small_are_counted(real) -> None:
    """Its crops are 2529, 5808 and 3224 pixels tall: letters of 11 pixels come to 7, 4 and 7."""
    assert dict(ground(real, [final("NA")] * 3)[0].notes)["label_too_small"] == 3
    smaller, _ = ground(real, [final("NA")] * 3, form=QuestionOptions(max_side=2048))
    assert "label_too_small" not in dict(smaller.notes)


def test_prompts_say_what_labels_are_and_where() -> None:
    pack, marks = (
        open_pack("seeact", "annotation", variant="marked"),
        Marks(kind="letter", position="top-right", turn1=True),
    )
    turn1 = AnnotationGrounding(pack, marks=marks).questions(made_up(5))[0].turns[0]
    assert "each with a letter in white on black at the top right corner of its box" in turn1
    turn2 = grounding(Marks(kind="double-letter", position="bottom-center")).questions(made_up(5))[0].turns[1]
    assert "a pair of letters in white on black, at the middle of the bottom edge of its box" in turn2


# --- what can be reached ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prepared", "element"),
    [
        (lambda: made_up(34, 3), "e3"),
        (lambda: made_up(34, 25), "e25"),
        (lambda: made_up(5, e3=UNSEEN["right"]), "e3"),
        (lambda: replace(made_up(5), ranked=made_up(5).ranked[:3]), None),
    ],
    ids=["first group", "second group", "outside the page", "not ranked"],
)
def test_the_target_is_reached_wherever_it_is_ranked(prepared: Callable[[], PreparedStep], element: str | None) -> None:
    for kind in MARK_KINDS:
        step, ours = prepared(), grounding(Marks(kind=kind))
        grounded = asyncio.run(ours.ground(step, Ideal()))
        assert (grounded.decision.element_id, ours.reaches(step)) == (element, element is not None)


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": QuestionOptions(image=False)}, "`no_image` cannot be combined with grounding annotation"),
        (
            {"marks": Marks(kind="letter"), "group_size": 27},
            "marks: expected at most 26 elements in one picture for letter, got 27",
        ),
        (
            {"marks": Marks(turn1=True), "form": QuestionOptions(shared_turn1=True)},
            "`mark_turn1` needs `batching` per-group",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_once(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        grounding(**options)


@pytest.mark.parametrize(
    ("n", "options"), [(27, {"merge": "single"}), (28, {"group_size": 1})], ids=["one group", "final round"]
)
def test_a_question_that_may_need_more_than_26_letters_is_refused_before_any_call(n: int, options: dict) -> None:
    model = InTurn2()
    with pytest.raises(InputError, match=r"^marks: .*for letter, got 27; use double-letter or number"):
        asyncio.run(grounding(Marks(kind="letter"), **options).ground(made_up(n), model))
    assert model.requests == []


# --- the picture ------------------------------------------------------------------------------------------------------


def test_the_marked_picture_differs_from_the_crop_around_marks_only() -> None:
    plain, marked = grounding().questions(made_up(5, e0=Box(600, 60, 30, 20)))[0].pictures
    before, after = (np.asarray(Image.open(io.BytesIO(shown.encoded()))) for shown in (plain, marked))
    changed = (before != after).any(axis=2)
    assert before.shape == after.shape
    assert changed[58:100, 598:640].any()
    assert not changed[:, 700:].any()


def test_equal_marks_on_equal_crops_have_equal_keys_and_bytes_and_no_others_do() -> None:
    def shown(marks: Marks, **boxes: Box) -> MarkedCrop:
        return grounding(marks).questions(made_up(5, **boxes))[0].pictures[1]

    changed = {"text_size": 20, "padding": 3, "outline": True}
    different = [Marks(kind=kind, position=position) for kind in MARK_KINDS for position in MARK_POSITIONS]
    different += [Marks(place=place) for place in MARK_PLACES[1:]] + [
        Marks(**{name: changed[name]}) for name in changed
    ]
    keys = [shown(marks).key for marks in different]
    keys += [shown(Marks(), e1=Box(20, 32, 200, 20)).key, grounding().questions(made_up(5))[0].pictures[0].key]
    assert len(set(keys)) == len(keys)
    assert shown(Marks()).key == keys[0] == shown(Marks(turn1=False)).key
    assert shown(Marks()).encoded() == shown(Marks()).encoded()


def test_a_picture_made_smaller_carries_marks_of_full_size_in_the_right_places() -> None:
    prepared = made_up(17)
    large, small = (
        grounding(form=QuestionOptions(max_side=side)).questions(prepared)[0].pictures[1] for side in (None, 640)
    )
    assert (large.size, small.size, small.resized) == ((1280, 510), (640, 255), True)
    for full, half in zip(large.rects, small.rects, strict=True):
        assert [abs(a - 2 * b) <= 2 for a, b in zip(full, half, strict=True)] == [True] * 4
    assert (
        small.placement.spots[0][2] - small.placement.spots[0][0]
        == large.placement.spots[0][2] - large.placement.spots[0][0]
    )
    assert Image.open(io.BytesIO(small.encoded())).size == (640, 255)


def test_a_picture_made_smaller_is_counted() -> None:
    grounded, _ = ground(made_up(5), [final("1")], form=QuestionOptions(max_side=640))
    assert dict(grounded.notes)["picture_resized"] >= 1


def test_nothing_is_decoded_to_ask() -> None:
    prepared = made_up(5)
    marked = grounding().questions(prepared)[0].pictures[1]
    assert marked.key
    assert marked.placement.spots
    assert "pixels" not in vars(prepared.picture)


# --- snapshot ---------------------------------------------------------------------------------------------------------


def snapshot() -> str:
    """A question with its ids, labels, crop, boxes and texts."""
    prepared = made_up(19, e1=UNSEEN["zero"], e18=Box(1270, 400, 40, 20))
    first, second = grounding(Marks(kind="double-letter", position="bottom-center")).questions(prepared)
    parts = []
    for question in (first, second):
        marked = question.pictures[1]
        marks = [
            f"{label} {node} {tuple(rect)}"
            for label, node, rect in zip(question.labels, question.offered, marked.rects, strict=True)
        ]
        parts += [f"group {question.index}, crop {json.dumps(marked.crop.box)}", *marks, ""]
    return "\n".join(
        [*parts, "--- system", first.system, "--- turn 1", first.turns[0], "--- turn 2", second.turns[1], ""]
    )


def test_crops_marks_and_prompts_are_as_recorded() -> None:
    if os.environ.get("SNAPSHOTS") == "write":
        SNAPSHOT.write_text(snapshot(), encoding="utf-8")
    assert snapshot() == SNAPSHOT.read_text()
