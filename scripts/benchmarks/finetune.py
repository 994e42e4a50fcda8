"""Fine-tuning: questions are made ten times faster than the obvious way, training does not wait for them, and many are answered at once."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring import Line, scratch_folder, timed

TASKS, SLOW_STEPS, ASKED = 4, 6, 7
"""Tasks prepared, steps of the slow way, and tasks asked about."""
TOGETHER = 32


def bench_finetune(inside: Path | None) -> list[Line]:
    """On the bundled sample, with `--small`'s T5 (random weights), on one thread."""
    import torch

    torch.set_num_threads(1)
    with scratch_folder(inside) as folder:
        return [*_preparation(folder), *_waiting(folder), *_elimination(folder)]


def _preparation(folder: Path) -> list[Line]:
    """Questions a second of the processor: in words, as the reference makes them, parsing counted; and with tokens too."""
    from seeact_offline.dataset import open_split
    from seeact_offline.finetune.data import parts_of, prepare
    from seeact_offline.finetune.drawing import draw, pool_of
    from seeact_offline.finetune.examples import example
    from seeact_offline.finetune.multichoice import MultiChoice, words_of
    from seeact_offline.finetune.recipe import Recipe
    from seeact_offline.finetune.small import SmallT5, build_small, train_tokenizer
    from seeact_offline.grounding.strategies import open_pack
    from seeact_offline.pages.dom import Page

    reference = importlib.import_module("tests.reference.multichoice_data")
    split, recipe = open_split("sample", "train", limit=TASKS), Recipe(held_out=0)
    pack = open_pack("seeact", "mindact", variant="seq2seq")
    maker = MultiChoice(recipe, pack)
    tokenizer = train_tokenizer(words_of(parts_of(split), maker, 1), SmallT5().vocab_size)
    model = build_small(SmallT5(), tokenizer)
    for part in (model, tokenizer):
        part.save_pretrained(folder / "model")
    maker = MultiChoice(recipe, pack, tokenizer)
    whole = timed(lambda: prepare(parts_of(split), maker, folder / "data", {}, 1))
    steps = [step for step in split.steps() if step.truth.positives][:SLOW_STEPS]
    slow = timed(lambda: [reference.questions(step, pack.turn1, 0, 1, recipe.draws) for step in steps])
    obvious = len(steps) * recipe.draws / slow.cpu_s

    def words(step: Any) -> list[Any]:
        page, pool = Page(step.cleaned_html), pool_of(step)
        return [example(pack, step, page, draw(pool, recipe, 0, n)) for n in range(recipe.epochs * recipe.draws)]

    # what is done once in a process does not count in a split of 390,000 questions
    words(steps[0])
    ours = timed(lambda: [words(step) for step in steps])
    fast = len(steps) * recipe.epochs * recipe.draws / ours.cpu_s
    return [
        Line("reference, questions a second", obvious, "/s"),
        Line("ours, questions a second", fast, "/s"),
        Line("with tokens, on disk, a second", whole.result.questions / whole.cpu_s, "/s"),
        Line("times faster than the reference", fast / obvious, "x", at_least=10),
    ]


def _waiting(folder: Path) -> list[Line]:
    """The share of a training step's time until its batch is there."""
    from torch.utils.data import DataLoader
    from transformers import AutoTokenizer, DataCollatorForSeq2Seq, T5ForConditionalGeneration

    from seeact_offline.finetune.data import EpochRows, open_rows
    from seeact_offline.finetune.training import ON_CPU

    tokenizer = AutoTokenizer.from_pretrained(folder / "model", trust_remote_code=False)
    model = T5ForConditionalGeneration.from_pretrained(folder / "model", trust_remote_code=False).train()
    collator = DataCollatorForSeq2Seq(tokenizer, model, pad_to_multiple_of=8)
    rows: Any = EpochRows(open_rows(folder / "data"))
    loader = DataLoader(rows, batch_size=ON_CPU, shuffle=True, collate_fn=collator)
    waited = worked = 0.0
    batches: Iterator[Any] = iter(loader)
    for _ in range(3 * TOGETHER // ON_CPU):
        began = time.perf_counter()
        batch = next(batches)
        there = time.perf_counter()
        model(**batch).loss.backward()
        waited, worked = waited + there - began, worked + time.perf_counter() - there
    return [
        Line("a training step of 32 questions", TOGETHER * worked / (3 * TOGETHER), "s"),
        Line("of its time, waiting for data", 100 * waited / (waited + worked), "%", at_most=10),
    ]


def _elimination(folder: Path) -> list[Line]:
    """The same steps, asked one at a time and across steps."""
    from seeact_offline.runs.config import EvalConfig
    from seeact_offline.runs.evaluation import evaluate

    def asked(n: int, limit: int, name: str) -> Any:
        config = EvalConfig(
            split="cross_task",
            limit=limit,
            grounding="mindact",
            grounding_options={"layout": "seq2seq"},
            ranker="bm25",
            protocol="mindact",
            model=f"hf/{folder / 'model'}",
            model_args={"batch_size": n},
            concurrency=n,
            max_tokens=50,
            cache="off",
            out=folder / name,
        )
        return evaluate(config)

    # ranks are kept, and packages are loaded once: beforehand, so that neither pays for them
    evaluate(split="cross_task", ranker="bm25", out=folder / "ranked")
    asked(TOGETHER, 1, "warm")
    single, many = timed(lambda: asked(1, ASKED, "single")), timed(lambda: asked(TOGETHER, ASKED, "many"))
    said = [
        {p.key: [reply.replies for reply in p.groups] for p in run.predictions()}
        for run in (single.result, many.result)
    ]
    differing = sum(said[0][key] != said[1][key] for key in said[0])
    return [
        Line("elimination one at a time", single.cpu_s, "s"),
        Line(f"elimination, {TOGETHER} at once", many.cpu_s, "s"),
        Line("times faster at once", single.cpu_s / many.cpu_s, "x", at_least=3),
        Line("steps with other replies", differing, "", at_most=1),
    ]
