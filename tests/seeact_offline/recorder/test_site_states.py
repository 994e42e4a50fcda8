"""States of sites, and the differences between them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.recorder.sample_building import site_names, site_tasks
from seeact_offline.recorder.script import Free, changes, flatten, load_script
from seeact_offline.sample import SITES
from tests.reference.site_states import differ

NAMES = st.text("abc", min_size=1, max_size=2)
SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x", "yes"])
STATES = st.dictionaries(
    NAMES, st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
)
SHOP = {"cart": ["tea", "cup"], "view": "home", "form": {"name": "", "gift": False}}


def path_of(names: tuple[str, ...]) -> str:
    """The names as the package writes them."""
    if "in the list" in names:
        *above, _, element = names
        return f"{'.'.join(above)}[{json.dumps(json.loads(element), separators=(',', ':'), sort_keys=True)}]"
    return ".".join(names)


@given(STATES, STATES)
def test_changes_are_the_values_that_are_not_the_same_in_both(before: dict[str, Any], after: dict[str, Any]) -> None:
    expected = {path_of(names) for names in differ(before, after)}
    assert set(changes(flatten(before), flatten(after))) == expected


@given(STATES)
def test_a_state_differs_in_nothing_from_itself_in_another_order(state: dict[str, Any]) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: turned(inner) for name, inner in reversed(value.items())}
        return [*reversed(value)] if isinstance(value, list) else value

    assert changes(flatten(state), flatten(turned(state))) == {}


def test_changes_say_the_value_afterwards_and_none_for_what_has_gone() -> None:
    after = {"cart": ["cup", "cup"], "view": "home", "form": {"name": "Ann", "gift": False}}
    assert changes(flatten(SHOP), flatten(after)) == {'cart["tea"]': None, 'cart["cup"]': 2, "form.name": "Ann"}


def test_a_free_path_does_not_count_and_own_words_must_be_some() -> None:
    free = Free(("cart*",), ("form.*",))
    after = {**SHOP, "cart": [], "form": {"name": "anything"}}
    assert changes(flatten(SHOP), flatten(after), free) == {"form.name": True}
    assert changes(flatten(after), flatten(SHOP), free) == {"form.name": None}


def test_every_bundled_task_has_a_check_and_every_check_a_task() -> None:
    for name in site_names():
        tasks = site_tasks(name)
        assert all(task.changes for task in tasks), name
        written = json.loads((SITES / name / "checks.json").read_text(encoding="utf-8"))
        assert set(written) == {task.task for task in load_script(SITES / name / "tasks.yaml")}
