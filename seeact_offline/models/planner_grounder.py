"""Two models as one: one decides what to do, the other finds the place of what the first describes, or says what pictures show."""

from __future__ import annotations

import asyncio

from seeact_offline.records import Completion, Model, Request


class PlannerAndGrounder(Model):
    """Passes each request to the model that it is for."""

    def __init__(self, planner: Model, grounder: Model) -> None:
        self._planner, self._grounder = planner, grounder
        self.takes_ideal = planner.takes_ideal or grounder.takes_ideal

    async def complete(self, request: Request) -> Completion:
        """Raises as the model does that is asked."""
        return await self.complete_with_ideal(request, "")

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        """Completes as `complete` does; `ideal` reaches a model that asks for it."""
        return await (self._grounder if request.for_second else self._planner).complete_with_ideal(request, ideal)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that a server would not take."""
        return tuple(name for model in self.parts for name in model.dropped)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on how the models are asked."""
        return tuple(dict.fromkeys(text for model in self.parts for text in model.remarks))

    async def aclose(self) -> None:
        """Closes both. Safe to call twice."""
        await asyncio.gather(*(model.aclose() for model in self.parts))

    @property
    def parts(self) -> tuple[Model, ...]:
        """The planner, then the grounder."""
        return self._planner, self._grounder
