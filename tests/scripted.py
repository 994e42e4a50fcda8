"""Models that say what they are given."""

from __future__ import annotations

from seeact_offline.records import Completion, Model, Request, Usage


class Scripted(Model):
    """Gives its answers one by one, raises those that are errors, and remembers what it was asked."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return self.next_answer()

    def next_answer(self) -> Completion:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, Usage(calls=1))


class InTurn2(Scripted):
    """Answers turn 2 of each group with the next of its texts, or raises what stands there."""

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return Completion("I will click.", Usage(calls=1)) if request.turn == 1 else self.next_answer()


class Ideal(Scripted):
    """Answers with the text that the request's question calls ideal."""

    takes_ideal = True

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        self.requests.append(request)
        return Completion(ideal, Usage(calls=1))


def final(element: str, op: str = "CLICK", value: str = "None") -> str:
    """A final answer, as prompts ask for it."""
    return f"ELEMENT: {element}\nACTION: {op}\nVALUE: {value}"
