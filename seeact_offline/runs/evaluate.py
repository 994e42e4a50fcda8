"""A split through ranking, asking and scoring, into a run's folder: the command, notebooks and tests all call this."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from seeact_offline.files.markdown import printable
from seeact_offline.grounding.strategies import notes
from seeact_offline.models.budget import LAST_CALLS_S, Budget
from seeact_offline.ranking import Scores
from seeact_offline.ranking.stage import extent
from seeact_offline.records import Model, Prediction, Step, Usage
from seeact_offline.runs.ask import RunState, StepAnswer, ask_step, ask_steps, run_coroutine
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.costs import paid_cost, run_cost
from seeact_offline.runs.engines import ASKING_ENGINES, AskTask
from seeact_offline.runs.opening import OpenRun, open_run
from seeact_offline.runs.paid_folder import PaidFolder, paid_folder
from seeact_offline.runs.reading_hints import reading_hint
from seeact_offline.runs.run import Run
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.assembling import ScoringInput, assemble
from seeact_offline.scoring.report import counted, report

SWITCH_S = 0.0005
"""Seconds after which a thread that reads a page lets the loop of calls proceed. The loop gives Python's lock up at every
write to a socket, dozens of times a call, and would wait for ten times as long by default."""


def evaluate(config: EvalConfig | None = None, *, watch: Watch | None = None, **options: Any) -> Run:
    """Runs a model over the steps of a split and scores it, as the command `eval` does; the run is in its `out` folder.

    `options` are fields of `EvalConfig`, which win over `config`; `watch` hears of progress. A run that was stopped
    resumes from its folder and asks for nothing twice. Works inside a running event loop (Jupyter) too.

    Raises InputError for what cannot be used. A step that fails is a counted failure of
    the results, never an exception.
    """
    watch = watch or Watch()
    run = open_run(EvalConfig.of(config, **options), watch)
    with paid_folder(run.folder, run.manifest.identity, run.model, watch) as paid:
        state = RunState.of(run)
        run = run.with_dropped(())
        model = paid.open_model(run.manifest)
        _note_beginning(run, state, model, paid)
        scores = run.scores()
        complete = ask_all(run, state, model, scores, paid)
        if not complete and not state.done:
            raise paid.budget.too_small()
        repeated, complete = _ask_repeats(run, state, scores, complete, paid)
        dropped = state.dropped.union(model.dropped)
        paid.note_once([*model.remarks, *state.remarks])
        paid.note_dropped(dropped)
        run = run.with_dropped(dropped)
        paid.note_replies(run.manifest, [*state.done.values(), *repeated], is_said=bool(state.to_ask))
        n_reached = write_results(run, state, complete and state.is_complete(run), is_scored=not run.predict_only)
    failed = sum(prediction.has_failed for prediction in repeated)
    return Run(run.folder.path, is_stopped=not complete, failed_repeats=failed, n_left=len(run.split.keys) - n_reached)


def _note_beginning(run: OpenRun, state: RunState, model: Model, paid: PaidFolder) -> None:
    settings = run.manifest.settings
    paid.watch.begun(settings["dataset"])
    if remark := run.folder.version_remark():
        paid.watch.note(remark)
    paid.watch.note(f"{extent(run.split)}, model {settings['model']}, out {run.folder.path}")
    if state.done:
        done = "step is done already and is not", "steps are done already and are not"
        paid.watch.note(f"{counted(len(state.done), *done)} asked again")
    paid.note_once(model.remarks)
    paid.note_once(f"{settings['model']} ignores {name}" for name in run.model.ignored)


def _ask_repeats(
    run: OpenRun, state: RunState, scores: Scores | None, complete: bool, paid: PaidFolder
) -> tuple[list[Prediction], bool]:
    """Asks the run's steps in its other orders, unless the cost limit has stopped it (`complete`); returns their
    predictions, and False where the limit stopped it now."""
    predictions: list[Prediction] = []
    for number in range(1, len(run.repeats) + 1 if complete else 1):
        repeat = run.repeat(number)
        state_of_repeat = RunState.of(repeat)
        repeat.folder.claim(repeat.manifest)
        paid.watch.note(f"order {number} of {len(run.repeats)}: {counted(len(state_of_repeat.to_ask), 'step')} to ask")
        model = paid.another_model(run.model, run.manifest)
        complete = ask_all(repeat, state_of_repeat, model, scores, paid)
        write_results(repeat, state_of_repeat, complete)
        predictions += state_of_repeat.done.values()
        state.remarks += state_of_repeat.remarks
        if not complete:
            break
    return predictions, complete


def ask_all(run: OpenRun, state: RunState, model: Model, scores: Scores | None, paid: PaidFolder) -> bool:
    """Asks the steps that are left, in this process or by Ray's workers, and closes the model. False when the cost
    limit left some over. A run that is interrupted says what it has kept."""
    budget, watch, interval_s = paid.budget, paid.watch, sys.getswitchinterval()

    async def ask() -> bool:
        try:
            async with _engine(run, state, model, scores, budget, watch) as ask_one:
                return await ask_steps(run, state, ask_one, watch, has_room=budget.has_room, spent=lambda: budget.known)
        except asyncio.CancelledError:
            watch.note(f"calls in flight are waited for, at most {LAST_CALLS_S} s; Ctrl-C ends at once")
            raise
        finally:
            await model.aclose()

    try:
        sys.setswitchinterval(SWITCH_S)
        return run_coroutine(ask())
    except KeyboardInterrupt:
        n_replies = len(_replies_paid(run))
        cost = "cost not known" if budget.known is None else f"{budget.known:.4f} USD spent"
        kept = f"{counted(n_replies, 'reply', 'replies')} kept in {run.folder.path}"
        watch.note(f"{len(state.done)} of {counted(len(run.split.keys), 'step')} done, {kept}, {cost}")
        raise
    finally:
        sys.setswitchinterval(interval_s)


def _replies_paid(run: OpenRun) -> dict[str, Usage]:
    """`CallRecord.asked` -> usage of the replies that this run has paid for."""
    from seeact_offline.models.reply_cache import replies_paid_by

    return {} if run.model.options.cache is None else replies_paid_by(run.model.options.cache, run.id)


@asynccontextmanager
async def _engine(
    run: OpenRun, state: RunState, model: Model, scores: Scores | None, budget: Budget, watch: Watch
) -> AsyncIterator[Callable[[Step], Coroutine[Any, Any, StepAnswer]]]:
    """The function that asks a step: of the model, or of those of Ray's workers, opened with the same options."""
    ask = partial(ask_step, grounding=run.grounding, top_k=run.asking.top_k)
    # no Ray is started for nothing
    if run.asking.workers is None or not state.to_ask:
        yield lambda step: ask(step, scores, model)
        return
    async with ASKING_ENGINES[run.asking.engine](
        AskTask(run.model.spec, replace(run.model.options, run=run.id), ask), run.asking.workers, watch.note
    ) as workers:
        watch.note(str(workers.askers))
        # in the budget since it was opened
        kept = _replies_paid(run)

        async def ask_by_worker(step: Step) -> StepAnswer:
            answer: StepAnswer = await workers.ask(step, scores)
            # a worker cannot write to the ledger
            budget.add(paid_cost(answer.prediction, kept), answer.prediction.usage.calls)
            return answer

        yield ask_by_worker
        state.remarks += await workers.remarks()


def write_results(run: OpenRun, state: RunState, complete: bool, *, is_scored: bool = True) -> int:
    """Puts the steps that were reached into order, scores them if `is_scored`, and writes all files of the run; returns
    how many steps that were."""
    order = state.reached(run)
    predictions, truths = [state.done[key] for key in order], [state.truths[key] for key in order]
    run.folder.order(predictions, truths)
    if not is_scored:
        return len(order)
    orders = run.folder.finished_repeats(truths)
    made = assemble(
        ScoringInput(run.manifest.settings, predictions, truths, complete, run.flagged, orders), run.protocol
    )
    results = made.results.changed(cost_usd=run_cost(run.folder, made.results.usage["cost_usd"]))
    hint = reading_hint(predictions, truths, run.manifest.settings)
    text = printable(report(results, made.rows, notes(results.grounding), hint.sentences() if hint else ()))
    run.folder.write_scores(made.rows, results, text)
    run.folder.remember_flagged(run.flagged)
    return len(order)
