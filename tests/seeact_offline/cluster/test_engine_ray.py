"""`--engine ray`: `eval`, whose workers rank the split and ask its steps, and `rank`, which leaves the same file as without it.

One file, so that one process after the other starts a Ray.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from seeact_offline.files.extras import install_command
from seeact_offline.records import Message, ModelStopped
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.watch import Watch
from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.cluster.mortal_model import MortalModel
from tests.seeact_offline.conftest import RESULT_FILES, Cli, Sample, contents, make_sample

NEEDS_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
FILES = (*RESULT_FILES, "targets.jsonl")


def test_a_limit_of_cost_that_many_workers_share_is_refused(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--model", "openai/m", "--price", "1,2", "--max-cost", "1", "--engine", "ray", "--out", tmp_path / "o")
    assert "--max-cost needs --engine local" in cli("eval", "--dataset", sample.dataset, *words).error


@pytest.mark.slow
@NEEDS_RAY
def test_a_run_on_ray_leaves_the_files_of_a_local_one(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--dataset", sample.dataset, "--ranker", "bm25")
    local = cli("eval", *words, "--out", tmp_path / "local")
    ray = cli("eval", *words, "--out", tmp_path / "ray", "--engine", "ray", "--score-workers", "2")
    assert (local.status, ray.status) == (0, 0), ray.err
    assert "Ray: 2 asking workers, 0 GPUs each, 4 steps at once in all" in ray.err
    assert contents(tmp_path / "ray", FILES) == contents(tmp_path / "local", FILES)


@pytest.mark.slow
@NEEDS_RAY
def test_a_worker_that_is_killed_changes_no_byte(sample: Sample, tmp_path: Path) -> None:
    common = {"dataset": sample.dataset, "grounding": "pixel", "concurrency": 2}
    first = evaluate(**common, out=tmp_path / "recorded").path
    recording = first / "predictions.jsonl"
    local = evaluate(**common, model=mortal(tmp_path / "here", recording, dies_at=0), out=tmp_path / "local").path
    model = mortal(tmp_path / "there", recording, dies_at=9)
    ray = evaluate(**common, model=model, engine="ray", score_workers=1, out=tmp_path / "ray").path
    assert contents(ray, FILES) == contents(local, FILES)
    assert (tmp_path / "there" / "death0").exists()
    # two steps of two calls each were under way
    repeated = len(model.calls()) - len({call.partition(" ")[2] for call in model.calls()})
    assert 1 <= repeated <= 4


def raising(messages: Sequence[Message]) -> str:
    raise RuntimeError("out of luck")


@pytest.mark.slow
@NEEDS_RAY
def test_on_ray_too_ranks_outlive_a_model_that_raises(sample: Sample, tmp_path: Path) -> None:
    common = {"dataset": sample.dataset, "ranker": "bm25", "model": raising}
    local = evaluate(**common, out=tmp_path / "local")
    ray = evaluate(**common, out=tmp_path / "ray", engine="ray", score_workers=1)
    assert contents(ray.path, FILES) == contents(local.path, FILES)
    usual = evaluate(dataset=sample.dataset, ranker="bm25", out=tmp_path / "usual").results
    assert [ray.results[name] for name in ("recall_at_k", "ceiling")] == [usual["recall_at_k"], usual["ceiling"]]


@pytest.mark.slow
@NEEDS_RAY
def test_on_ray_too_errors_of_the_model_stop_the_run(sample: Sample, tmp_path: Path) -> None:
    common = {"dataset": sample.dataset, "ranker": "bm25", "model": raising, "engine": "ray", "score_workers": 1}
    with pytest.raises(ModelStopped, match=r"at most 50% of steps .*, got model_error: RuntimeError: out of luck"):
        evaluate(**common, fail_on_error=0.5, out=tmp_path / "ray")


@pytest.mark.slow
@NEEDS_RAY
def test_on_ray_too_remarks_on_the_server_are_made(sample: Sample, tmp_path: Path) -> None:
    """Their workers kept them to themselves."""
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


def mortal(folder: Path, recording: Path, dies_at: int) -> MortalModel:
    folder.mkdir()
    return MortalModel(folder, recording, dies_at)


# --- rank ---


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


@NEEDS_RAY
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


@NEEDS_RAY
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


@NEEDS_RAY
def test_what_is_no_ray_is_not_waited_for(
    cli: Cli, sample: Sample, tmp_path: Path, listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seeact_offline.cluster.ray.CHECK_S", 3.0)
    words = ("--ranker", "bm25", "--out", tmp_path / "s.parquet", "--engine", "ray", "--address", listener)
    error = cli("rank", "--dataset", sample.dataset, *words).error
    assert f"cannot use the Ray at {listener}: silent for 3 s" in error


@NEEDS_RAY
def test_without_ray_the_extra_is_named(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ("--ranker", "bm25", "--out", tmp_path / "s.parquet", "--engine", "ray")
    assert install_command("ray") in cli("rank", "--dataset", sample.dataset, *words).error
