"""A forward pass for training small DeBERTa-v2 classifiers on a CPU: transformers' sums, in some 40 % of its time.

- What goes through the layers is bfloat16 throughout; the weights themselves, and what is read off in the end, are float32.
  Autocast would turn every value to and fro, which costs more than the products of a narrow model.
- The distance between two tokens enters attention as a product that is shifted row by row, not gathered.
- A classifier reads the first token only, so the last layer works out nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ranker.packed import Linear, Norm

if TYPE_CHECKING:
    from torch import Tensor

MASKED = -30_000.0


class Passed(NamedTuple):
    """What one pass gives, in float32."""

    logits: Tensor
    """Shape (rows,)."""
    pooled: Tensor
    """Shape (rows, hidden size)."""
    tokens: Tensor
    """Of each token after all layers but the last: (rows, longest, hidden size)."""


def run(model: Any, part: dict[str, Tensor], bf16: bool) -> Passed:
    """`part`: the model's inputs. The quick way where it applies, transformers' own everywhere else (a GPU, several processes)."""
    import torch

    if bf16 and part["input_ids"].device.type == "cpu" and _is_plain(model):
        with torch.autocast("cpu", enabled=False):
            return TrainingPass(model, part["input_ids"].shape[1], torch.bfloat16)(part)
    found = model(**part, output_hidden_states=True)
    inner = getattr(model, "module", model)
    return Passed(
        found.logits[:, 0].float(), inner.pooler(found.hidden_states[-1]).float(), found.hidden_states[-2].float()
    )


def _is_plain(model: Any) -> bool:
    """Whether it is a model as `ranker.small` builds them."""
    if type(model).__name__ != "DebertaV2ForSequenceClassification":
        return False
    config = model.config
    return bool(
        config.relative_attention
        and config.pos_att_type == ["c2p"]
        and config.share_att_key
        and not config.position_biased_input
        and config.attention_probs_dropout_prob == config.pooler_dropout == 0
        and model.deberta.encoder.conv is None
    )


@dataclass(frozen=True)
class Layer:
    """One layer's weights in bfloat16."""

    heads: int
    project: Linear
    """Queries (scaled), keys and values, one after the other."""
    distances: Tensor
    """What queries meet of distances: (heads, head size, 2 * longest); column `longest - 1 - d` is for a query `d` after its key."""
    merge: Linear
    norm: Norm
    widen: Linear
    activation: Any
    narrow: Linear
    last_norm: Norm
    dropout: float

    def __call__(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Shape (rows, longest, hidden size) to the same. `mask`: (rows, longest), 0 or very low."""
        import torch

        rows, longest, size = hidden.shape
        q, k, v = self._by_head(self.project(hidden), 3)
        flat = q.reshape(self.heads, rows * longest, -1)
        scores = (_shifted(torch.bmm(flat, self.distances), rows, longest) + mask[None, :, None]).flatten(0, 1)
        keys = k.reshape(self.heads * rows, longest, -1).transpose(1, 2)
        scores = torch.baddbmm(scores, flat.reshape(self.heads * rows, longest, -1), keys)
        context = torch.bmm(scores.softmax(-1), v.reshape(self.heads * rows, longest, -1))
        context = context.view(self.heads, rows, longest, -1).permute(1, 2, 0, 3).reshape(rows, longest, size)
        return self._finish(hidden, context)

    def first(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The first token of each row alone, shape (rows, hidden size)."""
        rows, longest, size = hidden.shape
        q = self.project.part(0, size)(hidden[:, 0]).view(rows, self.heads, -1)
        k, v = self._by_head(self.project.part(size, None)(hidden), 2)
        q = q.transpose(0, 1)
        met = q @ self.distances[:, :, longest - 1 : 2 * longest - 1]
        scores = (k @ q[..., None])[..., 0] + met + mask
        context = (scores.softmax(-1)[:, :, None] @ v)[:, :, 0]
        return self._finish(hidden[:, 0], context.transpose(0, 1).reshape(rows, size))

    def _by_head(self, projected: Tensor, kinds: int) -> Tensor:
        rows, longest, _ = projected.shape
        return projected.view(rows, longest, kinds, self.heads, -1).permute(2, 3, 0, 1, 4)

    def _finish(self, hidden: Tensor, context: Tensor) -> Tensor:
        from torch.nn.functional import dropout

        hidden = self.norm(hidden + dropout(self.merge(context), self.dropout))
        return self.last_norm(hidden + dropout(self.narrow(self.activation(self.widen(hidden))), self.dropout))


class TrainingPass:
    """The model's weights as one pass needs them; made anew for each, as the weights change."""

    def __init__(self, model: Any, longest: int, dtype: Any) -> None:
        """`longest`: tokens of a row, padding counted; `dtype`: torch's, that everything in between is kept in."""
        self._model, self._dtype = model, dtype
        self._dropout = model.config.hidden_dropout_prob if model.training else 0.0
        table = _distance_table(model.deberta.encoder, longest)
        self._layers = [self._layer(layer, table) for layer in model.deberta.encoder.layer]

    def __call__(self, part: dict[str, Tensor]) -> Passed:
        mask = ((1 - part["attention_mask"]) * MASKED).to(self._dtype)
        hidden = self._embed(part)
        for layer in self._layers[:-1]:
            hidden = layer(hidden, mask)
        first = self._layers[-1].first(hidden, mask)
        pooled = self._model.pooler(first.float()[:, None])
        return Passed(self._model.classifier(pooled)[:, 0], pooled, hidden.float())

    def _embed(self, part: dict[str, Tensor]) -> Tensor:
        from torch.nn.functional import dropout, embedding

        own = self._model.deberta.embeddings
        words = embedding(part["input_ids"], own.word_embeddings.weight)
        kinds = embedding(part["token_type_ids"], own.token_type_embeddings.weight)
        return dropout(self._norm(own.LayerNorm)((words + kinds).to(self._dtype)), self._dropout)

    def _layer(self, layer: Any, table: Tensor) -> Layer:
        attention = layer.attention.self
        return Layer(
            heads=attention.num_attention_heads,
            project=self._projections(attention),
            distances=self._distances(attention, table),
            merge=self._linear(layer.attention.output.dense),
            norm=self._norm(layer.attention.output.LayerNorm),
            widen=self._linear(layer.intermediate.dense),
            activation=layer.intermediate.intermediate_act_fn,
            narrow=self._linear(layer.output.dense),
            last_norm=self._norm(layer.output.LayerNorm),
            dropout=self._dropout,
        )

    def _projections(self, attention: Any) -> Linear:
        import torch

        scale = 1 / math.sqrt(2 * attention.attention_head_size)
        # attention scores are sums of two kinds of products: content with content, and with distance
        query, key, value = attention.query_proj, attention.key_proj, attention.value_proj
        weight = torch.cat([query.weight * scale, key.weight, value.weight])
        return Linear(weight.to(self._dtype), torch.cat([query.bias * scale, key.bias, value.bias]).to(self._dtype))

    def _distances(self, attention: Any, table: Tensor) -> Tensor:
        met = attention.key_proj(table).to(self._dtype)
        return met.view(len(table), attention.num_attention_heads, -1).permute(1, 2, 0)

    def _linear(self, linear: Any) -> Linear:
        return Linear(linear.weight.to(self._dtype), linear.bias.to(self._dtype))

    def _norm(self, norm: Any) -> Norm:
        return Norm(norm.weight.to(self._dtype), norm.bias.to(self._dtype), norm.eps)


def _shifted(product: Tensor, rows: int, longest: int) -> Tensor:
    """(heads, rows * longest, 2 * longest) to (heads, rows, longest, longest): token i of a row from column longest - 1 - i on.

    With one column too many, every next line of `2 * longest - 1` values begins one column earlier.
    """
    flat = product.view(len(product), rows, 2 * longest * longest)
    lines = flat[..., longest - 1 : 2 * longest * longest - 1].view(len(product), rows, longest, 2 * longest - 1)
    return lines[..., :longest]


def _distance_table(encoder: Any, longest: int) -> Tensor:
    """The (normed) embedding of each distance, shape (2 * longest, hidden size), the last of no meaning."""
    import torch
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    attention = encoder.layer[0].attention.self
    distances = torch.arange(longest - 1, -longest - 1, -1)
    if attention.position_buckets > 0 and attention.max_relative_positions > 0:
        distances = make_log_bucket_position(distances, attention.position_buckets, attention.max_relative_positions)
    reach = attention.pos_ebd_size
    embedded: Tensor = encoder.get_rel_embedding()
    return embedded[torch.clamp(distances.long() + reach, 0, 2 * reach - 1)]
