"""A ranker whose process dies in the middle of its work. In a module of its own, for Ray's workers to import."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ranker import LexicalRanker
from seeact_offline.ranking.rankers import TextRanker


class MortalRanker:
    """BM25 that writes down who scored, and dies by SIGKILL at one of its calls, `lives` times over all processes."""

    name = "mortal"

    def __init__(self, folder: Path, dies_at: int, lives: int) -> None:
        self._folder = folder
        self._dies_at = dies_at
        self._lives = lives
        self._calls = 0

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        self._calls += 1
        deaths = len(list(self._folder.glob("death*")))
        if self._calls == self._dies_at and deaths < self._lives:
            (self._folder / f"death{deaths}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        with (self._folder / "calls").open("a") as file:
            file.write(f"{os.getpid()}\n")
        return LexicalRanker().score(query, texts)


def open_mortal(name: str) -> TextRanker:
    """`FOLDER:dies_at:lives`."""
    folder, dies_at, lives = name.rsplit(":", 2)
    return TextRanker(MortalRanker(Path(folder), int(dies_at), int(lives)))
