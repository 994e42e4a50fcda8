"""The mean of a model's weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from ranker.averaging import WeightAverage
from ranker.errors import RankerError
from ranker.training import train
from tests.ranker.test_training import QUICK, TINY, groups


def layer(*weights: float) -> torch.nn.Linear:
    made = torch.nn.Linear(len(weights), 1, bias=False)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([weights]))
    return made


def test_mean_is_that_of_all_steps() -> None:
    average, model = WeightAverage(), layer(0.0, 0.0)
    for weights in ((1.0, 2.0), (3.0, 4.0), (8.0, 0.0)):
        average.add(layer(*weights))
    average.into(model)
    assert model.weight.tolist() == [[4.0, 2.0]]


def test_lent_weights_come_back() -> None:
    average, model = WeightAverage(), layer(5.0)
    average.add(layer(1.0))
    with average.lent_to(model):
        assert model.weight.item() == 1.0
    assert model.weight.item() == 5.0


def test_without_a_step_nothing_changes() -> None:
    model = layer(5.0)
    WeightAverage().into(model)
    assert model.weight.item() == 5.0


def test_a_saved_mean_goes_on(tmp_path: Path) -> None:
    begun, resumed, model = WeightAverage(), WeightAverage(), layer(0.0)
    begun.add(layer(1.0))
    begun.add(layer(2.0))
    begun.save(tmp_path)
    resumed.load(tmp_path)
    resumed.add(layer(6.0))
    resumed.into(model)
    assert (resumed.n, model.weight.item()) == (3, 3.0)


def test_a_resumed_training_ends_with_the_weights_of_one_in_one_go(tmp_path: Path) -> None:
    import shutil

    settings = dataclasses.replace(QUICK, epochs=3, average_after=0.3)
    train(groups(), tmp_path / "whole", settings, base=TINY)
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    (tmp_path / "cut" / "model.safetensors").unlink()
    newest = max((tmp_path / "cut" / "checkpoints").glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    shutil.rmtree(newest)

    train(groups(), tmp_path / "cut", settings, base=TINY, resume=True)

    whole, cut = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut"))
    assert whole == cut


def test_averaging_after_the_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RankerError, match=r"^average_after: expected a share of at least 0 and under 1, got 1.0$"):
        train(groups(), tmp_path, dataclasses.replace(QUICK, average_after=1.0), base=TINY)
