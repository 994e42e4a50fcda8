"""One short training of each baseline, to be run by any number of processes: `-m ... DATASET BASES OUT NAME...`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from seeact_offline.training import trainer
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.recipe import Recipe, Running
from seeact_offline.training.tuning import fine_tune
from tests.tiny_models import save_blip2, save_llava, save_t5

# 8 steps of which 2 are held out; 18 questions are no whole number of batches
TEXT = Recipe(epochs=1, draws=3, batch=4, learning_rate=1e-3, held_out=0.1, max_context=96, max_question=96)
RECIPES: Mapping[str, tuple[str, Recipe]] = {
    "flan-t5": ("flan-t5", TEXT),
    "flan-t5-by-length": ("flan-t5", replace(TEXT, group_by_length=True)),
    "flan-t5-lora": ("flan-t5", replace(TEXT, lora=4)),
    "blip2": ("blip2", TEXT),
    "blip2-lora": ("blip2", replace(TEXT, lora=4)),
    "vlm": ("vlm", Recipe(epochs=1, batch=4, learning_rate=1e-3, lora=4, held_out=0.1)),
}
"""Trainings by name: a baseline each, with a recipe."""


def save_bases(folder: Path) -> Path:
    """Saves a tiny model for each baseline, without dropout, which is another in each process."""
    for save, name in ((save_t5, "flan-t5"), (save_blip2, "blip2"), (save_llava, "vlm")):
        file = save(folder / name) / "config.json"
        file.write_text(json.dumps(_without_dropout(json.loads(file.read_text()))))
    return folder


def _without_dropout(config: dict[str, object]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            found[name] = _without_dropout(value)
        else:
            found[name] = 0.0 if "dropout" in name and isinstance(value, float) else value
    return found


def train_each(dataset: Path, bases: Path, out: Path, names: Sequence[str]) -> None:
    """Leaves a folder for each name."""
    from accelerate import PartialState

    trainer.LORA_DROPOUT = 0.0
    # all are trained in one process group: torch opens no second one in the same processes
    PartialState.destroy_process_group = lambda self, group=None: None
    for name in names:
        baseline, recipe = RECIPES[name]
        running = Running(log_every=1, threads=1)
        asked = FineTuning(
            out / name,
            baseline,
            str(bases / baseline),
            dataset=dataset,
            recipe=recipe,
            running=running,
            evaluate=(),
            eval_ranker="bm25",
        )
        fine_tune(asked)


if __name__ == "__main__":
    train_each(*map(Path, sys.argv[1:4]), sys.argv[4:])
