"""What a run would cost, against what a server that counts then says it did."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import variance
from typing import Any

import numpy as np
import pytest
from PIL import Image

import seeact_offline as so
from seeact_offline.models import Price
from seeact_offline.models.tokens import count_words, visual_tokens
from seeact_offline.ranking import tokenizers
from seeact_offline.ranking.tokenizers import open_tokenizer
from seeact_offline.records import InputError
from seeact_offline.results import estimate as module
from seeact_offline.results.estimate import STAND_IN, detectable, dry_run, local_tokenizer
from seeact_offline.results.estimate_report import Amount, Assumptions, Estimate
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.strategy_opening import without_ignored
from seeact_offline.scoring import inference
from tests.annexes import needs
from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import KEY, Sample, make_sample

PLAN = "word " * 60
PICK = "ELEMENT: {}\nACTION: CLICK\nVALUE: None"
LENGTHS = Assumptions(replies=(60.0, float(count_words(PICK.format("A")))))
PRICE = Price(2.5, 10.0)
FORMS: dict[str, dict[str, Any]] = {
    "choice": {},
    "annotation": {"grounding": "annotation"},
    "pixel": {"grounding": "pixel"},
    "ungrounded": {"ungrounded": True},
    "shared turn 1": {"batching": "shared-turn1"},
    "one turn": {"turns": 1},
    "no picture": {"no_image": True},
    "low detail": {"image_detail": "low"},
    "other orders": {"repeats": 1},
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Three tasks of two steps on tall pages."""
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 2, 60, seed=5)))


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def size_of(url: str) -> tuple[int, int]:
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:
        return picture.size


def image_tokens(part: dict[str, Any]) -> int:
    sent = part["image_url"]
    return 85 if sent["detail"] == "low" else visual_tokens(size_of(sent["url"]))


def counting(reply: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any]], Answer]:
    """A server's answer that says what it counted in the request that it got."""

    def answer(body: dict[str, Any]) -> Answer:
        text, pictures = 0, 0
        for message in body["messages"]:
            parts = message["content"]
            for part in parts if isinstance(parts, list) else [{"type": "text", "text": parts}]:
                text += count_words(part["text"]) if part["type"] == "text" else 0
                pictures += image_tokens(part) if part["type"] == "image_url" else 0
        said = reply(body)
        usage = {
            "prompt_tokens": text + pictures,
            "completion_tokens": count_words(said),
            "prompt_tokens_details": {"image_tokens": pictures},
        }
        message = {"role": "assistant", "content": said}
        content = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
        return Answer(body=json.dumps(content).encode())

    return answer


def saying(element: str) -> Callable[[dict[str, Any]], str]:
    """Replies of a known length, the last of which names this element."""
    return lambda body: PLAN if len(body["messages"]) == 2 else PICK.format(element)


def config(sample: Sample, server: ChatServer, out: Path, **changes: Any) -> EvalConfig:
    usual = EvalConfig(
        dataset=sample.dataset,
        split="cross_task",
        scores=sample.scores,
        top_k=10,
        group_size=4,
        model="openai/gpt-4o",
        base_url=server.base_url,
        price=PRICE,
        ask_equal=True,
        cache=out.parent / "kept",
        out=out,
    )
    # not every form offers elements
    return without_ignored(usual.changed(**changes))


def used(folder: Path) -> Amount:
    """What the results of the run, and of its repeats in other orders, say."""
    found = [json.loads(path.read_text())["usage"] for path in sorted(folder.rglob("results.json"))]
    return sum(
        (
            Amount(u["calls"], u["prompt_tokens"] - u["image_tokens"], u["image_tokens"], u["completion_tokens"])
            for u in found
        ),
        Amount(),
    )


def assert_meets(planned: Amount, actual: Amount) -> None:
    assert planned.calls == actual.calls
    assert planned.image_tokens == actual.image_tokens
    assert planned.text_tokens == pytest.approx(actual.text_tokens, rel=0.05)
    assert planned.completion_tokens == actual.completion_tokens


# --- against a server --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_most_is_what_a_model_uses_that_names_an_element_in_every_group(
    sample: Sample, tmp_path: Path, form: str
) -> None:
    element = "1" if form == "annotation" else "A"

    def reply(body: dict[str, Any]) -> str:
        return PICK.format(element) if form == "one turn" else saying(element)(body)

    with ChatServer(counting(reply)) as server:
        run = config(sample, server, tmp_path / "run", **FORMS[form])
        lengths = replace(LENGTHS, replies=LENGTHS.replies[1:]) if form == "one turn" else LENGTHS
        plan = dry_run(run, assumed=lengths, tokenizer=open_tokenizer("words"))
        assert server.requests == []
        so.evaluate(run)
    assert_meets(plan.most, used(tmp_path / "run"))


@pytest.mark.slow
@pytest.mark.parametrize(("grounding", "none"), [("choice", "Z"), ("annotation", "NA")])
def test_the_least_is_what_a_model_uses_that_names_none(
    sample: Sample, tmp_path: Path, grounding: str, none: str
) -> None:
    with ChatServer(counting(saying(none))) as server:
        run = config(sample, server, tmp_path / "run", grounding=grounding)
        plan = dry_run(run, assumed=LENGTHS)
        so.evaluate(run)
    assert_meets(plan.least, used(tmp_path / "run"))
    assert plan.least.calls < plan.expected.calls < plan.most.calls


@pytest.mark.slow
def test_dollars_are_those_of_the_results(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(counting(saying("A"))) as server:
        run = config(sample, server, tmp_path / "run")
        plan = dry_run(run, assumed=LENGTHS)
        results = so.evaluate(run).results
    assert plan.most.cost(plan.quote) == pytest.approx(results["usage"]["cost_usd"], rel=0.05)


@pytest.mark.slow
def test_equal_requests_are_planned_once(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(counting(saying("A"))) as server:
        run = config(sample, server, tmp_path / "run", ask_equal=False)
        plan = dry_run(run, assumed=LENGTHS)
        so.evaluate(run)
        assert plan.most.calls == len(server.requests) < 48
    assert_meets(plan.most, used(tmp_path / "run"))


def test_as_many_final_rounds_are_expected_as_two_picks_are_likely(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(counting(saying("A"))) as server:
        plan = dry_run(config(sample, server, tmp_path / "run"), assumed=replace(LENGTHS, picks=0.3))
    # three groups a step: 9 candidates in groups of 3, 4 and 2
    likely = 1 - 0.7**3 - 3 * 0.3 * 0.7**2
    assert plan.most.calls - plan.least.calls == 2 * plan.n_steps
    assert plan.expected.calls == pytest.approx(plan.least.calls + likely * 2 * plan.n_steps)


@needs("agents")
def test_the_calls_of_a_grounder_are_its_own(sample: Sample, tmp_path: Path) -> None:
    """They were counted as the planner's, at its price."""

    def reply(body: dict[str, Any]) -> str:
        return PICK.format("the box") if body["model"] == "gpt-4o" else "(12, 34)"

    with ChatServer(counting(reply)) as server:
        more = {
            "agent": "uground-blind",
            "grounder": "openai/gpt-4o-mini",
            "grounder_base_url": server.base_url,
        }
        run = config(sample, server, tmp_path / "run", **more)
        plan = dry_run(run, assumed=LENGTHS)
        assert server.requests == []
        so.evaluate(run)
        calls = [body["model"] for body in server.requests]
        kept = dry_run(run.changed(out=tmp_path / "again"), assumed=LENGTHS)
    assert plan.second is not None
    assert kept.second is not None
    assert plan.second.amount.calls == calls.count("gpt-4o-mini") == 6
    # an ideal planner looks at more windows
    assert plan.most.calls > calls.count("gpt-4o")
    assert (kept.most, kept.second.amount, kept.n_kept, kept.second.n_kept) == (Amount(), Amount(), 6, 6)


# --- what is paid for already ------------------------------------------------------------------------------------


def mixed(body: dict[str, Any]) -> str:
    """Names an element in some groups."""
    digest = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    return saying("A" if digest[0] % 2 else "Z")(body)


@pytest.mark.slow
def test_replies_that_another_run_has_paid_for_are_not_counted_again(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(counting(mixed)) as server:
        so.evaluate(config(sample, server, tmp_path / "pilot", limit=2))
        paid = len(server.requests)
        run = config(sample, server, tmp_path / "run")
        plan = dry_run(run, assumed=LENGTHS)
        assert plan.n_kept == paid
        assert len(server.requests) == paid
        so.evaluate(run)
        asked = len(server.requests) - paid
    assert plan.least.calls <= asked <= plan.most.calls
    assert plan.most.calls == 2 * (3 + 1) * 2


@pytest.mark.slow
def test_a_run_whose_replies_are_all_kept_costs_nothing(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(counting(mixed)) as server:
        so.evaluate(config(sample, server, tmp_path / "first"))
        plan = dry_run(config(sample, server, tmp_path / "second"), assumed=LENGTHS)
    assert plan.most == Amount()
    assert plan.n_kept == len(server.requests)
    assert plan.n_not_askable == 0


def test_steps_that_are_done_are_not_asked_again(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(counting(mixed)) as server:
        so.evaluate(config(sample, server, tmp_path / "run", limit=1))
        plan = dry_run(config(sample, server, tmp_path / "run"), assumed=LENGTHS)
    assert (plan.n_done, plan.n_asked, plan.n_steps, plan.n_kept) == (2, 4, 6, 0)


@pytest.mark.slow
def test_lengths_are_measured_in_what_the_run_has_done(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(counting(saying("A"))) as server:
        so.evaluate(config(sample, server, tmp_path / "run"))
        plan = dry_run(config(sample, server, tmp_path / "run"))
    assert plan.assumed == replace(Assumptions(), replies=LENGTHS.replies, picks=1.0, measured_in=6)
    assert "Measured in 6 steps of this run" in plan.report()


@pytest.mark.slow
@pytest.mark.parametrize("batching", ["per-group", "shared-turn1"])
def test_what_a_model_thinks_and_does_not_show_is_measured_too(sample: Sample, tmp_path: Path, batching: str) -> None:
    def thinking(body: dict[str, Any]) -> Answer:
        content = json.loads(counting(saying("A"))(body).body or b"")
        content["usage"]["completion_tokens"] += 500
        return Answer(body=json.dumps(content).encode())

    with ChatServer(thinking) as server:
        so.evaluate(config(sample, server, tmp_path / "run", batching=batching))
        plan = dry_run(config(sample, server, tmp_path / "run", batching=batching))
    assert plan.assumed.thought == pytest.approx(500)


def test_a_folder_of_another_run_is_refused(sample: Sample, tmp_path: Path) -> None:
    with ChatServer(counting(mixed)) as server:
        so.evaluate(config(sample, server, tmp_path / "run", limit=1))
        with pytest.raises(InputError, match="out"):
            dry_run(config(sample, server, tmp_path / "run", limit=1, top_k=5))


# --- alone -------------------------------------------------------------------------------------------------------


def alone(sample: Sample, tmp_path: Path, **changes: Any) -> Estimate:
    """Of a server that nobody could ask."""
    given = {"model": "openai/gpt-4o", "base_url": "http://127.0.0.1:9/v1", **changes}
    usual = EvalConfig(
        dataset=sample.dataset, split="cross_task", scores=sample.scores, top_k=10, group_size=4, ask_equal=True
    )
    return dry_run(without_ignored(usual.changed(out=tmp_path / "run", **given)))


def test_no_folder_is_made(sample: Sample, tmp_path: Path) -> None:
    alone(sample, tmp_path)
    assert not (tmp_path / "run").exists()


def test_no_key_is_needed(sample: Sample, tmp_path: Path, own_cache: Path) -> None:
    (own_cache / "replies.sqlite").touch()
    plan = alone(sample, tmp_path, base_url=None)
    assert plan.expected.calls > 0
    assert "Kept replies were not looked through" in plan.report()


def test_the_table_gives_the_price_of_a_providers_own_server_alone(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    listed, local = alone(sample, tmp_path, base_url=None), alone(sample, tmp_path)
    assert listed.quote is not None
    assert listed.quote.price == Price(2.5, 10)
    assert listed.quote.date in listed.report()
    assert local.quote is None
    assert local.to_dict()["expected"]["cost_usd"] is None
    assert "not known" in local.report()


def test_a_model_of_unknown_rule_is_counted_as_gpt_4o_and_that_is_said(sample: Sample, tmp_path: Path) -> None:
    known, unknown = alone(sample, tmp_path), alone(sample, tmp_path, model="openai/qwen")
    assert unknown.most == known.most
    assert "How openai/qwen counts pictures is not known" in unknown.report()
    assert "counts pictures is not known" not in known.report()


def test_a_model_of_ones_own_is_planned_too(sample: Sample, tmp_path: Path) -> None:
    plan = alone(sample, tmp_path, model=lambda messages: "A", base_url=None)
    assert plan.quote is None
    assert plan.most.calls == 6 * 4 * 2


def test_attributes_ask_again_where_the_right_description_fits_several(sample: Sample, tmp_path: Path) -> None:
    plan = alone(sample, tmp_path, grounding="attributes", scores=None)
    assert plan.least.calls == 2 * plan.n_steps
    assert plan.expected == plan.most
    assert "fits several" in plan.report() or "fit several" in plan.report()


def test_steps_at_fault_are_named_and_not_counted(tmp_path: Path) -> None:
    rows = list(synthetic_rows(2, 2, 20, seed=3))
    broken = {**rows[0], "screenshot": None}
    sample = make_sample(tmp_path / "data", [broken, *rows[1:]], rows)
    plan = alone(sample, tmp_path, repeats=1)
    assert plan.n_not_askable == 1
    assert plan.least.calls == 2 * (3 * 3 * 2)


def test_programs_get_all_of_it(sample: Sample, tmp_path: Path) -> None:
    plan = alone(sample, tmp_path, price=PRICE)
    found = json.loads(json.dumps(plan.to_dict()))
    assert found["most"]["prompt_tokens"] == plan.most.text_tokens + plan.most.image_tokens
    assert found["most"]["cost_usd"] == plan.most.cost(plan.quote)
    assert found["price"]["price"] == {"prompt": 2.5, "completion": 10.0}
    assert found["assumed"]["picks"] == 0.5


def test_the_stand_in_is_in_no_page(sample: Sample) -> None:
    assert all(STAND_IN not in step.cleaned_html for step in so.load_steps(sample.dataset, "cross_task"))


# --- what the run could show -------------------------------------------------------------------------------------


def test_the_variance_of_a_tasks_difference_is_that_of_simulated_tasks() -> None:
    """Differences of -1, 0 and 1 at steps, of which some share the task's own."""
    rng, assumed, steps = np.random.default_rng(0), Assumptions(disagreement=0.3, correlation=0.2), 6
    half = assumed.disagreement / 2
    means = []
    for _ in range(10_000):
        common, *own = rng.choice([-1, 0, 1], steps + 1, p=[half, 1 - 2 * half, half])
        # a pair shares the task's own with chance correlation
        shared = rng.random(steps) < assumed.correlation**0.5
        means.append(float(np.mean(np.where(shared, common, own))))
    found = detectable([steps] * 100, assumed)
    wanted = inference.detectable(variance(means) ** 0.5, 100)
    assert found is not None
    assert wanted is not None
    assert found == pytest.approx(wanted, rel=0.02)


def test_more_tasks_show_smaller_differences_and_one_shows_none() -> None:
    none, few, many = (detectable([5] * n, Assumptions()) for n in (1, 30, 200))
    assert none is None
    assert few is not None
    assert many is not None
    assert many < few


# --- the tokenizer -----------------------------------------------------------------------------------------------


def test_nothing_is_fetched_for_the_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tokenizers, "find_spec", lambda name: object())
    found = local_tokenizer()
    assert found.count("two words") == 2
    assert "words" in found.name


def test_words_of_markup_are_fewer_tokens() -> None:
    assert local_tokenizer(has_markup=True).count("word " * 1000) == 955


def test_tiktoken_is_used_where_its_file_is_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    # the name under which tiktoken keeps it
    (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").touch()
    monkeypatch.setattr(tokenizers, "find_spec", lambda name: object())
    monkeypatch.setattr(module, "open_tokenizer", lambda spec: spec)
    assert local_tokenizer() == "tiktoken:o200k_base"  # type: ignore[comparison-overlap]
