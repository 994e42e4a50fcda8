"""One step asked: the same work in the run's own process and in a worker of Ray."""

from __future__ import annotations

from dataclasses import dataclass

from seeact_offline.grounding import Grounding
from seeact_offline.grounding.conversation import in_thread
from seeact_offline.ranking import Scores
from seeact_offline.records import Model, Prediction, Step, Truth
from seeact_offline.runs.runner import answer, preparing
from seeact_offline.runs.targets import target_of


@dataclass(frozen=True, slots=True)
class Answered:
    """What a run keeps of a step."""

    prediction: Prediction
    truth: Truth
    dropped: tuple[str, ...] = ()
    """Parameters that the server has refused so far."""


async def ask_step(step: Step, scores: Scores | None, top_k: int, grounding: Grounding, model: Model) -> Answered:
    """Prepares the step and asks the model. Raises only what must stop the run."""
    ready = preparing(step, scores, top_k, grounding)
    prediction = await answer(step, ready, grounding, model)
    truth = await in_thread(target_of, step, lambda: ready().page)
    return Answered(prediction, truth, tuple(getattr(model, "dropped", ())))
