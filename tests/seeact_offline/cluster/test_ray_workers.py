"""Which workers are started on a Ray, what is sent to them, and what is refused before one is."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.cluster.ray import ClusterSize, RankWorkers, _end_with_raylet, rank_workers
from seeact_offline.cluster.ray_asking import AskWorkers, ask_workers
from seeact_offline.files.extras import install_command
from seeact_offline.grounding.strategies import STRATEGIES
from seeact_offline.models import ModelOptions
from seeact_offline.ranking.stage import Workers
from seeact_offline.records import InputError
from seeact_offline.runs.ask import ask_step
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.engines import AskTask
from seeact_offline.runs.strategy_opening import open_strategy
from tests.seeact_offline.conftest import Cli, Sample

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@pytest.mark.parametrize(
    ("workers", "room", "ranker", "crew"),
    [
        (Workers(), ClusterSize(3, 0, 1), "DIR", RankWorkers(1, 1, 0)),
        (Workers(), ClusterSize(16, 1, 1), "DIR", RankWorkers(1, 14, 1)),
        (Workers(), ClusterSize(16, 1, 1), "bm25", RankWorkers(1, 14, 0)),
        (Workers(), ClusterSize(64, 0, 4), "DIR", RankWorkers(4, 59, 0)),
        (Workers(gpus_each=0.5), ClusterSize(64, 8, 2), "DIR", RankWorkers(16, 47, 0.5)),
        (Workers(score=2, describe=3), ClusterSize(64, 8, 2), "DIR", RankWorkers(2, 3, 1)),
    ],
)
def test_who_is_not_asked_for_is_as_many_as_there_is_room_for(
    workers: Workers, room: ClusterSize, ranker: str, crew: RankWorkers
) -> None:
    assert rank_workers(workers, room, ranker) == crew


@pytest.mark.parametrize(
    ("workers", "named"),
    [
        (Workers(score=3, gpus_each=1), "gpus_per_worker"),
        (Workers(score=8), "score_workers"),
        (Workers(describe=8), "describe_workers"),
    ],
)
def test_more_workers_than_there_is_room_for_are_refused(workers: Workers, named: str) -> None:
    with pytest.raises(InputError, match=f"^{named}: expected workers that fit "):
        rank_workers(workers, ClusterSize(8, 2, 1), "bm25")


@pytest.mark.parametrize(
    ("workers", "room", "is_loaded", "concurrency", "askers"),
    [
        (Workers(), ClusterSize(4, 0, 1), False, 64, AskWorkers((16, 16, 16, 16), 0)),
        (Workers(), ClusterSize(16, 2, 1), False, 5, AskWorkers((1, 1, 1, 1, 1), 0)),
        (Workers(), ClusterSize(16, 2, 1), True, 5, AskWorkers((3, 2), 1)),
        (Workers(), ClusterSize(16, 0, 2), True, 4, AskWorkers((2, 2), 0)),
        (Workers(score=3), ClusterSize(8, 0, 1), False, 2, AskWorkers((1, 1), 0)),
        (Workers(gpus_each=0.5), ClusterSize(16, 2, 1), True, 8, AskWorkers((2, 2, 2, 2), 0.5)),
        (Workers(gpus_each=4), ClusterSize(16, 8, 2), True, 8, AskWorkers((4, 4), 4)),
    ],
)
def test_every_worker_has_its_part_of_the_calls(
    workers: Workers, room: ClusterSize, is_loaded: bool, concurrency: int, askers: AskWorkers
) -> None:
    assert ask_workers(workers, room, is_loaded, concurrency) == askers


@pytest.mark.parametrize(
    ("workers", "named"), [(Workers(score=3, gpus_each=1), "gpus_per_worker"), (Workers(score=9), "score_workers")]
)
def test_more_askers_than_there_is_room_for_are_refused(workers: Workers, named: str) -> None:
    with pytest.raises(InputError, match=f"^{named}: expected workers that fit "):
        ask_workers(workers, ClusterSize(8, 2, 1), False, 64)


def test_a_worker_makes_its_part_of_the_calls_a_minute() -> None:
    grounding = open_strategy(EvalConfig(grounding="pixel")).grounding
    options = ModelOptions(concurrency=8, rpm=80, cache=Path("replies.sqlite"))
    whole = AskTask("builtin/lexical", options, partial(ask_step, grounding=grounding, top_k=50))
    part = whole.shared(2).options
    assert (part.concurrency, part.rpm, part.tpm) == (2, 20, None)
    assert part.cache == Path.cwd() / "replies.sqlite"


@needs_ray
@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_can_be_sent(name: str, tmp_path: Path) -> None:
    from ray import cloudpickle

    (tmp_path / "answers").write_text(
        '{"annotation_id": "a", "action_uid": "u", "element_id": "1", "op": "CLICK", "value": ""}\n'
    )
    own: dict[str, dict[str, Any]] = {
        "ungrounded": {"ungrounded": True},
        "oracle": {"grounding": name, "oracle_file": tmp_path / "answers"},
    }
    opened = open_strategy(EvalConfig().changed(**own.get(name, {"grounding": name}))).grounding
    assert cloudpickle.loads(cloudpickle.dumps(opened)).form == opened.form


# --- refusals ---


def test_a_limit_of_cost_that_many_workers_share_is_refused(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--model", "openai/m", "--price", "1,2", "--max-cost", "1", "--engine", "ray", "--out", tmp_path / "o")
    assert "--max-cost needs --engine local" in cli("eval", "--dataset", sample.dataset, *words).error


@pytest.fixture
def listener() -> Iterator[str]:
    """The address of something that takes calls and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@needs_ray
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


@pytest.mark.slow
@needs_ray
def test_what_is_no_ray_is_not_waited_for(
    cli: Cli, sample: Sample, tmp_path: Path, listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seeact_offline.cluster.ray.CHECK_S", 3.0)
    words = ("--ranker", "bm25", "--out", tmp_path / "s.parquet", "--engine", "ray", "--address", listener)
    error = cli("rank", "--dataset", sample.dataset, *words).error
    assert f"cannot use the Ray at {listener}: silent for 3 s" in error


@needs_ray
def test_a_ray_that_does_not_start_in_time_is_one_sentence(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def busy(**_: object) -> None:
        # as ray's node.py has it
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", busy)
    words = ("--ranker", "bm25", "--out", tmp_path / "s.parquet", "--engine", "ray")
    error = cli("rank", "--dataset", sample.dataset, *words).error
    assert "cannot use a Ray on this machine: The current node timed out during startup" in error


@pytest.mark.parametrize(("is_over", "statuses"), [(False, [2]), (True, [])])
def test_a_line_to_ray_that_breaks_ends_the_command_unless_it_is_over(
    is_over: bool, statuses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    heard: list[str] = []
    over = threading.Event()
    if is_over:
        over.set()
    monkeypatch.setattr(os, "_exit", ended.append)
    here, there = socket.socketpair()
    there.close()
    with here:
        _end_with_raylet(here, over, heard.append)
    assert ended == statuses
    assert [text.partition(", ")[0] for text in heard] == ["Ray's process on this machine died"] * len(statuses)


@needs_ray
def test_without_ray_the_extra_is_named(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ("--ranker", "bm25", "--out", tmp_path / "s.parquet", "--engine", "ray")
    assert install_command("ray") in cli("rank", "--dataset", sample.dataset, *words).error
