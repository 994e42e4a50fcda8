"""Steps asked by the workers of a real Ray on this machine, some of which are killed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.cluster.ray import ClusterSize, connected
from seeact_offline.cluster.ray_asking import AskWorkers, RayWorkerPool, ask_workers
from seeact_offline.dataset import Split, open_split
from seeact_offline.grounding.strategies import STRATEGIES
from seeact_offline.models import ModelOptions
from seeact_offline.records import InputError, ModelStopped, Prediction
from seeact_offline.runs.ask import ask_each, ask_step
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.engines import AskTask, Workers
from seeact_offline.runs.groundings import open_strategy
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.cluster.mortal_model import MortalModel, StoppedModel

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


ONE_WORKER = AskWorkers((2,), gpus_each=0)


@pytest.fixture(scope="module")
def _connected() -> Iterator[None]:
    """One Ray for all tests here, with room for two workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seeact_offline.cluster.ray.OBJECT_STORE_BYTES", 100 << 20)
        with connected(None, 2):
            yield


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    """Two steps."""
    folder = tmp_path_factory.mktemp("data")
    write_parquet(list(synthetic_rows(1, 2, 12, seed=1)), folder / "test_task.parquet")
    return open_split(str(folder), "cross_task")


def asking(model: object, options: ModelOptions | None = None) -> AskTask:
    grounding = open_strategy(EvalConfig(grounding="pixel")).grounding
    return AskTask(model, options or ModelOptions(), partial(ask_step, grounding=grounding, top_k=50))


def ask_all(given: AskTask, split: Split, attempts: int = 3, askers: AskWorkers = ONE_WORKER) -> list[Prediction]:
    """Two steps at once."""
    found: list[Prediction] = []

    async def ask() -> None:
        workers = RayWorkerPool(replace(given, options=replace(given.options, concurrency=2)), askers, attempts)
        try:
            await ask_each(split.steps(), lambda step: workers.ask(step, None), lambda a: found.append(a.prediction), 2)
        finally:
            await workers.aclose()

    asyncio.run(ask())
    return found


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("_connected")
def test_a_model_that_stops_in_a_worker_stops_the_run(split: Split) -> None:
    with pytest.raises(ModelStopped, match=r"^model: expected an answer from http://nowhere, got api_error: no such"):
        ask_all(asking(StoppedModel()), split)


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("_connected")
def test_a_step_that_ends_every_worker_ends_the_run(split: Split, tmp_path: Path) -> None:
    model = MortalModel(tmp_path, tmp_path / "none", dies_at=1, lives=99)
    with pytest.raises(InputError, match=r"^engine: expected workers .*, got 2 that ended while step task-1-0_"):
        ask_all(asking(model), split, attempts=2)


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("_connected")
def test_a_worker_with_another_server_than_the_command_is_refused(
    split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the workers' processes were begun without it
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(InputError, match=r"^model: expected base_url 'http://127.0.0.1:1/v1' on every machine"):
        ask_all(asking("openai/gpt-4o"), split)


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("_connected")
def test_a_worker_that_there_is_no_room_for_is_not_waited_for(split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seeact_offline.cluster.ray_asking.START_S", 1.0)
    with pytest.raises(InputError, match=r"^no worker started within 1 s"):
        ask_all(asking("builtin/lexical"), split, askers=AskWorkers((2,), gpus_each=1000))


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("_connected")
def test_a_model_that_cannot_be_sent_is_refused(split: Split) -> None:
    lock = threading.Lock()
    with pytest.raises(InputError, match=r"^the model cannot be sent to Ray's workers: "):
        ask_all(asking(lambda messages: str(lock)), split)


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


# --- who asks --------------------------------------------------------------------------------------------------------


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
    whole = asking("builtin/lexical", ModelOptions(concurrency=8, rpm=80, cache=Path("replies.sqlite")))
    part = whole.shared(2).options
    assert (part.concurrency, part.rpm, part.tpm) == (2, 20, None)
    assert part.cache == Path.cwd() / "replies.sqlite"
