"""Groups, conversations and merge rules of textual choices."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import Order, PreparedStep, QuestionOptions
from seeact_offline.grounding.choice import ChoiceGrounding, choice_ideal
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.merging import merge, split_groups
from seeact_offline.models.builtin import open_builtin
from seeact_offline.models.tokens import count_words, visual_tokens
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.ranking import read_scores
from seeact_offline.records import (
    MERGE_RULES,
    Box,
    CallError,
    Candidate,
    Operation,
    RankedCandidate,
    Reply,
    RowError,
    Step,
    Usage,
)
from seeact_offline.runs.prepare import prepare
from tests.pages import Stored, picture
from tests.reference.grouping import groups_of
from tests.scripted import InTurn2, Scripted, final


def reply(
    group: int, element: str | None, op: str = "CLICK", failure: str | None = None, final_round: bool = False
) -> Reply:
    return Reply(group, ("1", "2"), ("a", "b"), element, op, "", failure, is_final_round=final_round)


@pytest.fixture(scope="module")
def prepared(shared_step) -> PreparedStep:
    step = next(load_steps(shared_step, "cross_domain"))
    return prepare(step, read_scores(shared_step / "scores_all_data.pkl"), 50)


def ground(prepared: PreparedStep, answers: Sequence[str | Exception], rule: str = "final-round"):
    model = InTurn2(*answers)
    pack = open_pack("seeact", "choice")
    return asyncio.run(ChoiceGrounding(pack, 17, rule).ground(prepared, model)), model


def test_the_groups_of_the_real_step_equal_the_golden_file(prepared, shared_step) -> None:
    groups = ChoiceGrounding(open_pack("seeact", "choice")).questions(prepared)
    golden = json.loads((shared_step / "expected_groups.json").read_text())
    offered = [[list(choice) for choice in zip(g.offered, g.texts, strict=True)] for g in groups]
    assert offered == [g["choices"] for g in golden]
    assert [list(g.pictures[0].box.size) for g in groups] == [g["crop_size"] for g in golden]


@pytest.mark.parametrize(
    ("n", "size", "expected"),
    [
        (50, 17, [16, 17, 17]), (40, 17, [16, 17, 7]), (16, 17, [16]), (17, 17, [16, 1]), (34, 17, [16, 17, 1]), (1, 17, [1]),
        (20, 20, [20]), (41, 20, [20, 20]), (42, 20, [20, 20, 2]), (17, 16, [16]), (3, 2, [2]), (2, 2, [2]), (2, 1, [1]), (1, 20, []),
    ],
)  # fmt: skip
def test_groups_of_17_keep_a_last_one_of_one_and_groups_of_another_size_drop_it(
    n: int, size: int, expected: list[int]
) -> None:
    assert [len(group) for group in split_groups([str(i) for i in range(n)], size)] == expected


@given(st.integers(1, 200), st.sampled_from([17, *range(1, 61)]))
def test_groups_are_those_of_a_slow_re_implementation(n: int, size: int) -> None:
    ids = [str(i) for i in range(n)]
    assert [list(group) for group in split_groups(ids, size)] == groups_of(ids, size)


def on_page(height: int, *boxes: Box) -> PreparedStep:
    """A page of so many pixels with an element for each box, ranked as given."""
    nodes = [f"e{i}" for i in range(len(boxes))]
    html = "".join(f'<a backend_node_id="{node}"><text backend_node_id="t{node}">{node}</text></a>' for node in nodes)
    page = Page(f'<html backend_node_id="r"><body backend_node_id="b">{html}</body></html>')
    candidates = tuple(
        Candidate(node, "a", box, i == 0) for i, (node, box) in enumerate(zip(nodes, boxes, strict=True))
    )
    step = Step(
        "task", "step", "Press e0", (), "w", "d", "", Operation("CLICK"), candidates, Stored(picture(1280, height, 20))
    )
    ranked = tuple(RankedCandidate(node, -i, i) for i, node in enumerate(nodes))
    return PreparedStep(step, page, PagePicture(step.screenshot), ranked)


UNSEEN, RIGHT_OF_IT, FAR_BELOW = Box(-1, -1, -1, -1), Box(1400, 300, 50, 20), Box(10, 9000, 50, 20)


@pytest.mark.parametrize(
    ("boxes", "size", "asked", "notes"),
    [
        ([UNSEEN] * 2, 17, [2], {}),
        ([RIGHT_OF_IT] * 2, 17, [2], {}),
        ([RIGHT_OF_IT, FAR_BELOW], 17, [2], {}),
        ([RIGHT_OF_IT] * 2 + [FAR_BELOW] * 2, 2, [2], {"group_off_picture": 1}),
        ([RIGHT_OF_IT] * 2 + [FAR_BELOW], 2, [2], {"last_group_dropped": 1}),
        # below the page, but not by the margin
        ([Box(10, 2023, 50, 20)], 17, [1], {}),
        ([UNSEEN], 5, [], {"last_group_dropped": 1}),
    ],
)
def test_a_group_is_left_out_only_where_its_part_of_the_page_is_empty(
    boxes: list[Box], size: int, asked: list[int], notes: dict[str, int]
) -> None:
    prepared = on_page(1000, *boxes)
    model = InTurn2(*[final("B")] * len(asked))
    grounded = asyncio.run(ChoiceGrounding(open_pack("seeact", "choice"), size).ground(prepared, model))
    assert [len(group.offered) for group in grounded.groups if not group.is_final_round] == asked
    assert {name: n for name, n in grounded.notes.items() if name != "tie_at_group_cut"} == notes


def test_a_step_of_which_every_group_lies_far_off_the_page_is_a_fault_of_its_row() -> None:
    with pytest.raises(RowError, match="nothing_to_show"):
        ChoiceGrounding(open_pack("seeact", "choice")).questions(on_page(1000, Box(10, 2024, 50, 20)))


def test_each_group_is_asked_two_turns_with_the_first_reply_fed_back(prepared) -> None:
    _, model = ground(prepared, [final("Q"), final("R"), final("R")])
    assert [(r.group, r.turn) for r in model.requests] == [(g, t) for g in range(3) for t in (1, 2)]
    roles = [m.role for m in model.requests[1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert model.requests[1].messages[2].text == "I will click."
    assert [m.picture is not None for m in model.requests[1].messages] == [False, True, False, False]


FIRST, SECOND, NONE = final("H"), final("E"), final("R")
"""The right element in the first group, one that is ranked higher in the second, none of a group of 17."""


@pytest.mark.parametrize(
    ("rule", "answers", "decision", "ran"),
    [
        ("final-round", [FIRST, NONE, NONE], ("8635", "CLICK", "", None), True),
        # no pick is no element, but keeps the operation
        ("final-round", [final("Q", "TYPE", "x"), NONE, NONE], (None, "TYPE", "x", None), True),
        ("final-round", [FIRST, SECOND, NONE, final("B", "TYPE", "x")], ("9370", "TYPE", "x", None), True),
        ("final-round", [FIRST, SECOND, NONE, final("C")], (None, "CLICK", "", None), True),
        ("first", [FIRST, SECOND, NONE], ("8635", "CLICK", "", None), True),
        ("best-rank", [FIRST, SECOND, NONE], ("9370", "CLICK", "", None), True),
        # an unreadable reply is the failure when nothing else is picked
        ("final-round", [final("Q"), "I do not know.", NONE], (None, "CLICK", "", "no_final_answer"), True),
        ("final-round", [FIRST, "I do not know.", NONE], ("8635", "CLICK", "", None), True),
        ("final-round", [FIRST, CallError("refused", "no", Usage(calls=1)), NONE], ("8635", "CLICK", "", None), True),
        ("final-round", [FIRST, CallError("timeout", "slow"), NONE], (None, "", "", "timeout"), False),
    ],
)
def test_the_groups_answers_become_one_by_the_rule(prepared, rule: str, answers, decision, ran: bool) -> None:
    grounded, model = ground(prepared, answers, rule)
    found = grounded.decision
    assert ((found.element_id, found.op, found.value, found.failure), grounded.ran) == (decision, ran)
    assert [(r.group, r.turn) for r in model.requests] == [(g, turn) for g in range(len(answers)) for turn in (1, 2)][
        : None if ran else 4
    ]
    # what was paid counts, in a step that failed too
    assert grounded.usage.calls == (2 * len(answers) if ran else 3)
    assert [group.offered for group in grounded.groups[3:]] == [("8635", "9370")] * (len(answers) - 3)


def test_single_offers_all_in_one_group(prepared) -> None:
    grounded, _ = ground(prepared, [final("H")], "single")
    assert [len(g.offered) for g in grounded.groups] == [50]


def test_a_candidate_without_a_box_is_a_named_failure(prepared) -> None:
    step = prepared.step
    boxless = replace(step, candidates=tuple(replace(c, box=None) for c in step.candidates))
    with pytest.raises(RowError, match="missing_box"):
        ChoiceGrounding(open_pack("seeact", "choice")).questions(replace(prepared, step=boxless))


@pytest.mark.parametrize("rule", MERGE_RULES)
def test_every_rule_takes_a_lone_pick(rule) -> None:
    assert merge([reply(0, None), reply(1, "7")], rule, ["7"]).element_id == "7"


def test_the_final_round_counts_for_its_own_rule_only() -> None:
    replies = [reply(0, "1"), reply(1, "2"), reply(2, "2", final_round=True)]
    assert merge(replies, "final-round", ["1", "2"]).element_id == "2"
    assert merge(replies, "first", ["1", "2"]).element_id == "1"


# --- what one who knows the truth would say ---


def ideal(*offered: str, op: Operation = Operation("TYPE", "Oslo")) -> tuple[str, str]:  # noqa: B008
    candidates = (
        Candidate("7", "input", None, True),
        Candidate("8", "a", None, True),
        Candidate("9", "a", None, False),
    )
    return choice_ideal(Step("a", "b", "", (), "", "", "", op, candidates, None), offered)


@pytest.mark.parametrize(
    ("offered", "op", "expected"),
    [
        # the first right element that is offered
        ("987", Operation("TYPE", "Oslo"), final("B", "TYPE", "Oslo")),
        ("95", Operation("TYPE", "Oslo"), final("C", "TYPE", "Oslo")),
        ("7", Operation("CLICK"), final("A")),
        # a value stays on one line
        ("7", Operation("TYPE", "two\nlines"), final("A", "TYPE", "two lines")),
    ],
)
def test_the_ideal_answer_is_the_truth_wherever_it_is_offered(offered: str, op: Operation, expected: str) -> None:
    assert ideal(*offered, op=op)[1] == expected


def test_the_ideal_plan_names_the_next_action_and_where() -> None:
    assert ideal("7")[0] == "The next action is 'TYPE Oslo'; its target is element 7."
    assert ideal("9")[0] == "The next action is 'TYPE Oslo'; its target is not among those shown."


# --- other forms of the same questions ---


def in_form(prepared: PreparedStep, rule: str = "final-round", **form: Any) -> tuple[ChoiceGrounding, PreparedStep]:
    shape = QuestionOptions(**form)
    pack = open_pack("seeact", "choice", turns=shape.turns, image=shape.image)
    return ChoiceGrounding(pack, 17, rule, shape), prepared


def test_with_one_turn_a_single_message_asks_everything(prepared) -> None:
    grounding, step = in_form(prepared, turns=1)
    question = grounding.questions(step)[0]
    ordinary = ChoiceGrounding(open_pack("seeact", "choice")).questions(step)[0]
    (text,) = question.turns
    assert text.endswith("\n\n" + ordinary.turns[1])
    assert "you will be asked for one afterwards" not in text
    assert [picture.key for picture in question.pictures] == [ordinary.pictures[0].key]


def test_with_one_turn_the_one_reply_is_the_answer(prepared) -> None:
    grounding, step = in_form(prepared, turns=1)
    model = Scripted(final("H"), final("R"), final("R"))
    grounded = asyncio.run(grounding.ground(step, model))
    assert (grounded.decision.element_id, grounded.usage.calls) == ("8635", 3)
    assert [[m.role for m in r.messages] for r in model.requests] == [["system", "user"]] * 3


def test_without_a_picture_the_groups_own_markup_is_shown(prepared) -> None:
    grounding, step = in_form(prepared, image=False)
    for question in grounding.questions(step):
        assert question.pictures == (None, None)
        assert step.page.describe_group(question.offered).html in question.turns[0]
        assert "picture" not in question.system + question.turns[0] + question.turns[1]


def test_without_a_picture_none_is_opened(prepared) -> None:
    class Unopened:
        def read(self) -> bytes:
            raise AssertionError("the screenshot was read")

    grounding, step = in_form(replace(prepared, picture=PagePicture(Unopened())), image=False)
    assert len(grounding.questions(step)) == 3


def test_a_shared_turn_1_is_asked_once_on_the_whole_page(prepared) -> None:
    grounding, step = in_form(prepared, shared_turn1=True)
    model = Scripted("the plan", final("H"), final("R"), final("R"))
    grounded = asyncio.run(grounding.ground(step, model))
    assert (grounded.decision.element_id, grounded.usage.calls) == ("8635", 4)
    assert [(r.group, r.turn) for r in model.requests] == [(0, 1), (0, 2), (1, 2), (2, 2)]
    assert {r.messages[1].picture.box for r in model.requests} == {(0, 0, 1280, 7412)}
    assert {r.messages[2].text for r in model.requests[1:]} == {"the plan"}


def test_a_final_round_goes_on_from_the_shared_turn_1(prepared) -> None:
    grounding, step = in_form(prepared, shared_turn1=True)
    model = Scripted("the plan", final("H"), final("E"), final("R"), final("B"))
    grounded = asyncio.run(grounding.ground(step, model))
    assert (grounded.decision.element_id, grounded.usage.calls) == ("9370", 5)
    assert model.requests[-1].messages[2].text == "the plan"


def test_a_shared_turn_1_states_what_it_saves(prepared) -> None:
    grounding, step = in_form(prepared, shared_turn1=True)
    grounded = asyncio.run(grounding.ground(step, Scripted("the plan", final("H"), final("R"), final("R"))))
    notes = dict(grounded.notes)
    assert (notes["shared_turn1"], notes["calls_if_per_group"]) == (1, 6)
    ours, theirs = sent(step, {"shared_turn1": True}), sent(step, {})
    assert (notes["estimated_prompt_tokens"], notes["estimated_prompt_tokens_if_per_group"]) == (ours, theirs)


def sent(prepared: PreparedStep, form: dict[str, Any]) -> int:
    """Prompt tokens by the published rules, counted request by request."""
    grounding, step = in_form(prepared, **form)
    answers = [final("H"), final("R"), final("R")]
    texts = ["the plan", *answers] if form else [text for answer in answers for text in ("the plan", answer)]
    model = Scripted(*texts)
    asyncio.run(grounding.ground(step, model))
    return sum(
        count_words(message.text) + (visual_tokens(message.picture.box.size) if message.picture else 0)
        for request in model.requests
        for message in request.messages
    )


def test_a_declined_shared_turn_1_is_the_models_answer(prepared) -> None:
    grounding, step = in_form(prepared, shared_turn1=True)
    grounded = asyncio.run(grounding.ground(step, Scripted(CallError("refused", "no", Usage(calls=1)))))
    assert (grounded.ran, grounded.decision.failure, grounded.usage.calls) == (True, "refused", 1)


def test_another_order_offers_the_same_groups_and_choices(prepared) -> None:
    usual = ChoiceGrounding(open_pack("seeact", "choice")).questions(prepared)
    grounding, step = in_form(prepared, order=Order(0, 1))
    shuffled = grounding.questions(step)
    assert {frozenset(q.offered) for q in shuffled} == {frozenset(q.offered) for q in usual}
    assert {q.offered for q in shuffled}.isdisjoint({q.offered for q in usual})
    assert [q.index for q in shuffled] == [0, 1, 2]
    texts = {node: text for q in usual for node, text in zip(q.offered, q.texts, strict=True)}
    assert all(texts[node] == text for q in shuffled for node, text in zip(q.offered, q.texts, strict=True))


def test_an_order_follows_from_seed_repeat_and_step_alone(prepared) -> None:
    def offered(order: Order) -> list[tuple[str, ...]]:
        grounding, step = in_form(prepared, order=order)
        return [question.offered for question in grounding.questions(step)]

    assert offered(Order(0, 1)) == offered(Order(0, 1))
    assert offered(Order(0, 1)) != offered(Order(0, 2))
    assert offered(Order(0, 1)) != offered(Order(1, 1))


def test_the_ideal_answers_follow_the_shuffled_letters(prepared) -> None:
    grounding, step = in_form(prepared, order=Order(3, 1))
    grounded = asyncio.run(grounding.ground(step, open_builtin("oracle")))
    assert grounded.decision.element_id == "8635"


def test_a_picture_beyond_the_limit_is_made_smaller_and_counted(prepared) -> None:
    grounding, step = in_form(prepared, max_side=2600)
    sizes = [question.pictures[0].size for question in grounding.questions(step)]
    assert sizes[0] == (1280, 2529)
    assert [max(size) for size in sizes[1:]] == [2600, 2600]
    grounded = asyncio.run(grounding.ground(step, Scripted(*["plan", final("R")] * 3)))
    assert dict(grounded.notes) == {"picture_resized": 2, "tie_at_group_cut": 1}


def test_the_usual_form_leaves_no_note_but_of_the_groups(prepared) -> None:
    """Two elements of the real page are of one height, one on either side of a cut."""
    grounding, step = in_form(prepared)
    grounded = asyncio.run(grounding.ground(step, Scripted(*["plan", final("R")] * 3)))
    assert (dict(grounded.notes), grounded.point) == ({"tie_at_group_cut": 1}, None)


@pytest.mark.parametrize(
    ("boxes", "size", "reachable"),
    [
        ([Box(10, 10, 50, 20)] * 3, 2, True),
        # alone in the last group
        ([Box(10, 90, 50, 20), Box(10, 10, 50, 20), Box(10, 10, 50, 20)], 2, False),
        ([Box(10, 90, 50, 20), Box(10, 10, 50, 20), Box(10, 10, 50, 20)], 17, True),
        # in a group far below the page
        ([FAR_BELOW, FAR_BELOW, Box(10, 10, 50, 20), Box(10, 10, 50, 20)], 2, False),
    ],
)
def test_a_target_is_in_reach_where_a_group_that_is_asked_about_holds_it(
    boxes: list[Box], size: int, reachable: bool
) -> None:
    assert ChoiceGrounding(open_pack("seeact", "choice"), size).reaches(on_page(1000, *boxes)) is reachable
