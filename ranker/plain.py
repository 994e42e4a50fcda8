"""The bundled ranker with numpy alone: the scores of `CrossEncoderRanker`, without torch.

torch and transformers take gigabytes of disk and seconds to load, for a model of 5 MB. A score depends on its query and
its text alone, to the bit: not on other texts, batches or threads.

The sums are those of `ranker.packed`, in float32. Rows are padded to a multiple of BLOCK tokens, and every product is a
heap of small ones of BLOCK rows each. That is as fast as large ones where a processor has wide registers, and BLAS
neither shares so small a product among threads nor orders its sums by what else is in the batch.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ranker.checkpoint import folder_digest, room_for_text
from ranker.errors import RankerError

BATCH_TOKENS = 2048
THREADS = min(4, os.cpu_count() or 1)
"""Batches computed at the same time: numpy releases the interpreter lock."""
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
BLOCK = 4
"""Rows of one product, of at most 512 times 128: OpenBLAS shares products of more than 2 ** 18 multiplications."""
GELU_AT_ONCE = 8192
"""Numbers that stay in a processor's cache while the activation goes over them some twenty times."""


class PlainRanker:
    """Scores pairs with a checkpoint that `ranker.small_model` shaped, on the CPU."""

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
        if not texts:
            return []
        start, end, _ = self._tokenizer.encode("", "").ids
        asked, *rest = (row.ids for row in self._tokenizer.encode_batch([query, *texts], add_special_tokens=False))
        room = room_for_text(query, len(asked), self._model.max_tokens - 3)
        self.truncated += sum(len(text) > room for text in rest)
        return [Row((start, *asked, end, *text[:room], end), len(asked) + 2) for text in rest]


def _batches(rows: set[Row]) -> Iterator[list[Row]]:
    """Rows of one width, as many as the budget allows."""
    for width, group in groupby(sorted(rows, key=lambda row: row.width), key=lambda row: row.width):
        same, size = list(group), max(1, BATCH_TOKENS // width)
        yield from (same[start : start + size] for start in range(0, len(same), size))


# --- the forward pass ---


class Row(NamedTuple):
    """A pair as the model reads it."""

    ids: tuple[int, ...]
    """Token ids, including special tokens."""
    split: int
    """Place of the text's first token."""

    @property
    def width(self) -> int:
        """Its tokens with padding."""
        return -(-len(self.ids) // BLOCK) * BLOCK


class PlainForward:
    """The classifier: token ids in, logits out."""

    def __init__(self, weights: Mapping[str, np.ndarray], config: Mapping[str, Any]) -> None:
        self.max_tokens = config["max_position_embeddings"]
        self._heads, self._eps = config["num_attention_heads"], config["layer_norm_eps"]
        self._layers = [f"deberta.encoder.layer.{place}" for place in range(config["num_hidden_layers"])]
        # a dense layer's are (outputs, inputs); an embedding's are looked up
        self._weights = {
            name: values if values.ndim == 1 or "embeddings" in name else np.ascontiguousarray(values.T)
            for name, values in weights.items()
        }
        # an attention score is a sum of three products
        scale = np.float32(1 / math.sqrt(3 * config["hidden_size"] / self._heads))
        embedded = self._norm(weights["deberta.encoder.rel_embeddings.weight"], "deberta.encoder.LayerNorm")
        distances = np.arange(self.max_tokens - 1, -self.max_tokens - 1, -1)
        self._tables: dict[str, np.ndarray] = {}
        """Distances as keys and as queries: (heads, head size, 2 * longest row). Column `longest - 1`: distance 0."""
        for own in (f"{name}.attention.self" for name in self._layers):
            for part in ("weight", "bias"):
                self._weights[f"{own}.query_proj.{part}"] = self._weights[f"{own}.query_proj.{part}"] * scale
            for part, reached in (("key_proj", distances), ("query_proj", -distances)):
                table = embedded[_buckets(reached, config)][None]
                by_head = self._by_head(self._linear(table, f"{own}.{part}"))[:, 0]
                self._tables[f"{own}.{part}"] = np.ascontiguousarray(by_head.swapaxes(1, 2))

    def logits(self, rows: Sequence[Row]) -> np.ndarray:
        """Shape (rows,). `rows`: of one width."""
        width = rows[0].width
        ids, types = np.zeros((2, len(rows), width), dtype=np.int64)
        mask = np.full((len(rows), width), -np.inf, dtype=np.float32)
        for place, row in enumerate(rows):
            ids[place, : len(row.ids)] = row.ids
            types[place, row.split : len(row.ids)] = 1
            mask[place, : len(row.ids)] = 0
        words, kinds = (
            self._weights[f"deberta.embeddings.{name}_embeddings.weight"] for name in ("word", "token_type")
        )
        hidden = self._norm(words[ids] + kinds[types], "deberta.embeddings.LayerNorm")
        for name in self._layers:
            # only the first token is read in the end, and a block is the least there is
            asking = BLOCK if name == self._layers[-1] else width
            hidden = self._layer(hidden, name, mask, asking)
        logits: np.ndarray = self._linear(gelu(self._linear(hidden, "pooler.dense")), "classifier")
        return logits[:, 0, 0]

    def _layer(self, hidden: np.ndarray, name: str, mask: np.ndarray, asking: int) -> np.ndarray:
        """`hidden`: (rows, width, hidden size); the result holds the first `asking` tokens of each row."""
        own, first = f"{name}.attention.self", hidden[:, :asking]
        q = self._by_head(self._linear(first, f"{own}.query_proj"))
        k, v = (self._by_head(self._linear(hidden, f"{own}.{part}_proj")) for part in ("key", "value"))
        scores = _blocks(q) @ k.swapaxes(2, 3)[:, :, None]
        scores += _slanted(q, self._tables[f"{own}.key_proj"], k.shape[2])
        by_key = scores.reshape(*q.shape[:3], -1, BLOCK)
        by_key += _slanted(k, self._tables[f"{own}.query_proj"], asking).transpose(0, 1, 4, 2, 3)
        scores += mask[:, None, None]
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        attended = (scores @ v[:, :, None]) / scores.sum(-1, keepdims=True)
        context = self._linear(
            attended.reshape(q.shape).transpose(1, 2, 0, 3).reshape(first.shape), f"{name}.attention.output.dense"
        )
        merged = self._norm(first + context, f"{name}.attention.output.LayerNorm")
        inner = gelu(self._linear(merged, f"{name}.intermediate.dense"))
        return self._norm(merged + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _by_head(self, values: np.ndarray) -> np.ndarray:
        """(rows, tokens, hidden size) -> (heads, rows, tokens, head size)."""
        return np.ascontiguousarray(values.reshape(*values.shape[:2], self._heads, -1).transpose(2, 0, 1, 3))

    def _linear(self, values: np.ndarray, name: str) -> np.ndarray:
        product: np.ndarray = values.reshape(-1, BLOCK, values.shape[-1]) @ self._weights[f"{name}.weight"]
        product += self._weights[f"{name}.bias"]
        return product.reshape(*values.shape[:-1], -1)

    def _norm(self, values: np.ndarray, name: str) -> np.ndarray:
        values = values - values.mean(-1, keepdims=True)
        values /= np.sqrt(np.square(values).mean(-1, keepdims=True) + np.float32(self._eps))
        values *= self._weights[f"{name}.weight"]
        values += self._weights[f"{name}.bias"]
        return values


def _slanted(values: np.ndarray, table: np.ndarray, others: int) -> np.ndarray:
    """Products of token i of a row with the columns `middle - i` to `middle - i + others - 1` of the table, by head.

    `values`: (heads, rows, tokens, head size); `table`: (heads, head size, distances). The result: (heads, rows,
    blocks, BLOCK, others). A block's tokens together meet `others + BLOCK - 1` columns, and a slanted view of the
    product picks each one's.
    """
    heads, _, tokens, size = values.shape
    start, n_columns = table.shape[2] // 2 - BLOCK, others + BLOCK - 1
    of_head, of_size, of_column = table.strides
    steps = (of_head, 0, -BLOCK * of_column, of_size, of_column)
    product = _blocks(values) @ as_strided(table[:, :, start:], (heads, 1, tokens // BLOCK, size, n_columns), steps)
    *outer, of_token, of_column = product.strides
    shape, steps = (*product.shape[:-1], others), (*outer, of_token - of_column, of_column)
    return as_strided(product[..., BLOCK - 1 :], shape, steps)


def _blocks(values: np.ndarray) -> np.ndarray:
    """(heads, rows, tokens, head size) -> (heads, rows, blocks, BLOCK, head size)."""
    return values.reshape(*values.shape[:2], -1, BLOCK, values.shape[-1])


def _buckets(distances: np.ndarray, config: Mapping[str, Any]) -> np.ndarray:
    """Each distance's row in the table of embeddings. Up to half of the buckets have one each, further ones share by
    logarithm."""
    buckets = config["position_buckets"]
    middle = buckets // 2
    far = np.maximum(np.abs(distances), middle).astype(np.float32) / np.float32(middle)
    last = np.log(np.float32((config["max_position_embeddings"] - 1) / middle))
    shared = np.sign(distances) * (np.ceil(np.log(far) / last * np.float32(middle - 1)) + middle)
    bucket: np.ndarray = np.where(np.abs(distances) <= middle, distances, shared) + buckets
    return bucket.clip(0, 2 * buckets - 1).astype(np.int64)


def gelu(values: np.ndarray) -> np.ndarray:
    """x * Phi(x), in place. The error function is Abramowitz and Stegun's 7.1.26, off by at most 1.5e-7."""
    flat = values.reshape(-1)
    for start in range(0, len(flat), GELU_AT_ONCE):
        x = flat[start : start + GELU_AT_ONCE]
        size = np.abs(x)
        t = 1 / (1 + 0.3275911 * math.sqrt(0.5) * size)
        below = 0.5 * 1.061405429 * t
        for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            below += 0.5 * factor
            below *= t
        below *= np.exp(-0.5 * size * size)
        below *= size
        np.maximum(x, 0, out=x)
        x -= below
    return values
