"""Run as one of several processes by `test_ranker_recipe`: trains from a base into another folder, in batches of so many pairs."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from seeact_offline.runs.watch import Watch
from seeact_offline.training.ranker_tuning import train
from tests.seeact_offline.training.test_ranker_recipe import QUICK, groups


def run(base: Path, out: Path, batch: int) -> None:
    settings = dataclasses.replace(QUICK, epochs=2, batch=batch, learning_rate=1e-3)
    train(groups(8), out, settings, base=base, watch=Watch())


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
