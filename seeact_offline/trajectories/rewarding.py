"""Rewards of finished tasks, from files: a task file, answers, stored states. A model is asked where a task needs one, once for all rule sets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seeact_offline.files.named import read_rows
from seeact_offline.files.redaction import redact
from seeact_offline.files.table import Table
from seeact_offline.records import InputError, Message, Model, Request, StepKey
from seeact_offline.trajectories import (
    REASONS,
    RULES,
    RewardTask,
    TaskReward,
    TaskState,
    read_state,
    read_tasks,
    reward,
)
from seeact_offline.trajectories.model_rules import Ask
from seeact_offline.trajectories.reward_tasks import LONGEST_DETAIL

T = TypeVar("T")
WORKERS = 8
"""Tasks that are scored at a time."""


class _AnswerLine(msgspec.Struct, frozen=True):
    """One line of a file of answers; other fields are ignored."""

    task_id: int | str
    answer: str | int | float | None = None
    """The final response; empty for an agent that stopped without one. A number counts as its text."""
    address: str | None = None
    """Address of the last page; that of the state counts where it has one."""


@dataclass(frozen=True)
class Rewards:
    """The rewards of all tasks of a file under every rule set."""

    by_rules: Mapping[str, Sequence[TaskReward]]
    """Rule set -> rewards in the order of the task file."""

    @property
    def table(self) -> Table:
        """Successes, scored tasks and the rest by rule set."""
        header = ("rules", "tasks", "scored", "successes", "rate of scored", "of all", "not scored")
        rows = []
        for name, rewards in self.by_rules.items():
            scores = [one.score for one in rewards if one.score is not None]
            missing = Counter(one.unscored for one in rewards if one.unscored)
            told = ", ".join(f"{reason} {n}" for reason, n in sorted(missing.items())) or "-"
            done = int(sum(scores))
            rows.append(
                (name, len(rewards), len(scores), done, _rate(done, len(scores)), _rate(done, len(rewards)), told)
            )
        return Table(header=header, rows=rows)

    @property
    def differences(self) -> list[str]:
        """One line for each task whose score depends on the rule set."""
        lines = []
        for of_task in zip(*self.by_rules.values(), strict=True):
            if len({one.score for one in of_task}) > 1:
                said = ", ".join(
                    f"{one.rules} {one.unscored if one.score is None else int(one.score)}" for one in of_task
                )
                lines.append(f"task {of_task[0].task_id}: {said}")
        return lines

    @property
    def failed(self) -> int:
        """Tasks of which a call failed."""
        return sum(any(part.unscored == "call_failed" for part in one.parts) for one in self.by_rules["visualwebarena"])

    def lines(self) -> Iterator[str]:
        """Yields the JSON of each task under each rule set."""
        for of_task in zip(*self.by_rules.values(), strict=True):
            for one in of_task:
                parts = [
                    {"evaluator": p.evaluator, "score": p.score, **({"unscored": p.unscored, "detail": p.detail} if p.unscored else {})}
                    for p in one.parts
                ]  # fmt: skip
                row = {"task_id": one.task_id, "rules": one.rules, "score": one.score, "parts": parts}
                yield redact(json.dumps(row, ensure_ascii=False))


def reward_files(
    config: Path,
    answers: Path,
    states: Path | None = None,
    *,
    model: Model | None = None,
    sites: Mapping[str, str] | None = None,
) -> Rewards:
    """Scores the tasks of a task file under every rule set.

    `answers`: JSONL with `task_id` and `answer`, and perhaps `address`. `states`: a folder with `TASK_ID/state.json`. `sites`: name ->
    address, which replaces `__NAME__` in the task file. Raises InputError.
    """
    tasks = list(read_tasks("config", config, sites))
    said = _answers(answers, {str(task.task_id) for task in tasks})
    with _asking(model) as about, ThreadPoolExecutor(WORKERS) as pool:

        def score(task: RewardTask) -> list[TaskReward]:
            line = said.get(str(task.task_id))
            state = _state(task, line, states, config.parent)
            answer = None if line is None or line.answer is None else str(line.answer)
            # a reply is shared by the rule sets
            ask = None if about is None else about(str(task.task_id))
            return [reward(rules, task, answer, state, ask) for rules in RULES.values()]

        found = list(pool.map(score, tasks))
    return Rewards({name: [of_task[i] for of_task in found] for i, name in enumerate(RULES)})


def reasons(rewards: Rewards) -> dict[str, str]:
    """The meaning of each reason for which a task has no score."""
    found = {part.unscored for of_rules in rewards.by_rules.values() for one in of_rules for part in one.parts}
    return {name: meaning for name, meaning in REASONS.items() if name in found}


def _answers(path: Path, tasks: set[str]) -> dict[str, _AnswerLine]:
    """Reads answers by task. Raises InputError, also for two of one task, and where no task has one."""
    found: dict[str, _AnswerLine] = {}
    for line, where in read_rows("answers", path, _AnswerLine):
        if str(line.task_id) in found:
            raise InputError("answers", "one answer a task", f"another of task {line.task_id} in {where}")
        found[str(line.task_id)] = line
    if not tasks & found.keys():
        raise InputError("answers", "answers to tasks of the task file", f"none in {path}")
    return found


def _state(task: RewardTask, line: _AnswerLine | None, states: Path | None, references: Path) -> TaskState | None:
    """The stored state, or what the line of answers says of it; None for neither. Raises InputError for `states` that is no folder."""
    name, state = str(task.task_id), None
    if states is not None:
        if not states.is_dir():
            raise InputError("states", "a folder", str(states))
        # an id that leads elsewhere has no state
        if Path(name).name == name != "..":
            try:
                state = read_state(states / name, references)
            except Exception as error:
                # one task's files must not end a run that others have paid for
                return TaskState(fault=str(error)[:LONGEST_DETAIL])
    if state is not None and state.address is not None:
        return state
    address = None if line is None else line.address
    if state is not None:
        return TaskState(address, state.html, state.folder, state.pages, state.pictures, references)
    return None if address is None else TaskState(address, references=references)


def _rate(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


# --- asking a model from functions that wait for its reply ---


@contextmanager
def _asking(model: Model | None) -> Iterator[Callable[[str], Ask] | None]:
    """Yields task -> the function that asks the model about it, for any thread: the model lives in a loop of its own."""
    if model is None:
        yield None
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def about(task_id: str) -> Ask:
        known: dict[tuple[tuple[str, str | None], ...], str] = {}

        def ask(messages: tuple[Message, ...]) -> str:
            key = tuple((one.text, one.picture.key if one.picture else None) for one in messages)
            if key not in known:
                request = Request(messages, StepKey(task_id, "reward"), group=0, turn=len(known) + 1)
                known[key] = wait(model.complete(request)).text
            return known[key]

        return ask

    try:
        yield about
    finally:
        wait(model.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
