"""A split in parts, for several readers: every step once, as `load_steps` gives it but for its picture."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.dataset import load_steps, open_split
from seeact_offline.records import Step
from tests.pages import synthetic_rows, write_parquet

NO_PICTURE = "no_screenshot"


def write(rows: list[dict[str, object]], path: Path) -> None:
    if path.suffix == ".parquet":
        write_parquet(rows, path)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({**row, "screenshot": None}) + "\n" for row in rows))


@pytest.fixture(params=["parquet", "jsonl"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Two files, between which every task is divided; the last row repeats another's key."""
    rows = [dict(row) for row in synthetic_rows(3, 4, 6, seed=1)]
    write(rows[::2], tmp_path / f"test_task-00000-of-00002.{request.param}")
    write([*rows[1::2], rows[0]], tmp_path / f"test_task-00001-of-00002.{request.param}")
    return tmp_path


def bare(step: Step) -> Step:
    return replace(step, screenshot=None, faults=tuple(fault for fault in step.faults if fault.name != NO_PICTURE))


@pytest.mark.parametrize("limit", [None, 2])
def test_parts_hold_every_step_once(folder: Path, limit: int | None) -> None:
    parts = [pickle.loads(pickle.dumps(part)) for part in open_split(folder, "cross_task", limit=limit).shards()]
    found = {step.key: bare(step) for part in parts for step in part.steps()}
    assert len(parts) == 2
    assert found == {step.key: bare(step) for step in load_steps(folder, "cross_task", limit=limit)}
    assert sum(len(part.places) for part in parts) == len(found)


def test_parts_read_no_picture(folder: Path) -> None:
    step = next(open_split(folder, "cross_task").shards()[0].steps())
    assert step.screenshot is None
    assert [fault.name for fault in step.faults] == [NO_PICTURE]
