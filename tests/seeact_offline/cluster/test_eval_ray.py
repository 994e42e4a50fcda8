"""`eval --engine ray`: Ray's workers rank the split, and ask its steps."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from seeact_offline.records import Message, ModelStopped
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.watch import Watch
from tests.chat_server import Answer, ChatServer
from tests.seeact_offline.cluster.mortal_model import MortalModel
from tests.seeact_offline.conftest import RESULT_FILES, Cli, Sample, contents

FILES = (*RESULT_FILES, "targets.jsonl")


def test_a_limit_of_cost_that_many_workers_share_is_refused(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--model", "openai/m", "--price", "1,2", "--max-cost", "1", "--engine", "ray", "--out", tmp_path / "o")
    assert "--max-cost needs --engine local" in cli("eval", "--dataset", sample.dataset, *words).error


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_a_run_on_ray_leaves_the_files_of_a_local_one(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--dataset", sample.dataset, "--ranker", "bm25")
    local = cli("eval", *words, "--out", tmp_path / "local")
    ray = cli("eval", *words, "--out", tmp_path / "ray", "--engine", "ray", "--score-workers", "2")
    assert (local.status, ray.status) == (0, 0), ray.err
    assert "Ray: 2 asking workers, 0 GPUs each, 4 steps at once in all" in ray.err
    assert contents(tmp_path / "ray", FILES) == contents(tmp_path / "local", FILES)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
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
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_on_ray_too_ranks_outlive_a_model_that_raises(sample: Sample, tmp_path: Path) -> None:
    common = {"dataset": sample.dataset, "ranker": "bm25", "model": raising}
    local = evaluate(**common, out=tmp_path / "local")
    ray = evaluate(**common, out=tmp_path / "ray", engine="ray", score_workers=1)
    assert contents(ray.path, FILES) == contents(local.path, FILES)
    usual = evaluate(dataset=sample.dataset, ranker="bm25", out=tmp_path / "usual").results
    assert [ray.results[name] for name in ("recall_at_k", "ceiling")] == [usual["recall_at_k"], usual["ceiling"]]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_on_ray_too_errors_of_the_model_stop_the_run(sample: Sample, tmp_path: Path) -> None:
    common = {"dataset": sample.dataset, "ranker": "bm25", "model": raising, "engine": "ray", "score_workers": 1}
    with pytest.raises(ModelStopped, match=r"at most 50% of steps .*, got model_error: RuntimeError: out of luck"):
        evaluate(**common, fail_on_error=0.5, out=tmp_path / "ray")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
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
