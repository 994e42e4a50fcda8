"""Work on a real Ray of this machine, in one file, so that two of them never share its processors: whole commands, each on a Ray of its
own, and then, on one that stays, the engines that rank and ask, some of whose workers are killed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pytest

from seeact_offline.cluster.ray import Note, RayEngine, open_engine
from seeact_offline.cluster.ray_asking import AskWorkers, RayWorkerPool
from seeact_offline.dataset import Split, open_split
from seeact_offline.models import ModelOptions
from seeact_offline.ranking import Origin, open_ranker, write_scores
from seeact_offline.ranking.pipeline import Engine, LocalEngine, ScoreJournal
from seeact_offline.ranking.stage import Workers
from seeact_offline.records import InputError, ModelStopped, Prediction
from seeact_offline.runs.ask import ask_each, ask_step
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.engines import AskTask
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.strategy_opening import open_strategy
from seeact_offline.runs.watch import Watch
from tests.chat_server import Answer, ChatServer
from tests.conftest import REPO
from tests.mortal_ranker import open_mortal
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.cluster.mortal_model import MortalModel, StoppedModel
from tests.seeact_offline.conftest import RESULT_FILES, Cli, Sample, contents, make_sample

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
]

FILES = (*RESULT_FILES, "targets.jsonl")
ORIGIN = Origin("0", "cross_task", None, "x", 1)
ONE_WORKER = AskWorkers((2,), gpus_each=0)


@pytest.fixture(scope="module", autouse=True)
def _not_nice() -> Iterator[None]:
    """Ray's workers let every other process go first, of which the suite has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        yield


# --- commands ---


@pytest.mark.nightly
def test_a_run_on_ray_leaves_the_files_and_remarks_of_a_local_one(sample: Sample, tmp_path: Path) -> None:
    heard: dict[str, list[str]] = {}

    class Heard(Watch):
        def note(self, text: str) -> None:
            heard.setdefault(engine, []).append(text)

    with ChatServer(lambda body: Answer("ELEMENT: A\nACTION: CLICK\nVALUE: None", finish_reason="tired")) as server:
        options = {"dataset": sample.dataset, "ranker": "bm25", "model": "openai/m", "base_url": server.base_url}
        for engine in ("local", "ray"):
            more = {"score_workers": 1} if engine == "ray" else {}
            run = evaluate(**options, **more, engine=engine, out=tmp_path / engine, watch=Heard())
            assert run.results["notes"]["unknown_finish_reason"] > 0
    remarks = {engine: [note for note in notes if "tired (" in note] for engine, notes in heard.items()}
    assert len(remarks["local"]) == 1
    assert remarks["ray"] == remarks["local"]
    assert contents(tmp_path / "ray", FILES) == contents(tmp_path / "local", FILES)


def test_a_worker_that_is_killed_changes_no_byte(sample: Sample, tmp_path: Path) -> None:
    common = {"dataset": sample.dataset, "grounding": "pixel", "concurrency": 2}
    first = evaluate(**common, out=tmp_path / "recorded").path
    recording = first / "predictions.jsonl"
    local = evaluate(**common, model=mortal(tmp_path / "here", recording, dies_at=0), out=tmp_path / "local").path
    model = mortal(tmp_path / "there", recording, dies_at=9)
    heard: list[str] = []
    watch = Watch()
    watch.note = heard.append  # type: ignore[method-assign]
    ray = evaluate(**common, model=model, engine="ray", score_workers=1, out=tmp_path / "ray", watch=watch).path
    assert contents(ray, FILES) == contents(local, FILES)
    assert (tmp_path / "there" / "death0").exists()
    assert [text for text in heard if text.startswith("a worker died (")]
    # two steps of two calls each were under way
    repeated = len(model.calls()) - len({call.partition(" ")[2] for call in model.calls()})
    assert 1 <= repeated <= 4


def mortal(folder: Path, recording: Path, dies_at: int) -> MortalModel:
    folder.mkdir()
    return MortalModel(folder, recording, dies_at)


@pytest.fixture
def spoilt(tmp_path: Path) -> Sample:
    """Four steps, of which one has a candidate that is not in its page."""
    rows = list(synthetic_rows(2, 2, 8, seed=4))
    candidate = json.dumps({"backend_node_id": "999999", "tag": "a", "attributes": "{}"})
    rows[1] = {**rows[1], "neg_candidates": [*rows[1]["neg_candidates"], candidate]}
    return make_sample(tmp_path / "data", rows)


@pytest.mark.nightly
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


DYING = """
import os, signal, sys, time
from pathlib import Path
from seeact_offline.cluster.ray import connected

def processes():
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            yield int(folder.name), parent, (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            pass

def agent(raylet):
    while True:
        found = [pid for pid, parent, command in processes() if parent == raylet and "Agent" in command]
        if found:
            return found[0]
        time.sleep(0.1)

with connected(None, 1, print) as ray:
    raylet = ray._private.worker._global_node.all_processes["raylet"][0].process.pid
    os.kill(raylet if sys.argv[1] == "raylet" else agent(raylet), signal.SIGKILL)
    time.sleep(200)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("part", ["raylet", "its agent"])
def test_the_end_of_rays_own_process_is_one_sentence(part: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", DYING, part], cwd=REPO, capture_output=True, text=True, timeout=280, check=False
    )
    said = "Ray's process on this machine died, and with it this command: the same command resumes from here"
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (2, [said]), ended.stderr


# --- engines ---


@pytest.fixture(scope="module")
def here() -> Iterator[RayEngine]:
    """One Ray for all tests here, with a worker for each stage."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seeact_offline.cluster.ray.OBJECT_STORE_BYTES", 100 << 20)
        with open_engine("bm25", Workers(score=1, describe=1)) as engine:
            yield engine


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    """Twelve steps in two files, those of a task not in order."""
    folder = tmp_path_factory.mktemp("data")
    rows = list(synthetic_rows(4, 3, 12, seed=1))
    write_parquet(rows[::2], folder / "data" / "test_task-00000-of-00002.parquet")
    write_parquet(rows[1::2], folder / "data" / "test_task-00001-of-00002.parquet")
    return open_split(str(folder), "cross_task")


def score_file(engine: Engine, split: Split, path: Path) -> bytes:
    """The bytes of a whole run."""
    with ScoreJournal(path.with_suffix(".journal"), ORIGIN) as journal:
        done = list(engine.rank(split, journal))
        assert sorted(step.truth.key for step in done) == sorted(split.keys)
        write_scores(path, journal.rows(split.keys))
    return path.read_bytes()


def mortal_engine(
    here: RayEngine, folder: Path, dies_at: int, lives: int = 1, attempts: int = 3, note: Note = print
) -> RayEngine:
    return RayEngine(f"{folder}:{dies_at}:{lives}", here.crew, open_mortal, 2, attempts, note)


def calls(folder: Path) -> list[str]:
    """The process of every call of a mortal ranker that came to its end."""
    return (folder / "calls").read_text().split()


@pytest.mark.nightly
def test_a_ranking_that_ended_early_goes_on_and_a_killed_worker_changes_no_byte(
    here: RayEngine, split: Split, tmp_path: Path
) -> None:
    local = LocalEngine(open_ranker("bm25"))
    with ScoreJournal(tmp_path / "ray.journal", ORIGIN) as journal:
        assert len(list(islice(local.rank(split, journal), 5))) == 5
    heard: list[str] = []
    engine = mortal_engine(here, tmp_path, dies_at=3, note=heard.append)
    found = score_file(engine, split, tmp_path / "ray.parquet")
    assert found == score_file(local, split, tmp_path / "local.parquet")
    assert (tmp_path / "death0").exists()
    assert heard == ["1 worker died and had a successor, to which unfinished work went"]
    assert len(set(calls(tmp_path))) == 2
    # what a killed worker had scored is scored again
    assert 12 - 5 <= len(calls(tmp_path)) < 12


@pytest.mark.nightly
def test_work_that_ends_every_worker_ends_the_run(here: RayEngine, split: Split, tmp_path: Path) -> None:
    engine = mortal_engine(here, tmp_path, dies_at=1, lives=99, attempts=1)
    with (
        ScoreJournal(tmp_path / "s.journal", ORIGIN) as journal,
        pytest.raises(InputError, match=r"^scoring the steps from task-.* on killed 1 workers"),
    ):
        list(engine.rank(split, journal))


def test_a_ranker_that_cannot_be_opened_on_a_worker_is_one_sentence(here: RayEngine) -> None:
    with pytest.raises(InputError, match=r"^ranker: expected bundled, bm25, .* got no such folder$"):
        _ = RayEngine("no such folder", here.crew).digest


# --- asking ---


@pytest.fixture(scope="module")
def two_steps(tmp_path_factory: pytest.TempPathFactory) -> Split:
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


@pytest.mark.usefixtures("here")
def test_a_model_that_stops_in_a_worker_stops_the_run(two_steps: Split) -> None:
    with pytest.raises(ModelStopped, match=r"^model: expected an answer from http://nowhere, got api_error: no such"):
        ask_all(asking(StoppedModel()), two_steps)


@pytest.mark.usefixtures("here")
def test_a_step_that_ends_every_worker_ends_the_run(two_steps: Split, tmp_path: Path) -> None:
    model = MortalModel(tmp_path, tmp_path / "none", dies_at=1, lives=99)
    with pytest.raises(InputError, match=r"^step task-1-0_.* killed 2 workers"):
        ask_all(asking(model), two_steps, attempts=2)


@pytest.mark.usefixtures("here")
def test_a_worker_with_another_server_than_the_command_is_refused(
    two_steps: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the workers' processes were begun without it
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(InputError, match=r"^model: expected base_url 'http://127.0.0.1:1/v1' on every machine"):
        ask_all(asking("openai/gpt-4o"), two_steps)


@pytest.mark.usefixtures("here")
def test_a_worker_that_there_is_no_room_for_is_not_waited_for(
    two_steps: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seeact_offline.cluster.ray_asking.START_S", 1.0)
    with pytest.raises(InputError, match=r"^no worker started within 1 s"):
        ask_all(asking("builtin/lexical"), two_steps, askers=AskWorkers((2,), gpus_each=1000))


@pytest.mark.usefixtures("here")
def test_a_model_that_cannot_be_sent_is_refused(two_steps: Split) -> None:
    lock = threading.Lock()
    with pytest.raises(InputError, match=r"^the model cannot be sent to Ray's workers: "):
        ask_all(asking(lambda messages: str(lock)), two_steps)
