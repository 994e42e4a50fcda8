"""Task files of VisualWebArena and WebArena, and the reward of one finished task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import LARGE, read_text
from seeact_offline.records import CallError, InputError, SeeActError
from seeact_offline.trajectories.model_rules import Ask
from seeact_offline.trajectories.rule_sets import RuleSet
from seeact_offline.trajectories.task_states import TaskState
from seeact_offline.trajectories.unscored import Unscored

LONGEST_DETAIL = 300
"""Characters."""


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
    """One of `unscored.REASONS`."""
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

    `answer`: the final response, empty for an agent that stopped without one; None where it is not known. `state`: the state after the
    last action. `ask`: a model, for parts that need one. Raises only what must stop the run, such as a spent budget.
    """
    ask, wanted = ask or _no_model, task.eval

    def address() -> str:
        found = _there(state).address
        if found is None:
            raise Unscored("no_state", "the last page's address is not known")
        return found

    evaluators: dict[str, Callable[[], float]] = {
        "string_match": lambda: rules.string_match(
            _known(answer), _given("reference_answers", wanted.reference_answers), task.intent, wanted.string_note or "", ask
        ),
        "url_match": lambda: rules.url_match(address(), _given("reference_url", wanted.reference_url), wanted.url_note),
        "program_html": lambda: rules.program_html(_there(state), _given("program_html", wanted.program_html), ask),
        "page_image_query": lambda: rules.page_image_query(
            _there(state), _given("page_image_query", wanted.page_image_query), ask
        ),
    }  # fmt: skip
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


def _known(answer: str | None) -> str:
    if answer is None:
        raise Unscored("no_answer", "there is none for this task")
    return answer


def _there(state: TaskState | None) -> TaskState:
    if state is None:
        raise Unscored("no_state", "there is none for this task")
    if state.fault is not None:
        raise Unscored("bad_state", state.fault)
    return state


def _given(name: str, value: Any) -> Any:
    if value is None:
        raise Unscored("bad_task", f"expected {name} in the task, got none")
    return value
