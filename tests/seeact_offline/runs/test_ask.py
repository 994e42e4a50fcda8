"""What of a step does not depend on the model that is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seeact_offline.dataset import load_steps
from seeact_offline.grounding import Grounding
from seeact_offline.grounding.oracle import OracleGrounding, PersonAnswer
from seeact_offline.grounding.strategies import STRATEGIES, open_pack
from seeact_offline.models.builtin import open_builtin
from seeact_offline.ranking import LiveScores
from seeact_offline.ranking.rankers import TextRanker
from seeact_offline.records import CallError, Completion, Model, Request, RowError, Step, Summary, Usage
from seeact_offline.runs.ask import StepAnswer, ask_step
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.strategy_opening import open_strategy
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.protocols import PROTOCOLS
from seeact_offline.scoring.step_scores import summarise
from tests.pages import synthetic_rows, write_parquet

K = 12
"""Of the 14 elements of a page: some targets are not ranked under it, others alone in a last group."""
FATES: dict[str, str | Exception] = {
    "picks": "ELEMENT: A\nELEMENT TYPE: LINK\nELEMENT TEXT: Map\nACTION: CLICK\nVALUE: None",
    "picks none": "Answer: A.\nELEMENT: NA\nACTION: TYPE\nVALUE: Oslo",
    "points": "<point>170 140</point>\nACTION: CLICK",
    "rambles": "?",
    "raises": RuntimeError("out of luck"),
    "finds nothing": KeyError("choices"),
    "times out": CallError("timeout", "no reply", Usage(calls=1)),
    "refuses": CallError("refused", "no"),
    "cannot see": RowError("bad_screenshot", "cut short"),
}


class Fated(Model):
    """Meets one of FATES at each call, drawn at random."""

    def __init__(self, fates: Sequence[str], seed: int) -> None:
        self._fates, self._random = fates, Random(seed)

    async def complete(self, request: Request) -> Completion:
        fate = FATES[self._random.choice(self._fates)]
        if isinstance(fate, Exception):
            raise fate
        return Completion(fate, Usage(calls=1))


class ByLength:
    """A ranker of little use."""

    name = "by-length"

    def score(self, query: str, texts: Sequence[str]) -> Any:
        import numpy as np

        return np.array([Random(text).random() for text in texts])


@cache
def steps() -> tuple[Step, ...]:
    with TemporaryDirectory() as folder:
        write_parquet(synthetic_rows(3, 2, 14, seed=6), Path(folder) / "test_task.parquet")
        return tuple(load_steps(folder, "cross_task"))


@cache
def grounding(name: str) -> Grounding:
    if name == "oracle":
        answers = {step.key: PersonAnswer(None, "CLICK") for step in steps()[1:]}
        return OracleGrounding(open_pack("seeact", "oracle"), None, answers)
    grouped = {"group_size": 11} if STRATEGIES[name].is_grouped else {}
    return open_strategy(EvalConfig.of(grounding=name, **grouped)).grounding


def summary(name: str, model: Model) -> tuple[list[StepAnswer], Summary]:
    async def ask_all() -> list[StepAnswer]:
        ours = grounding(name)
        scores = LiveScores(TextRanker(ByLength())) if ours.needs_ranking else None
        return [await ask_step(step, scores, model, grounding=ours, top_k=K) for step in steps()]

    found = asyncio.run(ask_all())
    predictions, truths = [one.prediction for one in found], [one.truth for one in found]
    ranked = K if grounding(name).needs_ranking else None
    return found, summarise(LabelledPredictions(predictions, truths), PROTOCOLS["seeact"], ranked)[1]


@cache
def of_the_perfect_model(name: str) -> tuple[list[StepAnswer], Summary]:
    return summary(name, open_builtin("oracle"))


@pytest.mark.parametrize("name", ["choice", "annotation", "mindact", "pixel", "attributes", "oracle"])
@settings(max_examples=12, deadline=None)
@given(fates=st.lists(st.sampled_from(list(FATES)), min_size=1, max_size=4), seed=st.integers(0, 9))
def test_ranks_recall_and_ceiling_are_the_same_whatever_the_model_does(name: str, fates: list[str], seed: int) -> None:
    (found, made), (perfect, best) = summary(name, Fated(fates, seed)), of_the_perfect_model(name)
    assert [(one.prediction.ranked, one.prediction.reachable) for one in found] == [
        (one.prediction.ranked, one.prediction.reachable) for one in perfect
    ]
    assert (made.recall_at_k, made.ceiling) == (best.recall_at_k, best.ceiling)
    # a fault of the data comes first, whoever meets it
    if "cannot see" not in fates:
        assert all(made.waterfall[cause] == best.waterfall[cause] for cause in ("ranker_miss", "not_offered"))


@pytest.mark.parametrize("name", ["choice", "annotation", "mindact", "pixel", "attributes"])
def test_the_perfect_model_is_as_good_as_the_ceiling(name: str) -> None:
    _, best = of_the_perfect_model(name)
    assert best.ceiling == best.element_accuracy


def test_a_ranked_target_in_a_group_that_is_dropped_was_not_offered() -> None:
    found, best = of_the_perfect_model("choice")
    dropped = [one.truth.positives <= set(one.prediction.ranked) and not one.prediction.reachable for one in found]
    assert sum(dropped) == best.waterfall["not_offered"] > 0
