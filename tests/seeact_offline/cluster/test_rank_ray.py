"""`rank --engine ray`: the same file as without it, and what is refused."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from seeact_offline.files.extras import install_command
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, make_sample

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture
def spoilt(tmp_path: Path) -> Sample:
    """Four steps, of which one has a candidate that is not in its page."""
    rows = list(synthetic_rows(2, 2, 8, seed=4))
    candidate = json.dumps({"backend_node_id": "999999", "tag": "a", "attributes": "{}"})
    rows[1] = {**rows[1], "neg_candidates": [*rows[1]["neg_candidates"], candidate]}
    return make_sample(tmp_path / "data", rows)


@pytest.fixture
def listener() -> Iterator[str]:
    """The address of something that takes calls and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
def test_a_cross_encoder_on_ray_leaves_the_same_file_and_figures(cli: Cli, spoilt: Sample, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.ranker.test_cross_encoder import make_checkpoint

    words = ("--dataset", spoilt.dataset, "--ranker", make_checkpoint(tmp_path / "tiny"), "--json")
    local = cli("rank", *words, "--out", tmp_path / "local.parquet")
    ray = cli("rank", *words, "--out", tmp_path / "ray.parquet", "--engine", "ray")
    assert (local.status, ray.status) == (1, 1), ray.err
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "local.parquet").read_bytes()
    assert json.loads(ray.out) | {"out": ""} == json.loads(local.out) | {"out": ""}
    assert [line.partition(" ")[0] for line in ray.err.splitlines() if not line.startswith("cross_task: ")] == [
        "Ray:",
        "4",
        "step",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--address", "auto"), "--address needs --engine ray"),
        (("--score-workers", "2"), "--score-workers needs --engine ray"),
        (("--engine", "ray", "--address", "ray://head:10001"), "--address: expected HOST:PORT"),
        (("--engine", "ray", "--address", "head"), "--address: expected HOST:PORT"),
        (
            ("--engine", "ray", "--address", "127.0.0.1:1"),
            "there is no Ray at 127.0.0.1:1: Connection refused",
        ),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(
    cli: Cli, sample: Sample, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    out = tmp_path / "s.parquet"
    assert said in cli("rank", "--dataset", sample.dataset, "--ranker", "bm25", "--out", out, *words).error


def test_what_is_no_ray_is_not_waited_for(
    cli: Cli, sample: Sample, tmp_path: Path, listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seeact_offline.cluster.ray.CHECK_S", 3.0)
    words = ("--ranker", "bm25", "--out", tmp_path / "s.parquet", "--engine", "ray", "--address", listener)
    error = cli("rank", "--dataset", sample.dataset, *words).error
    assert f"cannot use the Ray at {listener}: silent for 3 s" in error


def test_without_ray_the_extra_is_named(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ("--ranker", "bm25", "--out", tmp_path / "s.parquet", "--engine", "ray")
    assert install_command("ray") in cli("rank", "--dataset", sample.dataset, *words).error
