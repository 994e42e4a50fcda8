"""A baseline learns a handful of steps by heart and then finds all that can be found, when `eval` asks the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.training.baseline import FineTuning, find_baseline
from seeact_offline.training.recipe import Recipe, Running, SmallBase
from seeact_offline.training.tuning import fine_tune
from tests.pages import synthetic_rows, write_parquet

pytestmark = pytest.mark.nightly

SHAPE = SmallBase(vocab_size=600, d_model=64, d_kv=16, d_ff=128, heads=4, encoder_layers=2, decoder_layers=1)
# one group of five holds all candidates of a page, in training as in evaluation
TEXT = Recipe(epochs=1, draws=60, none_share=0, batch=6, learning_rate=5e-3)
# of full rank
MATRICES = Recipe(epochs=60, none_share=0, batch=6, learning_rate=1e-2, lora=64)
RECIPES = {"flan-t5": TEXT, "blip2": TEXT, "vlm": MATRICES}
# the shipped wording of `vlm` is twenty times as long as these questions
WORDING = {
    "system.txt": "Choose.",
    "turn1.txt": "{{task}}\n{{history}}",
    "choice.turn2.txt": "{{choices}}{{none_label}}. None",
}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Seven steps, of which one has no right element."""
    made: list[dict[str, Any]] = list(synthetic_rows(7, 1, 5, seed=3))
    made[-1] = {**made[-1], "pos_candidates": []}
    return write_parquet(made, tmp_path / "train.parquet")


# trl 1.16.0 asks by the old name
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", RECIPES)
def test_six_steps_that_a_baseline_has_learnt_by_heart_are_all_found(rows: Path, tmp_path: Path, name: str) -> None:
    prompts = tmp_path / "wording"
    prompts.mkdir()
    for file, text in WORDING.items():
        (prompts / file).write_text(text)
    asked = FineTuning(
        tmp_path / name,
        name,
        SHAPE,
        dataset=rows,
        recipe=RECIPES[name],
        # a checkpoint an epoch takes longer than the epoch
        running=Running(save_every=1000, threads=1),
        prompts=str(prompts) if name == "vlm" else "seeact",
        evaluate=(),
        eval_ranker="bm25",
    )
    fine_tune(asked)
    how = find_baseline(name).evaluation(asked)
    config = EvalConfig(
        dataset=rows,
        split="train",
        model=f"hf/{asked.out}",
        ranker="bm25",
        cache="off",
        prompts=asked.prompts,
        out=tmp_path / "run",
        **how,
    )
    results = evaluate(config).results
    assert results["ceiling"]["micro"] == pytest.approx(6 / 7)
    assert results["element_accuracy"]["micro"] == results["ceiling"]["micro"]
