"""A limit on what a run's calls cost that is never exceeded: before each call the most that it can cost is set aside.

Where that no longer fits, calls wait for those in flight, which mostly cost less than was set aside for them. When none is in
flight and it still does not fit, the run is out of budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from seeact_offline.records import CallError, Completion, InputError, Message, Model, OutOfBudget, Request
from seeact_offline.tokens import Size, count_words, visual_tokens

TOKENS_A_WORD = 1.5
"""At most, over the texts of a request: models' tokenizers cut rare words into pieces."""
UNKNOWN = (2048, 2048)
"""Pixels of a picture that does not say its size."""
MILLION = 1_000_000


class Price(NamedTuple):
    """What a model charges, in USD per million tokens."""

    prompt: float
    completion: float


class Budget:
    """What may still be spent, by all models that share it. Belongs to one event loop at a time."""

    def __init__(
        self,
        limit: float,
        price: Price,
        max_tokens: int,
        spent: float = 0.0,
        picture_tokens: Callable[[Size], int] = visual_tokens,
    ) -> None:
        """USD; `spent` before. `max_tokens`: most that a reply may have. `picture_tokens`: what the model counts a picture as."""
        self.limit, self.price, self.spent = limit, price, spent
        self._picture_tokens = picture_tokens
        self.refused: float | None = None
        """USD that the call could have cost for which too little was left; None where there was none."""
        self._max_tokens = max_tokens
        self._set_aside: dict[object, float] = {}
        self._freed: asyncio.Event | None = None

    def most(self, messages: Sequence[Message]) -> float:
        """USD that a call with these messages can cost."""
        prompt = TOKENS_A_WORD * sum(count_words(message.text) for message in messages)
        pictures = [message.picture for message in messages if message.picture is not None]
        prompt += sum(self._picture_tokens(getattr(picture, "size", UNKNOWN)) for picture in pictures)
        return (prompt * self.price.prompt + self._max_tokens * self.price.completion) / MILLION

    async def set_aside(self, most: float) -> object:
        """Waits until so much can be spent; the token is for `settle`. Raises OutOfBudget where it never will."""
        while self.spent + sum(self._set_aside.values()) + most > self.limit:
            if not self._set_aside:
                self.refused = most
                raise OutOfBudget(
                    f"{self.spent:.4f} of {self.limit} USD are spent, and the next call may cost {most:.4f}"
                )
            self._freed = self._freed or asyncio.Event()
            await self._freed.wait()
        token = object()
        self._set_aside[token] = most
        return token

    def too_small(self) -> InputError:
        """The error for a run that got no step done with it."""
        if not self.spent:
            return InputError(
                "max_cost", f"at least {self.refused or 0:.4f}, which the first call may cost", str(self.limit)
            )
        wanted = "enough for a step"
        return InputError(
            "max_cost", wanted, f"{self.limit}, of which {self.spent:.4f} were spent before any step was answered"
        )

    def settle(self, token: object, cost: float | None) -> None:
        """`cost`: what the call came to; None where nobody knows, which counts as all that was set aside."""
        most = self._set_aside.pop(token)
        self.spent += most if cost is None else cost
        if self._freed is not None:
            self._freed.set()
            self._freed = None


class BudgetedModel:
    """A model whose calls are paid out of a budget."""

    def __init__(self, model: Model, budget: Budget) -> None:
        self._model, self._budget = model, budget

    async def complete(self, request: Request) -> Completion:
        """Raises what the model raises, and OutOfBudget before a call that could cost too much."""
        token, cost = await self._budget.set_aside(self._budget.most(request.messages)), None
        try:
            completion = await self._model.complete(request)
            cost = completion.usage.cost_usd
        except CallError as error:
            cost = error.usage.cost_usd
            raise
        finally:
            self._budget.settle(token, cost)
        return completion

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that the server would not take."""
        return tuple(getattr(self._model, "dropped", ()))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is worth saying of how the model is asked."""
        return tuple(getattr(self._model, "remarks", ()))

    async def aclose(self) -> None:
        await self._model.aclose()
