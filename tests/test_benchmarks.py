"""The rows of the benchmarks."""

from __future__ import annotations

import importlib
from itertools import islice
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REPO = Path(__file__).resolve().parents[1]


def test_the_rows_of_the_engine_have_pictures_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    # one row of the sample has no screenshot
    monkeypatch.syspath_prepend(REPO / "scripts")
    engine = importlib.import_module("benchmarks.engine")
    n = 700
    pictures = [row["screenshot"]["bytes"] for row in islice(engine._repeat_rows(), n)]
    assert len({*pictures}) == n
