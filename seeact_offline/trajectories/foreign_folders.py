"""Folders of whole tasks that others wrote, each read as trajectories. Its files tell the format of a folder.

Files are found without following links, and nothing outside of the folder is opened. A trajectory that cannot be read
has the fault `bad_trajectory`. Sources: MinorJerry/WebVoyager 5a78967, run.py; OSU-NLP-Group/Online-Mind2Web ccdeb0d,
src/run.py; OSU-NLP-Group/SeeAct 2434627, src/seeact.py and seeact_package/seeact/agent.py;
McGill-NLP/agent-reward-bench 1ebb488, scripts/clean_processed_trajectories.py, with labels as its 0.1.2 reads them.
"""

from __future__ import annotations

import ast
import csv
import io
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

import msgspec

from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.known_files import LINES
from seeact_offline.files.named import LARGE, read_regular, read_text
from seeact_offline.records import Fault, InputError
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict
from seeact_offline.trajectories.trajectory_files import read_trajectories

T = TypeVar("T")
DEEPEST = 6
"""Levels of folders that are searched."""
LARGEST = 512 << 20
"""Largest JSON file of a trajectory, in bytes: conversations may hold pictures."""
MOST_PICTURES = 10_000
"""Pictures of a trajectory; agents stop after some dozens of steps."""


class BadTrajectory(Exception):
    """Files of one trajectory that cannot be used."""

    def as_trajectory(self, name: str, task_id: str = "") -> Trajectory:
        """The trajectory that only tells what is wrong."""
        return Trajectory(name, task_id or name, "", faults=(Fault("bad_trajectory", str(self)),))


def find(folder: Path, name: str) -> Iterator[Path]:
    """Yields files of this name (`*.json`: of this ending) below a folder in order of path;
    follows no link to a folder."""
    ending = name.removeprefix("*") if name.startswith("*") else None
    for place, folders, files in os.walk(folder):
        folders.sort()
        if len(Path(place).relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        for file in sorted(files):
            # hidden files are an archive's notes on others
            if file == name or (ending is not None and file.endswith(ending) and not file.startswith(".")):
                yield Path(place, file)


def read_inside(folder: Path, path: Path, kind: type[T]) -> T:
    """Reads a JSON file of a folder as this type.
    Raises BadTrajectory, also for a link that leads out of the folder."""
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            raise BadTrajectory(f"{path.name} leads out of {folder}")
        return decoded(read_regular(real, LARGEST), kind)  # type: ignore[type-var]
    except FormatError as error:
        raise BadTrajectory(f"{path.name}: {error}") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise BadTrajectory(f"{path.name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _picture(folder: Path, name: str | None) -> StoredScreenshot | None:
    """A picture below a folder, opened when it is used and from nowhere else; None for no name."""
    return StoredScreenshot(None, name, folder) if name else None


Read = Callable[[Path, str, str], Trajectory]
"""Reads a trajectory from its file, id and task id. Raises BadTrajectory."""


def _each(folder: Path, file: str, read: Read, prefix: str = "") -> Iterator[Trajectory]:
    """Yields the trajectories whose files have this name (or ending) below a folder, in order of path.

    Ids are paths below the folder, of the file or of the folder that it is in.
    `prefix`: what stands before a task's id there.
    """
    for path in find(folder, file):
        place = path.with_suffix("") if file.startswith("*") else path.parent
        name = place.relative_to(folder).as_posix()
        task_id = place.name.removeprefix(prefix) or name
        try:
            yield read(path, name, task_id)
        except BadTrajectory as error:
            yield error.as_trajectory(name, task_id)


# --- WebVoyager and OpenWebVoyager ---

MESSAGES = "interact_messages.json"
_TASK = re.compile(r"Now given a task:(?P<task>.*?)(?:Please interact with\s*(?P<address>\S+)|\Z)", re.DOTALL)
_OPEN_TASK = re.compile(r"\A(?P<task>.*?)OBSERVATION:", re.DOTALL)
"""OpenWebVoyager's first turn: the task, then the observation."""
_PARTS = re.compile(r"Thought:|Action:|Observation:")
_ANSWER = re.compile(r"Action:\s*ANSWER[:; ]+\[?(?P<answer>.[^\]]*)\]?\s*", re.DOTALL)
_SHOT = re.compile(r"screenshot([0-9]{1,6})\.png")


class _Message(msgspec.Struct, frozen=True):
    role: str
    content: Any = None

    @property
    def text(self) -> str:
        """Its text, whether it is one or is among parts."""
        if isinstance(self.content, str):
            return self.content
        parts = self.content if isinstance(self.content, list) else []
        return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def webvoyager_trajectories(folder: Path) -> Iterator[Trajectory]:
    """Yields the tasks of WebVoyager and OpenWebVoyager: a folder a task,
    with `interact_messages.json` and `screenshotN.png`."""

    def read(path: Path, name: str, task_id: str) -> Trajectory:
        messages = read_inside(folder, path, tuple[_Message, ...])
        first = next((message.text for message in messages if message.role == "user"), "")
        task = _TASK.search(first) or _OPEN_TASK.search(first)
        if task is None:
            raise BadTrajectory(f"{MESSAGES}: expected a first message with a task, got {first!r:.60}")
        replies = [message.text for message in messages if message.role == "assistant"]
        answer = _ANSWER.search(replies[-1]) if replies else None
        return Trajectory(
            id=task_id if name == "." else name,
            task_id=task_id,
            task=task["task"].strip(),
            steps=tuple(_steps(path.parent, replies, task.groupdict().get("address"))),
            answer=answer["answer"].strip() if answer else None,
            website=task_id.rpartition("--")[0],
        )

    return _each(folder, MESSAGES, read, prefix="task")


def _steps(folder: Path, replies: list[str], address: str | None) -> Iterator[TrajectoryStep]:
    """Yields a step a reply, and one for each further picture. Reply n saw picture n;
    after a format error there is no new one.

    Spacing is kept in `reply`, as the released judge looks for an exact text.
    """
    named = ((_SHOT.fullmatch(name), name) for name in sorted(os.listdir(folder)))
    pictures = {int(match[1]): name for match, name in named if match and int(match[1]) <= MOST_PICTURES}
    for number in sorted({*pictures, *range(1, len(replies) + 1)}):
        shot = _picture(folder, pictures.get(number))
        reply = replies[number - 1] if 1 <= number <= len(replies) else ""
        pieces = _PARTS.split(reply)
        thought, action = (pieces[1], pieces[2]) if len(pieces) > 2 else ("", pieces[-1])
        step = TrajectoryStep(action.strip(), thought.strip(), address if number == 1 else None, shot)
        yield step if reply == step.told else replace(step, reply=reply)


# --- Online-Mind2Web and SeeAct ---

RESULT = "result.json"
SHOTS = "trajectory"
SEEACT_PICTURES = ("image_inputs", "screenshots")
"""Folders of SeeAct's pictures: of its script, which crops one a question, and of its package."""
V2 = "online-mind2web-v2"
_NUMBER = re.compile(r"[0-9]{1,9}")


class _Version(msgspec.Struct, frozen=True):
    schema_version: str | None = None


class _V1(msgspec.Struct, frozen=True):
    """Version 1 and SeeAct's files, of which the script's has another name for the task and the package's all tasks of
    the session."""

    task: str | tuple[str, ...] = ()
    confirmed_task: str | None = None
    task_id: str = ""
    website: str | None = None
    action_history: tuple[str | None, ...] = ()
    thoughts: tuple[str | None, ...] = ()
    final_result_response: str | None = None
    judge: Any = None
    success_or_not: Any = None


class _V2Step(msgspec.Struct, frozen=True):
    action: str
    screenshot: str | None = None
    thought: str | None = None
    url: str | None = None


class _V2(msgspec.Struct, frozen=True):
    task: str
    task_id: str
    action_history: tuple[_V2Step, ...]
    agent_final_answer: str | None = None


def online_mind2web_trajectories(folder: Path) -> Iterator[Trajectory]:
    """Yields the tasks of Online-Mind2Web's submissions, versions 1 and 2, and of SeeAct's own online runs: a folder a
    task, with `result.json` and pictures whose names hold the number of their step, such as `trajectory/N_*.png`."""

    def read(path: Path, name: str, task_id: str) -> Trajectory:
        if read_inside(folder, path, _Version).schema_version == V2:
            return _second(path.parent, name, read_inside(folder, path, _V2))
        return _first(path.parent, name, read_inside(folder, path, _V1))

    return _each(folder, RESULT, read)


def _first(folder: Path, name: str, result: _V1) -> Trajectory:
    """Version 1 and SeeAct: lists of actions and thoughts, and pictures, of which one more may show the last page."""
    tasks = (result.task,) if isinstance(result.task, str) else result.task
    task = result.confirmed_task if result.confirmed_task is not None else next(reversed(tasks), None)
    if task is None:
        raise BadTrajectory(f"{RESULT}: expected task or confirmed_task, got neither")
    actions, thoughts = result.action_history, result.thoughts
    shots = _by_step(_numbered_pictures(folder), len(actions))
    steps = tuple(
        TrajectoryStep(
            (actions[i] or "") if i < len(actions) else "",
            (thoughts[i] or "") if i < len(thoughts) else "",
            screenshot=_picture(folder, shots.get(i)),
        )
        for i in range(max(len(actions), *(i + 1 for i in shots), 0))
    )
    answer = result.final_result_response or None
    task_id = result.task_id or folder.name
    return Trajectory(name, task_id, task, steps, answer, _own_verdicts(result), website=result.website or "")


def _own_verdicts(result: _V1) -> tuple[Verdict, ...]:
    """The verdicts that a file holds: Browser Use's judge writes a score of 0 or 100,
    and SeeAct leaves a field for a person's 0 or 1."""
    verdicts = []
    if isinstance(result.judge, dict) and "score" in result.judge:
        score, reasons = result.judge["score"], result.judge.get("reasoning")
        success = True if score == 100 else False if score == 0 else None
        verdicts.append(Verdict("judge", success, "model", reasons if isinstance(reasons, str) else ""))
    if (label := str(result.success_or_not)) in ("0", "1"):
        verdicts.append(Verdict("annotator-1", label == "1", "person"))
    return tuple(verdicts)


def _second(folder: Path, name: str, result: _V2) -> Trajectory:
    """Version 2: the last action is the agent's answer, which is no action on a page."""
    last = len(result.action_history) - 1
    steps = tuple(
        TrajectoryStep(
            "" if i == last else step.action,
            step.thought or "",
            step.url or None,
            _picture(folder, step.screenshot and f"{SHOTS}/{step.screenshot}"),
        )
        for i, step in enumerate(result.action_history)
    )
    return Trajectory(name, result.task_id, result.task, steps, result.agent_final_answer or None)


def _by_step(pictures: list[tuple[int, str]], n_actions: int) -> Mapping[int, str]:
    """Step, from 0 -> its picture. A run counts from 0 or from 1, and lacks the pictures that it failed to take;
    numbers that cannot be those of steps, such as times, only order the pictures."""
    numbers = [number for number, _ in pictures]
    first = 0 if 0 in numbers else 1
    if len(set(numbers)) == len(numbers) and max(numbers, default=0) - first <= n_actions:
        return {number - first: path for number, path in pictures}
    return dict(enumerate(path for _, path in pictures))


def _numbered_pictures(folder: Path) -> list[tuple[int, str]]:
    """Numbers and paths of the pictures in order of the first number in their names, without hidden files;
    none where there is no folder of them."""
    place = next((name for name in (SHOTS, *SEEACT_PICTURES) if (folder / name).exists()), None)
    if place is None:
        return []
    try:
        names = os.listdir(folder / place)
    except OSError as error:
        raise BadTrajectory(f"{place} cannot be read: {error.strerror}") from None
    numbered = sorted((int(match[0]), name) for name in names if name[0] != "." and (match := _NUMBER.search(name)))
    if len(numbered) > MOST_PICTURES:
        raise BadTrajectory(f"expected at most {MOST_PICTURES:,} pictures, got {len(numbered):,}")
    pictures = [(number, f"{place}/{name}") for number, name in numbered]
    # of SeeAct's pictures of one step, the last is that on which it chose
    return list(dict(pictures).items()) if place in SEEACT_PICTURES else pictures


# --- AgentRewardBench ---

ANNOTATIONS = ("annotations.csv", "data/annotations.csv")
CLEANED = "cleaned"
COLUMNS = ("benchmark", "task_id", "model_name", "trajectory_success")
SUCCESS = {
    **dict.fromkeys(("successful", "success", "yes"), True),
    **dict.fromkeys(("unsuccessful", "unsuccesful", "failure", "no"), False),
    **dict.fromkeys(("unsure", ""), None),
}
"""Words of people, in lower case -> their verdict."""
ANSWERS = ("send_msg_to_user", "report_infeasible")
"""Actions whose text is the final response."""


class _BenchStep(msgspec.Struct, frozen=True):
    action: str | None = None
    reasoning: str | None = None
    url: str | None = None
    screenshot_path: str | None = None


class Summary(msgspec.Struct, frozen=True):
    cum_reward: float | None = None
    """The reward of the benchmark's own program."""


class _BenchFile(msgspec.Struct, frozen=True):
    benchmark: str
    agent: str
    goal: str
    steps: tuple[_BenchStep, ...]
    summary_info: Summary | None = None


class _Key(NamedTuple):
    benchmark: str
    agent: str
    task_id: str


def agent_reward_bench_trajectories(folder: Path, labels: Path | None = None) -> Iterator[Trajectory]:
    """Yields AgentRewardBench's cleaned trajectories, `cleaned/BENCHMARK/AGENT/EXPERIMENT/TASK.json` and
    `screenshots/`, with the verdicts of people and of the benchmark's own programs.

    `labels`: people's CSV; None: `annotations.csv` of the folder, of its `data`, or of the folder above `cleaned`, if
    there is one. Raises InputError for a CSV that cannot be used.
    """
    cleaned = next((path for path in (folder / CLEANED, folder / "trajectories" / CLEANED) if path.is_dir()), folder)
    above = [folder, *cleaned.parents[: len(cleaned.parts) - len(folder.parts)]]
    files = (place / name for place in above for name in ANNOTATIONS)
    annotations = labels or next((file for file in files if file.is_file()), None)
    people = _people(annotations) if annotations else {}

    def read(path: Path, name: str, task_id: str) -> Trajectory:
        file = read_inside(folder, path, _BenchFile)
        verdicts = list(people.get(_Key(file.benchmark, file.agent, task_id), ()))
        if file.summary_info is not None and file.summary_info.cum_reward is not None:
            verdicts.append(Verdict("functional", file.summary_info.cum_reward > 0.5, "check"))
        steps = tuple(
            TrajectoryStep(
                step.action or "", step.reasoning or "", step.url,
                _picture(folder, _below(folder, step.screenshot_path))
            )
            for step in file.steps
        )  # fmt: skip
        answers = (_answer(step.action or "") for step in reversed(file.steps))
        answer = next((text for text in answers if text is not None), None)
        return Trajectory(name, task_id, file.goal, steps, answer, tuple(verdicts), file.agent, file.benchmark)

    return _each(cleaned, "*.json", read)


def _below(folder: Path, written: str | None) -> str:
    """The path below the given folder of a picture whose path begins at the folder above `trajectories`;
    empty for none."""
    parts = PurePosixPath(written or "").parts
    is_here = parts[:1] != ("trajectories",) or (folder / "trajectories").is_dir()
    return (written or "") if is_here else "/".join(parts[1:])


def _answer(action: str) -> str | None:
    """The text of an action that answers the user; None for another."""
    if not action.lstrip().startswith(ANSWERS):
        return None
    try:
        with warnings.catch_warnings():
            # a backslash in the text is the agent's business
            warnings.simplefilter("ignore")
            call = ast.parse(action.strip(), mode="eval").body
        values = [*call.args, *(word.value for word in call.keywords)] if isinstance(call, ast.Call) else []
        text = ast.literal_eval(values[0]) if values else None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return text if isinstance(text, str) else None


def _people(path: Path) -> Mapping[_Key, tuple[Verdict, ...]]:
    """Verdicts by trajectory, in order of lines: the first is the primary annotator's. Raises InputError."""
    rows = csv.DictReader(io.StringIO(read_text("labels", path, largest=LARGE), newline=""))
    try:
        return _verdicts(rows, path)
    except csv.Error as error:
        raise InputError("labels", "CSV", f"{error} in line {rows.line_num} of {path}") from None


def _verdicts(rows: csv.DictReader[str], path: Path) -> Mapping[_Key, tuple[Verdict, ...]]:
    if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
        raise InputError(
            "labels", f"a CSV with the columns {', '.join(COLUMNS)}", f"none called {missing[0]} in {path}"
        )
    by_trajectory: dict[_Key, list[Verdict]] = defaultdict(list)
    for row in rows:
        word = (row["trajectory_success"] or "").strip().lower()
        if word not in SUCCESS:
            wanted = ", ".join(filter(None, SUCCESS))
            raise InputError("labels", f"one of {wanted}", f"{word!r:.40} in line {rows.line_num} of {path}")
        key = _Key(row["benchmark"], row["model_name"], row["task_id"])
        # several people without a name are several
        by = (row.get("annotator_name") or "").strip() or f"annotator-{len(by_trajectory[key]) + 1}"
        by_trajectory[key].append(Verdict(by, SUCCESS[word], "person"))
    return {key: tuple(verdicts) for key, verdicts in by_trajectory.items()}


# --- any of them ---

READERS: Mapping[str, Callable[[Path], Iterator[Trajectory]]] = {
    MESSAGES: webvoyager_trajectories,
    RESULT: online_mind2web_trajectories,
    "*.json": agent_reward_bench_trajectories,
}
"""File by which a format is known -> its reader; the first that is found counts."""


def open_trajectories(folder: Path, labels: Path | None = None) -> Iterator[Trajectory]:
    """Yields the trajectories of a folder of ours, WebVoyager, Online-Mind2Web (1 and 2),
    SeeAct or AgentRewardBench, one at a time.

    `labels`: people's CSV of AgentRewardBench; other formats have none.
    Raises InputError for a folder of no known format.
    """
    if not folder.is_dir():
        raise InputError("trajectories", "a folder", str(folder))
    is_ours = (folder / LINES).is_file()
    name = next((name for name in READERS if next(find(folder, name), None) is not None), None)
    if name is None and not is_ours:
        wanted = f"a folder with {LINES}, {MESSAGES}, {RESULT} or AgentRewardBench's JSON files"
        raise InputError("trajectories", wanted, f"none of them in {folder}")
    reader = read_trajectories if is_ours or name is None else READERS[name]
    if labels is None:
        return _with_named(reader(folder))
    if reader is not agent_reward_bench_trajectories:
        raise InputError("labels", sentence="`labels` is for AgentRewardBench's trajectories alone; remove it")
    return _with_named(agent_reward_bench_trajectories(folder, labels))


def _with_named(trajectories: Iterator[Trajectory]) -> Iterator[Trajectory]:
    """Yields the trajectories; one whose id no file,
    server or database can hold has the fault `bad_trajectory` instead of its content."""
    for trajectory in trajectories:
        ids = trajectory.id, trajectory.task_id
        name, task_id = (text.encode(errors="backslashreplace").decode() for text in ids)
        if name.strip() and (name, task_id) == ids:
            yield trajectory
        else:
            yield BadTrajectory(f"expected an id in UTF-8, got {name!r}").as_trajectory(
                name.strip() or "unnamed", task_id
            )
