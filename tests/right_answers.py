"""Right answers of a split, in any agent's language."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from seeact_offline.agents import find_agent
from seeact_offline.agents.screens import Shown
from seeact_offline.dataset import open_split
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Operation, StepKey


class RightAnswer(NamedTuple):
    key: StepKey
    size: tuple[int, int]
    """Of the page's picture, in pixels."""
    operation: Operation
    centre: tuple[float, float]
    """Of the right element, in pixels."""


@cache
def right_answers(split: str) -> tuple[RightAnswer, ...]:
    """Of each step that has a right element and a picture."""
    found = []
    for step in open_split("sample", split).steps():
        box = next((c.box for c in step.candidates if c.backend_node_id in step.truth.positives and c.box), None)
        if box is not None and step.screenshot is not None:
            size = PagePicture(step.screenshot).size
            found.append(RightAnswer(step.key, size, step.truth.operation, box.center))
    return tuple(found)


def right_replies(agent: str, split: str) -> dict[StepKey, tuple[Shown, str]]:
    """What is shown, and the reply that names the centre of the right element."""
    speaker, _ = find_agent(agent)
    replies = {}
    for key, size, operation, centre in right_answers(split):
        shown = Shown.whole(size, speaker.view.resize.apply(size))
        replies[key] = shown, speaker.write(operation.op, operation.value, centre, shown)
    return replies
