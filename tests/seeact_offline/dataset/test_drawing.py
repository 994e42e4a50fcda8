"""Samples of whole tasks: in equal shares by website, and from the seed and the tasks' ids alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.dataset import open_split
from seeact_offline.dataset.split import draw_tasks
from tests.pages import synthetic_rows, write_parquet

some_tasks = st.dictionaries(st.text(min_size=1, max_size=3), st.sampled_from("abc"), max_size=20)


@given(some_tasks, st.integers(1, 25), st.integers(-5, 5))
def test_websites_have_equal_shares_as_long_as_they_have_tasks(websites: dict[str, str], n: int, seed: int) -> None:
    drawn = draw_tasks(websites, n, seed)
    assert len(drawn) == min(n, len(websites))
    there, shares = Counter(websites.values()), Counter(websites[task] for task in drawn)
    most = max(shares.values(), default=0)
    # a website with fewer than the others is drawn whole, or was left out of the last round
    assert all(shares[site] in (there[site], most, most - 1) for site in there)


@given(some_tasks, st.integers(1, 25), st.randoms(use_true_random=False))
def test_neither_the_order_of_tasks_nor_the_size_changes_the_draw(websites: dict[str, str], n: int, rng) -> None:
    others = list(websites.items())
    rng.shuffle(others)
    assert set(draw_tasks(dict(others), n, 0)) == set(draw_tasks(websites, n, 0))
    assert set(draw_tasks(websites, n, 0)) <= set(draw_tasks(websites, n + 1, 0))


def test_another_seed_draws_other_tasks_and_half_a_character_is_an_id_like_others() -> None:
    websites = {f"{n}\ud800": "a" for n in range(100)}
    assert draw_tasks(websites, 10, 0) != draw_tasks(websites, 10, 1)


@pytest.mark.parametrize("name", ["test_task.parquet", "test_task.jsonl"])
def test_a_split_is_drawn_task_by_task_in_its_own_order(tmp_path: Path, name: str) -> None:
    rows = [{**row, "website": "ab"[number // 12]} for number, row in enumerate(synthetic_rows(6, 4, 6, seed=1))]
    if name.endswith("jsonl"):
        import json

        (tmp_path / name).write_text("".join(json.dumps({**row, "screenshot": None}) + "\n" for row in rows))
    else:
        write_parquet(rows, tmp_path / name)
    split = open_split(tmp_path, "cross_task")
    drawn = split.drawn(2, 0)
    assert len(drawn.tasks) == 2
    assert [{step.website for step in task} for task in drawn.steps_by_task()] == [{"a"}, {"b"}]
    assert [len(task) for task in drawn.steps_by_task()] == [4, 4]
    assert drawn.fingerprint == split.fingerprint
    assert split.drawn(99, 0).keys == split.keys
