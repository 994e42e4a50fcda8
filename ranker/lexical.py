"""Ranking by shared words: BM25 (Robertson et al. 1994) over the texts of one query, with the bm25s library."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np


class LexicalRanker:
    """The baseline without a model. Each call has its own corpus: the given texts.

    >>> scores = LexicalRanker().score("search for a flight", ["a Sign in", "button Search flights", "input text From"])
    >>> int(scores.argmax()), float(scores[0])
    (1, 0.0)
    """

    name = "bm25"

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """BM25 of each text for the query, float32 of shape `(len(texts),)`; zeros if no word can be compared."""
        import bm25s

        # its logger prints a line a call
        logging.getLogger(bm25s.__name__).setLevel(logging.WARNING)
        tokens = _tokens(texts)
        vocabulary = {token for text in tokens for token in text}
        asked = [token for token in _tokens([query])[0] if token in vocabulary] if query else []
        if not asked:
            return np.zeros(len(texts), dtype=np.float32)
        index = bm25s.BM25()
        index.index(tokens, show_progress=False)
        return np.asarray(index.get_scores(asked), dtype=np.float32)


def _tokens(texts: Sequence[str]) -> list[list[str]]:
    import bm25s

    return list(bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)) if texts else []
