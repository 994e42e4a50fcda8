"""The bundled ranker with numpy alone: the scores of `CrossEncoderRanker`, without torch.

torch and transformers take gigabytes of disk and seconds to load, for a model of 5 MB. A score depends on its query and its text
alone, to the bit: not on other texts, batches or threads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

import numpy as np

from ranker.checkpoint import folder_digest
from ranker.errors import RankerError
from ranker.plain_forward import PlainForward, Row

BATCH_TOKENS = 2048
THREADS = min(4, os.cpu_count() or 1)
"""Batches computed at the same time: numpy releases the interpreter lock."""
MIN_TEXT_TOKENS = 8
"""A query that leaves fewer tokens than this for the text is refused, as in `ranker.cross_encoder`."""
SHAPE = {
    "model_type": "deberta-v2",
    "hidden_size": 128,
    "intermediate_size": 512,
    "hidden_act": "gelu",
    "pooler_hidden_act": "gelu",
    "max_position_embeddings": 512,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "position_biased_input": False,
    "norm_rel_ebd": "layer_norm",
    "pair_order": "query-text",
}
"""Required settings of config.json."""


class PlainRanker:
    """Scores pairs with a checkpoint that `ranker.small_model` shaped and `ranker.training` saved, on the CPU."""

    dtype = "float32"

    def __init__(self, folder: str | Path) -> None:
        """Raises RankerError for a checkpoint of another shape."""
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = Path(folder)
        self.name, self.digest = str(folder), folder_digest(folder)
        config = json.loads((folder / "config.json").read_text("utf-8"))
        for key, value in SHAPE.items():
            if config.get(key) != value:
                raise RankerError("model", f"{key} {value} in the config.json of {folder}", repr(config.get(key)))
        self._model = PlainForward(load_file(folder / "model.safetensors"), config)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.truncated = 0
        """Texts cut so far to the room that their query leaves."""

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Scores of the texts for one query, float32 of shape `(len(texts),)`."""
        return self.predict(self.encode([(query, texts)]))[0]

    def encode(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> list[list[Row]]:
        """Each query's texts as rows, without the model."""
        return [self._encode(query, texts) for query, texts in pairs]

    def predict(self, encoded: Sequence[Sequence[Row]]) -> list[np.ndarray]:
        """Scores of encoded pairs."""
        batches = list(_batches({row for rows in encoded for row in rows}))
        scores: dict[Row, float] = {}
        with ThreadPoolExecutor(THREADS) as pool:
            for batch, logits in zip(batches, pool.map(self._model.logits, batches), strict=True):
                scores.update(zip(batch, logits.tolist(), strict=True))
        return [np.array([scores[row] for row in rows], dtype=np.float32) for rows in encoded]

    def _encode(self, query: str, texts: Sequence[str]) -> list[Row]:
        start, end, _ = self._tokenizer.encode("", "").ids
        asked, *rest = (row.ids for row in self._tokenizer.encode_batch([query, *texts], add_special_tokens=False))
        room = self._model.max_tokens - 3 - len(asked)
        if room < MIN_TEXT_TOKENS and texts:
            most = len(asked) + room - MIN_TEXT_TOKENS
            wanted = f"at most {most} tokens, so that {MIN_TEXT_TOKENS} are left for a text"
            raise RankerError("query", wanted, f"{len(asked)}: {query[:60]!r}")
        self.truncated += sum(len(text) > room for text in rest)
        return [Row((start, *asked, end, *text[:room], end), len(asked) + 2) for text in rest]


def _batches(rows: set[Row]) -> Iterator[list[Row]]:
    """Rows of one width, as many as the budget allows."""
    for width, group in groupby(sorted(rows, key=lambda row: row.width), key=lambda row: row.width):
        same, size = list(group), max(1, BATCH_TOKENS // width)
        yield from (same[start : start + size] for start in range(0, len(same), size))
