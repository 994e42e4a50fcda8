"""One record for a whole task that an agent or a person carried out, whatever folder it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from seeact_offline.records import Box, Fault, Screenshot

Origin = Literal["person", "model", "check", "constructed"]
"""`check`: conditions on the last page. `constructed`: known from the way in which the trajectory was made."""


@dataclass(frozen=True, slots=True)
class TrajectoryStep:
    """A page and the action on it. A last step without an action holds the page to which the last action led."""

    action: str = ""
    """Action as the source writes it, such as `Click [3]` or `CLICK on [button] Search`."""
    thought: str = ""
    address: str | None = None
    """URL of the page before the action; None where it is not known."""
    screenshot: Screenshot | None = field(default=None, compare=False)
    """The page before the action; None where there is no picture."""
    reply: str = ""
    """The model's reply as it wrote it; empty where there is none, and where it is no more than `told`."""
    place: Box | None = None
    """The box that was acted on, in pixels of the screenshot, a point without a size; None where it is not known."""

    @property
    def told(self) -> str:
        """Thought and action as WebVoyager's agents write them."""
        return f"Thought: {self.thought}\nAction: {self.action}"


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """One opinion on whether a task was done, as files hold it too."""

    by: str
    """The person, judge or rule, such as `annotator-1`, `webvoyager` or `check`."""
    success: bool | None
    """None where the source gives no verdict."""
    origin: Origin
    detail: str = ""
    """Reasons in the source's words; empty for none."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One attempt at one task."""

    id: str
    """Unique in its source."""
    task_id: str
    """Equal for attempts at the same task; intervals cluster by it."""
    task: str
    """The goal, in the person's words."""
    steps: tuple[TrajectoryStep, ...] = ()
    answer: str | None = None
    """The final response to the user; None for none."""
    verdicts: tuple[Verdict, ...] = ()
    agent: str = ""
    """The agent that acted; empty where it is not known."""
    website: str = ""
    constructed: str = ""
    """The rule by which it was made from a real one (`recorded_tasks.DAMAGES`), `none` for a copy that was only
    labelled; empty for a real one. Reports name it."""
    faults: tuple[Fault, ...] = ()
    """Faults of its files; a trajectory with faults is not judged, but counted."""

    @property
    def screenshots(self) -> tuple[Screenshot, ...]:
        """Pictures of the pages in order, the last page last."""
        return tuple(step.screenshot for step in self.steps if step.screenshot is not None)

    @property
    def actions(self) -> tuple[str, ...]:
        """Texts of the actions in order."""
        return tuple(step.action for step in self.steps if step.action)
