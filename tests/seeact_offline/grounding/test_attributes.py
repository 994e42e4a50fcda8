"""Grounding by a type and a text: the conversation, and the search between its questions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.attributes import MAX_CHOICES, AttributesGrounding
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Box, CallError, Candidate, Operation, Step, Usage
from tests.pages import Stored, picture
from tests.reference import searching as reference
from tests.scripted import Ideal, Scripted, final

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "attributes.txt"
PLAIN = QuestionOptions()


def prepare(body: str, n: int, positives: Sequence[int] = (1,), boxes: bool = True, height: int = 400) -> PreparedStep:
    """A page with candidates 1 to `n`, whose ids are written as `#1`, one below the other every 20 pixels."""
    html = f'<html backend_node_id="0"><body>{body}</body></html>'.replace("#", "backend_node_id=").replace("|", '"')
    candidates = tuple(
        Candidate(str(i), "button", Box(10, 20 * i, 50, 15) if boxes else None, i in positives) for i in range(1, n + 1)
    )
    shot = Stored(picture(300, height, 7))
    step = Step("t", "a", "Buy it", ("[a] Shop -> CLICK",), "w", "d", html, Operation("CLICK"), candidates, shot)
    return PreparedStep(step, Page(html), PagePicture(shot), ())


def grounding(form: QuestionOptions = PLAIN, threshold: float = 80.0) -> AttributesGrounding:
    packs = [open_pack("seeact", g, turns=form.turns, image=form.image) for g in ("attributes", "choice")]
    return AttributesGrounding(packs[0], packs[1], form, threshold)


def ground(
    prepared: PreparedStep, answers: Sequence[str | Exception], form: QuestionOptions = PLAIN
) -> tuple[GroundingResult, Scripted]:
    model = Scripted(*answers)
    return asyncio.run(grounding(form).ground(prepared, model)), model


def described(kind: str, text: str, op: str = "CLICK", value: str = "None") -> str:
    return f"ELEMENT: this one\nELEMENT TYPE: {kind}\nELEMENT TEXT: {text}\nACTION: {op}\nVALUE: {value}"


TWO = "<button #|1|><text>Buy</text></button><button #|2|><text>Buy</text></button><a #|3|><text>Help</text></a>"


def test_both_turns_are_on_the_whole_page_shown_once() -> None:
    _, model = ground(prepare(TWO, 3, height=400), ["Plan.", described("LINK", "Help")])
    pictures = [message.picture for message in model.requests[1].messages]
    assert [p is not None for p in pictures] == [False, True, False, False]
    assert pictures[1] is not None
    assert pictures[1].box == (0, 0, 300, 400)


def test_a_page_that_is_too_tall_is_made_smaller_and_said() -> None:
    grounded, model = ground(prepare(TWO, 3), ["Plan.", described("LINK", "Help")], QuestionOptions(max_side=200))
    assert model.requests[0].messages[1].picture.size == (150, 200)
    assert dict(grounded.notes)["picture_resized"] == 1


BUY, HELP = described("BUTTON", "Buy"), described("LINK", "Help")
TYPING = described("BUTTON", "Buy", "TYPE", "x")
SEVERAL = {"found_exact": 1, "several_matches": 1}
NOT_FOUND = "ELEMENT: NA\nELEMENT TYPE: NA\nELEMENT TEXT: NA\nACTION: CLICK"


@pytest.mark.parametrize(
    ("answers", "decision", "notes"),
    [
        ([HELP], ("3", "CLICK", "", None), {"found_exact": 1}),
        ([BUY, final("B")], ("2", "CLICK", "", None), SEVERAL),
        (
            [described("BUTTON", "buy"), final("B")],
            ("2", "CLICK", "", None),
            {"found_normalised": 1, "several_matches": 1},
        ),
        ([TYPING, final("C", "TYPE", "y")], (None, "TYPE", "y", None), SEVERAL),
        # an unreadable choice keeps the operation of the description
        ([TYPING, "Well."], (None, "TYPE", "x", "no_final_answer"), SEVERAL),
        ([described("BUTTON", "Something else")], (None, "CLICK", "", None), {"no_match": 1}),
        ([NOT_FOUND], (None, "CLICK", "", None), {}),
        (["Hm."], (None, "", "", "no_final_answer"), {}),
        (["ELEMENT: it\nELEMENT TYPE: LINK\nACTION: CLICK"], (None, "CLICK", "", "missing_element_text"), {}),
        (
            ["ELEMENT: it\nELEMENT TEXT: Help\nACTION: CLICK"],
            ("3", "CLICK", "", "missing_element_type"),
            {"found_exact": 1},
        ),
        (["ELEMENT: it\nELEMENT TYPE: LINK\nELEMENT TEXT: Help"], ("3", "", "", "missing_action"), {"found_exact": 1}),
        ([CallError("refused", "no", Usage(calls=1))], (None, "", "", "refused"), {}),
    ],
)
def test_answers_lead_to_an_element_or_a_named_failure(answers, decision, notes) -> None:
    grounded, model = ground(prepare(TWO, 3), ["Plan.", *answers])
    found = grounded.decision
    assert (found.element_id, found.op, found.value, found.failure) == decision
    assert (grounded.ran, dict(grounded.notes), grounded.usage.calls) == (True, notes, 1 + len(answers))
    assert [(r.group, r.turn) for r in model.requests] == [(0, 1), (0, 2), (1, 2)][: 1 + len(answers)]
    assert [(group.offered, group.is_final_round) for group in grounded.groups[1:]] == [(("1", "2"), True)] * (
        len(answers) - 1
    )


def test_the_choice_goes_on_from_the_plan_and_shows_where_the_matches_are() -> None:
    _, model = ground(prepare(TWO, 3, height=4000), ["Plan.", described("BUTTON", "Buy"), final("A")])
    messages = model.requests[2].messages
    assert [m.role for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[2].text == "Plan."
    assert messages[3].picture.box == (0, 0, 300, 20 * 2 + 15 + 1024)
    assert "A. <button id=0>Buy</button>" in messages[3].text


def test_a_call_without_an_answer_keeps_what_was_said_and_paid() -> None:
    grounded, _ = ground(prepare(TWO, 3), ["Plan.", described("BUTTON", "Buy"), CallError("timeout", "slow")])
    assert (grounded.ran, grounded.decision.failure, grounded.usage.calls) == (False, "timeout", 2)
    assert len(grounded.groups) == 1


def test_more_matches_than_a_question_holds_are_cut_counted_and_out_of_reach() -> None:
    body = "".join(f"<button #|{n}|><text>Choose</text></button>" for n in range(1, 61))
    grounded, _ = ground(prepare(body, 60, height=2000), ["Plan.", described("BUTTON", "Choose"), final("A")])
    assert len(grounded.groups[1].offered) == MAX_CHOICES
    assert dict(grounded.notes)["matches_left_out"] == 60 - MAX_CHOICES
    assert [grounding().reaches(prepare(body, 60, [n], height=2000)) for n in (50, 51)] == [True, False]


def test_matches_without_a_box_are_looked_for_on_the_whole_page() -> None:
    prepared = prepare(TWO, 3, boxes=False, height=4000)
    grounded, model = ground(prepared, ["Plan.", described("BUTTON", "Buy"), final("A")])
    assert grounded.decision.element_id == "1"
    assert model.requests[2].messages[3].picture.box == (0, 0, 300, 4000)


def placed(prepared: PreparedStep, boxes: dict[str, Box]) -> PreparedStep:
    """With other boxes for some candidates."""
    candidates = [replace(c, box=boxes.get(c.backend_node_id, c.box)) for c in prepared.step.candidates]
    return replace(prepared, step=replace(prepared.step, candidates=tuple(candidates)))


@pytest.mark.parametrize(
    "box",
    [Box(10, 20, 0, 15), Box(10, 20, 50, 0), Box(-60, 20, 50, 15), Box(10, 401, 50, 15), Box(300, 20, 50, 15)],
    ids=["no width", "no height", "left of the page", "below it", "right of it"],
)
def test_a_match_that_cannot_be_seen_is_left_out_beside_one_that_can(box) -> None:
    grounded, _ = ground(placed(prepare(TWO, 3, [2]), {"1": box}), ["Plan.", described("BUTTON", "Buy")])
    assert (grounded.decision.element_id, dict(grounded.notes)) == ("2", {"found_exact": 1})


def test_a_match_of_which_a_part_is_on_the_page_can_be_seen() -> None:
    grounded, _ = ground(
        placed(prepare(TWO, 3), {"1": Box(-40, -10, 50, 15)}), ["Plan.", described("BUTTON", "Buy"), final("A")]
    )
    assert grounded.decision.element_id == "1"


def test_a_match_that_cannot_be_seen_is_taken_where_there_is_no_other_and_counted() -> None:
    prepared = placed(prepare(TWO, 3), {"3": Box(0, 0, 0, 0)})
    grounded, _ = ground(prepared, ["Plan.", described("LINK", "Help")])
    assert (grounded.decision.element_id, dict(grounded.notes)) == ("3", {"found_exact": 1, "found_unseen": 1})


def test_a_row_without_a_picture_is_asked_to_choose_all_the_same() -> None:
    """The size of the picture, which nobody needed, made the step fail."""
    prepared = prepare(TWO, 3, boxes=False)
    missing = replace(prepared, picture=PagePicture(Stored(b"")))
    grounded, _ = ground(missing, ["Plan.", described("BUTTON", "Buy"), final("B")], QuestionOptions(image=False))
    assert (grounded.decision.element_id, grounded.ran) == ("2", True)


def test_one_turn_models_get_both_turns_at_once_and_a_choice_of_its_own() -> None:
    grounded, model = ground(prepare(TWO, 3), [described("BUTTON", "Buy"), final("B")], QuestionOptions(turns=1))
    assert grounded.decision.element_id == "2"
    assert [[m.role for m in r.messages] for r in model.requests] == [["system", "user"]] * 2
    assert all("Buy it" in r.messages[1].text and r.messages[1].picture for r in model.requests)


def test_without_a_picture_the_pages_markup_is_given() -> None:
    grounded, model = ground(
        prepare(TWO, 3), ["Plan.", described("BUTTON", "Buy"), final("B")], QuestionOptions(image=False)
    )
    assert grounded.decision.element_id == "2"
    assert all(m.picture is None for r in model.requests for m in r.messages)
    assert "Help" in model.requests[0].messages[1].text


@pytest.mark.parametrize(
    ("body", "reachable", "note"),
    [
        (TWO, True, None),
        ("<button #|1|><svg/></button>", False, "target_without_text"),
        ("<span #|1|><text>Go</text></span><button #|2|><text>Go</text></button>", False, "target_not_found"),
        ("<button #|1|><text>None</text></button>", False, "target_not_found"),
    ],
    ids=["among two", "no words", "hidden by a twin", "cannot be written in a reply"],
)
def test_what_keeps_a_target_out_of_reach_is_noted(body, reachable, note) -> None:
    prepared = prepare(body, 2)
    grounded = asyncio.run(grounding().ground(prepared, Ideal()))
    assert (grounding().reaches(prepared), grounded.decision.element_id == "1") == (reachable, reachable)
    assert [name for name in grounded.notes if name.startswith("target")] == [note] * (note is not None)


def test_a_step_without_a_target_is_out_of_reach_without_a_reason() -> None:
    prepared = prepare(TWO, 3, [])
    grounded = asyncio.run(grounding().ground(prepared, Ideal()))
    assert (grounding().reaches(prepared), grounded.decision.element_id, grounded.notes) == (False, None, {})


def test_the_question_gives_no_hint_of_the_target() -> None:
    def sent(prepared: PreparedStep) -> list[object]:
        return [replace(question, ideal=(), pictures=()) for question in grounding().questions(prepared)]

    assert sent(prepare(TWO, 3, [1])) == sent(prepare(TWO, 3, [3]))


def test_the_prompt_names_the_four_types() -> None:
    question = grounding().questions(prepare(TWO, 3))[0]
    assert question.turns[1].count("BUTTON, TEXTBOX, SELECTBOX or LINK") == 2
    assert "{{" not in question.turns[1]


def own_words_lead_to_it(step: Step) -> bool:
    """The ceiling, by the slow search: some text of a target with its type finds a target among the first matches."""
    from lxml import etree

    root = etree.fromstring(step.cleaned_html)
    ids = {c.backend_node_id for c in step.candidates}
    positives = step.truth.positives
    for element in (e for e in root.iter() if e.get("backend_node_id") in positives and e.tag != "text"):
        for text in reference.texts(root, element):
            found, _ = reference.find(step.cleaned_html, ids, reference.type_of(element) or "BUTTON", text, 80.0)
            if positives & set(found[:50]):
                return True
    return False


@pytest.mark.slow
def test_one_who_knows_reaches_exactly_the_ceiling() -> None:
    # by the slow search some 30 ms a step and text
    steps = [s for s in load_steps("sample", "cross_website") if not s.faults and s.screenshot and s.candidates][::4]
    assert len(steps) > 10
    for step in steps:
        prepared = PreparedStep(step, Page(step.cleaned_html), PagePicture(step.screenshot), ())
        grounded = asyncio.run(grounding().ground(prepared, Ideal()))
        hit = grounded.decision.element_id in step.truth.positives
        assert (hit, grounding().reaches(prepared)) == (own_words_lead_to_it(step),) * 2


def test_the_real_step_is_reached_among_two(shared_step) -> None:
    step = next(load_steps(shared_step, "cross_domain"))
    prepared = PreparedStep(step, Page(step.cleaned_html), PagePicture(step.screenshot), ())
    model = Ideal()
    grounded = asyncio.run(grounding().ground(prepared, model))
    assert (grounded.decision.element_id, len(model.requests)) == ("8635", 3)
    assert grounding().reaches(prepared)
    assert grounded.groups[1].offered == ("8635", "10628")


def snapshot() -> str:
    """The last request of a step with two matches: everything that the strategy sends."""
    _, model = ground(prepare(TWO, 3, height=4000), ["Plan.", described("BUTTON", "Buy"), final("A")])
    first, last = model.requests[1], model.requests[2]
    lines = []
    for name, request in (("description", first), ("choice", last)):
        for message in request.messages:
            shown = f", page {tuple(message.picture.box)}" if message.picture else ""
            lines.append(f"=== {name}: {message.role}{shown}\n{message.text}\n")
    return "\n".join(lines)


def test_what_is_sent_is_as_reviewed() -> None:
    assert snapshot() == SNAPSHOT.read_text()
