"""The one loop of a run: prepares a step, asks a model, turns an error into its named failure, and keeps the answer.

Runs, their repeats, ablations, batches, Ray and the estimate of a run all ask by it; they differ in the model that
answers, and in where a step is asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeVar

import msgspec

from seeact_offline.dataset.split import with_earlier
from seeact_offline.grounding import Grounding, PreparedStep
from seeact_offline.grounding.conversation import in_thread, nonzero_notes
from seeact_offline.models.retrying import ENOUGH
from seeact_offline.pages.dom import Page
from seeact_offline.ranking import Scores
from seeact_offline.records import (
    Model,
    ModelStopped,
    OutOfBudget,
    Prediction,
    SeeActError,
    Step,
    StepError,
    StepKey,
    StepScore,
    Truth,
)
from seeact_offline.runs.opening import OpenRun
from seeact_offline.runs.prepare import element_text, prepare, target_of
from seeact_offline.runs.watch import StepListener, Watch
from seeact_offline.scoring.step_scores import score_step

T = TypeVar("T")
P = TypeVar("P")
A = TypeVar("A", bound="StepAnswer")


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """An asked step, as a run keeps it."""

    prediction: Prediction
    truth: Truth
    dropped: tuple[str, ...] = ()
    """Parameters that the server has refused so far."""


@dataclass
class RunState:
    """The steps of a run so far."""

    done: dict[StepKey, Prediction]
    to_ask: frozenset[StepKey]
    truths: dict[StepKey, Truth] = field(default_factory=dict)
    """The right answers of every step met so far, in data set order."""
    dropped: set[str] = field(default_factory=set)
    """Parameters that the server has refused."""
    remarks: list[str] = field(default_factory=list)
    """Remarks of models in other processes."""

    @classmethod
    def of(cls, run: OpenRun) -> RunState:
        """The state that the run's folder is in. Raises InputError where it holds steps that are not asked for now."""
        predictions = run.known()
        to_ask = run.to_ask(predictions)
        return cls({key: prediction for key, prediction in predictions.items() if key not in to_ask}, to_ask)

    def score(self, run: OpenRun, prediction: Prediction) -> StepScore:
        return score_step(prediction, self.truths[prediction.key], run.protocol)

    def reached(self, run: OpenRun) -> list[StepKey]:
        """The steps that are done and met, in data set order."""
        return [key for key in run.split.keys if key in self.done and key in self.truths]

    def is_complete(self, run: OpenRun) -> bool:
        return self.done.keys() >= frozenset(run.split.keys)


async def ask_steps(
    run: OpenRun,
    state: RunState,
    ask: Callable[[Step], Coroutine[Any, Any, A]],
    watch: Watch,
    *,
    accept: Callable[[A], bool] = lambda answer: True,
    has_room: Callable[[int], bool] = lambda steps: True,
    in_order: bool = False,
    spent: Callable[[], float | None] = lambda: None,
) -> bool:
    """Asks the steps of `state.to_ask`, and keeps each answer in the run's folder the moment it is there.

    `ask`: one step, wherever that is done. `accept`: False for an answer that is not kept yet. `spent`: USD so
    far. The others: see `ask_each`. False when the cost limit left steps over. Raises ModelStopped where too many
    steps end in an error of the model.
    """

    asked = [prediction for prediction in state.done.values() if not prediction.is_data_fault]
    failed = [prediction for prediction in asked if prediction.has_failed]

    async def work(step: Step) -> A:
        # before it asks, so that what others have answered by then is kept
        _stop_on_errors(run, len(asked), failed, ENOUGH)
        return await ask(step)

    def keep(answer: A) -> None:
        prediction = answer.prediction
        state.truths[prediction.key] = answer.truth
        state.dropped.update(answer.dropped)
        if accept(answer):
            run.folder.append(prediction, answer.truth)
            state.done[prediction.key] = prediction
            if not prediction.is_data_fault:
                asked.append(prediction)
            if prediction.has_failed:
                failed.append(prediction)
            watch.spent(spent())
            progress.add(prediction, state.score(run, prediction))

    with run.folder, watch.steps(len(run.split.keys), str(run.manifest.settings["split"])) as progress:
        steps = _steps_left(run, state, progress)
        complete = await ask_each(steps, work, keep, run.asking.concurrency, has_room=has_room, in_order=in_order)
        for _ in steps:
            # what an earlier run has done beyond the first step left over stays in the files
            pass
        _stop_on_errors(run, len(asked), failed)
        return complete


def _steps_left(run: OpenRun, state: RunState, progress: StepListener) -> Iterator[Step]:
    """Streams the tasks that have a step to ask, notes what is right at each step, and gives those to ask."""
    truths = run.folder.load_targets()
    for key in run.split.keys:
        if key in state.done and key in truths:
            state.truths[key] = truths[key]
            progress.add(state.done[key], state.score(run, state.done[key]), resumed=True)
    read = {key for key in run.split.keys if key in state.to_ask or (key in state.done and key not in truths)}
    tasks = {key.annotation_id for key in read}
    needed = frozenset(key for key in run.split.keys if key.annotation_id in tasks)
    for step in with_earlier(run.split.steps(needed), run.grounding.earlier):
        if step.key in state.to_ask:
            state.truths[step.key] = step.truth
            yield step
        elif step.key in read:
            state.truths[step.key] = target_of(step, partial(Page, step.cleaned_html))
            progress.add(state.done[step.key], state.score(run, state.done[step.key]), resumed=True)


def _stop_on_errors(run: OpenRun, n_asked: int, failed: Sequence[Prediction], enough: int = 0) -> None:
    """Raises ModelStopped where more than `fail_on_error` of the steps that were put to the model, or of `enough` steps
    where there are fewer, ended in an error of the model."""
    most = run.asking.fail_on_error
    if most is not None and len(failed) > most * max(n_asked, enough):
        share = f"at most {most:.0%} of steps to end in an error, not {len(failed)} of {n_asked}"
        raise ModelStopped("model", share, f"{failed[0].failure}: {failed[0].detail}")


async def ask_step(step: Step, scores: Scores | None, model: Model, *, grounding: Grounding, top_k: int) -> StepAnswer:
    """Prepares one step, asks the model and looks up what is right. Raises only what must stop the run."""
    ready = cache(partial(prepare, step, scores, top_k, grounding.form.image))
    prediction = await predict(step, ready, grounding, model)
    truth = await in_thread(target_of, step, lambda: ready().page)
    return StepAnswer(prediction, truth, model.dropped)


async def predict(step: Step, ready: Callable[[], PreparedStep], grounding: Grounding, model: Model) -> Prediction:
    """Asks one step, prepared by `ready`, which raises as `prepare` does. Raises only what must stop the run.

    What was ranked and whether a right element can be reached is known before the model is
    asked, and kept whatever it does.
    """
    prediction = Prediction(*step.key, None, "", "", ran=False)
    try:
        prepared = await in_thread(ready)
        # a fault that keeps `reaches` from an answer keeps every model from candidate
        prediction = msgspec.structs.replace(
            prediction, ranked=tuple(candidate.backend_node_id for candidate in prepared.ranked), reachable=False
        )
        prediction = msgspec.structs.replace(prediction, reachable=await in_thread(grounding.reaches, prepared))
        grounded = await grounding.ground(prepared, model)
    except StepError as error:
        prediction = msgspec.structs.replace(prediction, ranked=prediction.ranked or error.ranked)
        return msgspec.structs.replace(prediction, failure=error.name, detail=error.detail[:300], failed_in=error.stage)
    except SeeActError:
        raise
    except Exception as error:
        # a page or an answer that we never met: one step must not end a run that others have paid for
        return msgspec.structs.replace(
            prediction, failure="internal_error", detail=f"{type(error).__name__}: {error}"[:300]
        )
    decision = grounded.decision
    return msgspec.structs.replace(
        prediction,
        groups=grounded.groups,
        element_id=decision.element_id,
        op=decision.op,
        value=decision.value,
        usage=grounded.usage,
        failure=decision.failure,
        detail=decision.detail,
        ran=grounded.ran,
        failed_in=decision.failed_in,
        point=grounded.point,
        notes=nonzero_notes(
            **grounded.notes,
            reply_reused=sum(call.record.reused for call in grounded.calls),
            unknown_finish_reason=sum(
                call.record.finish_reason is not None and not call.record.reused for call in grounded.calls
            ),
        ),
        calls=grounded.calls,
        captions=grounded.captions,
        reachable=prediction.reachable if grounded.reachable is None else grounded.reachable,
        element_text=element_text(prepared.page, decision.element_id),
    )


async def ask_each(
    steps: Iterable[T],
    work: Callable[[T], Coroutine[Any, Any, P]],
    keep: Callable[[P], None],
    concurrency: int,
    *,
    has_room: Callable[[int], bool] = lambda steps: True,
    in_order: bool = False,
) -> bool:
    """Runs `work` (a coroutine function) on every step, at most `concurrency` at once; hands each result to `keep`.

    Steps are drawn only when there is room (`has_room`: for so many at once), so a split streams through. `in_order`:
    results are handed over in the order of the steps. False when the budget did not last for all of them: then no
    further one is drawn, and those under way end as they can.
    """
    waiting: list[asyncio.Task[P]] = []
    is_spent = False
    source = iter(steps)
    step = await in_thread(next, source, None)
    try:
        while (step is not None and not is_spent) or waiting:
            while step is not None and len(waiting) < concurrency and not is_spent and has_room(len(waiting) + 1):
                waiting.append(asyncio.ensure_future(work(step)))
                step = await in_thread(next, source, None)
            awaited = waiting[:1] if in_order else waiting
            finished, _ = await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            waiting = [task for task in waiting if task not in finished]
            # what succeeded is handed over before an error stops the run, and every error is looked at
            for task in sorted(finished, key=lambda task: task.exception() is not None):
                if isinstance(task.exception(), OutOfBudget):
                    is_spent = True
                else:
                    keep(task.result())
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return not is_spent


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end, in a thread of its own where this one has a running event loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def ask_a_person(ask: Callable[[Any], Any], stopped: threading.Event, otherwise: Any, subject: Any) -> Any:
    """The answer of `ask` to `subject`, in a thread of its own, so that a run that is stopped need not
    wait for it; then `otherwise`."""
    answer: Future[Any] = Future()

    def work() -> None:
        try:
            answer.set_result(ask(subject))
        # a person's function may raise anything, Ctrl-C included: it goes to the thread that waits
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    while not answer.done() and not stopped.is_set():
        with suppress(TimeoutError):
            answer.exception(timeout=0.2)
    return answer.result() if answer.done() else otherwise
