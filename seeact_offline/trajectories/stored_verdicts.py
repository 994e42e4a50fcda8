"""Verdicts that other programs have stored: Online-Mind2Web's results of automatic judges and people's labels, and
AgentRewardBench's judgments. Each is read by the rules of the program that wrote it.

Sources: OSU-NLP-Group/Online-Mind2Web ccdeb0d, src/run.py, and its data/evaluation_results;
McGill-NLP/agent-reward-bench 66d795f, scripts/run_judge.py, scripts/score_judgments.py and agent_reward_bench/judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from seeact_offline.files.formats import FormatError, decoded, read_json
from seeact_offline.files.named import LARGE, read_text
from seeact_offline.records import InputError
from seeact_offline.trajectories.foreign_folders import BadTrajectory, Summary, find, read_inside
from seeact_offline.trajectories.verdict_rules import read_verdict

RESULTS = "*_auto_eval_results.json"
"""Files of results of Online-Mind2Web: JSON lines, in a folder with the name of the agent."""
_RESULTS_NAME = re.compile(r"(?P<judge>.+?_eval)_(?P<model>.+)_score_threshold_[0-9]+_auto_eval_results\.json")
PERSON = "_human_label"
"""The end of the names of people's labels in Online-Mind2Web's `human_label.json`, behind the name of an agent."""
_LABELS: Mapping[str, bool | None] = {"0": False, "1": True, "2": None}
"""2: the agent could not be run on the task."""
_SUCCESS_TAG = re.compile(r"<success>([^<]{0,100})</success>", re.IGNORECASE)
_WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("successful", "success", "yes"), True),
    **dict.fromkeys(("unsuccessful", "failure", "no"), False),
}
ENOUGH = 4
"""Least reward, of 1 to 5, that is a success for NNetNav's judge."""


class StoredVerdict(NamedTuple):
    """One verdict of another program."""

    task: str
    agent: str
    judge: str
    model: str
    verdict: bool | None
    reply: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failed: str = ""
    """Why the call failed; empty where it did not."""
    benchmark: str = ""

    @property
    def trajectory(self) -> str:
        """Unique over agents and benchmarks."""
        return "/".join(filter(None, (self.benchmark, self.agent, self.task)))


# --- Online-Mind2Web ---


class _Details(msgspec.Struct, frozen=True):
    response: str | None = None


class _Result(msgspec.Struct, frozen=True):
    task_id: str
    predicted_label: int | None
    evaluation_details: _Details = _Details()


def results_row(line: str, path: Path) -> StoredVerdict:
    """A line of the results of an automatic judge. Raises FormatError.

    Judge and model are in the name of the file, and the agent is the name of its folder.
    """
    match = _RESULTS_NAME.fullmatch(path.name)
    row = decoded(line, _Result)
    label = row.predicted_label
    if label not in (0, 1, None):
        raise FormatError("predicted_label to be 0 or 1", str(label)[:40])
    judge, model = (match["judge"], match["model"]) if match else ("", "")
    reply = row.evaluation_details.response or ""
    return StoredVerdict(
        row.task_id, path.resolve().parent.name, judge, model, None if label is None else bool(label), reply
    )


def people_rows(text: str) -> Iterator[StoredVerdict]:
    """People's labels, of a list with an entry a task, whose names ending in PERSON begin with an agent's.
    Raises FormatError."""
    for number, entry in enumerate(read_json(text)):
        task = entry.get("task_id") if isinstance(entry, dict) else None
        if not isinstance(task, str) or not task:
            raise FormatError(f"task_id in entry {number}", repr(task)[:40])
        for name, label in entry.items():
            if name.endswith(PERSON):
                if str(label) not in _LABELS:
                    raise FormatError(f"{name} of {task} to be 0, 1 or 2", repr(label)[:40])
                yield StoredVerdict(task, name.removesuffix(PERSON), "", "", _LABELS[str(label)])


# --- AgentRewardBench ---


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message = _Message()


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Response(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None


class _Info(msgspec.Struct, frozen=True):
    summary_info: Summary | None = None


class _Judgment(msgspec.Struct, frozen=True):
    judge_model_name: str | None = None
    response: _Response | None = None
    trajectory_info: _Info | None = None
    error: str | None = None


FUNCTIONAL = "functional"
"""The judge that is the benchmark's own program."""


def judgment_rows(folder: Path) -> list[StoredVerdict]:
    """The verdicts of a folder of judgments, `BENCHMARK/AGENT/JUDGE/TASK.json`, in order of path;
    a file that cannot be read has none."""
    rows = list(_judgments(folder))
    # a failed call does not name its model
    models = {row.judge: row.model for row in rows if row.model}
    return [row._replace(model=row.model or models.get(row.judge, "")) for row in rows]


def _judgments(folder: Path) -> Iterator[StoredVerdict]:
    for path in find(folder, "*.json"):
        task, judge, agent, benchmark = path.stem, *(parent.name for parent in path.resolve().parents[:3])
        try:
            file = read_inside(folder, path, _Judgment)
        except BadTrajectory as error:
            yield StoredVerdict(task, agent, judge, "", None, failed=str(error), benchmark=benchmark)
            continue
        if file.error is not None:
            task = task.removesuffix("_error")
        stored = StoredVerdict(
            task, agent, judge, file.judge_model_name or "", None, failed=file.error or "", benchmark=benchmark
        )
        if judge == FUNCTIONAL:
            summary = file.trajectory_info.summary_info if file.trajectory_info else None
            reward = summary.cum_reward if summary else None
            yield stored._replace(verdict=None if reward is None else reward > 0.5, model="")
            continue
        response = file.response or _Response()
        reply = (response.choices[0].message.content or "") if response.choices else ""
        usage = response.usage or _Usage()
        yield stored._replace(
            verdict=judgment_verdict(reply, judge), reply=reply,
            prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens,
        )  # fmt: skip


def is_judgments(folder: Path) -> bool:
    """Tells whether a folder holds AgentRewardBench's judgments, by the first of its files."""
    first = next(find(folder, "*.json"), None)
    if first is None:
        return False
    try:
        file = read_inside(folder, first, _Judgment)
    except BadTrajectory:
        return False
    return file.judge_model_name is not None or (file.error is not None and first.stem.endswith("_error"))


def judgment_verdict(reply: str, judge: str) -> bool | None:
    """The verdict of a stored reply: of `aer` and `aerv` the word behind the last line's `Status:`, of `nnetnav` a
    reward of ENOUGH or more behind the first `Reward:`, of others the word inside of `<success>`,
    or else as WebJudge's is read."""
    if judge == "nnetnav":
        reward = reply.partition("Reward:")[2].strip()
        return int(reward) >= ENOUGH if reward.isascii() and reward.isdecimal() and len(reward) < 10 else None
    if judge in ("aer", "aerv"):
        words = [line.partition(":")[2] for line in reply.split("\n") if line.startswith("Status:")]
    else:
        words = _SUCCESS_TAG.findall(reply)[:1]
        if not words:
            return read_verdict(reply, "agenttrek") if "status:" in reply.lower() else None
    return _WORDS.get(words[-1].strip(" \t\r*\"'.").lower()) if words else None


def stored_rows(path: Path, argument: str) -> Iterable[StoredVerdict] | None:
    """The verdicts of a folder of one of these programs; None for another folder. Raises InputError."""
    results = [file for file in find(path, "*.json") if file.name.endswith(RESULTS.removeprefix("*"))]
    if results:
        return _results(results, argument)
    return judgment_rows(path) if is_judgments(path) else None


def _results(paths: list[Path], argument: str) -> Iterator[StoredVerdict]:
    for path in paths:
        for number, line in enumerate(read_text(argument, path, largest=LARGE).split("\n"), 1):
            if line.strip():
                try:
                    yield results_row(line, path)
                except FormatError as error:
                    raise InputError(argument, error.expected, f"{error.got} in line {number} of {path}") from None
