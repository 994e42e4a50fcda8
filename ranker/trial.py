"""Measures how well a ranker finds the right text: alone, by shared words, and by both fused. Tried while a ranker is
trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranker.fusion import fuse
from ranker.lexical import LexicalRanker

DEPTHS = (10, 50)
AT_ONCE = 32
"""Pairs of like length that the model reads at once."""


@dataclass(frozen=True, slots=True)
class TrialGroup:
    """Texts that one query is matched with, in the order in which equal scores rank."""

    query: str
    texts: tuple[str, ...]
    right: frozenset[int]
    """Places of the right texts."""


def report_trial(score: Callable[[str, Sequence[str]], np.ndarray], groups: Sequence[TrialGroup]) -> str:
    """Recall at DEPTHS, in percent, of `score`, of BM25 and of the fusion of both. `groups`: at least one."""
    lexical = LexicalRanker()
    ranks: dict[str, list[float]] = {"own": [], "own+bm25": [], "bm25": []}
    for group in groups:
        own, words = (_ranks(of(group.query, group.texts)) for of in (score, lexical.score))
        for name, found in (("own", own), ("own+bm25", _ranks(fuse([own.tolist(), words.tolist()]))), ("bm25", words)):
            ranks[name].append(min((float(found[place]) for place in group.right), default=np.inf))
    shares = {name: [f"{100 * np.mean(np.less(best, k)):.1f}" for k in DEPTHS] for name, best in ranks.items()}
    of_each = ", ".join(f"{name} {'/'.join(found)}" for name, found in shares.items())
    return f"recall@{'/'.join(map(str, DEPTHS))} over {len(groups)} step{'s' * (len(groups) > 1)}: {of_each}"


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Each text's rank, from 0; equal scores in order."""
    ranks = np.empty(len(scores), dtype=int)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return ranks


def model_scores(
    model: Any, tokenizer: Any, query: str, texts: Sequence[str], max_tokens: int, query_first: bool
) -> np.ndarray:
    """One logit a text, by a model that may be in training; it stays in the mode in which it was."""
    import torch

    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    scores, was_training = np.zeros(len(texts), dtype=np.float32), model.training
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(order), AT_ONCE):
            places = order[start : start + AT_ONCE]
            pairs = [query] * len(places), [texts[place] for place in places]
            inputs = tokenizer(
                *(pairs if query_first else pairs[::-1]),
                truncation=True, max_length=max_tokens, padding=True, return_tensors="pt",
            )  # fmt: skip
            scores[places] = model(**inputs.to(model.device)).logits[:, 0].float().cpu().numpy()
    model.train(was_training)
    return scores
