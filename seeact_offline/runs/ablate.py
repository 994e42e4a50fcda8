"""Annotation with every way of marking over the same steps: a run folder a row in one folder, and Table 5 of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from seeact_offline.grounding.conversation import in_thread
from seeact_offline.models import open_model
from seeact_offline.models.breaker import ENOUGH
from seeact_offline.models.budget import Budget
from seeact_offline.models.client import ModelClient
from seeact_offline.pages.dom import Page
from seeact_offline.ranking import Scores
from seeact_offline.records import Model, Prediction, Step, StepKey, Truth
from seeact_offline.runs.charging import replies_of
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluation import (
    Job,
    State,
    default_out,
    done_before,
    model_options,
    open_job,
    run_coroutine,
    run_id,
    score,
    spending,
    stop_on_errors,
    write_results,
)
from seeact_offline.runs.folder import Manifest, RunFolder
from seeact_offline.runs.groundings import open_strategy
from seeact_offline.runs.markings import Marking, check_markings
from seeact_offline.runs.runner import answer, preparing
from seeact_offline.runs.runner import run as run_steps
from seeact_offline.runs.selection import extent
from seeact_offline.runs.targets import target_of
from seeact_offline.runs.watch import Steps, Watch
from seeact_offline.scoring.report import counted, replies_in_words

NAME = "ablate-markup"
_OF_A_CELL = ("marks", "mark_position", "mark_turn1")


@dataclass(frozen=True)
class Ablation:
    """What an ablation leaves."""

    path: Path
    failed: int
    """Answers that failed to run, over all rows."""
    n_left: int
    """Steps that are not in the table, because a cost limit stopped the run."""


@dataclass(frozen=True)
class _CellRun:
    """One cell: its own run folder, and what is known of it."""

    cell: Marking
    job: Job
    folder: RunFolder
    state: State

    def is_done(self, key: StepKey) -> bool:
        return key in self.state.done

    def keep(self, prediction: Prediction) -> None:
        self.folder.append(prediction, self.state.truths[prediction.key])
        self.state.done[prediction.key] = prediction

    def show(self, progress: Steps, key: StepKey, resumed: bool = False) -> None:
        prediction = self.state.done[key]
        progress.add(prediction, score(self.job, self.state, prediction), resumed)


def ablate_markup(config: EvalConfig, cells: Sequence[Marking], watch: Watch | None = None) -> Ablation:
    """Asks the same steps in every cell. `config`: what the cells have in common. A killed run goes on from its folder.

    Raises InputError.
    """
    watch = watch or Watch()
    check_markings(cells, config.group_size, config.merge, config.top_k)
    out = RunFolder(config.out or default_out(config, NAME))
    first = open_job(_of_cell(config, cells[0]), watch)
    out.check(_common(first.identity) | {"ablation": NAME})
    with out.alone(), spending(config, out) as budget:
        return _ablate(config, cells, first, out, budget, watch)


def _ablate(
    config: EvalConfig, cells: Sequence[Marking], first: Job, out: RunFolder, budget: Budget, watch: Watch
) -> Ablation:
    """In a folder in which no other is at work."""
    runs, model = _opened(config, cells, first, out, budget)
    _announce(config, runs, out, watch)
    ranking = runs[0].job.ranking
    scores = None if ranking is None else ranking.scores()
    with rare_collections():
        complete = run_coroutine(_ask_all(config, runs, scores, model, budget, watch))
    replies = replies_of((one for run in runs for one in run.state.done.values()), budget.known)
    _claim(first, out, replies)
    if replies:
        watch.note(replies_in_words(replies))
    for run in runs:
        write_results(run.job, run.folder, run.state, complete)
    shared = [key for key in runs[0].job.split.keys if all(run.is_done(key) for run in runs)]
    failed = sum(not p.ran for p in _all_done(runs))
    return Ablation(out.path, failed, len(runs[0].job.split.keys) - len(shared))


def _all_done(runs: Sequence[_CellRun]) -> list[Prediction]:
    return [prediction for run in runs for prediction in run.state.done.values()]


# --- opening ---


def _common(named: Mapping[str, Any]) -> dict[str, Any]:
    """What all cells have alike."""
    return {name: value for name, value in named.items() if name not in _OF_A_CELL}


def _claim(first: Job, out: RunFolder, replies: dict[str, Any] | None = None) -> None:
    """Writes the manifest of what all cells have in common."""
    out.claim(
        Manifest(
            identity=_common(first.identity) | {"ablation": NAME},
            settings=_common(first.settings),
            made=first.made,
            replies=replies,
        )
    )


def _opened(
    config: EvalConfig, cells: Sequence[Marking], first: Job, out: RunFolder, budget: Budget
) -> tuple[list[_CellRun], Model]:
    """The cells in their folders, and the model; no folder is claimed before all is known to be usable."""
    truths: dict[StepKey, Truth] = {}
    runs = [_cell_run(config, first, cell, out, truths) for cell in cells]
    model = open_model(config.model, model_options(config, out, budget, run_id(first, out)))
    done = [prediction for run in runs for prediction in run.state.done.values()]
    if isinstance(model, ModelClient):
        # what a cell that is done has asked is counted there, also once the run is resumed
        model.counted.update(call.record.asked for prediction in done for call in prediction.calls)
    _claim(first, out)
    for run in runs:
        run.folder.claim(run.job.manifest)
    return runs, model


def _of_cell(config: EvalConfig, cell: Marking) -> EvalConfig:
    return config.changed(
        grounding="annotation", marks=cell.kind, mark_position=cell.position, mark_turn1=cell.in_turn1 or None
    )


def _cell_run(config: EvalConfig, first: Job, cell: Marking, out: RunFolder, truths: dict[StepKey, Truth]) -> _CellRun:
    """One cell with what it has done; `truths` is the same for all."""
    opened = open_strategy(_of_cell(config, cell))
    identity = first.identity | opened.identity | {"ablation": NAME}
    job = replace(first, grounding=opened.grounding, identity=identity, settings=first.settings | opened.shown)
    folder = RunFolder(out.path / cell.name)
    if folder.path.exists():
        folder.check(identity)
    done = {key: prediction for key, prediction in done_before(job, folder, config).items() if prediction.ran}
    return _CellRun(cell, job, folder, State(done, truths))


def _announce(config: EvalConfig, runs: Sequence[_CellRun], out: RunFolder, watch: Watch) -> None:
    watch.begun(config.dataset)
    job, done = runs[0].job, sum(len(run.state.done) for run in runs)
    of, model = extent(job.split, job.settings["dataset"]), job.settings["model"]
    watch.note(f"{counted(len(runs), 'way')} of marking, {of} each, model {model}, out {out.path}")
    if done:
        watch.note(f"{done} of {len(runs) * len(job.split.keys)} are done already and are not asked again")


# --- asking ---


async def _ask_all(
    config: EvalConfig, runs: Sequence[_CellRun], scores: Scores | None, model: Model, budget: Budget, watch: Watch
) -> bool:
    """Step by step, each in all cells one after the other: so a run that is stopped has the same steps in each, the first
    cell always pays for what is shared, and a page is opened once. False when the cost limit left some over."""
    job = runs[0].job
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(run.folder)
        progress = stack.enter_context(watch.steps(len(runs) * len(job.split.keys), str(job.settings["split"])))

        async def work(step: Step) -> None:
            stop_on_errors(config, _all_done(runs), ENOUGH)
            await _ask_step(step, scores, config.top_k, runs, model, progress)

        try:
            steps = _open_steps(runs, progress)
            complete = await run_steps(steps, work, lambda _: None, config.concurrency, budget.has_room)
            for _ in steps:
                # what an earlier run has done beyond the first step left over stays in the files
                pass
            stop_on_errors(config, _all_done(runs))
            return complete
        finally:
            await model.aclose()


def _open_steps(runs: Sequence[_CellRun], progress: Steps) -> Iterator[Step]:
    """Streams the split, notes every truth, and gives the steps that some cell still has to ask."""
    known = {key: truth for run in runs for key, truth in run.folder.load_targets().items()}
    for step in runs[0].job.split.steps():
        runs[0].state.truths[step.key] = step.truth
        if any(run.is_done(step.key) for run in runs):
            runs[0].state.truths[step.key] = known.get(step.key) or target_of(step, partial(Page, step.cleaned_html))
        for run in runs:
            if run.is_done(step.key):
                run.show(progress, step.key, resumed=True)
        if not all(run.is_done(step.key) for run in runs):
            yield step


async def _ask_step(
    step: Step,
    scores: Scores | None,
    top_k: int,
    runs: Sequence[_CellRun],
    model: Model,
    progress: Steps,
) -> None:
    """The step in every cell that has not asked it, each answer kept at once."""

    ready = preparing(step, scores, top_k, runs[0].job.grounding)
    runs[0].state.truths[step.key] = await in_thread(target_of, step, lambda: ready().page)
    for run in runs:
        if not run.is_done(step.key):
            run.keep(await answer(step, ready, run.job.grounding, model))
            run.show(progress, step.key)
