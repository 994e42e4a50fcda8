"""Where an episode takes place: how its page is begun, and what judges it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from seeact_offline.agents.screens import Size
from seeact_offline.live.pages import LiveSession
from seeact_offline.recorder.origins import served
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import InputError


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a page as it is now."""

    done: bool | None
    """None for a task without a check."""
    is_over: bool = False
    """True if the page has ended the episode by itself."""
    raw_reward: float | None = None
    """The page's own reward; None where it gives none."""


class Place:
    """Sites whose state is checked: the bundled ones, and those of a task script."""

    size: Size | None = None
    """Size of the window; None: the agent's own."""
    clock_runs = False
    """False: the time stands still."""

    def address(self, task: TaskScript, port: int = 0) -> AbstractContextManager[str]:
        """The address to open while the context lasts. `port`: where a folder is served if that is free, so that a browser that reaches this
        origin alone can be kept."""
        return served(task.start, task.served, port)

    def begin(self, session: LiveSession) -> TaskScript:
        """Begins the task on the page that was opened, and returns it as the agent is told it. Raises InputError for a task that is done already."""
        session.rest()
        if session.task.is_checked and session.is_done():
            task = f"{session.task.task!r:.100}"
            raise InputError("tasks", sentence=f"the check of task {task} holds before the first act; make it stricter")
        return session.task

    def judge(self, session: LiveSession) -> Judgement:
        """Raises Playwright's Error where the state cannot be found out."""
        return Judgement(session.is_done() if session.task.is_checked else None)
