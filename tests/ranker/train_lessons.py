"""Run as one of several processes by `test_training`: trains on lessons into the folder named, in batches of so many groups."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np

from ranker.pairs import Lesson, PairGroup
from ranker.processes import part
from ranker.training import train
from tests.ranker.test_training import QUICK, TINY, WORDS

TEXTS = ("div dune", "div birch", "div fjord", "div ember")


def lessons() -> list[PairGroup]:
    """One text of each is right, and a teacher thinks so too; each epoch draws one of the others."""
    scores = np.array([0.0, 0.1, 0.2, 2.0], dtype=np.float32)
    lesson = Lesson({text: i for i, text in enumerate(TEXTS)}, scores, scores)
    return [PairGroup(f"find {word}", TEXTS[3:], TEXTS[:3], lesson) for word in WORDS[:8]]


def run(out: str, batch: int) -> None:
    settings = dataclasses.replace(QUICK, epochs=3, negatives=1, batch=batch, learning_rate=1e-3)
    train(lessons(), out, settings, base=TINY)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
    part()
