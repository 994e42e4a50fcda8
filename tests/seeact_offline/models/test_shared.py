"""Replies that several runs share: each paid for once, by one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.models.shared import SharedReplies, SharingModel
from seeact_offline.records import CallError, Completion, InputError, Message, Operation, Request, Step, Usage

STEP = Step("task", "step", "Buy tea", (), "shop", "Shopping", "<html/>", Operation("CLICK"), (), None)
COST = Usage(1, 10, 2, 0, 0.25)


class CountingModel:
    """Repeats the last message a moment later; some messages it declines, some are lost."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = False

    async def complete(self, request: Request) -> Completion:
        self.asked += 1
        await asyncio.sleep(0.005)
        text = request.messages[-1].text
        if text in {"refused", "timeout"}:
            raise CallError(text, "said so", COST)
        return Completion(text, COST)

    async def aclose(self) -> None:
        self.closed = True


def asking(text: str, group: int = 0, step: Step = STEP) -> Request:
    return Request((Message("user", text),), step.key, group, 1)


def use(path: Path, body: Callable[[SharedReplies], Awaitable[object]]) -> CountingModel:
    """Runs `body` on the file `path`, closed at the end."""
    model = CountingModel()

    async def run() -> None:
        shared = SharedReplies(model, path)
        try:
            await body(shared)
        finally:
            await shared.aclose()

    asyncio.run(run())
    return model


async def failing(model: SharingModel, text: str) -> CallError:
    with pytest.raises(CallError) as caught:
        await model.complete(asking(text))
    return caught.value


def test_one_run_pays_and_the_others_are_told(tmp_path: Path) -> None:
    async def body(shared: SharedReplies) -> None:
        first, second = shared.of("a"), shared.of("b")
        assert await first.complete(asking("hi")) == Completion("hi", COST)
        assert await second.complete(asking("hi")) == Completion("hi", Usage())
        assert (first.reused, second.reused) == (0, 1)

    assert use(tmp_path / "calls.sqlite", body).asked == 1


def test_who_has_paid_is_known_after_a_kill(tmp_path: Path) -> None:
    async def before(shared: SharedReplies) -> None:
        await shared.of("a").complete(asking("hi"))

    async def after(shared: SharedReplies) -> None:
        assert (await shared.of("b").complete(asking("hi"))).usage == Usage()
        assert (await shared.of("a").complete(asking("hi"))).usage == COST

    use(tmp_path / "calls.sqlite", before)
    assert use(tmp_path / "calls.sqlite", after).asked == 0


def test_equal_requests_in_flight_share_one_call(tmp_path: Path) -> None:
    async def body(shared: SharedReplies) -> None:
        said = await asyncio.gather(*(shared.of(name).complete(asking("hi")) for name in "abc"))
        assert [one.usage for one in said] == [COST, Usage(), Usage()]

    assert use(tmp_path / "calls.sqlite", body).asked == 1


def test_groups_of_a_step_with_equal_messages_share_a_reply(tmp_path: Path) -> None:
    async def body(shared: SharedReplies) -> None:
        model = shared.of("a")
        await model.complete(asking("hi", group=0))
        assert (await model.complete(asking("hi", group=1))).usage == Usage()

    assert use(tmp_path / "calls.sqlite", body).asked == 1


def test_other_messages_and_other_steps_are_other_requests(tmp_path: Path) -> None:
    async def body(shared: SharedReplies) -> None:
        model = shared.of("a")
        for request in (asking("hi"), asking("ho"), asking("hi", step=replace(STEP, action_uid="next"))):
            assert (await model.complete(request)).usage == COST

    assert use(tmp_path / "calls.sqlite", body).asked == 3


def test_an_answer_without_text_is_kept_as_it_was_paid_for(tmp_path: Path) -> None:
    async def body(shared: SharedReplies) -> None:
        first, second = await failing(shared.of("a"), "refused"), await failing(shared.of("b"), "refused")
        assert (first.name, first.detail, first.usage) == ("refused", "said so", COST)
        assert (second.name, second.detail, second.usage) == ("refused", "said so", Usage())

    assert use(tmp_path / "calls.sqlite", body).asked == 1


def test_a_call_without_answer_is_made_again(tmp_path: Path) -> None:
    async def body(shared: SharedReplies) -> None:
        assert [(await failing(shared.of(name), "timeout")).name for name in "ab"] == ["timeout"] * 2

    assert use(tmp_path / "calls.sqlite", body).asked == 2


def test_a_caller_that_gives_up_loses_no_reply(tmp_path: Path) -> None:
    async def body(shared: SharedReplies) -> None:
        gone = asyncio.create_task(shared.of("a").complete(asking("hi")))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(shared.of("b").complete(asking("hi")))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await waiting).text == "hi"

    assert use(tmp_path / "calls.sqlite", body).asked == 1


def test_the_model_is_closed_with_the_file(tmp_path: Path) -> None:
    async def body(shared: SharedReplies) -> None:
        await shared.of("a").aclose()
        await shared.aclose()

    assert use(tmp_path / "calls.sqlite", body).closed


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_text("no data base " * 100)
    with pytest.raises(InputError, match=r"calls\.sqlite"):
        SharedReplies(CountingModel(), path)
