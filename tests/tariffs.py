"""A server that bills every call by a rule of its own, whatever it then says of it, and the commands whose bills are looked at.

The commands run in processes that are killed: what a server has worked on is billed, whether or not anybody reads the reply.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import multiprocessing
import os
import re
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from seeact_offline.models.tokens import Size, count_words, tiles
from seeact_offline.records import InputError, ModelStopped
from tests.batch_server import BatchServer
from tests.chat_server import Answer
from tests.pages import synthetic_rows, write_parquet

LONGEST_S = 100.0
"""Of one command."""
PRICE = (3.0, 15.0)
"""USD per million tokens of prompt and reply in the usual tier."""
PRIORITY = 2.5
"""Times as much in the dearest."""
FRAME = 4
"""Tokens around each message."""

PICTURES: Mapping[str, Callable[[int, int], int]] = {
    "OpenAI's tiles": lambda width, height: 85 + 170 * tiles((width, height)),
    "GPT-4o mini's tiles": lambda width, height: 2833 + 5667 * tiles((width, height)),
    "Claude's pixels": lambda width, height: ceil(width * height / 750),
    "Qwen's patches": lambda width, height: min(16_384, ceil(width * height / 784)),
}


@dataclass(frozen=True)
class Tariff:
    """How a server bills, and what it says."""

    pictures: str = "Qwen's patches"
    says: str = "usage"
    """The form in which it says what was used; see `_SAYINGS`."""
    thinks: float = 0.0
    """Share of a reply's tokens that are thoughts."""
    tiers: bool = False
    """Whether it answers some calls in another tier than the usual one."""
    broken: float = 0.0
    """Share of calls that are billed, and end in no answer."""
    model: str = "some-model"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the command."""


@dataclass(frozen=True)
class _Call:
    """What a call has used, in truth."""

    prompt: int
    shown: int
    """Tokens of the reply's text."""
    thought: int
    tier: str
    usd: float


def _standard(call: _Call) -> dict[str, Any]:
    reply = call.shown + call.thought
    return {"prompt_tokens": call.prompt, "completion_tokens": reply, "total_tokens": call.prompt + reply}


_SAYINGS: Mapping[str, Callable[[_Call], Any]] = {
    "usage": lambda call: _standard(call) | {"completion_tokens_details": {"reasoning_tokens": call.thought}},
    # xAI: inspect_ai#5528, vercel/ai#12425
    "thoughts beside": lambda call: (
        _standard(call)
        | {"completion_tokens": call.shown, "completion_tokens_details": {"reasoning_tokens": call.thought}}
    ),
    "thoughts in the total alone": lambda call: _standard(call) | {"completion_tokens": call.shown},
    "nothing": lambda call: None,
    "zeros": lambda call: {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "OpenRouter's cost": lambda call: _standard(call) | {"cost": call.usd},
    "OpenRouter's cost of an own key": lambda call: (
        _standard(call)
        | {"cost": call.usd * 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": call.usd * 0.95}}
    ),
    "DeepInfra's cost": lambda call: _standard(call) | {"estimated_cost": call.usd},
    "Perplexity's cost": lambda call: _standard(call) | {"cost": {"total_cost": call.usd, "input_tokens_cost": 0.0}},
    "xAI's cost": lambda call: (
        _standard(call) | {"completion_tokens": call.shown, "cost_in_usd_ticks": ceil(call.usd * 1e10)}
    ),
}


class TariffServer(BatchServer):
    """Answers with `text` at its tariff. `billed`: USD."""

    def __init__(self, tariff: Tariff, text: Callable[[str], str], seed: int = 0) -> None:
        super().__init__(self._bill)
        self.tariff, self.billed, self.dearest = tariff, 0.0, 0.0
        self._text, self._seed = text, seed
        self._times: Counter[str] = Counter()
        self._billing = threading.Lock()

    def _bill(self, body: dict[str, Any]) -> Answer:
        said = json.dumps(body.get("messages") or body.get("input"))
        with self._billing:
            mark = hashlib.sha256(said.encode()).hexdigest()
            self._times[mark] += 1
            drawn = Random(f"{self._seed} {mark} {self._times[mark]}")
        if drawn.random() < self.tariff.broken / 2:
            return Answer("slow down", status=429)
        call = self._used(body, drawn)
        with self._billing:
            self.billed += call.usd
            self.dearest = max(self.dearest, call.usd)
        if drawn.random() < self.tariff.broken:
            return drawn.choice([Answer(hang_up=True), Answer(body=b'{"choices'), Answer("cut", status=502), self._reply(call, "torn", "error")])  # fmt: skip
        return self._reply(call, self._text(said), "stop")

    def _used(self, body: Mapping[str, Any], drawn: Random) -> _Call:
        texts, sizes = _contents(body)
        prompt = sum(FRAME + count_words(text) for text in texts)
        prompt += sum(PICTURES[self.tariff.pictures](*size) for size in sizes)
        names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
        limit = next((body[name] for name in names if name in body), 32_000)
        # mostly short, now and then as long as it may be
        reply = limit if drawn.random() < 0.05 else drawn.randint(1, max(1, limit // 3))
        thought = int(reply * self.tariff.thinks)
        tier = "priority" if self.tariff.tiers and drawn.random() < 0.4 else "default"
        usd = (prompt * PRICE[0] + reply * PRICE[1]) / 1e6 * (PRIORITY if tier == "priority" else 1.0)
        return _Call(prompt, reply - thought, thought, tier, usd)

    def _reply(self, call: _Call, text: str, reason: str) -> Answer:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
        body = {"choices": [choice], "usage": _SAYINGS[self.tariff.says](call), "service_tier": call.tier}
        return Answer(body=json.dumps(body).encode())


def _contents(body: Mapping[str, Any]) -> tuple[list[str], list[Size]]:
    texts, sizes = [], []
    for message in body["messages"]:
        content = message["content"]
        for part in [{"text": content}] if isinstance(content, str) else content:
            if "image_url" in part:
                encoded = part["image_url"]["url"].partition(",")[2]
                sizes.append(Image.open(io.BytesIO(base64.b64decode(encoded))).size)
            else:
                texts.append(part["text"])
    return texts, sizes


# --- what is run ---


def write_pages(folder: Path, heights: Iterable[int] = (5, 110, 30)) -> Path:
    """A data set in which a small page comes first, and a tall one next; each shows a picture for captions. Gives the folder back."""
    for first, split in ((1, "test_task"), (101, "train")):
        rows = []
        for seed, n_elements in enumerate(heights, first):
            rows += list(synthetic_rows(1, 2, n_elements, seed))
        _write_split(rows, folder / "data" / f"{split}-00000-of-00001.parquet")
    return folder


def _write_split(rows: list[dict[str, Any]], path: Path) -> None:
    for number, row in enumerate(rows):
        box = {"backend_node_id": "90001", "bounding_box_rect": f"0,0,{100 + 10 * number},{40 + 9 * number}"}
        image = {"tag": "img", "attributes": json.dumps(box), "backend_node_id": "90001"}
        row["neg_candidates"] = [*row["neg_candidates"], json.dumps(image)]
        row["cleaned_html"] = row["cleaned_html"].replace("</body>", '<img backend_node_id="90001" alt="fox"/></body>')
    write_parquet(rows, path)


def _evaluate(pages: Path, out: Path, **options: Any) -> None:
    import seeact_offline as so

    so.evaluate(dataset=pages, split="cross_task", out=out, **options)


def _choose(pages: Path, out: Path, **options: Any) -> None:
    _evaluate(pages, out, ranker="bm25", top_k=4, group_size=2, **options)


def _judge(pages: Path, out: Path, **options: Any) -> None:
    from seeact_offline.runs.config import EvalConfig
    from seeact_offline.trajectories.judge_runs import judge

    judge(
        pages,
        judge="strict",
        k=("1", "2"),
        repeats=2,
        config=EvalConfig.of(split="cross_task", out=out, max_image_side=4000, **options),
    )


def _ablate(pages: Path, out: Path, **options: Any) -> None:
    from seeact_offline.runs.ablate import AXES, ablate
    from seeact_offline.runs.config import EvalConfig
    from seeact_offline.web_agents.observation_axis import observation_variants

    config = EvalConfig.of(dataset=pages, split="cross_task", out=out, **options)
    ablate(config, AXES["observation"], observation_variants(config, ["html", "som+captions"]))


def _second(pages: Path, out: Path, price: Any = None, **options: Any) -> dict[str, Any]:
    """Options for two models, at prices of a table."""
    if price is None:
        return options
    table = json.loads(Path(price).read_text()) if str(price).endswith(".json") else None
    entries = table["prices"] if table else [{"prompt": float(price.split(",")[0]), "completion": float(price.split(",")[1]), "date": "2026-01-01"}]  # fmt: skip
    entries = [{**entry, "model": name} for entry in entries for name in (options["model"].partition("/")[2], "second")]
    path = pages.parent / f"{out.name}-prices.json"
    path.write_text(json.dumps({"prices": entries}))
    return {**options, "price": str(path)}


def _caption(pages: Path, out: Path, **options: Any) -> None:
    second = {"captions": "openai/second", "captions_base_url": options["base_url"]}
    observed = {"agent": "visualwebarena", "observation": "som+captions"}
    _evaluate(pages, out, **observed, **second, **_second(pages, out, **options))


def _plan_and_ground(pages: Path, out: Path, **options: Any) -> None:
    second = {"grounder": "openai/second", "grounder_base_url": options["base_url"], "grounder_agent": "qwen2.5-vl"}
    _evaluate(pages, out, agent="uground-blind", **second, **_second(pages, out, **options))


def _batch(pages: Path, out: Path, **options: Any) -> None:
    """A pilot in batches, for which there is no limit, and then the rest live: the limit is for both together."""
    from seeact_offline.runs.batches import run_batch
    from seeact_offline.runs.config import EvalConfig

    common: dict[str, Any] = {"dataset": pages, "split": "cross_task", "out": out, "ranker": "bm25", "top_k": 4, "group_size": 2, "grounding": "choice"}  # fmt: skip
    live = {name: value for name, value in options.items() if name not in ("max_cost", "concurrency")}
    config = EvalConfig.of(**common, limit=1, **live)
    run_batch(config, "submit", out.with_name(f"{out.name}-waves"), sleep=lambda _: asyncio.sleep(0.005))
    _choose(pages, out, grounding="choice", **options)


async def _act(messages: Sequence[Any]) -> str:
    return "Thought: the first one.\nAction: Click [1]"


def _same(model: Any, files: Sequence[Path], out: Path) -> Any:
    """Trains nothing."""
    return model


def _improve(
    pages: Path, out: Path, model: str, base_url: str, max_cost: float, price: Any = None, **others: Any
) -> None:
    """An agent that costs nothing, whose attempts a judge accepts or not."""
    import seeact_offline as so

    priced = {} if price is None else {"price": price}
    so.improve(
        model=_act,
        train=_same,
        dataset=pages,
        judge=model,
        judge_base_url=base_url,
        max_cost=max_cost,
        cycles=2,
        attempts=2,
        together=2,
        max_turns=2,
        evaluate=(),
        out=out,
        **priced,
    )


VERBS: Mapping[str, Callable[..., None]] = {
    "eval": _choose,
    "eval of an agent": lambda pages, out, **options: _evaluate(pages, out, agent="qwen2.5-vl", **options),
    "judge": _judge,
    "improve": _improve,
    "ablate": _ablate,
    "captions": _caption,
    "planner with grounder": _plan_and_ground,
    "batches": _batch,
}
"""A further command needs one row."""


def said(prompt: str) -> str:
    """An answer of every form that some command reads."""
    if "Describe this picture" in prompt:
        return "A fox at dusk."
    return "Status: success\nACTION: CLICK\nELEMENT: A\nVALUE: None\n```click [1]```"


@dataclass(frozen=True)
class Bill:
    """What a command has cost that was killed again and again."""

    cap: float
    billed: float
    """USD, by the server's own rule."""
    requests: int
    kills: int
    complaint: str
    """What the last run ended with; empty for a whole run."""


def _run(verb: str, pages: str, out: str, options: Mapping[str, Any], report: str) -> None:
    """In a process of its own."""
    from seeact_offline.models import retrying

    retrying.FIRST_PAUSE_S = 0.002
    os.environ["OPENAI_API_KEY"] = "no secret"
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    try:
        VERBS[verb](Path(pages), Path(out), **options)
    except (InputError, ModelStopped) as error:
        Path(report).write_text(str(error))
    except BaseException:
        Path(report).write_text("crashed: " + traceback.format_exc())
        raise


def bill(verb: str, tariff: Tariff, pages: Path, folder: Path, cap: float, kills: int, seed: int = 0) -> Bill:
    """The bill of a command that is killed so many times at random moments, and then left to its end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.tariffs", "openai", "seeact_offline", "seeact_offline.runs.batches"])
    drawn, n_killed = Random(f"{seed} {verb} {tariff}"), 0
    out = folder / re.sub(r"\W+", "-", f"{verb} {seed}")
    report = folder / f"{out.name}.txt"
    with TariffServer(tariff, said, seed) as server:
        options = {"price": "{},{}".format(*PRICE), **tariff.options, "model": f"openai/{tariff.model}"}
        options |= {"base_url": server.base_url, "max_cost": cap, "cache": "off"}
        if options["price"] is None:
            del options["price"]
        for number in range(kills + 1):
            report.unlink(missing_ok=True)
            arguments = (verb, str(pages), str(out), options, str(report))
            process = context.Process(target=_run, args=arguments, daemon=True)
            wanted = len(server.requests) + drawn.randint(1, 12)
            process.start()
            if number < kills:
                ends = time.monotonic() + LONGEST_S
                while len(server.requests) < wanted and process.is_alive() and time.monotonic() < ends:
                    time.sleep(0.002)
                process.kill()
                n_killed += 1
            process.join(LONGEST_S)
            assert not process.is_alive()
        complaint = report.read_text() if report.exists() else ""
        # calls in flight when it was killed are billed too
        time.sleep(0.05)
        return Bill(cap, server.billed, len(server.requests), n_killed, complaint)
