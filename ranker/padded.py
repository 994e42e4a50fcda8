"""Any transformers classifier: rows padded to a common width, through the model's own forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

WIDTH_STEP = 16
"""Rows are padded to a multiple of this: it suits matrix units and vector loads, and leaves few enough widths to share."""


def batch_bounds(lengths: Sequence[int], batch_tokens: int) -> list[int]:
    """The places where batches begin, and the end: rows of one width, as many as the budget allows, at least one.

    A row's width is its own length rounded up, whatever its batch. In bfloat16 the width decides how sums are
    rounded (0.06 to 0.25 on a DeBERTa-base when each batch had the width of its longest row); the number of rows does not.
    """
    bounds = [0]
    for place, length in enumerate(lengths):
        width, rows = _round_up(length), place - bounds[-1]
        if rows and (width != _round_up(lengths[place - 1]) or (rows + 1) * width > batch_tokens):
            bounds.append(place)
    return [*bounds, len(lengths)] if lengths else []


class PaddedModel:
    """A transformers sequence classifier, in its own number format."""

    bounds = staticmethod(batch_bounds)

    def __init__(self, model: Any, pad_id: int, longest: int) -> None:
        """`longest`: tokens of the longest row that the model takes."""
        self._model, self._pad_id, self._longest = model, pad_id, longest

    def logits(self, rows: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None) -> Tensor:
        """Shape (rows, labels), in float32. The first row is the longest; `types`: of each token."""
        import torch

        # rows side by side, each padded on the right
        width = min(_round_up(len(rows[0])), self._longest)
        arrays = {"input_ids": _filled(rows, width, self._pad_id)}
        arrays["attention_mask"] = _filled([[1] * len(row) for row in rows], width, 0)
        if types is not None:
            arrays["token_type_ids"] = _filled(types, width, 0)
        inputs = {name: torch.from_numpy(array).to(self._model.device) for name, array in arrays.items()}
        return self._model(**inputs).logits.float()


def _filled(rows: Sequence[Sequence[int]], width: int, value: int) -> np.ndarray:
    filled = np.full((len(rows), width), value, dtype=np.int64)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = row
    return filled


def _round_up(length: int) -> int:
    return -(-length // WIDTH_STEP) * WIDTH_STEP
