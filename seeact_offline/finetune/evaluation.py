"""How good a fine-tuned model is: by single questions while it is trained, by a run of `eval` at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seeact_offline.finetune.baseline import FineTuning
from seeact_offline.replies.elimination_answer import read_answer
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.run import Run
from seeact_offline.runs.watch import Watch

FOLDER = "evaluation"
"""Of the finished runs, one a split, in the trained model's folder."""


def answer_metrics(tokenizer: Any) -> Callable[[Any], dict[str, float]]:
    """Of the Trainer's generated and right answers: shares of right letters, and of wholly right answers."""

    def measure(found: Any) -> dict[str, float]:
        said, right = (_texts(tokenizer, ids) for ids in (found.predictions, found.label_ids))
        return multichoice_accuracy(said, right)

    return measure


def multichoice_accuracy(said: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """`letter_accuracy`: the right option. `answer_accuracy`: the right operation and value too. Texts as T5 writes them."""
    pairs = [
        (read_answer(one, "seq2seq"), read_answer(other, "seq2seq")) for one, other in zip(said, right, strict=True)
    ]
    letters = sum(one.letter == other.letter for one, other in pairs)
    return {
        "letter_accuracy": letters / len(pairs),
        "answer_accuracy": sum(one == other for one, other in pairs) / len(pairs),
    }


def _texts(tokenizer: Any, ids: Any) -> list[str]:
    import numpy as np

    # what is beyond an answer's end is marked by -100
    filled = np.where(ids < 0, tokenizer.pad_token_id, ids)
    texts: list[str] = tokenizer.batch_decode(filled, skip_special_tokens=True)
    return texts


def evaluate_split(asked: FineTuning, split: str, how: Mapping[str, Any], watch: Watch | None = None) -> Run:
    """`eval --model hf/OUT` on one split, into the model's own folder. `how`: the baseline's fields of `EvalConfig`.

    A run that was stopped goes on. Raises InputError.
    """
    config = EvalConfig(
        dataset=asked.dataset if asked.test_data is None else asked.test_data,
        split=split,
        limit=asked.eval_limit,
        scores=asked.eval_scores,
        ranker=None if asked.eval_scores is not None else asked.eval_ranker,
        prompts=asked.prompts,
        model=f"hf/{asked.out}",
        cache="off",
        seed=asked.settings.seed,
        out=asked.out / FOLDER / split,
        **how,
    )
    return evaluate(config, watch=watch)
