"""A network over features: finds what makes a text right, the same in every run."""

from __future__ import annotations

import numpy as np
import pytest

from seeact_offline.ranking.feature_network import FeatureNetwork

PLACE_OF_RIGHT_NAME = 2


def pages(n: int, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The right text is the highest one of those called 2; a third feature is the same everywhere."""
    chance = np.random.default_rng(seed)
    found, right = [], []
    for _ in range(n):
        names, heights = chance.integers(-1, 5, 30), chance.random(30)
        names[0] = PLACE_OF_RIGHT_NAME
        found.append(np.stack([names, heights, np.ones(30)], axis=1).astype(np.float32))
        best = max(heights[names == PLACE_OF_RIGHT_NAME])
        right.append((names == PLACE_OF_RIGHT_NAME) & (heights == best))
    return found, right


@pytest.fixture(scope="module")
def network() -> FeatureNetwork:
    return FeatureNetwork(*pages(120), naming=[0])


def test_it_learns_names_and_numbers(network: FeatureNetwork) -> None:
    seen = [
        network.scores(page)[is_right][0] >= network.scores(page).max()
        for page, is_right in zip(*pages(40, 1), strict=True)
    ]
    assert np.mean(seen) > 0.8


def test_a_name_never_seen_is_no_error(network: FeatureNetwork) -> None:
    assert np.isfinite(network.scores(np.array([[99, 0.5, 1]], dtype=np.float32))).all()


def test_it_is_the_same_again() -> None:
    page = pages(1, 2)[0][0]
    one, two = (FeatureNetwork(*pages(16), naming=[0]).scores(page) for _ in range(2))
    assert np.array_equal(one, two)


def test_torch_is_left_as_it_was() -> None:
    import torch

    torch.manual_seed(5)
    torch.set_num_threads(2)
    before = torch.random.get_rng_state()
    FeatureNetwork(*pages(8), naming=[0])
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.get_num_threads() == 2
