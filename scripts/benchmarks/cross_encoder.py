"""Cross-encoder scoring is three times faster than sentence-transformers, with the same best candidates."""

from __future__ import annotations

import argparse
import itertools
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.frame import SEED, Line, scratch_folder, timed

TOP = 50
"""Candidates that are offered to the model."""
PAGES_A_TURN = 5
BF16_PEAK = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12, "A10": 125e12}
"""Dense operations a second, from the makers' data sheets."""


class Page(NamedTuple):
    """A ranker's input for one step."""

    query: str
    texts: tuple[str, ...]


def measure(options: argparse.Namespace) -> list[Line]:
    """Scores against sentence-transformers at its defaults.

    Both score the same candidates with the same checkpoint on the same device: DeBERTa-v3-base's shape, random weights.
    They take turns of a few pages, so that other work on the machine slows down both.
    """
    from sentence_transformers import CrossEncoder

    from ranker import CrossEncoderRanker
    from seeact_offline.dataset import TEST_SPLITS, load_steps
    from seeact_offline.ranking import candidate_texts, ranker_query
    from tests.ranker.base_size import write_base_size

    steps = [step for split in TEST_SPLITS for step in load_steps("sample", split)]
    steps = Random(SEED).sample(steps, min(options.ranker_steps, len(steps)))
    steps += load_steps(*options.also) if options.also else []
    pages = []
    for step in steps:
        texts = list(candidate_texts(step).values())
        n = min(options.candidates or len(texts), len(texts))
        pages.append(Page(ranker_query(step), tuple(Random(str(step.key)).sample(texts, n))))
    with scratch_folder(options.dir) as scratch:
        train = load_steps("sample", "train")
        write_base_size(
            scratch, {text for step in train for text in (ranker_query(step), *candidate_texts(step).values())}
        )
        theirs = CrossEncoder(str(scratch))
        ours = CrossEncoderRanker(str(scratch), dtype=options.dtype, exact_top=TOP)

    def usual(batch: list[Page]) -> list[Any]:
        flat = theirs.predict([(page.query, text) for page in batch for text in page.texts])
        ends = itertools.accumulate(len(page.texts) for page in batch)
        return [flat[end - len(page.texts) : end] for end, page in zip(ends, batch, strict=True)]

    scorers: list[Callable[[list[Page]], list[Any]]] = [usual, ours.score_many]
    for scorer in scorers:
        scorer([Page(pages[0].query, pages[0].texts[:2])])
    runs: tuple[list[Any], list[Any]] = ([], [])
    for start in range(0, len(pages), PAGES_A_TURN):
        batch = pages[start : start + PAGES_A_TURN]
        for run, score in zip(runs, scorers, strict=True):
            run.append(timed(partial(score, batch)))
        print(f"ranker: {start + len(batch)} of {len(pages)} steps", file=sys.stderr)
    scores = [[page for turn in run for page in turn.result] for run in runs]
    _print_settings(pages, scores[1], ours)
    n = sum(len(page.texts) for page in pages)
    (usual_s, fast_s), (usual_cpu_s, fast_cpu_s) = (
        [sum(getattr(turn, clock) for turn in run) for run in runs] for clock in ("wall_s", "cpu_s")
    )
    same = sum(_top(page, a) == _top(page, b) for page, a, b in zip(pages, *scores, strict=True))
    return [
        Line("sentence-transformers, pairs a second", n / usual_s, "1/s"),
        Line("ours, pairs a second", n / fast_s, "1/s"),
        Line("times faster at scoring", usual_s / fast_s, "x", at_least=3),
        Line("the same in processor time", usual_cpu_s / fast_cpu_s, "x"),
        Line(f"same {TOP} best, % of {len(pages)} steps", 100 * same / len(pages), "%", at_least=99),
        Line("pairs scored a second time", 100 * ours.rescored / n, "%"),
        *_gpu_lines(pages, fast_s, ours),
    ]


def _print_settings(pages: list[Page], scores: list[Any], ours: Any) -> None:
    import numpy as np
    import sentence_transformers
    import torch

    texts = [len(page.texts) for page in pages]
    print(
        f"ranker: {_processor_name()}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"sentence-transformers {sentence_transformers.__version__}\n"
        f"ranker: 12 layers x 768, 12 heads, vocabulary 128,100, random weights; scores spread by "
        f"{np.std(np.concatenate(scores)):.2f}\n"
        f"ranker: {len(pages)} steps of {min(texts)} to {max(texts)} candidates, {sum(texts)} pairs, "
        f"{len({(page.query, text) for page in pages for text in page.texts})} of them distinct; "
        f"ours: {ours.device}, {ours.dtype}; theirs: CrossEncoder.predict at its defaults"
    )


def _gpu_lines(pages: list[Page], took_s: float, ours: Any) -> list[Line]:
    """The share of the card's bf16 peak that the first pass uses, without padding."""
    import torch

    peak = next((flops for name, flops in BF16_PEAK.items() if name in _processor_name()), None)
    if not torch.cuda.is_available() or peak is None:
        return []
    lengths = [len(row.ids) for row in ours.encode(pages).rows]
    flops = sum(12 * (2 * 12 * 768**2 * length + 12 * 768 * length**2) for length in lengths)
    return [Line("share of the card's bf16 peak", 100 * flops / took_s / peak, "%")]


def _top(page: Page, scores: Any) -> list[str]:
    """The texts of the best candidates, because sentence-transformers orders equal texts by chance."""
    order = sorted(range(len(page.texts)), key=lambda place: -scores[place])
    return sorted(page.texts[place] for place in order[:TOP])


def _processor_name() -> str:
    """The name of the device that torch works on."""
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    named = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    formats = [name for name in ("avx512f", "avx512_bf16", "amx_bf16") if any(name in line.split() for line in lines)]
    return " ".join([next(named, platform.processor()), *formats])
