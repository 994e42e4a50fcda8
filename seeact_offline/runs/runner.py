"""Steps in, predictions out: many at once, each failure a named record, nothing paid for lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from seeact_offline.grounding import Grounding, PreparedStep
from seeact_offline.grounding.conversation import in_thread, nonzero_notes
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.ranking import Scores, check_candidates, top_k
from seeact_offline.records import (
    Model,
    OutOfBudget,
    Prediction,
    RowError,
    SeeActError,
    Step,
    StepError,
)
from seeact_offline.runs.targets import element_text

OF_PICTURES = frozenset({"no_screenshot", "bad_screenshot"})
"""Faults of a row that do no harm where no picture is shown."""
_NO_SCREENSHOT = "the row has no screenshot"


T = TypeVar("T")
P = TypeVar("P")


def prepare(step: Step, scores: Scores | None, k: int, needs_picture: bool = True) -> PreparedStep:
    """Parses, and ranks where there are scores. Raises StepError (RowError for what the row gets wrong)."""
    faults = [fault for fault in step.faults if needs_picture or fault.name not in OF_PICTURES]
    if faults:
        raise RowError(faults[0].name, faults[0].detail)
    if not step.candidates:
        raise RowError("no_candidates", "the row lists no candidate")
    if step.screenshot is None and needs_picture:
        raise RowError("no_screenshot", _NO_SCREENSHOT)
    page = Page(step.cleaned_html)
    check_candidates(step, page)
    ranked = () if scores is None else top_k(step, scores, k, page)
    return PreparedStep(step, page, PagePicture(step.screenshot or _Missing()), ranked)


class _Missing:
    """The screenshot of a row without one, for questions that show none."""

    def read(self) -> bytes:
        raise RowError("no_screenshot", _NO_SCREENSHOT)


def preparing(step: Step, scores: Scores | None, k: int, grounding: Grounding) -> Callable[[], PreparedStep]:
    """Prepares the step for this grounding when it is first called, and raises as `prepare` does."""
    return cache(lambda: prepare(step, scores, k, grounding.form.image))


async def answer(step: Step, ready: Callable[[], PreparedStep], grounding: Grounding, model: Model) -> Prediction:
    """One step, prepared by `ready`, which raises as `prepare` does. Raises only what must stop the run.

    What was ranked and whether a right element can be reached is known before the model is asked, and kept whatever it does.
    """
    known = Prediction(step.key, (), None, "", "", ran=False)
    try:
        prepared = await in_thread(ready)
        # a fault that keeps `reaches` from an answer keeps every model from one
        known = replace(known, ranked=tuple(one.backend_node_id for one in prepared.ranked), reachable=False)
        known = replace(known, reachable=await in_thread(getattr(grounding, "reaches", _unknown), prepared))
        grounded = await grounding.ground(prepared, model)
    except StepError as error:
        return replace(known, failure=error.name, detail=error.detail[:300], failed_in=error.stage)
    except SeeActError:
        raise
    except Exception as error:
        # a page or an answer that we never met: one step must not end a run that others have paid for
        return replace(known, failure="internal_error", detail=f"{type(error).__name__}: {error}"[:300])
    decision = grounded.decision
    return replace(
        known,
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
        notes=nonzero_notes(**dict(grounded.notes), reply_reused=sum(call.record.reused for call in grounded.calls)),
        calls=grounded.calls,
        element_text=element_text(prepared.page, decision.element_id),
    )


def _unknown(prepared: PreparedStep) -> None:
    """Stands for `reaches` where a strategy has none."""


async def run(
    steps: Iterable[T],
    work: Callable[[T], Coroutine[Any, Any, P]],
    done: Callable[[P], None],
    concurrency: int,
    has_room: Callable[[int], bool] = lambda steps: True,
) -> bool:
    """Runs `work` (a coroutine function) on every step, at most `concurrency` at once; hands each result to `done`.

    Steps are drawn only when there is room (`has_room`: for so many at once), so a split streams through. False when the budget did
    not last for all of them: then no further one is drawn, and those under way end as they can.
    """
    waiting: set[asyncio.Task[P]] = set()
    spent = False
    source = iter(steps)
    step = await in_thread(next, source, None)
    try:
        while (step is not None and not spent) or waiting:
            while step is not None and len(waiting) < concurrency and not spent and has_room(len(waiting) + 1):
                waiting.add(asyncio.ensure_future(work(step)))
                step = await in_thread(next, source, None)
            finished, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            # what succeeded is handed over before an error stops the run, and every error is looked at
            for task in sorted(finished, key=lambda task: task.exception() is not None):
                if isinstance(task.exception(), OutOfBudget):
                    spent = True
                else:
                    done(task.result())
    finally:
        await _cancel(waiting)
    return not spent


async def _cancel(tasks: set[asyncio.Task[P]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
