"""Rewards of finished tasks of VisualWebArena and WebArena, from files: a task file, answers, stored states.

A model is asked where a task needs one, once for all rule sets.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import LARGE, read_rows, read_text
from seeact_offline.files.redaction import redact
from seeact_offline.files.table import Table
from seeact_offline.records import CallError, InputError, Message, Model, Request, SeeActError, StepKey
from seeact_offline.runs.ask import run_coroutine
from seeact_offline.trajectories.answer_rules import REASONS, Ask, Unscored
from seeact_offline.trajectories.locators import BROWSER
from seeact_offline.trajectories.rule_sets import RULES, RuleSet
from seeact_offline.trajectories.task_states import TaskState, read_state

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
            scores = [result.score for result in rewards if result.score is not None]
            missing = Counter(result.unscored for result in rewards if result.unscored)
            unscored = ", ".join(f"{reason} {n}" for reason, n in sorted(missing.items())) or "-"
            done = int(sum(scores))
            rows.append(
                (name, len(rewards), len(scores), done, _rate(done, len(scores)), _rate(done, len(rewards)), unscored)
            )
        return Table(header=header, rows=rows)

    @property
    def differences(self) -> list[str]:
        """One line for each task whose score depends on the rule set."""
        lines = []
        for of_task in zip(*self.by_rules.values(), strict=True):
            if len({result.score for result in of_task}) > 1:
                scores = ", ".join(
                    f"{result.rules} {result.unscored if result.score is None else int(result.score)}"
                    for result in of_task
                )
                lines.append(f"task {of_task[0].task_id}: {scores}")
        return lines

    @property
    def failed(self) -> int:
        """Tasks of which a call failed."""
        return sum(
            any(part.unscored == "call_failed" for part in result.parts) for result in self.by_rules["visualwebarena"]
        )

    def lines(self) -> Iterator[str]:
        """Yields the JSON of each task under each rule set."""
        for of_task in zip(*self.by_rules.values(), strict=True):
            for result in of_task:
                parts = [
                    {"evaluator": part.evaluator, "score": part.score}
                    | ({"unscored": part.unscored, "detail": part.detail} if part.unscored else {})
                    for part in result.parts
                ]
                row = {"task_id": result.task_id, "rules": result.rules, "score": result.score, "parts": parts}
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

    `answers`: JSONL with `task_id` and `answer`, and perhaps `address`. `states`: a folder with `TASK_ID/state.json`.
    `sites`: name -> address, which replaces `__NAME__` in the task file. Raises InputError.
    """
    tasks = list(read_tasks("config", config, sites))
    lines = _answers(answers, {str(task.task_id) for task in tasks})

    async def scored() -> list[list[TaskReward]]:
        loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(WORKERS)

        def score(task: RewardTask) -> list[TaskReward]:
            line = lines.get(str(task.task_id))
            state = _state(task, line, states, config.parent)
            answer = None if line is None or line.answer is None else str(line.answer)
            # a reply is shared by the rule sets
            ask = None if model is None else _asking(model, str(task.task_id), loop)
            return [reward(rules, task, answer, state, ask) for rules in RULES.values()]

        futures = [loop.run_in_executor(pool, score, task) for task in tasks]
        try:
            return await asyncio.gather(*futures)
        finally:
            # after an error no other task is begun, and those that were need the loop to their end
            pool.shutdown(wait=False, cancel_futures=True)
            await asyncio.gather(*futures, return_exceptions=True)
            BROWSER.close()
            if model is not None:
                await model.aclose()

    rewards = run_coroutine(scored())
    return Rewards({name: [of_task[i] for of_task in rewards] for i, name in enumerate(RULES)})


def _asking(model: Model, task_id: str, loop: asyncio.AbstractEventLoop) -> Ask:
    """Asks the model about a task, from any thread: the model lives in the loop."""
    replies: dict[tuple[tuple[str, str | None], ...], str] = {}

    def ask(messages: tuple[Message, ...]) -> str:
        key = tuple((message.text, message.picture.key if message.picture else None) for message in messages)
        if key not in replies:
            request = Request(messages, StepKey(task_id, "reward"), group=0, turn=len(replies) + 1)
            replies[key] = asyncio.run_coroutine_threadsafe(model.complete(request), loop).result().text
        return replies[key]

    return ask


def reasons(rewards: Rewards) -> dict[str, str]:
    """The meaning of each reason for which a task has no score."""
    unscored = {part.unscored for of_rules in rewards.by_rules.values() for result in of_rules for part in result.parts}
    return {name: meaning for name, meaning in REASONS.items() if name in unscored}


def _answers(path: Path, tasks: set[str]) -> dict[str, _AnswerLine]:
    """Reads answers by task. Raises InputError, also for two of one task, and where no task has one."""
    answers: dict[str, _AnswerLine] = {}
    for line, where in read_rows("answers", path, _AnswerLine):
        if str(line.task_id) in answers:
            raise InputError("answers", "one answer a task", f"another of task {line.task_id} in {where}")
        answers[str(line.task_id)] = line
    if not tasks & answers.keys():
        raise InputError("answers", "answers to tasks of the task file", f"none in {path}")
    return answers


def _state(task: RewardTask, line: _AnswerLine | None, states: Path | None, references: Path) -> TaskState | None:
    """The stored state, or what the line of answers says of it; None for neither.
    Raises InputError for `states` that is no folder."""
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


# --- one task ---

LONGEST_DETAIL = 300
"""Most characters of a detail."""


class Evaluation(msgspec.Struct, frozen=True):
    """The `eval` of a task."""

    eval_types: tuple[str, ...]
    reference_answers: Mapping[str, Any] | None = None
    reference_url: str | None = None
    url_note: str | None = None
    program_html: tuple[Mapping[str, Any], ...] | None = None
    page_image_query: tuple[Mapping[str, Any], ...] | None = None
    string_note: str | None = None


class RewardTask(msgspec.Struct, frozen=True):
    """One task of a task file; other fields are ignored."""

    task_id: int | str
    intent: str
    eval: Evaluation


@dataclass(frozen=True, slots=True)
class Part:
    """The score of one evaluator of a task."""

    evaluator: str
    score: float | None
    """1.0 or 0.0; None where it could not be scored."""
    unscored: str | None = None
    """One of `answer_rules.REASONS`."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TaskReward:
    """The reward of a task under one rule set."""

    task_id: str
    rules: str
    parts: tuple[Part, ...]

    @property
    def score(self) -> float | None:
        """The product of all parts: 0 if any is 0; None where parts without a score leave it open."""
        scores = [part.score for part in self.parts]
        if 0.0 in scores:
            return 0.0
        return None if None in scores else 1.0

    @property
    def unscored(self) -> str | None:
        """The first reason for which there is no score; None with a score."""
        return None if self.score is not None else next(part.unscored for part in self.parts if part.unscored)


def reward(
    rules: RuleSet, task: RewardTask, answer: str | None, state: TaskState | None = None, ask: Ask | None = None
) -> TaskReward:
    """Scores one finished task.

    `answer`: the final response, empty for an agent that stopped without one; None where it is not known. `state`: the
    state after the last action. `ask`: a model, for parts that need one.
    Raises only what must stop the run, such as a spent budget.
    """
    ask, wanted = ask or _no_model, task.eval
    evaluators: dict[str, Callable[[], float]] = {
        "string_match": lambda: rules.string_match(
            _present(answer, "no_answer", "there is none for this task"),
            _field_or_raise("reference_answers", wanted.reference_answers),
            task.intent,
            wanted.string_note or "",
            ask,
        ),
        "url_match": lambda: rules.url_match(
            _present(_state_or_raise(state).address, "no_state", "the last page's address is not known"),
            _field_or_raise("reference_url", wanted.reference_url),
            wanted.url_note,
        ),
        "program_html": lambda: rules.program_html(
            _state_or_raise(state), _field_or_raise("program_html", wanted.program_html), ask
        ),
        "page_image_query": lambda: rules.page_image_query(
            _state_or_raise(state), _field_or_raise("page_image_query", wanted.page_image_query), ask
        ),
    }
    parts = [_part(name, evaluators.get(name) if name in rules.evaluators else None) for name in wanted.eval_types]
    return TaskReward(str(task.task_id), rules.name, tuple(parts))


def read_tasks(argument: str, path: Path, sites: Mapping[str, str] | None = None) -> Iterator[RewardTask]:
    """Yields the tasks of a task file: a list, or one task. Raises InputError naming the task.

    `sites`: name -> address, which replaces `__NAME__` in the file.
    """
    text = read_text(argument, path, largest=LARGE)
    for name, site in (sites or {}).items():
        text = text.replace(f"__{name}__", site)
    try:
        content = read_json(text)
    except FormatError as error:
        raise InputError(argument, error.expected, f"{error.got} in {path}") from None
    seen: set[str] = set()
    for number, row in enumerate(content if isinstance(content, list) else [content]):
        where = f"task {number} of {path}"
        try:
            task = typed(row, RewardTask)
        except FormatError as error:
            raise InputError(argument, error.expected, f"{error.got} in {where}") from None
        if str(task.task_id) in seen:
            raise InputError(argument, "every task_id once", f"{task.task_id} again in {where}")
        seen.add(str(task.task_id))
        yield task


def _part(name: str, evaluator: Callable[[], float] | None) -> Part:
    if evaluator is None:
        return Part(name, None, "unsupported_evaluator")
    try:
        return Part(name, evaluator())
    except Unscored as error:
        return Part(name, None, error.name, error.detail)
    except CallError as error:
        return Part(name, None, "call_failed", str(error))
    except SeeActError:
        raise
    except Exception as error:
        # a text that we never met must not end a run that others have paid for
        return Part(name, None, "program_failed", f"{type(error).__name__}: {error}"[:LONGEST_DETAIL])


def _no_model(messages: Sequence[Any]) -> str:
    raise Unscored("no_model", "a model has to judge it, and none is given")


def _present(value: T | None, reason: str, detail: str) -> T:
    if value is None:
        raise Unscored(reason, detail)
    return value


def _state_or_raise(state: TaskState | None) -> TaskState:
    state = _present(state, "no_state", "there is none for this task")
    if state.fault is not None:
        raise Unscored("bad_state", state.fault)
    return state


def _field_or_raise(name: str, value: Any) -> Any:
    return _present(value, "bad_task", f"expected {name} in the task, got none")
