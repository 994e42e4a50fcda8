"""The elements that a training question offers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.records import Candidate, InputError, Operation, Step, StepKey
from seeact_offline.training.mindact_rows import Pool, draw, pool_of
from seeact_offline.training.recipe import HARD_SHARE, Recipe, Running

WRONG = tuple(f"w{n}" for n in range(40))
POOL = Pool(StepKey("task", "step"), ("r0", "r1"), WRONG)


def test_published_recipe() -> None:
    recipe = Recipe()
    assert (recipe.epochs, recipe.draws, recipe.choices, recipe.none_share) == (5, 10, 5, 0.2)
    assert (recipe.batch, recipe.learning_rate, recipe.max_context, recipe.max_question) == (32, 5e-5, 512, 512)
    assert recipe.hard_negatives is None


@given(st.integers(1, 3), st.integers(0, 12), st.integers(2, 5), st.integers(0, 200))
def test_a_draw_offers_one_right_element_or_none(n_right: int, n_wrong: int, choices: int, number: int) -> None:
    pool = Pool(StepKey("t", "s"), tuple(f"r{n}" for n in range(n_right)), WRONG[:n_wrong])
    drawn = draw(pool, Recipe(choices=choices), 0, number)
    assert len(set(drawn.ids)) == len(drawn.ids)
    assert [node for node in drawn.ids if node in pool.right] == ([] if drawn.right is None else [drawn.right])
    most = n_wrong if drawn.right is None else n_wrong + 1
    assert len(drawn.ids) == min(choices, most)


def test_draws_follow_from_seed_step_epoch_and_number_alone() -> None:
    recipe = Recipe()
    first = draw(POOL, recipe, 1, 3)
    assert draw(POOL, recipe, 1, 3) == first
    others = [
        draw(POOL, recipe, 0, 3),
        draw(POOL, recipe, 1, 4),
        draw(POOL, replace(recipe, seed=1), 1, 3),
        draw(replace(POOL, key=StepKey("task", "other")), recipe, 1, 3),
    ]
    assert first not in others


def test_a_fifth_of_the_questions_lack_the_right_element() -> None:
    lacking = sum(draw(POOL, Recipe(), 0, number).right is None for number in range(4000))
    # four standard errors
    assert abs(lacking / 4000 - 0.2) < 0.026


def test_every_right_and_every_wrong_element_is_drawn() -> None:
    seen = {node for number in range(400) for node in draw(POOL, Recipe(), 0, number).ids}
    assert seen == {*POOL.right, *POOL.wrong}


def test_hard_negatives_fill_four_fifths_of_the_draws_and_the_rest_of_the_page_the_others() -> None:
    hard = frozenset(WRONG[:10])
    pool, recipe = replace(POOL, hard=WRONG[:10]), Recipe(hard_negatives=10)
    kinds = []
    for number in range(4000):
        wrong = [node for node in draw(pool, recipe, 0, number).ids if node in WRONG]
        kinds.append({node in hard for node in wrong})
    assert all(len(kind) == 1 for kind in kinds)
    assert abs(kinds.count({True}) / 4000 - HARD_SHARE) < 0.026


@pytest.mark.parametrize("hard", [WRONG[:3], ()], ids=["hard alone", "easy alone"])
def test_where_one_kind_is_lacking_the_other_serves(hard: tuple[str, ...]) -> None:
    pool = Pool(StepKey("t", "s"), ("r",), WRONG[:3], hard)
    assert all(len(draw(pool, Recipe(hard_negatives=5), 0, number).ids) >= 3 for number in range(50))


def test_ranks_decide_what_is_hard_and_the_right_element_never_is() -> None:
    candidates = tuple(Candidate(node, "a", None, node == "r") for node in ("r", "x", "y", "z"))
    step = Step("t", "s", "", (), "", "", "", Operation("CLICK"), candidates, None)
    pool = pool_of(step, {"r": 0, "x": 3, "y": 1, "z": 2}, under=3)
    assert (pool.right, pool.hard, pool.easy) == (("r",), ("y", "z"), ("x",))


def test_as_published_no_task_is_held_out() -> None:
    assert Recipe().held_out == 0


@pytest.mark.parametrize("name", ["none_share", "held_out"])
def test_a_share_of_all_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        Recipe(**{name: 1.0})  # type: ignore[arg-type]


def test_more_choices_than_answers_are_read_for_are_refused() -> None:
    with pytest.raises(InputError, match="choices"):
        Recipe(choices=6)


@pytest.mark.parametrize(("devices", "most", "each"), [(1, 32, 32), (8, 32, 4), (1, 8, 8), (2, 5, 4), (32, 8, 1)])
def test_a_batch_is_shared_out_among_devices(devices: int, most: int, each: int) -> None:
    assert Running().each(32, devices, most) == each
    assert Running().accumulate(32, devices, most) * devices * each == 32
    assert Running(per_device=1).accumulate(32, devices) == 32 // devices


@pytest.mark.parametrize(("devices", "each", "named"), [(1, 5, "per_device"), (3, None, "batch"), (64, None, "batch")])
def test_a_batch_that_cannot_be_shared_out_is_refused(devices: int, each: int | None, named: str) -> None:
    with pytest.raises(InputError, match=named):
        Running(per_device=each).each(32, devices)
