"""The learning curve, by its pixels."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from PIL import Image

from seeact_offline.training.card import ASIDE, LOSS, learning_curve_png

pytest.importorskip("matplotlib")

Entry = Mapping[str, float]
SHARE: Entry = {"step": 5, "eval_loss": 2.0, "eval_letter_accuracy": 0.4}


def pixels(history: Sequence[Entry]) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(learning_curve_png(history, "title"))).convert("RGB"))


def has(picture: np.ndarray, colour: str) -> bool:
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return bool((picture == wanted).all(axis=-1).any())


@pytest.mark.parametrize(("entry", "colour"), [({"step": 5, "loss": 3.0}, LOSS), (SHARE, ASIDE)])
def test_a_single_point_is_seen(entry: Entry, colour: str) -> None:
    picture = pixels([entry])
    # below the legend
    assert has(picture[len(picture) // 4 :], colour)


@pytest.mark.parametrize(("history", "panels"), [([{"step": 5, "loss": 3.0}], 1), ([SHARE], 2), ([], 0)])
def test_losses_and_shares_have_a_panel_each_where_there_are_some(history: Sequence[Entry], panels: int) -> None:
    dark = (pixels(history) < 100).all(axis=-1).mean(axis=1) > 0.5
    # each has a line below it, of one row of pixels or two
    assert int((np.diff(dark.astype(int)) == 1).sum()) == panels
