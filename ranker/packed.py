"""DeBERTa-v2's forward pass for rows of any length side by side: the same sums as transformers' model, without the
waste.

- Rows are packed end to end, so no token is padding and nothing is masked; only attention works row by row.
- The position of a token relative to another enters attention only through their distance. The projected table of
  distances is laid out once per layer; a row's scores are then a slanted view of one product, while transformers
  projects the table again for every batch, copies it for every row and gathers from it element by element.
- A classifier only reads the first token, so the last layer computes nothing else of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class Span(NamedTuple):
    """Neighbouring rows of one width among the packed tokens."""

    start: int
    """Position of their first token."""
    rows: int
    width: int

    @property
    def stop(self) -> int:
        return self.start + self.rows * self.width


@dataclass(frozen=True)
class Linear:
    """Weights in the number format of the products."""

    weight: Tensor
    bias: Tensor

    def __call__(self, values: Tensor) -> Tensor:
        from torch.nn.functional import linear

        return linear(values.to(self.weight.dtype), self.weight, self.bias)

    def part(self, start: int, stop: int | None) -> Linear:
        """The outputs from `start` to `stop`."""
        return Linear(self.weight[start:stop], self.bias[start:stop])


@dataclass(frozen=True)
class Distances:
    """Token distances in one layer: tables of shape (heads, 2 * longest row - 1, head size)."""

    keys: Tensor | None
    """Multiplied by queries. Column `longest - 1 - d` is for a query that stands `d` tokens after its key."""
    queries: Tensor | None
    """Multiplied by keys, and scaled. Column `longest - 1 + d` is for a query that stands `d` tokens after its key."""

    def bias(self, q: Tensor, k: Tensor, span: Span) -> Tensor | None:
        """The part of each attention score that comes from distance: (heads, rows, width, width), query before key.
        `q`, `k`: see `_split`."""
        parts = []
        if self.keys is not None:
            parts.append(_slanted(q, self.keys, span))
        if self.queries is not None:
            parts.append(_slanted(k, self.queries, span).transpose(2, 3))
        # a slanted view overlaps itself, and the result is written to
        return parts[0] + parts[1] if len(parts) == 2 else parts[0].contiguous() if parts else None

    def first_bias(self, q: Tensor, k: Tensor, span: Span) -> Tensor | float:
        """The same for the first query of each row: (heads, rows, width). `q`: (heads, rows, head size)."""
        bias: Tensor | float = 0.0
        if self.keys is not None:
            middle = self.keys.shape[1] // 2
            bias = bias + q @ self.keys[:, middle : middle + span.width].transpose(1, 2)
        if self.queries is not None:
            middle = self.queries.shape[1] // 2
            table = self.queries[:, middle - span.width + 1 : middle + 1].flip(1)
            bias = bias + (k.view(*q.shape[:2], span.width, -1) * table[:, None]).sum(-1)
        return bias


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer of the encoder: from packed tokens in float32, shape (tokens, hidden size), to the same shape."""

    heads: int
    distances: Distances
    project: Linear
    """Queries (scaled), keys and values, one after another."""
    merge: Linear
    norm: Any
    """Torch's layer norm, in float32; `last_norm` too."""
    widen: Linear
    activation: Any
    narrow: Linear
    last_norm: Any

    def __call__(self, hidden: Tensor, spans: Sequence[Span]) -> Tensor:
        import torch

        projected = self.project(hidden)
        context = torch.cat([self._attend(projected[span.start : span.stop], span) for span in spans])
        return self._finish(hidden, context)

    def first(self, hidden: Tensor, spans: Sequence[Span]) -> Tensor:
        """Computes the first token of each row alone, shape (rows, hidden size)."""
        import torch

        size = self.project.weight.shape[0] // 3
        starts = [place for span in spans for place in range(span.start, span.stop, span.width)]
        first = hidden[starts]
        projected = self.project.part(size, None)(hidden)
        queries = self.project.part(0, size)(first).split([span.rows for span in spans])
        context = [
            self._attend_first(q, projected[span.start : span.stop], span)
            for q, span in zip(queries, spans, strict=True)
        ]
        return self._finish(first, torch.cat(context))

    def _finish(self, hidden: Tensor, context: Tensor) -> Tensor:
        """`context`: the output of attention, of the same shape."""
        hidden = self.norm(hidden + self.merge(context))
        finished: Tensor = self.last_norm(hidden + self.narrow(self.activation(self.widen(hidden))))
        return finished

    def _attend(self, projected: Tensor, span: Span) -> Tensor:
        import torch

        q, k, v = self._split(projected, span)
        bias = self.distances.bias(q, k, span)
        q, k, v = (values.view(-1, span.width, values.shape[-1]) for values in (q, k, v))
        keys = k.transpose(1, 2)
        scores = torch.bmm(q, keys) if bias is None else bias.reshape(len(q), span.width, -1).baddbmm_(q, keys)
        context = torch.bmm(scores.softmax(-1), v).view(self.heads, span.rows, span.width, -1)
        return context.permute(1, 2, 0, 3).reshape(span.rows * span.width, -1)

    def _attend_first(self, queries: Tensor, projected: Tensor, span: Span) -> Tensor:
        k, v = self._split(projected, span)
        q = queries.view(span.rows, self.heads, -1).transpose(0, 1).contiguous()
        keys, values = (part.view(*q.shape[:2], span.width, -1) for part in (k, v))
        scores = (keys @ q[..., None])[..., 0] + self.distances.first_bias(q, k, span)
        context = (scores.softmax(-1)[:, :, None] @ values)[:, :, 0]
        return context.transpose(0, 1).reshape(span.rows, -1)

    def _split(self, projected: Tensor, span: Span) -> list[Tensor]:
        """A span's two or three kinds of values by head: each (heads, rows * width, head size)."""
        size = self.project.weight.shape[0] // 3
        kinds = projected.shape[1] // size
        by_head = projected.view(span.rows * span.width, kinds, self.heads, size // self.heads).permute(1, 2, 0, 3)
        return list(by_head.contiguous())


def token_bounds(lengths: Sequence[int], batch_tokens: int) -> list[int]:
    """The places where batches of packed rows begin, and the end: as many rows as the budget allows, at least one."""
    bounds, filled = [0], 0
    for place, length in enumerate(lengths):
        if filled and filled + length > batch_tokens:
            bounds.append(place)
            filled = 0
        filled += length
    return [*bounds, len(lengths)] if lengths else []


class PackedDeberta:
    """A `DebertaV2ForSequenceClassification` that reads packed rows; `can_pack` says for which models it works.

    Products are made in `dtype`; the sums from layer to layer and their norms stay in float32.
    """

    bounds = staticmethod(token_bounds)

    def __init__(self, model: Any, dtype: Any, longest: int) -> None:
        """`dtype`: torch's; `longest`: tokens of the longest row to come."""
        encoder = model.deberta.encoder
        table = _distance_table(encoder, longest)
        self._model = model
        self._layers = [_pack_layer(layer, table, dtype) for layer in encoder.layer]

    def logits(self, rows: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None) -> Tensor:
        """Shape (rows, labels), in float32. Neighbouring rows of one length cost less. `types`: of each token."""
        spans = find_spans([len(row) for row in rows])
        hidden = self._embed(rows, types)
        for layer in self._layers[:-1]:
            hidden = layer(hidden, spans)
        first = self._layers[-1].first(hidden, spans)
        pooled: Tensor = self._model.pooler(first.to(self._model.dtype)[:, None])
        return self._model.classifier(pooled).float()

    def _embed(self, rows: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None) -> Tensor:
        import torch

        device = self._model.device
        ids = torch.tensor([[token for row in rows for token in row]], device=device)
        places = torch.tensor([[place for row in rows for place in range(len(row))]], device=device)
        kinds = None if types is None else torch.tensor([[kind for row in types for kind in row]], device=device)
        embedded = self._model.deberta.embeddings(input_ids=ids, position_ids=places, token_type_ids=kinds)
        return embedded[0].float()


def can_pack(model: Any) -> bool:
    """True for a DeBERTa-v2 (or v3) classifier without the convolution that only the largest v2 models have."""
    named = type(model).__name__ == "DebertaV2ForSequenceClassification"
    return named and model.deberta.encoder.conv is None and len(model.deberta.encoder.layer) > 0


def find_spans(lengths: Sequence[int]) -> list[Span]:
    spans: list[Span] = []
    for width, rows in groupby(lengths):
        spans.append(Span(spans[-1].stop if spans else 0, len(list(rows)), width))
    return spans


def _slanted(values: Tensor, table: Tensor, span: Span) -> Tensor:
    """Products of each token with the columns of the table that its row can meet: (heads, rows, width, width).

    Token i of a row meets columns `longest - 1 - i` to `longest - 1 - i + width - 1`: the product holds them all, and a
    view that steps back one column per token picks them out.
    """
    import torch

    width, middle = span.width, table.shape[1] // 2
    columns = 2 * width - 1
    product = torch.bmm(values, table[:, middle - width + 1 : middle + width].transpose(1, 2)).contiguous()
    steps = (len(values[0]) * columns, width * columns, columns - 1, 1)
    return product.as_strided((len(values), span.rows, width, width), steps, width - 1)


def _distance_table(encoder: Any, longest: int) -> Tensor | None:
    """The (normed) embedding of each distance in float32; row `longest - 1 - d` is for a query `d` tokens after its
    key."""
    import torch
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    if not encoder.relative_attention:
        return None
    attention = encoder.layer[0].attention.self
    distances = torch.arange(longest - 1, -longest, -1)
    if attention.position_buckets > 0 and attention.max_relative_positions > 0:
        distances = make_log_bucket_position(distances, attention.position_buckets, attention.max_relative_positions)
    reach = attention.pos_ebd_size
    rows = torch.clamp(distances.long() + reach, 0, 2 * reach - 1)
    embedded: Tensor = encoder.get_rel_embedding()
    return embedded[rows.to(embedded.device)].float()


def _pack_layer(layer: Any, table: Tensor | None, dtype: Any) -> Layer:
    """Products in `dtype`."""
    return Layer(
        heads=layer.attention.self.num_attention_heads,
        distances=_pack_distances(layer.attention.self, table, dtype),
        project=_pack_projections(layer.attention.self, dtype),
        merge=_pack_linear(layer.attention.output.dense, dtype),
        norm=deepcopy(layer.attention.output.LayerNorm).float(),
        widen=_pack_linear(layer.intermediate.dense, dtype),
        activation=layer.intermediate.intermediate_act_fn,
        narrow=_pack_linear(layer.output.dense, dtype),
        last_norm=deepcopy(layer.output.LayerNorm).float(),
    )


def _scale(attention: Any) -> float:
    """Scale of attention scores: each is a sum of one product per kind, of which content with content is always one."""
    kinds = 1 + ("c2p" in attention.pos_att_type) + ("p2c" in attention.pos_att_type)
    return 1 / math.sqrt(kinds * attention.attention_head_size)


def _pack_projections(attention: Any, dtype: Any) -> Linear:
    import torch

    scale = _scale(attention)
    parts = (attention.query_proj, attention.key_proj, attention.value_proj)
    weights, biases = [part.weight.float() for part in parts], [part.bias.float() for part in parts]
    weights[0], biases[0] = weights[0] * scale, biases[0] * scale
    return Linear(torch.cat(weights).to(dtype), torch.cat(biases).to(dtype))


def _pack_distances(attention: Any, table: Tensor | None, dtype: Any) -> Distances:
    keys = queries = None
    shared = attention.share_att_key
    if table is not None and "c2p" in attention.pos_att_type:
        keys = _by_head(attention.key_proj if shared else attention.pos_key_proj, table, attention).to(dtype)
    if table is not None and "p2c" in attention.pos_att_type:
        projection = attention.query_proj if shared else attention.pos_query_proj
        queries = (_by_head(projection, table.flip(0), attention) * _scale(attention)).to(dtype)
    return Distances(keys, queries)


def _by_head(projection: Any, table: Tensor, attention: Any) -> Tensor:
    import torch

    projected = _pack_linear(projection, torch.float32)(table)
    return projected.view(len(table), attention.num_attention_heads, -1).transpose(0, 1).contiguous()


def _pack_linear(linear: Any, dtype: Any) -> Linear:
    return Linear(linear.weight.to(dtype), linear.bias.to(dtype))
