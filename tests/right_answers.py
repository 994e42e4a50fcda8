"""Right answers of a split, in any agent's language."""

from __future__ import annotations

from seeact_offline.agents import find_agent
from seeact_offline.agents.screens import Shown
from seeact_offline.dataset import open_split
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import StepKey


def right_replies(agent: str, split: str) -> dict[StepKey, tuple[Shown, str]]:
    """What is shown, and the reply that names the centre of the right element, for each step that has one and a picture."""
    speaker, _ = find_agent(agent)
    replies = {}
    for step in open_split("sample", split).steps():
        box = next((c.box for c in step.candidates if c.backend_node_id in step.truth.positives and c.box), None)
        if box is None or step.screenshot is None:
            continue
        size = PagePicture(step.screenshot).size
        shown = Shown.whole(size, speaker.view.resize.apply(size))
        operation = step.truth.operation
        replies[step.key] = shown, speaker.write(operation.op, operation.value, box.center, shown)
    return replies
