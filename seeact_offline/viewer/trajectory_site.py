"""Trajectories in the browser: a list of the tasks that agents or people carried out, and each as a strip of its pages.

Names: those of the page itself, `index.json`, `episode/KEY.json` and `img/NAME.webp`. Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.journal import Journal
from seeact_offline.files.named import read_regular
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import InputError, RowError, StepKey
from seeact_offline.trajectories import Trajectory, TrajectoryStep, open_trajectories, read_trajectories
from seeact_offline.trajectories.trajectory_files import LINES
from seeact_offline.viewer.notes import Response
from seeact_offline.viewer.site_files import File, StepCache, StepFiles, json_file, static_files
from seeact_offline.viewer.step_page import picture_json, step_name

if TYPE_CHECKING:
    from PIL import Image

EPISODES = "episodes.jsonl"
PARTS = f"trajectories/*/{LINES}"
"""The finished episodes of a run of `browse` that is not finished."""
SITES = "sites"
"""The name of the bundled websites, whose pages may be given away."""


class _EpisodeLine(msgspec.Struct, frozen=True):
    """Facts of an episode of `browse` beyond its trajectory."""

    annotation_id: str
    end: str = ""
    reached: bool | None = None
    detail: str = ""
    n_helped: int = 0
    calls: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A trajectory of one of the folders."""

    folder: int
    trajectory: Trajectory
    line: _EpisodeLine | None


def holds_trajectories(folder: Path) -> bool:
    """Tells whether a folder, which is no run over recorded steps, holds trajectories of a known format."""
    if any(folder.glob(PARTS)):
        return True
    try:
        return any(True for _ in open_trajectories(folder))
    except InputError:
        return False


class TrajectorySite:
    """Folders of trajectories to be looked at, as they are when it is made. Any thread may ask."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Raises InputError for a folder without trajectories."""
        self._static = static_files()
        self._names = _names(folders)
        self._entries: dict[StepKey, _Entry] = {}
        for place, folder in enumerate(folders):
            lines = _episode_lines(folder)
            for one in _read(folder):
                self._entries[StepKey(str(place), one.id)] = _Entry(place, one, lines.get(one.id))
        self._keys = {step_name(key): key for key in self._entries}
        self._steps = StepCache(self._open)
        self.is_sample = all(map(_is_bundled, folders))

    def names(self) -> Iterator[str]:
        """Every name that exists, `index.html` first."""
        yield from sorted(self._static, key=lambda name: (name != "index.html", name))
        yield "index.json"
        for name, key in self._keys.items():
            yield f"episode/{name}.json"
            yield from self._steps.step(key).images

    def get(self, name: str) -> File | None:
        """None for a name that does not exist."""
        if name in self._static:
            return self._static[name]
        if name == "index.json":
            return json_file(self._index())
        folder, _, rest = name.partition("/")
        if folder == "img":
            return self._steps.picture(name, self._keys.get(rest.partition("-")[0]))
        key = self._keys.get(rest.removesuffix(".json"))
        return json_file(self._steps.step(key).json) if folder == "episode" and rest.endswith(".json") and key else None

    def post(self, name: str, body: Mapping[str, Any]) -> Response:
        """Nothing can be written."""
        return 404, {"error": "there is nothing to write here"}

    def close(self) -> None:
        """Holds nothing."""

    def _index(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "mode": "trajectories",
            "title": " | ".join(self._names),
            "folders": self._names,
            "episodes": [self._summary(key) for key in self._entries],
        }

    def _summary(self, key: StepKey) -> dict[str, Any]:
        entry = self._entries[key]
        one, line = entry.trajectory, entry.line or _EpisodeLine("")
        return {
            "key": step_name(key),
            "folder": entry.folder,
            "id": one.id,
            "task": one.task,
            "website": one.website,
            "agent": one.agent,
            "steps": len(one.actions),
            "end": line.end,
            "reached": line.reached,
            "helped": line.n_helped,
            "calls": line.calls,
            "cost_usd": line.cost_usd,
            "verdicts": [{"by": v.by, "success": v.success, "origin": v.origin, "detail": v.detail} for v in one.verdicts],
        }  # fmt: skip

    def _open(self, key: StepKey) -> StepFiles:
        entry, images = self._entries[key], dict[str, Callable[[], "Image.Image"]]()
        one = entry.trajectory
        faults = [f"{fault.name}: {fault.detail}" for fault in one.faults]
        return StepFiles(
            {
                **self._summary(key),
                "answer": one.answer,
                "detail": "" if entry.line is None else entry.line.detail,
                "problems": [*faults, *([f"It was made from a real one: {one.constructed}."] if one.constructed else [])],
                "frames": [_frame(key, step, images) for step in one.steps],
            },
            images,
        )  # fmt: skip


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


def _read(folder: Path) -> Iterator[Trajectory]:
    if (folder / LINES).is_file():
        return read_trajectories(folder)
    parts = [path.parent for path in sorted(folder.glob(PARTS))]
    return chain.from_iterable(map(read_trajectories, parts)) if parts else open_trajectories(folder)


def _episode_lines(folder: Path) -> dict[str, _EpisodeLine]:
    """The lines of a run of `browse`, by task; none for other folders. A line that is none of them says nothing."""
    lines: dict[str, _EpisodeLine] = {}
    for line in Journal(folder / EPISODES).lines() if (folder / EPISODES).is_file() else ():
        try:
            one = decoded(line.text, _EpisodeLine)
        except FormatError:
            continue
        lines[one.annotation_id] = one
    return lines


def _is_bundled(folder: Path) -> bool:
    try:
        return bool(json.loads(read_regular(folder / "manifest.json"))["settings"]["places"] == SITES)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _names(folders: Sequence[Path]) -> list[str]:
    """Each folder's name, with a number where several have the same."""
    names = [folder.resolve().name for folder in folders]
    return [f"{name} ({place})" if names.count(name) > 1 else name for place, name in enumerate(names, 1)]
