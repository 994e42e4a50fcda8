"""A split through ranking, asking and scoring, into a run's folder: the command, notebooks and tests all call this."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from seeact_offline.files.markdown import printable
from seeact_offline.grounding.strategies import notes
from seeact_offline.models.budget import Budget
from seeact_offline.ranking import Scores
from seeact_offline.records import Model, Prediction, Step
from seeact_offline.runs.ask import RunState, StepAnswer, ask_step, ask_steps, run_coroutine
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.costs import paid_cost, run_cost
from seeact_offline.runs.engines import ASKING_ENGINES, AskTask
from seeact_offline.runs.model_settings import replies_of
from seeact_offline.runs.opening import OpenRun, open_run
from seeact_offline.runs.reading_hints import reading_hint
from seeact_offline.runs.run import Run
from seeact_offline.runs.selection import extent
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted, replies_in_words, report
from seeact_offline.scoring.results import ScoringInput, assemble


def evaluate(config: EvalConfig | None = None, *, watch: Watch | None = None, **options: Any) -> Run:
    """Runs a model over the steps of a split and scores it, as the command `eval` does; the run is in its `out` folder.

    `options` are fields of `EvalConfig`, which win over `config`; `watch` hears of progress. A run that was stopped resumes
    from its folder and asks for nothing twice. Works inside a running event loop (Jupyter) too.

    Raises InputError for what cannot be used. A step that fails is a counted failure of the results, never an exception.
    """
    watch = watch or Watch()
    run = open_run(EvalConfig.of(config, **options), watch)
    run.folder.check(run.manifest.identity)
    with run.folder.alone(), run.model.spending(run.folder) as budget, rare_collections():
        return _evaluate(run, budget, watch)


def _evaluate(run: OpenRun, budget: Budget, watch: Watch) -> Run:
    """The run in its folder, where no other is at work."""
    state, pays = RunState.of(run), run.id
    model = run.model.open(budget, pays)
    run = run.with_dropped(())
    # not before the model is known to be usable: a mistyped one must not claim the folder
    run.folder.claim(run.manifest)
    remarks = list(model.remarks)
    settings = run.manifest.settings
    watch.begun(settings["dataset"])
    if remark := run.folder.version_remark():
        watch.note(remark)
    watch.note(f"{extent(run.split)}, model {settings['model']}, out {run.folder.path}")
    if state.done:
        done = "step is done already and is not", "steps are done already and are not"
        watch.note(f"{counted(len(state.done), *done)} asked again")
    for remark in [*remarks, *(f"{settings['model']} ignores {name}" for name in run.model.ignored)]:
        watch.note(remark)
    scores = run.scores()
    try:
        complete = ask_all(run, state, model, scores, budget, watch)
    except KeyboardInterrupt:
        n_replies = sum(len(group.replies) for one in state.done.values() for group in one.groups)
        cost = "cost not known" if budget.known is None else f"{budget.known:.4f} USD spent"
        kept = f"{counted(n_replies, 'reply', 'replies')} kept in {run.folder.path}"
        watch.note(f"{len(state.done)} of {counted(len(run.split.keys), 'step')} done, {kept}, {cost}")
        raise
    if not complete and not state.done:
        raise budget.too_small()
    repeated: list[Prediction] = []
    for number in range(1, len(run.repeats) + 1 if complete else 1):
        again = run.repeat(number)
        known = RunState.of(again)
        again.folder.claim(again.manifest)
        watch.note(f"order {number} of {len(run.repeats)}: {counted(len(known.to_ask), 'step')} to ask")
        complete = ask_all(again, known, run.model.open(budget, pays), scores, budget, watch)
        write_results(again, known, complete)
        repeated += known.done.values()
        state.remarks += known.remarks
        if not complete:
            break
    for remark in dict.fromkeys([*model.remarks, *state.remarks]):
        if remark not in remarks:
            watch.note(remark)
    dropped = sorted(state.dropped.union(model.dropped))
    if dropped:
        watch.note(f"the server does not take {', '.join(dropped)}, which therefore went unsent")
    run = run.with_dropped(dropped)
    replies = replies_of([*state.done.values(), *repeated], budget.known)
    run.folder.claim(run.manifest.with_replies(replies))
    if replies and state.to_ask:
        watch.note(replies_in_words(replies))
    reached = finish(run, state, complete and state.is_complete(run))
    failed = sum(prediction.has_failed for prediction in repeated)
    return Run(run.folder.path, is_stopped=not complete, failed_repeats=failed, n_left=len(run.split.keys) - reached)


def ask_all(run: OpenRun, state: RunState, model: Model, scores: Scores | None, budget: Budget, watch: Watch) -> bool:
    """Asks the steps that are left, in this process or by Ray's workers, and closes the model. False when the cost limit left
    some over."""

    async def ask() -> bool:
        try:
            async with _engine(run, state, model, scores, budget, watch) as ask_one:
                return await ask_steps(run, state, ask_one, watch, has_room=budget.has_room, spent=lambda: budget.known)
        finally:
            await model.aclose()

    return run_coroutine(ask())


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
        from seeact_offline.models.reply_cache import replies_paid_by

        watch.note(str(workers.askers))
        # in the budget since it was opened
        kept = replies_paid_by(run.model.options.cache, run.id) if run.model.options.cache is not None else {}

        async def ask_by_worker(step: Step) -> StepAnswer:
            answer: StepAnswer = await workers.ask(step, scores)
            # a worker cannot write to the ledger
            budget.add(paid_cost(answer.prediction, kept))
            return answer

        yield ask_by_worker
        state.remarks += await workers.remarks()


def finish(run: OpenRun, state: RunState, complete: bool) -> int:
    """Puts the steps that were reached into order, and scores them unless only predictions are asked for; returns their number."""
    if not run.predict_only:
        return write_results(run, state, complete)
    order = state.reached(run)
    run.folder.order([state.done[key] for key in order], [state.truths[key] for key in order])
    return len(order)


def write_results(run: OpenRun, state: RunState, complete: bool) -> int:
    """Scores the steps that were reached and writes all files of the run; returns how many steps that were."""
    order = state.reached(run)
    predictions, truths = [state.done[key] for key in order], [state.truths[key] for key in order]
    orders = run.folder.finished_repeats(truths)
    made = assemble(
        ScoringInput(run.manifest.settings, predictions, truths, complete, run.flagged, orders), run.protocol
    )
    run.folder.order(predictions, truths)
    results = made.results.changed(cost_usd=run_cost(run.folder, made.results.usage["cost_usd"]))
    hint = reading_hint(predictions, truths, run.manifest.settings)
    text = printable(report(results, made.rows, notes(results.grounding), hint.sentences() if hint else ()))
    run.folder.write_scores(made.rows, results, text)
    run.folder.remember_flagged(run.flagged)
    return len(order)
