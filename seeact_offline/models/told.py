"""Who is told the truth: a model that asks for it by name, and no other."""

from __future__ import annotations

from seeact_offline.records import Completion, Model, Request


async def ask_told(model: Model, request: Request, ideal: str) -> Completion:
    """The model's reply. One that has `complete_told` is told `ideal`, what one who knows the truth would say to this request."""
    told = getattr(model, "complete_told", None)
    completion: Completion = await (model.complete(request) if told is None else told(request, ideal))
    return completion
