"""`eval --engine ray`: Ray's workers rank the split before the first step is asked."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.seeact_offline.cli.conftest import Cli, Sample


def test_ray_has_nothing_to_do_beside_a_score_file(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = (
        "--dataset",
        sample.dataset,
        "--scores",
        tmp_path / "s.parquet",
        "--engine",
        "ray",
        "--out",
        tmp_path / "o",
    )
    assert "--engine: expected no score file beside ray" in cli("eval", *words).error


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_steps_are_offered_what_a_local_ranking_offers(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--dataset", sample.dataset, "--ranker", "bm25", "--model", "builtin/oracle")
    local = cli("eval", *words, "--out", tmp_path / "local")
    ray = cli("eval", *words, "--out", tmp_path / "ray", "--engine", "ray")
    assert (local.status, ray.status) == (0, 0), ray.err
    found, expected = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("ray", "local"))
    assert found["recall_at_k"] == expected["recall_at_k"]
    assert (tmp_path / "ray" / "predictions.jsonl").read_bytes() == (
        tmp_path / "local" / "predictions.jsonl"
    ).read_bytes()
