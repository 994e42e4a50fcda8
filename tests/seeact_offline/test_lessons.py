"""What a small ranker is taught: features of pairs, click rates, trees over them, and lessons from pages real and mixed."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranker.pairs import PairGroup
from seeact_offline.ranking import click_rates, lessons
from seeact_offline.ranking.click_rates import ClickRates
from seeact_offline.ranking.lessons import TaughtStep, with_lessons
from seeact_offline.ranking.pair_features import NAMES, TAGS, pair_features, word_weights
from seeact_offline.ranking.placed_texts import split_text
from seeact_offline.ranking.teacher import Judged, Teacher
from tests.together import run_together

QUERY = (
    "task is: Book 2 rooms in Norwich from 21 March\n"
    "Previous actions: [textbox]  Where to? -> TYPE: Norwich; [button]  Search -> CLICK"
)


def features(text: str, query: str = QUERY) -> dict[str, float]:
    found = pair_features(query, [text], lambda stem: 0.5)
    return dict(zip(NAMES, found[0].tolist(), strict=True))


def test_features_are_one_row_a_text_in_the_order_given() -> None:
    texts = ["ancestors: /html\ntarget: (a id=0 Rooms )", "ancestors: /html\ntarget: (p id=0 Norwich )"]
    both = pair_features(QUERY, [*texts, texts[0]], lambda stem: 0.5)
    assert both.shape == (3, len(NAMES))
    assert both.dtype == np.float32
    assert np.array_equal(both[0], both[2])
    assert not np.array_equal(both[0], both[1])


def test_no_texts_have_no_rows() -> None:
    assert len(pair_features(QUERY, [], lambda stem: 0.5)) == 0


def test_shared_words_are_counted_by_their_stems_without_the_commonest() -> None:
    found = features("ancestors: /html\ntarget: (a id=0 Marching in rooms from 95 )")
    assert found["shared"] == 2
    assert found["shared_weight"] == 0.5 * 2


def test_a_word_that_an_action_had_to_do_with_is_not_open_any_more() -> None:
    found = features("ancestors: /html\ntarget: (div id=0 Norwich )")
    assert (found["shared"], found["open_shared"]) == (1, 0)


def test_a_number_of_the_task_is_told_from_another() -> None:
    assert features("ancestors: /html\ntarget: (td id=0 21 )")["shared_number"] == 1
    other = features("ancestors: /html\ntarget: (td id=0 22 )")
    assert (other["shared_number"], other["is_number"]) == (0, 1)


def test_what_is_still_to_do_has_a_place_in_the_task() -> None:
    found = features("ancestors: /html\ntarget: (td id=0 21 rooms left )")
    assert found["open_first"] == 2 / 8, "`rooms`"
    assert found["open_from_reached"] == 2, "`21`, from `Norwich`, which was typed"
    assert found["open_number"] == 1
    assert found["open_of_text"] == pytest.approx(2 / 3)


def test_what_is_done_has_no_place_any_more() -> None:
    done, never = (features(f"ancestors: /html\ntarget: (li id=0 {word} )") for word in ("Norwich", "Leeds"))
    for name in ("open_first", "open_from_reached", "open_number", "open_of_text", "open_best"):
        assert done[name] == never[name]
    assert done["open_first"] > 1


def test_how_much_is_left_falls_with_what_is_done() -> None:
    button = "ancestors: /html\ntarget: (button id=0 Go )"
    before = features(button, QUERY.partition("[textbox]")[0])
    assert (before["task_open"], before["numbers_open"]) == (1, 2)
    assert features(button)["task_open"] == pytest.approx(5 / 6)


def test_numbers_around_are_those_of_a_calendar() -> None:
    assert features("ancestors: /html/td 20/td 22/td May 23\ntarget: (td id=0 21 )")["numbers_around"] == 2


def test_what_was_typed_and_acted_on_last_is_found_in_text_and_surroundings() -> None:
    found = features("ancestors: /html/input Where to\ntarget: (li id=0 option Norwich )")
    assert found["typed_in_text"] == 1
    assert found["past_2_around"] == 0.5
    assert found["past_1_in_text"] == 0
    assert features("ancestors: /html\ntarget: (button id=0 Search )")["past_1_in_text"] == 1


def test_a_leading_zero_makes_no_other_number() -> None:
    found = features("ancestors: /html\ntarget: (option id=0 02 )")
    assert found["shared_number"] == 1


def test_tags_that_serve_alike_are_of_one_kind() -> None:
    kinds = {tag: features(f"ancestors: /{tag}\ntarget: ({tag} id=0 )") for tag in ("input", "textarea", "td", "xyz")}
    assert kinds["input"]["kind"] == kinds["textarea"]["kind"] == kinds["textarea"]["kind_before"]
    assert len({kinds[tag]["kind"] for tag in ("input", "td", "xyz")}) == 3


@pytest.mark.parametrize(
    ("target", "signs"), [("(h4 id=0 You ▾ )", 1), ("(a id=0 + )", 1), ("(p id=0 £5.50, 3-day [new] )", 0)]
)
def test_signs_are_counted_that_are_neither_words_nor_markup(target: str, signs: int) -> None:
    assert features(f"ancestors: /html\ntarget: {target}")["signs"] == signs


def test_the_running_number_is_no_word() -> None:
    assert features("ancestors: /html\ntarget: (td id=21 )")["shared_number"] == 0


PLACE = "[x4] [y8] [w3] [h1] "


def test_where_a_text_lies_is_told_in_bands() -> None:
    found = features(f"{PLACE}[click] ancestors: /html\ntarget: (a id=0 Rooms )")
    assert [found[name] for name in ("across", "down", "wide", "high", "clickable")] == [4, 8, 3, 1, 1]
    assert features(f"{PLACE}ancestors: /html\ntarget: (a id=0 Rooms )")["clickable"] == 0


def test_a_text_that_lies_nowhere_is_not_taken_for_one_that_takes_no_clicks() -> None:
    found = features("ancestors: /html\ntarget: (a id=0 Rooms )")
    assert [found[name] for name in ("across", "down", "wide", "high", "clickable")] == [-1] * 5


def test_place_words_are_no_words_of_the_text() -> None:
    plain = "ancestors: /html/nav\ntarget: (a id=0 Rooms 4 )"
    own, placed = features(plain), features(PLACE + plain)
    assert {name for name in NAMES if own[name] != placed[name]} == {"across", "down", "wide", "high", "clickable"}
    assert word_weights([[PLACE + plain, plain]])("x4") == 1


def test_controls_before_a_text_are_told_the_nearest_first() -> None:
    found = features("ancestors: /html\nafter: /input where to/button Search\ntarget: (a id=0 Rooms )")
    assert [found["control_1"], found["control_2"]] == [TAGS.index("button"), TAGS.index("input")]
    assert (found["past_1_in_control_1"], found["past_1_in_control_2"]) == (1, 0)
    assert (found["past_2_in_control_1"], found["past_2_in_control_2"]) == (0, 0.5)
    assert found["past_in_controls"] == 1


def test_of_controls_before_a_text_it_counts_what_the_task_says_of_them() -> None:
    found = features("ancestors: /html\nafter: /a Leeds/a Norwich 2 rooms\ntarget: (a id=0 Map )")
    assert found["control_1_weight"] == found["controls_weight"] == 0.5 * 3
    assert found["control_1_open_weight"] == found["controls_open_weight"] == 0.5 * 2, "`Norwich` was typed"
    assert found["control_2_weight"] == 0
    assert found["numbers_in_controls"] == 1


def test_a_text_with_nothing_before_it_has_no_control() -> None:
    found = features("ancestors: /html\nafter: /p said\ntarget: (a id=0 Rooms )")
    none = features("ancestors: /html\ntarget: (a id=0 Rooms )")
    assert (found["control_1"], found["control_2"]) == (TAGS.index("p"), -1)
    assert (none["control_1"], none["control_2"]) == (-1, -1)


def test_controls_before_a_text_are_no_words_of_it() -> None:
    plain = "ancestors: /html/nav\ntarget: (a id=0 Rooms 4 )"
    told = plain.replace("\n", "\nafter: /a Search Norwich\n")
    own, with_controls = features(plain), features(told)
    assert all("control" in name for name in NAMES if own[name] != with_controls[name])
    assert word_weights([[told, plain]])("norwi") == 1


@pytest.mark.parametrize("text", ["", "ancestors: ", "target: (", "ancestors: /\ntarget: )", "(((/ /// id= \n\n"])
def test_texts_of_no_known_form_have_features_too(text: str) -> None:
    assert np.isfinite(pair_features("no query either", [text], lambda stem: 0.5)).all()


@given(st.text(max_size=80), st.text(max_size=80))
def test_features_of_anything_are_finite(query: str, text: str) -> None:
    weight = word_weights([[text]])
    assert np.isfinite(pair_features(query, [text], weight)).all()


def test_weights_fall_with_the_number_of_texts() -> None:
    weight = word_weights([["one two", "one six"], ["one two"]])
    assert weight("one") < weight("two") < weight("six") < weight("never")
    assert weight("never") == 1
    assert weight("one") == 0
    assert weight("two") == pytest.approx(math.log(4 / 3) / math.log(4))


def step(task: str, right: str, texts: list[str], query: str = QUERY) -> TaughtStep:
    wrong = tuple(text for text in texts if text != right)
    return TaughtStep(task, PairGroup(query, (right,), wrong))


def placed(one: TaughtStep) -> TaughtStep:
    group = one.group
    return TaughtStep(
        one.task,
        PairGroup(group.query, *(tuple(PLACE + text for text in side) for side in (group.positives, group.negatives))),
    )


def text(words: str, tag: str = "a", around: str = "/html") -> str:
    return f"ancestors: {around}\ntarget: ({tag} id=0 {words} )"


def random_steps(seed: int, n: int = 12) -> list[TaughtStep]:
    chance = random.Random(seed)
    vocabulary = "Rooms Norwich Search Help Offers Basket Cinema Menu Lunch Garden".split()
    made = []
    for i in range(n):
        texts = [text(word, chance.choice(["a", "td", "div"])) for word in vocabulary]
        right = chance.choice(texts)
        wanted = right.split()[-2]
        made.append(step(f"task {i // 2}", right, texts, f"task is: Go to {wanted}\nPrevious actions: "))
    return made


@pytest.mark.parametrize("seed", range(5))
def test_a_task_s_rates_are_those_of_the_other_tasks(seed: int) -> None:
    steps = random_steps(seed)
    everything = ClickRates(steps)
    for one in steps:
        others = ClickRates([other for other in steps if other.task != one.task])
        assert np.array_equal(everything.features(one.texts, one.task), others.features(one.texts))


def test_what_was_right_elsewhere_has_a_higher_rate() -> None:
    texts = [text("Search"), text("Help")]
    rates = ClickRates([step(f"task {i}", texts[0], texts) for i in range(5)])
    found = dict(zip(click_rates.NAMES, rates.features(texts).T.tolist(), strict=True))
    assert found["text_right"] == [5, 0]
    assert found["text_rate"][0] > 0 > found["text_rate"][1]
    assert found["word_best"][0] > found["word_best"][1]


def test_a_text_never_seen_has_the_rate_of_any() -> None:
    rates = ClickRates([step("task", text("Search"), [text("Search"), text("Help")])])
    found = dict(zip(click_rates.NAMES, rates.features([text("Garden", "td", "/html/nav")])[0].tolist(), strict=True))
    assert found["text_rate"] == found["word_best"] == found["place_rate"] == pytest.approx(0)


def test_rates_know_a_text_wherever_it_lies() -> None:
    texts = [text("Search"), text("Help")]
    rates = ClickRates([step(f"task {i}", texts[0], texts) for i in range(5)])
    assert np.array_equal(rates.features(texts), rates.features([PLACE + one for one in texts]))


def test_rates_know_a_text_whatever_comes_before_it() -> None:
    texts = [text("Search"), text("Help")]
    rates = ClickRates([step(f"task {i}", texts[0], texts) for i in range(5)])
    told = [one.replace("\n", "\nafter: /a Menu\n") for one in texts]
    assert np.array_equal(rates.features(texts), rates.features(told))


def judged(n: int = 30) -> list[Judged]:
    """The right text is the one with the highest first feature."""
    chance = np.random.default_rng(0)
    pages = [chance.random((40, 3)).astype(np.float32) for _ in range(n)]
    return [Judged(page, page[:, 0] == page[:, 0].max()) for page in pages]


def test_a_teacher_finds_what_makes_a_text_right_and_does_so_again() -> None:
    pages = judged()
    found = Teacher(pages[:20]).scores(pages[25].features)
    assert int(found.argmax()) in np.argsort(-pages[25].features[:, 0])[:3]
    assert found.min() >= 0
    assert np.array_equal(found, Teacher(pages[:20]).scores(pages[25].features))


FITTING = """
import os, sys
from pathlib import Path
import numpy as np
from ranker.processes import part
from seeact_offline.ranking.teacher import Teacher
from tests.seeact_offline.test_lessons import judged

pages = judged()
np.save(Path(sys.argv[1], os.environ["RANK"]), Teacher(pages[:20]).scores(pages[25].features))
part()
"""


def test_processes_that_share_the_fitting_have_the_same_teacher_as_one_alone(tmp_path: Path) -> None:
    script = tmp_path / "fitting.py"
    script.write_text(FITTING)
    run_together(2, script, tmp_path)
    pages = judged()
    alone = Teacher(pages[:20]).scores(pages[25].features)
    assert [np.array_equal(np.load(tmp_path / f"{rank}.npy"), alone) for rank in range(2)] == [True, True]


@pytest.fixture(scope="module")
def taught() -> list[PairGroup]:
    return with_lessons(random_steps(1, 16), seed=0)


def test_each_step_has_a_lesson_of_its_page_and_of_mixed_ones(taught: list[PairGroup]) -> None:
    own, mixed = taught[:16], taught[16:]
    assert [group.query for group in own] == [step.group.query for step in random_steps(1, 16)]
    assert all(group.positives for group in own)
    assert len(mixed) == 16 * lessons.MIXED_PAGES
    assert not any(group.positives for group in mixed)


def test_lessons_speak_of_every_text(taught: list[PairGroup]) -> None:
    for group in taught:
        assert group.lesson is not None
        assert set(group.lesson.places) == set(group.texts)
        assert len(group.lesson.scores) == len(group.lesson.plain_scores) == len(group.lesson.places)


def test_what_other_tasks_clicked_counts_where_words_are_as_written() -> None:
    texts = [text(word) for word in "Rooms Garden Otter Violin Kettle Cinema Norwich Lunch".split()]
    query = "task is: Do it\nPrevious actions: "
    steps = [step(f"task {i}", text("Kettle"), texts, query) for i in range(16)]
    lesson = with_lessons(steps, seed=0)[0].lesson
    assert lesson is not None
    kettle = lesson.places[text("Kettle")]
    others = [place for place in lesson.places.values() if place != kettle]
    assert lesson.scores[kettle] == pytest.approx(lesson.scores[others].mean())
    assert lesson.plain_scores[kettle] > lesson.plain_scores[others].max() + 0.3


def test_mixed_pages_share_more_words_with_the_query_than_others_pages_do(taught: list[PairGroup]) -> None:
    def shared(groups: list[PairGroup]) -> float:
        place = NAMES.index("shared")
        return float(np.mean([pair_features(g.query, g.texts, lambda stem: 1.0)[:, place].mean() for g in groups]))

    steps = random_steps(1, 16)
    apart = [PairGroup(steps[i].group.query, (), steps[(i + 5) % 16].texts) for i in range(16)]
    assert shared(taught[16:]) > 1.5 * shared(apart)


@pytest.mark.parametrize("change", [lessons._rename_tags, lessons._rebuild])
@pytest.mark.parametrize("seed", range(10))
def test_tags_change_names_alike_on_the_whole_page_and_words_stay(
    seed: int, change: Callable[[list[str], random.Random], list[str]]
) -> None:
    tag = re.compile(r"[(/](\w+)")
    texts = [text("Rooms div", "a", "/html/div/ul Norwich"), text("Menu", "li", "/html/ul/div a")]

    new = change(texts, random.Random(seed))

    names = dict(zip(tag.findall("".join(texts)), tag.findall("".join(new)), strict=True))
    assert new == [tag.sub(lambda found: found[0][0] + names[found[1]], old) for old in texts]
    assert names["html"] == "html"


def test_what_is_filled_in_is_never_built_of_other_tags() -> None:
    texts = [text("", tag) for tag in ("input", "select", "textarea")]
    assert all(lessons._rebuild(texts, random.Random(seed)) == texts for seed in range(20))


@pytest.mark.parametrize("change", [lessons._rename_tags, lessons._rebuild])
def test_tags_do_change_names(change: Callable[[Sequence[str], random.Random], list[str]]) -> None:
    texts = random_steps(1)[0].texts
    assert sum(change(texts, random.Random(seed)) != list(texts) for seed in range(20)) > 10


def test_some_mixed_pages_do_not_say_where_anything_lies() -> None:
    steps = [placed(one) for one in random_steps(1, 16)]
    mixed = with_lessons(steps, seed=0)[16:]
    silent = sum(not any(split_text(text).place for text in group.texts) for group in mixed)
    assert 0.05 < silent / len(mixed) < 0.3


def test_mixed_texts_keep_a_place_or_take_that_of_another() -> None:
    texts = [f"[x{i}] [y1] [w1] [h1] {text('Rooms', around=f'/{i}')}" for i in range(4)]
    mixed = [lessons._mix(texts[0], texts, ["a"], random.Random(seed)) for seed in range(200)]
    places = {split_text(text).place for text in mixed}
    assert places == {split_text(text).place for text in texts}
    assert all(split_text(text).ancestors.startswith("ancestors: ") for text in mixed)


def test_mixed_texts_keep_the_controls_before_them_or_take_those_of_another() -> None:
    texts = [text("Rooms", around=f"/{i}").replace("\n", f"\nafter: /a {i}\n") for i in range(4)]
    mixed = [lessons._mix(texts[0], texts, ["a"], random.Random(seed)) for seed in range(200)]
    assert {split_text(text).after for text in mixed} == {split_text(text).after for text in texts}


def test_steps_without_an_answer_are_asked_nothing(taught: list[PairGroup]) -> None:
    steps = random_steps(1, 16)
    silent = TaughtStep("task 99", PairGroup("task is: Nothing", (), steps[0].texts))
    assert all(group.query != silent.group.query for group in with_lessons([*steps, silent], seed=0))


def test_no_step_with_an_answer_gives_no_lesson() -> None:
    assert with_lessons([TaughtStep("task", PairGroup("task is: Nothing", (), (text("Help"),)))], seed=0) == []


def test_lessons_follow_from_the_seed(taught: list[PairGroup]) -> None:
    again, other = (with_lessons(random_steps(1, 16), seed) for seed in (0, 1))
    assert [group.texts for group in again] == [group.texts for group in taught]
    assert [group.texts for group in other] != [group.texts for group in taught]
    for one, two in zip(again, taught, strict=True):
        assert one.lesson is not None
        assert two.lesson is not None
        assert np.array_equal(one.lesson.scores, two.lesson.scores)
