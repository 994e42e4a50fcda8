"""Attempts at train tasks: which of them are accepted, the dialogues that they leave to learn from, and their figures.

Each number of attempt is a run of `evaluate` over the tasks that are left. Figures are pure functions of finished runs.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from seeact_offline.agents.acts import ENDINGS
from seeact_offline.dataset import Split
from seeact_offline.dataset.split import with_earlier
from seeact_offline.files.whole import replace_text
from seeact_offline.grounding.conversation import messages
from seeact_offline.records import Prediction, Step, StepError, StepKey
from seeact_offline.results.comparing import compare
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import read_steps
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.run import Run
from seeact_offline.runs.strategy_opening import open_strategy
from seeact_offline.scoring import aggregate, inference
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.results import StepRow
from seeact_offline.scoring.waterfall import LEFT_OUT
from seeact_offline.trajectories.dialogue_files import (
    NONE,
    Dialogue,
    DialogueCounts,
    DialogueLine,
    count_dialogues,
    read_dialogues,
    write_dialogues,
    write_lines,
)
from seeact_offline.web_agents.systems import THOUGHT
from seeact_offline.web_agents.web_loop import CORRECTED, WebAgentGrounding

HARD_BELOW = 0.4
"""Share of a website's tasks that the attempts solve,
below which it gets as many more (OpenWebVoyager, difficulty-guided sampling)."""


@dataclass(frozen=True)
class AskedRun:
    """A finished run, task by task."""

    run: Run

    @cached_property
    def tasks(self) -> Mapping[str, Sequence[StepRow]]:
        """The scored steps of each task, without those that its protocol leaves out."""
        tasks: dict[str, list[StepRow]] = {}
        for key, row in read_steps(self.run.path).items():
            if row.outcome != LEFT_OUT:
                tasks.setdefault(key.annotation_id, []).append(row)
        return tasks

    @cached_property
    def predictions(self) -> Mapping[StepKey, Prediction]:
        return {prediction.key: prediction for prediction in self.run.predictions()}

    @cached_property
    def right(self) -> frozenset[StepKey]:
        """Steps with the recorded element and operation."""
        return frozenset(row.key for rows in self.tasks.values() for row in rows if row.success == 1.0)

    @cached_property
    def solved(self) -> frozenset[str]:
        """Tasks whose steps are all right."""
        return frozenset(task for task, rows in self.tasks.items() if all(row.key in self.right for row in rows))

    @cached_property
    def completed(self) -> frozenset[str]:
        """Tasks at each step of which the model has given an action in its form, right or wrong,
        and also where it scrolled or left."""
        return self._with_all(lambda answer: answer.failure is None or answer.failure in ENDINGS.values())

    @cached_property
    def acted(self) -> frozenset[str]:
        """Tasks at each step of which the model has acted on an element, right or wrong."""
        return self._with_all(lambda answer: answer.failure is None)

    def _with_all(self, suits: Callable[[Prediction], bool]) -> frozenset[str]:
        return frozenset(
            task
            for task, rows in self.tasks.items()
            if all(self.predictions[row.key].ran and suits(self.predictions[row.key]) for row in rows)
        )


@dataclass(frozen=True)
class Attempt:
    """One attempt at each of some tasks."""

    number: int
    """Number of the attempt from 1."""
    asked: AskedRun
    accepted: frozenset[str]


@dataclass(frozen=True)
class Exploration:
    """The attempts of a cycle."""

    most: int
    """K: attempts at a task; those beyond it are of hard websites alone."""
    attempts: tuple[Attempt, ...]

    @property
    def first(self) -> AskedRun:
        return self.attempts[0].asked

    @cached_property
    def accepted(self) -> Mapping[str, int]:
        """Task -> the number of the attempt that is accepted."""
        return {task: attempt.number for attempt in self.attempts for task in sorted(attempt.accepted)}

    def solved_within(self, k: int) -> frozenset[str]:
        """Tasks with an accepted attempt among the first k."""
        return frozenset(task for task, number in self.accepted.items() if number <= k)

    def right_within(self, k: int) -> frozenset[StepKey]:
        """Steps that some attempt among the first k has right."""
        return frozenset().union(*(attempt.asked.right for attempt in self.attempts if attempt.number <= k))


def tasks_of_hard_websites(attempts: Sequence[Attempt]) -> frozenset[str]:
    """Tasks of the websites of which less than HARD_BELOW are solved by now."""
    websites: dict[str, set[str]] = {}
    for task, rows in attempts[0].asked.tasks.items():
        websites.setdefault(rows[0].website, set()).add(task)
    solved = frozenset().union(*(attempt.accepted for attempt in attempts))
    hard = (tasks for tasks in websites.values() if len(tasks & solved) < HARD_BELOW * len(tasks))
    return frozenset().union(*hard)


# --- dialogues ---


@dataclass(frozen=True, slots=True)
class DialogueFile:
    """A file of dialogues."""

    path: Path
    counts: DialogueCounts
    left_out: Mapping[str, int]
    """Steps that are not learnt from, by reason."""


def write_run_dialogues(
    path: Path,
    split: Split,
    runs: Mapping[StepKey, AskedRun],
    config: EvalConfig,
    number: int,
    source: str,
    thoughts: Mapping[StepKey, str] = MappingProxyType({}),
    thoughts_of: str = NONE,
) -> DialogueFile:
    """Writes the dialogues of steps, each as the run that is named for it has asked it, unless they are there.

    `config`: how these runs ask. `number`: the cycle. `thoughts`: those that gold actions are told with, written by
    the model `thoughts_of`.
    """
    ready = path.with_suffix(".json")
    if ready.exists():
        return DialogueFile(path, count_dialogues(path), json.loads(ready.read_text("utf-8"))["left_out"])
    left_out: Counter[str] = Counter()

    def dialogues() -> Iterator[Dialogue]:
        grounding = open_strategy(config).grounding
        assert isinstance(grounding, WebAgentGrounding)
        tasks = {key.annotation_id for key in runs}
        for step in with_earlier(split.only(tasks).steps(), grounding.earlier) if tasks else ():
            if step.key in runs:
                try:
                    prediction = runs[step.key].predictions[step.key]
                    of_step = _dialogues_of_step(grounding, step, prediction, source)
                except StepError as error:
                    left_out[error.name] += 1
                    continue
                if of_step and step.key in thoughts:
                    # the actions before the last one only scroll
                    reply = of_step[-1].reply.replace(THOUGHT, thoughts[step.key], 1)
                    of_step[-1] = replace(of_step[-1], reply=reply, thoughts=thoughts_of)
                yield from of_step

    left_out += write_dialogues(path, dialogues(), number)
    replace_text(ready, json.dumps({"left_out": left_out}) + "\n")
    return DialogueFile(path, count_dialogues(path), left_out)


def _dialogues_of_step(grounding: WebAgentGrounding, step: Step, prediction: Prediction, source: str) -> list[Dialogue]:
    """Makes a dialogue of each action of a step, without those that the agent was corrected for. Raises StepError."""
    prepared = prepare(step, None, 0, grounding.form.image)
    asked = grounding.past_questions(prepared, [group.replies for group in prediction.groups])
    dialogues = []
    for past, group in zip(asked, prediction.groups, strict=False):
        if past.question.offered != group.offered:
            raise StepError("asked_otherwise")
        if group.replies and group.failure not in CORRECTED:
            dialogues.append(Dialogue(step.key, messages(past.question), group.replies[-1], source))
    return dialogues


def write_control(path: Path, gold: Path, n_items: int, seed: str) -> DialogueCounts:
    """Writes as many gold dialogues as are asked for: all of them as often as they fit,
    and others drawn by the seed."""
    lines = list(read_dialogues(gold))
    times, rest = divmod(n_items, len(lines))
    drawn = frozenset(random.Random(seed).sample(range(len(lines)), rest))

    def chosen() -> Iterator[tuple[Path, DialogueLine]]:
        for place, line in enumerate(lines):
            for _ in range(times + (place in drawn)):
                yield gold, line

    write_lines(path, chosen())
    return count_dialogues(path)


# --- figures ---


def exploration_figures(exploration: Exploration, n_items: int) -> dict[str, Any]:
    """Figures of a cycle's attempts. `n_items`: actions of the accepted attempts.

    `s_at`: tasks with an accepted attempt within k, over all tasks. `pass_at`: steps that some attempt within k has
    right, over all steps; another figure, as those of a task may be right in different attempts.
    """
    tasks = exploration.first.tasks
    s_at, pass_at = [], []
    for k in range(1, exploration.most + 1):
        solved, right = exploration.solved_within(k), exploration.right_within(k)
        s_at.append({"k": k, "tasks": len(solved), **_share({task: [float(task in solved)] for task in tasks})})
        steps = {task: [float(row.key in right) for row in rows] for task, rows in tasks.items()}
        pass_at.append({"k": k, "steps": len(right), **_share(steps)})
    completed = exploration.first.completed
    return {
        "n_tasks": len(tasks),
        "n_steps": sum(map(len, tasks.values())),
        "attempts": [
            {
                "number": attempt.number,
                "tasks": len(attempt.asked.tasks),
                "accepted": len(attempt.accepted),
                "not_run": attempt.asked.run.n_failed,
            }
            for attempt in exploration.attempts
        ],
        "accepted_tasks": len(exploration.accepted),
        "accepted_turns": n_items,
        "s_at": s_at,
        "pass_at": pass_at,
        "completed_at_1": {
            "tasks": len(completed),
            **_share({task: [float(task in completed)] for task in tasks}),
        },
    }


def _share(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The mean over steps (over tasks where each has one value), its interval clustered by task."""
    metric = aggregate.metric(values)
    return {"value": metric.micro, "ci95": list(aggregate.micro_interval(values).ci95)}


def split_figures(run: Run) -> dict[str, Any]:
    """Every metric as its protocol quotes it, with the number of steps and tasks."""
    results = run.record
    sizes = {"n_tasks": results.n_tasks, "n_steps": results.n_steps, "n_not_run": run.n_failed}
    return {**sizes, **results.headlines}


def differences(run: Run, others: Mapping[str, Run], seed: int) -> dict[str, Any]:
    """The run minus each of others, its baselines, metric by metric, paired by step and clustered by task.

    p is adjusted for the number of baselines.
    """
    gaps = {
        name: {pair.metric: pair.gap for pair in compare(other, run, seed=seed).pairs} for name, other in others.items()
    }
    differing: dict[str, Any] = {name: {} for name in others}
    for metric in METRICS:
        of_metric = {name: by_metric[metric] for name, by_metric in gaps.items() if metric in by_metric}
        adjusted = inference.holm([gap.p for gap in of_metric.values()])
        for (name, gap), p in zip(of_metric.items(), adjusted, strict=True):
            ci95 = None if gap.ci95 is None else list(gap.ci95)
            differing[name][metric] = {"value": gap.macro, "ci95": ci95, "p": p}
    return differing
