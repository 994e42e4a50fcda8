"""The bundled ranker scores a page of 500 candidates in about a second a core."""

from __future__ import annotations

import argparse

from benchmarks.frame import Line, timed

N_CANDIDATES = range(450, 551)
N_PAGES = 8


def measure(options: argparse.Namespace) -> list[Line]:
    """Scores pages of the sample with their own candidates, on one core and on all."""
    from ranker import plain
    from seeact_offline.dataset import load_steps
    from seeact_offline.ranking import bundled_folder, candidate_texts, ranker_query

    folder = bundled_folder()
    assert folder is not None
    ranker = plain.PlainRanker(folder)
    steps = [step for step in load_steps("sample", "cross_task") if len(step.candidates) in N_CANDIDATES][:N_PAGES]
    pages = [(ranker_query(step), list(candidate_texts(step).values())) for step in steps]
    encoded = ranker.encode(pages)
    every = timed(lambda: ranker.predict(encoded))
    threads, plain.THREADS = plain.THREADS, 1
    one = timed(lambda: ranker.predict(encoded))
    print(f"bundled: {len(pages)} pages, {sum(len(texts) for _, texts in pages) / len(pages):.0f} candidates each")
    return [
        Line("bundled ranker on one core", len(pages) / one.cpu_s, "pages/s", at_least=1),
        Line(f"on {threads} cores", len(pages) / every.wall_s, "pages/s"),
    ]
