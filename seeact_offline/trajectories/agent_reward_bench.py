"""AgentRewardBench's cleaned trajectories and people's verdicts: `cleaned/BENCHMARK/AGENT/EXPERIMENT/TASK.json`, `screenshots/`
and `annotations.csv` (McGill-NLP/agent-reward-bench 1ebb488, scripts/clean_processed_trajectories.py; labels as its 0.1.2 reads them)."""

from __future__ import annotations

import ast
import csv
import io
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from seeact_offline.files.named import LARGE, read_text
from seeact_offline.records import InputError
from seeact_offline.trajectories.foreign_files import BadTrajectory, find, picture, read_inside
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict

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


class _Step(msgspec.Struct, frozen=True):
    action: str | None = None
    reasoning: str | None = None
    url: str | None = None
    screenshot_path: str | None = None


class _Summary(msgspec.Struct, frozen=True):
    cum_reward: float | None = None


class _File(msgspec.Struct, frozen=True):
    benchmark: str
    agent: str
    goal: str
    steps: tuple[_Step, ...]
    summary_info: _Summary | None = None


class _Key(NamedTuple):
    benchmark: str
    agent: str
    task_id: str


def agent_reward_bench_trajectories(folder: Path, labels: Path | None = None) -> Iterator[Trajectory]:
    """Yields the trajectories below a folder, in order of path, with the verdicts of people and of the benchmark's own programs.

    `labels`: people's CSV; None: `annotations.csv` of the folder, of its `data`, or of the folder above `cleaned`, if there is one. Raises
    InputError for a CSV that cannot be used. A trajectory that cannot be read has the fault `bad_trajectory`.
    """
    cleaned = next((found for found in (folder / CLEANED, folder / "trajectories" / CLEANED) if found.is_dir()), folder)
    above = [folder, *cleaned.parents[: len(cleaned.parts) - len(folder.parts)]]
    given = labels or next((file for place in above for name in ANNOTATIONS if (file := place / name).is_file()), None)
    people = _people(given) if given else {}
    for path in find(cleaned, "*.json"):
        name = path.relative_to(cleaned).with_suffix("").as_posix()
        try:
            yield _trajectory(folder, name, path.stem, read_inside(folder, path, _File), people)
        except BadTrajectory as error:
            yield error.as_trajectory(name, path.stem)


def _trajectory(
    folder: Path, name: str, task_id: str, file: _File, people: Mapping[_Key, tuple[Verdict, ...]]
) -> Trajectory:
    verdicts = list(people.get(_Key(file.benchmark, file.agent, task_id), ()))
    if file.summary_info is not None and file.summary_info.cum_reward is not None:
        verdicts.append(Verdict("functional", file.summary_info.cum_reward > 0.5, "check"))
    steps = tuple(
        TrajectoryStep(
            step.action or "",
            step.reasoning or "",
            step.url,
            picture(folder, _below(folder, step.screenshot_path)) if step.screenshot_path else None,
        )
        for step in file.steps
    )
    answer = next((said for step in reversed(file.steps) if (said := _answer(step.action or "")) is not None), None)
    return Trajectory(name, task_id, file.goal, steps, answer, tuple(verdicts), file.agent, file.benchmark)


def _below(folder: Path, written: str) -> str:
    """The path below the given folder of a picture whose path begins at the folder above `trajectories`."""
    parts = PurePosixPath(written).parts
    return written if parts[:1] != ("trajectories",) or (folder / "trajectories").is_dir() else "/".join(parts[1:])


def _answer(action: str) -> str | None:
    """The text of an action that answers the user; None for another."""
    if not action.lstrip().startswith(ANSWERS):
        return None
    try:
        with warnings.catch_warnings():
            # a backslash in the text is the agent's business
            warnings.simplefilter("ignore")
            call = ast.parse(action.strip(), mode="eval").body
        given = [*call.args, *(word.value for word in call.keywords)] if isinstance(call, ast.Call) else []
        said = ast.literal_eval(given[0]) if given else None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return said if isinstance(said, str) else None


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
    found: dict[_Key, list[Verdict]] = defaultdict(list)
    for row in rows:
        word = (row["trajectory_success"] or "").strip().lower()
        if word not in SUCCESS:
            wanted = ", ".join(filter(None, SUCCESS))
            raise InputError("labels", f"one of {wanted}", f"{word!r:.40} in line {rows.line_num} of {path}")
        key = _Key(row["benchmark"], row["model_name"], row["task_id"])
        # several people without a name are several
        by = (row.get("annotator_name") or "").strip() or f"annotator-{len(found[key]) + 1}"
        found[key].append(Verdict(by, SUCCESS[word], "person"))
    return {key: tuple(verdicts) for key, verdicts in found.items()}
