"""The sample's tasks become trajectories with the outcome of their checks, and damaged copies of them are labelled as such."""

from dataclasses import replace

import pytest

import seeact_offline as so
from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.records import Step
from seeact_offline.trajectories import (
    Trajectory,
    TrajectoryStep,
    Verdict,
    constructed_trajectories,
    recorded_trajectories,
)
from seeact_offline.trajectories.recorded_tasks import DAMAGES


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return list(so.load_steps("sample", "cross_website"))


@pytest.fixture(scope="module")
def recorded(steps: list[Step]) -> list[Trajectory]:
    return list(recorded_trajectories(steps))


@pytest.mark.slow
def test_recorded_task_has_its_pages_actions_and_check(steps: list[Step], recorded: list[Trajectory]) -> None:
    mine = [step for step in steps if step.annotation_id == recorded[0].id]
    assert recorded[0].task == mine[0].task
    assert recorded[0].actions == tuple(step.action_text for step in mine)
    assert len(recorded[0].screenshots) == len(mine) + 1
    assert recorded[0].steps[-1].address
    assert {(v.by, v.success, v.origin) for t in recorded for v in t.verdicts} == {("check", True, "check")}


def test_labels_by_construction_are_named_and_depend_on_the_id_alone(recorded: list[Trajectory]) -> None:
    made = list(constructed_trajectories(recorded))
    again = {t.id: t for t in constructed_trajectories(recorded[::-1])}
    assert again == {t.id: t for t in made}
    assert {t.constructed for t in made} == {"none", *DAMAGES}
    assert all(
        t.verdicts == (Verdict("constructed", t.constructed == "none", "constructed", t.verdicts[0].detail),)
        for t in made
    )
    assert {t.id: t for t in constructed_trajectories(recorded, seed=1)} != again


SHOT = StoredScreenshot(b"")
ONE = Trajectory("a", "a", "Fly", tuple(
    TrajectoryStep(action, "why", None, SHOT)
    for action in ("[a]  To -> TYPE: Rome", "[b]  Seat -> SELECT: Window", "[c]  Go -> CLICK", "")
), "Done.")  # fmt: skip
OTHER = Trajectory(
    "b", "b", "Eat", (TrajectoryStep("Type [3]; Soup", "", None, SHOT), TrajectoryStep("[d] Buy -> CLICK"))
)
DAMAGED = {
    "cut": (("[a]  To -> TYPE: Rome", "[b]  Seat -> SELECT: Window", ""), None),
    "target_exchanged": (("[a]  To -> TYPE: Rome", "[b]  Seat -> SELECT: Window", "(a target) -> CLICK"), None),
    "value_exchanged": (("[a]  To -> TYPE: Rome", "[b]  Seat -> SELECT: (a value)"), None),
    "other_task": (("Type [3]; Soup", "[d] Buy -> CLICK"), None),
}


@pytest.mark.parametrize("rule", DAMAGES)
def test_damage(rule: str) -> None:
    made = {t.constructed: t for t in constructed_trajectories([ONE, OTHER]) if t.task_id == "a"}
    actions = [step.action for step in made[rule].steps]
    for value in ("Rome", "Soup"):
        actions = [action.replace(f"SELECT: {value}", "SELECT: (a value)") for action in actions]
    for target in ("[a]  To", "[b]  Seat", "[d] Buy"):
        if rule == "target_exchanged":
            actions[-1] = actions[-1].replace(target, "(a target)")
    assert (tuple(actions), made[rule].answer) == DAMAGED[rule]
    assert made["none"].steps == ONE.steps


def test_wrong_and_faulty_trajectories_are_not_damaged_further() -> None:
    wrong = replace(ONE, verdicts=(Verdict("check", False, "check"),))
    assert list(constructed_trajectories([wrong])) == []
    assert [t.constructed for t in constructed_trajectories([replace(ONE, steps=())])] == ["none"]
