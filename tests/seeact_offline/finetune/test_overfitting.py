"""A baseline learns a handful of steps by heart and then finds all that can be found, when `eval` asks the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset import open_split
from seeact_offline.finetune.baseline import FineTuning
from seeact_offline.finetune.flan_t5 import FlanT5Tuning
from seeact_offline.finetune.recipe import Recipe, Running
from seeact_offline.finetune.small_t5 import SmallT5
from seeact_offline.finetune.tuning import fine_tune
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import evaluate
from tests.pages import synthetic_rows, write_parquet

SHAPE = SmallT5(vocab_size=600, d_model=64, d_kv=16, d_ff=128, heads=4, encoder_layers=2, decoder_layers=1)
# one group of five holds all candidates of a page, in training as in evaluation
RECIPE = Recipe(epochs=1, draws=60, none_share=0, batch=6, learning_rate=5e-3)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Seven steps, of which one has no right element."""
    made: list[dict[str, Any]] = list(synthetic_rows(7, 1, 5, seed=3))
    made[-1] = {**made[-1], "pos_candidates": []}
    return write_parquet(made, tmp_path / "train.parquet")


@pytest.mark.timeout(300)
def test_six_steps_that_a_t5_has_learnt_by_heart_are_all_found(rows: Path, tmp_path: Path) -> None:
    running = Running(log_every=30, threads=1)
    asked = FineTuning(tmp_path / "t5", base=SHAPE, dataset=rows, recipe=RECIPE, running=running, evaluate=())
    fine_tune(asked)
    how = FlanT5Tuning(asked, open_split(rows, "train")).evaluation
    config = EvalConfig(
        dataset=rows, split="train", model=f"hf/{asked.out}", ranker="bm25", cache="off", out=tmp_path / "run", **how
    )
    results = evaluate(config).results
    assert results["ceiling"]["micro"] == pytest.approx(6 / 7)
    assert results["element_accuracy"]["micro"] == results["ceiling"]["micro"]
