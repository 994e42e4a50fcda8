"""Trajectories in the browser: a list of the tasks that agents or people carried out, and each as a strip of its pages.

Names: those of the page itself, `index.json`, `episode/KEY.json` and `img/NAME.webp`. `verdict/KEY` takes a person's
verdict on an episode of `browse`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from seeact_offline.files.formats import FormatError, typed
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import InputError, RowError, StepKey
from seeact_offline.trajectories import TrajectoryStep
from seeact_offline.trajectories.trajectory_files import keep_verdict
from seeact_offline.viewer.notes import Response
from seeact_offline.viewer.site_files import StepFiles, StepSite, picture_json, step_name
from seeact_offline.viewer.whole_tasks import EpisodeLine, Opinion, read_whole_tasks, with_person

if TYPE_CHECKING:
    from PIL import Image


class _VerdictPost(msgspec.Struct, forbid_unknown_fields=True):
    """A verdict as the page sends it."""

    success: bool | None
    """None removes it."""
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""


class TrajectorySite(StepSite):
    """Folders of trajectories, and of verdicts on them, to be looked at as they are when it is made."""

    folder = "episode"

    def __init__(self, folders: Sequence[Path], annotator: str | None = None) -> None:
        """`annotator`: the person who may give verdicts; None: nobody. `problems`: name of a folder that cannot be
        shown, or not wholly -> why. Raises InputError where none can be shown."""
        super().__init__()
        self._annotator, self._lock = annotator, threading.Lock()
        read = read_whole_tasks(folders)
        self._runs, self._names, self.problems, self.is_sample = read.runs, read.names, read.problems, read.is_bundled
        self._tasks = {StepKey(str(task.folder), task.trajectory.id): task for task in read.tasks}
        self._keys = {step_name(key): key for key in self._tasks}

    def keys(self) -> Mapping[str, StepKey]:
        return self._keys

    def tables(self) -> Mapping[str, Callable[[], Any]]:
        return {"index.json": self._index}

    def post(self, name: str, body: Mapping[str, Any]) -> Response:
        """Saves a person's verdict on an episode, or removes it."""
        folder, _, rest = name.partition("/")
        key = self._keys.get(rest)
        if folder != "verdict" or key is None or self._annotator is None or self._tasks[key].run is None:
            return 404, {"error": "there is nothing to write here"}
        try:
            return 200, {"saved": True, "verdicts": self._judge(key, typed(body, _VerdictPost), self._annotator)}
        except FormatError as error:
            return 400, {"error": f"expected {error.expected}, got {error.got}"}
        except InputError as error:
            return 500, {"error": f"nothing was saved: {error}"}

    def _judge(self, key: StepKey, sent: _VerdictPost, person: str) -> list[dict[str, Any]]:
        """Keeps a verdict; returns all of the episode. Raises InputError, and then nothing has changed."""
        with self._lock:
            task = self._tasks[key]
            assert task.run is not None
            keep_verdict(task.run, task.trajectory.id, person, sent.success, sent.note)
            self._tasks[key] = with_person(task, person, sent.success, sent.note)
            self.forget_steps()
            return [_brief(opinion) for opinion in self._tasks[key].opinions]

    def _index(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "mode": "trajectories",
            "title": " | ".join(self._names),
            "folders": self._names,
            "runs": [run and {"name": name, **asdict(run)} for run, name in zip(self._runs, self._names, strict=True)],
            # the reasons name paths, which the terminal alone shows
            "problems": [f"{Path(name).name} cannot be shown, or not wholly." for name in self.problems],
            "episodes": [self._summary(key) for key in self._tasks],
        }

    def _summary(self, key: StepKey) -> dict[str, Any]:
        task = self._tasks[key]
        trajectory, line = task.trajectory, task.line or EpisodeLine("")
        return {
            "key": step_name(key),
            "folder": task.folder,
            "id": trajectory.id,
            "task": trajectory.task,
            "website": trajectory.website,
            "agent": trajectory.agent,
            "constructed": trajectory.constructed,
            "steps": len(trajectory.actions),
            "end": line.end,
            "reached": line.reached,
            "helped": line.n_helped,
            "calls": line.calls,
            "cost_usd": line.cost_usd,
            "verdicts": [_brief(opinion) for opinion in task.opinions],
        }

    def open_step(self, key: StepKey) -> StepFiles:
        task, images = self._tasks[key], dict[str, Callable[[], "Image.Image"]]()
        trajectory = task.trajectory
        problems = [task.problem] if task.problem else []
        problems += [f"{fault.name}: {fault.detail}" for fault in trajectory.faults]
        if trajectory.constructed not in ("", "none"):
            problems.append(f"It was made from a real one: {trajectory.constructed}.")
        return StepFiles(
            {
                **self._summary(key),
                "answer": trajectory.answer,
                "annotator": self._annotator if task.run is not None else None,
                "detail": "" if task.line is None else task.line.detail,
                "problems": problems,
                "verdicts": [{**_brief(opinion), **_whole(opinion)} for opinion in task.opinions],
                "frames": [_frame(key, step, images) for step in trajectory.steps],
            },
            images,
        )


def _brief(opinion: Opinion) -> dict[str, Any]:
    """A verdict as the list has it."""
    outcome = "" if opinion.judgement is None or opinion.success is not None else opinion.judgement.outcome
    return {
        "by": opinion.by, "success": opinion.success, "origin": opinion.origin, "label": opinion.is_label,
        "detail": opinion.detail, "outcome": outcome,
    }  # fmt: skip


def _whole(opinion: Opinion) -> dict[str, Any]:
    """The rest of a verdict, for its task's own page."""
    names = ("model", "k", "repeat", "reply", "n_pictures", "calls", "prompt_tokens", "completion_tokens", "cost_usd")
    return {} if opinion.judgement is None else {name: getattr(opinion.judgement, name) for name in names}


def _frame(key: StepKey, step: TrajectoryStep, images: dict[str, Callable[[], Image.Image]]) -> dict[str, Any]:
    """A step as JSON. Adds its picture to `images`."""
    picture, problem = None, ""
    if step.screenshot is not None:
        try:
            picture = picture_json(key, PagePicture(step.screenshot), images)
        except RowError as error:
            problem = f"{error.name}: {error.detail}"
    return {
        "action": step.action,
        "thought": step.thought,
        "address": step.address,
        "reply": step.reply,
        "place": None if step.place is None else list(step.place),
        "picture": picture,
        "problem": problem,
    }
