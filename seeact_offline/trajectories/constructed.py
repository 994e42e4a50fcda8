"""Labels by construction: trajectories that are wrong because of what was done to a right one. They say how well a judge spots such damage, no more.

Every rule leaves out the pages after the altered action, as they were never seen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict

CONSTRUCTED = "constructed"
"""The name of labels by construction, among verdicts and in reports."""
_VALUE = re.compile(r"(?P<before>.*?(?:-> *(?:TYPE|SELECT): *|\bType \[?[0-9]+\]?[; ]+))(?P<value>\S.*)", re.DOTALL)
"""An action with a value, as recordings and WebVoyager write it."""
_TARGET = re.compile(r"(?P<target>.*\S)(?P<after> *-> *(?:CLICK|TYPE|SELECT|HOVER|ENTER)\b.*)", re.DOTALL)
"""An action that names its element before an arrow, as recordings and Online-Mind2Web write it."""


def constructed_trajectories(trajectories: Sequence[Trajectory], seed: int = 0) -> Iterator[Trajectory]:
    """Yields each right trajectory with a constructed label, then its damaged copies, one by each rule of RULES that can be applied.

    Right is a trajectory of which no verdict says otherwise. A rule that would change nothing is left out.
    Choices depend on the trajectory's id and the seed, never on the order of the trajectories.
    """
    for one in trajectories:
        if one.faults or any(verdict.success is False for verdict in one.verdicts):
            continue
        yield _labelled(one, one.id, True, "")
        for name, rule in RULES.items():
            damaged = rule(one, trajectories, random.Random(f"{seed} {name} {one.id}"))
            if damaged is not None:
                yield _labelled(damaged, f"{one.id}~{name}", False, name)


def _labelled(trajectory: Trajectory, name: str, success: bool, rule: str) -> Trajectory:
    verdict = Verdict(CONSTRUCTED, success, "constructed", rule or "as recorded")
    return replace(trajectory, id=name, constructed=rule or "none", verdicts=(verdict,))


def _cut(one: Trajectory, others: Sequence[Trajectory], draw: random.Random) -> Trajectory | None:
    """Ends before the last action, without an answer."""
    last = _last_action(one)
    return replace(one, steps=_until(one, last, ""), answer=None) if last is not None else None


def _target_exchanged(one: Trajectory, others: Sequence[Trajectory], draw: random.Random) -> Trajectory | None:
    """Does the last action on the element of another action."""
    last = _last_action(one)
    found = None if last is None else _TARGET.fullmatch(one.steps[last].action)
    if last is None or found is None:
        return None
    targets = {named["target"] for t in (one, *others) for a in t.actions if (named := _TARGET.fullmatch(a))}
    choices = sorted(targets - {found["target"]})
    if not choices:
        return None
    return replace(one, steps=_until(one, last, draw.choice(choices) + found["after"]), answer=None)


def _value_exchanged(one: Trajectory, others: Sequence[Trajectory], draw: random.Random) -> Trajectory | None:
    """Types or selects another text at the last action that has one."""
    places = [(i, found) for i, step in enumerate(one.steps) if (found := _VALUE.fullmatch(step.action))]
    if not places:
        return None
    place, found = places[-1]
    values = {named["value"] for t in (one, *others) for a in t.actions if (named := _VALUE.fullmatch(a))}
    choices = sorted(value for value in values if value.casefold() != found["value"].casefold())
    if not choices:
        return None
    return replace(one, steps=_until(one, place, found["before"] + draw.choice(choices)), answer=None)


def _other_task(one: Trajectory, others: Sequence[Trajectory], draw: random.Random) -> Trajectory | None:
    """Does what another task asks for, with its pages and its answer."""
    choices = sorted((t for t in others if t.task != one.task and t.steps), key=lambda t: t.id)
    if not choices:
        return None
    other = draw.choice(choices)
    return replace(one, steps=other.steps, answer=other.answer)


def _last_action(one: Trajectory) -> int | None:
    return max((i for i, step in enumerate(one.steps) if step.action), default=None)


def _until(one: Trajectory, place: int, action: str) -> tuple[TrajectoryStep, ...]:
    """The steps up to this place, where another action, or none, is done."""
    return (*one.steps[:place], replace(one.steps[place], action=action, thought="", reply=""))


RULES: Mapping[str, Callable[[Trajectory, Sequence[Trajectory], random.Random], Trajectory | None]] = {
    "cut": _cut,
    "target_exchanged": _target_exchanged,
    "value_exchanged": _value_exchanged,
    "other_task": _other_task,
}
"""Rule -> its function from a right trajectory, all trajectories and a source of chance; None where it cannot be applied."""
