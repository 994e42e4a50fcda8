"""A cross-encoder: scores pairs with a sequence classifier that reads both texts at once.

Flatten, predict once, split back: the pairs of all queries become rows of token ids, equal rows once; the rows go
through the model longest first, as many at a time as a budget of tokens allows; every text gets the score of its row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ranker.checkpoint import MIXED, TRIAL, Checkpoint, PairOrder, computes_bfloat16, open_checkpoint, room_for_text
from ranker.errors import RankerError
from ranker.exact_top_k import rescore_near_cut
from ranker.packed import PackedDeberta, can_pack

if TYPE_CHECKING:
    from torch import Tensor

BACKENDS = ("auto", "packed", "transformers")
"""Names of the forward passes: auto is packed for DeBERTa-v2 and v3 on a CPU, else transformers'."""

BATCH_TOKENS = {"cpu": 2048}
"""Tokens per batch, by kind of device. A CPU gains at most 3 % from four times as many as 1,000, and needs the
memory."""
OTHER_BATCH_TOKENS = 8192
WIDTH_STEP = 16
"""Rows are padded to a multiple of this: it suits matrix units and vector loads, and leaves few enough widths to
share."""


class Row(NamedTuple):
    """One pair as the model reads it."""

    ids: tuple[int, ...]
    """Token ids, including special tokens."""
    split: int
    """Tokens of the first text, without special tokens."""


@dataclass(frozen=True)
class PairTemplate:
    """Joins two texts as a tokenizer does: special tokens around and between them, and a type for each token."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[tuple[int, ...], ...]
    """Token types of before, (one token of) the first text, between, (one token of) the second text, after."""

    @property
    def n_special(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)

    def join(self, first: Sequence[int], second: Sequence[int]) -> Row:
        return Row((*self.before, *first, *self.between, *second, *self.after), len(first))

    def token_types(self, row: Row) -> Sequence[int]:
        before, first, between, second, after = self.types
        n_second = len(row.ids) - row.split - self.n_special
        return [*before, *first * row.split, *between, *second * n_second, *after]


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs as `encode` hands them to `predict`."""

    rows: tuple[Row, ...]
    """Distinct rows, longest first."""
    places: tuple[np.ndarray, ...]
    """Indices in `rows` of the texts of each query."""


class Forward(Protocol):
    """A forward pass, and how it wants its batches."""

    def logits(self, rows: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None) -> Tensor: ...

    def bounds(self, lengths: Sequence[int], batch_tokens: int) -> list[int]: ...


def batch_bounds(lengths: Sequence[int], batch_tokens: int) -> list[int]:
    """The places where batches begin, and the end: rows of one width, as many as the budget allows, at least one.

    A row's width is its own length rounded up, whatever its batch. In bfloat16 the width decides how sums are rounded
    (0.06 to 0.25 on a DeBERTa-base when each batch had the width of its longest row); the number of rows does not.
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


class CrossEncoderRanker:
    """Any sequence-classification checkpoint, from a folder (transformers or sentence-transformers) or the hub.

    A score is the logit of a model with one label; with several labels it is the log-odds of the positive one.
    Scores do not depend on the order of the texts, and on `batch_tokens` and the rest of the call only by rounding.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | None = None,
        dtype: str = "auto",
        backend: str = "auto",
        batch_tokens: int | None = None,
        pair_order: PairOrder | None = None,
        exact_top: int = 50,
    ) -> None:
        """`dtype`: auto (bfloat16 on CUDA, float32 on CPU), float32, bfloat16, or mixed: bfloat16, and float32 for the
        texts that may be on either side of a query's cut after its best `exact_top`. These are nearly always the best
        by float32 too (docs/log.md has the rate). With mixed, a text's score is rough or exact depending on the query's
        other texts. Where the device emulates bfloat16, mixed is float32.

        `backend`: see BACKENDS. `batch_tokens` counts padding; None: as suits the device. `pair_order` None: as in the
        checkpoint's config, else query-text. Raises RankerError if pairs cannot be scored.
        """
        for name, number in (("batch_tokens", batch_tokens), ("exact_top", exact_top)):
            if number is not None and number < 1:
                raise RankerError(name, "a positive number", str(number))
        self._checkpoint = open_checkpoint(model, device, dtype, pair_order)
        self.name, self.digest = self._checkpoint.name, self._checkpoint.digest
        """The folder or hub id, as given; SHA-256 of the weights, config and tokenizer files."""
        self.pair_order, self.device = self._checkpoint.pair_order, str(self._checkpoint.model.device)
        self._template = _find_template(self._checkpoint.tokenizer, self._checkpoint.model.config, self.name)
        self._reads_types = (
            "token_type_ids" in signature(self._checkpoint.model.forward).parameters
            and "token_type_ids" in self._checkpoint.tokenizer.model_input_names
            and _n_types(self._checkpoint.model.config) > 1
        )
        is_mixed = dtype == MIXED and computes_bfloat16(self.device)
        self._exact_top = exact_top if is_mixed else None
        self._exact = _forward(self._checkpoint, backend)
        self._rough = _forward(self._checkpoint, backend, "bfloat16") if self._exact_top else self._exact
        self._batch_tokens = batch_tokens or BATCH_TOKENS.get(self.device.split(":")[0], OTHER_BATCH_TOKENS)
        self.truncated = 0
        """Texts cut so far to the room that their query leaves."""
        self.rescored = 0
        """Rows scored a second time so far, with dtype mixed."""

    @property
    def dtype(self) -> str:
        """The model's number format, in torch's spelling; mixed-50 if the best 50 are nearly always those of
        float32."""
        if self._exact_top:
            return f"{MIXED}-{self._exact_top}"
        return str(self._checkpoint.model.dtype).removeprefix("torch.")

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Scores of the texts for one query, float32 of shape `(len(texts),)`."""
        return self.score_many([(query, texts)])[0]

    def score_many(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> list[np.ndarray]:
        """Scores of each query's texts. All queries share batches, so many small ones cost no more than one large
        one."""
        return self.predict(self.encode(pairs))

    def encode(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> EncodedPairs:
        """The pairs as rows, without the model: may run in a thread while `predict` works on earlier rows."""
        read = self._tokens({text for query, texts in pairs if texts for text in (query, *texts)})
        rows_by_query = [self._rows_of(query, texts, read) for query, texts in pairs]
        # Sorted by content, not by order of arrival: the same texts make the same batches and so the same scores, to the bit.
        rows = sorted({row for rows in rows_by_query for row in rows}, key=lambda row: (-len(row.ids), row))
        index = {row: place for place, row in enumerate(rows)}
        places = tuple(np.array([index[row] for row in rows], dtype=np.int64) for rows in rows_by_query)
        return EncodedPairs(tuple(rows), places)

    def predict(self, encoded: EncodedPairs) -> list[np.ndarray]:
        """Scores of encoded pairs. Raises RankerError if one is not finite."""
        scores = self._score_rows(self._rough, encoded.rows)
        by_query = [scores[places] for places in encoded.places]
        self._refuse_non_finite(by_query)
        if self._exact_top is None:
            return by_query

        def score_exactly(places: list[int]) -> np.ndarray:
            self.rescored += len(places)
            return self._score_rows(self._exact, [encoded.rows[place] for place in places])

        by_query = rescore_near_cut(scores, encoded.places, self._exact_top, score_exactly)
        self._refuse_non_finite(by_query)
        return by_query

    def _score_rows(self, forward: Forward, rows: Sequence[Row]) -> np.ndarray:
        """`rows`: longest first."""
        import torch

        scores = np.zeros(len(rows), dtype=np.float32)
        for start, stop in pairwise(forward.bounds([len(row.ids) for row in rows], self._batch_tokens)):
            batch = rows[start:stop]
            types = [self._template.token_types(row) for row in batch] if self._reads_types else None
            with torch.inference_mode():
                logits = forward.logits([row.ids for row in batch], types)
                scores[start:stop] = _log_odds(logits, self._checkpoint.positive).cpu().numpy()
        return scores

    def _tokens(self, texts: set[str]) -> dict[str, list[int]]:
        if not texts:
            return {}
        ordered = sorted(texts)
        encoded = self._checkpoint.tokenizer(
            ordered, add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False, verbose=False
        )
        return dict(zip(ordered, encoded["input_ids"], strict=True))

    def _rows_of(self, query: str, texts: Sequence[str], read: Mapping[str, list[int]]) -> list[Row]:
        if not texts:
            return []
        asked = read[query]
        room = room_for_text(query, len(asked), self._checkpoint.max_tokens - self._template.n_special)
        self.truncated += sum(len(read[text]) > room for text in texts)
        cut = slice(-room, None) if self._checkpoint.tokenizer.truncation_side == "left" else slice(room)
        rows = {}
        for text in set(texts):
            kept = read[text][cut]
            first, second = (asked, kept) if self.pair_order == "query-text" else (kept, asked)
            rows[text] = self._template.join(first, second)
        return [rows[text] for text in texts]

    def _refuse_non_finite(self, scores: Sequence[np.ndarray]) -> None:
        bad = sum(int((~np.isfinite(values)).sum()) for values in scores)
        if bad:
            raise RankerError(
                "model",
                f"finite scores from {self.name} in {self.dtype}",
                f"{bad} of {sum(map(len, scores))} that are not: try dtype float32 or bfloat16, and if it stays so the "
                "weights are broken",
            )


def _forward(checkpoint: Checkpoint, backend: str, dtype: str | None = None) -> Forward:
    """The forward pass of the checkpoint's model, in another number format if one is named."""
    import torch

    if backend not in BACKENDS:
        raise RankerError("backend", f"one of {', '.join(BACKENDS)}", repr(backend))
    model, packable = checkpoint.model, can_pack(checkpoint.model)
    if backend == "packed" and not packable:
        raise RankerError(
            "backend",
            f"transformers for {checkpoint.name}, which is {type(model).__name__}",
            "packed, which reads DeBERTa-v2 and v3 alone",
        )
    number_format = model.dtype if dtype is None else getattr(torch, dtype)
    if packable and (backend == "packed" or (backend == "auto" and model.device.type == "cpu")):
        with torch.inference_mode():
            return PackedDeberta(model, number_format, checkpoint.max_tokens)
    own = model if dtype is None else deepcopy(model).to(number_format)
    return PaddedModel(own, checkpoint.tokenizer.pad_token_id, checkpoint.max_tokens)


def _find_template(tokenizer: Any, config: Any, name: str) -> PairTemplate:
    """Finds how the tokenizer joins two texts. Raises RankerError if it does not, or puts nothing between them."""
    first, second = (list(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TRIAL)
    pair = tokenizer(*TRIAL, return_token_type_ids=True)
    ids, types = list(pair["input_ids"]), list(pair["token_type_ids"])
    start = _find(ids, first, 0)
    middle = _find(ids, second, start + len(first)) if first and second and start >= 0 else -1
    if middle < 0:
        got = f"that of {name}, which drops or mixes them"
        raise RankerError("model", "a tokenizer that encodes pairs of texts", got)
    starts = (0, start, start + len(first), middle, middle + len(second), len(ids))
    spans = [tuple(types[begin:end]) for begin, end in pairwise(starts)]
    template = PairTemplate(
        before=tuple(ids[:start]),
        between=tuple(ids[starts[2] : middle]),
        after=tuple(ids[starts[4] :]),
        types=(spans[0], spans[1][:1], spans[2], spans[3][:1], spans[4]),
    )
    if not template.between and (spans[1][:1] == spans[3][:1] or _n_types(config) < 2):
        got = f"that of {name}, which joins them"
        raise RankerError("model", "a tokenizer that keeps the texts of a pair apart", got)
    return template


def _find(ids: list[int], part: list[int], start: int) -> int:
    """The first place from `start` where `part` begins in `ids`; -1 if there is none."""
    places = range(start, len(ids) - len(part) + 1)
    return next((place for place in places if ids[place : place + len(part)] == part), -1)


def _n_types(config: Any) -> int:
    """Token types that the model tells apart; for a model that does not say, those of its tokenizer."""
    return int(getattr(config, "type_vocab_size", 2))


def _log_odds(logits: Any, positive: int) -> Any:
    """The only logit, or log p/(1-p) of the positive label under softmax; shape (rows,)."""
    import torch

    if logits.shape[1] == 1:
        return logits[:, 0]
    others = [column for column in range(logits.shape[1]) if column != positive]
    return logits[:, positive] - torch.logsumexp(logits[:, others], dim=1)
