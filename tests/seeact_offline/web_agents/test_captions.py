"""Captions by a model: each picture is paid for once, in the run's budget, and the run keeps what was shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.models.budget import Budget, Price, Terms
from seeact_offline.records import CAPTION_GROUP, Completion, InputError, Message, OutOfBudget, Usage
from seeact_offline.results.estimate import dry_run, estimate_ablation
from seeact_offline.results.estimate_report import Amount, table_of_variants
from seeact_offline.runs.ablate import AXES, ablate
from seeact_offline.runs.batches import run_batch
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.run import Run
from seeact_offline.viewer.site import Site
from seeact_offline.web_agents.captions import PROMPT
from seeact_offline.web_agents.observation_axis import observation_variants
from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.results.test_estimate import counting

IMAGES = (("9001", "fox", 0, 120), ("9002", "", 300, 90), ("9003", "", 600, 2))
"""Id, alternative text, left edge and width of each picture; the last is too small for a caption."""


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Two tasks of three steps, whose pages show the same two pictures throughout a task."""
    rows = list(synthetic_rows(2, 3, 12, seed=1))
    for row in rows:
        for node, alt, left, width in IMAGES:
            box = {"backend_node_id": node, "bounding_box_rect": f"{left},0,{width},40"}
            candidate = json.dumps({"tag": "img", "attributes": json.dumps(box), "backend_node_id": node})
            row["neg_candidates"] = [*row["neg_candidates"], candidate]
            image = f'<img backend_node_id="{node}" alt="{alt}"/></body>'
            row["cleaned_html"] = row["cleaned_html"].replace("</body>", image)
    write_parquet(rows, tmp_path / "pages" / "data" / "test_domain-00000-of-00001.parquet")
    return tmp_path / "pages"


def is_caption(body: dict[str, Any]) -> bool:
    return PROMPT in json.dumps(body)


def captioned(pages: Path, server: ChatServer, out: Path, **options: Any) -> Run:
    usual = {"observation": "tree+captions", "captions": "openai/small", "captions_base_url": server.base_url}
    return so.evaluate(
        dataset=pages,
        split="cross_domain",
        agent="visualwebarena",
        model="openai/main",
        base_url=server.base_url,
        out=out,
        **usual | options,
    )


def answering(caption: Answer | str = "A fox at dusk.") -> Callable[[dict[str, Any]], Answer | str]:
    return lambda body: caption if is_caption(body) else "I click. ```click [1]```"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no secret")


@pytest.mark.slow
def test_an_ablation_captions_the_rows_that_show_captions(pages: Path, tmp_path: Path) -> None:
    """The second model was once that of the first row in every row: none, where the first shows no captions."""
    with ChatServer(answering()) as server:
        config = EvalConfig.of(
            dataset=pages, split="cross_domain", model="openai/main", base_url=server.base_url, out=tmp_path / "run",
            captions="openai/small", captions_base_url=server.base_url,
        )  # fmt: skip
        axis, rows = AXES["observation"], observation_variants(config, ["html", "tree+captions", "som+captions"])
        assert estimate_ablation(config, axis, rows).keys() == {"html", "tree+captions", "som+captions"}
        assert not server.requests
        found = ablate(config, axis, rows)
        n_asked = len(server.requests)
        assert (found.failed, sum(map(is_caption, server.requests))) == (0, 4)
        html, tree, _ = (json.loads((found.path / row.name / "manifest.json").read_text()) for row in rows)
        assert "captions" not in html["identity"]
        assert "captioner" not in html["identity"]
        assert tree["identity"]["captions"] == "openai/small"
        told = [json.dumps(body["messages"]) for body in server.requests if not is_caption(body)]
        # these pictures have no mark, so only the tree has them
        assert sum("A fox at dusk." in text for text in told) == 6
        calls = [json.loads((found.path / row.name / "results.json").read_text())["usage"]["calls"] for row in rows]
        assert sum(calls) == n_asked
        # in another order of the rows it is the same ablation
        ablate(config, axis, rows[::-1])
        assert len(server.requests) == n_asked


def test_captions_that_nobody_can_read_are_calls_and_have_their_cost(pages: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    table = [{"model": name, "prompt": 0, "completion": 1000, "date": "2024-01-01"} for name in ("main", "small")]
    prices.write_text(json.dumps({"prices": table}))
    with ChatServer(answering(Answer(body=b"not JSON"))) as server:
        options = {"price": str(prices), "max_tokens": 200, "max_retries": 0, "fail_on_error": None, "limit": 1}
        usage = captioned(pages, server, tmp_path / "run", **options).results["usage"]
        assert (usage["calls"], usage["cost_usd"]) == (len(server.requests), pytest.approx(0.2 * len(server.requests)))


@pytest.mark.slow
def test_each_picture_is_paid_for_once_and_counted(pages: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    costs = (("main", 1), ("small", 10))
    table = [{"model": name, "prompt": cost, "completion": cost, "date": "2024-01-01"} for name, cost in costs]
    prices.write_text(json.dumps({"prices": table}))
    with ChatServer(answering()) as server:
        run = captioned(pages, server, tmp_path / "run", price=str(prices), max_cost=1.0)
        asked = [body["model"] for body in server.requests if is_caption(body)]
        told = [json.dumps(body) for body in server.requests if not is_caption(body)]
        # 12 pictures of six pages, four of them different
        assert (asked, len(told)) == (["small"] * 4, 6)
        assert all(
            "image 'fox, description: A fox at dusk.'" in text and "image ', description: A fox at dusk.'" in text
            for text in told
        )
        assert run.results["usage"]["calls"] == 10
        # prompt and completion: 100 + 10, and 40 for a picture
        assert run.results["usage"]["cost_usd"] == pytest.approx((6 * 110 * 1 + 4 * 150 * 10) / 1e6)
        ledger = (run.path / "spending.jsonl").read_text()
        assert sum(json.loads(line).get("cost") or 0 for line in ledger.splitlines()) == pytest.approx(
            run.results["usage"]["cost_usd"]
        )
        assert (run.manifest["settings"]["captioner"], run.manifest["identity"]["captioner"]["model"]) == (
            "openai/small",
            "openai/small",
        )
        shown = [json.loads(line) for line in (run.path / "captions.jsonl").read_text().splitlines()]
        assert [row["action_uid"] for row in shown] == sorted(row["action_uid"] for row in shown)
        assert len(shown) == 12
        again = captioned(
            pages, server, tmp_path / "again", captions=run.path / "captions.jsonl", captions_base_url=None
        )
        assert sum(map(is_caption, server.requests)) == 4
        assert again.results["n_steps"] == 6
    (step, *_) = json.loads(Site([run.path]).get("index.json").content)["keys"]  # type: ignore[union-attr]
    seen = json.loads(Site([run.path]).get(f"step/{step}.json").content)  # type: ignore[union-attr]
    assert (seen["problems"], "A fox at dusk." in seen["runs"][0]["groups"][0]["prompts"][0]) == ([], True)


def test_a_picture_that_is_not_described_keeps_its_alternative_text(pages: Path, tmp_path: Path) -> None:
    with ChatServer(answering(Answer(refusal="I would rather not."))) as server:
        run = captioned(pages, server, tmp_path / "run", limit=1)
        assert (run.results["failures"], sum(map(is_caption, server.requests))) == ({}, 2)
        assert "image 'fox'" in json.dumps(server.requests[-1])


CAPTION = "A fox at dusk on a wide field with a few trees and stones"
"""Of as many words as the estimate takes a caption to have."""


@pytest.mark.slow
def test_an_estimate_counts_the_captions_and_finds_the_replies_that_are_kept(pages: Path, tmp_path: Path) -> None:
    """A stand-in took the place of every caption, so that no kept prompt was found, and captions were free."""
    prices = tmp_path / "prices.json"
    costs = (("main", 1), ("other", 1), ("small", 10))
    table = [{"model": name, "prompt": cost, "completion": cost, "date": "2024-01-01"} for name, cost in costs]
    prices.write_text(json.dumps({"prices": table}))
    with ChatServer(counting(lambda body: CAPTION if is_caption(body) else "I click. ```click [1]```")) as server:
        options = {
            "dataset": pages, "split": "cross_domain", "agent": "visualwebarena", "observation": "tree+captions", "model": "openai/main",
            "base_url": server.base_url, "captions": "openai/small", "captions_base_url": server.base_url, "price": str(prices),
            "cache": tmp_path / "kept", "ask_equal": True,
        }  # fmt: skip
        plan = dry_run(out=tmp_path / "run", **options)
        assert (server.requests, plan.expected.calls) == ([], 6)
        assert plan.second is not None
        run = so.evaluate(out=tmp_path / "run", **options)
        records = [json.loads(line) for line in (run.path / "calls.jsonl").read_text().splitlines()]
        used = [one["usage"] for one in records if one["group"] == CAPTION_GROUP and not one["reused"]]
        said = plan.second.amount
        assert (
            (plan.second.model, said.calls, plan.second.n_kept)
            == ("openai/small", len(used), 0)
            == ("openai/small", 4, 0)
        )
        assert said.image_tokens == sum(one["image_tokens"] for one in used)
        assert said.completion_tokens == sum(one["completion_tokens"] for one in used)
        assert plan.second.cost == pytest.approx(sum(one["cost_usd"] for one in used), rel=0.05)
        assert "| calls of openai/small   | 4" in plan.report()
        # of the same run everything is kept, of another model the captions
        kept = dry_run(out=tmp_path / "again", **options)
        assert kept.second is not None
        assert (kept.most, kept.second.amount, kept.n_kept, kept.second.n_kept) == (Amount(), Amount(), 6, 4)
        assert "| USD in all              | 0.0000" in kept.report()
        other = dry_run(out=tmp_path / "other", **options | {"model": "openai/other"})
        assert other.second is not None
        assert (other.most.calls, other.n_kept, other.second.amount.calls, other.second.n_kept) == (6, 0, 0, 4)
        # lengths of replies are those of the first model alone
        measured = dry_run(out=tmp_path / "run", **options)
        assert (measured.assumed.measured_in, measured.assumed.thought) == (6, 0.0)


def test_an_estimate_of_an_ablation_counts_the_captions_of_its_rows_once(pages: Path, tmp_path: Path) -> None:
    with ChatServer(answering()) as server:
        config = EvalConfig.of(
            dataset=pages, split="cross_domain", model="openai/main", base_url=server.base_url, out=tmp_path / "run",
            captions="openai/small", captions_base_url=server.base_url,
        )  # fmt: skip
        rows = observation_variants(config, ["html", "tree+captions", "som+captions"])
        table = table_of_variants(estimate_ablation(config, AXES["observation"], rows))
    calls = {row[0]: row[1] for row in table.rows}
    assert calls == {"html": "6", "tree+captions": "6", "som+captions": "6", "openai/small": "4", "all": "22"}


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"max_cost": 1.0, "price": "1,1"}, "max_cost"),
        ({"engine": "ray"}, "engine"),
        ({"grounder": "openai/other"}, "grounder"),
        ({"observation": "tree"}, "captions"),
        ({"captions": "no-such-file.jsonl"}, "captions"),
    ],
)
def test_what_does_not_go_with_captions_by_a_model_is_refused(
    options: dict[str, Any], argument: str, pages: Path, tmp_path: Path
) -> None:
    usual = {"observation": "tree+captions", "captions": "openai/small", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(InputError) as raised:
        so.evaluate(
            dataset=pages,
            split="cross_domain",
            agent="visualwebarena",
            model="openai/main",
            out=tmp_path / "run",
            **usual | options,
        )
    assert raised.value.argument == argument


def test_captions_by_a_model_are_not_asked_by_files(pages: Path, tmp_path: Path) -> None:
    config = EvalConfig(dataset=pages, agent="visualwebarena", model="openai/main").changed(captions="openai/small")
    with pytest.raises(InputError, match="`batch` cannot ask the model of `captions`; give a file of captions"):
        run_batch(config, "export", tmp_path / "batch")


def test_two_models_spend_the_same_money() -> None:
    budget = Budget(limit=1.0, price=Price(1.0, 1.0), max_tokens=100)
    second = budget.sharing(Terms(Price(5_000.0, 5_000.0), 100, name="second"))
    asked = [Message("user", "a")]

    async def call() -> Completion:
        return Completion("a", Usage(1, 100, 0))

    async def spend() -> None:
        await second.spend(asked, call)
        assert budget.spent == pytest.approx(0.5)
        await budget.spend(asked, call)
        assert budget.spent == pytest.approx(0.5001)
        with pytest.raises(OutOfBudget):
            await second.spend(asked, call)

    asyncio.run(spend())
