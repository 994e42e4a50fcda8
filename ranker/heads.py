"""Linear layers that a model has beside its own while it learns, so that it can be asked for more than its answer."""

from __future__ import annotations

from typing import Any

MATCH = "match_head"
"""One logit a token: does it stand in the other text too?"""
HINTS = "hint_head"
"""Of each pair, what its lesson has hints of."""


def add_heads(model: Any, sizes: dict[str, int]) -> None:
    """A head of so many outputs each, kept with the model, so that checkpoints hold it."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    apart = []
    for name, size in sizes.items():
        setattr(model, name, torch.nn.Linear(model.config.hidden_size, size).to(model.device))
        apart += [f"{name}.weight", f"{name}.bias"]
    # heads are no part of the model's own forward pass, so what wraps it for several processes must not wait for them
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, apart)


def head(model: Any, name: str) -> Any:
    return getattr(getattr(model, "module", model), name)


def drop_heads(model: Any) -> None:
    for name in (MATCH, HINTS):
        if hasattr(model, name):
            delattr(model, name)
