"""The learning curve, by its pixels."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from PIL import Image

from seeact_offline.training.curve import HELD_OUT, LOSS, learning_curve_png

pytest.importorskip("matplotlib")

Entry = Mapping[str, float]
SHARE: Entry = {"step": 5, "eval_loss": 2.0, "eval_letter_accuracy": 0.4}


def pixels(history: Sequence[Entry]) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(learning_curve_png(history, "title"))).convert("RGB"))


def has(picture: np.ndarray, colour: str) -> bool:
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return bool((picture == wanted).all(axis=-1).any())


@pytest.mark.parametrize(("entry", "colour"), [({"step": 5, "loss": 3.0}, LOSS), (SHARE, HELD_OUT)])
def test_a_single_point_is_seen(entry: Entry, colour: str) -> None:
    picture = pixels([entry])
    # below the legend
    assert has(picture[len(picture) // 4 :], colour)


@pytest.mark.parametrize(("history", "is_there"), [([{"step": 5, "loss": 3.0}], False), ([SHARE], True), ([], False)])
def test_the_axis_in_percent_is_there_where_it_is_used(history: Sequence[Entry], is_there: bool) -> None:
    right = pixels(history)[:, -100:]
    assert bool((right < 200).any()) == is_there
