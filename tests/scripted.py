"""A model that says what it is given."""

from __future__ import annotations

from seeact_offline.records import Completion, Request, Usage


class Scripted:
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

    async def aclose(self) -> None:
        pass
