"""Lines of a run's predictions: what is written is read back, and old lines are still read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.records import Prediction, Reply, StepKey, Usage
from seeact_offline.runs.directory import prediction_line, read_prediction

REPLY = Reply(0, ("1", "2"), ("plan", "answer"), "1", "TYPE", "x")
NEW = {"point", "notes", "reachable"}
PREDICTIONS = st.builds(
    Prediction,
    key=st.builds(StepKey, st.text(max_size=3), st.text(max_size=3)),
    groups=st.sampled_from([(), (REPLY,)]),
    element_id=st.none() | st.text(max_size=3),
    op=st.sampled_from(["", "CLICK"]),
    value=st.text(max_size=5),
    ranked=st.sampled_from([(), ("1", "2")]),
    usage=st.just(Usage(1, 2, 3)),
    failure=st.none() | st.just("timeout"),
    ran=st.booleans(),
    point=st.none() | st.tuples(st.floats(0, 9e3), st.floats(0, 9e3)),
    notes=st.dictionaries(st.text(max_size=4), st.integers(1, 9), max_size=3).map(lambda d: tuple(sorted(d.items()))),
    reachable=st.none() | st.booleans(),
)


@given(PREDICTIONS)
def test_a_prediction_is_read_back_as_it_was(prediction: Prediction) -> None:
    assert read_prediction(json.loads(prediction_line(prediction))) == prediction


def test_fields_that_a_grounding_does_not_give_are_not_written() -> None:
    plain = Prediction(StepKey("a", "b"), (REPLY,), "1", "TYPE", "x")
    assert NEW.isdisjoint(json.loads(prediction_line(plain)))


def test_each_new_field_is_written_alone() -> None:
    key = StepKey("a", "b")
    for more in ({"point": (1.0, 2.0)}, {"notes": (("x", 1),)}, {"reachable": False}):
        assert NEW & json.loads(prediction_line(Prediction(key, (), None, "", "", **more))).keys() == more.keys()


def test_a_line_from_before_these_fields_is_read() -> None:
    old = (
        '{"annotation_id": "a", "action_uid": "b", "element_id": "1", "op": "CLICK", "value": "", "failure": null, "detail": "",'
        ' "ran": true, "usage": {"calls": 2, "prompt_tokens": 0, "completion_tokens": 0, "image_tokens": 0, "cost_usd": 0.0},'
        ' "ranked": ["1"], "groups": []}\n'
    )
    prediction = read_prediction(json.loads(old))
    assert (prediction.point, prediction.notes, prediction.reachable) == (None, (), None)
    assert prediction_line(prediction) == old


@pytest.mark.parametrize("damage", [{"point": [1]}, {"point": "ab"}, {"notes": [1]}, {"notes": {"x": "y"}}])
def test_a_damaged_field_is_an_error_that_loading_names(damage) -> None:
    row = json.loads(prediction_line(Prediction(StepKey("a", "b"), (), None, "", ""))) | damage
    with pytest.raises((ValueError, TypeError, KeyError)):
        read_prediction(row)
