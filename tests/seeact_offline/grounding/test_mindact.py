"""MindAct's elimination: which questions are asked in which words, and what the answers come to."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import GroundingResult, Order, PreparedStep, QuestionOptions
from seeact_offline.grounding.elimination import (
    OUT_OF_RANGE,
    RULES,
    Elimination,
    GroupAnswer,
    OutOfRange,
    Rule,
    first_groups,
)
from seeact_offline.grounding.mindact import (
    STYLES,
    Demonstration,
    EliminationOptions,
    MindactGrounding,
    answer_text,
    layout_of,
    question_text,
    read_demonstrations,
)
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.merging import Decision
from seeact_offline.models.builtin import open_builtin
from seeact_offline.models.client import WAITING
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture, group_crop
from seeact_offline.prompting import PromptPack, load_pack
from seeact_offline.records import (
    CallError,
    Completion,
    InputError,
    Model,
    Operation,
    PromptError,
    RankedCandidate,
    Request,
    Step,
    Usage,
)
from seeact_offline.replies.elimination_answer import LAYOUTS, Layout
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.folder import RunFolder
from seeact_offline.sample import DATA
from tests.chat_server import ChatServer
from tests.pages import synthetic_rows, write_parquet
from tests.reference.elimination import Outcome, eliminate
from tests.scripted import Scripted
from tests.seeact_offline.conftest import Cli, Sample, away, cli, contents, make_sample, read_json, read_lines
from tests.tiny_models import save_llama, save_llava, save_t5

__all__ = ["away", "cli"]
CHAT_REPLIES = (
    *(f"Answer: {letter}.\nAction: CLICK" for letter in "AABCDEF"), "Answer: E.\nAction: TYPE\nValue: New York",
    "Answer: F.\nAction: SELECT\nValue: two", "Answer: B.", "Answer: G.", "I would rather not say.", "Answer: C.\nAction: TYPE",
)  # fmt: skip
T5_REPLIES = (
    *(f"{letter}.\nAction: CLICK" for letter in "AABCDEF"), "F.\nAction: SELECT\nValue: two", "G.\nAction: CLICK", "@", "?.",
    "=\nAction: CLICK", "<", "1", "b.\nAction: TYPE\nValue: x", "Answer: B.",
)  # fmt: skip
REPLIES: dict[Layout, tuple[str, ...]] = {"chat": CHAT_REPLIES, "seq2seq": T5_REPLIES}


class Answering(Model):
    """A model that answers with what a function says to the text of the last message."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return Completion(self._answer(request.messages[-1].text), Usage(calls=1))


def at_random(seed: object, replies: Sequence[str]) -> Callable[[str], str]:
    """One of the replies, which the seed and the question decide."""
    return lambda text: replies[hashlib.sha256(f"{seed}\n{text}".encode()).digest()[0] % len(replies)]


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Step:
    """One of a page with 60 candidates."""
    path = tmp_path_factory.mktemp("rows") / "data" / "test_task-00000-of-00001.parquet"
    write_parquet(synthetic_rows(1, 3, 60, seed=8), path)
    return list(load_steps(path.parents[1], "cross_task"))[1]


@pytest.fixture(scope="module")
def page(step: Step) -> Page:
    return Page(step.cleaned_html)


@pytest.fixture
def prepared(step: Step, page: Page) -> PreparedStep:
    return ranked(step, page, [c.backend_node_id for c in step.candidates][:13])


def one_by_one(said: Iterator[str]) -> Callable[[list[str]], str]:
    return lambda options: next(said)


def said_to(texts: Mapping[tuple[str, ...], str]) -> Callable[[list[str]], str]:
    """The text that these options were answered with."""
    return lambda options: texts[tuple(options)]


def ranked(step: Step, page: Page, ids: Sequence[str]) -> PreparedStep:
    places = tuple(RankedCandidate(node, 1.0, rank) for rank, node in enumerate(ids))
    assert step.screenshot is not None
    return PreparedStep(step, page, PagePicture(step.screenshot), places)


def packed(layout: Layout = "chat") -> PromptPack:
    return open_pack("seeact", "mindact", variant=layout)


def grounding(order: Order | None = None, **options: Any) -> MindactGrounding:
    layout = options.get("layout", "chat")
    shown = read_demonstrations(None)[0] if layout == "chat" else ()
    return MindactGrounding(packed(layout), shown, EliminationOptions(**options), QuestionOptions(order=order))


def ground(prepared: PreparedStep, model: Any, **options: Any) -> GroundingResult:
    return asyncio.run(grounding(**options).ground(prepared, model))


def asked_ids(grounded: GroundingResult) -> list[set[str]]:
    return [set(group.offered) for group in grounded.groups]


# --- against the slow re-implementation ------------------------------------------------------------------------------


@pytest.mark.parametrize(("layout", "rule", "out_of_range"), list(product(LAYOUTS, RULES, OUT_OF_RANGE)))
def test_queue_calls_and_result_are_those_of_the_slow_elimination(
    step: Step, page: Page, layout: Layout, rule: Rule, out_of_range: OutOfRange
) -> None:
    """300 cases for each of the eight ways; with them all, 2,400."""
    asyncio.run(_compare(step, page, layout, rule, out_of_range))


async def _compare(step: Step, page: Page, layout: Layout, rule: Rule, out_of_range: OutOfRange) -> None:
    everyone = [candidate.backend_node_id for candidate in step.candidates]
    for case in range(300):
        random = Random(f"{layout}/{rule}/{out_of_range}/{case}")
        order, size = Order(case, 1), random.choice((2, 3, 5, 5, 5))
        prepared = ranked(step, page, random.sample(everyone, random.choice((1, 2, 5, 6, 11, random.randint(1, 30)))))
        options = EliminationOptions(layout, rule, out_of_range, size, ask_all=True)
        own = MindactGrounding(packed(layout), (), options, QuestionOptions(order=order))
        answer = at_random(case, random.sample(REPLIES[layout], random.randint(1, len(REPLIES[layout]))))
        model = Answering(answer)
        grounded = await own.ground(prepared, model)
        texts = {group.offered: group.replies[0] for group in grounded.groups}
        wanted = eliminate(
            own.queue(prepared),
            lambda ids: sorted(ids, key=page.position),
            said_to(texts),
            chat=layout == "chat",
            resets=out_of_range == "reset",
            corrected=rule == "corrected",
            size=size,
        )
        assert asked_ids(grounded) == [set(group) for group in wanted.calls]
        assert [request.group for request in model.requests] == list(range(len(wanted.calls)))
        said = grounded.decision
        assert (said.element_id, said.op, said.value) == (wanted.element, wanted.op, wanted.value)


@pytest.mark.parametrize("out_of_range", OUT_OF_RANGE)
def test_the_queue_alone_is_that_of_the_slow_elimination_for_any_answers(out_of_range: OutOfRange) -> None:
    """4,000 queues of up to 60, with a pick, none, or a letter beyond at random."""
    for case in range(4000):
        random = Random(f"{out_of_range}/{case}")
        ids, rule, weights = [str(i) for i in range(random.randint(0, 60))], random.choice(RULES), random.random()
        elimination = Elimination(ids, 5, rule, out_of_range)
        groups, letters, any_pick = [], [], False
        while group := elimination.next_group():
            groups.append(list(group))
            place = random.randrange(len(group) + 2) if random.random() < weights else 0
            letters.append("ABCDEFG"[place])
            beyond, any_pick = place > len(group), any_pick or 0 < place <= len(group)
            elimination.record(GroupAnswer(group[place - 1] if 0 < place <= len(group) else None, beyond))
        wanted = eliminate(
            ids, list, one_by_one(iter(letters)), chat=False, resets=out_of_range == "reset",
            corrected=rule == "corrected",
        )  # fmt: skip
        assert groups == wanted.calls
        winner = elimination.winner
        picked = None if winner is None else groups[winner]["BCDEF".index(letters[winner])]
        assert picked == wanted.element
        # so a winner that was dropped never stands beside a candidate that was not asked about
        assert elimination.lone is None or not any_pick


# --- the queue -------------------------------------------------------------------------------------------------------


def heard(elimination: Elimination, *answers: int | str | None) -> Elimination:
    """After these answers: a place in the group, None for none of them, `beyond` for a letter that was not offered."""
    for answer in answers:
        group = elimination.next_group()
        elimination.record(GroupAnswer(group[answer] if isinstance(answer, int) else None, beyond=answer == "beyond"))
    return elimination


def test_fifty_are_asked_about_in_ten_groups_of_five_and_then_the_picks() -> None:
    elimination = Elimination([str(i) for i in range(50)])
    groups = []
    while group := elimination.next_group():
        groups.append(group)
        heard(elimination, 0)
    assert [len(group) for group in groups] == [5] * 12 + [2]
    assert groups[10] == ("0", "5", "10", "15", "20")


BEYOND = "beyond"
# in nine by three the picks of two groups wait; then three of the third group are dropped, and the pick of the second is left
LAST_DROPPED = (None, 0, BEYOND)


@pytest.mark.parametrize(
    ("ids", "options", "answers", "asked", "lone", "winner", "taken_back"),
    [
        ("a", {}, (), (), "a", None, False),
        ("abcdef", {}, (None,), (), "f", None, False),
        ("abcdef", {"rule": "corrected"}, (None,), ("f",), "f", None, False),
        ("abcdef", {"rule": "corrected"}, (None, 0), (), None, 1, False),
        ("abcdefghi", {"size": 3, "out_of_range": "reset"}, LAST_DROPPED, (), None, None, True),
        ("abcdefghi", {"size": 3, "out_of_range": "keep"}, LAST_DROPPED, (), None, 1, False),
        ("abcdefghi", {"size": 3, "out_of_range": "reset", "rule": "corrected"}, LAST_DROPPED, (), None, 1, False),
        # a winner that a later question drops is no answer
        ("abcdef", {}, (2, None), (), None, None, False),
    ],
)
def test_the_end_of_an_elimination(ids: str, options: Any, answers: Any, asked, lone, winner, taken_back) -> None:
    left = heard(Elimination(list(ids), **options), *answers)
    assert (left.next_group(), left.lone, left.winner, left.taken_back) == (asked, lone, winner, taken_back)


def test_a_pick_that_was_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match="z was not offered"):
        Elimination(list("abc")).record(GroupAnswer("z"))


def test_groups_of_one_would_never_end_and_are_refused() -> None:
    with pytest.raises(ValueError, match="2 or more"):
        Elimination(list("abc"), size=1)


@pytest.mark.parametrize(("n", "sizes"), [(0, []), (1, []), (2, [2]), (5, [5]), (9, [5]), (12, [5, 5])])
def test_groups_that_depend_on_no_answer_are_known_beforehand(n: int, sizes: list[int]) -> None:
    ids = [str(i) for i in range(n)]
    groups = first_groups(ids)
    assert [len(group) for group in groups] == sizes
    assert [node for group in groups for node in group] == ids[: sum(sizes)]


# --- what a model is asked -------------------------------------------------------------------------------------------


def test_a_chat_model_sees_a_system_line_three_examples_and_the_question(prepared: PreparedStep) -> None:
    model = Answering(lambda text: "Answer: A.")
    ground(prepared, model)
    messages = model.requests[0].messages
    assert [m.role for m in messages] == ["system", *["user", "assistant"] * 3, "user"]
    assert all(message.picture is None for message in messages)
    assert "\n" not in messages[0].text
    answers = [message.text for message in messages if message.role == "assistant"]
    assert answers == ["Answer: D.\nAction: SELECT\nValue: Text message", "Answer: A.", "Answer: C.\nAction: CLICK"]
    shown = [message.text for message in messages if message.role == "user"]
    assert all(text.startswith("'''\n<html") and "\n'''\n" in text for text in shown)
    assert all(text.count("\nD. <") == 1 and "\nE. " not in text for text in shown[:3])


def test_a_question_holds_markup_task_five_actions_and_the_options_after_none_of_them(prepared: PreparedStep) -> None:
    many = tuple(f"[button]  number {n} -> CLICK" for n in range(8))
    prepared = replace(prepared, step=replace(prepared.step, history=many))
    (question, second) = grounding().questions(prepared)
    group = prepared.page.describe_group(grounding().queue(prepared)[:5], "brackets")
    options = [f"{letter}. {choice.text}" for letter, choice in zip("BCDEF", group.choices, strict=True)]
    (text,) = question.turns
    assert question.offered == tuple(choice.backend_node_id for choice in group.choices)
    assert f"'''\n{group.html}\n'''\n\n" in text
    assert f"\nTask: {prepared.step.task}\n" in text
    assert "\n".join(many[3:]) in text
    assert many[2] not in text
    assert "\n".join(["\n\nA. None of the above", *options]) + "\n" in text
    assert set(second.offered) == set(grounding().queue(prepared)[5:10])


def test_without_previous_actions_the_question_says_none(prepared: PreparedStep) -> None:
    first = replace(prepared, step=replace(prepared.step, history=()))
    assert "\nNone\n" in grounding().questions(first)[0].turns[0]


def test_a_text_to_text_model_sees_one_message_in_parentheses(prepared: PreparedStep) -> None:
    model = Answering(lambda text: "A.")
    ground(prepared, model, layout="seq2seq")
    (message,) = model.requests[0].messages
    assert message.role == "user"
    assert message.text.startswith("(html")
    assert "\nB. (" in message.text
    assert STYLES["seq2seq"] == "parentheses"


def test_a_question_shows_the_part_of_the_page_that_it_is_about_where_that_is_asked_for(prepared: PreparedStep) -> None:
    asked = grounding(layout="seq2seq", picture=True)
    boxes = {c.backend_node_id: c.box for c in prepared.step.candidates}
    for question in asked.questions(prepared):
        (shown,) = question.pictures
        around = [box for node in question.offered if (box := boxes[node]) is not None]
        wanted = prepared.picture.crop(group_crop(around, prepared.picture.size), asked.form.max_side)
        assert shown is not None
        assert shown.key == wanted.key
    assert {q.pictures for q in grounding(layout="seq2seq").questions(prepared)} == {(None,)}


def test_a_candidate_without_a_box_fails_a_step_whose_groups_are_shown(prepared: PreparedStep) -> None:
    first, *others = prepared.step.candidates
    bare = replace(prepared, step=replace(prepared.step, candidates=(replace(first, box=None), *others)))
    model = Answering(lambda text: "A.")
    grounded = ground(bare, model, layout="seq2seq", picture=True, ask_all=True)
    assert (grounded.ran, grounded.decision.failure) == (False, "missing_box")
    assert ground(bare, model, layout="seq2seq", ask_all=True).ran


@pytest.mark.parametrize("layout", LAYOUTS)
def test_questions_show_no_trace_of_the_truth(step: Step, page: Page, layout: Layout) -> None:
    ids = [c.backend_node_id for c in step.candidates][:13]
    other = replace(step, candidates=tuple(replace(c, is_positive=not c.is_positive) for c in step.candidates))
    other = replace(other, operation=Operation("SELECT", "something else"))
    texts = [[q.turns for q in grounding(layout=layout).questions(ranked(one, page, ids))] for one in (step, other)]
    assert texts[0] == texts[1]


# --- order -----------------------------------------------------------------------------------------------------------


def test_the_order_follows_from_seed_repeat_and_step_alone(prepared: PreparedStep) -> None:
    queues = [grounding(Order(seed, repeat)).queue(prepared) for seed, repeat in ((0, 0), (0, 1), (1, 0), (0, 0))]
    assert queues[0] == queues[3]
    assert len(set(map(tuple, queues))) == 3
    assert all(sorted(queue) == sorted(queues[0]) for queue in queues)
    other = replace(prepared, step=replace(prepared.step, action_uid="another"))
    assert grounding().queue(other) != grounding().queue(prepared)


def test_the_row_s_order_of_candidates_does_not_matter(step: Step, page: Page) -> None:
    ids = [c.backend_node_id for c in step.candidates][:13]
    turned = replace(step, candidates=step.candidates[::-1])
    assert grounding().queue(ranked(step, page, ids)) == grounding().queue(ranked(turned, page, ids))


# --- what answers come to --------------------------------------------------------------------------------------------


def test_operation_and_value_are_those_of_the_last_winning_answer(prepared: PreparedStep) -> None:
    first = "Answer: B.\nAction: TYPE\nValue: early"
    model = Scripted(first, first, "Answer: C.\nAction: SELECT\nValue: late")
    grounded = ground(prepared, model)
    assert (grounded.decision.op, grounded.decision.value) == ("SELECT", "late")
    assert grounded.decision.element_id == grounded.groups[2].offered[1]
    assert grounded.usage.calls == 3


@pytest.mark.parametrize(("strict", "option"), [(False, 1), (True, 0)])
def test_a_letter_in_the_thoughts_counts_in_a_strict_reading_alone(
    strict: bool, option: int, prepared: PreparedStep
) -> None:
    text = "<think>Answer: B\nAction: CLICK</think>\nAnswer: C\nAction: CLICK"
    grounded = ground(prepared, Scripted(text, text), strict=strict)
    assert grounded.groups[0].element_id == grounded.groups[0].offered[option]


def test_a_model_that_declines_picks_none_of_the_group(prepared: PreparedStep) -> None:
    pick = "Answer: B.\nAction: CLICK"
    model = Scripted(CallError("refused", "no"), pick, pick)
    grounded = ground(prepared, model)
    assert [group.failure for group in grounded.groups] == ["refused", None, None]
    assert set(grounded.groups[2].offered) == {*grounding().queue(prepared)[10:], grounded.groups[1].element_id}
    assert grounded.ran
    assert grounded.decision.failure is None


def test_without_a_pick_there_is_neither_element_nor_operation(prepared: PreparedStep) -> None:
    grounded = ground(prepared, Answering(lambda text: "Answer: A.\nAction: CLICK"))
    assert (grounded.decision, len(grounded.groups)) == (Decision(None, "", ""), 3)


def test_a_call_without_an_answer_fails_the_step(prepared: PreparedStep) -> None:
    grounded = ground(prepared, Scripted("Answer: A.", CallError("timeout", "too slow")))
    assert (grounded.ran, grounded.decision.failure) == (False, "timeout")


def test_the_first_groups_are_all_asked_before_a_reply_is_waited_for(prepared: PreparedStep) -> None:
    still = CallError(WAITING, "its reply is still to come")
    model = Scripted("Answer: A.", still, "Answer: A.")
    grounded = ground(prepared, model)
    assert [request.group for request in model.requests] == [0, 1]
    assert (grounded.ran, grounded.decision.failure) == (False, WAITING)


def test_each_edge_case_is_counted(step: Step, page: Page) -> None:
    ids = [c.backend_node_id for c in step.candidates]
    none, beyond = "A.", "G.\nAction: CLICK"
    t5 = {"layout": "seq2seq"}
    lone = ground(ranked(step, page, ids[:6]), Answering(lambda text: none), **t5)
    assert dict(lone.notes) == {"lone_candidate_unasked": 1, "elimination_rules_part": 1}
    back = ground(ranked(step, page, ids[:5]), Scripted("@.\nAction: CLICK"), **t5)
    assert dict(back.notes) == {"letter_counted_back": 1, "elimination_rules_part": 1}
    answers = [none, "B.\nAction: CLICK", beyond]
    kept = ground(ranked(step, page, ids[:9]), Scripted(*answers), **t5, size=3)
    assert dict(kept.notes) == {"letter_beyond_choices": 1}
    taken = ground(ranked(step, page, ids[:9]), Scripted(*answers), **t5, size=3, out_of_range="reset")
    assert dict(taken.notes) == {"letter_beyond_choices": 1, "winner_taken_back": 1, "elimination_rules_part": 1}


def test_the_corrected_elimination_says_where_the_released_one_would_have_ended_otherwise(
    step: Step, page: Page
) -> None:
    ids = [c.backend_node_id for c in step.candidates][:6]
    picks = ground(ranked(step, page, ids), Scripted("Answer: A.", "Answer: B.\nAction: CLICK"), rule="corrected")
    assert picks.decision.element_id is not None
    assert dict(picks.notes) == {"elimination_rules_part": 1}
    drops = ground(ranked(step, page, ids), Scripted("Answer: A.", "Answer: A."), rule="corrected")
    assert drops.notes == {}


def test_a_step_whose_target_is_not_ranked_is_not_asked_unless_all_are(step: Step, page: Page) -> None:
    ids = [c.backend_node_id for c in step.candidates if not c.is_positive][:10]
    spared = ground(ranked(step, page, ids), Scripted())
    assert grounding().reaches(ranked(step, page, ids)) is False
    assert (spared.ran, spared.usage.calls, spared.groups) == (True, 0, ())
    assert dict(spared.notes) == {"positive_not_ranked": 1}
    asked = ground(ranked(step, page, ids), Answering(lambda text: "Answer: B.\nAction: CLICK"), ask_all=True)
    assert asked.decision.element_id is not None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 2, 6, 11, 30])
def test_one_who_knows_the_truth_is_right_exactly_where_that_can_be(
    step: Step, page: Page, layout: Layout, n: int
) -> None:
    everyone = [c.backend_node_id for c in step.candidates]
    for rule in RULES:
        prepared = ranked(step, page, everyone[:n])
        grounded = ground(prepared, open_builtin("oracle"), layout=layout, rule=rule)
        right = grounded.decision.element_id in step.truth.positives
        assert right == grounding(layout=layout, rule=rule).reaches(prepared)
        assert not right or (grounded.decision.op, grounded.decision.value) == (step.operation.op, step.operation.value)
        assert right or (n in (1, 6, 11) and rule == "released")


# --- worked examples -------------------------------------------------------------------------------------------------


def test_our_examples_are_of_no_task_of_a_test_split() -> None:
    shown, _ = read_demonstrations(None)
    tasks = {
        task
        for path in (DATA / "data").glob("test_*.parquet")
        for task in pq.read_table(path, columns=["confirmed_task"])["confirmed_task"].to_pylist()
    }
    assert len(tasks) > 90
    assert [(d.op, d.answer == "A", len(d.choices)) for d in shown] == [("SELECT", False, 3), ("", True, 3), ("CLICK", False, 3)]  # fmt: skip
    assert not {d.task for d in shown} & tasks


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "an object"),
        ('{"demonstrations": [{"html": "<a/>"}]}', "task"),
        ('{"demonstrations": [{"html": "", "task": "", "history": [], "choices": ["x"], "answer": "C"}]}', "A, B"),
        ('{"demonstrations": [{"html": "", "task": "", "history": [], "choices": ["x"], "answer": "B"}]}', "CLICK"),
        ("{", "JSON"),
        (None, "cannot read"),
    ],
)
def test_a_file_of_examples_that_cannot_be_used_is_refused_in_one_sentence(
    tmp_path: Path, content: str | None, said: str
) -> None:
    path = tmp_path / "shown.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=said) as caught:
        read_demonstrations(path)
    assert caught.value.argument == "demonstrations"
    assert str(path) in str(caught.value)


def test_an_example_answers_in_the_words_of_the_layout() -> None:
    shown = Demonstration("<a/>", "T", (), ("x", "y"), "C", "TYPE", "two\nlines")
    assert shown.messages(packed(), "chat")[1].text == "Answer: C.\nAction: TYPE\nValue: two lines"
    assert answer_text("seq2seq", None, Operation("CLICK")) == "A."
    assert answer_text("seq2seq", 0, Operation("TYPE", "two")) == "B.\nAction: TYPE\nValue: two"
    assert answer_text("chat", 0, Operation("CLICK")) == "Answer: B.\nAction: CLICK"
    # a line feed at the end, as released
    assert answer_text("seq2seq", 0, Operation("CLICK")) == "B.\nAction: CLICK\n"


def test_an_example_ends_a_line_feed_before_the_question_would() -> None:
    shown = Demonstration("<a/>", "T", (), ("x", "y"), "A")
    pack = replace(packed(), turn1="{{html}}\n{{choices}}")
    assert question_text(pack, shown.html, shown.choices, "T", ()) == "<a/>\nB. x\nC. y\n"
    assert shown.messages(pack, "chat")[0].text == "<a/>\nB. x\nC. y"


def test_a_pack_without_a_question_of_its_own_is_refused() -> None:
    other = load_pack("seeact", "choice", None)
    with pytest.raises(PromptError, match=r"mindact\.turn1\.chat\.txt"):
        MindactGrounding(other)


# --- through the command ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Three tasks of three steps, 40 elements a page."""
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 3, 40, seed=6)))


def words(sample: Sample, out: Path, *more: object) -> list[object]:
    return ["eval", *sample.words, *"--grounding mindact --top-k 27 --protocol mindact --out".split(), out, *more]


def question_of(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--out-of-range", "keep"), ("--elimination", "corrected"), ("--group-size", 3)])
def test_a_server_that_answers_at_random_is_eliminated_with_as_the_slow_one_does(
    cli: Cli, sample: Sample, tmp_path: Path, more: tuple[object, ...]
) -> None:
    answer = at_random("server", CHAT_REPLIES)
    with ChatServer(lambda body: answer(question_of(body))) as server:
        asked = ("--model", "openai/test", "--base-url", server.base_url, "--cache", "off", "--ask-all")
        outcome = cli(*words(sample, tmp_path / "run", *asked, *more))
        assert outcome.status == 0, outcome.err
        n_asked = server.n_completed
    predictions = RunFolder(tmp_path / "run").load()
    wanted = {key: slow(sample, key, p.ranked, p.groups, more) for key, p in predictions.items()}
    assert n_asked == sum(len(outcome.calls) for outcome in wanted.values())
    for key, prediction in predictions.items():
        assert asked_ids(GroundingResult(prediction.groups, prediction, prediction.usage)) == [set(c) for c in wanted[key].calls]  # type: ignore[arg-type]  # fmt: skip
        said = (prediction.element_id, prediction.op, prediction.value)
        assert said == (wanted[key].element, wanted[key].op, wanted[key].value)
    assert {p.element_id is None for p in predictions.values()} == {True, False}
    for row in read_lines(tmp_path / "run" / "steps.jsonl"):
        if row["predicted"]["element_id"] is None:
            assert (row["element"], row["operation_f1"], row["success"]) == (0.0, 0.0, 0.0)


def slow(sample: Sample, key: Any, ranked_ids: Sequence[str], groups: Any, more: tuple[object, ...]) -> Outcome:
    """What the slow elimination makes of the recorded replies."""
    step = next(step for step in load_steps(sample.dataset, "cross_task") if step.key == key)
    page, texts = Page(step.cleaned_html), {group.offered: group.replies[0] for group in groups}
    return eliminate(
        Order(0, 0).shuffled(list(ranked_ids), key, "candidates"),
        lambda ids: sorted(ids, key=page.position),
        said_to(texts),
        chat=True,
        resets="keep" not in more,
        corrected="corrected" in more,
        size=3 if "--group-size" in more else 5,
    )


def test_the_server_gets_the_examples_as_messages(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with ChatServer(lambda body: "Answer: A.") as server:
        cli(*words(sample, tmp_path / "run", "--model", "openai/test", "--base-url", server.base_url, "--limit", 1))
        body = server.requests[0]
    assert [message["role"] for message in body["messages"]] == ["system", *["user", "assistant"] * 3, "user"]
    assert body["temperature"] == 0


def test_a_user_s_examples_take_the_place_of_ours(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    own = {"html": "<p id=0 />", "task": "Own task", "history": [], "choices": ["<p id=0 />"], "answer": "B", "op": "CLICK"}  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps({"demonstrations": [own]}))
    with ChatServer(lambda body: "Answer: A.") as server:
        asked = ("--model", "openai/test", "--base-url", server.base_url, "--limit", 1)
        cli(*words(sample, tmp_path / "run", *asked, "--demonstrations", tmp_path / "own.json"))
        messages = server.requests[0]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert "Own task" in json.dumps(messages[1])


def test_the_oracle_reaches_exactly_the_ceiling(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    for name in ("mindact", "seeact"):
        out = tmp_path / name
        outcome = cli(*words(sample, out, "--model", "builtin/oracle", "--protocol", name))
        assert outcome.status == 0, outcome.err
        results = read_json(out / "results.json")
        assert results["element_accuracy"] == results["ceiling"] == results["step_success_rate"]
        assert 0 < results["ceiling"]["macro"] < 1
    assert (results["merge"], results["group_size"], results["merge_spread"]) == (None, 5, {})


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_repeats_other_orders(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    answer = at_random("repeats", CHAT_REPLIES)
    with ChatServer(lambda body: answer(question_of(body))) as server:
        asked = ("--model", "openai/test", "--base-url", server.base_url, "--cache", "off")
        for name, concurrency in (("one", 1), ("two", 7)):
            assert (
                cli(*words(sample, tmp_path / name, *asked, "--concurrency", concurrency, "--repeats", 2)).status == 0
            )
    runs = [tmp_path / name for name in ("one", "two")]
    assert contents(runs[0], ["predictions.jsonl"]) == contents(runs[1], ["predictions.jsonl"])
    orders = [runs[0], runs[0] / "shuffled-1", runs[0] / "shuffled-2"]
    first = [read_lines(folder / "predictions.jsonl")[0]["groups"][0]["offered"] for folder in orders]
    assert len({frozenset(offered) for offered in first}) == 3
    assert read_json(runs[0] / "results.json")["shuffle_spread"]


def test_another_seed_is_another_order(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    for seed in (0, 1):
        asked = ("--model", "builtin/oracle", "--limit", 1, "--seed", seed)
        assert cli(*words(sample, tmp_path / str(seed), *asked)).status == 0
    first = [read_lines(tmp_path / str(seed) / "predictions.jsonl")[0]["groups"][0]["offered"] for seed in (0, 1)]
    assert set(first[0]) != set(first[1])


def test_a_model_that_turns_text_into_text_is_asked_so(sample: Sample) -> None:
    class T5:
        is_text_to_text = True

        async def complete(self, request: Request) -> Completion:
            assert [message.role for message in request.messages] == ["user"]
            return Completion("B.\nAction: CLICK")

    run = evaluate(dataset=sample.dataset, scores=sample.scores, grounding="mindact", model=T5(), limit=1)
    assert (run.results["layout"], run.results["out_of_range"]) == ("seq2seq", "keep")


def test_a_checkpoint_says_itself_which_it_is(tmp_path: Path) -> None:
    layouts = [layout_of(f"hf/{save(tmp_path / save.__name__)}") for save in (save_t5, save_llama, save_llava)]
    assert layouts == ["seq2seq", "chat", "chat"]
    assert layout_of("openai/gpt-4o") == "chat"


def test_the_lexical_baseline_reads_the_question_and_answers_in_its_form(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    assert cli(*words(sample, tmp_path / "run", "--model", "builtin/lexical")).status == 0
    replies = [group["replies"][0] for row in read_lines(tmp_path / "run" / "predictions.jsonl") for group in row["groups"]]  # fmt: skip
    assert all(reply.startswith("Answer: ") for reply in replies)
    assert read_json(tmp_path / "run" / "results.json")["element_accuracy"]["macro"] > 0.2


def test_a_run_goes_on_where_it_stopped_and_asks_nothing_twice(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    answer = at_random("resumed", CHAT_REPLIES)
    with ChatServer(lambda body: answer(question_of(body))) as server:
        asked = ("--model", "openai/test", "--base-url", server.base_url)
        assert cli(*words(sample, tmp_path / "run", *asked)).status == 0
        n_asked, path = server.n_completed, tmp_path / "run" / "predictions.jsonl"
        before = path.read_text()
        lines = before.splitlines(keepends=True)
        path.write_text("".join(lines[:4]) + lines[4][:30])
        assert cli(*words(sample, tmp_path / "run", *asked)).status == 0
        assert server.n_completed == n_asked
    assert path.read_text() == before


def test_the_corrected_elimination_pays_for_its_last_questions_alone(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    answer = at_random("compared", ("Answer: A.",) * 9 + ("Answer: C.\nAction: CLICK",))
    with ChatServer(lambda body: answer(question_of(body))) as server:
        model = ("--model", "openai/test", "--base-url", server.base_url, "--cache", tmp_path)
        asked = (*model, "--top-k", 6, "--ask-all")
        assert cli(*words(sample, tmp_path / "released", *asked)).status == 0
        n_released = server.n_completed
        assert cli(*words(sample, tmp_path / "corrected", *asked, "--elimination", "corrected")).status == 0
        n_more = server.n_completed - n_released
    notes = read_json(tmp_path / "released" / "results.json")["notes"]
    assert n_more == notes["lone_candidate_unasked"] > 0
    outcome = cli("compare", tmp_path / "released", tmp_path / "corrected")
    assert outcome.status == 0, outcome.err
    assert "Element Accuracy" in outcome.out


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ("--batching shared-turn1", "--batching"),
        ("--turns 1", "--turns"),
        ("--group-size 1", "--group-size"),
        ("--layout seq2seq --demonstrations x.json", "--demonstrations"),
        ("--demonstrations nowhere.json", "nowhere.json"),
        ("--out-of-range forget", "--out-of-range"),
        ("--group-picture --no-image", "--no-image"),
        ("--grounding choice --elimination corrected", "--elimination"),
    ],
)
def test_what_does_not_go_together_is_refused(cli: Cli, sample: Sample, tmp_path: Path, more: str, option: str) -> None:
    outcome = cli(*words(sample, tmp_path / "run", *more.split()))
    assert option in outcome.error
    assert not (tmp_path / "run").exists()


def test_show_prints_the_questions_that_depend_on_no_answer(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    asked = ["show", *sample.words, "--grounding", "mindact", "--top-k", 27, "--json", "--out", tmp_path]
    outcome = cli(*asked)
    assert outcome.status == 0, outcome.err
    shown = json.loads(outcome.out)
    assert [len(group["choices"]) for group in shown["groups"]] == [5] * 5
    assert all(group["image"] is None for group in shown["groups"])
    assert [one["role"] for one in shown["groups"][0]["examples"]] == ["user", "assistant"] * 3
    assert "-- example, assistant\nAnswer: A.\n" in cli(*[word for word in asked if word != "--json"]).out
