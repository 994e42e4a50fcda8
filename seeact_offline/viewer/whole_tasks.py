"""Whole tasks as the viewer reads them: trajectories, and the verdicts of judges, people and programs on each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from seeact_offline.dataset import open_split
from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.known_files import EPISODES, LINES, VERDICTS
from seeact_offline.files.named import read_regular
from seeact_offline.files.whole import Journal
from seeact_offline.records import InputError
from seeact_offline.scoring.inference import wilson
from seeact_offline.trajectories import (
    Trajectory,
    constructed_trajectories,
    open_trajectories,
    read_trajectories,
    recorded_trajectories,
)
from seeact_offline.trajectories.judge_runs import trajectory_digest
from seeact_offline.trajectories.judgements import LABELS, Judgement, labels_of, read_judgements
from seeact_offline.trajectories.recorded_tasks import run_trajectories
from seeact_offline.trajectories.trajectory_files import with_people
from seeact_offline.viewer.folders import PARTS
from seeact_offline.viewer.run_data import at_hand, reason_of

ERROR = "error"
"""The end of an episode that is to be tried again."""
SITES, SAMPLE = "sites", "sample"
"""The names of the bundled websites and of the bundled sample, whose pages may be given away."""
CHANGED = "The trajectory has changed since it was judged."
MISSING = "The trajectory is not at hand: its pages and actions cannot be shown."


class EpisodeLine(msgspec.Struct, frozen=True):
    """Facts of an episode of `browse` beyond its trajectory."""

    annotation_id: str
    end: str = ""
    reached: bool | None = None
    detail: str = ""
    n_helped: int = 0
    calls: int = 0
    cost_usd: float | None = None


class _Share(msgspec.Struct, frozen=True):
    """A share of tasks, as `results.json` has it."""

    macro: float | None = None
    ci95: tuple[float, float] | None = None


class _LiveResults(msgspec.Struct):
    """The parts of a live run's `results.json` that the viewer uses."""

    n_verdicts: int
    success: _Share


@dataclass(frozen=True, slots=True)
class Opinion:
    """A verdict or a label, by a judge, a person or a program."""

    by: str
    success: bool | None
    origin: str
    is_label: bool
    """True for what judges are compared with."""
    detail: str = ""
    judgement: Judgement | None = None
    """The whole judgement, with its reply, of a folder of `judge`."""


@dataclass(frozen=True, slots=True)
class WholeTask:
    """A trajectory of one of the folders, with the verdicts on it."""

    folder: int
    trajectory: Trajectory
    opinions: tuple[Opinion, ...]
    line: EpisodeLine | None
    problem: str = ""
    run: Path | None = None
    """The folder of `browse` that holds it, where people's verdicts are kept; None for other folders, and where the
    episode is to be tried again."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The answer of a run of `browse`."""

    agent: str
    model: str
    split: str
    success: float | None
    """Share of the tasks that were done; None before the first verdict of the page's state."""
    ci95: tuple[float, float] | None
    n: int
    """Tasks of that share."""


@dataclass(frozen=True, slots=True)
class WholeTasks:
    """Tasks, verdicts and problems of folders of trajectories and of verdicts."""

    names: tuple[str, ...]
    """Names of the folders of trajectories."""
    runs: tuple[LiveRun | None, ...]
    """The same folders as runs of `browse`; None for others."""
    tasks: tuple[WholeTask, ...]
    problems: Mapping[str, str]
    """Name of a folder that cannot be shown, or not wholly -> why."""
    is_bundled: bool
    """True where all pages are those of the package."""


@dataclass
class _Group:
    """A folder of trajectories with the verdicts of all folders on it."""

    name: str
    trajectories: Mapping[str, Trajectory] = field(default_factory=dict)
    lines: Mapping[str, EpisodeLine] = field(default_factory=dict)
    run: Path | None = None
    """The folder, where it is one of `browse`."""
    is_bundled: bool = False
    is_named: bool = False
    """False: only the trajectories that are judged are shown."""
    judgements: list[Judgement] = field(default_factory=list)
    labels: list[Judgement] = field(default_factory=list)


def is_judged(folder: Path) -> bool:
    """Tells whether a folder holds verdicts of `judge`."""
    return (folder / VERDICTS).is_file()


def read_whole_tasks(folders: Sequence[Path]) -> WholeTasks:
    """Reads folders of trajectories and of `judge`; verdicts on the same trajectories stand together.

    Raises InputError where no folder can be read.
    """
    groups: dict[object, _Group] = {}
    problems: dict[str, str] = {}
    # trajectories first: verdicts join those that they are on
    for folder in sorted(folders, key=is_judged):
        try:
            if is_judged(folder):
                judgements, labels = read_judgements(folder, "verdicts"), folder / LABELS
                has_labels = labels.is_file() and labels.stat().st_size > 0
                given_labels = read_judgements(labels, "labels") if has_labels else []
                group, problem = _judged_group(folder, judgements, groups)
                group.judgements += judgements
                group.labels += given_labels
                problems |= {str(folder): problem} if problem else {}
            else:
                trajectories = {trajectory.id: trajectory for trajectory in _trajectories(folder)}
                run = folder if (folder / EPISODES).is_file() else None
                lines, is_bundled, name = _episode_lines(folder), _is_bundled(folder), folder.resolve().name
                groups[folder.resolve()] = _Group(name, trajectories, lines, run, is_bundled, is_named=True)
        except InputError as error:
            problems[str(folder)] = f"cannot be shown: {error}"
    if not groups:
        raise InputError("runs", sentence=next(f"{name} {why}" for name, why in problems.items()))
    listed = list(groups.values())
    tasks = [task for place, group in enumerate(listed) for task in _tasks(place, group, _names(listed))]
    names = [group.name for group in listed]
    # a number where several folders have the same name
    numbered = [f"{name} ({place})" if names.count(name) > 1 else name for place, name in enumerate(names, 1)]
    runs = [None if group.run is None else _live_run(group.run, group.trajectories.values()) for group in listed]
    return WholeTasks(tuple(numbered), tuple(runs), tuple(tasks), problems, all(group.is_bundled for group in listed))


def _trajectories(folder: Path) -> Iterator[Trajectory]:
    if (folder / LINES).is_file():
        return read_trajectories(folder)
    parts = [path.parent for path in sorted(folder.glob(PARTS))]
    whole = with_people(folder, chain.from_iterable(map(read_trajectories, parts)))
    return whole if parts else open_trajectories(folder)


def _live_run(folder: Path, trajectories: Iterable[Trajectory]) -> LiveRun:
    """The figures of `results.json`; of an unfinished run, the same of the verdicts so far."""
    settings = _settings(folder)
    agent, model, split = (str(settings.get(name) or "") for name in ("agent", "model", "split"))
    try:
        results = decoded(read_regular(folder / "results.json"), _LiveResults)
    except (OSError, FormatError):
        verdicts = [v.success for task in trajectories for v in task.verdicts if v.origin == "check"]
        done = [success for success in verdicts if success is not None]
        share = sum(done) / len(done) if done else 0.0
        results = _LiveResults(len(done), _Share(share, wilson(share, len(done))) if done else _Share())
    return LiveRun(agent, model, split, results.success.macro, results.success.ci95, results.n_verdicts)


def _episode_lines(folder: Path) -> dict[str, EpisodeLine]:
    """The lines of a run of `browse`, by task; none for other folders. A line that is none of them says nothing."""
    lines: dict[str, EpisodeLine] = {}
    for line in Journal(folder / EPISODES).lines() if (folder / EPISODES).is_file() else ():
        try:
            episode = decoded(line.text, EpisodeLine)
        except FormatError:
            continue
        lines[episode.annotation_id] = episode
    return lines


# --- judged ---


def _judged_group(folder: Path, judgements: Sequence[Judgement], groups: dict[object, _Group]) -> tuple[_Group, str]:
    """The group of the trajectories that a folder of `judge` is on, one of `groups` or a new one; and what is wrong
    with it."""
    settings, wanted = _settings(folder), {judgement.trajectory for judgement in judgements}
    source = str(settings.get("source") or "")
    path = at_hand(folder, source)
    key: object = path.resolve() if path is not None else source or folder.resolve()
    if key in groups and wanted <= groups[key].trajectories.keys():
        return groups[key], ""
    trajectories, why = _source_trajectories(source, path, judgements, settings.get("seed") or 0)
    if not wanted & trajectories.keys():
        # trajectories that have moved are known by their ids
        named = next(
            (other for other in groups.values() if other.is_named and wanted & other.trajectories.keys()), None
        )
        if named is not None:
            return named, ""
    group = groups.setdefault(key, _Group(Path(source).name or folder.resolve().name))
    group.trajectories = {**trajectories, **group.trajectories}
    if path is not None and path.is_dir():
        group.lines = _episode_lines(path)
    group.is_bundled = bool(trajectories) and (source == SAMPLE or (path is not None and _is_bundled(path)))
    problem = f"is shown without pages and actions: {why}; name the folder of its trajectories beside it"
    return group, "" if wanted & trajectories.keys() else problem


def _source_trajectories(
    source: str, path: Path | None, judgements: Sequence[Judgement], seed: int
) -> tuple[dict[str, Trajectory], str]:
    """The trajectories that were judged, by id, as `judge` reads them; or the reason why there are none."""
    if path is None and source != SAMPLE:
        return {}, f"there is no {source}" if source else "its manifest does not name them"
    try:
        trajectories = {
            trajectory.id: trajectory for trajectory in _read_source(path, {judgement.task for judgement in judgements})
        }
        if not {judgement.trajectory for judgement in judgements} <= trajectories.keys():
            trajectories = {
                trajectory.id: trajectory for trajectory in constructed_trajectories([*trajectories.values()], seed)
            } | trajectories
    except Exception as error:
        # what another program wrote must not keep the verdicts from being looked at
        return {}, reason_of(error)
    return trajectories, f"{source} holds others"


def _read_source(path: Path | None, tasks: Collection[str]) -> Iterable[Trajectory]:
    """`path`: None for the bundled sample. Of a data set, the `tasks` alone. Raises InputError."""
    if path is None or path.is_file() or any(next(folder.glob("*.parquet"), None) for folder in (path, path / "data")):
        return recorded_trajectories(open_split(SAMPLE if path is None else str(path), "all", tasks=tasks).steps())
    return run_trajectories(path) if (path / "predictions.jsonl").is_file() else _trajectories(path)


def _settings(folder: Path) -> Mapping[str, Any]:
    """The settings of a manifest; empty where it has none that can be read."""
    try:
        settings = json.loads(read_regular(folder / "manifest.json"))["settings"]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _is_bundled(folder: Path) -> bool:
    settings = _settings(folder)
    return settings.get("places") == SITES or settings.get("dataset") == SAMPLE


# --- the verdicts on a task ---


def _tasks(place: int, group: _Group, names: Mapping[tuple[str, str, str], str]) -> Iterator[WholeTask]:
    judged, labels = defaultdict[str, list[Judgement]](list), defaultdict[str, list[Judgement]](list)
    for judgements, of_trajectory in ((group.judgements, judged), (group.labels, labels)):
        for judgement in judgements:
            of_trajectory[judgement.trajectory].append(judgement)
    for name in dict.fromkeys([*(group.trajectories if group.is_named else ()), *judged]):
        some, trajectory, problem = judged[name], group.trajectories.get(name), ""
        digests = {judgement.digest for judgement in some}
        if trajectory is None:
            trajectory, problem = Trajectory(name, some[0].task or name, "", agent=some[0].agent), MISSING
        elif any(digests) and trajectory_digest(trajectory) not in digests:
            problem = CHANGED
        opinions = _own(trajectory, labels[name])
        for judgement in some:
            judge = names[judgement.judge, judgement.model, judgement.k]
            opinions.append(Opinion(judge, judgement.verdict, "model", False, judgement.detail, judgement))
        line = group.lines.get(name)
        run = group.run if line is not None and line.end != ERROR else None
        yield WholeTask(place, trajectory, tuple(opinions), line, problem, run)


def with_person(task: WholeTask, person: str, success: bool | None, detail: str) -> WholeTask:
    """The task with this person's verdict in place of an earlier one; None removes that. People count as labels before
    the page's state."""
    others = [opinion for opinion in task.opinions if (opinion.by, opinion.origin) != (person, "person")]
    own = [] if success is None else [Opinion(person, success, "person", True, detail)]
    by_people = any(opinion.origin == "person" for opinion in (*own, *others))
    others = [replace(opinion, is_label=not by_people) if opinion.origin == "check" else opinion for opinion in others]
    return replace(task, opinions=(*own, *others))


def _own(trajectory: Trajectory, labels: Sequence[Judgement]) -> list[Opinion]:
    """The verdicts that a trajectory holds and the labels of it, labels first, each once."""
    own = {(label.judge, label.verdict) for label in labels_of([trajectory])}
    opinions = [Opinion(v.by, v.success, v.origin, (v.by, v.success) in own, v.detail) for v in trajectory.verdicts] + [
        Opinion(label.judge, label.verdict, label.source, True, label.detail)
        for label in labels
        if (label.judge, label.verdict) not in own
    ]
    return sorted(opinions, key=lambda opinion: not opinion.is_label)


def _names(groups: Sequence[_Group]) -> dict[tuple[str, str, str], str]:
    """(judge, model, k) -> the judge's name, with model and k where the judge has several of them."""
    all_kinds = {(judgement.judge, judgement.model, judgement.k) for group in groups for judgement in group.judgements}
    names = {}
    for judge, model, k in all_kinds:
        own = [kind for kind in all_kinds if kind[0] == judge]
        parts = [
            judge or "judge",
            *([model] if len({kind[1] for kind in own}) > 1 and model else []),
            *([f"k {k}"] if len({kind[2] for kind in own}) > 1 and k else []),
        ]
        names[judge, model, k] = ", ".join(parts)
    return names
