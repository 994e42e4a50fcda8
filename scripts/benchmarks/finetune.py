"""Fine-tuning: questions are made ten times faster than the obvious way, training does not wait for them, and many are answered at once."""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path
from typing import Any

from benchmarks.frame import Line, scratch_folder, timed

TASKS, SLOW_STEPS, ASKED = 4, 6, 7
"""Tasks prepared, steps of the slow way, and tasks asked about."""
TOGETHER = 32


def measure(options: argparse.Namespace) -> list[Line]:
    """Uses the bundled sample and `--small`'s T5 (random weights), on one thread."""
    import torch

    torch.set_num_threads(1)
    with scratch_folder(options.dir) as folder:
        return [*_preparation(folder), *_waiting(folder), *_elimination(folder)]


def _preparation(folder: Path) -> list[Line]:
    """Questions a second of the processor: as text, parsing counted, like the reference's; and as tokens on disk."""
    from seeact_offline.dataset import open_split
    from seeact_offline.grounding.strategies import open_pack
    from seeact_offline.pages.dom import Page
    from seeact_offline.training.bases import build_t5, train_tokenizer
    from seeact_offline.training.mindact_rows import MultiChoice, draw, example, pool_of, words_of
    from seeact_offline.training.recipe import Recipe, SmallBase
    from seeact_offline.training.training_rows import parts_of, prepare

    reference = importlib.import_module("tests.reference.multichoice_data")
    split, recipe = open_split("sample", "train", limit=TASKS), Recipe(held_out=0)
    pack = open_pack("seeact", "mindact", variant="seq2seq")
    words = words_of(parts_of(split), MultiChoice(recipe, pack), 1)
    tokenizer = train_tokenizer(words, SmallBase().vocab_size)
    for part in build_t5(SmallBase(), tokenizer):
        part.save_pretrained(folder / "model")
    maker = MultiChoice(recipe, pack, tokenizer)
    whole = timed(lambda: prepare(parts_of(split), maker, folder / "data", {}, 1))
    steps = [step for step in split.steps() if step.truth.positives][:SLOW_STEPS]
    slow = timed(lambda: [reference.questions(step, pack.turn1, 0, 1, recipe.draws) for step in steps])
    obvious = len(steps) * recipe.draws / slow.cpu_s

    def make(step: Any) -> list[Any]:
        page, pool = Page(step.cleaned_html), pool_of(step)
        return [example(pack, step, page, draw(pool, recipe, 0, n)) for n in range(recipe.epochs * recipe.draws)]

    # work that is done once a process does not count in a split of 390,000 questions
    make(steps[0])
    ours = timed(lambda: [make(step) for step in steps])
    fast = len(steps) * recipe.epochs * recipe.draws / ours.cpu_s
    return [
        Line("reference, questions a second", obvious, "/s"),
        Line("ours, questions a second", fast, "/s"),
        Line("with tokens, on disk, a second", whole.result.questions / whole.cpu_s, "/s"),
        Line("times faster than the reference", fast / obvious, "x", at_least=10),
    ]


def _waiting(folder: Path) -> list[Line]:
    """The share of a training step's time that is spent waiting for its batch."""
    from torch.utils.data import DataLoader
    from transformers import AutoTokenizer, DataCollatorForSeq2Seq, T5ForConditionalGeneration

    from seeact_offline.training.trainer import ON_CPU
    from seeact_offline.training.training_rows import EpochRows, open_rows

    tokenizer = AutoTokenizer.from_pretrained(folder / "model", trust_remote_code=False)
    model = T5ForConditionalGeneration.from_pretrained(folder / "model", trust_remote_code=False).train()
    collator = DataCollatorForSeq2Seq(tokenizer, model, pad_to_multiple_of=8)
    rows: Any = EpochRows(open_rows(folder / "data"))
    batches = iter(DataLoader(rows, batch_size=ON_CPU, shuffle=True, collate_fn=collator))
    waited = worked = 0.0
    for _ in range(3 * TOGETHER // ON_CPU):
        began = time.perf_counter()
        batch = next(batches)
        there = time.perf_counter()
        model(**batch).loss.backward()
        waited, worked = waited + there - began, worked + time.perf_counter() - there
    return [
        Line("a training step of 32 questions", worked / 3, "s"),
        Line("of its time, waiting for data", 100 * waited / (waited + worked), "%", at_most=10),
    ]


def _elimination(folder: Path) -> list[Line]:
    """Asks the same steps one at a time and many at once."""
    from seeact_offline import evaluate

    def ask(n: int, limit: int, name: str) -> Any:
        return evaluate(
            split="cross_task",
            limit=limit,
            grounding="mindact",
            layout="seq2seq",
            ranker="bm25",
            protocol="mindact",
            model=f"hf/{folder / 'model'}",
            model_args={"batch_size": n},
            concurrency=n,
            max_tokens=50,
            cache="off",
            out=folder / name,
        )

    # keeps the ranks and loads the packages, so that neither run below pays for them
    evaluate(split="cross_task", ranker="bm25", out=folder / "ranked")
    ask(TOGETHER, 1, "warm")
    single, many = timed(lambda: ask(1, ASKED, "single")), timed(lambda: ask(TOGETHER, ASKED, "many"))
    one, other = (
        {p.key: [reply.replies for reply in p.groups] for p in run.result.predictions()} for run in (single, many)
    )
    return [
        Line("elimination one at a time", single.cpu_s, "s"),
        Line(f"elimination, {TOGETHER} at once", many.cpu_s, "s"),
        Line("times faster at once", single.cpu_s / many.cpu_s, "x", at_least=3),
        Line("steps with other replies", sum(one[key] != other[key] for key in one), "", at_most=1),
    ]
