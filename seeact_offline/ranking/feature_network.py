"""A small network over `pair_features`, which errs elsewhere than trees do.

It learns which of a page's texts is right, by the cross-entropy over them. Numbers are brought to one scale and kept within
a few standard deviations; a number that stands for a name (a tag, a role) becomes one number for each name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranker.processes import share_out

SEEDS = (0, 1, 2)
EPOCHS = 25
PAGES = 8
"""Of a gradient step."""
WIDTHS = (64, 32)
DROPOUT = 0.2
RATE = 2e-3
"""Falls linearly to 0."""
DECAY = 0.05
BOUND = 4.0
"""Standard deviations that a number may be away from the mean."""
LEAST_SPREAD = 0.05


class FeatureNetwork:
    """The mean of networks that start from different seeds."""

    def __init__(self, pages: Sequence[np.ndarray], right: Sequence[np.ndarray], naming: Sequence[int]) -> None:
        """`pages`: (texts, features) of each; `right`: (texts,) of bool, some of them true.

        `naming`: the features that are the place of a name in a list, -1 for none of them.
        """
        self._naming = list(naming)
        features = np.concatenate(pages)
        self._names = [int(features[:, column].max()) + 1 for column in self._naming]
        wide = self._wide(features)
        self._mean, self._spread = wide.mean(axis=0), wide.std(axis=0) + LEAST_SPREAD
        inputs = [self._scaled(page) for page in pages]
        self._networks = share_out(lambda seed: _fitted(inputs, right, seed), SEEDS)

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Shape `(texts,)`, on no scale of its own."""
        import torch

        inputs = self._scaled(features)
        with torch.inference_mode():
            found = [network(inputs)[:, 0].numpy() for network in self._networks]
        return np.asarray(np.mean(found, axis=0))

    def _scaled(self, features: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(np.clip((self._wide(features) - self._mean) / self._spread, -BOUND, BOUND))

    def _wide(self, features: np.ndarray) -> np.ndarray:
        named = [
            np.eye(count + 1, dtype=np.float32)[np.clip(features[:, column].astype(int), -1, count - 1) + 1]
            for column, count in zip(self._naming, self._names, strict=True)
        ]
        return np.hstack([np.delete(features, self._naming, axis=1), *named])


def _fitted(inputs: Sequence[Any], right: Sequence[np.ndarray], seed: int) -> Any:
    """In torch's order of sums for one thread, whatever the number of processors, and without a trace in its random numbers."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return _fit(_network(inputs[0].shape[1]), inputs, [torch.from_numpy(each) for each in right])
    finally:
        torch.set_num_threads(threads)


def _network(width: int) -> Any:
    from torch import nn

    parts: list[nn.Module] = []
    for inner in WIDTHS:
        parts += [nn.Linear(width, inner), nn.GELU(), nn.Dropout(DROPOUT)]
        width = inner
    return nn.Sequential(*parts, nn.Linear(width, 1))


def _fit(network: Any, inputs: Sequence[Any], right: Sequence[Any]) -> Any:
    import torch

    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    batches = [batch for _ in range(EPOCHS) for batch in torch.randperm(len(inputs)).split(PAGES)]
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, len(batches))
    network.train()
    for batch in batches:
        pages = [inputs[place] for place in batch]
        scores = network(torch.cat(pages))[:, 0].split([len(page) for page in pages])
        losses = [
            -each.log_softmax(dim=0)[right[place]].mean() for each, place in zip(scores, batch.tolist(), strict=True)
        ]
        torch.stack(losses).mean().backward()
        optimizer.step()
        falling.step()
        optimizer.zero_grad()
    return network.eval()
