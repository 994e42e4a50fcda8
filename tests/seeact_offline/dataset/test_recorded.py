"""The recorder's own columns: read when asked for, and one named failure for what cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.recorded import Check, Condition
from seeact_offline.records import RowError, Step
from tests.pages import synthetic_rows, write_jsonl


def read(folder: Path, **columns: Any) -> Step:
    rows = [row | columns for row in synthetic_rows(1, 1, 3, seed=1)]
    return next(load_steps(write_jsonl(rows, folder / "train.jsonl"), "train"))


def test_a_row_without_the_columns_has_none(tmp_path) -> None:
    assert [read(tmp_path).recorded, read(tmp_path, check=None).recorded] == [None, None]


def test_a_column_is_read_as_its_type(tmp_path) -> None:
    text = '{"conditions": [{"url": "#a"}, {"selector": "p", "visible": false}], "before": [true, false]}'
    step = read(tmp_path, check=text)
    assert step.recorded is not None
    conditions = (Condition(url="#a"), Condition(selector="p", visible=False))
    assert step.recorded.read(Check) == Check(conditions, (True, False))


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "check: expected a JSON object, got ''"), ("{}", "check: expected the fields conditions, before, got none")],
)
def test_a_column_that_cannot_be_read_fails_by_name_and_only_when_asked_for(tmp_path, text, message) -> None:
    step = read(tmp_path, check=text)
    assert (step.faults, step.recorded is not None) == ((), True)
    with pytest.raises(RowError, match=message) as error:
        step.recorded.read(Check)
    assert error.value.name == "bad_recording"
