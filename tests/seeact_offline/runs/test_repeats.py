"""Ways of asking beside each other."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.records import Prediction, Truth, Usage
from seeact_offline.runs.folder import Manifest, RunFolder
from seeact_offline.scoring.assembling import price_of_batching, shuffle_spread
from seeact_offline.scoring.protocols import PROTOCOLS

TRUTHS = [Truth("t", f"s{i}", op="CLICK", value="", positives=frozenset({"1"})) for i in range(4)]


def prediction(truth: Truth, element: str | None = "1") -> Prediction:
    return Prediction(*truth.key, element, "CLICK", "", ranked=("1", "2"))


def write_repeat(run: Path, number: int, elements: list[str]) -> None:
    with_predictions = RunFolder(run).repeat(number)
    with_predictions.claim(Manifest(identity={"shuffled": number}, settings={}))
    with with_predictions as out:
        for truth, element in zip(TRUTHS, elements, strict=False):
            out.append(prediction(truth, element), truth)


def spread_of(run: Path) -> Any:
    return shuffle_spread(RunFolder(run).finished_repeats(TRUTHS), TRUTHS, PROTOCOLS["seeact"])


def test_a_run_without_repeats_has_no_spread(tmp_path: Path) -> None:
    assert spread_of(tmp_path) is None


def test_the_spread_is_of_the_repeats_in_order_of_number(tmp_path: Path) -> None:
    shares = {1: ["1", "1", "1", "1"], 2: ["1", "1", "2", "2"], 10: ["1", "2", "2", "2"]}
    for number, elements in shares.items():
        write_repeat(tmp_path, number, elements)
    spread = spread_of(tmp_path)
    assert spread["n_orders"] == 3
    values = [1.0, 0.5, 0.25]
    assert spread["element_accuracy"] == {"values": values, "min": 0.25, "max": 1.0, "sd": statistics.stdev(values)}


def test_one_repeat_says_nothing_of_how_repeats_vary(tmp_path: Path) -> None:
    write_repeat(tmp_path, 1, ["1"] * 4)
    assert spread_of(tmp_path)["element_accuracy"]["sd"] is None


def test_a_repeat_that_lacks_a_step_is_not_counted(tmp_path: Path) -> None:
    write_repeat(tmp_path, 1, ["1"] * 4)
    write_repeat(tmp_path, 2, ["2"] * 3)
    spread = spread_of(tmp_path)
    assert (spread["n_orders"], spread["element_accuracy"]["values"]) == (1, [1.0])


COSTS = st.tuples(*[st.integers(1, 10_000)] * 4)


@given(st.lists(COSTS, min_size=1, max_size=8))
def test_prices_are_means_over_the_steps_that_shared(costs: list[tuple[int, int, int, int]]) -> None:
    names = ("calls_if_per_group", "estimated_prompt_tokens", "estimated_prompt_tokens_if_per_group")
    shared = [
        Prediction("t", str(i), None, "", "", usage=Usage(calls), notes={"shared_turn1": 1, **dict(zip(names, rest, strict=True))})
        for i, (calls, *rest) in enumerate(costs)
    ]  # fmt: skip
    price = price_of_batching([*shared, prediction(TRUTHS[0])])
    assert price is not None
    means = [statistics.fmean(column) for column in zip(*costs, strict=True)]
    assert price["n_steps"] == len(costs)
    assert list(price["shared-turn1"].values()) == pytest.approx([means[0], means[2]])
    assert list(price["per-group"].values()) == pytest.approx([means[1], means[3]])


def test_tokens_are_not_known_when_one_step_has_none() -> None:
    notes = {"calls_if_per_group": 6, "shared_turn1": 1}
    price = price_of_batching([Prediction("t", "s", None, "", "", usage=Usage(4), notes=notes)])
    assert price is not None
    assert price["shared-turn1"] == {"calls": 4, "estimated_prompt_tokens": None}
    assert price["per-group"] == {"calls": 6, "estimated_prompt_tokens": None}


def test_nothing_shared_has_no_price() -> None:
    assert price_of_batching([prediction(TRUTHS[0])]) is None
