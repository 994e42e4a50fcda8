"""`max_cost` holds for every kind of model, over restarts, and no reply is paid for twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.models import PROVIDERS
from seeact_offline.models.provider import Provider
from seeact_offline.records import CallError, Completion, InputError, Message, Request, Usage
from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Sample, contents, make_sample

PICK = "ELEMENT: A\nACTION: CLICK\nVALUE: None"
SMALL = {"split": "cross_task", "top_k": 6, "group_size": 3, "max_tokens": 200}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 2, 8, seed=7)))


def run(sample: Sample, out: Path, **options: Any) -> so.Run:
    return so.evaluate(out=out, **{**SMALL, "dataset": sample.dataset, "scores": sample.scores, **options})


class Metered:
    """Answers at a cost, and counts what it has cost."""

    def __init__(self, usage: Usage, failing: int = 0) -> None:
        """`failing`: every so many calls is lost, and paid for all the same; 0: none."""
        self.identity = {"model": "metered"}
        self.usage, self.failing, self.calls, self.bill = usage, failing, 0, 0.0

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        self.bill += self.usage.cost_usd or (10 * self.usage.prompt_tokens + 30 * self.usage.completion_tokens) / 1e6
        if self.failing and self.calls % self.failing == 0:
            raise CallError("timeout", "lost")
        return Completion(PICK, self.usage)

    async def aclose(self) -> None:
        """Nothing is open."""


MODELS: dict[str, tuple[Metered, dict[str, Any]]] = {
    "an object that reports what calls cost": (Metered(Usage(1, cost_usd=0.06)), {}),
    "an object that reports tokens": (Metered(Usage(1, 1800, 150, 0, None)), {"price": "10,30"}),
    "an object that loses replies": (Metered(Usage(1, 3600, 150, 0, None), failing=9), {"price": "10,30"}),
    "an object that is dearer than its price": (Metered(Usage(1, cost_usd=0.06)), {"price": "1,1"}),
}


@pytest.mark.parametrize(("model", "options"), MODELS.values(), ids=MODELS.keys())
def test_no_run_and_no_resumed_run_spends_more_than_its_limit(
    sample: Sample, tmp_path: Path, model: Metered, options: dict[str, Any]
) -> None:
    for _ in range(3):
        found = run(sample, tmp_path / "run", model=model, max_cost=0.5, **options)
        assert not found.results["complete"]
        assert 0 < found.results["usage"]["cost_usd"] <= 0.5
    assert 0.2 < model.bill <= 0.5


@pytest.mark.slow
def test_a_provider_brings_the_call_alone(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One as the documentation describes spent 50.40 of 0.5 dollars, and a second run paid for all its calls again."""
    model = Metered(Usage(1, 1800, 150, 0, None))
    provider = Provider(("NAME",), lambda name, options: model, lambda name, options: {"model": f"own/{name}"})
    monkeypatch.setitem(PROVIDERS, "own", provider)
    run(sample, tmp_path / "1", model="own/m", price="10,30", max_cost=0.5)
    assert 0.4 < model.bill <= 0.5
    run(sample, tmp_path / "2", model="own/m")
    paid = model.calls
    run(sample, tmp_path / "3", model="own/m")
    assert model.calls == paid


def test_a_function_with_a_price_stays_below_the_limit_and_is_asked_nothing_twice(
    sample: Sample, tmp_path: Path
) -> None:
    asked: list[Sequence[Message]] = []

    def answer(messages: Sequence[Message]) -> str:
        asked.append(messages)
        return PICK

    first = run(sample, tmp_path / "run", model=answer, price="10,30", max_cost=0.1)
    assert 0 < first.results["usage"]["cost_usd"] <= first.manifest["replies"]["spent_usd"] <= 0.1
    calls = len(asked)
    again = run(sample, tmp_path / "run", model=answer, price="10,30", max_cost=0.1)
    assert (len(asked), again.results) == (calls, first.results)


def test_answers_that_are_in_no_ledger_count(sample: Sample, tmp_path: Path) -> None:
    asked = []

    def answer(messages: Sequence[Message]) -> str:
        asked.append(messages)
        return PICK

    options: dict[str, Any] = {"model": answer, "price": "10,30", "max_cost": 0.1, "retry_failed": True}
    found = run(sample, tmp_path / "run", **{**options, "retry_failed": False})
    n_asked = len(asked)
    (found.path / "spending.jsonl").unlink()
    run(sample, tmp_path / "run", **options)
    assert len(asked) <= n_asked + 1


@pytest.mark.parametrize("model", ["builtin/lexical", lambda messages: PICK], ids=["built in", "function"])
def test_a_limit_is_refused_where_nobody_says_what_calls_cost(sample: Sample, tmp_path: Path, model: Any) -> None:
    with pytest.raises(InputError, match=r"^`max_cost` needs a `price`, or a model that reports .*, unlike "):
        run(sample, tmp_path / "run", model=model, max_cost=0.5)
    assert not (tmp_path / "run").exists()


def test_a_limit_is_refused_by_a_model_that_turns_out_to_report_no_cost(sample: Sample, tmp_path: Path) -> None:
    model = Metered(Usage(1, 900, 150, 0, None))
    with pytest.raises(InputError, match=r"^`max_cost` needs a `price`, or a model that reports"):
        run(sample, tmp_path / "run", model=model, max_cost=0.5)
    assert model.calls == 1


@pytest.mark.slow
def test_replies_of_unfinished_and_failed_steps_are_spent(sample: Sample, tmp_path: Path) -> None:
    """Turn 2 never comes: what turn 1 has cost was forgotten by the second run, and by each call that was made again."""

    def reply(body: dict[str, Any]) -> Answer | str:
        return "A plan." if len(body["messages"]) < 4 else Answer(body=b"not JSON")

    with ChatServer(reply) as server:
        for _ in range(3):
            with suppress(InputError):
                run(sample, tmp_path / "run", model="openai/m", base_url=server.base_url, price="0,1000", max_cost=1.5)
        # a plan costs 0.01; a reply that cannot be read may have cost as much as 200 tokens
        n_plans = sum(len(body["messages"]) < 4 for body in server.requests)
        assert 1.2 < 0.01 * n_plans + 0.2 * (len(server.requests) - n_plans) <= 1.5


# --- equal requests ---


def test_equal_requests_of_a_step_are_asked_once_and_noted(sample: Sample, tmp_path: Path) -> None:
    """Where two groups of a step are shown one picture, their first turns are equal."""
    found = {}
    for ask_equal in (False, True):
        model = Metered(Usage(1, 100, 10, 0, 0.01))
        made = run(sample, tmp_path / f"{ask_equal}", model=model, cache="off", ask_equal=ask_equal)
        assert model.calls == made.results["usage"]["calls"] == made.manifest["replies"]["replies"]
        assert made.manifest["made"]["ask_equal"] == ask_equal
        found[ask_equal] = made
    once, each = found[False], found[True]
    reused = once.results["notes"]["reply_reused"]
    assert reused > 0
    assert once.results["usage"]["calls"] + reused == each.results["usage"]["calls"]
    assert "reply_reused" not in each.results.get("notes", {})
    assert [one.groups for one in once.predictions()] == [one.groups for one in each.predictions()]
    assert "| equal requests        | asked once" in once.report()


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8])
def test_which_place_pays_for_equal_requests_does_not_depend_on_the_order_of_calls(
    sample: Sample, tmp_path: Path, concurrency: int
) -> None:
    model = Metered(Usage(1, 100, 10, 0, 0.01))
    whole = run(sample, tmp_path / "whole", model=model, cache="off", concurrency=3)
    for limit in (1, 2, None):
        grown = run(sample, tmp_path / "run", model=model, cache="off", concurrency=concurrency, limit=limit)
    assert grown.results == whole.results
    names = ("predictions.jsonl", "results.json")
    assert contents(tmp_path / "run", names) == contents(tmp_path / "whole", names)


def test_a_run_in_the_same_folder_with_another_way_of_asking_is_refused(sample: Sample, tmp_path: Path) -> None:
    model = Metered(Usage(1, 100, 10, 0, 0.01))
    run(sample, tmp_path / "run", model=model, limit=1)
    with pytest.raises(InputError, match="ask_equal differ"):
        run(sample, tmp_path / "run", model=model, ask_equal=True)


# --- what a function is known by ---


def answering(text: str, asked: list[str]) -> Callable[[Sequence[Message]], str]:
    def answer(messages: Sequence[Message]) -> str:
        asked.append(text)
        return PICK + text

    return answer


def test_a_changed_function_is_another_run(sample: Sample, tmp_path: Path) -> None:
    """It gave the old run back."""
    asked: list[str] = []
    run(sample, tmp_path / "run", model=answering(".", asked))
    n_asked = len(asked)
    with pytest.raises(InputError, match=r" holds a run of another configuration \(code differ"):
        run(sample, tmp_path / "run", model=answering("!", asked))
    run(sample, tmp_path / "new", model=answering("!", asked))
    assert asked[n_asked:] == ["!"] * n_asked


def test_an_equal_function_is_asked_nothing_again(sample: Sample, tmp_path: Path) -> None:
    asked: list[str] = []
    first = run(sample, tmp_path / "run", model=answering(".", asked))
    n_asked = len(asked)
    for out in ("run", "other"):
        assert run(sample, tmp_path / out, model=answering(".", asked)).results == first.results
    assert len(asked) == n_asked


def test_a_function_whose_code_is_not_known_is_asked_anew(sample: Sample, tmp_path: Path) -> None:
    class Answering:
        text, asked = "A", 0

        def __call__(self, messages: Sequence[Message]) -> str:
            self.asked += 1
            return f"ELEMENT: {self.text}\nACTION: CLICK\nVALUE: None"

    model = Answering()
    first = run(sample, tmp_path / "run", model=model)
    n_asked, model.text = model.asked, "Z"
    again = run(sample, tmp_path / "run", model=model)
    assert model.asked > n_asked
    assert [one.element_id for one in again.predictions()] == [None] * first.results["n_steps"]
    assert len((tmp_path / "run" / "predictions.jsonl").read_text().splitlines()) == first.results["n_steps"]
